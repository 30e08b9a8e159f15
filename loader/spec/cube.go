package spec

import (
	"fmt"
	"slices"
	"strings"
)

// checkDims checks the names in Spec.Dims. Whether the array has these dimensions shows when it is
// opened.
func checkDims(dims string) error {
	seen := map[string]bool{}
	for _, name := range strings.Fields(dims) {
		if seen[name] || !slices.Contains([]string{"n", "t", "b", "y", "x"}, name) {
			return fmt.Errorf("dims %q: dimensions are called n, t, b, y and x, each once", dims)
		}
		seen[name] = true
	}
	return nil
}

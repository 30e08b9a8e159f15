package spec

import (
	"fmt"
	"slices"
	"strings"
)

// checkDims checks what dimensions are said to be.
func checkDims(dims string) error {
	seen := map[string]bool{}
	for _, name := range strings.Fields(dims) {
		if seen[name] || !slices.Contains([]string{"n", "b", "y", "x"}, name) {
			return fmt.Errorf("dims %q: dimensions are called n, b, y and x, each once", dims)
		}
		seen[name] = true
	}
	return nil
}

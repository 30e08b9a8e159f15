package funcs

import (
	"strings"
	"testing"
)

// TestAggregatesAreDocumented: each aggregate has names of its own, in lower case, a signature, a line of
// documentation, and both of its steps.
func TestAggregatesAreDocumented(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Aggregates() {
		for _, name := range f.Names {
			if seen[name] || name != strings.ToLower(name) || name == "" {
				t.Errorf("%q is a name twice, or not in lower case", name)
			}
			seen[name] = true
		}
		if f.Signature == "" || f.Doc == "" || strings.Contains(f.Doc, "\n") {
			t.Errorf("%s has the signature %q and the documentation %q", f.Names[0], f.Signature, f.Doc)
		}
		if f.Bind == nil || f.Compute == nil {
			t.Errorf("%s cannot be bound or computed", f.Names[0])
		}
	}
	for _, name := range []string{"count", "sum", "avg", "min", "max", "stddev", "quantile_cont"} {
		if !seen[name] {
			t.Errorf("there is no %s", name)
		}
	}
}

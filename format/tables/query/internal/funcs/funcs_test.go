package funcs

import (
	"slices"
	"strings"
	"testing"
)

// TestDocumented: each function has names of its own, in lower case, a signature that begins with its name, and a line
// of documentation; and it can be bound, by its parameters or by a function of its own.
func TestDocumented(t *testing.T) {
	seen := map[string]bool{}
	all := slices.Concat(Numbers(), Strings(), Times(), Others())
	if len(all) < 50 {
		t.Errorf("%d functions", len(all))
	}
	for _, f := range all {
		for _, name := range f.Names {
			if seen[name] || name != strings.ToLower(name) || name == "" {
				t.Errorf("%q is a name twice, or not in lower case", name)
			}
			seen[name] = true
		}
		if !strings.HasPrefix(strings.ToLower(f.Signature), f.Names[0]) && !strings.Contains(f.Signature, " ") {
			t.Errorf("%s has the signature %q", f.Names[0], f.Signature)
		}
		if f.Doc == "" || strings.Contains(f.Doc, "\n") {
			t.Errorf("%s has the documentation %q", f.Names[0], f.Doc)
		}
	}
}

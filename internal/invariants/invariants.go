// Package invariants holds checks that are too expensive, or too strict, for users. They are
// compiled in with the build tag invariants, as in `make test-race`; otherwise Enabled is a
// constant false, so the compiler removes them.
package invariants

import "fmt"

// Check panics if ok is false. Call it behind Enabled where computing ok costs something.
func Check(ok bool, format string, args ...any) {
	if Enabled && !ok {
		panic("invariant: " + fmt.Sprintf(format, args...))
	}
}

// Overwritten is the byte that memory is filled with once its owner gave it up.
const Overwritten = 0xDB

// Overwrite fills memory that was given up: a test that still reads it fails.
func Overwrite(b []byte) {
	if Enabled {
		for i := range b {
			b[i] = Overwritten
		}
	}
}

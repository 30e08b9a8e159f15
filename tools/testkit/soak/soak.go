// Package soak tells tests whether `make soak-go` runs them, which tries every case of those that try a fixed part
// elsewhere.
package soak

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// All reports whether every case is tried: CHASKI_SOAK_CASES is set.
func All() bool { return os.Getenv("CHASKI_SOAK_CASES") != "" }

// Checks makes rapid.Check try n cases in a test that is not parallel. `make soak-go` tries 100, as other tests do.
func Checks(t *testing.T, n int) {
	if All() {
		return
	}
	f := flag.Lookup("rapid.checks")
	before := f.Value.String()
	if err := f.Value.Set(strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Value.Set(before); err != nil {
			t.Error(err)
		}
	})
}

// Package race tells tests whether the race detector is on. Under it code allocates more and runs ten to forty times
// slower, so tests that count allocations are skipped, and long ones try fewer cases with -short.
package race

import "testing"

// SkipCovered skips a long test under the race detector, because other tests of its package run the same goroutines, or
// because it runs one at a time. `make soak-go` runs it.
func SkipCovered(t testing.TB) {
	if Enabled && testing.Short() {
		t.Skip("the race detector sees nothing in it that other tests do not show")
	}
}

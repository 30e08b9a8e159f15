package flags

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/chaski-eo/chaski/internal/procs"
)

// TestLimitHeap: commands without a budget have a limit of the heap, which neither a second call nor the default budget
// takes for the memory of the machine.
func TestLimitHeap(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	t.Setenv("GOMEMLIMIT", "")
	t.Setenv(MemoryVariable, "")
	all := procs.Memory()
	for range 2 {
		LimitHeap()
		if got := debug.SetMemoryLimit(-1); got > all/32*25 || got < all/32*25-64 {
			t.Fatalf("a limit of %d of %d", got, all)
		}
		if procs.Memory() != all {
			t.Fatalf("memory of %d, was %d", procs.Memory(), all)
		}
	}
	t.Setenv(MemoryVariable, "104857600")
	LimitHeap()
	if got := debug.SetMemoryLimit(-1); got != 125<<20 {
		t.Errorf("a limit of %d, want 5/4 of $%s", got, MemoryVariable)
	}
}

package procs

import (
	"runtime"
	"testing"
)

// TestSpareIsNoWorker: a spare processor is not a worker, and there is at most one.
func TestSpareIsNoWorker(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	before, workers := runtime.GOMAXPROCS(0), Workers()
	t.Cleanup(func() {
		runtime.GOMAXPROCS(before)
		spare.Store(0)
	})
	if workers != before {
		t.Errorf("%d workers for %d processors", workers, before)
	}
	for range 2 {
		Spare()
		if n := runtime.GOMAXPROCS(0); n != before+1 || Workers() != workers {
			t.Errorf("%d processors and %d workers, before %d and %d", n, Workers(), before, workers)
		}
	}
}

// TestTheEnvironmentDecides: if GOMAXPROCS is set, Spare adds no processor, and Workers returns
// that number.
func TestTheEnvironmentDecides(t *testing.T) {
	t.Setenv("GOMAXPROCS", "5")
	before := runtime.GOMAXPROCS(5)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	if Spare(); runtime.GOMAXPROCS(0) != 5 || Workers() != 5 {
		t.Errorf("%d processors and %d workers", runtime.GOMAXPROCS(0), Workers())
	}
}

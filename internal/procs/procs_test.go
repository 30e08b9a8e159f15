package procs

import (
	"runtime"
	"testing"
)

// A spare processor is no worker, and there is only one of it.
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

// Who has named a number gets that number, for both.
func TestTheEnvironmentDecides(t *testing.T) {
	t.Setenv("GOMAXPROCS", "5")
	before := runtime.GOMAXPROCS(5)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	if Spare(); runtime.GOMAXPROCS(0) != 5 || Workers() != 5 {
		t.Errorf("%d processors and %d workers", runtime.GOMAXPROCS(0), Workers())
	}
}

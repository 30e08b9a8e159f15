package cputime

import (
	"testing"
	"time"
)

// TestUsed: processor time grows with work.
func TestUsed(t *testing.T) {
	start, wall := Used(), time.Now()
	var x uint32
	for Used()-start < 20*time.Millisecond {
		for i := range uint32(1000) {
			x = x*31 + i
		}
		if time.Since(wall) > time.Minute {
			t.Fatal("a minute of work counts for less than 20 ms", x)
		}
	}
}

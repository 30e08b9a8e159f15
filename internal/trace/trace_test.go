package trace

import "testing"

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" // the example of W3C's recommendation

// TestOff promises that without spans nothing is allocated.
func TestOff(t *testing.T) {
	ctx := t.Context()
	n := testing.AllocsPerRun(100, func() {
		_, s := Begin(Below(ctx, parent), "batch")
		s.Set("rows", 1)
		s.End(nil)
	})
	if n != 0 {
		t.Errorf("%g allocations", n)
	}
}

package resources

import "testing"

// TestLargeBytes: chunks of workers have as much as batches, and never more than an eighth of the budget.
func TestLargeBytes(t *testing.T) {
	for _, c := range []struct{ memory, limit, want int64 }{
		{0, 0, 256 << 20},
		{1 << 30, 0, 1 << 30},
		{1 << 30, 700 << 20, 700 << 17},
		{1 << 30, 64 << 30, 1 << 30},
	} {
		if got := largeBytes(c.memory, c.limit); got != c.want {
			t.Errorf("%d bytes of batches, a budget of %d: %d, want %d", c.memory, c.limit, got, c.want)
		}
	}
}

package lru

import "testing"

// TestGrownValue: a value that has grown over the bound is kept no longer, under its old cost neither.
func TestGrownValue(t *testing.T) {
	const bound = 3 * Overhead
	c := New[string, int](bound)
	c.Add("a", 1, 10)
	c.Add("b", 2, 10)
	c.Add("a", 3, bound)
	if v, ok := c.Get("a"); ok {
		t.Errorf("a is %d, want none", v)
	}
	if v, ok := c.Get("b"); !ok || v != 2 || c.Used() != 10+Overhead {
		t.Errorf("b is %d, %t, and %d bytes are used, want 2 and %d", v, ok, c.Used(), 10+Overhead)
	}
}

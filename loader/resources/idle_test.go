package resources

import "testing"

// counted is a buffer that counts how often it is freed.
type counted struct {
	heap
	freed *int
}

func (c counted) Free() { *c.freed++ }

// TestIdle: buffers come back by size, the last one first, are counted, and are freed once.
func TestIdle(t *testing.T) {
	var freed int
	buffer := func(n int) Buffer { return counted{heap(make([]byte, n)), &freed} }
	var idle Idle
	if idle.Take(10) != nil || idle.Bytes() != 0 {
		t.Fatal("an empty one has a buffer")
	}
	first, second, other := buffer(10), buffer(10), buffer(7)
	for _, b := range []Buffer{first, second, other} {
		idle.Keep(b)
	}
	if idle.Bytes() != 27 {
		t.Errorf("%d bytes are kept, not 27", idle.Bytes())
	}
	if b := idle.Take(10); &b.Bytes()[0] != &second.Bytes()[0] {
		t.Error("not the buffer that came back last")
	}
	if idle.Take(8) != nil {
		t.Error("a buffer of another size")
	}
	if idle.Bytes() != 17 {
		t.Errorf("%d bytes are kept, not 17", idle.Bytes())
	}
	idle.Free()
	if freed != 2 || idle.Bytes() != 0 || idle.Take(10) != nil || idle.Take(7) != nil {
		t.Errorf("%d buffers were freed, %d bytes are left", freed, idle.Bytes())
	}
	idle.Free()
	if freed != 2 {
		t.Error("a buffer is freed twice")
	}
}

package batch

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
	if idle.Take(10, nil) != nil || idle.Bytes() != 0 {
		t.Fatal("an empty one has a buffer")
	}
	first, second, other := buffer(10), buffer(10), buffer(7)
	for _, b := range []Buffer{first, second, other} {
		idle.Keep(b)
	}
	if idle.Bytes() != 27 {
		t.Errorf("%d bytes are kept, not 27", idle.Bytes())
	}
	if b := idle.Take(10, nil); &b.Bytes()[0] != &second.Bytes()[0] {
		t.Error("not the buffer that came back last")
	}
	if idle.Take(8, nil) != nil {
		t.Error("a buffer of another size")
	}
	if idle.Bytes() != 17 {
		t.Errorf("%d bytes are kept, not 17", idle.Bytes())
	}
	idle.Free()
	if freed != 2 || idle.Bytes() != 0 || idle.Take(10, nil) != nil || idle.Take(7, nil) != nil {
		t.Errorf("%d buffers were freed, %d bytes are left", freed, idle.Bytes())
	}
	idle.Free()
	if freed != 2 {
		t.Error("a buffer is freed twice")
	}
}

// TestIdleForLong: buffers that a stall left are freed once batches have done without them for long, also those of
// sizes that nothing asks for any more; those in use stay.
func TestIdleForLong(t *testing.T) {
	var freed int
	var idle Idle
	for range 9 {
		idle.Keep(counted{heap(make([]byte, 10)), &freed})
	}
	idle.Keep(counted{heap(make([]byte, 7)), &freed})
	kept := int64(97)
	for range 2 * idleBatches {
		a, b := idle.Take(10, nil), idle.Take(10, nil)
		if a == nil || b == nil {
			t.Fatal("a buffer that batches use is gone")
		}
		kept -= idle.Keep(a) + idle.Keep(b)
	}
	if kept != 20 || idle.Bytes() != kept || idle.Len() != 2 || freed != 8 {
		t.Errorf("%d bytes of %d buffers are kept, %d by count, and %d were freed; want 20 of 2, and 8", idle.Bytes(),
			idle.Len(), kept, freed)
	}
}

type owner struct{ over bool }

func (o *owner) Over() bool { return o.over }

type ownedBuffer struct {
	counted
	owner Owner
}

func (b ownedBuffer) Owner() Owner { return b.owner }

// TestIdleOwners: an owner gets its own buffers before those of nobody, and never those of another one.
func TestIdleOwners(t *testing.T) {
	var freed int
	a, b := &owner{}, &owner{}
	var idle Idle
	for _, o := range []Owner{a, nil, a} {
		idle.Keep(ownedBuffer{counted{heap(make([]byte, 10)), &freed}, o})
	}
	if got := idle.Take(10, b); got == nil || ownerOf(got) != nil {
		t.Errorf("%v, not the buffer without an owner", got)
	}
	if idle.Take(10, b) != nil || idle.Take(10, nil) != nil {
		t.Error("a buffer of another owner")
	}
	got := idle.Take(10, a)
	if got == nil || ownerOf(got) != a || !Reusable(got) {
		t.Errorf("%v, not the owner's own", got)
	}
	if n := idle.Forget(b); n != 0 || freed != 0 {
		t.Errorf("%d bytes of nobody are freed", n)
	}
	if n := idle.Forget(a); n != 10 || freed != 1 || idle.Bytes() != 0 {
		t.Errorf("%d bytes are freed", n)
	}
	if a.over = true; Reusable(got) {
		t.Error("memory of an owner that is gone")
	}
}

package batch

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

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
	if idle.Take(11, nil) != nil || idle.Take(5, nil) != nil {
		t.Error("a buffer that is smaller, or larger by more than a quarter")
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

// slowTake says which of the kept buffers Idle.Take must return: of those that fit, the owner's before nobody's, the
// smaller before the larger, and the one that came last. It sorts all of them.
func slowTake(kept []Buffer, n int, o Owner) int {
	var fit []int
	for k, b := range kept {
		size, holder := len(b.Bytes()), ownerOf(b)
		if size >= n && 4*size <= 5*n && (holder == nil || holder == o) {
			fit = append(fit, k)
		}
	}
	if len(fit) == 0 {
		return -1
	}
	others := func(k int) int {
		if ownerOf(kept[k]) == o {
			return 0
		}
		return 1
	}
	slices.SortFunc(fit, func(x, y int) int {
		return cmp.Or(others(x)-others(y), len(kept[x].Bytes())-len(kept[y].Bytes()), y-x)
	})
	return fit[0]
}

// TestIdleAsASlowModel: any sequence of calls gives the buffers that a sorted list gives, and counts the bytes that
// they have, not those that were asked for.
func TestIdleAsASlowModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	owners := []Owner{nil, &owner{}, &owner{}}
	var freed, made, larger int
	var idle Idle
	var kept, held []Buffer
	for step := range 4000 {
		o := owners[r.IntN(len(owners))]
		switch {
		case len(held) > 0 && r.IntN(2) == 0:
			k := r.IntN(len(held))
			if n := idle.Keep(held[k]); n != 0 {
				t.Fatalf("step %d: %d bytes are freed", step, n)
			}
			kept = append(kept, held[k])
			held = slices.Delete(held, k, k+1)
		case r.IntN(8) == 0:
			want, n := int64(0), int64(r.IntN(100))
			for want < n && len(kept) > 0 {
				want += int64(len(kept[0].Bytes()))
				kept = kept[1:]
			}
			if got := idle.FreeSome(n); got != want {
				t.Fatalf("step %d: %d bytes are freed, not %d", step, got, want)
			}
		default:
			n := 1 + r.IntN(40)
			want, got := slowTake(kept, n, o), idle.Take(n, o)
			switch {
			case (want < 0) != (got == nil):
				t.Fatalf("step %d: %d bytes: buffer %d, got %v", step, n, want, got)
			case want < 0:
				held = append(held, ownedBuffer{counted{heap(make([]byte, n)), &freed}, o})
				made++
				continue
			case &got.Bytes()[0] != &kept[want].Bytes()[0]:
				t.Fatalf("step %d: %d bytes, not of the buffer of %d", step, len(got.Bytes()), len(kept[want].Bytes()))
			case len(got.Bytes()) > n:
				larger++
			}
			kept, held = slices.Delete(kept, want, want+1), append(held, got)
		}
		total := int64(0)
		for _, b := range kept {
			total += int64(len(b.Bytes()))
		}
		if idle.Bytes() != total || idle.Len() != len(kept) || freed+len(kept)+len(held) != made {
			t.Fatalf("step %d: %d bytes of %d buffers, not %d of %d; %d held, %d freed, %d made", step, idle.Bytes(),
				idle.Len(), total, len(kept), len(held), freed, made)
		}
	}
	if larger == 0 || freed == 0 {
		t.Errorf("%d buffers were larger, %d freed: the test tests nothing", larger, freed)
	}
}

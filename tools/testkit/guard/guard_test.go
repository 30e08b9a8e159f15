package guard

import "testing"

// TestTouchingOutsideFaults: reads and writes fault before and behind a room, and not inside.
func TestTouchingOutsideFaults(t *testing.T) {
	Faults(t)
	r := New(t, 100)
	faults := func(p *byte) (yes bool) {
		defer func() { yes = recover() != nil }()
		*p++
		return
	}
	page := (len(r.all) - len(r.data)) / 2
	if !faults(&r.all[page-1]) || !faults(&r.all[page+len(r.data)]) {
		t.Error("a byte outside can be touched")
	}
	for _, back := range []bool{false, true} {
		if p := r.At(back, 7); len(p) != 7 || cap(p) != 7 || faults(&p[0]) || faults(&p[6]) {
			t.Errorf("back %v: %d bytes of %d", back, len(p), cap(p))
		}
	}
	if &r.Front(1)[0] != &r.all[page] || &r.Back(1)[0] != &r.all[page+len(r.data)-1] {
		t.Error("the ends are not at the pages")
	}
}

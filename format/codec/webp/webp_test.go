package webp

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// file returns a container of one part.
func file(id string, part []byte) []byte {
	b := append([]byte("RIFF\x00\x00\x00\x00WEBP"+id), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(b[16:], uint32(len(part)))
	return append(b, part...)
}

// writer writes bits, the lowest first.
type writer struct {
	b []byte
	n int
}

func (w *writer) put(v uint32, n int) {
	for k := range n {
		if w.n%8 == 0 {
			w.b = append(w.b, 0)
		}
		w.b[w.n/8] |= byte(v>>k&1) << (w.n % 8)
		w.n++
	}
}

// one writes a code of one symbol.
func (w *writer) one(symbol uint32) {
	w.put(1, 1)
	w.put(0, 1)
	w.put(1, 1)
	w.put(symbol, 8)
}

// TestGroupsThatDoNotExist: a stream of 4 by 4 pixels whose only block names the group of codes 65,535 takes no memory
// for 65,536 groups. With all of them it is an image.
func TestGroupsThatDoNotExist(t *testing.T) {
	for _, groups := range []int{1, 1 << 16} {
		w := &writer{}
		w.put(0x2f, 8)
		w.put(3|3<<14, 32)
		w.put(0, 2) // no transform, no cache
		w.put(1, 1) // several groups
		w.put(0, 3) // for blocks of 4 by 4
		w.put(0, 1)
		for _, symbol := range []uint32{255, 255, 0, 0, 0} { // green, red, blue, alpha, distance
			w.one(symbol)
		}
		for range groups {
			for _, symbol := range []uint32{7, 8, 9, 10, 0} {
				w.one(symbol)
			}
		}
		dst := make([]byte, 4*4*3)
		var err error
		n := corpus.Allocated(func() { err = Decode(dst, file("VP8L", w.b), 4, 4, 3) })
		if n > 1<<20 && groups == 1 {
			t.Errorf("%d bytes allocated for a file of %d", n, len(w.b))
		}
		if groups == 1 && !errors.Is(err, fault.Corrupt) {
			t.Errorf("%d groups: %v", groups, err)
		}
		if groups > 1 && (err != nil || string(dst[:6]) != "\x08\x07\x09\x08\x07\x09") {
			t.Errorf("%d groups: %v, %v", groups, dst[:6], err)
		}
	}
}

// TestSizesAreChecked: an image that states another size than its tile is refused before memory is taken for it.
func TestSizesAreChecked(t *testing.T) {
	large := make([]byte, 10)
	copy(large[3:], "\x9d\x01\x2a\xff\x3f\xff\x3f")
	for id, part := range map[string][]byte{
		"VP8 ": large, "VP8L": {0x2f, 0xff, 0xff, 0xff, 0x0f}, "VP8X": {0, 0, 0, 0, 0xff, 0xff, 0, 0xff, 0xff, 0},
		"ALPH": {0},
	} {
		var err error
		n := corpus.Allocated(func() { err = Decode(make([]byte, 4*4*4), file(id, part), 4, 4, 4) })
		if n > 1<<16 || !errors.Is(err, fault.Corrupt) {
			t.Errorf("%s: %d bytes, %v", id, n, err)
		}
	}
	if err := Decode(nil, nil, 1<<14, 1<<14, 3); !errors.Is(err, fault.Limit) {
		t.Error(err)
	}
}

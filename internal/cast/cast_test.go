package cast

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
)

// sample holds 33 bytes, the first at an address divisible by 64.
func sample() []byte {
	b := Aligned(33)
	for i := range b {
		b[i] = byte(7*i + 130)
	}
	return b
}

// check compares a view with the little-endian numbers, read one by one.
func check[T Number](t *testing.T, b []byte, size int, read func([]byte) T) {
	t.Helper()
	s, ok := Of[T](b)
	if !ok {
		if _, can := Of[uint8](sample()); can {
			t.Fatalf("%T: no view of %d aligned bytes", *new(T), len(b))
		}
		return // a build or host without views
	}
	if len(s) != len(b)/size {
		t.Fatalf("%T: %d numbers of %d bytes", *new(T), len(s), len(b))
	}
	for i, v := range s {
		if want := read(b[i*size:]); v != want {
			t.Errorf("%T %d: %v, want %v", v, i, v, want)
		}
	}
	if back, ok := Bytes(s); !ok || !slices.Equal(back, b[:len(s)*size]) {
		t.Errorf("%T: Bytes gives %v", *new(T), back)
	}
	if len(s) > 0 { // the same memory, both ways
		old := b[0]
		b[0]++
		if s[0] == read([]byte{old, b[1], b[2], b[3], b[4], b[5], b[6], b[7]}) {
			t.Errorf("%T: a copy", *new(T))
		}
		b[0] = old
	}
}

func TestOfIsLittleEndianAndNotACopy(t *testing.T) {
	le := binary.LittleEndian
	b := sample()
	check(t, b, 1, func(b []byte) uint8 { return b[0] })
	check(t, b, 1, func(b []byte) int8 { return int8(b[0]) })
	check(t, b, 2, le.Uint16)
	check(t, b, 2, func(b []byte) int16 { return int16(le.Uint16(b)) })
	check(t, b, 4, le.Uint32)
	check(t, b, 4, func(b []byte) float32 { return math.Float32frombits(le.Uint32(b)) })
	check(t, b, 8, le.Uint64)
	check(t, b, 8, func(b []byte) int64 { return int64(le.Uint64(b)) })
	check(t, b, 8, func(b []byte) float64 { return math.Float64frombits(le.Uint64(b)) })
}

func TestOfShortAndEmpty(t *testing.T) {
	if _, can := Of[uint8](sample()); !can {
		t.Skip("no views in this build")
	}
	for n := range 8 {
		s, ok := Of[uint64](sample()[:n])
		if !ok || len(s) != 0 {
			t.Errorf("%d bytes: %d numbers, %v", n, len(s), ok)
		}
	}
	if s, ok := Of[uint16](nil); !ok || len(s) != 0 {
		t.Error("nil")
	}
	if b, ok := Bytes[float32](nil); !ok || len(b) != 0 {
		t.Error("no numbers")
	}
}

func TestOfRefusesUnalignedBytes(t *testing.T) {
	b := sample()
	for o := 1; o < 8; o++ {
		if _, ok := Of[uint64](b[o:]); ok {
			t.Errorf("uint64 at offset %d", o)
		}
		if _, ok := Of[uint16](b[o:]); ok && o%2 == 1 {
			t.Errorf("uint16 at offset %d", o)
		}
	}
}

func TestAlignedIsZeroAndHasNoRoomToGrow(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 4096} {
		b := Aligned(n)
		if len(b) != n || slices.ContainsFunc(b, func(v byte) bool { return v != 0 }) {
			t.Fatalf("Aligned(%d) is %v", n, b)
		}
		if _, can := Of[uint8](sample()); can && cap(b) != n {
			t.Errorf("Aligned(%d) has capacity %d", n, cap(b))
		}
	}
}

// TestOffset: Offset recognises parts of a slice, and nothing else.
func TestOffset(t *testing.T) {
	b := make([]byte, 100)
	for _, c := range []struct {
		b, part []byte
		at      int
		in      bool
	}{
		{b, b, 0, true}, {b, b[7:9:9], 7, true}, {b, b[99:], 99, true}, {b[10:20], b[10:20], 0, true},
		{b[10:20], b[10:21], 0, false}, {b[10:20], b[9:10], 0, false}, {b[10:20], b[20:21], 0, false},
		{b, make([]byte, 3), 0, false}, {b, nil, 0, false}, {nil, b, 0, false}, {b, b[5:5], 0, false},
	} {
		if at, in := Offset(c.b, c.part); in != c.in || in && at != c.at {
			t.Errorf("%d bytes in %d: %d %v, want %d %v", len(c.part), len(c.b), at, in, c.at, c.in)
		}
	}
}

// TestValues: Values yields the same numbers for aligned and unaligned bytes, and a view wherever
// Of yields one.
func TestValues(t *testing.T) {
	b := sample()
	for o := range 8 {
		got := Values[float32](b[o:])
		if len(got) != (33-o)/4 {
			t.Fatalf("%d numbers at offset %d", len(got), o)
		}
		for i, v := range got {
			if want := binary.LittleEndian.Uint32(b[o+4*i:]); math.Float32bits(v) != want {
				t.Errorf("offset %d: number %d is %#x, want %#x", o, i, math.Float32bits(v), want)
			}
		}
	}
	type rank int16
	got := Values[rank](b[1:6])
	if !slices.Equal(got, []rank{rank(binary.LittleEndian.Uint16(b[1:])), rank(binary.LittleEndian.Uint16(b[3:]))}) {
		t.Errorf("a named type: %v", got)
	}
	if got := Values[uint64](b[:7]); len(got) != 0 {
		t.Errorf("%d numbers of 7 bytes", len(got))
	}
	if view, ok := Of[uint16](b); ok && &Values[uint16](b)[0] != &view[0] {
		t.Error("a copy of aligned bytes")
	}
}

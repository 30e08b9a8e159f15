package ifd_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

var ctx = context.Background()

// bigTIFF returns a file with one directory at off, zeros before it.
func bigTIFF(off int64, fields ...ifdwrite.Field) []byte {
	b := append(ifdwrite.AppendHeader(nil, off), make([]byte, off-16)...)
	return ifdwrite.AppendDirectory(b, off, fields)
}

func TestRoundTrip(t *testing.T) {
	b := bigTIFF(100, ifdwrite.Shorts(339, 1, 2, 3, 4, 5), ifdwrite.Longs(256, 70000), ifdwrite.Long8s(324, 1<<40,
		7), ifdwrite.Doubles(33550, math.Pi, -1),
		ifdwrite.Text(42113, "nan"), ifdwrite.Text(34737, "longer than eight"), ifdwrite.Field{
			Tag: 400, Type: ifd.Float, Data: []byte{0, 0, 128, 63}, Align: 16,
		})
	m := &corpus.Mem{B: b}
	f, err := ifd.Open(ctx, m, ifd.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if !f.Big || f.BigEndian || len(f.Dirs) != 1 || f.Size() != int64(len(b)) {
		t.Errorf("%+v", f)
	}
	d := &f.Dirs[0]
	if !slices.IsSortedFunc(d.Entries, func(a, b ifd.Entry) int { return int(a.Tag) - int(b.Tag) }) {
		t.Error("entries are not sorted")
	}
	value := func(tag uint16) ifd.Value {
		t.Helper()
		v, err := value(f, d, tag)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := value(339); v.Len() != 5 || v.Uint(4) != 5 || !v.IsInt() {
		t.Errorf("339: %+v", v)
	}
	if v := value(324); v.Len() != 2 || v.Uint(0) != 1<<40 || v.Uint(1) != 7 {
		t.Errorf("324: %+v", v)
	}
	if v := value(33550); !v.IsFloat() || v.Float(0) != math.Pi || v.Float(1) != -1 || v.IsInt() {
		t.Errorf("33550: %+v", v)
	}
	if v := value(400); v.Float(0) != 1 {
		t.Errorf("400: %+v", v)
	}
	if value(42113).Text() != "nan" || value(34737).Text() != "longer than eight" || value(256).Text() != "" {
		t.Error("texts")
	}
	if v := value(1); v.Len() != 0 || v.Type != 0 {
		t.Errorf("a tag that is not there: %+v", v)
	}
	if n, err := number(f, d, 1, 42); n != 42 || err != nil {
		t.Error(n, err)
	}
	if _, err := number(f, d, 42113, 0); !errors.Is(err, fault.Corrupt) {
		t.Errorf("a text as a number: %v", err)
	}
	if m.Reads != 1 {
		t.Errorf("%d reads", m.Reads)
	}
}

// TestFarDirectory: a directory far from the head costs one read, and its values another.
func TestFarDirectory(t *testing.T) {
	const n = 5000
	long := make([]uint64, n)
	b := bigTIFF(1<<20, ifdwrite.Long8s(324, long...), ifdwrite.Long8s(325, long...), ifdwrite.Text(42112,
		string(make([]byte, 9000))))
	m := &corpus.Mem{B: b}
	f, err := ifd.Open(ctx, m, ifd.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	d := &f.Dirs[0]
	if err := f.Prefetch(ctx, d, 324, 325, 42112, 999); err != nil {
		t.Fatal(err)
	}
	for _, tag := range []uint16{324, 325, 42112} {
		if v, err := value(f, d, tag); err != nil || v.Len() < n {
			t.Errorf("%d: %d values, %v", tag, v.Len(), err)
		}
	}
	if m.Reads != 3 || m.Bytes > 64<<10+4<<10+16*n+9100 {
		t.Errorf("%d reads of %d bytes", m.Reads, m.Bytes)
	}
}

func TestLimits(t *testing.T) {
	b := bigTIFF(1<<20, ifdwrite.Long8s(324, make([]uint64, 5000)...))
	f, err := ifd.Open(ctx, &corpus.Mem{B: b}, ifd.Limits{MaxBytes: 10000})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := value(f, &f.Dirs[0], 324); !errors.Is(err, fault.Limit) {
		t.Error(err)
	}
	f, err = ifd.Open(ctx, &corpus.Mem{B: chain(5, false)}, ifd.Limits{MaxIFDs: 4})
	if err != nil || len(f.Dirs) != 4 || !errors.Is(f.ChainErr, fault.Limit) {
		t.Error(err)
	}
	f, err = ifd.Open(ctx, &corpus.Mem{B: chain(5, false)}, ifd.Limits{MaxIFDs: 5})
	if err != nil || len(f.Dirs) != 5 || f.Dirs[4].Index != 4 || f.ChainErr != nil {
		t.Error(err)
	}
	f, err = ifd.Open(ctx, &corpus.Mem{B: chain(5, true)}, ifd.Limits{})
	if err != nil || len(f.Dirs) != 5 || !errors.Is(f.ChainErr, fault.Corrupt) {
		t.Error(err)
	}
}

// chain returns a big-endian classic TIFF with n directories of one tag. Cyclic ones lead back to
// the second.
func chain(n int, cyclic bool) []byte {
	be := binary.BigEndian
	b := []byte{'M', 'M', 0, 42, 0, 0, 0, 8}
	for i := range n {
		b = be.AppendUint16(b, 1)
		b = append(b, 0x01, 0x00, 0, 3, 0, 0, 0, 1, 0, byte(i), 0, 0) // ImageWidth, SHORT, inline
		next := 8 + 18*(i+1)
		if i == n-1 {
			next = 0
			if cyclic {
				next = 8 + 18
			}
		}
		b = be.AppendUint32(b, uint32(next))
	}
	return b
}

// TestChildren: reduced images among the SubIFDs of a full image follow the chain. Faults in them break it.
func TestChildren(t *testing.T) {
	for name, c := range map[string]struct {
		kind   uint32
		subs   []uint64
		dirs   []int64
		faulty fault.Kind
	}{
		"none":              {subs: nil, dirs: []int64{16}},
		"an overview":       {subs: []uint64{500}, dirs: []int64{16, 500}},
		"another image":     {subs: []uint64{600, 500}, dirs: []int64{16, 500}},
		"twice":             {subs: []uint64{500, 500}, dirs: []int64{16, 500}, faulty: fault.Corrupt},
		"itself":            {subs: []uint64{16}, dirs: []int64{16}, faulty: fault.Corrupt},
		"past the end":      {subs: []uint64{500, 1 << 63}, dirs: []int64{16, 500}, faulty: fault.Corrupt},
		"of a thumbnail":    {kind: 1, subs: []uint64{500}, dirs: []int64{16}},
		"more than allowed": {subs: []uint64{500, 700, 800}, dirs: []int64{16, 500, 700}, faulty: fault.Limit},
		"others, too many":  {subs: slices.Repeat([]uint64{600}, 9), dirs: []int64{16}},
	} {
		b := ifdwrite.AppendDirectory(ifdwrite.AppendHeader(nil, 16), 16,
			[]ifdwrite.Field{ifdwrite.Longs(ifd.TagNewSubfileType, c.kind),
				ifdwrite.Long8s(ifd.TagSubIFDs, c.subs...)})
		for _, off := range []int64{500, 600, 700, 800} {
			b = ifdwrite.AppendDirectory(append(b, make([]byte, off-int64(len(b)))...), off,
				[]ifdwrite.Field{ifdwrite.Longs(ifd.TagNewSubfileType, uint32(off%200/100)),
					ifdwrite.Longs(ifd.TagImageWidth, 9)})
		}
		f, err := ifd.Open(ctx, &corpus.Mem{B: b}, ifd.Limits{MaxIFDs: 3})
		if err != nil {
			t.Fatal(err)
		}
		var dirs []int64
		for _, d := range f.Dirs {
			dirs = append(dirs, d.Off)
		}
		if !slices.Equal(dirs, c.dirs) || fault.KindOf(f.ChainErr) != c.faulty || f.Children != len(dirs)-1 {
			t.Errorf("%s: directories at %v, %d children, %v", name, dirs, f.Children, f.ChainErr)
		}
	}
}

func TestClassicBigEndian(t *testing.T) {
	f, err := ifd.Open(ctx, &corpus.Mem{B: chain(3, false)}, ifd.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Dirs {
		if v, err := number(f, &f.Dirs[i], 256, 99); err != nil || v != uint64(i) {
			t.Errorf("directory %d: width %d, %v", i, v, err)
		}
	}
	if f.Big || !f.BigEndian {
		t.Errorf("%+v", f)
	}
}

// TestCut: a file that is cut off anywhere yields an error, and values beyond its end are corrupt.
// Cut behind the entries of the first directory, it has that directory.
func TestCut(t *testing.T) {
	first := chain(2, false)
	for _, c := range []struct {
		b       []byte
		entries int // where those of the first directory end
	}{{first, 8 + 2 + 12}, {bigTIFF(40, ifdwrite.Longs(256, 1), ifdwrite.Long8s(324, 1, 2, 3)), -1}} {
		for n := range c.b {
			f, err := ifd.Open(ctx, &corpus.Mem{B: c.b[:n]}, ifd.Limits{})
			if c.entries > 0 && n >= c.entries {
				pointer := n >= c.entries+4
				if err != nil || len(f.Dirs) != 1 && n < len(c.b)-4 ||
					pointer && n < len(c.b)-4 && !errors.Is(f.ChainErr, fault.Corrupt) ||
					!pointer && f.ChainErr != nil {
					t.Errorf("cut to %d of %d bytes behind the first directory: %v", n, len(c.b), err)
				}
				continue
			}
			if err == nil {
				_, err = value(f, &f.Dirs[0], 324)
			}
			if !errors.Is(err, fault.Corrupt) {
				t.Errorf("cut to %d of %d bytes: %v", n, len(c.b), err)
			}
		}
	}
}

// TestHostileEntries: no type, count or offset of an entry makes Value panic or allocate more than
// the file holds.
func TestHostileEntries(t *testing.T) {
	for typ := range ifd.Type(30) {
		for _, count := range []uint64{0, 1, 9, 1 << 20, 1 << 61, math.MaxUint64} {
			for _, off := range []uint64{0, 60, 100, 1 << 40, 1 << 63, math.MaxUint64} {
				b := bigTIFF(40, ifdwrite.Long8s(324, 1, 2))
				e := b[48:]
				binary.LittleEndian.PutUint16(e[2:], uint16(typ))
				binary.LittleEndian.PutUint64(e[4:], count)
				binary.LittleEndian.PutUint64(e[12:], off)
				m := &corpus.Mem{B: b}
				f, err := ifd.Open(ctx, m, ifd.Limits{})
				if err != nil {
					t.Fatal(err)
				}
				if err := f.Prefetch(ctx, &f.Dirs[0], 324); err != nil {
					t.Errorf("type %d count %d at %d: %v", typ, count, off, err)
				}
				v, err := value(f, &f.Dirs[0], 324)
				if err != nil && !errors.Is(err, fault.Corrupt) {
					t.Errorf("type %d count %d at %d: %v", typ, count, off, err)
				}
				if err == nil && uint64(v.Len()) != count {
					t.Errorf("type %d count %d at %d: %d values", typ, count, off, v.Len())
				}
				if m.Bytes > int64(2*len(b)) {
					t.Errorf("%d bytes read of %d", m.Bytes, len(b))
				}
			}
		}
	}
}

func value(f *ifd.File, d *ifd.Directory, tag uint16) (ifd.Value, error) {
	t := f.Tags(ctx, d)
	v := t.Value(tag)
	return v, t.Err
}

func number(f *ifd.File, d *ifd.Directory, tag uint16, absent uint64) (uint64, error) {
	t := f.Tags(ctx, d)
	n := t.Uint(tag, absent)
	return n, t.Err
}

// TestManyTags: directories may overlap in a file, so that the tags of all of them are bounded.
func TestManyTags(t *testing.T) {
	const entries = 1<<16 - 1 // of 12 bytes
	file := []byte("II*\x00\x08\x00\x00\x00")
	for range 20 {
		file = append(file, 0xff, 0xff)
		file = append(file, bytes.Repeat([]byte{1}, 12*entries)...)
		file = binary.LittleEndian.AppendUint32(file, uint32(len(file)+4))
	}
	f, err := ifd.Open(context.Background(), &corpus.Mem{B: file}, ifd.Limits{})
	if err != nil || fault.KindOf(f.ChainErr) != fault.Limit || len(f.Dirs) != 16 {
		t.Fatalf("%v, %v, %d directories", err, f.ChainErr, len(f.Dirs))
	}
}

package zipdir

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/taken"
)

// zipOf writes a ZIP of stored entries; with zip64, sizes and offsets are in extra fields.
func zipOf(names []string, zip64 bool) (b []byte, at []int64) {
	var dir []byte
	le := binary.LittleEndian
	for _, n := range names {
		local := uint64(len(b))
		head := append(append([]byte(localSignature), make([]byte, 22)...), 0, 0, 0, 0)
		le.PutUint16(head[26:], uint16(len(n)))
		b = append(append(append(b, head...), n...), "content of "+n...)
		size := uint64(len("content of ") + len(n))
		at = append(at, int64(local)+30+int64(len(n)))
		e := append([]byte(Signature), make([]byte, 42)...)
		le.PutUint16(e[28:], uint16(len(n)))
		var extra []byte
		if zip64 {
			le.PutUint32(e[20:], math.MaxUint32)
			le.PutUint32(e[24:], math.MaxUint32)
			le.PutUint32(e[42:], math.MaxUint32)
			extra = append(extra, 9, 9, 1, 0, 7, 1, 0, 24, 0) // another field first
			for _, v := range []uint64{size, size, local} {
				extra = le.AppendUint64(extra, v)
			}
			le.PutUint16(e[30:], uint16(len(extra)))
		} else {
			le.PutUint32(e[20:], uint32(size))
			le.PutUint32(e[24:], uint32(size))
			le.PutUint32(e[42:], uint32(local))
		}
		dir = append(append(append(dir, e...), n...), extra...)
	}
	off := len(b)
	b = append(b, dir...)
	end := append([]byte(EndSignature), make([]byte, 18)...)
	if zip64 {
		rec := append([]byte(End64Signature), make([]byte, 52)...)
		le.PutUint64(rec[32:], uint64(len(names)))
		le.PutUint64(rec[40:], uint64(len(dir)))
		le.PutUint64(rec[48:], uint64(off))
		loc := le.AppendUint64(append([]byte(Locator64Signature), 0, 0, 0, 0), uint64(len(b)))
		b = append(append(append(b, rec...), loc...), 1, 0, 0, 0)
		le.PutUint16(end[10:], math.MaxUint16)
		le.PutUint32(end[12:], math.MaxUint32)
		le.PutUint32(end[16:], math.MaxUint32)
	} else {
		le.PutUint16(end[10:], uint16(len(names)))
		le.PutUint32(end[12:], uint32(len(dir)))
		le.PutUint32(end[16:], uint32(off))
	}
	return append(b, end...), at
}

func every([]byte) bool { return true }

// TestDirectory promises that names lead to their local headers, in ZIP and ZIP64, whatever follows the archive.
func TestDirectory(t *testing.T) {
	names := []string{"DATA/a", "DATA/b/__meta__", "DATA/ñ"}
	for _, zip64 := range []bool{false, true} {
		b, at := zipOf(names, zip64)
		after := int64(strings.Index(string(b), Signature))
		for _, behind := range []int{0, 1000, 2 * MaxTail} {
			r := &corpus.Mem{B: append(slices.Clip(b), strings.Repeat("PAR1", behind/4)...)}
			dir, err := Read(t.Context(), r, after, every)
			if err != nil || len(dir) != len(names) {
				t.Fatalf("zip64 %v, %d bytes behind: %v, %v", zip64, behind, dir, err)
			}
			for i, n := range names {
				s, err := Data(t.Context(), r, n, dir[n])
				if err != nil || s.Off != at[i] || string(r.B[s.Off:s.Off+s.Size]) != "content of "+n {
					t.Errorf("%s: %v, %v, want it at %d", n, s, err, at[i])
				}
			}
		}
		for cut := range b { // never a panic, and no directory out of half a file
			if dir, err := Read(t.Context(), &corpus.Mem{B: b[:cut]}, after, every); err == nil &&
				len(dir) == len(names) && cut < int(after) {
				t.Errorf("cut at %d: %v", cut, dir)
			}
		}
	}
	twice, _ := zipOf([]string{"a", "a"}, false)
	if _, err := Read(t.Context(), &corpus.Mem{B: twice}, 0, every); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("two entries of a name: %v", err)
	}
}

// TestLocalHeader: found behind extra fields too, and only under the whole name.
func TestLocalHeader(t *testing.T) {
	for _, extra := range []int{0, 20, maxExtra, maxExtra + 1} {
		b, _ := zipOf([]string{"DATA/a/x"}, false)
		binary.LittleEndian.PutUint16(b[28:], uint16(extra))
		b = append(b[:38:38], append(make([]byte, extra), b[38:]...)...)
		r := &corpus.Mem{B: append([]byte("in front"), b...)}
		s := Span{int64(8 + 38 + extra), 5}
		if _, err := LocalHeader(t.Context(), r, "DATA/a/x", s); (err == nil) != (extra <= maxExtra) {
			t.Errorf("%d bytes: %v", extra, err)
		}
		for _, name := range []string{"ATA/a/x", "DATA/a/", "DATA/a/y", "DATA/a/xx"} {
			if _, err := LocalHeader(t.Context(), r, name, s); fault.KindOf(err) != fault.Corrupt {
				t.Errorf("%d bytes, %s: %v", extra, name, err)
			}
		}
	}
	for off := range int64(50) {
		if _, err := LocalHeader(t.Context(), &corpus.Mem{B: make([]byte, 50)}, "DATA/a/x",
			Span{off, 0}); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("at %d: %v", off, err)
		}
	}
}

// TestTaken: a directory of many entries takes memory by its length.
func TestTaken(t *testing.T) {
	for _, name := range []string{"", "a", strings.Repeat("b/", 100)} {
		names := make([]string, 20_000)
		for i := range names {
			names[i] = name + strconv.Itoa(i)[:min(len(name), 1)]
		}
		for _, zip64 := range []bool{false, true} {
			b, _ := zipOf(names, zip64)
			taken.Check(t, len(b), taken.Factor, func() { _, _ = Read(t.Context(), &corpus.Mem{B: b}, 0, every) })
		}
	}
}

func FuzzDirectory(f *testing.F) {
	for _, zip64 := range []bool{false, true} {
		b, _ := zipOf([]string{"DATA/a", "DATA/b/__meta__"}, zip64)
		f.Add(b, int64(0))
	}
	archives, err := filepath.Glob(filepath.Join(corpus.Testdata(f), "containers", "*", "*.tacozip"))
	if err != nil || len(archives) == 0 {
		f.Fatal("no archives: ", err)
	}
	for _, path := range archives {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[max(0, len(b)-4000):], int64(0))
	}
	f.Fuzz(func(t *testing.T, b []byte, after int64) {
		var dir map[string]Entry
		var err error
		taken.Check(t, len(b), taken.Factor, func() { dir, err = Read(t.Context(), &corpus.Mem{B: b}, after, every) })
		if err != nil && fault.KindOf(err) == 0 {
			t.Fatal(err)
		}
		if len(dir) > len(b)/46 {
			t.Fatalf("%d entries in %d bytes", len(dir), len(b))
		}
	})
}

// TestSumsEnd promises that the sum of many bytes stops when its caller has given up.
func TestSumsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := &counted{Mem: corpus.Mem{B: make([]byte, 8<<20)}, read: func(n int) {
		if n == 2 {
			cancel()
		}
	}}
	if err := CheckSum(ctx, r, "x", Span{0, 8 << 20}, 1); !errors.Is(err, context.Canceled) || r.n != 2 {
		t.Errorf("after %d reads: %v", r.n, err)
	}
}

// TestSparse: a directory whose size is stated, and whose bytes a sparse file does not have, takes little memory.
func TestSparse(t *testing.T) {
	end := append([]byte(EndSignature), make([]byte, 18)...)
	const size = 1 << 30
	binary.LittleEndian.PutUint16(end[8:], 60_000)
	binary.LittleEndian.PutUint16(end[10:], 60_000)
	binary.LittleEndian.PutUint32(end[12:], size) // from offset 0
	var err error
	n := corpus.Allocated(func() {
		err = Each(t.Context(), sparse{size, end}, 0, func([]byte, func() (Entry, error)) error { return nil })
	})
	if fault.KindOf(err) != fault.Corrupt || n > 8<<20 {
		t.Errorf("%d bytes allocated, %v", n, err)
	}
}

// sparse is a file of size zeros and an end.
type sparse struct {
	size int64
	end  []byte
}

func (s sparse) Size() int64 { return s.size + int64(len(s.end)) }

func (s sparse) ReadAt(_ context.Context, p []byte, off int64) error {
	clear(p)
	if from := s.size - off; from < int64(len(p)) {
		copy(p[max(from, 0):], s.end[max(-from, 0):])
	}
	return nil
}

// TestPieces: entries that lie across the pieces of a directory are found once, in order, however long they are.
func TestPieces(t *testing.T) {
	r, n := rand.New(rand.NewPCG(1, 1)), 3000
	var b []byte
	var names []string
	for i := range n {
		name := fmt.Sprintf("%d/%s", i, strings.Repeat("x", r.IntN(8000)))
		e := append([]byte(Signature), make([]byte, 42)...)
		binary.LittleEndian.PutUint16(e[28:], uint16(len(name)))
		comment := r.IntN(100)
		binary.LittleEndian.PutUint16(e[32:], uint16(comment))
		b, names = append(append(append(b, e...), name...), make([]byte, comment)...), append(names, name)
	}
	size := len(b)
	end := append([]byte(EndSignature), make([]byte, 18)...)
	binary.LittleEndian.PutUint16(end[8:], uint16(n))
	binary.LittleEndian.PutUint16(end[10:], uint16(n))
	binary.LittleEndian.PutUint32(end[12:], uint32(size))
	b = append(b, end...)
	var got []string
	err := Each(t.Context(), &corpus.Mem{B: b}, 0, func(name []byte, _ func() (Entry, error)) error {
		got = append(got, string(name))
		return nil
	})
	if err != nil || !slices.Equal(got, names) || size < 2*pieceBytes {
		t.Errorf("%d of %d names in %d bytes: %v", len(got), n, size, err)
	}
}

// counted counts how often it was read.
type counted struct {
	corpus.Mem
	n    int
	read func(n int)
}

func (c *counted) ReadAt(ctx context.Context, p []byte, off int64) error {
	c.n++
	c.read(c.n)
	return c.Mem.ReadAt(context.Background(), p, off)
}

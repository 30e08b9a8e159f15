package ahead

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
)

// disk is a file whose byte i is i, and notes what is read of it.
type disk struct {
	reads []string
	err   error
}

func (d *disk) read(at chunk.Range, memory []byte) ([]byte, error) {
	d.reads = append(d.reads, fmt.Sprintf("%d+%d", at.Off, at.Len))
	memory = slices.Grow(memory[:0], int(at.Len))[:at.Len]
	for i := range memory {
		memory[i] = byte(int(at.Off) + i)
	}
	return memory, d.err
}

func check(t *testing.T, d *disk, f *File, off, n int64, reads ...string) {
	t.Helper()
	d.reads = nil
	b, err := f.Read(chunk.Range{Off: off, Len: n}, d.read)
	if err != nil || int64(len(b)) != n || n > 0 && b[0] != byte(off) || !slices.Equal(d.reads, reads) {
		t.Errorf("%d+%d: %v after the reads %q, not %q, %v", off, n, b, d.reads, reads, err)
	}
}

// TestRuns: expected ranges that lie close are one read, of at most the limit; others are read alone.
func TestRuns(t *testing.T) {
	var d disk
	ranges := Ranges{MaxHeld: 40}
	f := ranges.File("a")
	for _, off := range []int64{0, 10, 22, 60, 70, 80} {
		f.Expect(chunk.Range{Off: off, Len: 10}, 2, 24)
	}
	check(t, &d, f, 10, 10, "0+20") // with the third they would have 32 bytes
	check(t, &d, f, 0, 10)
	check(t, &d, f, 22, 10, "22+10")
	check(t, &d, f, 40, 5, "40+5") // not expected, and not held
	check(t, &d, f, 40, 5, "40+5")
	check(t, &d, f, 60, 10, "60+20") // in place of the oldest
	check(t, &d, f, 22, 10)
	check(t, &d, f, 0, 10, "0+20")
	if held := ranges.Held(); held > 40 {
		t.Errorf("%d bytes are held", held)
	}
	ranges.Forget()
	if check(t, &d, ranges.File("a"), 10, 10, "10+10"); ranges.Held() != 0 {
		t.Errorf("%d bytes are held of what was forgotten", ranges.Held())
	}
}

// TestInOrder: only the last run of each file is held, and a run that is longer than all may be is held alone.
func TestInOrder(t *testing.T) {
	var d disk
	ranges := Ranges{MaxHeld: 40, InOrder: true}
	a, b := ranges.File("a"), ranges.File("b")
	for _, f := range []*File{a, b} {
		for _, off := range []int64{0, 20} {
			f.Expect(chunk.Range{Off: off, Len: 10}, 0, 10)
		}
	}
	check(t, &d, a, 0, 10, "0+10")
	check(t, &d, b, 0, 10, "0+10")
	check(t, &d, a, 20, 10, "20+10")
	check(t, &d, b, 0, 10)
	check(t, &d, a, 0, 10, "0+10")
	large := ranges.File("c")
	large.Expect(chunk.Range{Len: 100}, 0, 10)
	if check(t, &d, large, 50, 10, "0+100"); ranges.Held() != 100 {
		t.Errorf("%d bytes are held beside a run of 100", ranges.Held()-100)
	}
	check(t, &d, b, 0, 10, "0+10")
}

// TestFailedReads: a run that could not be read is read again, and a dry run counts bytes without having them.
func TestFailedReads(t *testing.T) {
	d := disk{err: errors.New("gone")}
	ranges := Ranges{MaxHeld: 40}
	f := ranges.File("a")
	f.Expect(chunk.Range{Len: 10}, 0, 10)
	if _, err := f.Read(chunk.Range{Len: 10}, d.read); !errors.Is(err, d.err) || ranges.Held() != 0 {
		t.Errorf("%v, %d bytes are held", err, ranges.Held())
	}
	d.err = nil
	check(t, &d, f, 0, 10, "0+10")
	ranges.Forget()
	f = ranges.File("a")
	f.Expect(chunk.Range{Len: 10}, 0, 10)
	for range 2 {
		b, err := f.Read(chunk.Range{Len: 10}, func(chunk.Range, []byte) ([]byte, error) { return nil, nil })
		if b != nil || err != nil || ranges.Held() != 10 {
			t.Errorf("a dry run: %v, %v, %d bytes", b, err, ranges.Held())
		}
	}
}

// TestExpectMore promises that ranges may be expected after others were read: what is held stays as it is.
func TestExpectMore(t *testing.T) {
	var d disk
	ranges := Ranges{MaxHeld: 40, InOrder: true}
	f := ranges.File("a")
	f.Expect(chunk.Range{Off: 0, Len: 10}, 5, 40)
	check(t, &d, f, 0, 5, "0+10")
	for off := int64(10); off < 90; off += 10 {
		f.Expect(chunk.Range{Off: off, Len: 10}, 0, 20)
	}
	check(t, &d, f, 5, 5)
	check(t, &d, f, 10, 10, "10+20")
	check(t, &d, f, 20, 10)
	check(t, &d, f, 80, 10, "70+20")
	if held := ranges.Held(); held != 20 {
		t.Errorf("%d bytes are held, not 20", held)
	}
}

package meter_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/meter"
)

// file has bytes in front, and is a hole behind.
type file []byte

func (f file) ReadAt(_ context.Context, p []byte, off int64) error {
	clear(p)
	if off < int64(len(f)) {
		copy(p, f[off:])
	}
	return nil
}

const mebi = 1 << 20

// TestRead: a range is read whatever its size, as long as its bytes are there; what it holds of holes is bounded.
func TestRead(t *testing.T) {
	data := bytes.Repeat([]byte{1}, 40*mebi)
	for _, c := range []struct {
		name    string
		f       file
		n       int64
		refused bool
	}{
		{"nothing", nil, 0, false},
		{"a byte", data[:1], 1, false},
		{"bytes", data, 40 * mebi, false},
		{"a few zeros", nil, 8 * mebi, false},
		{"a hole", nil, 64 * mebi, true},
		{"a hole of a tebibyte", nil, 1 << 40, true},
		{"bytes, then zeros", data[:8*mebi], 64 * mebi, false},
		{"a byte, then a hole", data[:1], 64 * mebi, true},
		{"zeros between bytes", append(make([]byte, 6*mebi), data...), 46 * mebi, false},
	} {
		got, err := meter.New().Read(t.Context(), c.f, "part", 0, c.n)
		if errors.Is(err, fault.Limit) != c.refused || err != nil && !c.refused {
			t.Errorf("%s: %v", c.name, err)
		}
		want := make([]byte, min(c.n, 64*mebi))
		copy(want, c.f)
		if err == nil && !bytes.Equal(got, want) {
			t.Errorf("%s: %d other bytes", c.name, len(got))
		}
	}
}

// TestFound: bytes that were read again, and holes, allow no more work and no more memory.
func TestFound(t *testing.T) {
	data, hole := bytes.Repeat([]byte{1}, mebi), make([]byte, mebi)
	count := func(found ...[]byte) (work, memory int) {
		m := meter.New()
		for i, b := range found {
			m.Found(int64(i%2)*mebi, b) // the third one stands where the first did
		}
		for ; m.Work("part", 0, mebi) == nil; work++ {
		}
		for ; m.Memory("part", 0, mebi) == nil; memory++ {
		}
		return work, memory
	}
	work, memory := count()
	dueWork, dueMemory := count(data)
	dueWork, dueMemory = dueWork-work, dueMemory-memory
	for name, c := range map[string]struct {
		found  [][]byte
		halves int // of data
	}{
		"bytes": {[][]byte{data}, 2}, "twice as many": {[][]byte{data, data}, 4}, "half": {[][]byte{data[:mebi/2]}, 1},
		"again": {[][]byte{data, data, data}, 4}, "a hole": {[][]byte{hole}, 0},
	} {
		moreWork, moreMemory := count(c.found...)
		if moreWork-work != c.halves*dueWork/2 || moreMemory-memory != c.halves*dueMemory/2 {
			t.Errorf("%s: %d of work and %d of memory, without it %d and %d", name, moreWork, moreMemory, work, memory)
		}
	}
	if dueWork <= 0 || dueMemory <= 0 {
		t.Errorf("bytes allow %d of work and %d of memory", dueWork, dueMemory)
	}
}

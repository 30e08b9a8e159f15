// Package ahead reads byte ranges of files for readers of arrays. Ranges that are expected are read together with their
// neighbours, and the bytes are held until they are asked for.
package ahead

import (
	"slices"
	"sort"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/runs"
)

// Limits of the bytes that one read fetches. Another read of a local file costs less than bytes that fall out of the
// processor's cache.
const (
	MaxRun      = 4 << 20   // of a remote object
	MaxLocalRun = 256 << 10 // of a local file
)

// Ranges holds the bytes of runs of ranges, over all files of one worker.
type Ranges struct {
	MaxHeld int64 // bytes that are held at a time; a longer run is held alone
	InOrder bool  // each file is read from its beginning to its end, so only its last run is held

	files map[string]*File
	runs  []*readRun // that are held, the oldest first
	bytes int64
	free  [][]byte // memory of runs that are held no longer
}

// File is a file whose ranges are read.
type File struct {
	all  *Ranges
	runs []*readRun // by offset
	last *readRun   // that was read
}

// readRun is a range of a file that is read at once.
type readRun struct {
	at       chunk.Range
	inMemory bool
	buf      []byte // nil in a dry run
}

// Forget forgets what was expected, and all bytes. It keeps their memory for reuse.
func (a *Ranges) Forget() {
	for len(a.runs) > 0 {
		a.release(a.runs[0])
	}
	clear(a.files)
}

// Held returns how many bytes are held.
func (a *Ranges) Held() int64 { return a.bytes }

// File returns the file with a name.
func (a *Ranges) File(name string) *File {
	if a.files == nil {
		a.files = map[string]*File{}
	}
	file := a.files[name]
	if file == nil {
		file = &File{all: a}
		a.files[name] = file
	}
	return file
}

// Known reports whether ranges of the file are expected.
func (f *File) Known() bool { return len(f.runs) > 0 }

// Expect says that a range of the file will be read, behind those that are expected already. If it lies at most gap
// bytes behind the last of them, and both together have at most limit bytes, one read fetches both.
func (f *File) Expect(at chunk.Range, gap, limit int64) {
	// A run whose bytes are held must not grow, because they would end before it.
	if count := len(f.runs); count > 0 && !f.runs[count-1].inMemory {
		join := runs.Join{Span: f.runs[count-1].at, MaxGap: gap, MaxLen: limit}
		if join.Take(at) {
			f.runs[count-1].at = join.Span
			return
		}
	}
	f.runs = append(f.runs, &readRun{at: at})
}

// Read returns the bytes of a range, which are valid until the next call. If they are not held, it calls read for the
// run that has them, or else for the range alone, with memory that read may use. In a dry run, read returns nil.
func (f *File) Read(at chunk.Range, read func(at chunk.Range, memory []byte) ([]byte, error)) ([]byte, error) {
	ranges := f.all
	i := sort.Search(len(f.runs), func(i int) bool { return f.runs[i].at.Off > at.Off }) - 1
	if i < 0 || at.Off+at.Len > f.runs[i].at.Off+f.runs[i].at.Len {
		buf, err := read(at, ranges.memory())
		// The bytes are valid until the next call only, so it may have their memory.
		ranges.free = append(ranges.free, buf)
		return buf, err
	}
	run := f.runs[i]
	if !run.inMemory {
		if ranges.InOrder && f.last != nil {
			ranges.release(f.last)
		}
		for len(ranges.runs) > 0 && ranges.bytes+run.at.Len > ranges.MaxHeld {
			ranges.release(ranges.runs[0])
		}
		buf, err := read(run.at, ranges.memory())
		if err != nil {
			return nil, err
		}
		run.buf, run.inMemory, f.last = buf, true, run
		ranges.runs, ranges.bytes = append(ranges.runs, run), ranges.bytes+run.at.Len
	}
	if run.buf == nil {
		return nil, nil
	}
	start := at.Off - run.at.Off
	return run.buf[start : start+at.Len], nil
}

// release drops the bytes of a run.
func (a *Ranges) release(r *readRun) {
	if !r.inMemory {
		return
	}
	a.runs = slices.DeleteFunc(a.runs, func(other *readRun) bool { return other == r })
	a.bytes -= r.at.Len
	// The memory of a longer run, which was held alone, is not kept, so a reader stays within its bound.
	if int64(cap(r.buf)) <= a.MaxHeld {
		a.free = append(a.free, r.buf)
	}
	r.inMemory, r.buf = false, nil
}

// memory returns memory for bytes, or nil.
func (a *Ranges) memory() (b []byte) {
	// The memory that became free last is taken, because it is most likely of the right size.
	if n := len(a.free) - 1; n >= 0 {
		b, a.free = a.free[n], a.free[:n]
	}
	return b
}

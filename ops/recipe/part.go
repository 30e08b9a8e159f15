package recipe

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"runtime/debug"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// The chips of a recipe can be made in parts, which are runs of its windows: on several machines, or one after the
// other by a run that can be interrupted. WritePart makes the chips of some windows, and Merge writes the container
// that Make writes of all.
//
// A part is a gob for each window. Ids, columns and tables are made by Merge: an id depends on those before it.

// Extent is what all parts of a container have to agree about.
type Extent struct {
	Windows int64
	Source  string // a hash of the ids and sizes of the source
	Version string // of the program: another one may write other bytes
}

// Part is a part that was written.
type Part struct {
	First, Count int64 // its windows
	Body         *io.SectionReader
}

// Extent returns what the parts of the container have to agree about.
func (m *Maker) Extent() Extent {
	h := sha256.New()
	fmt.Fprintf(h, "1\n%s\n%s", m.engine.Hash(), m.engine.Fingerprint())
	return Extent{m.engine.Len(), hex.EncodeToString(h.Sum(nil)), version()}
}

// version returns the version of the program and the commit that it is of.
func version() string {
	buildInfo, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	v := buildInfo.Main.Version
	for _, s := range buildInfo.Settings {
		if s.Key == "vcs.revision" || s.Key == "vcs.modified" {
			v += " " + s.Value
		}
	}
	return v
}

const (
	// partBytes bounds the pixels of a part of a run that can be interrupted, as that repeats at most one of them:
	// 1 GiB are read and encoded in less than a minute.
	partBytes = 1 << 30
	// partWindows bounds the windows of a part, which have a cost of their own if they are small.
	partWindows = 4096
)

// Parts returns how many parts a run that can be interrupted has. It does not depend on the number of workers.
func (m *Maker) Parts() int {
	each := max(1, min(partWindows, partBytes/max(1, m.engine.BatchBytes())))
	return int((m.engine.Len() + each - 1) / each)
}

// WritePart makes the chips of count windows from first on. They do not depend on the number of workers. Options.Output
// does not apply.
func (m *Maker) WritePart(ctx context.Context, w io.Writer, first, count int64) error {
	if first < 0 || count < 1 || count > m.engine.Len()-first {
		return fmt.Errorf("windows %d to %d, of %d", first, first+count, m.engine.Len())
	}
	buffered := bufio.NewWriterSize(w, 1<<20)
	out, told := gob.NewEncoder(buffered), false
	err := m.windows(ctx, first, first+count, func(i int64, c *chip) error {
		// Only the first of a part, because a result tells one reason.
		if c.why != nil && !told {
			c.Why, told = fault.Line(c.why), true
		}
		m.progress(i+1-first, count)
		return out.Encode(c)
	})
	if err != nil {
		return err
	}
	return buffered.Flush()
}

// Merge writes one container from parts that together have all windows, in order, and that have the Extent of m. The
// bytes are those that Make writes. Errors in the content of a part are faults with a kind.
func (m *Maker) Merge(ctx context.Context, path string, parts iter.Seq2[*Part, error]) (*Result, error) {
	if err := m.Writable(ctx, path); err != nil {
		return nil, err
	}
	windows := m.engine.Len()
	samples := func(ctx context.Context, put func(*build.Sample) error) (*Result, error) {
		res := &Result{Windows: windows}
		next := int64(0)
		for part, err := range parts {
			if err != nil {
				return nil, err
			}
			if part.First != next || part.Count < 1 || part.Count > windows-next {
				return nil, damaged("it has the windows %d to %d, of %d, after %d", part.First, part.First+part.Count,
					windows, next)
			}
			if err := m.join(ctx, part, put, res); err != nil {
				return nil, err
			}
			next += part.Count
			m.progress(next, windows)
		}
		if next != windows {
			return nil, damaged("the parts have %d windows of %d", next, windows)
		}
		return res, m.finish(res)
	}
	var res *Result
	// A part is what this program wrote, which its checksum tells. Another one, as of a changed table with the same ids
	// and sizes, must not end the program.
	err := crash.Call(func() (err error) {
		res, err = m.write(ctx, path, samples)
		return err
	})
	if crash.Is(err) {
		err = damaged("it does not fit the recipe: %v", err)
	}
	return res, err
}

// join takes the chips of a part.
func (m *Maker) join(ctx context.Context, p *Part, put func(*build.Sample) error, res *Result) error {
	decoder := gob.NewDecoder(bufio.NewReaderSize(p.Body, 1<<20))
	for i := range p.Count {
		if err := ctx.Err(); err != nil {
			return err
		}
		c := &chip{}
		if err := read(decoder, c); err != nil {
			return fmt.Errorf("window %d: %w", p.First+i, err)
		}
		if c.Why != "" {
			c.why = errors.New(c.Why)
		}
		if err := m.take(c, put, res); err != nil {
			return err
		}
	}
	if err := read(decoder, new(chip)); !errors.Is(err, io.EOF) {
		return damaged("something follows its end")
	}
	return nil
}

// damaged is the error about a part that WritePart does not write.
func damaged(format string, args ...any) error {
	return fault.New(fault.Corrupt, "part", fault.NoOffset, format, args...)
}

// read reads the next value of a part. The library must not end a program on what somebody wrote.
func read(in *gob.Decoder, value any) error {
	err := crash.Call(func() error { return in.Decode(value) })
	var system *fs.PathError
	if err == nil || errors.As(err, &system) {
		return err
	}
	return fault.Wrap(fault.Corrupt, "part", fault.NoOffset, err)
}

package recipe

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/stats"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// The chips of a recipe can be made in parts, which are runs of its windows, on several machines. Survey says how many
// windows there are, WritePart makes the chips of some of them, and Merge writes the container that Make writes of all.
//
// A part is a line of JSON for each window, followed by the bytes of its files, and at the end a line with the
// statistics. Ids, columns and tables are made by Merge: an id depends on those before it. The journal of a run that
// can go on has the same lines, without the bytes of files.

// Extent is what all parts of a container have to agree about.
type Extent struct {
	Windows int64  `json:"windows"`
	Source  string `json:"source"`  // a hash of the ids and sizes of the source
	Version string `json:"version"` // of the program: another one may write other bytes
}

// Part is a part that was written.
type Part struct {
	First, Count int64 // its windows
	Body         *io.SectionReader
}

// Survey opens the source of a recipe, and reads no pixels.
func Survey(ctx context.Context, r *Recipe, o Options) (e Extent, err error) {
	maker, done, err := opened(ctx, r, o)
	if err != nil {
		return e, err
	}
	defer done()
	return maker.extent(), nil
}

func (m *maker) extent() Extent {
	h := sha256.New()
	fmt.Fprintf(h, "1\n%s\n%s", m.engine.Hash(), m.engine.Fingerprint())
	return Extent{m.engine.Len(), hex.EncodeToString(h.Sum(nil)), version()}
}

// check refuses another source or program than the extent names.
func (m *maker) check(e *Extent) error {
	switch have := m.extent(); {
	case have.Version != e.Version:
		return fault.New(fault.Unsupported, "parts", fault.NoOffset,
			"they are of chaski %q, and this is %q: its chips may have other bytes", e.Version, have.Version)
	case have != *e:
		return fault.WithFile(fault.New(fault.Corrupt, "dataset", fault.NoOffset,
			"it changed since the parts were planned: it has other samples, or %d windows and had %d", have.Windows,
			e.Windows), m.recipe.Source)
	}
	return nil
}

// WritePart makes the chips of count windows from first on. The same part has the same bytes, for any number of
// workers. Options.Form and Options.Resume do not apply.
func WritePart(ctx context.Context, w io.Writer, r *Recipe, e Extent, first, count int64, o Options) error {
	maker, done, err := opened(ctx, r, o)
	if err != nil {
		return err
	}
	defer done()
	if err := maker.check(&e); err != nil {
		return err
	}
	if first < 0 || count < 1 || count > e.Windows-first {
		return fmt.Errorf("windows %d to %d, of %d", first, first+count, e.Windows)
	}
	maker.apart = true
	out := bufio.NewWriterSize(w, 1<<20)
	told := false
	err = maker.windows(ctx, first, first+count, func(i int64, c *chip) error {
		line := c.record()
		if c.why != nil && !told {
			line.Why, told = []byte(fault.Line(c.why)), true
		}
		if err := json.NewEncoder(out).Encode(line); err != nil {
			return err
		}
		for k := range c.files {
			if _, err := out.Write(c.files[k].bytes); err != nil {
				return err
			}
		}
		if maker.options.Progress != nil {
			maker.options.Progress(i+1-first, count)
		}
		return nil
	})
	if err != nil {
		return err
	}
	end, err := maker.end()
	if err != nil {
		return err
	}
	// Merge would refuse it only after all other parts were made: one with too many bands, for example.
	if _, err := stats.ParseStates(end.Statistics); err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(end); err != nil {
		return err
	}
	return out.Flush()
}

// Merge writes one container from parts that together have all windows, in order. The bytes are those that Make writes.
// Errors in the content of a part are faults with a kind. Options.Resume and Options.Shard do not apply.
func Merge(ctx context.Context, r *Recipe, path string, e Extent, parts iter.Seq2[*Part, error], o Options) (*Result,
	error) {
	o.Resume = false
	return write(ctx, r, path, o, func(ctx context.Context, m *maker, _ *work,
		put func(*build.Sample) error) (*Result, error) {
		if err := m.check(&e); err != nil {
			return nil, err
		}
		res := &Result{Windows: e.Windows}
		next := int64(0)
		for p, err := range parts {
			if err != nil {
				return nil, err
			}
			if p.First != next || p.Count < 1 || p.Count > e.Windows-next {
				return nil, damaged("it has the windows %d to %d, of %d, after %d", p.First, p.First+p.Count, e.Windows,
					next)
			}
			if err := m.join(ctx, p, put, res); err != nil {
				return nil, err
			}
			if next += p.Count; o.Progress != nil {
				o.Progress(next, e.Windows)
			}
		}
		if next != e.Windows {
			return nil, damaged("the parts have %d windows of %d", next, e.Windows)
		}
		return res, m.finish(res)
	})
}

// join takes the chips of a part.
func (m *maker) join(ctx context.Context, p *Part, put func(*build.Sample) error, res *Result) error {
	before := m.table.len()
	states, err := eachChip(p, m.recipe, func(c *chip) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if m.data != nil && c.row >= int64(m.data.Len()) {
			return damaged("row %d of %d", c.row, m.data.Len())
		}
		return m.take(c, put, res)
	})
	if err != nil {
		return err
	}
	if want := *m.recipe.Statistics && m.seen == nil && m.table.len() > before; want != (len(states) > 0) {
		return damaged("statistics of %d fields for %d chips", len(states), m.table.len()-before)
	}
	return m.addStates(states)
}

// end returns the statistics of all chips so far. No worker runs meanwhile.
func (m *maker) end() (*partEnd, error) {
	end := &partEnd{Statistics: [][]byte{}}
	total, err := m.merged()
	for _, f := range total {
		end.Statistics = append(end.Statistics, f.AppendState(nil))
	}
	return end, err
}

// addStates adds the statistics of a part or of an interrupted run.
func (m *maker) addStates(states [][]byte) error {
	switch n := len(states); n {
	case 0:
		return nil
	case len(m.recipe.Fields):
	default:
		return damaged("statistics of %d fields, of %d", n, len(m.recipe.Fields))
	}
	fields, err := stats.ParseStates(states)
	if err != nil {
		return err
	}
	t := <-m.tallies
	defer func() { m.tallies <- t }()
	if err := t.merge(fields); err != nil {
		return damaged("statistics: %v", err)
	}
	return nil
}

// record is what is kept of a window, in a part and in the journal. Strings are bytes, because JSON strings must be
// UTF-8; floats are their bits, because JSON has no NaN.
type record struct {
	Left   int        `json:"left,omitempty"`
	Why    []byte     `json:"why,omitempty"` // of the first window without a chip that has a reason
	Source []byte     `json:"source,omitempty"`
	Row    int64      `json:"row,omitempty"`
	Split  []byte     `json:"split,omitempty"`
	LonLat [2]uint64  `json:"lonlat"`
	Files  []partFile `json:"files,omitempty"`
	// Hash and Measured are of recipes that leave out duplicates, Measured as in partEnd, which then has none.
	Hash     uint64   `json:"hash,omitempty"`
	Measured [][]byte `json:"measured,omitempty"`
}

// partFile is facts. Its bytes follow the line.
type partFile struct {
	Window    [4]int64   `json:"window"`
	Shape     [3]int     `json:"shape"`
	EPSG      int        `json:"epsg,omitempty"`
	Placed    bool       `json:"placed,omitempty"`
	Transform [6]uint64  `json:"transform"`
	Bands     [][]byte   `json:"bands"`
	Stats     [][]uint64 `json:"stats"`
	Size      int64      `json:"size"`
	CRC       uint32     `json:"crc"`
	Index     []byte     `json:"index"`
	Names     []byte     `json:"names,omitempty"`
	Moved     int64      `json:"moved,omitempty"`
}

// partEnd is the last line of a part.
type partEnd struct {
	Statistics [][]byte `json:"statistics"` // stats.Field.AppendState of each field; empty without chips
}

// maxLine bounds a line of a part, in bytes: the largest has the statistics, which have the size of the largest
// state (stats.ParseStates) in base64.
const maxLine = 4 << 30 / 3

func (c *chip) record() *record {
	l := &record{Left: c.left, Source: []byte(c.source), Row: c.row, Split: []byte(c.split)}
	copy(l.LonLat[:], bitsOf(c.lonlat[:]))
	for i := range c.files {
		file := &c.files[i]
		p := partFile{Window: file.Window, Shape: file.Shape, EPSG: file.EPSG, Placed: file.Placed, Size: file.Size,
			CRC:   file.CRC,
			Index: file.Index, Names: []byte(file.Names), Moved: file.Moved}
		copy(p.Transform[:], bitsOf(file.Transform[:]))
		for _, name := range file.Bands {
			p.Bands = append(p.Bands, []byte(name))
		}
		for _, band := range file.Stats {
			p.Stats = append(p.Stats, bitsOf(band))
		}
		l.Files = append(l.Files, p)
	}
	if c.judged != nil {
		l.Hash = c.hash
		for _, f := range c.measured {
			l.Measured = append(l.Measured, f.AppendState(nil))
		}
	}
	return l
}

// chip returns the chip of a line, whose files have no bytes yet.
func (l *record) chip(r *Recipe) (*chip, error) {
	c := &chip{left: l.Left, source: string(l.Source), row: l.Row, split: string(l.Split)}
	if len(l.Why) > 0 {
		c.why = errors.New(string(l.Why))
	}
	copy(c.lonlat[:], floats(l.LonLat[:]))
	for i := range l.Files {
		partFile := &l.Files[i]
		f := file{facts: facts{Window: partFile.Window, Size: partFile.Size, CRC: partFile.CRC, Index: partFile.Index,
			Names: string(partFile.Names),
			Moved: partFile.Moved}}
		f.Shape, f.EPSG, f.Placed = partFile.Shape, partFile.EPSG, partFile.Placed
		copy(f.Transform[:], floats(partFile.Transform[:]))
		for _, name := range partFile.Bands {
			f.Bands = append(f.Bands, string(name))
		}
		for _, band := range partFile.Stats {
			f.Stats = append(f.Stats, floats(band))
		}
		c.files = append(c.files, f)
	}
	if r.Quality.Duplicates == nil || c.left != kept {
		return c, nil
	}
	c.judged = &judged{hash: l.Hash}
	if len(l.Measured) == 0 {
		return c, nil
	}
	var err error
	c.measured, err = stats.ParseStates(l.Measured)
	return c, err
}

func bitsOf(values []float64) []uint64 {
	out := make([]uint64, len(values))
	for i, v := range values {
		out[i] = math.Float64bits(v)
	}
	return out
}

func floats(bits []uint64) []float64 {
	out := make([]float64, len(bits))
	for i, b := range bits {
		out[i] = math.Float64frombits(b)
	}
	return out
}

// damaged is the error about a part that WritePart does not write.
func damaged(format string, args ...any) error {
	return fault.New(fault.Corrupt, "part", fault.NoOffset, format, args...)
}

// eachChip calls each for every window of a part, and returns the states of the fields' statistics. Its chips fit into
// the tables of a container: see table.
func eachChip(p *Part, r *Recipe, each func(*chip) error) ([][]byte, error) {
	in := &partReader{size: p.Body.Size(), lines: bufio.NewReaderSize(p.Body, 1<<20)}
	for i := range p.Count {
		var l record
		if err := in.line(&l); err != nil {
			return nil, err
		}
		if err := l.check(r); err != nil {
			return nil, fmt.Errorf("window %d: %w", p.First+i, err)
		}
		chip, err := l.chip(r)
		if err != nil {
			return nil, fmt.Errorf("window %d: %w", p.First+i, err)
		}
		for k := range chip.files {
			if err := in.file(&chip.files[k]); err != nil {
				return nil, err
			}
		}
		if err := each(chip); err != nil {
			return nil, err
		}
	}
	var end partEnd
	if err := in.line(&end); err != nil {
		return nil, err
	}
	if in.at != in.size {
		return nil, damaged("%d bytes follow its end at %d", in.size-in.at, in.at)
	}
	return end.Statistics, nil
}

// summaryValues is how many values geotiff:stats has of a band.
const summaryValues = 9

// check returns an error for a record that no chip of the recipe has.
func (l *record) check(r *Recipe) error {
	if l.Left < kept || l.Left > unlabelled || l.Row < 0 || l.Row > math.MaxInt32 {
		return damaged("reason %d, row %d", l.Left, l.Row)
	}
	want := len(r.Fields)
	if l.Left != kept {
		want = 0
	}
	if len(l.Files) != want {
		return damaged("%d files, of %d fields", len(l.Files), want)
	}
	measured := 0
	if r.Quality.Duplicates != nil && *r.Statistics {
		measured = want
	}
	if len(l.Measured) != measured {
		return damaged("statistics of %d fields of a chip, not %d", len(l.Measured), measured)
	}
	if s := r.Split; l.Left == kept && s != nil {
		if _, is := s.Shares[string(l.Split)]; !is {
			return damaged("it is of the part %q of the split", l.Split)
		}
	}
	for k := range l.Files {
		partFile := &l.Files[k]
		for _, n := range partFile.Shape {
			if n < 1 || n > math.MaxInt32 {
				return damaged("shape %d", partFile.Shape)
			}
		}
		if partFile.Size < 1 || partFile.Stats != nil && len(partFile.Stats) != partFile.Shape[0] ||
			partFile.Bands != nil && len(partFile.Bands) != partFile.Shape[0] || (len(partFile.Index) > 0) != *r.Index {
			return damaged("a file of %d bytes with %d statistics and %d names of %d bands", partFile.Size,
				len(partFile.Stats),
				len(partFile.Bands), partFile.Shape[0])
		}
		for _, band := range partFile.Stats {
			if len(band) != summaryValues {
				return damaged("statistics of %d values", len(band))
			}
		}
	}
	return nil
}

// partReader reads a part, whose sizes it does not trust.
type partReader struct {
	lines    *bufio.Reader
	at, size int64
}

// line parses the next line.
func (r *partReader) line(v any) error {
	var b []byte
	for {
		piece, err := r.lines.ReadSlice('\n')
		r.at += int64(len(piece))
		if len(b)+len(piece) > maxLine {
			return fault.New(fault.Limit, "part", r.at, "a line of over %d bytes", maxLine)
		}
		b = append(b, piece...)
		switch {
		case err == nil:
			if err := json.Unmarshal(b, v); err != nil {
				return fault.Wrap(fault.Corrupt, "part", r.at-int64(len(b)), err)
			}
			return nil
		case errors.Is(err, io.EOF):
			return fault.New(fault.Corrupt, "part", r.at, "it ends within a line")
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

// file reads the bytes of a file.
func (r *partReader) file(f *file) error {
	if f.Size > r.size-r.at {
		return fault.New(fault.Corrupt, "part", r.at, "a file of %d bytes, and %d are left", f.Size, r.size-r.at)
	}
	var b bytes.Buffer
	b.Grow(int(f.Size)) // the file has that many bytes
	n, err := io.CopyN(&b, r.lines, f.Size)
	r.at += n
	if err != nil {
		return err
	}
	if f.bytes = b.Bytes(); crc32.ChecksumIEEE(f.bytes) != f.CRC {
		return fault.New(fault.Corrupt, "part", r.at-n, "the CRC-32 of a file is not that which its line has")
	}
	return nil
}

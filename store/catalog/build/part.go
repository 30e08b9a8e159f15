package build

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"sync/atomic"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/rowio"
)

// A catalog can be made in parts, on several machines. Each lists the files, WritePart reads some of them, and Merge
// writes the catalog that Write writes of all. A part is a catalog of its files, without the columns of a table: of a
// catalog of pairs, it has a row for each file of a sample.

// Listing is the list of the rows of a catalog, before their files are read.
type Listing struct {
	o        Options
	paths    []string
	files    []namedFile
	pairs    *paired       // nil unless it is of pairs
	opened   *source.Files // the default opener, or nil
	previous []*previous
	join     *joined
	known    map[string]rowio.Row // reusable rows of the files of the current block
	reused   atomic.Int64
}

// List lists what Write writes. It opens the tables that Write opens. Close the list after use.
func List(ctx context.Context, paths []string, o Options) (_ *Listing, err error) {
	o.Counts = cmp.Or(o.Counts, &Counts{})
	*o.Counts = Counts{}
	l := &Listing{o: o, paths: paths}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	if o.Opener == nil {
		l.opened = &source.Files{}
		l.o.Opener = l.opened
	}
	if len(o.Fields) > 0 {
		if l.pairs, err = openPaired(ctx, paths, l.o); err == nil {
			l.files = l.pairs.files[0]
		}
	} else {
		l.files, err = expand(ctx, paths, l.o)
	}
	if err != nil {
		return nil, err
	}
	if len(l.files) == 0 {
		return nil, noRasters(paths)
	}
	l.o.Workers = l.o.workers(l.files)
	return l, l.open(ctx)
}

// Close closes what List has opened.
func (l *Listing) Close() (err error) {
	for _, p := range l.previous {
		err = errors.Join(err, p.close())
	}
	if l.join != nil {
		err = errors.Join(err, l.join.tab.Close())
	}
	if l.opened != nil {
		err = errors.Join(err, l.opened.Close())
	}
	return errors.Join(err, l.pairs.close())
}

// Len returns the number of files or, of a catalog of pairs, samples.
func (l *Listing) Len() int { return len(l.files) }

// fields returns the files of each sample by field: one field, unless it is a catalog of pairs.
func (l *Listing) fields() [][]namedFile {
	if l.pairs != nil {
		return l.pairs.files
	}
	return [][]namedFile{l.files}
}

// Hash returns a hash of the names of all files, with the sizes and tags that listing them told.
func (l *Listing) Hash() string {
	sum := sha256.New()
	lines := json.NewEncoder(sum)
	for _, files := range l.fields() {
		for i := range files {
			file := &files[i]
			line := []any{[]byte(file.uri), file.bytes, file.size, file.etag}
			if file.member != nil {
				line = append(line, file.member.Offset, file.member.Length)
			}
			_ = lines.Encode(line) // a hash takes all bytes, and such values always marshal
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// write writes the catalog. It reads the files, or takes their rows from parts if that is not nil.
func (l *Listing) write(ctx context.Context, w io.Writer, parts *merging) (n int, err error) {
	src := rowio.Source{Begin: l.begin, Make: l.row}
	switch {
	case l.pairs != nil:
		l.pairs.rowOf = l.file
		src.Begin, src.Make, src.Columns = l.pairs.begin, l.pairs.make, &l.pairs.columns
	case l.join != nil:
		src.Columns = l.join.more()
	}
	if parts != nil {
		if l.pairs != nil {
			l.pairs.rowOf = parts.row
		} else {
			src.Make = func(ctx context.Context, i int) (rowio.Row, error) { return parts.row(ctx, i, 0) }
		}
		begin := src.Begin
		src.Begin = func(first, n int) error { return errors.Join(begin(first, n), parts.begin(ctx, first, n)) }
	}
	ro := rowio.RowOptions{Workers: l.o.Workers, Partial: l.o.Partial, Progress: l.o.Progress}
	if l.o.Skipped != nil {
		ro.Skipped = func(i int, err error) {
			l.o.Counts.Skipped++
			l.o.Skipped(l.files[i].path, err)
		}
	}
	n, err = rowio.Write(ctx, w, len(l.files), ro, src)
	l.o.Counts.Rows, l.o.Counts.Reused = n, int(l.reused.Load())
	if n == 0 && err == nil {
		err = noRasters(l.paths)
	}
	return n, err
}

// file reads a file of sample i.
func (l *Listing) file(ctx context.Context, i, field int) (rowio.Row, error) {
	return rowOf(ctx, &l.fields()[field][i], l.o)
}

// Part is the rows of some samples of a listing, or files if it is not of pairs.
type Part struct {
	First, Count int // its samples
	// Skipped are the files without a row, in order: each is the number of a sample in the part times the number of
	// fields, plus the number of its field.
	Skipped []SkippedFile
	Body    *io.SectionReader // what WritePart wrote
}

// SkippedFile says why a file of a part has no row.
type SkippedFile struct {
	File  int    `json:"file"`
	Error string `json:"error"`
}

// WritePart writes the rows of count samples from first on to w. It returns the files that Options.Skipped leaves out.
func (l *Listing) WritePart(ctx context.Context, w io.Writer, first, count int) (skipped []SkippedFile, err error) {
	fields := len(l.fields())
	src := rowio.Source{Make: func(ctx context.Context, i int) (rowio.Row, error) {
		return l.file(ctx, first+i/fields, i%fields)
	}}
	if l.pairs == nil {
		src.Begin = func(i, n int) error { return l.begin(first+i, n) }
		src.Make = func(ctx context.Context, i int) (rowio.Row, error) { return l.row(ctx, first+i) }
	}
	ro := rowio.RowOptions{Workers: l.o.Workers, Progress: l.o.Progress}
	if l.o.Skipped != nil {
		ro.Skipped = func(i int, err error) { skipped = append(skipped, SkippedFile{i, fault.Line(err)}) }
	}
	_, err = rowio.Write(ctx, w, count*fields, ro, src)
	return skipped, err
}

// Merge writes the catalog that Write writes, of parts that together have all samples in order. A part that WritePart
// did not write of this listing is fault.Corrupt or fault.Unsupported.
func (l *Listing) Merge(ctx context.Context, w io.Writer, parts iter.Seq2[*Part, error]) (n int, err error) {
	next, stop := iter.Pull2(parts)
	defer stop()
	m := &merging{list: l, next: next}
	defer func() { err = errors.Join(err, m.close()) }()
	return l.write(ctx, w, m)
}

// merging takes the rows of files from parts.
type merging struct {
	list  *Listing
	next  func() (*Part, error, bool)
	part  *Part
	rows  *rowReader // of the part; nil if it has none
	at    int        // the next file of the part
	first int        // the first sample of the block
	block [][]made   // by field, then by sample of the block
}

// made is the row of a file, or why it has none.
type made struct {
	row rowio.Row
	err error
}

func (m *merging) row(_ context.Context, i, field int) (rowio.Row, error) {
	made := &m.block[field][i-m.first]
	return made.row, made.err
}

// begin takes the rows of a block of samples.
func (m *merging) begin(ctx context.Context, first, n int) error {
	fields := m.list.fields()
	m.first, m.block = first, make([][]made, len(fields))
	for k := range fields {
		m.block[k] = make([]made, n)
	}
	for i := range n {
		for k := range fields {
			if err := ctx.Err(); err != nil {
				return err
			}
			if m.part == nil || m.at == m.part.Count*len(fields) {
				if err := m.turn(ctx, first+i); err != nil {
					return err
				}
			}
			if err := m.take(&m.block[k][i], &fields[k][first+i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// turn opens the next part, which begins at a sample.
func (m *merging) turn(ctx context.Context, sample int) error {
	if err := m.close(); err != nil {
		return err
	}
	part, err, more := m.next()
	switch {
	case err != nil:
		return err
	case !more || part.First != sample || part.Count < 1:
		return damaged("the parts lack sample %d", sample)
	}
	m.part, m.at = part, 0
	want := part.Count*len(m.list.fields()) - len(part.Skipped)
	if want <= 0 {
		return nil
	}
	if _, err := checkCatalog(ctx, sectionReader{part.Body}); err != nil {
		return err
	}
	m.rows, err = openRows(part.Body, part.Body.Size())
	if err == nil && m.rows.r.NumRows() != int64(want) {
		err = damaged("%d rows, not %d", m.rows.r.NumRows(), want)
	}
	return err
}

// take takes the row of the next file.
func (m *merging) take(to *made, file *namedFile) error {
	at := m.at
	m.at++
	if skipped := m.part.Skipped; len(skipped) > 0 && skipped[0].File == at {
		to.err, m.part.Skipped = saidError(skipped[0].Error), skipped[1:]
		return nil
	}
	if m.rows == nil {
		return damaged("it has no rows")
	}
	if len(m.rows.next) == 0 && !m.rows.end {
		if err := m.rows.read(); err != nil {
			return err
		}
	}
	if len(m.rows.next) == 0 || m.rows.next[0].URI != file.uri {
		return damaged("it has no row of %q", file.uri)
	}
	to.row, m.rows.next = m.rows.next[0], m.rows.next[1:]
	return nil
}

// close closes the part.
func (m *merging) close() (err error) {
	if m.rows != nil {
		err = m.rows.r.Close()
	}
	m.rows = nil
	return err
}

func damaged(format string, args ...any) error {
	return fault.New(fault.Corrupt, "part", fault.NoOffset, format, args...)
}

// saidError is the text of an error that a shard has met. Its kind is in the text, so that it has any here.
type saidError string

func (e saidError) Error() string { return string(e) }

// Unwrap makes it an error about a file, which may be skipped.
func (e saidError) Unwrap() error { return fault.Corrupt }

// sectionReader is a source.Reader of a section.
type sectionReader struct{ *io.SectionReader }

// ReadAt implements source.Reader.
func (s sectionReader) ReadAt(_ context.Context, p []byte, off int64) error {
	if off < 0 || off > s.Size() || int64(len(p)) > s.Size()-off {
		return fault.New(fault.Corrupt, "byte range", off, "%d bytes reach past the %d of the part", len(p), s.Size())
	}
	_, err := s.SectionReader.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

// Close implements source.Reader.
func (s sectionReader) Close() error { return nil }

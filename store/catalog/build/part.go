package build

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/rowio"
)

// A catalog can be made in parts, on several machines. Each lists the files, WritePart reads some of them, and Merge
// writes the catalog that Write writes of all. A part is a catalog of its files, without the columns of a table: of a
// catalog of pairs, it has a row for each file of a sample.

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
	fields := len(l.files)
	src := rowio.Source{
		Begin: func(i, n int) error { return l.begin(ctx, first+i, n) }, // of earlier catalogs, which pairs do not have
		Make: func(ctx context.Context, i int) (rowio.Row, error) {
			return l.row(ctx, first+i/fields, i%fields)
		},
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
	return l.write(ctx, w, &merging{list: l, next: next})
}

// merging takes the rows of files from parts.
type merging struct {
	list  *Listing
	next  func() (*Part, error, bool)
	part  *Part
	rows  *rowReader // of the part; nil if it has none
	at    int        // the next file of the part
	first int        // the first sample of the block
	block []builtRow // of the files of the block, sample by sample
}

// builtRow is the row of a file, or why it has none.
type builtRow struct {
	row rowio.Row
	err error
}

func (m *merging) row(_ context.Context, i, field int) (rowio.Row, error) {
	made := &m.block[(i-m.first)*len(m.list.files)+field]
	return made.row, made.err
}

// begin takes the rows of a block of samples.
func (m *merging) begin(ctx context.Context, first, n int) error {
	fields := len(m.list.files)
	m.first, m.block = first, make([]builtRow, n*fields)
	for k := range m.block {
		sample := first + k/fields
		if m.part == nil || m.at == m.part.Count*fields {
			if err := m.turn(ctx, sample); err != nil {
				return err
			}
		}
		if err := m.take(ctx, &m.block[k], m.list.files[k%fields][sample].uri); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// turn opens the next part, which begins at a sample.
func (m *merging) turn(ctx context.Context, sample int) error {
	part, err, more := m.next()
	switch {
	case err != nil:
		return err
	case !more || part.First != sample || part.Count < 1:
		return damaged("the parts lack sample %d", sample)
	}
	m.part, m.rows, m.at = part, nil, 0
	want := part.Count*len(m.list.files) - len(part.Skipped)
	if want <= 0 {
		return nil
	}
	m.rows, err = openRows(ctx, part.Body)
	if err == nil && m.rows.Rows() != int64(want) {
		err = damaged("%d rows, not %d", m.rows.Rows(), want)
	}
	return err
}

// take takes the row of the next file.
func (m *merging) take(ctx context.Context, to *builtRow, uri string) error {
	at := m.at
	m.at++
	if skipped := m.part.Skipped; len(skipped) > 0 && skipped[0].File == at {
		to.err, m.part.Skipped = saidError(skipped[0].Error), skipped[1:]
		return nil
	}
	if m.rows == nil {
		return damaged("it has no rows")
	}
	row, err := m.rows.Peek(ctx)
	if err == nil && (row == nil || row.URI != uri) {
		err = damaged("it has no row of %q", uri)
	}
	if err != nil {
		return err
	}
	to.row = *row
	m.rows.Skip()
	return nil
}

func damaged(format string, args ...any) error {
	return fault.New(fault.Corrupt, "part", format, args...)
}

// saidError is the text of an error that a shard has met. Its kind is in the text, so it has any here.
type saidError string

func (e saidError) Error() string { return string(e) }

// Unwrap makes it an error about a file, which may be skipped.
func (e saidError) Unwrap() error { return fault.Corrupt }

// sectionReader is a source.Reader of a section.
type sectionReader struct{ *io.SectionReader }

// ReadAt implements source.Reader.
func (s sectionReader) ReadAt(_ context.Context, p []byte, off int64) error {
	if !source.Fits(off, int64(len(p)), s.Size()) {
		return fault.At(fault.Corrupt, "byte range", off, "%d bytes reach past the %d of the file", len(p), s.Size())
	}
	_, err := s.SectionReader.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

// Close implements source.Reader.
func (s sectionReader) Close() error { return nil }

// Package tortilla reads Tortilla containers, version 0.5.0 of their specification, and TACO containers
// of version 0.2.0, streaming ones too.
//
// Both begin with a header of 200 bytes with the place of the footer: a Parquet table with a row for each sample. The
// bytes of a sample in a Tortilla may be a Tortilla again, whose offsets are counted from its own start. A streaming
// TACO has the rows of all levels, and of the chunks of its rasters, in a chain of tables in the footer, each with the
// place of the next. Its offsets are counted from the start of the file.
//
// Where real files differ from the specifications, real files are read: offsets and lengths of any integer type,
// columns without values of type null, tables with an index column, and TACO headers with the magic number of Tortilla.
package tortilla

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// file is an open container of either kind.
type file struct {
	container *model.Container
	header    Header
	requests  source.Reader // its file, with bytes read ahead served from memory
}

// size is the size of the file.
func (f *file) size() int64 { return f.container.Object.Size }

// Open opens a container. It reads the footer, the collection of a TACO, and the first nested sample of each level.
// These are mostly one request, because they are at the end of the file.
func Open(ctx context.Context, c *model.Container) (err error) {
	c.IDColumn = ColID
	f := &file{container: c}
	if f.header, err = ParseHeader(c.From.Head, f.size()); err != nil {
		return err
	}
	c.Partitions = int(min(f.header.Partitions, model.MaxRows))
	f.requests = c.From.File
	// A longer tail is read piece by piece, because a hostile footer offset could otherwise make one read fetch the
	// whole file.
	if footer := f.header.Footer.Off; f.size()-footer <= maxTail {
		if f.requests, err = model.ReadTail(ctx, c.From.File, footer); err != nil {
			return fault.WithPart(err, "footer", 0)
		}
	}
	if f.header.TACO {
		c.Document, err = model.ReadDocument(ctx, f.requests, f.header.Collection, "COLLECTION")
		if err != nil {
			return err
		}
	}
	top, err := readRows(ctx, f.requests, f.header.Footer, "footer")
	if err != nil {
		return err
	}
	if pointer, ok := top.tbl.Meta(pointerKey); ok {
		return openStream(ctx, f, top, pointer)
	}
	return openPlain(ctx, f, top)
}

// entry returns the sample in a row of a table, whose bytes are at place(row). part names the table in errors.
func (f *file) entry(t *sampleTable, row int, place func(row int) (span, error), part string) (store.Entry, error) {
	entry, err := t.entry(row)
	var s span
	if err == nil {
		s, err = place(row)
	}
	entry.URI, entry.Object, entry.Offset, entry.Size = f.container.URI, f.container.Object, s.Off, s.Size
	return entry, f.fail(fault.WithPart(err, part, fault.NoOffset))
}

// fail adds the file to an error.
func (f *file) fail(err error) error { return fault.WithFile(err, f.container.URI) }

// maxTail limits the bytes that are read ahead at the end of a file.
const maxTail = 4 << 20

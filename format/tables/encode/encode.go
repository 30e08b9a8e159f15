// Package encode writes tables as Parquet (https://parquet.apache.org/docs/file-format/), with the columns in their
// order and of the types that package tables reads back. Pages are compressed with zstd.
//
// A column has the type that it has in its file, also where only the Arrow schema of the file says it. Integers of 128
// bits, which queries make, are decimals of 38 digits. Times that 64 bits of nanoseconds do not hold are in
// microseconds.
//
// Packages that only read tables do not import it, because the Parquet library of the writer is large.
package encode

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
)

// Sizes of pages and row groups.
const (
	// groupRows and groupBytes bound a row group, which the writer holds in memory: 131,072 rows, or fewer if
	// their strings and bytes take more than 64 MiB.
	groupRows  = 1 << 17
	groupBytes = 64 << 20
	// blockRows is how many rows of a column are handed to the writer at a time: 1,024 values of 24 bytes
	// stay in the first-level cache.
	blockRows = 1024
)

// version numbers the rules by which this package writes, so readers of a file can tell what wrote it.
const version = "1"

// Writer writes tables of one schema, each as a Parquet object of its own. It is safe for concurrent use.
type Writer struct {
	cols   []tables.Column
	shapes []leafTree
	leaves int // of all shapes
	config *parquet.WriterConfig
	// content says that pages end where their values say: see group.
	content bool
}

// codec serves all writers, because it keeps encoders: one has 1.6 MB, however small a table is.
var codec zstd.Codec

// NewWriter returns a writer of tables with these columns. meta, which may be nil, is the key-value metadata of each.
func NewWriter(cols []tables.Column, meta map[string]string) (_ *Writer, err error) {
	defer Recovered("table", &err)
	options := []parquet.WriterOption{
		parquet.NewSchema("schema", groupOf(cols)), parquet.Compression(&codec),
		parquet.CreatedBy("chaski", version, ""),
	}
	if slices.ContainsFunc(cols, hasForm) {
		options = append(options, parquet.KeyValueMetadata(tables.ArrowKey, encodedSchema(cols, meta)))
	}
	for key, value := range meta {
		options = append(options, parquet.KeyValueMetadata(key, value))
	}
	config, err := parquet.NewWriterConfig(options...)
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	writer := &Writer{cols: cols, config: config}
	for _, c := range cols {
		writer.shapes = append(writer.shapes, writer.shapeOf(c.Name, c.Type))
	}
	return writer, nil
}

// Recovered makes an error about a part of a panic of the Parquet library, which must not end a server. It is deferred.
func Recovered(part string, err *error) {
	if p := recover(); p != nil {
		*err = fault.New(fault.Unsupported, part, "the Parquet writer failed: %v", p)
	}
}

// Write writes a table, which must have the columns given to NewWriter. An error leaves the writer usable.
func (w *Writer) Write(ctx context.Context, out io.Writer, t *tables.Table) (err error) {
	defer Recovered("table", &err)
	if !slices.EqualFunc(w.cols, t.Columns(), func(a, b tables.Column) bool {
		return a.Name == b.Name && a.Type.Equal(b.Type)
	}) {
		return fault.New(fault.Unsupported, "table", "has the columns %s, the writer has %s",
			tables.Names(t.Columns()), tables.Names(w.cols))
	}
	cols := make([]*tables.Vector, len(w.cols))
	for i := range cols {
		if cols[i], err = t.At(ctx, i); err != nil {
			return err
		}
		if err := checkForm(w.cols[i].Type, cols[i]); err != nil {
			return fault.WithPart(err, "column "+w.cols[i].Name, fault.NoOffset)
		}
	}
	// A new writer, not Reset: Reset of parquet-go 0.32.0 leaves the paths of the columns in the next footer empty.
	file := parquet.NewGenericWriter[any](out, w.config)
	shreds := &shredder{leaves: make([][]parquet.Value, w.leaves)}
	for lo := 0; lo < t.Len(); {
		if err := ctx.Err(); err != nil {
			return err
		}
		hi := w.groupEnd(cols, lo, t.Len())
		if err := w.group(ctx, file, shreds, cols, lo, hi); err != nil {
			return err
		}
		if shreds.broken != "" {
			return fault.New(fault.Unsupported, "column "+shreds.broken, "has a null, and its type has none")
		}
		lo = hi
	}
	return wrapped(file.Close())
}

// Table writes a table as one Parquet object.
func Table(ctx context.Context, out io.Writer, t *tables.Table) error {
	writer, err := NewWriter(Fitted(ctx, t), nil)
	if err != nil {
		return err
	}
	return writer.Write(ctx, out, t)
}

// ByContent is Table with pages that end where their values say, so a small change of the table leaves the bytes
// of most pages as they are.
func ByContent(ctx context.Context, out io.Writer, t *tables.Table) error {
	writer, err := NewWriter(Fitted(ctx, t), nil)
	if err != nil {
		return err
	}
	writer.content = true
	return writer.Write(ctx, out, t)
}

// groupEnd returns the end of the row group that begins at row lo of n.
func (w *Writer) groupEnd(cols []*tables.Vector, lo, n int) int {
	hi := min(n, lo+groupRows)
	for _, values := range cols {
		if values.Kind() != tables.String && values.Kind() != tables.Binary {
			continue
		}
		size := 0
		for i := lo; i < hi; i++ {
			if size += len(values.Bytes(i)); size > groupBytes && i > lo {
				hi = i
			}
		}
	}
	return hi
}

func wrapped(err error) error {
	if err != nil && fault.KindOf(err) == 0 {
		return fmt.Errorf("parquet: %w", err)
	}
	return err
}

// Package rowio reads and writes the rows of a catalog.
package rowio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/encode"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
)

// Row is one row of a catalog. Blob columns are not compressed, because chunk indexes are packed already. Pages are
// small, so reading one row at random is cheap.
type Row struct {
	URI         string    `parquet:"uri,plain,zstd"`
	Index       []byte    `parquet:"chaski:index,optional,plain,uncompressed"`
	Header      []byte    `parquet:"rumi:header,optional,plain,uncompressed"`
	Bands       int32     `parquet:"bands,plain,zstd"`
	Height      int32     `parquet:"height,plain,zstd"`
	Width       int32     `parquet:"width,plain,zstd"`
	DType       string    `parquet:"dtype,dict,zstd"`
	NoData      *float64  `parquet:"nodata,optional,plain,zstd"`
	NoDataExact *string   `parquet:"nodata_exact,optional,plain,zstd"`
	EPSG        *int32    `parquet:"epsg,optional,plain,zstd"`
	CRS         *string   `parquet:"chaski:crs,optional,plain,zstd"`
	Names       *string   `parquet:"chaski:bands,optional,dict,zstd"`
	Beside      *string   `parquet:"chaski:beside,optional,dict,zstd"`
	Transform   []float64 `parquet:"transform,list,zstd"`
	MinX        *float64  `parquet:"minx,optional,plain,zstd"`
	MinY        *float64  `parquet:"miny,optional,plain,zstd"`
	MaxX        *float64  `parquet:"maxx,optional,plain,zstd"`
	MaxY        *float64  `parquet:"maxy,optional,plain,zstd"`
	Size        int64     `parquet:"size,plain,zstd"`
	MTime       *string   `parquet:"mtime,optional,plain,zstd"`
	ETag        *string   `parquet:"etag,optional,plain,zstd"`
	Offset      *int64    `parquet:"chaski:offset,optional,plain,zstd"`
	Length      *int64    `parquet:"chaski:length,optional,plain,zstd"`
}

// Page and row group sizes of a catalog.
const (
	// pageBytes is small, because a reader of one row reads and decompresses a page of each column.
	pageBytes = 16 << 10
	// groupBytes and maxGroupRows bound a row group, which the writer holds in memory.
	groupBytes   = 64 << 20
	maxGroupRows = 1 << 17
)

// Bytes returns about how many bytes the row takes in the file: 160 for the numbers, and its strings and blobs.
func (r *Row) Bytes() int { return 160 + len(r.URI) + len(r.Index) + len(r.Header) }

// Source makes the rows of a catalog.
type Source struct {
	Begin   func(first, n int) error // called before each block of rows; may be nil
	Make    func(ctx context.Context, i int) (Row, error)
	Columns *Columns // more columns, or nil
}

// RowOptions say how rows are made and written.
type RowOptions struct {
	Workers  int                   // how many rows are made in parallel
	Partial  bool                  // on an error, finish the file with the rows before it
	Progress func(done, total int) // may be nil
	// called for each row left out because its file is faulty; nil: such a row is an error
	Skipped func(i int, err error)
	// by the name of a column of URIs
	Folders map[string]Folder
}

// Folder says what the URIs of a column share: the path up to and including the last "/". Repeats says that some of
// them are equal.
type Folder struct {
	Path    string
	Repeats bool
}

// Columns are columns behind the columns of Row. Each has one leaf.
type Columns struct {
	Fields []parquet.Field
	// Append appends the values of row number i, and returns how many bytes they take.
	Append func(row parquet.Row, i int) (out parquet.Row, size int, err error)
	Meta   []parquet.WriterOption // the footer's metadata about the columns
}

// schema is the schema of the columns of Row.
var schema = parquet.SchemaOf(Row{})

// Fields returns the columns of Row. Each has one leaf.
func Fields() []parquet.Field { return schema.Fields() }

// Append appends the values of the row, whose columns have the numbers from first on.
func (r *Row) Append(row parquet.Row, first int) parquet.Row {
	start := len(row)
	row = schema.Deconstruct(row, r)
	for i, v := range row[start:] {
		row[start+i] = v.Level(v.RepetitionLevel(), v.DefinitionLevel(), first+v.Column())
	}
	return row
}

// Write makes n rows in parallel, a block at a time, and writes them in order.
func Write(ctx context.Context, w io.Writer, n int, o RowOptions, src Source) (rows int, err error) {
	defer encode.Recovered("catalog", &err)
	c := newCatalogWriter(w, src.Columns, o.Folders)
	err = c.all(ctx, n, o, src)
	if err != nil && !o.Partial || c.rows == 0 {
		return c.rows, err
	}
	c.file.SetKeyValueMetadata(layout.SumsKey, c.sums.text(int64(c.rows)))
	if cerr := c.file.Close(); cerr != nil {
		return 0, errors.Join(err, fmt.Errorf("catalog: %w", cerr))
	}
	return c.rows, err
}

// catalogWriter writes rows to a file.
type catalogWriter struct {
	file    *parquet.GenericWriter[any]
	columns *Columns
	row     parquet.Row // of the last row, for its memory
	sums    sums
	rows    int
	inGroup int // bytes of the current row group
	inRows  int // rows of the current row group
}

func newCatalogWriter(w io.Writer, more *Columns, folders map[string]Folder) *catalogWriter {
	options := []parquet.WriterOption{
		parquet.PageBufferSize(pageBytes), parquet.DataPageStatistics(false),
		parquet.SkipPageBounds(layout.Index), parquet.SkipPageBounds(layout.Header),
		parquet.CreatedBy(layout.Creator, layout.Version, ""),
		parquet.KeyValueMetadata(layout.VersionKey, layout.Version),
		parquet.KeyValueMetadata(layout.MasksKey, layout.MasksVersion),
	}
	whole := schema
	if more != nil {
		options = append(options, more.Meta...)
		whole = parquet.NewSchema("", encode.Group(slices.Concat(Fields(), more.Fields)))
	}
	return &catalogWriter{file: parquet.NewGenericWriter[any](w, append(options, whole)...), columns: more,
		sums: newSums(whole.Fields(), folders)}
}

// write writes the row of number i, and returns how many bytes it takes.
func (c *catalogWriter) write(r *Row, i int) (size int, err error) {
	size = r.Bytes()
	c.row = r.Append(c.row[:0], 0)
	if c.columns != nil {
		extra := 0
		if c.row, extra, err = c.columns.Append(c.row, i); err != nil {
			return 0, err
		}
		size += extra
	}
	c.sums.add(c.row)
	_, err = c.file.WriteRows([]parquet.Row{c.row})
	return size, err
}

// all makes and writes the rows, except those that are skipped.
func (c *catalogWriter) all(ctx context.Context, n int, o RowOptions, src Source) error {
	block, bad := make([]Row, 0, BlockRows), make([]error, BlockRows)
	for done := 0; done < n; {
		block = block[:min(n-done, cap(block))]
		if src.Begin != nil {
			if err := src.Begin(done, len(block)); err != nil {
				return err
			}
		}
		clear(bad)
		if err := fill(ctx, block, bad, done, o, src.Make); err != nil {
			return err
		}
		for i := range block {
			if err := c.add(&block[i], done, bad[i], o); err != nil {
				return err
			}
			done++
			if o.Progress != nil {
				o.Progress(done, n)
			}
		}
	}
	return nil
}

// BlockRows is how many rows are made before they are written: enough to keep the workers busy, and at most some 1,024
// headers in memory.
const BlockRows = 1024

// add writes the row of file number i, or reports bad, the reason why it has none.
func (c *catalogWriter) add(r *Row, i int, bad error, o RowOptions) error {
	if bad != nil {
		o.Skipped(i, bad)
		return nil
	}
	size, err := c.write(r, i)
	if err != nil {
		if fault.KindOf(err) != 0 {
			return err
		}
		return fmt.Errorf("catalog: %w", err)
	}
	c.rows++
	c.inGroup += size
	if c.inRows++; c.inGroup >= groupBytes || c.inRows == maxGroupRows {
		if err := c.file.Flush(); err != nil {
			return fmt.Errorf("catalog: %w", err)
		}
		c.inGroup, c.inRows = 0, 0
	}
	return nil
}

// fill makes the rows from number first on. The first error stops the others. If faulty files are skipped, their errors
// are put into bad instead.
func fill(ctx context.Context, block []Row, bad []error, first int, o RowOptions,
	makeRow func(context.Context, int) (Row, error)) error {
	return each.Of(ctx, int64(len(block)), o.Workers, func(ctx context.Context, i int64) error {
		err := crash.Call(func() (err error) {
			block[i], err = makeRow(ctx, first+int(i))
			return err
		})
		if err != nil && o.Skipped != nil && fault.KindOf(err) != 0 && ctx.Err() == nil {
			bad[i], err = err, nil
		}
		return err
	})
}

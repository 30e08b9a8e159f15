// Package rowio writes the rows of a catalog to Parquet.
package rowio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/store/catalog/internal/layout"
)

// Row is one row of a catalog. Blob columns are not compressed, because chunk indexes are packed already. Pages are
// small, so that reading one row at random is cheap.
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
	Columns Columns // more columns, or nil
}

// RowOptions say how rows are made and written.
type RowOptions struct {
	Workers  int                   // how many rows are made in parallel
	Partial  bool                  // on an error, finish the file with the rows before it
	Progress func(done, total int) // may be nil
	// called for each row left out because its file is faulty; nil: such a row is an error
	Skipped func(i int, err error)
}

// Columns adds columns to rows.
type Columns interface {
	// RowType returns a struct type with the fields of Row, then its own.
	RowType() reflect.Type
	// Extend returns that struct for row number i, and how many bytes its own fields take.
	Extend(r *Row, i int) (any, int, error)
	// Meta returns the footer's metadata about the columns, if any.
	Meta() []parquet.WriterOption
}

// Write makes n rows in parallel, a block at a time, and writes them in order.
func Write(ctx context.Context, w io.Writer, n int, o RowOptions, src Source) (rows int, err error) {
	defer func() {
		if p := recover(); p != nil { // a panic of the Parquet library must not end a server
			rows, err = 0, fault.New(fault.Unsupported, "catalog", fault.NoOffset, "the Parquet writer failed: %v", p)
		}
	}()
	c := newCatalogWriter(w, src.Columns)
	err = c.all(ctx, n, o, src)
	if err != nil && !o.Partial || c.rows == 0 {
		return c.rows, err
	}
	if cerr := c.file.Close(); cerr != nil {
		return 0, errors.Join(err, fmt.Errorf("catalog: %w", cerr))
	}
	return c.rows, err
}

// rowWriter is the part of parquet.GenericWriter that does not depend on its type.
type rowWriter interface {
	Flush() error
	Close() error
}

// catalogWriter writes rows to a file.
type catalogWriter struct {
	file    rowWriter
	write   func(r *Row, i int) (bytes int, err error)
	rows    int
	inGroup int // bytes of the current row group
	inRows  int // rows of the current row group
}

func newCatalogWriter(w io.Writer, j Columns) *catalogWriter {
	options := []parquet.WriterOption{
		parquet.PageBufferSize(pageBytes), parquet.DataPageStatistics(false),
		parquet.SkipPageBounds(layout.Index), parquet.SkipPageBounds(layout.Header),
		parquet.CreatedBy("chaski", layout.Version, ""), parquet.KeyValueMetadata(layout.VersionKey, layout.Version),
		parquet.KeyValueMetadata(layout.MasksKey, "1"),
	}
	if j != nil {
		options = append(options, j.Meta()...)
		pw := parquet.NewGenericWriter[any](w,
			append(options, parquet.SchemaOf(reflect.New(j.RowType()).Interface()))...)
		return &catalogWriter{file: pw, write: func(r *Row, i int) (int, error) {
			v, n, err := j.Extend(r, i)
			if err != nil {
				return 0, err
			}
			_, err = pw.Write([]any{v})
			return r.Bytes() + n, err
		}}
	}
	pw := parquet.NewGenericWriter[Row](w, options...)
	return &catalogWriter{file: pw, write: func(r *Row, _ int) (int, error) {
		_, err := pw.Write([]Row{*r})
		return r.Bytes(), err
	}}
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
	n, err := c.write(r, i)
	if err != nil {
		if fault.KindOf(err) != 0 {
			return err
		}
		return fmt.Errorf("catalog: %w", err)
	}
	c.rows++
	c.inGroup += n
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

package build

import (
	"context"

	"github.com/chaski-eo/chaski/internal/inorder"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tables"
)

// Inspection computes columns from the bytes of files: see Options.Inspect.
type Inspection struct {
	// File is called once for each file, without padding, by several goroutines. r reads the bytes of the row of
	// Level.Rows with that number; File does not close it, and does not use it after it returns. File is nil if no
	// column needs the bytes.
	File func(ctx context.Context, level, row int, r source.Reader) error
	// Columns returns for each level a table with a row for each of its samples, or nil. It is called once, after
	// File was called for all files.
	Columns func(ctx context.Context) ([]*tables.Table, error)
}

// Open opens the bytes of a file.
func (r *Row) Open(ctx context.Context, o source.Opener) (source.Reader, error) {
	if r.URI == "" {
		return (&catalog.Asset{Size: int64(len(r.Bytes)), Bytes: r.Bytes}).Reader(), nil
	}
	return taco.Section(ctx, o, taco.Entry{URI: r.URI, Path: r.ID, Offset: r.Offset, Size: r.Size, Head: r.Head})
}

// adds reports whether the options add columns.
func (o *Options) adds() bool { return o.More != nil || o.Inspect != nil }

// further returns the columns that the options add.
func (o *Options) further(ctx context.Context, levels []Level) ([]*tables.Table, error) {
	var inspect func(ctx context.Context, levels []Level) ([]*tables.Table, error)
	if o.Inspect != nil {
		inspect = o.inspected
	}
	return Chain(o.More, inspect)(ctx, levels)
}

// inspected reads all files for the columns of Inspect.
func (o *Options) inspected(ctx context.Context, levels []Level) ([]*tables.Table, error) {
	in := o.Inspect(levels)
	if in.File == nil {
		return in.Columns(ctx)
	}
	type at struct{ level, row int }
	var files []at
	for k := range levels {
		for i := range levels[k].Rows {
			if r := &levels[k].Rows[i]; !r.Folder && !r.Padding {
				files = append(files, at{k, i})
			}
		}
	}
	err := inorder.Do(ctx, len(files), o.Workers, func(ctx context.Context, i int) (struct{}, error) {
		p := files[i]
		file, err := levels[p.level].Rows[p.row].Open(ctx, o.Opener)
		if err != nil {
			return struct{}{}, err
		}
		err = in.File(ctx, p.level, p.row, file)
		if cerr := file.Close(); err == nil {
			err = cerr
		}
		return struct{}{}, err
	}, func(int, struct{}) error { return nil }, func(struct{}) {})
	if err != nil {
		return nil, err
	}
	return in.Columns(ctx)
}

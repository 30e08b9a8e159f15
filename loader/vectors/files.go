package vectors

import (
	"context"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/vector"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/source"
)

// shapeFiles opens the file of shapes of each row.
type shapeFiles struct {
	table  *rows.Table
	column int // of the table, with the paths
	opener source.Opener
	large  *resources.LargeChunks
	cache  *lru.Cache[version, *file]
}

// version is a file as it was when it was read.
type version struct {
	path, etag  string
	size, mtime int64
}

const (
	// keptBytes bounds the memory of the files that a field keeps: as much as 100 images with 1,000 buildings
	// each take.
	keptBytes = 64 << 20
	// grown is the memory that a file may take while it is read, by its bytes: of GeoJSON 1 of text, 5 of
	// shapes, up to 19 of the feature that is parsed; of Parquet 16 of pages. A file gets smallFile beside it.
	grown     = 32
	smallFile = 1 << 20
)

// openFiles prepares the reading of a file for each row.
func (v *field) openFiles(ctx context.Context, t *rows.Table, column int, o resources.Options) (err error) {
	v.each = &shapeFiles{table: t, column: column, opener: o.Opener, large: o.Large(),
		cache: lru.New[version, *file](keptBytes)}
	found, err := v.survey(ctx)
	if err != nil {
		return err
	}
	if err := v.settle(found); err != nil {
		return err
	}
	return budget.Grow(ctx, keptBytes)
}

// openRow opens the file of a row, which is nil if it has none, or an empty one.
func (f *shapeFiles) openRow(ctx context.Context, row int64) (_ source.Reader, path string, err error) {
	value, err := f.table.Fields[f.column].Value(ctx, row)
	if err != nil || value.Null {
		return nil, "", err
	}
	path = string(value.Text)
	reader, err := f.opener.Open(ctx, path)
	if err == nil && reader.Size() == 0 { // no objects, as SpaceNet has it
		return nil, path, reader.Close()
	}
	return reader, path, fault.WithFile(err, path)
}

// fileOf returns the file of a row, or nil if it has none. A file that has changed is read again.
func (v *field) fileOf(ctx context.Context, row int64) (*file, error) {
	reader, path, err := v.each.openRow(ctx, row)
	if err != nil || reader == nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }() // it is only read
	key := version{path: path, etag: source.ETag(reader), size: reader.Size()}
	if timed, ok := reader.(source.Timed); ok {
		key.mtime = timed.ModTime().UnixNano()
	}
	if known, ok := v.each.cache.Get(key); ok {
		return known, nil
	}
	layer, bytes, err := v.read(ctx, reader, path)
	if err != nil {
		return nil, fault.WithFile(err, path)
	}
	made := &file{path: path, layer: layer}
	if err = v.place(made); err == nil {
		err = v.number(made)
	}
	if err != nil {
		return nil, fault.WithFile(err, path)
	}
	v.each.cache.Add(key, made, bytes)
	return made, nil
}

// read reads a file to its end, so it need not stay open, and returns the memory that it takes.
func (v *field) read(ctx context.Context, r source.Reader, path string) (_ *vector.Layer, bytes int64, err error) {
	room := min(grown*min(r.Size(), math.MaxInt64/(2*grown))+smallFile, v.each.large.Size())
	grow := func(_ context.Context, n int64) error {
		if bytes += n; bytes > room {
			return fault.New(fault.Limit, "shapes", "a file of %d bytes takes over %d of memory: "+
				"write the shapes of all images to one GeoParquet file", r.Size(), room)
		}
		return nil
	}
	done, err := v.each.large.TakeBytes(ctx, room)
	if err != nil {
		return nil, 0, err
	}
	defer done()
	if err := grow(ctx, r.Size()); err != nil {
		return nil, 0, err
	}
	data, err := source.Read(ctx, r, 0, r.Size())
	if err != nil {
		return nil, 0, err
	}
	o, err := v.options(grow)
	if err != nil {
		return nil, 0, err
	}
	open := source.OpenOne(func(context.Context) (source.Reader, error) { return source.Memory(data), nil })
	layer, err := vector.Open(ctx, open, path, o)
	return layer, bytes, err
}

// Package shards reads datasets of shards that other loaders train on, as containers of two levels: MDS, the format of
// MosaicML Streaming (version 2), and tar files of WebDataset.
//
// Level 0 has the samples. Their numbers, strings and JSON values are its columns; arrays, images and other bytes are
// files below them, each a byte range of its shard, with the name of the MDS column or the extension in the tar.
//
// Not supported: MDS shards that are compressed as a whole, because their samples have no byte ranges; compressed tars.
package shards

import (
	"context"
	"strconv"
	"unique"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tables"
)

// Names of columns.
const (
	columnID   = "id"
	columnType = "type"
)

// maxRows limits samples and files: rows of containers are numbered by int32.
const maxRows = 1<<31 - 1

// file is a file below a sample. Few names and headers belong to many files, and are kept once.
type file struct {
	name, head unique.Handle[string]
	shard      int32
	off, size  int64
}

// noHead is the head of files that the shards store whole.
var noHead = unique.Make("")

// fileBytes is the memory of a file, with its parent and the least of its name in the table.
const fileBytes = 5*8 + 4 + 8

// shard is one file of the dataset.
type shard struct {
	uri    string
	object source.Known
}

// Container is a dataset of shards, all of which is read when it is opened. It implements model.Container.
type Container struct {
	model.Common
	shards  []shard
	first   []int32 // the files of sample i are files[first[i]:first[i+1]]
	files   []file
	levels  [2]*tables.Table
	parents []int32
}

// Levels implements model.Container.
func (c *Container) Levels() int { return len(c.levels) }

// Close implements model.Container. Shards are opened by those who read their files.
func (c *Container) Close() error { return nil }

// Bytes implements model.Container.
func (c *Container) Bytes() int64 {
	return c.levels[0].Bytes() + c.levels[1].Bytes() + 4*int64(len(c.first)) + fileBytes*int64(len(c.files))
}

// Table implements model.Container.
func (c *Container) Table(_ context.Context, level int) (*tables.Table, error) {
	if level < 0 || level >= len(c.levels) {
		return nil, c.NoRow(level, -1, len(c.levels))
	}
	return c.levels[level], nil
}

// Parents implements model.Container.
func (c *Container) Parents(_ context.Context, level int) ([]int32, error) {
	if level == 0 {
		return nil, nil
	}
	return c.parents, nil
}

// Children implements model.Container.
func (c *Container) Children(_ context.Context, level, row int) ([]int32, error) {
	if level != 0 {
		return nil, nil
	}
	if row < 0 || row+1 >= len(c.first) {
		return nil, c.NoRow(level, row, len(c.levels))
	}
	var rows []int32
	for k := c.first[row]; k < c.first[row+1]; k++ {
		rows = append(rows, k)
	}
	return rows, nil
}

// Entry implements model.Container.
func (c *Container) Entry(ctx context.Context, level, row int) (model.Entry, error) {
	table, err := c.Table(ctx, level)
	if err == nil && (row < 0 || row >= table.Len()) {
		err = c.NoRow(level, row, len(c.levels))
	}
	if err != nil {
		return model.Entry{}, err
	}
	if level == 0 {
		ids, err := table.At(ctx, 0)
		if err != nil {
			return model.Entry{}, err
		}
		return model.Entry{ID: ids.Str(row), Kind: model.Folder, Row: row}, nil
	}
	file := &c.files[row]
	s := &c.shards[file.shard]
	return model.Entry{ID: file.name.Value(), URI: s.uri, Offset: file.off, Size: file.size, Head: file.head.Value(),
		Object: s.object, Level: 1, Row: row}, nil
}

// Verify implements model.Container. The places of all files were checked when the shards were opened.
func (c *Container) Verify(ctx context.Context, r *model.Report) error {
	r.Rows += int64(len(c.first) - 1 + len(c.files))
	r.Files += int64(len(c.files))
	for _, f := range c.files {
		r.Bytes += f.size
	}
	ids, err := c.levels[0].At(ctx, 0)
	if err != nil {
		return err
	}
	seen := make(map[string]bool, ids.Len())
	for i := range ids.Len() {
		if id := ids.Str(i); seen[id] {
			r.Note("%s: two samples have the id %q: only the first is found by it", c.Source, id)
		} else {
			seen[id] = true
		}
	}
	return nil
}

// part has the samples and columns of one shard.
type part struct {
	shard   shard
	ids     []string
	counts  []int32 // files of each sample
	files   []file  // shard is not set yet
	columns columns
}

// openAtOnce limits the shards that are read at a time.
const openAtOnce = 8

// read reads all shards and joins their samples. After an error it begins no further shard: a pattern may name a
// million that do not exist.
func (c *Container) read(ctx context.Context, o source.Opener, uris []string,
	one func(ctx context.Context, i int, p *part, r source.Reader) error) error {
	parts := make([]*part, len(uris))
	err := each.Of(ctx, int64(len(uris)), openAtOnce, func(ctx context.Context, i int64) error {
		reader, err := o.Open(ctx, uris[i])
		if err != nil {
			return fault.WithFile(err, uris[i])
		}
		known := source.Known{Size: reader.Size(), ETag: source.ETag(reader)}
		parts[i] = &part{shard: shard{uri: uris[i], object: known}}
		err = one(ctx, int(i), parts[i], reader)
		if cerr := reader.Close(); err == nil {
			err = cerr
		}
		return fault.WithFile(err, uris[i])
	})
	if err != nil {
		return err
	}
	return fault.WithFile(c.join(parts), c.Source)
}

// join makes the levels of the parts.
func (c *Container) join(parts []*part) error {
	var ids []string
	var cols columns
	var size int64
	c.first = []int32{0}
	for i, part := range parts {
		if len(ids)+len(part.ids) > maxRows || len(c.files)+len(part.files) > maxRows {
			return fault.New(fault.Limit, "samples", fault.NoOffset, "over %d of them, or of files", maxRows)
		}
		cols.join(&part.columns, len(ids))
		for k, n := range part.counts {
			for range n {
				c.parents = append(c.parents, int32(len(ids)+k))
			}
			c.first = append(c.first, int32(len(c.parents)))
		}
		ids = append(ids, part.ids...)
		size += part.shard.object.Size
		for _, file := range part.files {
			file.shard = int32(i)
			c.files = append(c.files, file)
		}
		c.shards = append(c.shards, part.shard)
	}
	if err := cols.tooMany(len(ids), size); err != nil {
		return err
	}
	for i := range ids {
		if ids[i] == "" {
			ids[i] = strconv.Itoa(i)
		}
	}
	header, vectors := []string{columnID, columnType}, described(ids, model.Folder)
	taken := map[string]bool{columnID: true, columnType: true}
	for _, column := range cols.list {
		name := column.name
		for taken[name] {
			name = "source:" + name // as columns of tables are renamed that a container has itself
		}
		taken[name] = true
		header, vectors = append(header, name), append(vectors, column.vector(len(ids)))
	}
	names := make([]string, len(c.files))
	for i, f := range c.files {
		names[i] = f.name.Value()
	}
	c.levels = [2]*tables.Table{tables.FromVectors(header, vectors), tables.FromVectors(header[:2],
		described(names, model.File))}
	return nil
}

// described returns the columns of ids and types: all samples are folders, and all below them are files.
func described(ids []string, k model.Kind) []*tables.Vector {
	kinds := make([]string, len(ids))
	for i := range kinds {
		kinds[i] = k.String()
	}
	return []*tables.Vector{tables.NewStrings(ids, nil), tables.NewStrings(kinds, nil)}
}

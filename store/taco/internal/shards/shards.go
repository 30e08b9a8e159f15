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

// reader is a model.Reader of shards, all of which is read when they are opened.
type reader struct {
	of      *model.Container
	shards  []shard
	files   []file
	levels  [2]*model.Level
	parents []int32
}

// Close implements model.Reader. Shards are opened by those who read their files.
func (c *reader) Close() error { return nil }

// Bytes implements model.Reader.
func (c *reader) Bytes() int64 { return fileBytes * int64(len(c.files)) }

// Level implements model.Reader.
func (c *reader) Level(_ context.Context, level int) (*model.Level, error) {
	return c.levels[level], nil
}

// Parents implements model.Reader.
func (c *reader) Parents(context.Context, int) ([]int32, error) { return c.parents, nil }

// Entry implements model.Reader.
func (c *reader) Entry(_ context.Context, level, row int) (model.Entry, error) {
	if level == 0 {
		return model.Entry{ID: c.levels[0].IDs.Str(row), Kind: model.Folder}, nil
	}
	file := &c.files[row]
	s := &c.shards[file.shard]
	return model.Entry{ID: file.name.Value(), URI: s.uri, Offset: file.off, Size: file.size, Head: file.head.Value(),
		Object: s.object}, nil
}

// Verify implements model.Reader. The places of all files were checked when the shards were opened.
func (c *reader) Verify(_ context.Context, r *model.Report) error {
	ids := c.levels[0].IDs
	r.Rows += int64(ids.Len() + len(c.files))
	r.Files += int64(len(c.files))
	for _, f := range c.files {
		r.Bytes += f.size
	}
	seen := make(map[string]bool, ids.Len())
	for i := range ids.Len() {
		if id := ids.Str(i); seen[id] {
			r.Note("%s: two samples have the id %q: only the first is found by it", c.of.URI, id)
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

// open reads all shards and joins their samples. After an error it begins no further shard: a pattern may name a
// million that do not exist.
func open(ctx context.Context, o source.Opener, name string, form model.Form, uris []string,
	one func(ctx context.Context, i int, p *part, r source.Reader) error) (*model.Container, error) {
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
		return nil, err
	}
	c := &reader{of: &model.Container{URI: name, Form: form, IDColumn: columnID, Histograms: -1}}
	if err := c.join(parts); err != nil {
		return nil, fault.WithFile(err, name)
	}
	return c.of.Open(c, len(c.levels)), nil
}

// join makes the levels of the parts.
func (c *reader) join(parts []*part) error {
	var ids []string
	var cols columns
	var size int64
	for i, part := range parts {
		if len(ids)+len(part.ids) > maxRows || len(c.files)+len(part.files) > maxRows {
			return fault.New(fault.Limit, "samples", fault.NoOffset, "over %d of them, or of files", maxRows)
		}
		cols.join(&part.columns, len(ids))
		for k, n := range part.counts {
			for range n {
				c.parents = append(c.parents, int32(len(ids)+k))
			}
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
	below := described(names, model.File)
	c.levels = [2]*model.Level{{Table: tables.FromVectors(header, vectors), IDs: vectors[0]},
		{Table: tables.FromVectors(header[:2], below), IDs: below[0]}}
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

// Package shards reads datasets of shards that other loaders train on, as containers of two levels: MDS, the format of
// MosaicML Streaming (version 2), and tar files of WebDataset.
//
// Level 0 has the samples. Their numbers, strings and JSON values are its columns; arrays, images and other bytes are
// files below them, each a byte range of its shard, with the name of the MDS column or the extension in the tar.
//
// Not supported: MDS shards that are compressed as a whole, because their samples have no byte ranges; compressed tars.
package shards

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strconv"
	"unique"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/inorder"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tables"
)

// columnID is the column of ids.
const columnID = "id"

// maxRows limits samples and files: rows of containers are numbered by int32.
const maxRows = 1<<31 - 1

// file is a file below a sample.
type file struct {
	name, head    string // few of each belong to many files
	off, size     int64
	sample, shard int32
}

// fileBytes is the memory of a file, with the least of its name in the table.
const fileBytes = 6*8 + 4 + 4 + 8

// part has the samples, files and columns of one shard or, one shard behind the other, of a dataset.
type part struct {
	ids     []string
	files   []file
	columns []*column // in the order in which they were first seen
	byName  map[string]*column
}

// file adds a file to the sample that is being read. Equal names and heads share their memory.
func (p *part) file(name, head string, off, size int64) {
	name, head = unique.Make(name).Value(), unique.Make(head).Value()
	p.files = append(p.files, file{name: name, head: head, off: off, size: size, sample: int32(len(p.ids))})
}

// column returns a column, which it makes if it is new. typ is the type that the encoding says, or its zero value.
func (p *part) column(name string, typ tables.Type) *column {
	known := p.byName[name]
	if known == nil {
		if p.byName == nil {
			p.byName = map[string]*column{}
		}
		known = &column{name: name, typ: typ}
		p.byName[name], p.columns = known, append(p.columns, known)
	}
	return known
}

// add adds what another shard has.
func (p *part) add(o *part, shard int) error {
	first := len(p.ids)
	if first+len(o.ids) > maxRows || len(p.files)+len(o.files) > maxRows {
		return fault.New(fault.Limit, "samples", fault.NoOffset, "over %d of them, or of files", maxRows)
	}
	for _, column := range o.columns {
		joined := p.column(column.name, column.typ)
		for k, row := range column.rows {
			joined.add(first+int(row), column.values[k])
		}
	}
	for _, f := range o.files {
		f.sample, f.shard = f.sample+int32(first), int32(shard)
		p.files = append(p.files, f)
	}
	p.ids = append(p.ids, o.ids...)
	return nil
}

// openAtOnce limits the shards that are read at a time.
const openAtOnce = 8

// open reads all shards and joins their samples. After an error it begins no further shard: a pattern may name a
// million that do not exist. read reads shard i.
func open(ctx context.Context, o source.Opener, name string, form model.Form, uris []string,
	read func(p *part, i int, w *window) error) (*model.Container, error) {
	all := &part{}
	c := &reader{container: model.New(model.Source{URI: name}, form), uris: uris,
		objects: make([]source.Known, len(uris))}
	err := inorder.Do(ctx, len(uris), openAtOnce, func(ctx context.Context, i int) (*part, error) {
		file, err := o.Open(ctx, uris[i])
		if err != nil {
			return nil, fault.WithFile(err, uris[i])
		}
		c.objects[i] = source.Known{Size: file.Size(), ETag: source.ETag(file)}
		p := &part{}
		err = read(p, i, &window{ctx: ctx, r: file, uri: uris[i]})
		return p, fault.WithFile(cmp.Or(err, file.Close()), uris[i])
	}, func(i int, p *part) error { return all.add(p, i) }, func(*part) {})
	if err == nil {
		err = c.join(all)
	}
	if err != nil {
		return nil, fault.WithFile(err, name)
	}
	return c.container.Open(c, len(c.levels)), nil
}

// reader is a model.Reader of shards. It holds all but the bytes of files, which are read from the shards later.
type reader struct {
	container *model.Container
	uris      []string
	objects   []source.Known
	files     []file // the rows of level 1
	levels    [2]*model.Level
}

// Bytes implements model.Reader.
func (c *reader) Bytes() int64 { return fileBytes * int64(len(c.files)) }

// Level implements model.Reader.
func (c *reader) Level(_ context.Context, level int) (*model.Level, error) {
	return c.levels[level], nil
}

// Parents implements model.Reader.
func (c *reader) Parents(context.Context, int) ([]int32, error) {
	parents := make([]int32, len(c.files))
	for i := range parents {
		parents[i] = c.files[i].sample
	}
	return parents, nil
}

// Entry implements model.Reader.
func (c *reader) Entry(_ context.Context, level, row int) (model.Entry, error) {
	if level == 0 {
		return model.Entry{ID: c.levels[0].IDs.Str(row), Kind: model.Folder}, nil
	}
	f := c.files[row]
	return model.Entry{ID: f.name, URI: c.uris[f.shard], Offset: f.off, Size: f.size, Head: f.head,
		Object: c.objects[f.shard]}, nil
}

// Verify implements model.Reader. The places of all files were checked when the shards were opened.
func (c *reader) Verify(_ context.Context, r *model.Report) error {
	seen := map[string]bool{}
	for i := range c.levels[0].IDs.Len() {
		id := c.levels[0].IDs.Str(i)
		if seen[id] {
			r.Note("%s: two samples have the id %q: only the first is found by it", c.container.URI, id)
		}
		seen[id] = true
	}
	return nil
}

// cellBytes is about the memory of a value in a column; fewBytes are always allowed. A sample that lacks a column takes
// as much as one that has it, so the product of rows and columns must be bounded: a small file could claim any number.
const (
	cellBytes    = 16
	fewBytes     = 64 << 20
	bytesPerByte = 4
)

// join makes the levels.
func (c *reader) join(all *part) error {
	var size int64
	for _, object := range c.objects {
		size += object.Size
	}
	if int64(len(all.columns))*int64(len(all.ids)) > (fewBytes+bytesPerByte*size)/cellBytes {
		return fault.New(fault.Limit, "columns", fault.NoOffset, "%d columns of %d samples in %d bytes",
			len(all.columns), len(all.ids), size)
	}
	for i, id := range all.ids {
		all.ids[i] = cmp.Or(id, strconv.Itoa(i))
	}
	header, vectors := []string{columnID, model.ColumnType}, described(all.ids, model.Folder)
	for _, column := range all.columns {
		name := column.name
		for slices.Contains(header, name) {
			name = "source:" + name // as columns of tables are renamed that a container has itself
		}
		header, vectors = append(header, name), append(vectors, column.vector(len(all.ids)))
	}
	names := make([]string, len(all.files))
	for i := range names {
		names[i] = all.files[i].name
	}
	below := described(names, model.File)
	c.files = all.files
	c.levels = [2]*model.Level{{Table: tables.FromVectors(header, vectors), IDs: vectors[0]},
		{Table: tables.FromVectors(header[:2], below), IDs: below[0]}}
	return nil
}

// described returns the columns of ids and types: all samples are folders, and all below them are files.
func described(ids []string, k model.Kind) []*tables.Vector {
	kinds := slices.Repeat([]string{k.String()}, len(ids))
	return []*tables.Vector{tables.NewStrings(ids, nil), tables.NewStrings(kinds, nil)}
}

// Bytes that are read at a time while the places of files are looked up. Of a local shard, 4 KiB is a page, and holds
// the header of a member or the sizes and numbers of a sample; a request to a server costs as much as 64 KiB or more.
const (
	localWindow  = 4 << 10
	remoteWindow = 64 << 10
)

// window reads small pieces of a shard in ascending order through a buffer. It is an io.ReaderAt, too.
type window struct {
	ctx  context.Context
	r    source.Reader
	uri  string
	off  int64 // of held in the shard
	held []byte
}

// bytes returns n bytes at an offset, which are valid until the next call. Those behind the end are Corrupt, and so
// nothing is allocated for them.
func (w *window) bytes(off int64, n int) ([]byte, error) {
	if off < 0 || n < 0 || off > w.r.Size() || int64(n) > w.r.Size()-off {
		return nil, fault.New(fault.Corrupt, "byte range", off, "%d bytes in a file of %d", n, w.r.Size())
	}
	if off < w.off || off+int64(n) > w.off+int64(len(w.held)) {
		size := localWindow
		if source.IsRemote(w.uri) {
			size = remoteWindow
		}
		want := int(min(int64(max(n, size)), w.r.Size()-off))
		w.off, w.held = off, slices.Grow(w.held[:0], want)[:want]
		if err := w.r.ReadAt(w.ctx, w.held, off); err != nil {
			w.held = w.held[:0]
			return nil, err
		}
	}
	return w.held[off-w.off:][:n], nil
}

// maxValue limits a value of a column: a loader hands out values, not documents.
const maxValue = 1 << 20

// value returns what parse makes of the bytes of a value.
func (w *window) value(off, size int64, parse func(b []byte) (string, error)) (string, error) {
	if size > maxValue {
		return "", fault.New(fault.Limit, "", off, "a value of %d bytes, at most %d", size, maxValue)
	}
	data, err := w.bytes(off, int(size))
	if err != nil {
		return "", err
	}
	return parse(data)
}

// ReadAt implements io.ReaderAt.
func (w *window) ReadAt(p []byte, off int64) (int, error) {
	data, err := w.bytes(off, int(min(int64(len(p)), w.r.Size()-off)))
	n := copy(p, data)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

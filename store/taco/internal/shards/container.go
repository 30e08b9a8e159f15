package shards

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/chaski-eo/chaski/fault"
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

// file is a file below a sample.
type file struct {
	name      int32 // in Container.names
	shard     int32
	off, size int64
	head      int32 // in Container.heads, -1 without
}

// shard is one file of the dataset.
type shard struct {
	uri    string
	object source.Known
	check  []check // hashes, for Verify
}

// Container is a dataset of shards. It implements model.Container.
type Container struct {
	opener source.Opener
	uri    string
	format string
	shards []shard
	names  []string // of files
	heads  []string
	first  []int32 // the files of sample i are files[first[i]:first[i+1]]
	files  []file
	table  *tables.Table // level 0

	mu      sync.Mutex
	below   *tables.Table
	parents []int32
}

var (
	_ model.Container = (*Container)(nil)
	_ model.Sized     = (*Container)(nil)
)

// URI implements model.Container.
func (c *Container) URI() string { return c.uri }

// Format implements model.Container.
func (c *Container) Format() string { return c.format }

// Collection implements model.Container: shards have no document.
func (c *Container) Collection() json.RawMessage { return nil }

// Levels implements model.Container.
func (c *Container) Levels() int { return 2 }

// IDColumn implements model.Container.
func (c *Container) IDColumn() string { return columnID }

// Close implements model.Container. Shards are opened by those who read their files.
func (c *Container) Close() error { return nil }

// Padding implements model.Container.
func (c *Container) Padding(context.Context, int, int) (bool, error) { return false, nil }

// samples returns the number of samples.
func (c *Container) samples() int { return len(c.first) - 1 }

// Table implements model.Container.
func (c *Container) Table(_ context.Context, level int) (*tables.Table, error) {
	if level == 0 {
		return c.table, nil
	}
	if err := c.check(level, 0, 1); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.below == nil {
		ids := make([]string, len(c.files))
		for i, f := range c.files {
			ids[i] = c.names[f.name]
		}
		c.below = tables.FromVectors([]string{columnID, columnType},
			[]*tables.Vector{tables.NewStrings(ids, nil), types(len(ids), model.File)})
	}
	return c.below, nil
}

// types returns the column of types: all samples are folders, and all below them are files.
func types(n int, k model.Kind) *tables.Vector {
	paths := make([]string, n)
	for i := range paths {
		paths[i] = k.String()
	}
	return tables.NewStrings(paths, nil)
}

// Parents implements model.Container.
func (c *Container) Parents(_ context.Context, level int) ([]int32, error) {
	if level == 0 {
		return nil, nil
	}
	if err := c.check(level, 0, 1); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parents == nil {
		c.parents = make([]int32, len(c.files))
		for i := range c.samples() {
			for k := c.first[i]; k < c.first[i+1]; k++ {
				c.parents[k] = int32(i)
			}
		}
	}
	return c.parents, nil
}

// Children implements model.Container.
func (c *Container) Children(_ context.Context, level, row int) ([]int32, error) {
	if level != 0 {
		return nil, nil
	}
	if err := c.check(level, row, c.samples()); err != nil {
		return nil, err
	}
	var rows []int32
	for k := c.first[row]; k < c.first[row+1]; k++ {
		rows = append(rows, k)
	}
	return rows, nil
}

// Entry implements model.Container.
func (c *Container) Entry(ctx context.Context, level, row int) (model.Entry, error) {
	if level == 0 {
		if err := c.check(level, row, c.samples()); err != nil {
			return model.Entry{}, err
		}
		ids, err := c.table.At(ctx, 0)
		if err != nil {
			return model.Entry{}, err
		}
		return model.Entry{ID: ids.Str(row), Kind: model.Folder, Row: row}, nil
	}
	if err := c.check(level, row, len(c.files)); err != nil {
		return model.Entry{}, err
	}
	file := &c.files[row]
	s := &c.shards[file.shard]
	entry := model.Entry{ID: c.names[file.name], Kind: model.File, URI: s.uri, Offset: file.off, Size: file.size,
		Object: s.object,
		Level:  1, Row: row}
	if file.head >= 0 {
		entry.Head = c.heads[file.head]
	}
	return entry, nil
}

// check returns an error for a level or row that does not exist.
func (c *Container) check(level, row, rows int) error {
	switch {
	case level < 0 || level > 1:
		return fault.WithFile(fault.New(fault.NotFound, fmt.Sprintf("level%d", level), fault.NoOffset,
			"the levels are 0 and 1"), c.uri)
	case row < 0 || row >= rows:
		return fault.WithFile(fault.New(fault.NotFound, fmt.Sprintf("level%d row %d", level, row), fault.NoOffset,
			"does not exist"), c.uri)
	}
	return nil
}

// Bytes implements model.Sized.
func (c *Container) Bytes() int64 {
	n := c.table.Bytes() + 4*int64(cap(c.first)) + 32*int64(cap(c.files)) // a file has 32 bytes
	for _, texts := range [][]string{c.names, c.heads} {
		for _, s := range texts {
			n += 16 + int64(len(s)) // a string has 16 bytes beside its text
		}
	}
	if !c.mu.TryLock() {
		return n
	}
	defer c.mu.Unlock()
	if c.below != nil {
		n += c.below.Bytes()
	}
	return n + 4*int64(cap(c.parents))
}

// Verify implements model.Container. The places of all files were checked when the shards were opened; it compares the
// bytes of the shards with their hashes.
func (c *Container) Verify(ctx context.Context, r *model.Report) error {
	r.Rows += int64(c.samples() + len(c.files))
	r.Files += int64(len(c.files))
	for _, f := range c.files {
		r.Bytes += f.size
	}
	ids, err := c.table.At(ctx, 0)
	if err != nil {
		return err
	}
	seen := make(map[string]bool, c.samples())
	for i := range c.samples() {
		if id := ids.Str(i); seen[id] {
			r.Note("%s: two samples have the id %q: only the first is found by it", c.uri, id)
		} else {
			seen[id] = true
		}
	}
	for i := range c.shards {
		if err := c.shards[i].verify(ctx, c.opener, r); err != nil {
			return err
		}
	}
	return nil
}

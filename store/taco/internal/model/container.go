package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/keylock"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
)

// Container is one open container. Rows of a level are counted from 0 in the order in which they are stored, padding
// included. It is safe for concurrent use. Levels are read when they are first needed.
type Container struct {
	URI      string // the path or URI that it was opened by
	From     Source
	Object   source.Known // size and tag of its file, to open it again without a request
	Form     Form
	Document json.RawMessage // about the whole dataset, or nil
	IDColumn string
	Tree     *Tree // the tree that the document declares, or nil
	// Histograms are the rows of level 0 with histograms of the other samples. They and everything below them can be
	// found by path, but are not samples.
	Histograms []int32
	// Partitions is the number of files that the container is split into, or 0 if its format has no such number.
	Partitions int
	// Named and Chunks are what only some formats have, or nil.
	Named  *Named
	Chunks *Chunks
	// Depth finds out the number of levels before one below level 0 is read, which may be more than the container
	// was opened with. It is nil if that number is certain.
	Depth func(ctx context.Context) (int, error)

	// reading guards what the reader keeps, and is held while it reads: see Lock.
	reading keylock.Locks[struct{}]
	Reader  Reader
	mu      sync.Mutex // guards levels and the links of each, and is not held while something is read
	levels  []*Level
	files   map[string]source.Reader // open ones, by URI
	absent  map[string]error         // URIs of files that do not exist
}

// Level is the rows of a level.
type Level struct {
	Table   *tables.Table  // the stored columns
	IDs     *tables.Vector // strings
	Parents []int32        // rows of the level above; nil at level 0, and until they are asked for
	// The children in this level of row i of the level above are Rows[First[i]:First[i+1]].
	First, Rows []int32
}

// Below returns the children in this level of a row of the level above.
func (l *Level) Below(row int) []int32 { return l.Rows[l.First[row]:l.First[row+1]] }

// Reader reads what a Container needs of one format. The container is locked while its methods are called.
type Reader interface {
	// Level reads a level that exists, but for its parents.
	Level(ctx context.Context, k int) (*Level, error)
	// Parents returns for each row of a level below 0 its parent row in the level above.
	Parents(ctx context.Context, k int) ([]int32, error)
	// Entry returns id, kind and place of a row that exists.
	Entry(ctx context.Context, level, row int) (store.Entry, error)
	// Verify checks what the rules of the format say beside the rules of verifyRows, and adds its results to r.
	Verify(ctx context.Context, r *Report) error
	// Bytes estimates the memory of what it keeps beside the levels.
	Bytes() int64
}

// Open makes r the reader of a container of some levels.
func (c *Container) Open(r Reader, levels int) *Container {
	c.Reader, c.levels = r, make([]*Level, levels)
	return c
}

// Lock waits until nobody else reads of the container, and returns a function to call afterwards. The wait ends with
// ctx: the read of another may hang. Functions of Named and Chunks call it themselves.
func (c *Container) Lock(ctx context.Context) (unlock func(), err error) {
	return c.reading.Lock(ctx, struct{}{})
}

// Levels returns the number of levels, at least 1. It may be larger after Deepen.
func (c *Container) Levels() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.levels)
}

// Reach finds out whether there is a level, if that is not known yet.
func (c *Container) Reach(ctx context.Context, k int) error {
	if k < c.Levels() {
		return nil
	}
	return c.Deepen(ctx)
}

// Deepen finds out the number of levels if it is not known yet.
func (c *Container) Deepen(ctx context.Context) error {
	unlock, err := c.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return c.deepen(ctx)
}

func (c *Container) deepen(ctx context.Context) error {
	if c.Depth == nil {
		return nil
	}
	n, err := c.Depth(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && n > len(c.levels) {
		c.levels = append(c.levels, make([]*Level, n-len(c.levels))...)
	}
	return err
}

// Table returns the rows of a level with the stored columns.
func (c *Container) Table(ctx context.Context, k int) (*tables.Table, error) {
	level, err := c.locked(ctx, k, false)
	return level.Table, err
}

// locked returns a level, linked with its parents if that is asked for. It is empty after an error. One that was read
// does not wait for others that are being read.
func (c *Container) locked(ctx context.Context, k int, linked bool) (Level, error) {
	if level := c.levelSoFar(k); level.Table != nil && (!linked || k == 0 || level.First != nil) {
		return level, nil
	}
	unlock, err := c.Lock(ctx)
	if err != nil {
		return Level{}, err
	}
	defer unlock()
	read := c.Level
	if linked {
		read = c.Linked
	}
	level, err := read(ctx, k)
	if err != nil {
		return Level{}, err
	}
	return *level, nil
}

// levelSoFar returns a level as far as it was read.
func (c *Container) levelSoFar(k int) Level {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k < 0 || k >= len(c.levels) || c.levels[k] == nil {
		return Level{}
	}
	return *c.levels[k]
}

// IDs returns the ids of a level.
func (c *Container) IDs(ctx context.Context, k int) (*tables.Vector, error) {
	level, err := c.locked(ctx, k, false)
	return level.IDs, err
}

// Parents returns for each row of a level its parent row in the level above, or nil at level 0.
func (c *Container) Parents(ctx context.Context, k int) ([]int32, error) {
	level, err := c.locked(ctx, k, true)
	return level.Parents, err
}

// Children returns the children of a row in the next level, in order. It is empty for a file.
func (c *Container) Children(ctx context.Context, k, row int) ([]int32, error) {
	unlock, err := c.Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := c.deepen(ctx); err != nil || k+1 >= len(c.levels) {
		return nil, err
	}
	level, err := c.Linked(ctx, k+1)
	if err != nil {
		return nil, err
	}
	if row < 0 || row+1 >= len(level.First) {
		return nil, c.NoRow(k, row)
	}
	return level.Below(row), nil
}

// Entry returns a sample without its path, which only the caller knows that walked down the levels.
func (c *Container) Entry(ctx context.Context, k, row int) (store.Entry, error) {
	unlock, err := c.Lock(ctx)
	if err != nil {
		return store.Entry{}, err
	}
	defer unlock()
	return c.EntryOf(ctx, k, row)
}

// Path returns the ids from level 0 down to a row, joined by "/".
func (c *Container) Path(ctx context.Context, k, row int) (string, error) {
	unlock, err := c.Lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	ids, err := c.IDsTo(ctx, k, row)
	return strings.Join(ids, "/"), err
}

// Bytes estimates the memory of the levels that were read. Those that are being read do not count yet.
func (c *Container) Bytes() int64 {
	// A level that is being read holds the lock for long, and must not delay who counts memory.
	unlock, err := c.Lock(over)
	if err != nil {
		return 0
	}
	defer unlock()
	size := c.Reader.Bytes()
	for _, l := range c.levels {
		if l != nil {
			size += l.Table.Bytes() + 4*int64(cap(l.Parents)+cap(l.First)+cap(l.Rows))
		}
	}
	return size
}

// over is a context that has ended: a lock is taken with it where it is free.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Close closes all files. It waits for reads that are under way, whose files they are.
func (c *Container) Close() error {
	unlock, err := c.Lock(context.Background())
	if err != nil {
		return err
	}
	defer unlock()
	return c.closeFiles()
}

// The methods below are for readers: the container is locked.

// Level returns a level, whose parents may be missing.
func (c *Container) Level(ctx context.Context, k int) (*Level, error) {
	if k > 0 {
		if err := c.deepen(ctx); err != nil {
			return nil, err
		}
	}
	if k < 0 || k >= len(c.levels) {
		return nil, c.NoRow(k, -1)
	}
	if c.levels[k] == nil {
		level, err := c.Reader.Level(ctx, k)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		c.levels[k] = level
		c.mu.Unlock()
	}
	return c.levels[k], nil
}

// Linked returns a level with its parents.
func (c *Container) Linked(ctx context.Context, k int) (*Level, error) {
	level, err := c.Level(ctx, k)
	if err != nil || k == 0 || level.First != nil {
		return level, err
	}
	above, err := c.Level(ctx, k-1)
	if err != nil {
		return nil, err
	}
	parents, err := c.Reader.Parents(ctx, k)
	if err != nil {
		return nil, err
	}
	first, rows := Group(parents, above.Table.Len())
	c.mu.Lock()
	defer c.mu.Unlock()
	level.Parents, level.First, level.Rows = parents, first, rows
	return level, nil
}

// EntryOf is Entry.
func (c *Container) EntryOf(ctx context.Context, k, row int) (store.Entry, error) {
	if _, err := c.rowOf(ctx, k, row); err != nil {
		return store.Entry{}, err
	}
	e, err := c.Reader.Entry(ctx, k, row)
	e.Padding, e.Level, e.Row = c.Form.Pads() && IsPadding(e.ID), k, row
	return e, err
}

// IDsTo returns the ids from level 0 down to a row that exists.
func (c *Container) IDsTo(ctx context.Context, k, row int) ([]string, error) {
	ids := make([]string, k+1)
	for ; ; k-- {
		level, err := c.Linked(ctx, k)
		if err != nil {
			return nil, err
		}
		if ids[k] = level.IDs.Str(row); k == 0 {
			return ids, nil
		}
		row = int(level.Parents[row])
	}
}

// rowOf returns the level of a row that must exist.
func (c *Container) rowOf(ctx context.Context, k, row int) (*Level, error) {
	level, err := c.Level(ctx, k)
	if err == nil && (row < 0 || row >= level.Table.Len()) {
		err = c.NoRow(k, row)
	}
	return level, err
}

// NoRow returns the error about a row that does not exist, or about its level if the container has fewer levels.
func (c *Container) NoRow(k, row int) error {
	part, what := LevelName(k), fmt.Sprintf("the levels are 0 to %d", len(c.levels)-1)
	if k >= 0 && k < len(c.levels) {
		part, what = RowName(k, row), "does not exist"
	}
	return fault.WithFile(fault.New(fault.NotFound, part, "%s", what), c.URI)
}

// LevelName returns the name of a level in errors and tables: "level0".
func LevelName(k int) string { return "level" + strconv.Itoa(k) }

// RowName returns the name of a row of a level in errors: "level0 row 3".
func RowName(k, row int) string { return LevelName(k) + " row " + strconv.Itoa(row) }

// Source is what a container is opened from.
type Source struct {
	Opener source.Opener
	URI    string
	// Base is the directory of the source files of an index.
	Base string
	// File is the open file, or nil for a directory. It belongs to the container, which closes it if it cannot be
	// opened. Head has its first bytes.
	File source.Reader
	Head []byte
}

// New returns a container that is being opened.
func New(from Source, form Form) *Container {
	c := &Container{URI: from.URI, From: from, Form: form, IDColumn: ColumnID,
		files: map[string]source.Reader{}, absent: map[string]error{}}
	if from.File != nil {
		c.files[from.URI] = from.File
		c.Object = source.Known{Size: from.File.Size(), ETag: source.ETag(from.File)}
	}
	return c
}

// Open returns a container of a form that open has opened. It closes the files after an error.
func Open(ctx context.Context, from Source, form Form,
	open func(context.Context, *Container) error) (*Container, error) {
	c := New(from, form)
	if err := open(ctx, c); err != nil {
		return nil, errors.Join(fault.WithFile(err, c.URI), c.closeFiles())
	}
	return c, nil
}

// File returns an open object, which stays open until Close, because each level of a directory is read from the same
// few files.
func (c *Container) File(ctx context.Context, uri string) (source.Reader, error) {
	if r := c.files[uri]; r != nil {
		return r, nil
	}
	if err := c.absent[uri]; err != nil {
		return nil, err
	}
	file, err := c.From.Opener.Open(ctx, uri)
	if err == nil {
		c.files[uri] = file
	} else if IsMissing(err) {
		// Only missing files are remembered: a network error may pass, and would otherwise stay until the container is
		// closed.
		c.absent[uri] = err
	}
	return file, err
}

// Place is a range of an object, or the whole object if its size is 0.
type Place struct {
	URI string
	Span
}

// Locate returns the open object and the range of a place.
func (c *Container) Locate(ctx context.Context, p Place) (source.Reader, Span, error) {
	file, err := c.File(ctx, p.URI)
	if err == nil && p.Size == 0 {
		p.Span = Span{Size: file.Size()}
	}
	return file, p.Span, err
}

// IsMissing reports whether an error says that a file does not exist.
func IsMissing(err error) bool {
	return fault.KindOf(err) == fault.NotFound || errors.Is(err, fs.ErrNotExist)
}

// Hold makes r the reader of the container's own file, which has more of it in memory.
func (c *Container) Hold(r source.Reader) { c.files[c.URI] = r }

func (c *Container) closeFiles() error {
	var errs []error
	for _, r := range c.files {
		errs = append(errs, r.Close())
	}
	c.files = map[string]source.Reader{}
	return errors.Join(errs...)
}

// Verify checks everything and adds its results to r.
func (c *Container) Verify(ctx context.Context, r *Report) error {
	unlock, err := c.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.deepen(ctx); err != nil {
		return err
	}
	var folders []bool
	for k := range c.levels {
		var err error
		if folders, err = c.verifyRows(ctx, k, folders, r); err != nil {
			return err
		}
	}
	return c.Reader.Verify(ctx, r)
}

// EachObject calls check for every row that has bytes, with the open object that they are in. It lists the missing
// source files of an index in r, whose rows it leaves out. It is for readers: the container is locked.
func (c *Container) EachObject(ctx context.Context, r *Report,
	check func(ctx context.Context, e store.Entry, file source.Reader) error) error {
	for k, level := range c.levels {
		for row := range level.Table.Len() {
			e, err := c.EntryOf(ctx, k, row)
			if err = cmp.Or(ctx.Err(), err); err != nil {
				return err
			}
			if e.URI == "" || slices.Contains(r.Absent, e.URI) {
				continue
			}
			open := c.File
			if e.Offset == store.Whole { // one of many files, which cannot all stay open
				open = c.From.Opener.Open
			}
			file, err := open(ctx, e.URI)
			if c.Form.Indexes() && fault.KindOf(err) == fault.NotFound {
				r.Absent = append(r.Absent, e.URI)
				continue
			}
			if err != nil {
				return fault.WithFile(err, e.URI)
			}
			err = check(ctx, e, file)
			if e.Offset == store.Whole {
				err = errors.Join(err, fault.WithFile(file.Close(), e.URI))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// sibling is what differs between the rows below one row. At level 0 of an index the rows of each object do.
type sibling struct {
	parent     int32
	object, id string
}

// verifyRows checks what holds for the rows of a level of every format: each has an id, a kind and a place, and a
// folder as its parent, no sibling has its id, and all values of the table can be read. above says which rows of
// the level above are folders. It returns the same of this level.
func (c *Container) verifyRows(ctx context.Context, k int, above []bool, r *Report) ([]bool, error) {
	level, err := c.Linked(ctx, k)
	if err != nil {
		return nil, err
	}
	r.Rows += int64(level.Table.Len())
	folders := make([]bool, level.Table.Len())
	seen := make(map[sibling]bool, len(folders))
	for row := range folders {
		entry, err := c.EntryOf(ctx, k, row)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		folders[row] = entry.Folder
		key := sibling{id: entry.ID}
		if k > 0 {
			key.parent = level.Parents[row]
			if !above[key.parent] {
				return nil, c.InRow(k, row, "its parent, row %d of level %d, is a FILE", key.parent, k-1)
			}
		}
		if c.Form.Indexes() {
			key.object = entry.URI
		}
		if seen[key] {
			return nil, c.InRow(k, row, "a sibling has the same %s %q", c.IDColumn, entry.ID)
		}
		seen[key] = true
		if !entry.Folder && c.Form.Older() { // the others count the bytes that they read
			r.Files++
			r.Bytes += entry.Size
		}
	}
	return folders, fault.WithFile(fault.WithPart(level.Table.Check(ctx), LevelName(k), 0), c.URI)
}

// InRow returns an error about a value in a row of a level.
func (c *Container) InRow(k, row int, format string, args ...any) error {
	return c.InTable(LevelName(k), row, format, args...)
}

// InTable returns an error about a value in a row of a table with a name.
func (c *Container) InTable(name string, row int, format string, args ...any) error {
	return fault.WithFile(fault.New(fault.Corrupt, name+" row "+strconv.Itoa(row), format, args...),
		c.URI)
}

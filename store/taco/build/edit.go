package build

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tables"
)

// Changes are changes of a container that leave the bytes of its files where they are.
type Changes struct {
	// Describe changes the description, if it is not nil. The result is checked.
	Describe func(c *Collection) error
	// Drop has columns that are removed, and Rename new names of columns. Both name a column of level 0, or as
	// "l1:NAME", "l2:NAME", … of a lower level. Columns are dropped first.
	Drop   []string
	Rename map[string]string
}

// Edit changes the description and the columns of a TACO 2 container in place: a ZIP, a folder, .tacocat, or a folder
// with one. o.More adds and replaces columns, after the drops and renames of c. Columns of .tacocat change at
// level 0 only. The ZIPs stay as they are, so the change lasts until Consolidate writes the index again. Append keeps
// it.
//
// Pixels stay where they are. New tables are appended to a ZIP, then one write puts their places into TACO_HEADER. The
// old tables stay in the file for readers that have it open. For a folder, a new one with links to its files is made
// beside it, and the two are exchanged. .tacocat is written again. So readers see the old container or the new one at
// any time, also after a kill, and the next run removes the leftovers of a killed one. Of two runs at a time, one is
// refused.
func Edit(ctx context.Context, path string, c Changes, o Options) (err error) {
	defer func() { err = fault.WithFile(err, path) }()
	if source.IsRemote(path) {
		return unsupported("file", "is not a local file: only these can be edited")
	}
	real, err := realPath(path)
	if err != nil {
		return err
	}
	locked := real
	if filepath.Base(real) == tacocatName { // as a run that appends does
		locked = filepath.Dir(real)
	}
	unlock, err := lockRuns(locked, "another run edits it, or appends to it")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	e := &editing{path: real, changes: c, writer: writer{o: o}}
	defer e.writer.defaults(real)()
	if err := e.read(ctx); err != nil {
		return err
	}
	return e.write(ctx)
}

// editing is one run of Edit.
type editing struct {
	path    string
	changes Changes
	writer  writer
	form    Form
	doc     json.RawMessage // COLLECTION.json as it was
	indexOf string          // of an index, the folder .tacocat
}

// columns reports whether columns change.
func (e *editing) columns() bool {
	return e.writer.o.adds() || len(e.changes.Drop) > 0 || len(e.changes.Rename) > 0 ||
		len(e.writer.collection.Columns) > 0
}

// read reads the container, and makes the changes in memory. Nothing is read of it afterwards but where files are.
func (e *editing) read(ctx context.Context) (err error) {
	dataset, err := taco.Open(ctx, e.writer.o.Opener, []string{e.path}, taco.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dataset.Close()) }()
	e.form, e.doc = dataset.Form(), dataset.Collection()
	parts := dataset.Parts()
	known := []Form{ZIP, Folder, Tacocat}
	if len(parts) != 1 || !slices.Contains(known, e.form) {
		return unsupported("file", "is a %s: a ZIP, a folder or an index of TACO 2 can be edited", e.form)
	}
	if e.indexOf = e.path; filepath.Base(e.path) != tacocatName {
		e.indexOf = pathname.Join(e.path, tacocatName)
	}
	collection, err := CollectionOf(dataset)
	if err != nil {
		return err
	}
	e.writer.collection = *collection
	if e.changes.Describe != nil {
		if err := e.changes.Describe(&e.writer.collection); err != nil {
			return err
		}
	}
	if extent := e.writer.collection.Extent; extent != collection.Extent {
		defer func() { e.writer.collection.Extent = extent }() // the extent of the samples does not replace a given one
	}
	if e.columns() {
		if err := e.readLevels(ctx, dataset); err != nil {
			return err
		}
	}
	return e.writer.collection.Check()
}

// readLevels reads the columns and changes them.
func (e *editing) readLevels(ctx context.Context, d *taco.Dataset) (err error) {
	writer := &e.writer
	read := wholeLevels
	if e.form == Tacocat {
		read = e.indexLevels
	}
	if writer.levels, err = read(ctx, d); err != nil {
		return err
	}
	were := make([]*tables.Table, len(writer.levels))
	for k, l := range writer.levels {
		were[k] = l.Table
	}
	if err := e.changes.apply(writer.levels, writer.collection.said); err != nil {
		return err
	}
	if err := writer.more(ctx); err != nil {
		return err
	}
	if err := writer.typed(ctx); err != nil {
		return err
	}
	if e.form == Tacocat {
		for k := 1; k < len(were); k++ {
			if writer.levels[k].Table != were[k] {
				return errInZIPs(k)
			}
		}
		return nil
	}
	if err := writer.measure(ctx); err != nil {
		return err
	}
	return writer.settle(ctx)
}

// indexLevels returns the levels of an index with all columns, and their rows if columns are made of them.
func (e *editing) indexLevels(ctx context.Context, d *taco.Dataset) (levels []*Level, err error) {
	for k := range d.Levels() {
		table, err := d.Level(ctx, k)
		if err != nil {
			return nil, err
		}
		level := &Level{}
		if e.writer.o.adds() {
			parents := make([]int32, table.Len())
			if k > 0 {
				if parents, err = d.Parents(ctx, k); err != nil {
					return nil, err
				}
			}
			if level, err = copiedLevel(ctx, d, table, k, upTo[int](table.Len()), parents); err != nil {
				return nil, err
			}
		}
		level.Table = table
		levels = append(levels, level)
	}
	return levels, nil
}

// errInZIPs is returned for columns of an index at a level below the top, which each folder has in its table __meta__.
func errInZIPs(k int) error {
	return unsupported(levelName(k), "its columns are in the ZIPs as well: edit these, and write the index again")
}

// apply drops and renames columns of the levels, and takes the descriptions of renamed ones along.
func (c *Changes) apply(levels []*Level, said map[string]string) error {
	for _, text := range c.Drop {
		k, name, err := find(levels, text)
		if err != nil {
			return err
		}
		levels[k].Table = levels[k].Table.Without(name)
	}
	for _, text := range slices.Sorted(maps.Keys(c.Rename)) {
		k, name, err := find(levels, text)
		if err != nil {
			return err
		}
		to := c.Rename[text]
		what := badColumn(to)
		if levels[k].Table.Index(to) >= 0 {
			what = "is there already"
		}
		if what != "" {
			return unsupported("column "+to, "%s", what)
		}
		levels[k].Table = levels[k].Table.Rename(func(column string) string {
			if column == name {
				return to
			}
			return column
		})
		if text := said[keyOf(k, name)]; text != "" {
			said[keyOf(k, to)] = text
		}
	}
	return nil
}

// find returns the level and the name of a column that the user wrote.
func find(levels []*Level, text string) (level int, name string, err error) {
	name = text
	if prefix, rest, ok := strings.Cut(text, ":"); ok && len(prefix) == 2 && prefix[0] == 'l' {
		if number, err := strconv.Atoi(prefix[1:]); err == nil {
			level, name = number, rest
		}
	}
	if level >= len(levels) {
		return 0, "", fault.New(fault.NotFound, "column "+text, fault.NoOffset, "there are levels 0 to %d",
			len(levels)-1)
	}
	if what := badColumn(name); what != "" {
		return 0, "", unsupported("column "+text, "%s", what)
	}
	if table := levels[level].Table; table.Index(name) < 0 {
		return 0, "", table.NoColumn(name)
	}
	return level, name, nil
}

// write writes the changed parts.
func (e *editing) write(ctx context.Context) error {
	switch e.form {
	case ZIP:
		return e.zip(ctx)
	case Folder:
		return e.folder(ctx)
	}
	return e.index(ctx)
}

// document returns COLLECTION.json. Unless columns change, it keeps the old members about tree and columns.
func (e *editing) document(ctx context.Context) ([]byte, error) {
	if e.writer.levels != nil && e.form != Tacocat {
		return e.writer.document(ctx)
	}
	var was map[string]json.RawMessage
	if err := json.Unmarshal(e.doc, &was); err != nil {
		return nil, fault.Wrap(fault.Corrupt, collName, fault.NoOffset, err)
	}
	var members []member
	for _, name := range computed {
		switch value, found := was[name]; {
		case name == fieldsMember && e.writer.levels != nil:
			fields := make([]member, len(e.writer.levels))
			for k, l := range e.writer.levels {
				fields[k] = member{levelName(k), fieldsOf(&e.writer.collection, k, l.Table)}
			}
			members = append(members, member{name, object(fields)})
		case found:
			members = append(members, member{name, value})
		}
	}
	return e.writer.collection.document(members...)
}

// index writes .tacocat.
func (e *editing) index(ctx context.Context) error {
	doc, err := e.document(ctx)
	if err != nil {
		return err
	}
	if e.writer.levels == nil {
		return replaceFile(pathname.Join(e.indexOf, collName), doc)
	}
	var files []entry
	for k, l := range e.writer.levels {
		data, err := encoded(ctx, l.Table, false)
		if err != nil {
			return err
		}
		files = append(files, entry{levelName(k) + ".parquet", data})
	}
	return writeTacocat(ctx, e.indexOf, append(files, entry{collName, doc}))
}

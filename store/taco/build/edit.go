package build

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
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

// Edit changes the description and the columns of a TACO 2 container in place: a ZIP or a folder. o.More adds and
// replaces columns, after the drops and renames of c. Of .tacocat and a folder with one, the description alone changes,
// until Consolidate writes the index again: Append keeps it.
//
// Pixels stay where they are. New tables are appended to a ZIP, then one write puts their places into TACO_HEADER. The
// old tables stay in the file for readers that have it open. For a folder, a new one with links to its files is made
// beside it, and the two are exchanged. So readers see the old container or the new one at any time, also after a kill,
// and the next run removes the leftovers of a killed one. Of two runs at a time, one is refused.
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
	// The folder around the index is locked, so that no run appends to it meanwhile.
	if filepath.Base(real) == tacocatName {
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
	if e.form == ZIP {
		return e.zip(ctx)
	}
	return e.folder(ctx)
}

// editing is one run of Edit.
type editing struct {
	path    string
	changes Changes
	writer  writer
	form    Form
	doc     json.RawMessage // COLLECTION.json as it was
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
	if e.form == Tacocat && filepath.Base(e.path) != tacocatName {
		e.path = pathname.Join(e.path, tacocatName)
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
		// The extent of the samples must not replace a given one.
		defer func() { e.writer.collection.Extent = extent }()
	}
	if e.columns() {
		if e.form == Tacocat {
			return unsupported("columns", "an index has those of its ZIPs: edit these, and write the index again")
		}
		if err := e.readLevels(ctx, dataset); err != nil {
			return err
		}
	}
	return e.writer.collection.Check()
}

// readLevels reads the columns and changes them.
func (e *editing) readLevels(ctx context.Context, d *taco.Dataset) (err error) {
	writer := &e.writer
	if writer.levels, err = wholeLevels(ctx, d); err != nil {
		return err
	}
	if err := e.changes.apply(writer.levels, writer.collection.said); err != nil {
		return err
	}
	// In this order, because columns that are added may be declared, and may have the positions of the extent.
	for _, step := range []func(context.Context) error{writer.more, writer.typed, writer.measure, writer.settle} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// apply drops and renames columns of the levels, and takes the descriptions of renamed ones along.
func (c *Changes) apply(levels []*Level, said map[string]string) error {
	for _, text := range c.Drop {
		depth, name, err := find(levels, text)
		if err != nil {
			return err
		}
		levels[depth].Table = levels[depth].Table.Without(name)
	}
	for _, text := range slices.Sorted(maps.Keys(c.Rename)) {
		depth, name, err := find(levels, text)
		if err != nil {
			return err
		}
		renamed := c.Rename[text]
		what := badColumn(renamed)
		if levels[depth].Table.Index(renamed) >= 0 {
			what = "is there already"
		}
		if what != "" {
			return unsupported("column "+renamed, "%s", what)
		}
		levels[depth].Table = levels[depth].Table.Rename(func(column string) string {
			if column == name {
				return renamed
			}
			return column
		})
		if text := said[keyOf(depth, name)]; text != "" {
			said[keyOf(depth, renamed)] = text
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

// document returns COLLECTION.json. Unless columns change, it keeps the old members about tree and columns.
func (e *editing) document(ctx context.Context) ([]byte, error) {
	if e.writer.levels != nil {
		return e.writer.document(ctx)
	}
	var was map[string]json.RawMessage
	if err := json.Unmarshal(e.doc, &was); err != nil {
		return nil, fault.Wrap(fault.Corrupt, collName, fault.NoOffset, err)
	}
	var members []member
	for _, name := range computed {
		if value, found := was[name]; found {
			members = append(members, member{name, value})
		}
	}
	return e.writer.collection.document(members...)
}

// zip writes the new tables of a ZIP behind its end, and then the TACO_HEADER that has their places.
func (e *editing) zip(ctx context.Context) (err error) {
	file, err := (&source.Files{}).Open(ctx, e.path)
	if err != nil {
		return err
	}
	layout, err := taco2.ReadLayout(ctx, file)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	f, err := os.OpenFile(e.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// No header names bytes past this end, because an interrupted run left them.
	if err := f.Truncate(layout.End); err != nil {
		return err
	}
	if err := e.behind(ctx, f, layout); err != nil {
		// The old header is in place, so that without the new tables the file is as it was.
		return errors.Join(err, f.Truncate(layout.End))
	}
	// The tables must be on the disk before the header that names them. The header is one write within one sector.
	if err := durable.SyncFile(f); err != nil {
		return errors.Join(err, f.Truncate(layout.End))
	}
	if _, err := disk(f).WriteAt(layout.Head, 0); err != nil {
		return err
	}
	return durable.SyncFile(f)
}

// behind writes the new tables and a directory of all entries behind the end of a ZIP, and sets its places.
func (e *editing) behind(ctx context.Context, f *os.File, l *taco2.Layout) error {
	if _, err := f.Seek(l.End, io.SeekStart); err != nil {
		return err
	}
	appended := newArchive(disk(f))
	appended.file.n = l.End
	appended.zip.SetOffset(l.End)
	places := slices.Clone(l.Places)
	if e.writer.levels == nil {
		doc, err := e.document(ctx)
		if err != nil {
			return err
		}
		if places[len(places)-1], err = appended.put(ctx, collName, held(doc)); err != nil {
			return err
		}
	} else {
		var err error
		for _, level := range e.writer.levels {
			level.takePlaces() // places of folders are set again as their tables are written
		}
		if places, err = e.writer.metadata(ctx, appended); err != nil {
			return err
		}
	}
	if err := appended.out.Flush(); err != nil {
		return err
	}
	pos, entries := appended.at(), appended.entries
	// Close writes a directory of the new entries alone: it is taken apart, since the file needs one of all entries.
	var directory bytes.Buffer
	appended.out.Reset(&directory)
	if err := errors.Join(appended.zip.Close(), appended.out.Flush()); err != nil {
		return err
	}
	replaced := map[string]bool{}
	fresh := taco2.ParseRecords(directory.Bytes(), entries)
	for _, r := range fresh {
		replaced[r.Name] = true
	}
	l.SetPlaces(places)
	var records []taco2.Record
	for _, r := range l.Records {
		if !replaced[r.Name] {
			records = append(records, r)
		}
	}
	_, err := appended.file.Write(taco2.AppendDirectory(nil, append(records, fresh...), pos))
	return err
}

// folder writes a folder of links to the files of the old one, and exchanges them.
func (e *editing) folder(ctx context.Context) error {
	writer := &e.writer
	if writer.levels == nil {
		doc, err := e.document(ctx)
		if err != nil {
			return err
		}
		return replaceFile(pathname.Join(e.path, collName), doc)
	}
	return durable.ReplaceFolder(e.path, func(folder string) error {
		if _, err := writer.metadata(ctx, localFolder(folder)); err != nil {
			return err
		}
		return e.others(folder)
	})
}

// others links the files that are not written again, also those that the tables do not list, such as a README or a
// mask. It copies permissions.
func (e *editing) others(to string) error {
	type mode struct {
		path string
		mode fs.FileMode
	}
	var folders []mode
	err := filepath.WalkDir(e.path, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(strings.TrimPrefix(path, e.path), string(filepath.Separator))
		now := pathname.Join(to, name)
		_, missing := os.Lstat(now)
		switch {
		case d.IsDir():
			info, err := d.Info()
			if err != nil {
				return err
			}
			folders = append(folders, mode{now, info.Mode().Perm()})
			if missing != nil {
				return os.Mkdir(now, 0o777)
			}
			return nil
		case missing == nil: // it was written again
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			// A relative link holds, since the new folder is beside the old one.
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(target, now)
		}
		return os.Link(path, now)
	})
	// The lower folders come first, because an upper one may then be closed for writers.
	for _, f := range slices.Backward(folders) {
		if err == nil {
			err = os.Chmod(f.path, f.mode)
		}
	}
	return err
}

package build

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
)

// Create writes a dataset to path. A ZIP replaces a file of that name; a folder must not exist. An error or a kill
// leaves an old container unchanged.
//
// Samples are checked before anything is written: an id that is not allowed or not unique, samples of level 0 whose
// trees differ, columns that differ at a level, or a description that lacks a member, are fault.Unsupported. The first
// file that cannot be read ends Create with an error that names it.
func Create(ctx context.Context, t *Taco, path string, o Options) (*Result, error) {
	w := &writer{o: o, collection: t.Collection}
	w.files = w.copyFiles
	if err := w.check(ctx, path); err != nil {
		return nil, err
	}
	defer w.defaults(path)()
	var err error
	if w.levels, err = levelsOf(ctx, t.Samples, w.o.Form); err != nil {
		return nil, err
	}
	if err = w.addFrom(ctx, t.Columns); err == nil {
		err = w.more(ctx)
	}
	if err != nil {
		return nil, err
	}
	return w.create(ctx, path)
}

// check returns an error, before files are read, if the dataset cannot be written to path or its description is
// incomplete.
func (w *writer) check(ctx context.Context, path string) error {
	if w.o.Form == Auto {
		w.o.Form = FormOf(path)
	}
	if w.o.Form.Old() && w.o.split() {
		return unsupported("dataset", "a TACO 0.2 is written as one file, not in parts")
	}
	if err := w.collection.CheckFor(w.o.Form); err != nil {
		return err
	}
	return Writable(ctx, path, w.o)
}

// CheckFor is Check for a container of a form: a Tortilla and shards have no description, and a TACO 0.2 needs
// curators.
func (c *Collection) CheckFor(form Form) error {
	switch {
	case !form.Described():
		return nil
	case form.Named():
		return c.checkNamed()
	case form.Old() && len(c.Curators) == 0:
		return unsupported(collName, "curators is missing: a TACO 0.2 must have at least one")
	}
	return c.Check()
}

// create writes checked levels to path.
func (w *writer) create(ctx context.Context, path string) (*Result, error) {
	// It was called, and would keep the samples and their table in memory: 400 MB of a million.
	w.o.More = nil
	if w.inspection == nil {
		if err := w.complete(ctx); err != nil {
			return nil, err
		}
	}
	if w.o.Form.Old() {
		if err := w.age(ctx); err != nil {
			return nil, err
		}
	}
	if !w.o.split() {
		return w.write(ctx, path)
	}
	return w.parts(ctx, path)
}

// write writes the container to path.
func (w *writer) write(ctx context.Context, path string) (*Result, error) {
	defer w.defaults(path)()
	if w.o.Store == nil {
		// Again, because another program may have made something there since Create has looked.
		if err := Writable(ctx, path, w.o); err != nil {
			return nil, err
		}
	}
	if !w.o.Form.OneFile() {
		return &w.result, w.onto(ctx, path, w.into)
	}
	archive, err := w.archived(ctx)
	switch {
	case err != nil:
	case w.o.Store != nil:
		err = fault.WithFile(w.object(ctx, path, archive), path)
	default:
		err = durable.WriteFile(path, func(f *os.File) error { return archive.writeTo(ctx, disk(f)) })
	}
	return &w.result, err
}

// archived returns the archive of a form that is one file, or of a part: a ZIP unless the form says otherwise.
func (w *writer) archived(ctx context.Context) (l *loaded, err error) {
	write := w.zip
	switch {
	case w.o.Form == Cozip:
		write = w.cozip
	case w.o.Form.Older():
		write = w.tortilla
	}
	l = &loaded{made: func(f archiveFile) error { return write(ctx, f) }}
	if w.o.Store != nil {
		l.size, err = w.planned(ctx)
	}
	return l, err
}

// defaults fills in the options, and returns what ends the use of them.
func (w *writer) defaults(path string) func() {
	if w.o.Workers <= 0 {
		w.o.Workers = max(4, runtime.GOMAXPROCS(0))
	}
	if w.o.Form == Auto {
		w.o.Form = FormOf(path)
	}
	return w.o.open()
}

// planned returns about how many bytes the files have.
func (w *writer) planned(ctx context.Context) (size int64, err error) {
	if len(w.levels) == 0 {
		return w.o.Bytes, nil
	}
	sizes, err := w.sizes(ctx)
	for _, n := range sizes {
		size += n
	}
	return size, err
}

// Writable returns an error if an existing file or folder at path prevents writing a container of these options there.
// A program can call it before a long run. In a store, a container that is one object is replaced, and objects below
// path prevent a folder, unless an interrupted run left them.
func Writable(ctx context.Context, path string, o Options) error {
	form := o.Form
	if form == Auto {
		form = FormOf(path)
	}
	if o.split() {
		form = Folder
	}
	bad := func(part, what string) error { return fault.WithFile(unsupported(part, "%s", what), path) }
	switch {
	case form.Indexes():
		return bad("file", "is an index of ZIPs, which holds no samples")
	case o.Store != nil && form.OneFile():
		return nil
	case o.Store != nil:
		_, err := interrupted(ctx, o.Store, prefixOf(path))
		return err
	case source.IsRemote(path):
		return bad("file", "containers are written to local files only")
	case form.OneFile():
		return replaceable(path)
	}
	_, err := os.Lstat(path)
	if err == nil {
		return bad("folder", newFolder)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// zip writes the container as a ZIP: TACO_HEADER, then what taco2 writes.
func (w *writer) zip(ctx context.Context, f archiveFile) error {
	archive := newArchive(f)
	head, err := archive.reserve()
	if err != nil {
		return err
	}
	places, err := w.taco2(ctx, archive)
	if err != nil {
		return err
	}
	return archive.close(head, places)
}

// taco2 writes the files, then the tables of folders, then the tables of levels, and COLLECTION.json. It returns the
// places of the latter.
func (w *writer) taco2(ctx context.Context, t sink) ([]span, error) {
	err := w.data(ctx, t)
	if err == nil {
		err = w.settle(ctx)
	}
	if err != nil {
		return nil, err
	}
	return w.metadata(ctx, t)
}

// data writes the files, and notes their places in a container that is one file.
func (w *writer) data(ctx context.Context, t sink) error {
	_, oneFile := t.(*archive)
	err := w.files(ctx, func(p place, l *loaded) error {
		if w.o.Form.Named() && l.size == 0 {
			return w.emptyFile(p)
		}
		place, err := t.put(ctx, dataFolder+p.path, l)
		if level := w.levels[p.level]; oneFile {
			level.spans = append(level.spans, make([]span, len(level.Rows)-len(level.spans))...)
			level.spans[p.row] = place
		}
		return err
	})
	// Levels of folders alone get spans too, so that metadata can note where their tables are.
	for _, l := range w.levels {
		if oneFile {
			l.spans = append(l.spans, make([]span, len(l.Rows)-len(l.spans))...)
		}
	}
	return err
}

// emptyFile returns the error about a file without bytes.
func (w *writer) emptyFile(p place) error {
	id := w.levels[0].Rows[w.topRow(p.level, int32(p.row))].ID
	_, file, _ := strings.Cut(p.path, "/")
	return unsupported("sample "+strconv.Quote(id), "%s has no bytes: files of TACO 3 have some", file)
}

// onto calls fill with what takes the files of a container that is a folder. The container appears at path when it is
// complete.
func (w *writer) onto(ctx context.Context, path string, fill func(ctx context.Context, t folderSink) error) error {
	if w.o.Store != nil {
		return fault.WithFile(w.inStore(ctx, path, fill), path)
	}
	return durable.WriteFolder(path, func(folder string) error { return fill(ctx, localFolder(folder)) })
}

// into writes a container that is a folder.
func (w *writer) into(ctx context.Context, t folderSink) error {
	if w.o.Form != CozipFolder {
		_, err := w.taco2(ctx, t)
		return err
	}
	block, err := w.taco3(ctx, t)
	// The description comes last, because it makes the folder a container.
	if err == nil {
		_, err = putAll(ctx, t, "", append(block[1:], block[0]))
	}
	return err
}

// localFolder is a new local folder. Its files are synced afterwards. Ids were checked and cannot lead out of it, and a
// new folder holds no links.
type localFolder string

func (t localFolder) path(name string) string { return pathname.Join(string(t), name) }

func (t localFolder) put(ctx context.Context, name string, l *loaded) (none span, err error) {
	path := t.path(name)
	if err := os.MkdirAll(pathname.Dir(path), 0o777); err != nil {
		return none, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return none, err
	}
	return none, errors.Join(l.writeTo(ctx, disk(file)), file.Close())
}

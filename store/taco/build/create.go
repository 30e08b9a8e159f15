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
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
)

// Create writes a dataset to path. A ZIP replaces a file of that name; a folder must not exist. An error or a kill
// leaves an old container unchanged.
//
// Samples are checked before anything is written: an id that is invalid or repeated, samples of level 0 whose trees
// differ, columns that differ at a level, or a description that lacks a member, are fault.Unsupported. The first file
// that cannot be read ends Create with an error that names it.
func Create(ctx context.Context, t *Taco, path string, o Options) (*Result, error) {
	w := newWriter(path, t.Collection, o)
	if err := w.check(path); err != nil {
		return nil, err
	}
	defer w.defaults()()
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
func (w *containerWriter) check(path string) error {
	check := w.collection.Check
	if w.o.Form.Named() {
		check = w.collection.checkNamed
	}
	if err := check(); err != nil {
		return err
	}
	return writable(path, w.o.Form)
}

// create writes checked levels to path.
func (w *containerWriter) create(ctx context.Context, path string) (*Result, error) {
	// It was called, and would keep the samples and their table in memory: 400 MB of a million.
	w.o.More = nil
	if w.inspection == nil {
		if err := w.complete(ctx); err != nil {
			return nil, err
		}
	}
	// Again, because another program may have made something there since Create has looked.
	if err := writable(path, w.o.Form); err != nil {
		return nil, err
	}
	if !w.o.Form.OneFile() {
		return &w.result, durable.WriteFolder(path, func(folder string) error {
			return w.into(ctx, localFolder(folder))
		})
	}
	write := w.zip
	if w.o.Form == Cozip {
		write = w.cozip
	}
	return &w.result, durable.WriteFile(path, func(f *os.File) error { return write(ctx, disk(f)) })
}

// defaults fills in the options, and returns what ends the use of them.
func (w *containerWriter) defaults() func() {
	if w.o.Workers <= 0 {
		w.o.Workers = max(4, runtime.GOMAXPROCS(0))
	}
	return w.o.open()
}

// writable returns an error if an existing file or folder at path prevents writing a container of a form there.
func writable(path string, form Form) error {
	bad := func(part, what string) error { return fault.WithFile(unsupported(part, "%s", what), path) }
	switch {
	case form.Indexes():
		return bad("file", "is an index of ZIPs, which holds no samples")
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
func (w *containerWriter) zip(ctx context.Context, f archiveFile) error {
	archive := newArchive(f)
	head, err := archive.reserve(taco2.HeaderName, make([]byte, taco2.HeaderBytes), nil)
	if err != nil {
		return err
	}
	places, err := w.taco2(ctx, archive)
	if err != nil {
		return err
	}
	header := taco2.HeaderOf(places)
	if err := archive.seal(head, header); err != nil {
		return err
	}
	archive.patch(int64(taco2.HeaderAt), header)
	return archive.finish()
}

// taco2 writes the files, then the tables of folders, then the tables of levels, and COLLECTION.json. It returns the
// places of the latter.
func (w *containerWriter) taco2(ctx context.Context, t sink) ([]span, error) {
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
func (w *containerWriter) data(ctx context.Context, t sink) error {
	_, oneFile := t.(*zipArchive)
	err := w.copyFiles(ctx, func(p levelRow, l *loaded) error {
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
	// Levels of folders alone get spans too, so metadata can note where their tables are.
	for _, l := range w.levels {
		if oneFile {
			l.spans = append(l.spans, make([]span, len(l.Rows)-len(l.spans))...)
		}
	}
	return err
}

// emptyFile returns the error about a file without bytes.
func (w *containerWriter) emptyFile(p levelRow) error {
	id := w.levels[0].Rows[w.topRow(p.level, int32(p.row))].ID
	_, file, _ := strings.Cut(p.path, "/")
	return unsupported("sample "+strconv.Quote(id), "%s has no bytes: files of TACO 3 have some", file)
}

// into writes a container that is a folder.
func (w *containerWriter) into(ctx context.Context, t localFolder) error {
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

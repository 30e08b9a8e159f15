package build

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/source"
)

// Create writes a dataset to path. A ZIP replaces a file of that name; a folder must not be there. On an error, or if
// the program is killed, what was there is as it was.
//
// Samples are checked before anything is written: an id that is not allowed or not unique, samples of level 0 whose
// trees differ, columns that differ at a level, or a description that lacks a member, are fault.Unsupported. The first
// file that cannot be read ends Create with an error that names it.
func Create(ctx context.Context, t *Taco, path string, o Options) (*Result, error) {
	w := &writer{o: o, collection: t.Collection}
	if err := w.collection.Check(); err != nil {
		return nil, err
	}
	var err error
	if w.levels, err = levelsOf(ctx, t.Samples); err != nil {
		return nil, err
	}
	return w.create(ctx, path)
}

// create writes checked levels to path.
func (w *writer) create(ctx context.Context, path string) (*Result, error) {
	w.files = w.copyFiles
	return w.write(ctx, path)
}

// write writes the container to path.
func (w *writer) write(ctx context.Context, path string) (*Result, error) {
	if w.o.Opener == nil {
		files := &source.Files{}
		defer files.Close()
		w.o.Opener = files
	}
	if w.o.Workers <= 0 {
		w.o.Workers = max(4, runtime.GOMAXPROCS(0))
	}
	if w.o.Form == Auto {
		w.o.Form = formOf(path)
	}
	if source.IsRemote(path) {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "file", fault.NoOffset,
			"containers are written to local files only"), path)
	}
	if w.o.Form == ZIP {
		if err := replaceable(path); err != nil {
			return nil, err
		}
		err := durable.WriteFile(path, func(f *os.File) error { return w.zip(ctx, disk(f)) })
		return &w.result, err
	}
	if _, err := os.Lstat(path); err == nil {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "folder", fault.NoOffset,
			"exists: a container that is a folder needs a new name"), path)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := durable.NewFolder(path)
	if err != nil {
		return nil, err
	}
	if err = w.folder(ctx, f.Path); err == nil {
		err = f.Place(path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Remove())
	}
	return &w.result, nil
}

// replaceable refuses what a file must not replace: a rename would make a file of a device, such as /dev/stdout, or of
// a pipe. It would fail for a folder too, but only after all was written.
func replaceable(path string) error {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !st.Mode().IsRegular():
		return fault.WithFile(fault.New(fault.Unsupported, "file", fault.NoOffset,
			"exists and is not a file: a container that is a ZIP replaces files only"), path)
	}
	return nil
}

// formOf returns the form that a name says.
func formOf(path string) Form {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".tacozip", ".zip":
		return ZIP
	}
	return Folder
}

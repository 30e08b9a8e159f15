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
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
)

// Form is the form of a TACO 2 container.
type Form uint8

// Forms.
const (
	// Auto is ZIP for names that end in .tacozip or .zip, otherwise Folder.
	Auto Form = iota
	ZIP
	Folder
)

// Options configure Create. The zero value selects the defaults.
type Options struct {
	// Form is the form of the container.
	Form Form
	// Opener opens the files of samples. The default opens local files.
	Opener source.Opener
	// Workers is how many files are read at a time, and how many tables are written. The default is the number
	// of processors, at least 4. The container does not depend on it.
	Workers int
	// Progress is called after every file, from one goroutine at a time.
	Progress func(done, total int)
}

// Result counts what was written.
type Result struct {
	Samples int   // of level 0, without padding
	Files   int   // with bytes, padding included
	Folders int   // with a table of their own
	Bytes   int64 // of the files
}

// Tests replace this to fail.
var disk = func(f *os.File) archiveFile { return f }

// Create writes a dataset to path. A ZIP replaces a file of that name; a folder must not be there. On an error, or if
// the program is killed, what was there is as it was.
//
// Samples are checked before anything is written: an id that is not allowed or not unique, samples of level 0 whose
// trees differ, columns that differ at a level, or a description that lacks a member, are fault.Unsupported. The first
// file that cannot be read ends Create with an error that names it.
func Create(ctx context.Context, t *Taco, path string, o Options) (*Result, error) {
	w := &writer{o: o, collection: t.Collection}
	if err := w.collection.check(); err != nil {
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

// writer writes one container.
type writer struct {
	o          Options
	collection Collection
	levels     []*level
	result     Result
}

// place is a row of a level.
type place struct {
	level, row int
	path       string
}

// files returns the files in the order in which they are written: those of a sample of level 0 one after the other, so
// that reading a sample is one request.
func (w *writer) files() []place {
	var all []place
	var walk func(k, row int, path string)
	walk = func(k, row int, path string) {
		l := w.levels[k]
		if !l.folders[row] {
			all = append(all, place{k, row, path})
			return
		}
		for c := l.first[row]; c < l.first[row+1]; c++ {
			walk(k+1, int(c), path+"/"+w.levels[k+1].ids[c])
		}
	}
	for i, id := range w.levels[0].ids {
		walk(0, i, id)
		if !isPadding(id) {
			w.result.Samples++
		}
	}
	return all
}

// copyFiles loads the files in order and hands each to put.
func (w *writer) copyFiles(ctx context.Context, put func(p place, l *loaded) error) error {
	files := w.files()
	return ordered(ctx, len(files), w.o.Workers,
		func(ctx context.Context, i int) (*loaded, error) {
			return load(ctx, w.o.Opener, &w.levels[files[i].level].content[files[i].row])
		},
		func(i int, l *loaded) error {
			err := put(files[i], l)
			if cerr := l.close(); err == nil {
				err = cerr
			}
			w.result.Files++
			w.result.Bytes += l.size
			if err == nil && w.o.Progress != nil {
				w.o.Progress(i+1, len(files))
			}
			return err
		},
		func(l *loaded) { _ = l.close() })
}

// folderRows returns the folders of a level.
func (w *writer) folderRows(k int) (rows []int) {
	for i, folder := range w.levels[k].folders {
		if folder {
			rows = append(rows, i)
		}
	}
	return rows
}

// Names in a container.
const (
	dataFolder = "DATA/"
	metaSuffix = "/" + taco2.MetaName
	collName   = "COLLECTION.json"
)

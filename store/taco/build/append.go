package build

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
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
	"github.com/chaski-eo/chaski/tables"
)

// journalName is a file with the name of the ZIP that is being appended. It is written before that ZIP and removed when
// the index lists the ZIP.
const journalName = ".chaski-append"

// Append adds samples to a container in parts: a folder of ZIPs with an index. write gets the path and the description
// of the new ZIP and writes it. A ZIP with another tree, other columns or an id that the index has is refused. Then
// each index of the folder is replaced. The other ZIPs stay as they are. So do the description and the columns of level
// 0 that the index has: Edit changes them in the index alone.
//
// Readers go by the index, so at any time they see either the old container or the new one. A ZIP that a killed run
// left there is removed by the next run; of two runs at a time, one is refused.
func Append(ctx context.Context, folder string, o Options,
	write func(path string, c Collection) (*Result, error)) (_ *Result, err error) {
	if st, err := os.Stat(folder); err == nil && !st.IsDir() {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "container", fault.NoOffset,
			"is a file: samples are appended to a folder of ZIPs with an index"), folder)
	}
	unlock, err := lockRuns(folder, indexBusy)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	defer o.open()()
	a := &appending{folder: folder, opener: o.Opener}
	if err := a.open(ctx); err != nil {
		return nil, fault.WithFile(err, folder)
	}
	if err := a.recover(); err != nil {
		return nil, err
	}
	return a.run(ctx, o, write)
}

// appending is one run of Append.
type appending struct {
	folder     string
	opener     source.Opener
	indexes    []string    // paths
	zips       []string    // names, of all indexes
	collection *Collection // of the first index
	top        *Level      // level 0 of the first index with tables, settled; nil if none has tables
	topOf      string      // the name of that index
}

// open reads which ZIPs the indexes have.
func (a *appending) open(ctx context.Context) error {
	for _, name := range []string{tacocatName, tacocatFileName, tacollectionName} {
		path := pathname.Join(a.folder, name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		names, collection, top, err := indexed(ctx, a.opener, path)
		if err != nil {
			return err
		}
		a.collection = cmp.Or(a.collection, collection)
		if a.top == nil && top != nil {
			a.top, a.topOf = top, name
		}
		a.indexes = append(a.indexes, path)
		for _, name := range names {
			if !slices.Contains(a.zips, name) {
				a.zips = append(a.zips, name)
			}
		}
	}
	if a.indexes == nil {
		return fault.New(fault.NotFound, "index", fault.NoOffset,
			"there is none: a folder of ZIPs needs %s, %s or %s", tacocatName, tacocatFileName, tacollectionName)
	}
	return nil
}

// indexed returns the names of the ZIPs of an index, its description, and its level 0 if it has tables.
func indexed(ctx context.Context, o source.Opener, path string) (names []string, c *Collection, top *Level, err error) {
	dataset, err := taco.Open(ctx, o, []string{path}, taco.Options{})
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() { err = errors.Join(err, dataset.Close()) }()
	var doc struct {
		Sources struct {
			Files []string `json:"files"`
		} `json:"taco:sources"`
		Tacocat struct {
			Files []string `json:"dataset_sources"`
		} `json:"_tacocat"`
	}
	if err := json.Unmarshal(dataset.Collection(), &doc); err != nil {
		return nil, nil, nil, fault.Wrap(fault.Corrupt, collName, fault.NoOffset, err)
	}
	if names = doc.Sources.Files; names == nil {
		names = doc.Tacocat.Files
	}
	if len(names) == 0 {
		return nil, nil, nil, fault.WithFile(fault.New(fault.Unsupported, collName, fault.NoOffset,
			"does not say of which ZIPs it is"), path)
	}
	for _, name := range names {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return nil, nil, nil, fault.WithFile(fault.New(fault.Corrupt, collName, fault.NoOffset,
				"%q is not a file below its folder", name), path)
		}
	}
	if c, err = CollectionOf(dataset); err == nil && FormOf(path) != Tacollection {
		top, err = topOf(ctx, dataset)
	}
	return names, c, top, err
}

// topOf returns level 0 of an index with its columns in memory.
func topOf(ctx context.Context, d *taco.Dataset) (*Level, error) {
	table, err := d.Level(ctx, 0)
	if err != nil {
		return nil, err
	}
	rows := upTo[int](table.Len())
	l, err := copiedLevel(ctx, d, table, 0, rows, make([]int32, len(rows)))
	if err != nil {
		return nil, err
	}
	w := &writer{levels: []*Level{l}}
	return l, w.settle(ctx)
}

// recover removes the ZIP of a run that was killed before the index had it.
func (a *appending) recover() error {
	path := pathname.Join(a.folder, journalName)
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !st.Mode().IsRegular() { // a pipe would make the run wait
		err = fault.WithFile(fault.New(fault.Unsupported, "file", fault.NoOffset, "is not a file of a run"), path)
	}
	if err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	// A journal holds the name of a part. With any other content no file is removed.
	if name := string(data); isPart(name) && !slices.Contains(a.zips, name) {
		if err := removed(pathname.Join(a.folder, name)); err != nil {
			return err
		}
	}
	return os.Remove(path)
}

// isPart reports whether a part may have this name.
func isPart(name string) bool {
	if len(name) != len(partName(0)) {
		return false
	}
	n, err := strconv.ParseUint(name[len("part"):len("part")+4], 10, 32)
	return err == nil && name == partName(int(n))
}

// run writes the new ZIP and the indexes.
func (a *appending) run(ctx context.Context, o Options,
	write func(path string, c Collection) (*Result, error)) (r *Result, err error) {
	name, err := a.free()
	if err != nil {
		return nil, err
	}
	journal, zip := pathname.Join(a.folder, journalName), pathname.Join(a.folder, name)
	err = durable.WriteFile(journal, func(f *os.File) error {
		_, err := io.WriteString(disk(f), name)
		return err
	})
	done := 0 // indexes that have the ZIP
	defer func() {
		if done == 0 { // no index lists the ZIP
			err = errors.Join(err, removed(zip))
		}
		err = errors.Join(err, removed(journal))
	}()
	if err != nil { // its name may be there all the same
		return nil, err
	}
	c := *a.collection
	c.Extent = nil // that of the new samples
	if r, err = write(zip, c); err != nil {
		return nil, err
	}
	index, err := a.join(ctx, zip)
	if err != nil {
		return nil, err
	}
	for _, path := range a.indexes {
		err := writeIndex(ctx, index, path, FormOf(path))
		if err == nil || !a.old(ctx, path, name) {
			done++ // also if only the sync of its name failed
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// join returns the content of the indexes with one more ZIP.
func (a *appending) join(ctx context.Context, zip string) (*index, error) {
	var zips []string
	for _, name := range a.zips {
		zips = append(zips, pathname.Join(a.folder, name))
	}
	x := &index{ids: map[string]string{}, kept: a.topOf}
	o := Options{Opener: a.opener}
	err := gather(ctx, zips, a.indexes[0], x, o)
	if err == nil {
		err = fault.WithFile(x.keep(a), a.folder)
	}
	if err == nil {
		err = gather(ctx, []string{zip}, a.indexes[0], x, o)
	}
	return x, err
}

// keep replaces what follows from the ZIPs by what the indexes say: the description, and the columns of level 0. The
// places of samples stay as the ZIPs say.
func (x *index) keep(a *appending) error {
	x.collection = *a.collection
	if a.top != nil {
		places, err := tables.Concat(x.levels[0], tables.Intersection)
		if err != nil {
			return err
		}
		if !slices.Equal(x.tops, a.top.ids()) {
			return fault.New(fault.Unsupported, a.topOf, fault.NoOffset, "its samples are not the samples of its "+
				"ZIPs in their order: write it again with 'chaski pack -o %s FOLDER'", a.topOf)
		}
		var ours []int
		for i, c := range places.Columns() {
			if strings.HasPrefix(c.Name, "internal:") {
				ours = append(ours, i)
			}
		}
		x.keeps = true
		x.levels[0] = []*tables.Table{tables.Join(a.top.Table, places.Select(ours))}
	}
	for k := range x.fields {
		t := x.levels[k][0].Without(taco.SourceColumn)
		x.fields[k].value = fieldsOf(&x.collection, k, t)
	}
	return nil
}

// removed removes a file that may not be there.
func removed(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// old reports whether an index lacks a ZIP.
func (a *appending) old(ctx context.Context, path, name string) bool {
	names, _, _, err := indexed(ctx, &source.Files{}, path)
	return err == nil && !slices.Contains(names, name)
}

// free returns an unused name for a part.
func (a *appending) free() (string, error) {
	for i := len(a.zips); i < 10000; i++ {
		if _, err := os.Lstat(pathname.Join(a.folder, partName(i))); errors.Is(err, fs.ErrNotExist) {
			return partName(i), nil
		} else if err != nil {
			return "", err
		}
	}
	return "", fault.WithFile(fault.New(fault.Limit, "folder", fault.NoOffset, "has 10,000 parts"), a.folder)
}

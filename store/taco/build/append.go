package build

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
)

// journalName is a file with the name of the ZIP that is being appended. It is written before that ZIP and removed when
// the index lists the ZIP.
const journalName = ".chaski-append"

// Append adds samples to a container in parts: a folder of ZIPs with an index. write gets the path and the description
// of the new ZIP and writes it. A ZIP with another tree, other columns or an id that another has is refused. Then each
// index of the folder is written anew, as Consolidate does it, with the description that the first one has. The other
// ZIPs stay as they are.
//
// Readers go by the index, so at any time they see either the old container or the new one. A ZIP that a killed run
// left there is removed by the next run; of two runs at a time, one is refused.
func Append(ctx context.Context, folder string, o Options,
	write func(path string, c Collection) (*Result, error)) (_ *Result, err error) {
	if st, err := os.Stat(folder); err == nil && !st.IsDir() {
		return nil, fault.WithFile(unsupported("container",
			"is a file: samples are appended to a folder of ZIPs with an index"), folder)
	}
	unlock, err := lockRuns(folder, indexBusy)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	defer o.open()()
	job := &appending{folder: folder, opener: o.Opener}
	if err := job.open(ctx); err != nil {
		return nil, fault.WithFile(err, folder)
	}
	if err := job.recover(); err != nil {
		return nil, err
	}
	return job.run(ctx, write)
}

// appending is one run of Append.
type appending struct {
	folder  string
	opener  source.Opener
	indexes []string // paths
	zips    []string // names, of all indexes
	// described is the description that the first one has.
	described *Collection
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
		collection, zips, err := indexed(ctx, a.opener, path)
		if err != nil {
			return fault.WithFile(err, path)
		}
		a.described = cmp.Or(a.described, collection)
		a.indexes = append(a.indexes, path)
		for _, name := range zips {
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

// indexed reads the description of an index, and finds its ZIPs.
func indexed(ctx context.Context, o source.Opener, path string) (_ *Collection, zips []string, err error) {
	dataset, err := taco.Open(ctx, o, []string{path}, taco.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, dataset.Close()) }()
	var doc struct {
		Sources sources `json:"taco:sources"`
	}
	if err := json.Unmarshal(dataset.Collection(), &doc); err != nil {
		return nil, nil, fault.Wrap(fault.Corrupt, collName, fault.NoOffset, err)
	}
	if zips = doc.Sources.Files; len(zips) == 0 {
		return nil, nil, unsupported(collName, "does not name its ZIPs: write it again with "+
			"'chaski pack -o %s FOLDER'", filepath.Base(path))
	}
	for _, name := range zips {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return nil, nil, fault.New(fault.Corrupt, collName, fault.NoOffset,
				"%q is not a file below its folder", name)
		}
	}
	collection, err := CollectionOf(dataset)
	return collection, zips, err
}

// recover removes the ZIP of a run that was killed before the index had it.
func (a *appending) recover() error {
	path := pathname.Join(a.folder, journalName)
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// A pipe would make the run wait.
	if err == nil && !st.Mode().IsRegular() {
		err = fault.WithFile(unsupported("file", "is not a file of a run"), path)
	}
	if err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	// A journal holds the name of a part: one with any other content must not remove a file.
	if name := string(data); partPattern.MatchString(name) && !slices.Contains(a.zips, name) {
		if err := removed(pathname.Join(a.folder, name)); err != nil {
			return err
		}
	}
	return os.Remove(path)
}

// partPattern is what names parts have: see partName.
var partPattern = regexp.MustCompile(`^part[0-9]{4}\.tacozip$`)

// run writes the new ZIP and the indexes.
func (a *appending) run(
	ctx context.Context, write func(path string, c Collection) (*Result, error),
) (r *Result, err error) {
	name, err := a.free()
	if err != nil {
		return nil, err
	}
	journal, zip := pathname.Join(a.folder, journalName), pathname.Join(a.folder, name)
	err = replaceFile(journal, []byte(name))
	done := 0 // indexes that have the ZIP
	defer func() {
		if done == 0 { // no index lists the ZIP
			err = errors.Join(err, removed(zip))
		}
		err = errors.Join(err, removed(journal))
	}()
	// Not before the removal is deferred, because the journal may be there all the same.
	if err != nil {
		return nil, err
	}
	c := *a.described
	// The extent of all samples would stand in place of the extent of the new ones.
	c.Extent = nil
	if r, err = write(zip, c); err != nil {
		return nil, err
	}
	x, err := a.join(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, path := range a.indexes {
		err := writeIndex(ctx, x, path, FormOf(path), nil)
		// An index that has the ZIP counts even if the sync of its name failed: the ZIP must not be removed then.
		if err == nil || !a.old(ctx, path, name) {
			done++
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// join makes the index of all ZIPs and a new one anew. It keeps the description that the index has.
func (a *appending) join(ctx context.Context, name string) (*index, error) {
	joined := &index{ids: map[string]string{}, repeats: true}
	add := func(names ...string) error {
		var zips []string
		for _, name := range names {
			zips = append(zips, pathname.Join(a.folder, name))
		}
		return gather(ctx, zips, a.indexes[0], joined, Options{Opener: a.opener})
	}
	if err := add(a.zips...); err != nil {
		return nil, err
	}
	joined.repeats = false
	if err := add(name); err != nil {
		return nil, err
	}
	extent := joined.collection.Extent
	// An extent that Edit has removed must not come back.
	if joined.collection = *a.described; joined.collection.Extent != nil {
		joined.collection.Extent.cover(extent)
	}
	return joined, nil
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
	_, zips, err := indexed(ctx, &source.Files{}, path)
	return err == nil && !slices.Contains(zips, name)
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

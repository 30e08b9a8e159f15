package build

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
)

// ZIPsIn returns the paths of the files *.tacozip in a folder that are not hidden, or without any those of the files
// *.zip, which TACO 3 has, in the order of their bytes.
func ZIPsIn(folder string) (zips []string, err error) {
	entries, err := os.ReadDir(folder)
	for _, ending := range []string{".tacozip", ".zip"} {
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ending) && !strings.HasPrefix(e.Name(), ".") {
				zips = append(zips, pathname.Join(folder, e.Name()))
			}
		}
		if zips != nil {
			break
		}
	}
	return zips, err
}

// lockRuns keeps other runs from a container, or from the indexes of a folder, until unlock is called. The path may be
// a link. busy is the error about another run.
func lockRuns(path, busy string) (unlock func() error, err error) {
	target, err := realPath(path)
	if err != nil {
		return nil, err
	}
	lock, err := durable.Lock(target)
	switch {
	case errors.Is(err, durable.ErrLocked):
		return nil, fault.WithFile(unsupported("container", "%s", busy), path)
	case errors.Is(err, errors.ErrUnsupported):
		return func() error { return nil }, nil
	case err != nil:
		return nil, err
	}
	return lock.Close, nil
}

// indexBusy is the error about another run that locks the folder of an index.
const indexBusy = "another run appends to it, or writes an index"

// zipName returns the name of a ZIP in an index that is in a folder, which must not be one of taken.
func zipName(folder, zip string, taken []string) (string, error) {
	name, below := strings.CutPrefix(zip, prefixOf(folder))
	if !source.IsRemote(folder) && !source.IsRemote(zip) {
		base, err := realPath(folder)
		if err != nil {
			return "", err
		}
		file, err := realPath(zip)
		if err != nil {
			return "", err
		}
		name, err = filepath.Rel(base, file)
		name, below = filepath.ToSlash(name), err == nil && filepath.IsLocal(name)
	}
	what := ""
	switch {
	case !below:
		what = "does not lie in the folder of the index, " + strconv.Quote(folder) + ", or below it"
	case slices.Contains(taken, name):
		what = "is named twice"
	default:
		return name, nil
	}
	return "", unsupported("file", "%s", what)
}

// realPath returns a path from the root, without links.
func realPath(path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	return pathname.Abs(path)
}

// folderOf returns the folder of a local path or a URI.
func folderOf(path string) string {
	if source.IsRemote(path) {
		return path[:strings.LastIndexByte(path, '/')]
	}
	return pathname.Dir(path)
}

// oneFile returns an index that is one file, of its tables and its description.
func oneFile(form Form, entries []entry) []byte {
	doc := entries[len(entries)-1].data
	if form == Tacollection {
		return doc
	}
	var lengths []int
	var contents [][]byte
	for _, e := range entries {
		lengths, contents = append(lengths, len(e.data)), append(contents, e.data)
	}
	return slices.Concat(taco2.TacocatHeader(lengths[:len(entries)-1], len(doc)), slices.Concat(contents...))
}

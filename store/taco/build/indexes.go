package build

import (
	"errors"
	"os"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
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

// lockIndexes keeps other runs from the indexes of a folder until unlock is called. The folder may be a link.
func lockIndexes(folder string) (unlock func() error, err error) {
	path, err := realPath(folder)
	if err != nil {
		return nil, err
	}
	lock, err := durable.Lock(path)
	switch {
	case errors.Is(err, durable.ErrLocked):
		return nil, fault.WithFile(fault.New(fault.Unsupported, "folder", fault.NoOffset,
			"another run appends to it, or writes an index"), folder)
	case errors.Is(err, errors.ErrUnsupported):
		return func() error { return nil }, nil
	case err != nil:
		return nil, err
	}
	return lock.Close, nil
}

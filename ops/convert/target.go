package convert

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/store/tiledb"
)

// newArray has write make an array at a path in a hidden directory beside dir, and then gives it the name dir in one
// step: see durable.Replace. For a link it is beside the directory that the link leads to, since it needs to be on the
// same file system, and the link should stay. With overwrite dir may be an array, whose files are then removed.
func newArray(dir string, overwrite bool, write func(path string) error) (err error) {
	place := pathname.Join(dir)
	if real, err := filepath.EvalSymlinks(place); err == nil {
		place = real
	}
	if place, err = filepath.Abs(place); err != nil { // the hidden name repeats the name, and "." is not a name
		return err
	}
	check := func() error {
		if _, err := os.Lstat(place); errors.Is(err, fs.ErrNotExist) || overwrite && tiledb.IsArray(place) {
			return nil
		}
		return fault.WithFile(fault.New(fault.Unsupported, "folder", fault.NoOffset,
			"it exists; --overwrite replaces an array"), dir)
	}
	if err := check(); err != nil {
		return err
	}
	hidden, err := durable.NewFolder(place)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hidden.Remove()) }()
	path := pathname.Join(hidden.Path, "array")
	if err := write(path); err != nil {
		return err
	}
	if err := check(); err != nil { // another run may have changed it meanwhile
		return err
	}
	return durable.Replace(path, place)
}

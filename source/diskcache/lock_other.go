//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package diskcache

import (
	"errors"
	"fmt"
	"os"
)

var errLocks = fmt.Errorf("a cache on disk needs locks of files: %w", errors.ErrUnsupported)

func lock(*os.File) error              { return errLocks }
func lockShared(*os.File) error        { return errLocks }
func unlock(*os.File) error            { return errLocks }
func lockAlone(*os.File) (bool, error) { return false, errLocks }

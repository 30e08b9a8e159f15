//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package diskcache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

var errLocks = fmt.Errorf("a cache on disk needs locks of files: %w", errors.ErrUnsupported)

func lock(*os.File) error              { return errLocks }
func lockShared(*os.File) error        { return errLocks }
func unlock(*os.File) error            { return errLocks }
func lockAlone(*os.File) (bool, error) { return false, errLocks }

const noFollow = 0

func isLink(error) bool                     { return false }
func ownerOf(fs.FileInfo) (user, names int) { return os.Geteuid(), 1 }

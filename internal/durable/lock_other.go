//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package durable

import (
	"errors"
	"os"
)

// lockOpen reports that this system has no locks that end with the process.
func lockOpen(*os.File) error { return errors.ErrUnsupported }

// unsupported reports whether a sync of a folder failed because this system has none. Windows does not let a folder be
// written to, which a sync needs.
func unsupported(err error) bool { return err != nil }

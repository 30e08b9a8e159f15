//go:build !linux

package durable

import "errors"

// Exchange is not supported on this system.
func Exchange(_, _ string) error { return errors.ErrUnsupported }

// renameNew is not supported on this system.
func renameNew(_, _ string) error { return errors.ErrUnsupported }

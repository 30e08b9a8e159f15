//go:build !linux

package durable

import "os"

// isLocal reports false: this system does not say whether all writers see the locks of a file system.
var isLocal = func(*os.File) bool { return false }

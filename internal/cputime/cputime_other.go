//go:build !unix

package cputime

import "time"

var start = time.Now()

// Used returns the time since the process began.
func Used() time.Duration { return time.Since(start) }

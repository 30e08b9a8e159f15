//go:build !race

package zstd

import "sync"

// pool keeps unused encoders.
type pool = sync.Pool

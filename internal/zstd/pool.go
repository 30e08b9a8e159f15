//go:build !race

package zstd

import "sync"

// pool keeps encoders that nobody uses.
type pool = sync.Pool

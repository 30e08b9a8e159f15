package corpus

import (
	"context"
	"sync"

	"github.com/chaski-eo/chaski/fault"
)

// Mem is a file in memory, a source.Reader. It counts the reads.
type Mem struct {
	B     []byte
	Reads int   // calls of ReadAt
	Bytes int64 // asked for

	mu sync.Mutex // of both counts
}

// ReadAt implements source.Reader.
func (m *Mem) ReadAt(_ context.Context, p []byte, off int64) error {
	m.mu.Lock()
	m.Reads++
	m.Bytes += int64(len(p))
	m.mu.Unlock()
	if off < 0 || off > int64(len(m.B)) || int64(len(p)) > int64(len(m.B))-off {
		return fault.At(fault.Corrupt, "byte range", off, "%d bytes reach past the file's %d", len(p), len(m.B))
	}
	copy(p, m.B[off:])
	return nil
}

// Size implements source.Reader.
func (m *Mem) Size() int64 { return int64(len(m.B)) }

// Close implements source.Reader.
func (m *Mem) Close() error { return nil }

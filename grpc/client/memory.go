package client

import (
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/resources"
)

// memory keeps the memory of batches that were released for the next ones. It is payload.Memory.
type memory chan loader.Buffer

// Take implements payload.Memory.
func (m memory) Take(n int) loader.Buffer {
	select {
	case b := <-m:
		if len(b.Bytes()) >= n {
			return b
		}
	default:
	}
	return resources.NewHeap(n)
}

// Give implements payload.Memory. Buffers that are larger than a session's batches are left to the garbage
// collector.
func (m memory) Give(b loader.Buffer, keep bool) {
	if !keep {
		return
	}
	select {
	case m <- b:
	default:
	}
}

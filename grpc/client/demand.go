package client

import (
	"github.com/chaski-eo/chaski/grpc/payload"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/shuffle"
)

// demand describes the tickets of a session and how far ahead they are requested. It outlives the session, so
// that the next one can use the memory of released batches.
type demand struct {
	prefetch      int   // tickets that are requested ahead
	prefetchBytes int64 // within which there may be more, see LoaderOptions.PrefetchBytes
	// next returns the ticket after the last one, or false while it is not known. The session holds its lock.
	next  func() (t shuffle.Ticket, native, ok bool)
	bytes int64 // of the largest batch, first an estimate; guarded by the session's lock

	memory payload.Memory // of batches; nil: Options.Memory, or else own
	own    memory
}

// memory keeps the memory of batches that were released for the next ones. It is payload.Memory.
type memory chan loader.Buffer

func newDemand(r *Run, prefetch int, prefetchBytes int64, next func() (shuffle.Ticket, bool, bool)) *demand {
	return &demand{
		prefetch: prefetch, prefetchBytes: prefetchBytes, next: next,
		own: make(memory, maxOpen(prefetch, len(r.client.peers))),
	}
}

// maxOpen returns how many results may wait for Next at a time: a batch for each open ticket, and one error.
func maxOpen(prefetch, servers int) int {
	if servers > 1 {
		// With several servers, tickets beyond prefetch are open so that each server has a group of them.
		return maxPrefetch + 1
	}
	return prefetch + 1
}

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

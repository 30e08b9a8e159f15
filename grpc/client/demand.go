package client

import (
	"github.com/chaski-eo/chaski/grpc/payload"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/shuffle"
)

// demand says what a session asks for, and how far ahead. It outlives the session, so that the next one finds the
// memory of received payloads again.
type demand struct {
	prefetch      int   // tickets that are asked for ahead
	prefetchBytes int64 // within which there may be more, see LoaderOptions.PrefetchBytes
	// next returns the ticket after the last one, or false while there is none. The session holds its lock.
	next  func() (t shuffle.Ticket, native, ok bool)
	bytes int64       // of the largest batch, as far as known; guarded by the session's lock
	free  chan []byte // memory of payloads that nobody uses any more

	memory payload.Memory // of batches; nil: Options.Memory
}

func newDemand(r *Run, prefetch int, prefetchBytes int64, next func() (shuffle.Ticket, bool, bool)) *demand {
	return &demand{
		prefetch: prefetch, prefetchBytes: prefetchBytes, next: next,
		free: make(chan []byte, maxOpen(prefetch, len(r.client.peers))),
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

// take returns n bytes at an address divisible by 64, with any content.
func (d *demand) take(n int) []byte {
	select {
	case b := <-d.free:
		if cap(b) >= n {
			return b[:n]
		}
	default:
	}
	return cast.Aligned(n)
}

// give keeps b for a later payload, unless enough are kept already.
func (d *demand) give(b []byte) {
	select {
	case d.free <- b:
	default:
	}
}

package client

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/mem"
)

// frames is the pool of the frames that a connection receives. Unlike gRPC's own it does not clear them before they are
// used again, which took 7 % of the client's processor time: the received bytes overwrite each from end to end.
//
// It also knows how many frames are received and not read yet. gRPC wakes the reader of a message at each of its
// frames, and a frame is read faster than the next one arrives: 64 switches between threads for a part of 1 MiB. So a
// lane waits here until most of a part has arrived.
type frames struct {
	out  atomic.Int64  // frames that are received and not freed; more if gRPC forgets some, and then waits end early
	want atomic.Int64  // how many of them the lane that waits needs; 0: none waits
	wake chan struct{} // has one element when there may be so many

	// Of the lane that waits: how many times in a row the clock ended a wait, and how many parts are not waited for.
	late, skip int
}

func newFrames() *frames { return &frames{wake: make(chan struct{}, 1)} }

// longestWait ends a wait for frames that may never come: a server may send a fault instead, or a connection break. A
// part of 1 MiB that takes longer comes at less than 50 MB a second, where a switch at each frame costs little.
const longestWait = 20 * time.Millisecond

// mostLate bounds how many waits in a row are counted: after so many, 2^6 parts are not waited for. Behind a proxy that
// sends frames of 8 KiB, which are not counted, no wait ends early: parts of 1 MiB would come at 50 MB a second at
// most. One wait in 65 parts costs 0.3 ms a part.
const mostLate = 6

// await waits until most frames of the next n bytes are received, if no one else waits.
func (f *frames) await(ctx context.Context, n int) {
	// The last frame is left out, because it may be shorter than those that are counted.
	want := int64(n/frameBytes) - 1
	if want < 1 || !f.want.CompareAndSwap(0, want) {
		return
	}
	defer f.want.Store(0)
	select {
	case <-f.wake: // of the wait before
	default:
	}
	if f.skip > 0 {
		f.skip--
		return
	}
	if f.out.Load() >= want {
		f.late = 0
		return
	}
	timer := time.NewTimer(longestWait)
	defer timer.Stop()
	select {
	case <-f.wake:
		f.late = 0
	case <-timer.C:
		f.late = min(f.late+1, mostLate)
		f.skip = 1 << f.late
	case <-ctx.Done():
	}
}

// frameBytes is the largest frame that gRPC servers send by default (RFC 9113, SETTINGS_MAX_FRAME_SIZE).
const frameBytes = 16 << 10

// frameCap distinguishes the pool's frames from the buffers of gRPC's pool, where some have 16 KiB.
const frameCap = frameBytes + 64

var framePool = sync.Pool{New: func() any {
	b := make([]byte, frameBytes, frameCap)
	return &b
}}

// Get implements mem.BufferPool.
func (f *frames) Get(n int) *[]byte {
	// Small messages would keep whole frames from those that need them.
	if n <= frameBytes/2 || n > frameBytes {
		return mem.DefaultBufferPool().Get(n)
	}
	b := framePool.Get().(*[]byte)
	*b = (*b)[:n]
	out := f.out.Add(1)
	if want := f.want.Load(); want > 0 && out >= want {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
	return b
}

// Put implements mem.BufferPool.
func (f *frames) Put(b *[]byte) {
	if cap(*b) != frameCap {
		mem.DefaultBufferPool().Put(b)
		return
	}
	*b = (*b)[:frameBytes]
	f.out.Add(-1)
	framePool.Put(b)
}

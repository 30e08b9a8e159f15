package server

import (
	"context"
	"sync/atomic"
)

// places bound how many requests of a kind are worked on at a time. Others wait, first come, first served.
type places struct {
	slots   chan struct{} // has an element for each request
	waiting atomic.Int64
}

func newPlaces(n int) *places { return &places{slots: make(chan struct{}, n)} }

// take waits for a place, which leave gives back.
func (p *places) take(ctx context.Context) (leave func(), err error) {
	p.waiting.Add(1)
	defer p.waiting.Add(-1)
	select {
	case p.slots <- struct{}{}:
		return func() { <-p.slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// hasWaiting reports whether requests wait for a place.
func (p *places) hasWaiting() bool { return p.waiting.Load() > 0 }

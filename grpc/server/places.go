package server

import (
	"container/list"
	"context"
	"sync"
)

// places are what a number of requests may have at a time, such as the memory and processors of reads. Clients that
// wait take turns.
type places struct {
	each int // places of one client at most

	mu      sync.Mutex
	free    int
	clients map[clientID]*seat // those with a place, or waiting for one
	turns   list.List          // of *seat: those that wait and may have a place, the next one first
	waiting int                // requests
}

// seat is what one client has.
type seat struct {
	held    int
	waiters list.List     // of chan struct{}, closed when there is a place
	turn    *list.Element // in places.turns, or nil
}

// newPlaces returns n places, of which one client may have each.
func newPlaces(n, each int) *places {
	return &places{free: n, each: each, clients: map[clientID]*seat{}}
}

// try takes a place if one is free and nobody waits for it.
func (p *places) try(id clientID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.of(id)
	if p.free == 0 || p.turns.Len() > 0 || c.held >= p.each {
		p.end(id, c)
		return false
	}
	p.free--
	c.held++
	return true
}

// of needs the lock.
func (p *places) of(id clientID) *seat {
	c := p.clients[id]
	if c == nil {
		c = &seat{}
		p.clients[id] = c
	}
	return c
}

// end forgets a client that has nothing. It needs the lock.
func (p *places) end(id clientID, c *seat) {
	if c.held == 0 && c.waiters.Len() == 0 {
		delete(p.clients, id)
	}
}

// take waits for a place until ctx ends or stop is closed. Unless there is an error, the caller gives the place back
// with leave.
func (p *places) take(ctx context.Context, stop <-chan struct{}, id clientID) (err error) {
	if p.try(id) {
		return nil
	}
	p.mu.Lock()
	c, ready := p.of(id), make(chan struct{})
	at := c.waiters.PushBack(ready)
	p.waiting++
	p.grant(c) // a place may have become free since try
	p.mu.Unlock()
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-stop:
		err = errStopping
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-ready: // at the last moment
		p.giveBack(id, c)
	default:
		c.waiters.Remove(at)
		p.waiting--
		p.grant(c)
		p.end(id, c)
	}
	return err
}

// leave gives a place back.
func (p *places) leave(id clientID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.giveBack(id, p.clients[id])
}

func (p *places) giveBack(id clientID, c *seat) {
	p.free++
	c.held--
	p.grant(c)
	p.end(id, c)
}

// grant notes whether c waits for a place that it may have, and hands out free places. It needs the lock.
func (p *places) grant(c *seat) {
	p.queue(c)
	for p.free > 0 && p.turns.Len() > 0 {
		c := p.turns.Front().Value.(*seat)
		first := c.waiters.Front()
		close(c.waiters.Remove(first).(chan struct{}))
		p.waiting--
		p.free--
		c.held++
		p.turns.Remove(c.turn) // to the end, if it may have more
		c.turn = nil
		p.queue(c)
	}
}

// queue gives c a turn, or takes it away. It needs the lock.
func (p *places) queue(c *seat) {
	switch may := c.waiters.Len() > 0 && c.held < p.each; {
	case may && c.turn == nil:
		c.turn = p.turns.PushBack(c)
	case !may && c.turn != nil:
		p.turns.Remove(c.turn)
		c.turn = nil
	}
}

// wanted reports whether a request waits.
func (p *places) wanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting > 0
}

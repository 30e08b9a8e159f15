package loader

import (
	"context"
	"time"

	"github.com/chaski-eo/chaski/loader/resources"
)

const (
	// askShare is the part of the budget up to which a client waits for more memory of it, beside one batch: as much as
	// the caches of an engine take (cachesShare).
	askShare = 32
	// askAgain is after how long a client asks the budget again that has refused it, after a minute in its queue or
	// because too many others wait.
	askAgain = time.Second
)

func newQueue(bound int64) *queue { return &queue{bound: bound, more: make(chan struct{}, 1)} }

// put appends a ticket. It reports false if the queue is closed.
func (q *queue) put(p *Pending) bool {
	caller := resources.CallerOf(p.ctx)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	p.client = caller.Client
	share := q.all.member(caller.Client).member(caller.Stream)
	if share.first == nil {
		share.first = p
	} else {
		share.last.next = p
	}
	share.last = p
	share.wait()
	share.of.wait()
	q.poke()
	return true
}

// take returns the next ticket, with its claim. It returns nil once ctx ends. A ticket that was cancelled
// is returned without one.
func (q *queue) take(ctx context.Context) *Pending {
	for ctx.Err() == nil {
		q.mu.Lock()
		pending := q.next()
		head, blocked := q.head, q.blocked
		q.mu.Unlock()
		if pending != nil {
			return pending
		}
		stop := func() bool { return true }
		// Others wait behind it, so they must not wait for a ticket that is cancelled.
		if head != nil {
			stop = context.AfterFunc(head.ctx, q.poke)
		}
		since := time.Now()
		select {
		case <-q.more:
		case <-ctx.Done():
		}
		if blocked {
			q.stages.NoMemory(time.Since(since))
		}
		stop()
	}
	return nil
}

// next takes the next ticket out of the queue with memory for it, or returns nil if there is room for none. It needs
// the lock. Of a client without room it looks at the first ticket of each stream only.
func (q *queue) next() (taken *Pending) {
	q.head = nil
	ready := false
	defer func() { q.blocked = taken == nil && ready }()
	bound := q.bound
	if q.now != nil {
		bound = q.now()
	}
	for c := q.all.turns.Front(); c != nil; c = c.Next() {
		client, full := c.Value.(*queueShare), false
		for s := client.turns.Front(); s != nil; s = s.Next() {
			stream := s.Value.(*queueShare)
			pending := stream.first
			if pending.ctx.Err() != nil || pending.undrawn != nil {
				q.drop(stream)
				return pending
			}
			if pending.drawing {
				continue
			}
			ready = true
			size := int64(pending.size())
			if pending.budgetBytes == 0 && (full || !client.room(size, bound)) {
				if bound < q.bound {
					q.ask(stream, pending)
				}
				full = true
				continue // the first ticket of another stream may have memory of its own
			}
			if pending.budgetBytes == 0 && !stream.room(size, bound/int64(len(q.all.members))) {
				continue
			}
			if !q.reserve(pending) {
				// Otherwise smaller tickets of others would hold it up for ever.
				if q.memory.full(size) {
					q.head = pending
					return nil
				}
				q.ask(stream, pending)
				full = true
				continue
			}
			if pending.memory != nil {
				size = int64(len(pending.memory.Bytes())) // an idle buffer may be larger than the ticket
			}
			stream.remove()
			for _, m := range []*queueShare{stream, client} {
				m.pass()
				m.bytesInUse += size
			}
			pending.claim = &quotaClaim{q, stream, size}
			return pending
		}
	}
	return nil
}

// weighed gives a ticket the samples that weights have drawn, or the error of that. It reports false if the ticket has
// left the queue, because it was cancelled.
func (q *queue) weighed(p *Pending, samples []int64, announced []func(), err error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.dequeued {
		return false
	}
	p.ticket.Samples, p.announced, p.undrawn, p.drawing = samples, announced, err, false
	q.poke()
	return true
}

// reserve takes memory for a ticket. It needs the lock.
func (q *queue) reserve(p *Pending) (ok bool) {
	if q.memory == nil {
		return true
	}
	if p.memory, ok = q.memory.take(p.size(), resources.OwnerOf(p.ctx), p.budgetBytes); ok {
		p.budgetBytes = 0
	}
	return ok
}

// ask lets p, the first ticket of a stream, wait for its memory in the queue of the budget. A client asks for one batch
// at a time, and for no more than prefetching takes. It does not help where the bound is in the way. It needs the lock.
func (q *queue) ask(stream *queueShare, p *Pending) {
	client, size := stream.of, int64(p.size())
	if q.memory == nil || q.memory.budget == nil || client.asks || q.memory.full(size) {
		return
	}
	limit := min(busyBatches*size, q.memory.budget.Limit()/askShare)
	if client.bytesInUse > 0 && client.bytesInUse+size > limit {
		return
	}
	client.asks = true
	go func() {
		if err := q.memory.budget.AcquireBatch(p.ctx, size); q.endAsk(stream, p, err) {
			p.finish(err)
		}
	}()
}

// endAsk ends the request of ask. It reports whether p fails with err: the budget has refused it, and no batch is left
// whose memory could come back or has just come back.
func (q *queue) endAsk(stream *queueShare, p *Pending, err error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.poke()
	client, size := stream.of, int64(p.size())
	client.asks = false
	switch waits := stream.first == p; {
	case err == nil && waits:
		p.budgetBytes = size
	case err == nil:
		q.memory.budget.Release(size)
	case !waits || p.ctx.Err() != nil:
	case q.bytesInUse() == 0 && q.coming.Load() == 0 && !q.memory.fits(size):
		q.drop(stream)
		return true
	default:
		client.asks = true
		time.AfterFunc(askAgain, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			client.asks = false
			q.poke()
		})
	}
	return false
}

// drop takes the first ticket of a stream, which gets no memory, out of the queue. It needs the lock.
func (q *queue) drop(stream *queueShare) {
	p := stream.first
	stream.remove()
	stream.end()
	if p.budgetBytes > 0 {
		q.memory.budget.Release(p.budgetBytes)
		p.budgetBytes = 0
	}
}

// bytesInUse returns the bytes of all quotas that are in use. It needs the lock.
func (q *queue) bytesInUse() (n int64) {
	for _, c := range q.all.members {
		n += c.bytesInUse
	}
	return n
}

// othersWait reports whether tickets of other streams wait for memory.
func (q *queue) othersWait(t resources.Caller) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.blocked || q.all.turns.Len() == 0 {
		return false
	}
	client := q.all.turns.Front().Value.(*queueShare)
	stream := client.turns.Front().Value.(*queueShare)
	return q.all.turns.Len() > 1 || client.turns.Len() > 1 || client.key != t.Client || stream.key != t.Stream
}

// failAll closes the queue and ends all waiting tickets with ErrClosed.
func (q *queue) failAll() {
	q.mu.Lock()
	q.closed = true
	var waiting []*Pending
	for q.all.turns.Len() > 0 {
		s := q.all.turns.Front().Value.(*queueShare).turns.Front().Value.(*queueShare)
		waiting = append(waiting, s.first)
		q.drop(s)
	}
	q.mu.Unlock()
	// Tickets finish outside of the lock, so the goroutines that they wake can call Start at once.
	for _, p := range waiting {
		p.finish(ErrClosed)
	}
}

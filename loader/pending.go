package loader

import (
	"context"

	"github.com/chaski-eo/chaski/loader/batch"
)

// Wait returns the batch, or the error of the first row that has one. If ctx ends first, it cancels
// the ticket and returns the error of ctx.
func (p *Pending) Wait(ctx context.Context) (*batch.Batch, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		p.Cancel()
		return nil, ctx.Err()
	}
	if p.err != nil {
		return nil, p.err
	}
	return p.batch, nil
}

// Cancel gives up the ticket. Its memory is free as soon as no worker writes to it.
func (p *Pending) Cancel() {
	p.cancel()
	if !p.state.CompareAndSwap(working, abandoned) && p.state.CompareAndSwap(finished, abandoned) && p.batch != nil {
		p.batch.Release()
	}
}

// finish ends the ticket with its batch, or with an error.
func (p *Pending) finish(err error) {
	p.cancel()
	p.plan.end(p.engine.tiles)
	p.run.endTicket(p.ticket)
	for _, end := range p.announced {
		end()
	}
	p.announced = nil
	// All units are done by now, so no worker writes to the memory and another batch may use it.
	if err != nil && p.memory != nil {
		p.claim.giveBack(p.memory, true)
		p.memory, p.buf, p.batch = nil, nil, nil
	}
	if err != nil {
		p.claim.end()
	}
	p.err = err
	// Cancel came first. No caller waits for the batch, so its memory must be given back here.
	if !p.state.CompareAndSwap(working, finished) && p.batch != nil {
		p.batch.Release()
	}
	close(p.done)
}

// size returns the bytes of memory that the ticket takes: enough for the batch to be decoded again
// (Pending.decodeAgain).
func (m *batchMemory) size() int {
	if m.converted != nil {
		return max(m.layout.bytes, m.converted.bytes)
	}
	return max(m.layout.bytes, 1)
}

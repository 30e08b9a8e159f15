package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/internal/wire"
	"github.com/chaski-eo/chaski/grpc/payload"
	"github.com/chaski-eo/chaski/loader"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/shuffle"
)

// session asks for batches from a step on, and keeps at most Prefetch of them asked for or waiting
// for Next. It lives through broken connections and ends with the first error that is for Next.
type session struct {
	loader *Loader
	run    *Run
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // closed when the session's goroutines are gone
	out    chan result   // has room for all that is asked for
	shared *chaskiv1.Shared

	mu     sync.Mutex
	next   cursor
	last   uint64 // id of the last ticket
	asked  []*request
	heard  time.Time     // when the server last said something, or had nothing to say
	unsent chan struct{} // has one element when a request is not sent
	handle string        // of the server that is asked
}

// request is a ticket that has no answer.
type request struct {
	id     uint64
	ticket shuffle.Ticket
	sent   bool // on this connection
}

// result is a batch or the session's end.
type result struct {
	batch *loader.Batch
	err   error
}

func newSession(l *Loader, at cursor) *session {
	s := &session{
		loader: l, run: l.run, next: at, shared: l.run.shared, handle: l.run.handle,
		done:   make(chan struct{}),
		out:    make(chan result, l.options.Prefetch+1), // and the error
		unsent: make(chan struct{}, 1),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.ask(l.options.Prefetch)
	go s.work()
	return s
}

// ask asks for n more batches, as far as there are any.
func (s *session) ask(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		c, ok := s.loader.skip(s.next)
		if !ok {
			break
		}
		o := &s.loader.options
		if len(s.asked) == 0 {
			s.heard = time.Now()
		}
		s.last++
		s.asked = append(s.asked, &request{
			id: s.last, ticket: shuffle.StepTicket(c.epoch, c.step, s.run.spec.BatchSize, o.Rank, o.World),
		})
		s.next = cursor{c.epoch, c.step + 1}
	}
	select {
	case s.unsent <- struct{}{}:
	default:
	}
}

// close ends the session and releases what Next did not take.
func (s *session) close() {
	s.cancel()
	<-s.done
	for {
		select {
		case r := <-s.out:
			if r.batch != nil {
				r.batch.Release()
			}
		default:
			return
		}
	}
}

// work makes connections until the session ends.
func (s *session) work() {
	defer close(s.done)
	c := s.run.client
	for attempt := 1; ; attempt++ {
		got, err := s.connection(attempt > 1)
		if s.ctx.Err() != nil {
			return
		}
		if got {
			attempt = 1
		}
		var mine *answerError
		if errors.As(err, &mine) || final(err) || attempt >= c.options.Attempts {
			s.out <- result{err: err}
			return
		}
		c.options.Logger.Info("connection to chaski is made again", "server", c.target, "attempt", attempt, "error", fault.Line(err))
		if c.pause(s.ctx, attempt) != nil {
			return
		}
	}
}

// answerError is the fault that answers a ticket.
type answerError struct{ error }

func (a *answerError) Unwrap() error { return a.error }

// errSilent is the cause of a connection's end when the server says nothing.
var errSilent = errors.New("no answer")

// connection asks for everything that has no answer over one stream, and receives until it breaks.
// It reports whether a batch came.
func (s *session) connection(again bool) (got bool, err error) {
	if again {
		if err := s.describe(); err != nil {
			return false, err
		}
	}
	door, err := s.run.client.side(s.shared)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	stream, err := s.run.client.stub.Stream(ctx)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	for _, r := range s.asked {
		r.sent = false
	}
	s.heard = time.Now()
	s.mu.Unlock()

	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	group.Go(func() { s.watch(ctx, cancel) })
	var number uint64
	if door != nil {
		number = door.begin()
		defer door.end(number)
	}
	group.Go(func() { s.send(ctx, stream, door, number) })
	for {
		if err := s.receive(stream, door); err != nil {
			if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
				err = cause
			}
			return got, err
		}
		got = true
	}
}

// describe opens the spec again: the server may be a new one. It must mean the same data.
func (s *session) describe() error {
	d, err := s.run.describe(s.ctx)
	if err != nil {
		return err
	}
	if d.GetSpecHash() != s.run.hash {
		return fmt.Errorf("%w: the data changed: spec hash %s, before %s", errFinal, d.GetSpecHash(), s.run.hash)
	}
	s.shared, s.handle = d.GetShared(), d.GetHandle()
	return nil
}

// watch ends the connection when the server owes something and is silent for too long.
func (s *session) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	limit := s.run.client.options.Timeout
	t := time.NewTimer(limit)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		s.mu.Lock()
		left := limit - time.Since(s.heard)
		idle := len(s.asked) == 0
		s.mu.Unlock()
		switch {
		case idle:
			left = limit
		case left <= 0:
			cancel(fmt.Errorf("%w for %v", errSilent, limit))
			return
		}
		t.Reset(left)
	}
}

// send sends what is asked for, with a credit for each ticket.
func (s *session) send(ctx context.Context, stream grpc.BidiStreamingClient[chaskiv1.StreamRequest, chaskiv1.StreamReply], door *side, number uint64) {
	if door != nil {
		a := &chaskiv1.Attach{Secret: door.secret[:], Stream: number}
		if stream.Send(&chaskiv1.StreamRequest{Kind: &chaskiv1.StreamRequest_Attach{Attach: a}}) != nil {
			return // receive has the reason
		}
	}
	for {
		var tickets []*chaskiv1.StreamRequest
		s.mu.Lock()
		for _, r := range s.asked {
			if !r.sent {
				r.sent = true
				tickets = append(tickets, s.message(r))
			}
		}
		s.mu.Unlock()
		if len(tickets) > 0 {
			tickets = append(tickets, &chaskiv1.StreamRequest{Kind: &chaskiv1.StreamRequest_Credit{
				Credit: &chaskiv1.Credit{Batches: uint32(len(tickets))},
			}})
		}
		for _, m := range tickets {
			if stream.Send(m) != nil {
				return // receive has the reason
			}
		}
		select {
		case <-s.unsent:
		case <-ctx.Done():
			return
		}
	}
}

func (s *session) message(r *request) *chaskiv1.StreamRequest {
	return &chaskiv1.StreamRequest{Kind: &chaskiv1.StreamRequest_Ticket{Ticket: &chaskiv1.Ticket{
		Id: r.id, Handle: s.handle, Epoch: r.ticket.Epoch, First: r.ticket.First,
		Count: uint32(r.ticket.Count), RowStart: uint32(r.ticket.RowStart), RowStride: uint32(r.ticket.RowStride),
		Native: s.loader.options.Native,
	}}}
}

// receive receives the parts of one batch, or its lease, and hands it to Next.
func (s *session) receive(stream grpc.ClientStream, door *side) error {
	var in assembly
	r := &wire.Reply{}
	for {
		if err := stream.RecvMsg(r); err != nil {
			s.drop(&in)
			return err
		}
		want := s.oldest()
		var err error
		switch {
		case want == nil:
			err = fmt.Errorf("%w: the server answers what was not asked", errFinal)
		case r.Fault != nil:
			err = s.fault(r.Fault, want)
		case r.Lease != nil:
			if door == nil || in.buf != nil || r.Lease.GetTicket() != want.id {
				err = fmt.Errorf("%w: a lease for ticket %d, the next is %d", errFinal, r.Lease.GetTicket(), want.id)
				break
			}
			return s.leased(r.Lease, want, door)
		default:
			err = in.add(r, want.id, s.run.client.options.MaxBatchBytes, s.loader.take)
		}
		r.Free()
		if err != nil {
			s.drop(&in)
			return err
		}
		if in.whole() {
			return s.hand(&in, want)
		}
	}
}

// drop gives the memory of an unfinished batch back.
func (s *session) drop(in *assembly) {
	if in.buf != nil {
		s.loader.give(in.buf)
	}
}

// oldest notes that the server said something, and returns the request that it has to be about.
func (s *session) oldest() *request {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = time.Now()
	if len(s.asked) == 0 {
		return nil
	}
	return s.asked[0]
}

// fault returns the error that a fault ends the connection with. That of an unknown spec is not for
// Next: the spec is described again.
func (s *session) fault(f *chaskiv1.Fault, want *request) error {
	if f.GetTicket() != want.id {
		return fmt.Errorf("%w: fault of ticket %d, the next is %d", errFinal, f.GetTicket(), want.id)
	}
	err := wire.FaultError(f)
	if errors.Is(err, wire.ErrUnknownSpec) {
		return err
	}
	return &answerError{err}
}

// hand decodes a whole payload, checks that it is what was asked for and hands it to Next.
func (s *session) hand(in *assembly, want *request) error {
	b, err := payload.Decode(in.buf)
	if err != nil {
		s.drop(in)
		return fmt.Errorf("%w: %w", errFinal, err)
	}
	buf := in.buf
	b.OnRelease(func() { s.loader.give(buf) })
	return s.finish(b, want)
}

// leased does the same with a batch in shared memory.
func (s *session) leased(l *chaskiv1.Lease, want *request, door *side) error {
	b, err := door.claim(l, s.run.client.options.MaxBatchBytes)
	if err != nil {
		return err
	}
	return s.finish(b, want)
}

// finish checks that a batch is what was asked for, and hands it to Next. With an error it is
// released.
func (s *session) finish(b *loader.Batch, want *request) error {
	t := want.ticket
	if b.Epoch != t.Epoch || b.First != t.First || b.Rows != t.Rows() {
		b.Release()
		return fmt.Errorf("%w: batch of epoch %d, position %d, %d rows; asked for epoch %d, position %d, %d rows",
			errFinal, b.Epoch, b.First, b.Rows, t.Epoch, t.First, t.Rows())
	}
	for i := range b.Tensors {
		if err := payload.Apply(&b.Tensors[i]); err != nil {
			b.Release()
			return fmt.Errorf("%w: %w", errFinal, err)
		}
	}
	s.mu.Lock()
	s.asked = s.asked[1:]
	s.heard = time.Now()
	s.mu.Unlock()
	s.out <- result{batch: b}
	return nil
}

// assembly puts the parts of one payload together.
type assembly struct {
	buf   []byte
	got   int
	total int
}

// add copies a part to its place. The first part says how long the payload is.
func (a *assembly) add(r *wire.Reply, ticket uint64, limit int64, take func(int) []byte) error {
	switch {
	case r.Ticket != ticket:
		return fmt.Errorf("%w: part of ticket %d, the next is %d", errFinal, r.Ticket, ticket)
	case r.Total > uint64(limit):
		return fmt.Errorf("%w: %w", errFinal, fault.New(fault.Limit, "payload", fault.NoOffset, "%d bytes, at most %d", r.Total, limit))
	case r.Offset != uint64(a.got) || r.Len < 1 || uint64(r.Len) > r.Total-r.Offset || a.buf != nil && r.Total != uint64(a.total):
		return fmt.Errorf("%w: %w", errFinal, fault.New(fault.Corrupt, "part", fault.NoOffset, "%d bytes at %d of %d after %d of %d", r.Len, r.Offset, r.Total, a.got, a.total))
	}
	if a.buf == nil {
		a.total = int(r.Total)
		a.buf = take(a.total)
	}
	if err := r.CopyTo(a.buf[a.got : a.got+r.Len]); err != nil {
		return err
	}
	a.got += r.Len
	return nil
}

func (a *assembly) whole() bool { return a.buf != nil && a.got == a.total }

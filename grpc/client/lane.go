package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/internal/wire"
	"github.com/chaski-eo/chaski/grpc/payload"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/loader/batch"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// serverLane is the way to one server: connections one after the other, and the requests that it has not
// answered. Its fields below unsent are guarded by the session's mutex.
type serverLane struct {
	s      *session
	peer   *peer
	place  place
	unsent chan struct{} // has one element when a request is not sent

	up        bool // requests may be added
	isRemoved bool // its server is not among those of the names any more
	requests  []*ticketRequest
	sent      int       // of requests, from the first on, on this connection
	heard     time.Time // when the server last said something, or had nothing to say
	err       error     // of its last failure, with its name; nil after an answer
	start     time.Time // when the connection was begun, if it is there
	rests     bool      // after a failure, and before the next connection
}

// hopes reports whether the lane may give something: it has not failed since its last answer, the connection after
// that was begun before the end of patience, or it rests and will begin one by then. It needs the session's lock.
func (l *serverLane) hopes(end time.Time) bool {
	switch {
	case l.err == nil:
		return true
	case l.rests:
		return !final(l.err) && time.Now().Before(end)
	}
	return l.start.Before(end)
}

// add has the lane ask for a request. It needs the session's lock.
func (l *serverLane) add(r *ticketRequest) {
	if len(l.requests) == 0 {
		l.heard = time.Now()
	}
	l.requests = append(l.requests, r)
	select {
	case l.unsent <- struct{}{}:
	default:
	}
}

// work makes connections until the session ends.
func (l *serverLane) work() {
	s := l.s
	defer s.run.client.leave(l.peer)
	failures := 0 // in a row
	for again := l.place.handle == ""; ; again = true {
		begun := time.Now()
		s.mu.Lock()
		l.start, l.rests = begun, false
		s.mu.Unlock()
		var got bool
		// Data from the server is decoded in it, so a panic is a fault of the server.
		err := crash.Call(func() (err error) {
			got, err = l.connection(again)
			return err
		})
		crash.Report(s.run.client.options.Logger, err)
		if s.ctx.Err() != nil {
			return
		}
		if got && time.Since(begun) > l.peer.options.rest(max(failures, 1)) {
			failures = 0
		}
		if errors.Is(err, io.EOF) && l.owesNothing() {
			failures, err = 0, nil // a server may end an idle stream; that is not a failure
		}
		// The server lives, and must describe the run: in a rest, a short epoch would end without it.
		closed := failures == 0 && errors.Is(err, wire.ErrUnknownSpec)
		if closed {
			err = nil
		}
		if failures++; s.broken(l, failures, err) {
			return
		}
		if closed {
			continue
		}
		select {
		case <-time.After(l.peer.options.rest(failures)):
		case <-s.ctx.Done():
			return
		}
	}
}

func (l *serverLane) owesNothing() bool {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	return len(l.requests) == 0
}

// connection requests everything that the lane owes over one stream, and receives until the stream breaks.
// It reports whether a batch came.
func (l *serverLane) connection(again bool) (got bool, err error) {
	if err := l.peer.usable(); err != nil {
		return false, err
	}
	if again {
		// The server may have been started anew, and must have the spec open before it knows tickets of it.
		if err := l.describe(); err != nil {
			return false, err
		}
	}
	leases, err := l.peer.leaseSocket(l.place.shared)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancelCause(l.s.ctx)
	defer cancel(nil)
	var attach chaskiv1.Attach
	replies := &replySource{cancel: cancel}
	if leases != nil {
		attach.Secret, attach.Stream = leases.secret[:], leases.begin()
		// It ends after the last reply, since one may bring a lease that is being recalled.
		defer leases.end(attach.GetStream())
	} else if replies.pipe = l.peer.openPipe(ctx, l.place.pipe); replies.pipe != nil {
		attach.Pipe = replies.pipe.secret[:]
		defer context.AfterFunc(ctx, replies.pipe.close)()
		defer replies.pipe.close()
	}
	stream, err := l.peer.stub.Stream(ctx)
	if err != nil {
		return false, err
	}
	replies.stream = stream
	l.begin()
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel(nil)
	// Answers are watched, because gRPC's pings find a peer that is gone, but not a server that is stuck.
	group.Go(func() { l.watch(ctx, cancel) })
	group.Go(func() { l.send(ctx, stream, &attach) })
	for {
		if err := l.receive(replies, leases); err != nil {
			if cause := context.Cause(ctx); errors.Is(cause, ErrSilent) || errors.Is(cause, errPipe) {
				err = cause
			}
			return got, err
		}
		got = true
	}
}

// begin opens the lane for requests.
func (l *serverLane) begin() {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.up, l.sent, l.heard = true, 0, time.Now()
	l.s.assign()
}

// describe opens the spec again: the server may be a new one. It must mean the same data.
func (l *serverLane) describe() error {
	described, err := l.peer.describe(l.s.ctx, l.s.run.request)
	if err != nil {
		return err
	}
	if described.GetSpecHash() != l.s.run.hash {
		return fmt.Errorf("%w now: fingerprint %s, before %s; spec hash %s, before %s",
			ErrChanged, described.GetFingerprint(), l.s.run.fingerprint, described.GetSpecHash(), l.s.run.hash)
	}
	if err := l.s.run.compare(l.peer, described); err != nil {
		return err
	}
	l.place = place{described.GetHandle(), described.GetShared(), described.GetPipe()}
	return nil
}

// watch ends the connection when the server owes something and is silent for too long.
func (l *serverLane) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	limit := l.peer.options.Timeout
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		l.s.mu.Lock()
		left := limit - time.Since(l.heard)
		var owed *ticketRequest
		if len(l.requests) > 0 {
			owed = l.requests[0]
		}
		l.s.mu.Unlock()
		switch {
		case owed == nil:
			left = limit
		case left <= 0:
			cancel(fmt.Errorf("%w for %v while waiting for ticket %d (epoch %d, position %d)",
				ErrSilent, limit, owed.id, owed.ticket.Epoch, owed.ticket.First))
			return
		}
		timer.Reset(left)
	}
}

// send sends the requests, with a credit for each ticket.
func (l *serverLane) send(ctx context.Context,
	stream grpc.BidiStreamingClient[chaskiv1.StreamRequest, chaskiv1.StreamReply], attach *chaskiv1.Attach) {
	if len(attach.GetSecret())+len(attach.GetPipe()) > 0 {
		if stream.Send(&chaskiv1.StreamRequest{Kind: &chaskiv1.StreamRequest_Attach{Attach: attach}}) != nil {
			return // receive has the reason
		}
	}
	for {
		var tickets []*chaskiv1.StreamRequest
		l.s.mu.Lock()
		for _, r := range l.requests[l.sent:] {
			tickets = append(tickets, l.message(r))
		}
		l.sent = len(l.requests)
		if len(tickets) > 0 {
			tickets = append(tickets, &chaskiv1.StreamRequest{Kind: &chaskiv1.StreamRequest_Credit{
				Credit: &chaskiv1.Credit{Batches: uint32(len(tickets)), Waited: uint64(l.s.pace.waited),
					Stepped: uint64(l.s.pace.stepped)},
			}})
			l.s.pace.waited, l.s.pace.stepped = 0, 0
		}
		l.s.mu.Unlock()
		for _, m := range tickets {
			if stream.Send(m) != nil {
				return // receive has the reason
			}
		}
		select {
		case <-l.unsent:
		case <-ctx.Done():
			return
		}
	}
}

func (l *serverLane) message(r *ticketRequest) *chaskiv1.StreamRequest {
	var weights *chaskiv1.RowWeights
	if w := r.ticket.Weights; w != nil {
		weights = &chaskiv1.RowWeights{Path: w.Path, Hash: w.Hash, Once: w.Once}
	}
	return &chaskiv1.StreamRequest{Kind: &chaskiv1.StreamRequest_Ticket{Ticket: &chaskiv1.Ticket{
		Id: r.id, Handle: l.place.handle, Epoch: r.ticket.Epoch, First: r.ticket.First,
		Count: uint32(r.ticket.Count), RowStart: uint32(r.ticket.RowStart), RowStride: uint32(r.ticket.RowStride),
		Native: r.native, Positions: r.ticket.Positions, Corners: r.ticket.Corners, Unpadded: r.ticket.Unpadded,
		Weights: weights,
	}}}
}

// receive receives the parts of one batch, or its lease, or the fault in its place, and hands it on.
func (l *serverLane) receive(from *replySource, leases *leaseConn) error {
	parts := assembly{memory: l.s.options.Memory}
	defer parts.drop()
	for {
		reply, err := from.next()
		if err != nil {
			return err
		}
		want := l.oldest()
		if want == nil {
			return fmt.Errorf("%w: it answers what was not asked", ErrProtocol)
		}
		switch kind := reply.GetKind().(type) {
		case *chaskiv1.StreamReply_Fault:
			err = l.fault(kind.Fault, want)
		case *chaskiv1.StreamReply_Lease:
			if leases == nil || parts.to != nil || kind.Lease.GetTicket() != want.id {
				return fmt.Errorf("%w: a lease for ticket %d, the next is %d", ErrProtocol, kind.Lease.GetTicket(),
					want.id)
			}
			return l.leased(kind.Lease, want, leases)
		default:
			err = parts.add(reply.GetPart(), want.id, l.peer.options.MaxBatchBytes)
		}
		if err != nil {
			return err
		}
		if parts.isComplete() {
			return l.hand(&parts, want)
		}
	}
}

// oldest records that the server sent something, and returns the request that it must answer.
func (l *serverLane) oldest() *ticketRequest {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.heard = time.Now()
	if l.sent == 0 {
		return nil
	}
	return l.requests[0]
}

// fault returns the error that ends the connection, for a fault of the server: an unknown spec is described again, and
// a sick server rests while others are asked. Faults of samples are for Next, when the turn of their ticket comes.
func (l *serverLane) fault(f *chaskiv1.Fault, want *ticketRequest) error {
	if f.GetTicket() != want.id {
		return fmt.Errorf("%w: fault of ticket %d, the next is %d", ErrProtocol, f.GetTicket(), want.id)
	}
	err := wire.FaultError(f)
	switch {
	case errors.Is(err, wire.ErrUnknownSpec):
		return err
	case wire.OfServer(f):
		var again bool
		if again, err = l.s.noteRefusal(l, want, l.peer.failed(err)); again {
			return err
		}
	default:
		err = l.peer.failed(err)
	}
	l.s.answer(l, nil, err)
	return nil
}

// hand checks that a batch answers want, and passes it to the session.
func (l *serverLane) hand(in *assembly, want *ticketRequest) error {
	batch, err := in.to.Batch()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return l.finish(batch, want)
}

// leased does the same with a batch in shared memory.
func (l *serverLane) leased(lease *chaskiv1.Lease, want *ticketRequest, leases *leaseConn) error {
	batch, err := leases.claim(lease, l.peer.options.MaxBatchBytes, l.s.options.Memory)
	if err != nil {
		return err
	}
	return l.finish(batch, want)
}

// finish checks that a batch answers want, and passes it to the session. On an error it releases the batch.
func (l *serverLane) finish(b *batch.Batch, want *ticketRequest) error {
	ticket := want.ticket
	named := len(ticket.Positions) > 0
	if b.Epoch != ticket.Epoch || b.First != ticket.First || b.Rows != ticket.Rows() ||
		named && !slices.Equal(b.Positions, ticket.Positions) {
		b.Release()
		return fmt.Errorf("%w: batch of epoch %d, position %d, %d rows; asked for epoch %d, position %d, %d rows",
			ErrProtocol, b.Epoch, b.First, b.Rows, ticket.Epoch, ticket.First, ticket.Rows())
	}
	l.s.answer(l, b, nil)
	return nil
}

// done removes the oldest request, which is answered now, from those that the server owes. It needs the
// session's lock.
func (l *serverLane) done() *ticketRequest {
	oldest := l.requests[0]
	l.heard, l.err = time.Now(), nil
	l.requests = slices.Delete(l.requests, 0, 1)
	l.sent--
	return oldest
}

// assembly puts the parts of one payload together.
type assembly struct {
	memory payload.Memory
	to     *payload.Receiver // nil until the first part
	got    int
	total  int
}

// add takes a part. The first one says how long the payload is.
func (a *assembly) add(part *chaskiv1.Part, ticket uint64, limit int64) error {
	data, offset, total := part.GetData(), part.GetOffset(), part.GetTotal()
	switch {
	case part == nil:
		return fmt.Errorf("%w: a reply that is none of part, fault, lease", ErrProtocol)
	case part.GetTicket() != ticket:
		return fmt.Errorf("%w: part of ticket %d, the next is %d", ErrProtocol, part.GetTicket(), ticket)
	case total > uint64(limit):
		return fmt.Errorf("%w: %w", ErrProtocol, fault.New(fault.Limit, "payload",
			"%d bytes, at most %d", total, limit))
	case offset != uint64(a.got) || len(data) < 1 || uint64(len(data)) > total-offset,
		a.to != nil && total != uint64(a.total):
		return fmt.Errorf("%w: %w", ErrProtocol, fault.New(fault.Corrupt, "part",
			"%d bytes at %d of %d after %d of %d", len(data), offset, total, a.got, a.total))
	}
	if a.to == nil {
		a.total = int(total)
		a.to = payload.NewReceiver(a.total, a.memory)
	}
	if err := a.to.Write(data); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	a.got += len(data)
	return nil
}

func (a *assembly) isComplete() bool { return a.to != nil && a.got == a.total }

// drop gives the memory of a batch back that was not handed on.
func (a *assembly) drop() {
	if a.to != nil {
		a.to.Drop()
	}
}

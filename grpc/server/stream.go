package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/internal/parts"
	"github.com/chaski-eo/chaski/grpc/internal/wire"
	"github.com/chaski-eo/chaski/grpc/payload"
	"github.com/chaski-eo/chaski/grpc/report"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/internal/trace"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/resources"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// stream serves the tickets of one call in their order. One goroutine receives tickets and credits,
// and starts batches as credits allow; the other waits for them and sends.
type stream struct {
	server *Server
	grpc   grpc.BidiStreamingServer[chaskiv1.StreamRequest, chaskiv1.StreamReply]
	client clientID
	ctx    context.Context
	watch  *sendWatch

	mu      sync.Mutex
	queue   []*ticketOrder // unanswered, in the order of the tickets
	started int            // how many from the front are started or failed
	working int            // how many of those are started: at most credits
	credits int
	recvErr error // why no more requests come; io.EOF if the client has closed its side
	isDown  bool  // the stream is being torn down: start nothing
	attachment
	lastEntry *datasetEntry // of the last ticket: see engines.keep
	counts    *counts       // of the last ticket, and its rank; nil: there was none
	last      *report.Rank
	sequences map[*datasetEntry]Sequence // of datasets that are at other servers
	wake      chan struct{}              // has one element when any of the above has changed
}

// attachment is how a client on the same host takes batches.
type attachment struct {
	leases *leaseConn // batches go in shared memory; nil if not
	native bool       // leases may leave the arithmetic to the client, too
	id     uint64     // as the client calls the stream
	pipe   *replyPipe // takes the replies; nil: gRPC does
	piped  bool       // requests come by the pipe when the call has no more; only receive uses it
}

// ticketOrder is a ticket being served.
type ticketOrder struct {
	ticket  *chaskiv1.Ticket
	entry   *datasetEntry // nil if the spec is not known
	rank    *report.Rank
	pending Pending // once it is started
	err     error   // instead of a batch
	works   bool    // it counts in stream.working
	span    *trace.Span
}

// serve returns when the client has closed its side and received everything, when the call or the server ends, or
// with a status about an error of the client.
func (s *stream) serve() error {
	ctx, cancel := context.WithCancel(s.grpc.Context())
	defer cancel()
	s.client = clientOf(ctx)
	s.ctx = resources.WithCaller(ctx, s.caller())
	s.watch = newWatch(ctx, s.grpc, &s.server.options, s.othersWait)
	s.watch.sent = s.server.sentTo(ctx)
	go s.receive()
	return s.watch.run(&s.server.answering, func() error {
		defer s.tearDown()
		return s.answerAll()
	})
}

// caller returns for whom engines work on the tickets of this stream.
func (s *stream) caller() resources.Caller { return resources.Caller{Client: s.client, Stream: s} }

// othersWait reports whether others wait for what this stream holds while it sends: memory, or its place.
func (s *stream) othersWait() bool {
	s.mu.Lock()
	var first *datasetEntry
	if len(s.queue) > 0 {
		first = s.queue[0].entry
	}
	s.mu.Unlock()
	if s.server.clients.full() || s.server.options.Loader.Budget.Waiting() > 0 {
		return true
	}
	if first == nil {
		return false
	}
	engine, ok := first.engine.(interface{ Wanted(resources.Caller) bool })
	return ok && engine.Wanted(s.caller())
}

func (s *stream) answerAll() error {
	for {
		order, err := s.head()
		if order == nil {
			return err
		}
		if err := s.answer(order); err != nil {
			return err
		}
		s.pop(order)
	}
}

// receive takes requests until there are no more. It ends with the call.
func (s *stream) receive() {
	next := s.grpc.Recv
	for {
		request, err := next()
		if s.piped && errors.Is(err, io.EOF) {
			s.piped, next = false, s.pipe.receive
			continue
		}
		if err == nil {
			err = crash.Call(func() error { return s.request(request) })
			crash.Report(s.server.options.Logger, err)
		}
		if err != nil {
			s.mu.Lock()
			s.recvErr = err
			s.mu.Unlock()
		}
		select {
		case s.wake <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// request takes one request, and starts the batches that it allows.
func (s *stream) request(r *chaskiv1.StreamRequest) (err error) {
	s.mu.Lock()
	// Deferred: a panic releases the lock, too, for which the other goroutine waits.
	defer s.mu.Unlock()
	switch {
	case r.GetTicket() != nil:
		err = s.take(r.GetTicket())
	case r.GetAttach() != nil:
		err = s.attach(r.GetAttach())
	case r.GetCredit() != nil:
		// Saturates, since a client may send any number of credits of any size.
		s.credits = int(min(uint64(s.credits)+uint64(r.GetCredit().GetBatches()), math.MaxInt32))
		if s.last != nil && r.GetCredit().GetWaited()+r.GetCredit().GetStepped() > 0 {
			s.counts.addCredit(s.last, r.GetCredit())
		}
	default:
		err = status.Error(codes.InvalidArgument, "request is none of ticket, credit, attach")
	}
	s.start()
	return err
}

// attach sends batches in shared memory from now on, and replies by a pipe, if it knows the secrets. It needs the lock.
func (s *stream) attach(a *chaskiv1.Attach) error {
	if s.leases != nil || s.pipe != nil || len(a.GetSecret()) == 0 && len(a.GetPipe()) == 0 {
		return status.Error(codes.InvalidArgument, "attach comes twice, or has no secret")
	}
	if len(a.GetPipe()) > 0 {
		if len(s.queue) > 0 {
			return status.Error(codes.InvalidArgument, "attach of a pipe comes after a ticket")
		}
		pipe, err := s.server.pipes.attach(s.ctx, a.GetPipe(), placesOf(s.ctx))
		if err != nil {
			return err
		}
		if s.pipe = pipe; pipe != nil { // nothing is sent before the first ticket
			s.piped = a.GetRequests()
			s.watch.to = pipe
		}
	}
	leases, err := s.server.shared.leaseConnOf(a)
	s.leases, s.id, s.native = leases, a.GetStream(), a.GetNative()
	return err
}

// maxPositions bounds the positions that unanswered tickets of a stream name: 1 MiB with their corners. Otherwise a
// client could have 4 GiB of them kept.
const maxPositions = 1 << 16

// namedBy returns the positions that a ticket names, or the corners if these are more.
func namedBy(t *chaskiv1.Ticket) int { return max(len(t.GetPositions()), len(t.GetCorners())/2) }

// take queues a ticket. The caller holds the lock.
func (s *stream) take(t *chaskiv1.Ticket) error {
	if len(s.queue) >= s.server.options.MaxTickets {
		return status.Errorf(codes.ResourceExhausted, "%d tickets are unanswered, no more are taken", len(s.queue))
	}
	if named := namedBy(t); named > 0 {
		for _, waiting := range s.queue {
			named += namedBy(waiting.ticket)
		}
		if named > maxPositions {
			return status.Errorf(codes.ResourceExhausted, "unanswered tickets name %d positions, at most %d are taken",
				named, maxPositions)
		}
	}
	if s.isDown {
		return nil
	}
	taken := &ticketOrder{ticket: t}
	entry, ok := s.server.engines.get(s.server.viewOf(s.ctx), t.GetHandle())
	if !ok {
		taken.err = wire.ErrUnknownSpec
	} else if taken.err = s.server.clients.ticket(s.client, limitsOf(s.ctx), entry); taken.err != nil {
		s.server.engines.put(entry)
	} else {
		taken.entry, taken.rank = entry, entry.counts.rank(s.client, t)
		s.counts, s.last = entry.counts, taken.rank
		if s.lastEntry != entry {
			s.server.engines.keep(s.client, entry, s.lastEntry)
			s.lastEntry = entry
		}
		taken.err = crash.Call(func() (err error) { // a panic is the fault of this ticket
			taken.pending, err = s.pass(entry, t)
			return err
		})
	}
	s.queue = append(s.queue, taken)
	return nil
}

// pass adds a ticket to the sequence of a dataset that is at other servers; of any other one it returns nil. It does
// so before there is a credit, because the following tickets decide which of these servers gets it. It needs the
// lock.
func (s *stream) pass(e *datasetEntry, t *chaskiv1.Ticket) (Pending, error) {
	sequencer, ok := e.engine.(Sequencer)
	if !ok {
		return nil, nil
	}
	sequence := s.sequences[e]
	if sequence == nil {
		var err error
		if sequence, err = sequencer.Sequence(s.owner()); err != nil {
			return nil, err
		}
		if s.sequences == nil {
			s.sequences = map[*datasetEntry]Sequence{}
		}
		s.sequences[e] = sequence
	}
	sequence.Add(ticketOf(t), t.GetNative())
	return passedOn{sequence}, nil
}

// passedOn is a ticket of a Sequence.
type passedOn struct{ Sequence }

// Wait implements Pending. Tickets of a stream are waited for in the order of the sequence.
func (p passedOn) Wait(ctx context.Context) (*batch.Batch, error) { return p.Next(ctx) }

// Cancel implements Pending: the stream closes the sequence.
func (passedOn) Cancel() {}

func ticketOf(t *chaskiv1.Ticket) steps.Ticket {
	var weights *steps.Weights
	if w := t.GetWeights(); w != nil {
		weights = &steps.Weights{Path: w.GetPath(), Hash: w.GetHash(), Once: w.GetOnce()}
	}
	return steps.Ticket{
		Epoch: t.GetEpoch(), First: t.GetFirst(), Count: int(t.GetCount()),
		RowStart: int(t.GetRowStart()), RowStride: int(t.GetRowStride()), Positions: t.GetPositions(),
		Corners: t.GetCorners(), Unpadded: t.GetUnpadded(), Weights: weights,
	}
}

// owner returns who can write to the memory of the batches of this stream, or nil. It needs the lock.
func (s *stream) owner() batch.Owner {
	if s.leases == nil {
		// The result is nil itself, since a nil *leaseConn would make an interface that is not nil.
		return nil
	}
	return s.leases
}

// start starts what credits allow. It needs the lock.
func (s *stream) start() {
	for s.started < len(s.queue) && !s.isDown {
		order := s.queue[s.started]
		if order.err == nil {
			if s.working >= s.credits {
				return
			}
			if order.pending == nil {
				order.err = crash.Call(func() error {
					ctx := resources.WithOwner(s.traced(order), s.owner())
					native := order.ticket.GetNative() && (s.leases == nil || s.native)
					order.pending = order.entry.engine.(Starter).Start(ctx, ticketOf(order.ticket), native)
					return nil
				})
			}
			order.works = true
			s.working++
		}
		s.started++
	}
}

// traced begins the span of a batch, and returns its context.
func (s *stream) traced(o *ticketOrder) context.Context {
	ctx, span := trace.Begin(trace.Below(s.ctx, o.ticket.GetTrace()), "chaski.batch")
	span.Set("chaski.epoch", int64(o.ticket.GetEpoch()))
	span.Set("chaski.position", o.ticket.GetFirst())
	span.Set("chaski.rank", int64(o.ticket.GetRowStart()))
	o.span = span
	return ctx
}

// head waits until the first ticket of the queue is started, and returns it, or nil when the stream
// is to end.
func (s *stream) head() (*ticketOrder, error) {
	start := time.Now()
	soon := min(s.server.options.StallTimeout, s.server.options.IdleTimeout)
	look := time.NewTimer(soon)
	defer look.Stop()
	for {
		s.mu.Lock()
		var first *ticketOrder
		if s.started > 0 {
			first = s.queue[0]
		}
		err, left := s.recvErr, len(s.queue)
		s.mu.Unlock()

		switch {
		case s.stopping():
			return nil, failed(errStopping)
		case err != nil && !errors.Is(err, io.EOF):
			return nil, failed(err)
		case first != nil:
			idle := time.Since(start).Seconds()
			s.server.metrics.observe("chaski_server_ticket_wait_seconds", idle)
			if first.entry != nil {
				first.entry.counts.idled(first.rank, idle)
			}
			return first, nil
		case err != nil && left > 0:
			return nil, status.Errorf(codes.FailedPrecondition,
				"the client has closed its side with %d tickets and no credit", left)
		case err != nil:
			return nil, nil
		}
		select {
		case <-s.wake:
		case <-look.C:
			idle := time.Since(start)
			switch {
			case !s.idle(idle):
				look.Reset(soon)
			case left > 0:
				return nil, status.Errorf(codes.Unavailable, "%d tickets have waited for a credit for %v", left, idle)
			default:
				return nil, nil
			}
		case <-s.ctx.Done():
			return nil, failed(s.ctx.Err())
		case <-s.server.serving.Done():
			return nil, failed(errStopping)
		}
	}
}

// idle reports whether the stream is to end, which has had no ticket and credit for a while.
func (s *stream) idle(d time.Duration) bool {
	o := &s.server.options
	return d >= o.IdleTimeout && s.server.clients.hasOthers(s.client) || d >= o.StallTimeout && s.server.clients.full()
}

// answer sends the batch of a started ticket, or its fault. An error ends the stream.
func (s *stream) answer(o *ticketOrder) error {
	var batch *batch.Batch
	defer func() {
		if batch != nil { // a panic came before it was sent
			batch.Discard()
		}
	}()
	ctx, cancel := s.server.whileServing(s.ctx)
	defer cancel()
	if err := s.server.clients.wait(ctx, s.client); err != nil {
		return failed(err)
	}
	if o.err == nil {
		wait := o.entry.counts.await()
		o.err = crash.Call(func() (err error) {
			pending := o.pending
			// Cancel must not be called after Wait.
			o.pending = nil
			batch, err = pending.Wait(ctx)
			return err
		})
		o.entry.counts.waited(o.rank, wait)
	}
	switch {
	case s.ctx.Err() != nil:
		if batch != nil {
			batch.Release()
			batch = nil
		}
		return failed(s.ctx.Err())
	case o.err == nil:
		ready := batch
		batch = nil // send gives it back
		return s.send(o, ready)
	case s.stopping():
		return failed(errStopping)
	}
	crash.Report(s.server.options.Logger, o.err)
	details := wire.NewFault(o.ticket.GetId(), o.err)
	details.Sample = cmp.Or(faultSample(o.err), details.Sample)
	s.server.metrics.add("chaski_server_faults_total", 1, details.GetKind())
	if details.GetKind() != wire.UnknownSpec {
		s.server.options.Logger.Info("ticket", "epoch", o.ticket.GetEpoch(), "first", o.ticket.GetFirst(),
			"error", fault.Line(o.err))
	}
	return s.watch.SendMsg(&chaskiv1.StreamReply{Kind: &chaskiv1.StreamReply_Fault{Fault: details}})
}

// faultSample returns which sample an error is of, or nil.
func faultSample(err error) *chaskiv1.FaultSample {
	var e *loader.SampleError
	if !errors.As(err, &e) {
		return nil
	}
	return &chaskiv1.FaultSample{
		Source: fault.Fit(e.Source), Epoch: e.Epoch, Position: e.Position,
		Sample: e.Sample.Index, Row: e.Sample.Row, Id: fault.Fit(e.Sample.ID), Message: fault.Fit(fault.Line(e.Err)),
	}
}

func (s *stream) stopping() bool { return s.server.serving.Err() != nil }

// send sends b in shared memory if it can, else in parts.
func (s *stream) send(o *ticketOrder, b *batch.Batch) error {
	start, valid := time.Now(), b.Valid
	s.mu.Lock()
	leases, id := s.leases, s.id
	s.mu.Unlock()
	size, err := 0, error(nil)
	if leases != nil {
		size, err = leases.offer(s.watch, b, o.entry, o.ticket.GetId(), id)
	}
	switch {
	case err != nil:
	case size > 0:
		s.server.metrics.add("chaski_server_leases_total", 1)
	default:
		size, err = sendParts(s.watch, o.ticket.GetId(), b, s.server.options.PartBytes)
	}
	if err != nil {
		return err
	}
	o.entry.counts.sent(o.rank, valid, size, time.Since(start).Seconds())
	return nil
}

// offer sends b as a lease. If it cannot be lent it returns 0, and b is still the caller's; else how many bytes the
// payload has.
func (c *leaseConn) offer(w *sendWatch, b *batch.Batch, e *datasetEntry, ticket, stream uint64) (n int, err error) {
	segment := sharedMemory(b)
	if segment == nil {
		return 0, nil
	}
	memory := segment.Bytes()
	// The header is made before the lease, since the client may write to the memory once it is lent.
	var head []byte
	if err := crash.Call(func() error { head = payload.EncodeShared(b, memory); return nil }); err != nil {
		b.Discard()
		return 0, err
	}
	lease, ok := c.lend(b, segment, e, stream)
	if !ok {
		return 0, nil
	}
	b.Keep() // clients keep leases for as long as they like, within bounds of their own
	message := &chaskiv1.Lease{Ticket: ticket, Id: lease, Segment: segment.id, Head: head}
	n = len(head) + len(memory)
	// After an error the lease ends with the recall of the stream.
	return n, w.send(&chaskiv1.StreamReply{Kind: &chaskiv1.StreamReply_Lease{Lease: message}}, n)
}

// sender writes messages to one stream: gRPC's or a pipe.
type sender interface{ SendMsg(any) error }

// lastPart is the most data of the last part of a batch that goes by gRPC, in bytes. gRPC accepts a message once less
// than 64 KiB of the earlier ones are unwritten, so a client that stops reading leaves at most 64 KiB and the last part
// in memory. A pipe keeps nothing.
const lastPart = 16 << 10

// sendParts sends a batch in parts of at most size bytes, releases it, and returns how many bytes they have.
func sendParts(to *sendWatch, ticket uint64, b *batch.Batch, size int) (total int, err error) {
	defer b.Release()
	last := lastPart
	if _, piped := to.to.(*replyPipe); piped {
		last = 0
	}
	segments, total := payload.Encode(b)
	for offset := 0; offset < total; {
		rest := total - offset
		length := min(max(rest-last, last), rest, size)
		part := &parts.Part{Ticket: ticket, Offset: uint64(offset), Total: uint64(total)}
		offset += length
		for length > 0 {
			count := min(len(segments[0]), length)
			part.Data = append(part.Data, segments[0][:count])
			length -= count
			if segments[0] = segments[0][count:]; len(segments[0]) == 0 {
				segments = segments[1:]
			}
		}
		if err := to.SendMsg(part); err != nil {
			return 0, err
		}
	}
	return total, nil
}

// pop removes the answered ticket. A fault costs no credit.
func (s *stream) pop(o *ticketOrder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue[0] = nil
	s.queue = s.queue[1:]
	s.started--
	if o.works {
		s.working--
	}
	s.put(o)
	if o.err == nil {
		// A credit stands for memory of the client, which a fault does not use.
		s.credits--
	}
	s.start()
}

// tearDown cancels the unanswered tickets.
func (s *stream) tearDown() {
	s.mu.Lock()
	s.isDown = true
	queue, leases, id := s.queue, s.leases, s.id
	s.queue, s.started = nil, 0
	sequences, last := s.sequences, s.lastEntry
	s.sequences, s.lastEntry = nil, nil
	s.mu.Unlock()
	defer s.server.engines.keep(s.client, nil, last)
	for _, sequence := range sequences {
		// It is closed before its dataset is put back, since that may close the dataset.
		sequence.Close()
	}
	if leases != nil {
		// The client may have missed the last replies. It must not keep leases unknowingly.
		leases.recall(id)
	}
	for _, order := range queue {
		if order.pending != nil {
			order.pending.Cancel()
		}
		s.put(order)
	}
}

// put gives back the dataset of a ticket.
func (s *stream) put(o *ticketOrder) {
	o.span.End(o.err)
	if o.entry != nil {
		s.server.clients.answered(s.client, o.entry)
		s.server.engines.put(o.entry)
	}
}

package client

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/splitmix"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// session requests batches, and keeps Prefetch of them requested or waiting for Next. It survives broken connections.
//
// Requests of one group go to one server, and groups come one after the other. With only Prefetch requests, mostly one
// of several servers would have work. So a session makes more requests, within PrefetchBytes, until every server has a
// group. A server owes at most Prefetch of them at a time, so it can soon take over the requests of another one.
//
// Every server has a lane. A batch is requested from one server, and from another if that one breaks. Next returns
// batches in the order of the steps.
type session struct {
	run     *Run
	options TicketOptions
	ctx     context.Context
	cancel  context.CancelFunc
	group   sync.WaitGroup    // the session's goroutines
	out     chan ticketResult // has room for all requested batches and the error
	broke   chan struct{}     // has one element when a server has failed since names were looked up

	mu        sync.Mutex
	lanes     []*serverLane
	failing   time.Time        // of the first failure since a server last gave something; zero: none since then
	refuses   bool             // no server has given anything since a line in the log that says so
	queue     []queued         // tickets that are not requested yet
	bytes     int64            // of the largest batch, first an estimate
	last      uint64           // id of the last ticket
	open      []*ticketRequest // not handed to Next, in order
	waiting   []*ticketRequest // open requests that no server has, in order
	ahead     prefetched
	pace      pace
	hasLogged bool // that PrefetchBytes is short
	hasFailed bool
}

// prefetched are the requests whose batches Next has not taken.
type prefetched struct {
	n        int
	spans    []span // their groups, in order
	position int    // in the first of them: batches that Next has taken
}

// add adds a request of a group.
func (p *prefetched) add(group int64) {
	if p.n++; len(p.spans) == 0 || p.spans[len(p.spans)-1].group != group {
		p.spans = append(p.spans, span{group: group})
	}
	p.spans[len(p.spans)-1].n++
}

// take takes out the first one.
func (p *prefetched) take() {
	p.n--
	p.position++
	if p.spans[0].n--; p.spans[0].n == 0 {
		p.spans, p.position = p.spans[1:], 0
	}
}

// pace is where the time of the caller of Next goes.
type pace struct {
	last            time.Time     // when Next last returned a batch
	waited, stepped time.Duration // in Next and between its calls, since servers were last told
}

// next notes that a call of Next, which began at a time, returns a batch.
func (p *pace) next(called time.Time) {
	if !p.last.IsZero() {
		p.stepped += called.Sub(p.last)
	}
	p.last = time.Now()
	p.waited += p.last.Sub(called)
}

// ticketRequest is a ticket that was not handed to Next.
type ticketRequest struct {
	id     uint64
	ticket steps.Ticket
	native bool   // the server may leave the conversion to this side
	group  int64  // requests of one group share decoded tiles, or blocks; -1: no group
	turn   uint64 // number of the group: the next group has the next one
	done   bool
	batch  *batch.Batch // if done, this or
	err    error
	// What servers said that refused it by a fault of their own.
	refusals map[*serverLane]error
}

// queued is a ticket that is not requested yet.
type queued struct {
	ticket steps.Ticket
	native bool
}

// span is a number of requests in a row that are of one group.
type span struct {
	group int64
	n     int
}

// ticketResult is a batch, or the error in its place: of one ticket, or of all that are left because the session is
// over.
type ticketResult struct {
	batch   *batch.Batch
	err     error
	isFinal bool
}

func newSession(r *Run, o TicketOptions) *session {
	made := &session{
		run: r, options: o,
		out:   make(chan ticketResult, r.maxOpen(o.Prefetch)+1), // and the error
		broke: make(chan struct{}, 1),
	}
	made.ctx, made.cancel = context.WithCancel(context.Background())
	made.meet()
	if r.client.named() {
		made.group.Go(made.follow)
	}
	return made
}

// meet makes a lane for each server that has none. One of a server that is gone stays as long as it works.
func (s *session) meet() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var known []*peer
	for _, l := range s.lanes {
		known = append(known, l.peer)
	}
	peers, joined := s.run.client.enter(known)
	for _, l := range s.lanes {
		l.isRemoved = !slices.Contains(peers, l.peer)
	}
	for _, server := range joined {
		place := s.run.places[server]
		// A lane is up if its server has described the run.
		l := &serverLane{s: s, peer: server, place: place, up: place.handle != "", unsent: make(chan struct{}, 1)}
		s.lanes = append(s.lanes, l)
		s.group.Go(l.work)
	}
	slices.SortFunc(s.lanes, func(a, b *serverLane) int { // as all ranks number them
		return cmp.Or(cmp.Compare(a.peer.argument, b.peer.argument), cmp.Compare(a.peer.target, b.peer.target))
	})
	s.assign()
}

// follow looks names up until the session ends: now and then, and when a server fails.
func (s *session) follow() {
	for {
		if err := s.run.client.lookUp(s.ctx); err != nil && s.ctx.Err() == nil {
			s.run.client.options.Logger.Info("the servers stay as they are", "error", fault.Line(err))
		}
		s.meet()
		if !s.sleep(lookLeast) {
			return
		}
		select {
		case <-s.broke:
		case <-time.After(lookEvery):
		case <-s.ctx.Done():
			return
		}
	}
}

// sleep reports false if the session ends meanwhile.
func (s *session) sleep(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-s.ctx.Done():
		return false
	}
}

// advance records that Next, which was called at a time, has a batch, and requests the next one in its place.
func (s *session) advance(b *batch.Batch, called time.Time) {
	s.mu.Lock()
	s.pace.next(called)
	s.ahead.take()
	if b != nil { // a ticket that ended in an error says nothing about sizes
		size := int64(b.Rows) * besideBytes
		for i := range b.Tensors {
			size += int64(len(b.Tensors[i].Data))
		}
		s.bytes = max(s.bytes, size)
	}
	s.mu.Unlock()
	s.ask()
}

// wants reports whether one more batch should be requested. It needs the lock.
func (s *session) wants() bool {
	least, lanes := s.options.Prefetch, len(s.lanes)
	if s.ahead.n < least {
		return true
	}
	if lanes == 1 || s.run.groups == nil || s.run.groups.Lanes > 0 { // other ranks have the other lanes of blocks
		return false
	}
	beyond := 0
	for _, group := range s.ahead.spans[min(lanes-1, len(s.ahead.spans)):] {
		beyond += group.n
	}
	switch {
	case beyond >= s.ahead.position+least:
		return false // every server has a group, and the last one is as far ahead as Next is in the first one
	case int64(s.ahead.n) < min(s.options.PrefetchBytes/max(s.bytes, 1), maxPrefetch):
		return true
	case !s.hasLogged:
		s.hasLogged = true
		s.run.client.options.Logger.Info("not all servers have work at a time: more bytes of prefetched batches "+
			"would reach further",
			"prefetch_bytes", max(s.options.PrefetchBytes, 0), "batches", s.ahead.n, "bytes", s.bytes, "groups",
			len(s.ahead.spans), "servers", lanes)
	}
	return false
}

// add adds a ticket.
func (s *session) add(q queued) {
	s.mu.Lock()
	s.queue = append(s.queue, q)
	s.mu.Unlock()
	s.ask()
}

// ask requests batches while wants reports true and some are left.
func (s *session) ask() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) > 0 && s.wants() {
		next := s.queue[0]
		s.queue = s.queue[1:]
		s.bytes = max(s.bytes, s.run.RowBytes()*int64(next.ticket.Rows()))
		s.last++
		request := &ticketRequest{id: s.last, ticket: next.ticket, native: next.native}
		request.group, request.turn = s.run.groups.Of(request.ticket, len(s.lanes))
		s.ahead.add(request.group)
		s.open, s.waiting = append(s.open, request), append(s.waiting, request)
	}
	s.assign()
}

// receive returns what comes next, or the error of ctx if that ends first.
func (s *session) receive(ctx context.Context) (ticketResult, error) {
	select {
	case r := <-s.out:
		return r, nil
	case <-ctx.Done():
		return ticketResult{}, ctx.Err()
	}
}

// assign gives waiting requests to lanes that are up and have room. It needs the lock.
func (s *session) assign() {
	room := 0
	for _, l := range s.lanes {
		if l.up {
			room += max(s.options.Prefetch-len(l.requests), 0)
		}
	}
	left := s.waiting[:0]
	for i, request := range s.waiting {
		lane := s.choose(request)
		if lane == nil || room <= 0 && request != s.open[0] {
			left = append(left, s.waiting[i:]...)
			break
		}
		if len(lane.requests) >= s.options.Prefetch && request != s.open[0] {
			left = append(left, request)
			continue
		}
		if len(lane.requests) < s.options.Prefetch { // only open[0] may exceed it, and takes no room
			room--
		}
		lane.add(request)
	}
	clear(s.waiting[len(left):])
	s.waiting = left
}

// choose returns the lane for a request, or nil if none is up: one whose server has not refused it, if there is one; of
// these the lane of its group, else one that owes the fewest batches. It needs the lock.
func (s *session) choose(r *ticketRequest) *serverLane {
	var best *serverLane
	var bestRank uint64
	if home := s.lanes[r.turn%uint64(len(s.lanes))]; r.group >= 0 && home.up && r.refusals[home] == nil {
		return home
	}
	for i, lane := range s.lanes {
		if !lane.up || best != nil && r.refusals[best] == nil && r.refusals[lane] != nil {
			continue
		}
		// The server with the highest hash takes the group: when one leaves, only its groups move.
		rank := splitmix.Hash(uint64(r.group), uint64(i))
		if r.group < 0 {
			turn := (uint64(i) + r.id) % uint64(len(s.lanes))
			rank = uint64(math.MaxUint32-len(lane.requests))<<32 | turn
		}
		if best == nil || rank > bestRank || r.refusals[best] != nil && r.refusals[lane] == nil {
			best, bestRank = lane, rank
		}
	}
	return best
}

// answer takes a lane's answer to its oldest request, and sends the batches that are next in order to Next.
func (s *session) answer(l *serverLane, b *batch.Batch, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	request := l.done()
	if s.refuses {
		s.run.client.options.Logger.Warn("a server answers, and the run goes on", "server", l.peer.target, "after",
			time.Since(s.failing).Round(time.Millisecond))
	}
	s.failing, s.refuses = time.Time{}, false
	defer s.assign() // the lane has room
	if s.hasFailed {
		if b != nil {
			b.Release()
		}
		return
	}
	request.done, request.batch, request.err = true, b, err
	for len(s.open) > 0 && s.open[0].done && !s.hasFailed {
		first := s.open[0]
		s.open = s.open[1:]
		// It does not block, because out has room for everything that is open.
		s.out <- ticketResult{batch: first.batch, err: first.err}
	}
}

// noteRefusal takes the fault of a server in place of a batch. It reports whether the request is asked again: of
// another server or, if waiting may help, of the same. Otherwise it returns what all servers said.
func (s *session) noteRefusal(l *serverLane, r *ticketRequest, err error) (again bool, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.refusals == nil {
		r.refusals = map[*serverLane]error{}
	}
	r.refusals[l] = err
	var errs []error
	for _, other := range s.lanes {
		refusal := r.refusals[other]
		if refusal == nil {
			return true, err
		}
		again = again || !final(refusal)
		errs = append(errs, refusal)
	}
	if again {
		clear(r.refusals)
		return true, err
	}
	return false, allSaid(errs)
}

// fail ends the session with an error. It needs the lock.
func (s *session) fail(err error) {
	if !s.hasFailed {
		s.hasFailed = true
		s.out <- ticketResult{err: err, isFinal: true}
	}
}

// broken takes a lane out of use and gives its requests to others; err is nil if the server is well. It reports whether
// the lane has ended: with the session, which no server can go on with, or because its server is gone.
func (s *session) broken(l *serverLane, failures int, err error) (ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.up, l.rests = false, true
	s.waiting = append(s.waiting, l.requests...) // for other servers
	l.requests = nil
	// In the order of the steps, because Next waits for the first one.
	slices.SortFunc(s.waiting, func(a, b *ticketRequest) int { return int(a.id) - int(b.id) })
	defer s.assign()
	if err == nil {
		return false
	}
	l.err = l.peer.failed(err)
	select {
	case s.broke <- struct{}{}:
	default:
	}
	if errors.Is(err, ErrChanged) {
		s.fail(l.err)
		return true
	}
	if l.isRemoved {
		s.lanes = slices.DeleteFunc(s.lanes, func(other *serverLane) bool { return other == l })
		return true
	}
	owed := len(s.waiting) > 0
	var errs []error
	for _, other := range s.lanes {
		owed = owed || len(other.requests) > 0
		if other.err != nil {
			errs = append(errs, other.err)
		}
	}
	if !owed || s.failing.IsZero() { // patience is with those who owe something
		s.failing = time.Now()
	}
	patience := max(l.peer.options.Patience, 0)
	end := s.failing.Add(patience)
	if !slices.ContainsFunc(s.lanes, func(other *serverLane) bool { return other.hopes(end) }) {
		s.fail(allSaid(errs))
		return true
	}
	log := s.run.client.options.Logger
	switch {
	case owed && len(errs) == len(s.lanes) && !s.refuses:
		s.refuses = true
		log.Warn("no server answers, and the run waits", "patience", patience, "error", fault.Line(allSaid(errs)))
	case failures == 1 && len(errs) < len(s.lanes):
		log.Info("a server fails and rests, others are asked", "server", l.peer.target, "error", fault.Line(err))
	}
	return false
}

// close ends the session and releases what Next did not take.
func (s *session) close() {
	s.cancel()
	s.group.Wait()
	for _, r := range s.open {
		if r.batch != nil {
			r.batch.Release()
		}
	}
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

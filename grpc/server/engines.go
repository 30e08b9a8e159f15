package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zeebo/xxh3"
	"google.golang.org/protobuf/proto"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/report"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/resources"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/source"
)

// engines are the open datasets, by handle: at most Options.MaxEngines. Of the unused ones, those that are not open in
// a stream are closed first, the longest unused before the others. A lack of memory closes engines, too, but spares
// those that a client is about to use (kept.go).
type engines struct {
	options  Options
	stages   *resources.Stages  // of the workers of all datasets
	cancel   context.CancelFunc // ends the openings
	openings *openings
	clients  *clients
	metrics  *metrics

	mu           sync.Mutex
	live         map[*datasetEntry]struct{} // all that are not closed
	byHandle     map[string]*datasetEntry
	bySpec       map[string]*datasetEntry // by the spec's JSON, for a Describe of the same spec
	expectations map[clientID]expectation
	clock        int64 // counts uses
	closed       bool
	offerTimer   *time.Timer // offers the budget the memory that was held for a client
	leave        func()      // ends the membership in the budget
}

// datasetEntry is an open dataset. Its fields are guarded by engines.mu.
type datasetEntry struct {
	engine       Engine
	view         *fileView // whose clients may use it
	leave        func()    // ends the use of the view
	handle       string
	spec         string // JSON
	users        int
	streams      int       // whose last ticket was for it
	used         int64     // engines.clock at the last use
	idle         time.Time // since when it has no users
	opened       time.Time
	awaitsUser   bool    // nobody of those who wait for its opening has it yet
	remote       bool    // it is at other servers
	local        bool    // all of its files are here
	counts       *counts // for reports; not guarded
	orphan       bool    // not in the maps any more; the last user closes it
	leased       int64   // bytes of its batches that clients have; guarded by leaseTable.mu
	largestBatch int64   // in bytes, 0 if not known
	memory       int64   // bytes of all of its batches
	trim         *time.Timer
}

func newEngines(o Options) *engines {
	made := &engines{options: o, stages: &resources.Stages{}, live: map[*datasetEntry]struct{}{},
		byHandle: map[string]*datasetEntry{}, bySpec: map[string]*datasetEntry{},
		expectations: map[clientID]expectation{}}
	var ctx context.Context
	ctx, made.cancel = context.WithCancel(context.Background())
	made.clients = newClients(o)
	made.openings = newOpenings(ctx, o, made.clients)
	made.leave = o.Loader.Budget.Join(made)
	return made
}

// Freed implements budget.Holder.
func (*engines) Freed() {}

// handleOf names a spec on its data in its place: two places may hold data of equal names and sizes,
// and so equal spec hashes.
func handleOf(e Engine, upstream string) string {
	return fmt.Sprintf("%s-%016x", e.Hash(), xxh3.HashString(e.Spec().Places()+upstream))
}

// get returns the dataset with a handle, for a client with the view that it was opened for: who may read other files
// must not get it by a handle that is guessed. It is the caller's until put.
func (s *engines) get(v *fileView, handle string) (*datasetEntry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.byHandle[handle]
	if ok = ok && found.view == v; ok {
		s.use(found)
	}
	return found, ok
}

// use needs the lock.
func (s *engines) use(e *datasetEntry) {
	s.clock++
	e.users++
	e.used = s.clock
	if e.trim != nil {
		// Otherwise memory would be freed just before it is needed.
		e.trim.Stop()
	}
}

func (s *engines) put(e *datasetEntry) {
	s.mu.Lock()
	e.users--
	idle := e.users == 0
	if idle {
		e.idle = time.Now()
	}
	last := e.orphan && idle
	if idle && !last {
		s.trimLater(e)
	}
	rests := idle && e.streams == 0
	s.mu.Unlock()
	if last {
		s.close(e)
		return
	}
	if rests {
		s.rest(e)
	}
	if idle {
		// Requests that wait need to know, since they may have this one closed.
		s.options.Loader.Budget.Offer()
	}
}

// rest closes the files that a dataset needs for batches alone, because no stream takes any.
func (s *engines) rest(e *datasetEntry) {
	if rester, ok := e.engine.(interface{ Rest() }); ok {
		crash.Report(s.options.Logger, crash.Call(func() error { rester.Rest(); return nil }))
	}
}

// trimLater frees the batch memory of a dataset that nobody uses for a while: not between two epochs,
// when all of it would have to be made again. It needs the lock.
func (s *engines) trimLater(e *datasetEntry) {
	trimmer, ok := e.engine.(interface{ Trim() })
	switch {
	case !ok:
	case e.trim != nil:
		e.trim.Reset(s.options.TrimAfter)
	default:
		e.trim = time.AfterFunc(s.options.TrimAfter, func() {
			s.mu.Lock()
			idle := e.users == 0 && !e.orphan
			s.mu.Unlock()
			if idle {
				crash.Report(s.options.Logger, crash.Call(func() error { trimmer.Trim(); return nil }))
			}
		})
	}
}

// forget frees the memory of batches that belonged to a client that is gone.
func (s *engines) forget(c *leaseConn) {
	s.mu.Lock()
	live := slices.Collect(maps.Keys(s.live))
	s.mu.Unlock()
	// Without the lock: the budget gets the memory, and its holders, such as this one, would need the lock.
	for _, dataset := range live {
		if keeper, ok := dataset.engine.(interface{ Forget(batch.Owner) }); ok {
			keeper.Forget(c)
		}
	}
}

func (s *engines) close(e *datasetEntry) {
	s.mu.Lock()
	delete(s.live, e)
	s.mu.Unlock()
	if err := e.engine.Close(); err != nil {
		s.options.Logger.Warn("closing a dataset", "source", e.engine.Spec().Source, "error", err)
	}
	e.leave()
}

// open returns the dataset of a spec, opening it unless that was done a moment ago. It is the
// caller's until put. Callers with the same spec wait for one opening, which ends with the last of them.
func (s *engines) open(ctx context.Context, v *fileView, spec loader.Spec, u *chaskiv1.Upstream, rows int) (
	*datasetEntry, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	local := u == nil && isLocal(&spec)
	request := openRequest{view: v, spec: spec, key: string(data) + v.key, upstream: u, rows: rows, local: local}
	if u != nil {
		place, err := proto.MarshalOptions{Deterministic: true}.Marshal(u)
		if err != nil {
			return nil, err
		}
		request.at = fmt.Sprintf("\x00%d %s", rows, place)
		request.key += request.at
	}
	key := request.key
	begin := time.Now()
	for range 8 { // another client's dataset may take the place of this one before it is ours, so try again
		if e := s.recent(key, begin); e != nil {
			return e, nil
		}
		open := func(ctx context.Context) (any, error) { return nil, s.openNow(ctx, request) }
		if _, err := s.openings.do(ctx, v, "dataset "+key, local, open); err != nil {
			return nil, err
		}
	}
	return nil, fault.New(fault.Limit, "server", "datasets are opened faster than %d places allow",
		s.options.MaxEngines)
}

// isLocal reports whether all files that a spec names are local.
func isLocal(s *loader.Spec) bool {
	remote := func(name string) bool { return source.IsRemote(source.FileOf(name)) }
	found := remote(s.Source)
	for i := range s.Sources {
		found = found || remote(s.Sources[i].Source) || len(s.Sources[i].Sources) > 0
	}
	return !found
}

// recent returns the dataset of a spec that was opened since begin or, if files of it are in stores, less than Reuse
// ago. Local files may be other ones at once: a table that is written anew for each epoch is read anew.
func (s *engines) recent(key string, begin time.Time) *datasetEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.bySpec[key]
	// Other servers come and go, so their state must be current.
	reuse := known != nil && !known.remote && !known.local && time.Since(known.opened) <= s.options.Reuse
	if known == nil || known.opened.Before(begin) && !reuse {
		return nil
	}
	known.awaitsUser = false
	s.use(known)
	return known
}

// openRequest is a request to open a dataset.
type openRequest struct {
	view     *fileView // of the client
	spec     loader.Spec
	key      string             // names all of it
	upstream *chaskiv1.Upstream // nil: it is here
	at       string             // names upstream and rows; empty without upstream
	rows     int
	local    bool // all of its files are here
}

func (s *engines) openNow(ctx context.Context, r openRequest) error {
	var engine Engine
	var err error
	options := r.view.loader
	options.Stages = &resources.Stages{Of: s.stages, Coarse: true}
	if r.upstream == nil {
		engine, err = s.options.Open(ctx, r.spec, options)
	} else {
		engine, err = s.options.Upstream(ctx, r.spec, r.upstream, r.rows, options)
	}
	if err != nil {
		return err
	}
	opened := &datasetEntry{engine: engine, view: r.view, leave: r.view.hold(), spec: r.key,
		handle: handleOf(engine, r.at+r.view.key),
		remote: r.upstream != nil, local: r.local,
		counts: &counts{stages: options.Stages, cache: s.options.Cache,
			remote: r.upstream != nil, metrics: s.metrics, ranks: map[rankID]*report.Rank{}},
		memory: cmp.Or(s.options.Loader.MemoryBytes, resources.DefaultMemoryBytes)}
	if m, ok := engine.(interface{ MemoryBytes() int64 }); ok {
		opened.memory = m.MemoryBytes()
	}
	if b, ok := engine.(interface{ BatchBytes() int64 }); ok {
		opened.largestBatch = b.BatchBytes()
	}
	close, err := s.add(opened)
	for _, unused := range close {
		s.close(unused)
	}
	return err
}

// add adds an open dataset and returns the entries that must be closed for it. If the same data are open already, the
// open one stays, because its caches are filled; but not if it is idle and local, whose files may be other ones.
func (s *engines) add(e *datasetEntry) (close []*datasetEntry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return []*datasetEntry{e}, errStopping
	}
	old := s.byHandle[e.handle]
	if old != nil && e.local && old.users == 0 {
		old, close = nil, s.remove(old, close)
	}
	if old != nil {
		old.opened = time.Now()
		old.awaitsUser = true
		s.bySpec[e.spec] = old
		return []*datasetEntry{e}, nil
	}
	for len(s.byHandle) >= s.options.MaxEngines {
		idle := s.longestIdle(func(*datasetEntry) bool { return true })
		if idle == nil {
			return append(close, e), fault.New(fault.Limit, "server",
				"all %d datasets that may be open are in use", s.options.MaxEngines)
		}
		close = s.remove(idle, close)
	}
	s.clock++
	e.used, e.opened = s.clock, time.Now()
	e.awaitsUser = true
	s.byHandle[e.handle], s.bySpec[e.spec] = e, e
	s.live[e] = struct{}{}
	return close, nil
}

// longestIdle returns the dataset without users that is to be closed first, of those that may be, or nil. It needs the
// lock.
func (s *engines) longestIdle(may func(*datasetEntry) bool) *datasetEntry {
	var idle *datasetEntry
	for _, entry := range s.byHandle {
		switch {
		case entry.users > 0 || !may(entry):
		case idle != nil && idle.streams == 0 && entry.streams > 0:
		case idle == nil || idle.streams > 0 && entry.streams == 0 || entry.used < idle.used:
			idle = entry
		}
	}
	return idle
}

// remove takes e, if any, out of the maps and appends it to close if nobody uses it.
func (s *engines) remove(e *datasetEntry, close []*datasetEntry) []*datasetEntry {
	if e == nil {
		return close
	}
	e.orphan = true
	if e.trim != nil {
		e.trim.Stop()
	}
	delete(s.byHandle, e.handle)
	maps.DeleteFunc(s.bySpec, func(_ string, other *datasetEntry) bool { return other == e })
	maps.DeleteFunc(s.expectations, func(_ clientID, t expectation) bool { return t.of == e })
	if e.users == 0 {
		return append(close, e)
	}
	return close
}

// number returns how many datasets are open.
func (s *engines) number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byHandle)
}

// shut closes all datasets that are not in use; those in use are closed by their last user.
func (s *engines) shut() {
	s.leave()
	s.cancel()
	s.mu.Lock()
	s.closed = true
	if s.offerTimer != nil {
		s.offerTimer.Stop()
	}
	var close []*datasetEntry
	for _, e := range s.byHandle {
		close = s.remove(e, close)
	}
	s.mu.Unlock()
	for _, e := range close {
		s.close(e)
	}
}

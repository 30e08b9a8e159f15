package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
)

// slow opens datasets that are there once release is closed, and counts what it does.
type slow struct {
	begun   chan string // gets the source of each opening
	release chan struct{}
	ended   chan error // gets the error of each opening that was given up
	now     atomic.Int64
	most    atomic.Int64
	all     atomic.Int64
}

func newSlow(o Options) (*slow, *engines) {
	s := &slow{begun: make(chan string, 1000), release: make(chan struct{}), ended: make(chan error, 1000)}
	o.Open, o.Logger = s.open, slog.New(slog.DiscardHandler)
	return s, newEngines(o.withDefaults())
}

func (s *slow) open(ctx context.Context, spec loader.Spec, _ loader.Options) (Engine, error) {
	s.all.Add(1)
	n := s.now.Add(1)
	defer s.now.Add(-1)
	for m := s.most.Load(); n > m && !s.most.CompareAndSwap(m, n); m = s.most.Load() {
	}
	s.begun <- spec.Source
	select {
	case <-s.release:
		return &placed{source: spec.Source}, nil
	case <-ctx.Done():
		s.ended <- ctx.Err()
		return nil, ctx.Err()
	}
}

// askFor asks for a dataset and returns its error.
func askFor(ctx context.Context, e *engines, source string) error {
	got, err := e.open(ctx, theView, loader.Spec{Source: source, BatchSize: 1}, nil, 0)
	if err == nil {
		e.put(got)
	}
	return err
}

// users returns how many wait for the openings, and how many openings wait for a place.
func (o *openings) users() (users, waiting int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, w := range o.byKey {
		users += w.users
	}
	return users, int(o.local.waiting.Load() + o.remote.waiting.Load())
}

// ofClients returns how many openings count against the bound of their client.
func (o *openings) ofClients() (n int) {
	o.clients.mu.Lock()
	defer o.clients.mu.Unlock()
	for _, h := range o.clients.byID {
		n += h.openings
	}
	return n
}

// until waits for a condition that must come.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not come that %s", what)
		}
	}
}

// TestOpeningEndsWithItsLastWaiter promises that an opening goes on while anybody waits for it, ends when the last one
// has gone, and leaves nothing to the next one who asks.
func TestOpeningEndsWithItsLastWaiter(t *testing.T) {
	s, e := newSlow(Options{})
	defer e.shut()
	var ctxs [3]context.Context
	var cancels [3]context.CancelFunc
	errs := make(chan error, 3)
	for i := range ctxs {
		ctxs[i], cancels[i] = context.WithCancel(t.Context())
		defer cancels[i]()
		go func() { errs <- askFor(ctxs[i], e, "x") }()
	}
	until(t, "three wait", func() bool { n, _ := e.openings.users(); return n == 3 })
	for _, i := range []int{1, 0} {
		cancels[i]()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if len(s.ended) > 0 {
			t.Fatal("the opening ended while somebody waits")
		}
	}
	cancels[2]()
	if err := errors.Join(<-errs, <-s.ended); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(s.release)
	if err := askFor(t.Context(), e, "x"); err != nil {
		t.Errorf("asked again: %v", err)
	}
	if n := s.all.Load(); n != 2 {
		t.Errorf("%d openings for three who ask at once and one after them", n)
	}
}

// TestOpeningsAreBounded promises that as many openings run as may, as many wait as may, in turn, and that the next one
// is refused with the names of the flags, though not one that is like another.
func TestOpeningsAreBounded(t *testing.T) {
	const run, queue = 2, 3
	s, e := newSlow(Options{MaxOpenings: run, MaxQueuedOpenings: queue, MaxClientOpenings: 100})
	defer e.shut()
	errs := make(chan error, 100)
	remote := func(i int) string { return fmt.Sprintf("https://host/%d", i) }
	for i := range run + queue {
		go func() { errs <- askFor(t.Context(), e, remote(i)) }()
	}
	until(t, "they wait", func() bool {
		n, waiting := e.openings.users()
		return n == run+queue && waiting == queue
	})
	err := askFor(t.Context(), e, "one more")
	if fault.KindOf(err) != fault.Limit || !strings.Contains(err.Error(), "--max-openings") ||
		!strings.Contains(err.Error(), "--max-queued-openings") {
		t.Errorf("one too many: %v", err)
	}
	const equal = 50
	for i := range equal {
		go func() { errs <- askFor(t.Context(), e, remote(i%(run+queue))) }()
	}
	until(t, "equal ones wait", func() bool { n, _ := e.openings.users(); return n == run+queue+equal })
	close(s.release)
	for range run + queue + equal {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if all, most := s.all.Load(), s.most.Load(); all != run+queue || most != run {
		t.Errorf("%d openings, %d at a time; want %d and %d", all, most, run+queue, run)
	}
	until(t, "no opening is left", func() bool {
		n, waiting := e.openings.users()
		return n == 0 && waiting == 0 && len(e.openings.remote.slots) == 0
	})
}

// TestLocalOpeningsLeaveProcessors promises that openings of local files leave half of the processors to others, and
// that openings of remote files do not wait for them.
func TestLocalOpeningsLeaveProcessors(t *testing.T) {
	const all = 6
	s, e := newSlow(Options{MaxOpenings: all, Loader: loader.Options{Workers: 4}})
	defer e.shut()
	errs := make(chan error, 2*all)
	for i := range all {
		go func() { errs <- askFor(t.Context(), e, fmt.Sprint(i)) }()
	}
	until(t, "they wait", func() bool { _, waiting := e.openings.users(); return waiting == all-2 })
	for i := range all {
		go func() { errs <- askFor(t.Context(), e, fmt.Sprint("https://host/", i)) }()
	}
	for range all + 2 {
		<-s.begun
	}
	close(s.release)
	for range 2 * all {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := s.most.Load(); n != all+2 {
		t.Errorf("%d openings at a time", n)
	}
}

// TestQueuedOpeningsGiveUp promises that whoever goes leaves the queue, without a place.
func TestQueuedOpeningsGiveUp(t *testing.T) {
	s, e := newSlow(Options{MaxOpenings: 1, MaxQueuedOpenings: 1})
	defer e.shut()
	first := make(chan error, 1)
	go func() { first <- askFor(t.Context(), e, "first") }()
	<-s.begun
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() {
			if err := askFor(ctx, e, "second"); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		until(t, "the second one waits", func() bool { _, waiting := e.openings.users(); return waiting == 1 })
		cancel()
		wait.Wait()
		until(t, "it has left", func() bool { return e.openings.ofClients() == 1 })
	}
	close(s.release)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if n := s.all.Load(); n != 1 {
		t.Errorf("%d openings began", n)
	}
}

// TestOpeningsEndWithTheServer promises that a server that stops waits for no opening.
func TestOpeningsEndWithTheServer(t *testing.T) {
	s, e := newSlow(Options{MaxOpenings: 1})
	errs := make(chan error, 2)
	for i := range 2 {
		go func() { errs <- askFor(t.Context(), e, fmt.Sprint(i)) }()
	}
	until(t, "one waits for the other", func() bool { n, w := e.openings.users(); return n == 2 && w == 1 })
	e.shut()
	for range 2 {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	<-s.ended
}

// theView is that of all clients where roots make no difference.
var theView = &fileView{}

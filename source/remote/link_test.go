package remote

import (
	"bytes"
	"context"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/diskcache"
)

// stream lets answers come over a link of a round trip and a rate, with n requests in flight, for some time.
func stream(l *link, now time.Time, spent, trip time.Duration, rate float64, n int) time.Time {
	const step = 5 * time.Millisecond
	for range spent / step {
		now = now.Add(step)
		l.begin(now, n-1)
		l.answered(now, trip)
		l.brought(now, int64(rate*step.Seconds()))
	}
	return now
}

// TestGapFollowsTheLink: the gap is round trip × rate ÷ requests in flight within its bounds, and what was measured
// long ago is forgotten.
func TestGapFollowsTheLink(t *testing.T) {
	near := func(got, want int64) bool { return got > want*9/10 && got < want*11/10 }
	var l link
	if l.gap() != StartGap || l.limit() != minFlight {
		t.Errorf("at first a gap of %d, %d bytes in flight", l.gap(), l.limit())
	}
	now := stream(&l, time.Now(), 5*time.Second, 30*time.Millisecond, 20e6, 32)
	if want := int64(0.030 * 20e6 / 32); !near(l.gap(), want) || l.limit() != minFlight {
		t.Errorf("30 ms, 20 MB/s, 32 requests: a gap of %d, want %d; %d bytes in flight", l.gap(), want, l.limit())
	}
	now = stream(&l, now, 3*period, 30*time.Millisecond, 1e9, 256)
	if want := int64(30e6) / 256; !near(l.gap(), want) || !near(l.limit(), maxFlight) {
		t.Errorf("30 ms, 1 GB/s, 256 requests: a gap of %d, want %d; %d bytes in flight", l.gap(), want, l.limit())
	}
	now = stream(&l, now, 3*period, 100*time.Millisecond, 100e6, 64)
	if want := int64(0.100 * 100e6 / 64); !near(l.gap(), want) || !near(l.limit(), fill*0.1*100e6) {
		t.Errorf("100 ms, 100 MB/s, 64 requests: a gap of %d, want %d; %d bytes in flight", l.gap(), want, l.limit())
	}
	now = stream(&l, now, period, 100*time.Millisecond, 100e6, 1)
	if l.gap() != source.MaxGap {
		t.Errorf("100 ms, 100 MB/s, one request: a gap of %d", l.gap())
	}
	stream(&l, now, 3*period, time.Millisecond, 1e6, 20)
	if l.gap() != source.MinGap {
		t.Errorf("1 ms, 1 MB/s: a gap of %d", l.gap())
	}
}

// TestGapOfACache: a run with a cache on disk and a plan that names only its quota have a fixed gap. The gap of other
// readers follows the link.
func TestGapOfACache(t *testing.T) {
	unset, folder, quota := new(diskcache.Ref), new(diskcache.Ref), new(diskcache.Ref)
	folder.Set(t.TempDir(), 1<<20)
	quota.Set("", 1<<20)
	for name, c := range map[string]struct {
		disk *diskcache.Ref
		want int64
	}{
		"no cache": {nil, source.MaxGap}, "unset": {unset, source.MaxGap}, "folder": {folder, StartGap},
		"quota": {quota, StartGap},
	} {
		o, err := New(&lagging{}, Options{Disk: c.disk})
		if err != nil {
			t.Fatal(err)
		}
		stream(&o.hosts.get("host", &o.options).link, time.Now(), 5*time.Second, 100*time.Millisecond, 100e6, 2)
		r, err := o.OpenKnown(t.Context(), "http://host/x", source.Known{Size: 100, ETag: "t"})
		if err != nil {
			t.Fatal(err)
		}
		if got := source.Gap(r); got != c.want {
			t.Errorf("%s: a gap of %d, want %d", name, got, c.want)
		}
	}
}

// TestMoreBytesInFlightAreTried: where answers take far longer than the shortest, the rate grows with the bytes in
// flight, and so do they; on a full link they do not.
func TestMoreBytesInFlightAreTried(t *testing.T) {
	for _, full := range []bool{false, true} {
		var l link
		now := time.Now()
		l.begin(now, 0)
		l.brought(now, 0) // the first interval begins
		for range 200 {
			rate := 40e6
			if !full { // 30 ms to the middle answer, up to 600 MB/s
				rate = min(float64(l.limit())/0.030, 600e6)
			}
			l.hadWait = true
			now = stream(&l, now, interval, 2*time.Millisecond, rate, 32)
		}
		if limit := l.limit(); full && limit > minFlight*3/2 || !full && limit < 12<<20 {
			t.Errorf("full %v: %d bytes in flight", full, limit)
		}
	}
}

// TestARoundTripIsNoLowRate: the rate of a link that was idle counts from its first bytes.
func TestARoundTripIsNoLowRate(t *testing.T) {
	var l link
	now := time.Now()
	l.begin(now, 0)
	stream(&l, now.Add(interval/2), interval+20*time.Millisecond, 30*time.Millisecond, 20e6, 4)
	if rate := l.rates[0]; rate < 19e6 || rate > 21e6 {
		t.Errorf("%.0f bytes a second, want 20 MB/s", rate)
	}
}

// enterAll begins requests in goroutines, one after the other, and returns what gets those that were let in.
func enterAll(t *testing.T, h *hostState, orders []int64, bytes int64) <-chan *requestFlight {
	t.Helper()
	in := make(chan *requestFlight, len(orders))
	for i, order := range orders {
		go func() {
			f, err := h.enter(source.WithOrder(context.Background(), order), bytes)
			if err != nil {
				t.Error(err)
			}
			in <- f
		}()
		for range 60_000 { // until it waits or is let in
			h.mu.Lock()
			seen := h.count
			h.mu.Unlock()
			if seen > int64(i) {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	return in
}

// TestOlderBatchesGoFirst: of requests that wait, those of the oldest batch go first, and in it the first.
func TestOlderBatchesGoFirst(t *testing.T) {
	h := &hostState{most: 1}
	in := enterAll(t, h, []int64{9, 3, 2, 3, 1, 0, 2}, 10)
	var orders, counts []int64
	for range 7 {
		f := <-in
		orders, counts = append(orders, f.order), append(counts, f.count)
		f.leave()
	}
	if !slices.Equal(orders, []int64{9, 0, 1, 2, 2, 3, 3}) || !slices.Equal(counts, []int64{1, 6, 5, 3, 7, 2, 4}) {
		t.Errorf("orders %v of requests %v", orders, counts)
	}
	if h.requests != 0 || h.bytes != 0 || len(h.waiting) != 0 {
		t.Errorf("%d requests of %d bytes are left", h.requests, h.bytes)
	}
}

// TestNewerBatchesWaitForTheOldest: requests of newer batches begin when the oldest one in flight no longer keeps the
// link busy; its own do not wait for that.
func TestNewerBatchesWaitForTheOldest(t *testing.T) {
	h := &hostState{most: 100}
	full := h.link.full()
	in := enterAll(t, h, []int64{1, 1, 2, 3, 1}, full*3/4)
	begun := []*requestFlight{<-in, <-in, <-in}
	for i, f := range begun {
		if f.order != 1 {
			t.Errorf("request %d is of batch %d", i, f.order)
		}
		f.wrote()
	}
	bring := func(n int64, waiting int) {
		t.Helper()
		begun[0].brought(int(n))
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.waiting) != waiting {
			t.Errorf("%d requests wait, want %d", len(h.waiting), waiting)
		}
	}
	begun[1].leave() // the other two of the batch have 3/2 of what fills the link
	bring(full/2-full/20, 2)
	bring(full/10, 0)
	for _, f := range append(begun, <-in, <-in) {
		if f != begun[1] {
			f.leave()
		}
	}
	if h.requests != 0 || h.bytes != 0 || len(h.batches) != 0 {
		t.Errorf("%d requests of %d bytes, %d batches are left", h.requests, h.bytes, len(h.batches))
	}
}

// TestNewerBatchesWaitForConnectionsOfTheOldest: while nothing is known of the link, requests of newer batches begin
// when the oldest batch has sent its requests, or they have failed.
func TestNewerBatchesWaitForConnectionsOfTheOldest(t *testing.T) {
	h := &hostState{most: 100}
	in := enterAll(t, h, []int64{1, 1, 1, 2, 1}, 1)
	oldest := []*requestFlight{<-in, <-in, <-in, <-in}
	answer := func() { oldest[1].answered(time.Millisecond) }
	for i, end := range []func(){oldest[0].wrote, answer, oldest[0].wrote, oldest[2].leave, oldest[3].wrote} {
		h.mu.Lock()
		if len(h.waiting) != 1 || h.waiting[0].order != 2 {
			t.Errorf("%d: %d requests wait", i, len(h.waiting))
		}
		h.mu.Unlock()
		end()
	}
	newest := <-in
	for _, f := range append(oldest[:2:2], oldest[3], newest) {
		f.leave()
	}
	if newest.order != 2 || h.requests != 0 || len(h.batches) != 0 {
		t.Errorf("batch %d, %d requests and %d batches are left", newest.order, h.requests, len(h.batches))
	}
	h.link.trips[0], h.link.rates[0] = time.Millisecond, 1e6
	in = enterAll(t, h, []int64{1, 2}, 1)
	(<-in).leave()
	(<-in).leave()
}

// TestHangingConnectionsHoldUpShortly: a connection that is never made delays newer batches by maxHold.
func TestHangingConnectionsHoldUpShortly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, err := New(&numbered{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		h, begun := o.hosts.get("host", &o.options), time.Now()
		go func() {
			ctx := source.WithOrder(t.Context(), 1)
			_ = o.attempt(ctx, h, 1, func(ctx context.Context, _ *requestFlight) error {
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		synctest.Wait()
		done := func(context.Context, *requestFlight) error { return nil }
		err = o.attempt(source.WithOrder(t.Context(), 2), h, 1, done)
		if waited := time.Since(begun); err != nil || waited != maxHold {
			t.Errorf("the newer batch began after %v: %v", waited, err)
		}
	})
}

// TestBytesInFlightAreBounded: requests begin until what they are to bring reaches the limit, and others follow as
// bytes come. One that is cancelled leaves nothing.
func TestBytesInFlightAreBounded(t *testing.T) {
	h := &hostState{most: 100}
	h.link.trips[0], h.link.rates[0] = time.Millisecond, 1e6 // the limit is minFlight
	const size = minFlight / 4
	in := enterAll(t, h, make([]int64, 7), size)
	state := func() (requests, waiting int, bytes int64) {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.requests, len(h.waiting), h.bytes
	}
	if requests, waiting, bytes := state(); requests != 4 || waiting != 3 || bytes != minFlight {
		t.Errorf("%d requests of %d bytes, %d wait", requests, bytes, waiting)
	}
	f := <-in
	f.brought(1)
	if requests, _, _ := state(); requests != 5 {
		t.Errorf("%d requests after a byte", requests)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.enter(ctx, size); err != context.Canceled {
		t.Error(err)
	}
	f.brought(size) // more than it has left
	f.leave()
	for range 6 {
		(<-in).leave()
	}
	if requests, waiting, bytes := state(); requests+waiting != 0 || bytes != 0 {
		t.Errorf("%d requests of %d bytes, and %d that wait, are left", requests, bytes, waiting)
	}
	if f, err := h.enter(t.Context(), 100*minFlight); err != nil { // a large one alone
		t.Error(err)
	} else {
		f.leave()
	}
}

// lagging answers every request, but the first one of an object in a list only when it is given up.
type lagging struct {
	late          map[string]bool
	mu            sync.Mutex
	asked, gaveUp int
}

func (s *lagging) Host(string) string { return "host" }
func (s *lagging) Get(ctx context.Context, uri string, r Range, _ Tag) (*Answer, error) {
	s.mu.Lock()
	s.asked++
	late := s.late[uri]
	s.late[uri] = false
	s.mu.Unlock()
	if late {
		<-ctx.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.gaveUp++
		return nil, ctx.Err()
	}
	body := io.NopCloser(bytes.NewReader(make([]byte, r.Len)))
	return &Answer{Body: body, Range: r, Size: 100, Tag: Tag{ETag: "t"}}, nil
}

// TestLateRequestsAreSentOnceMore: a request without an answer is sent once more and its first copy is given up, for
// one of 50 requests; the others wait.
func TestLateRequestsAreSentOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &lagging{late: map[string]bool{}}
		o, err := New(store, Options{Attempts: 1, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		read := func(uri string) (time.Duration, error) {
			begun := time.Now()
			r, err := o.OpenKnown(t.Context(), uri, source.Known{Size: 100, ETag: "t"})
			if err == nil {
				err = r.ReadAt(t.Context(), make([]byte, 10), 5)
			}
			return time.Since(begun), err
		}
		const requests = 102 // two copies
		for range requests {
			if _, err := read("x://host/a"); err != nil {
				t.Fatal(err)
			}
		}
		store.late["x://host/b"], store.late["x://host/c"], store.late["x://host/d"] = true, true, true
		for i, uri := range []string{"x://host/b", "x://host/c", "x://host/d"} {
			spent, err := read(uri)
			if i < 2 && (err != nil || spent != leastLate) || i == 2 && (err == nil || spent < time.Minute) {
				t.Errorf("late request %d: %v after %v", i, err, spent)
			}
		}
		synctest.Wait()
		if store.asked != requests+5 || store.gaveUp != 3 || o.Stats().Requests != requests+5 {
			t.Errorf("%d requests, %d given up, %+v", store.asked, store.gaveUp, o.Stats())
		}
	})
}

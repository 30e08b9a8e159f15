package refcache_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source/refcache"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world holds the objects from which values are opened: the version of each key.
type world struct {
	versions [5]atomic.Int64
	open     atomic.Int64 // values that are not closed yet
}

// value is a value of one version of a key.
type value struct {
	w       *world
	key     int
	version int64
	bytes   atomic.Int64
	closed  atomic.Bool
}

func (w *world) opener(key int) func(context.Context) (*value, error) {
	return func(context.Context) (*value, error) {
		w.open.Add(1)
		return &value{w: w, key: key, version: w.versions[key].Load()}, nil
	}
}

var errTwice = errors.New("closed twice")

func (v *value) close() error {
	if v.closed.Swap(true) {
		return errTwice
	}
	v.w.open.Add(-1)
	return nil
}

func options(maxEntries int, bytes int64) refcache.Options[*value] {
	return refcache.Options[*value]{
		MaxEntries: maxEntries, MaxBytes: bytes, Close: (*value).close,
		SizeOf: func(v *value) int64 { return v.bytes.Load() },
		Stale:  func(_ context.Context, v *value) bool { return v.w.versions[v.key].Load() != v.version },
	}
}

// TestCacheAgainstList: after any sequence of uses, Acquire returns the current version, values in
// use are open, and the unused cached values are those that a plain LRU list keeps within both
// limits.
func TestCacheAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxEntries, bytes := rapid.IntRange(0, 3).Draw(t, "max entries"), int64(rapid.IntRange(1, 10).Draw(t, "bytes"))
		w := &world{}
		s := refcache.New[int](options(maxEntries, bytes))
		type lease = *refcache.Lease[int, *value]
		var used []lease
		var order []*value // cached values, the most recently used last
		refs := map[*value]int{}
		evict := func(v *value) { order = slices.DeleteFunc(order, func(x *value) bool { return x == v }) }
		trim := func() {
			for i := 0; i < len(order); {
				sum := int64(0)
				for _, v := range order {
					sum += v.bytes.Load()
				}
				if len(order) <= maxEntries && sum <= bytes {
					return
				}
				if refs[order[i]] > 0 {
					i++
					continue
				}
				order = slices.Delete(order, i, i+1)
			}
		}
		release := func(i int, keep bool) {
			l := used[i]
			used = slices.Delete(used, i, i+1)
			for range 2 { // the second does nothing
				if err := l.Release(keep); err != nil {
					t.Fatal(err)
				}
			}
			v := l.Value
			refs[v]--
			if at := slices.Index(order, v); at >= 0 {
				evict(v)
				if keep {
					order = append(order, v)
				}
			}
			trim()
		}
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				k := rapid.IntRange(0, 4).Draw(t, "key")
				at := slices.IndexFunc(order, func(v *value) bool { return v.key == k })
				l, err := s.Acquire(context.Background(), k, w.opener(k))
				if err != nil {
					t.Fatal(err)
				}
				v := l.Value
				switch {
				case at < 0:
					order = append(order, v)
				case order[at].version == w.versions[k].Load():
					if v != order[at] {
						t.Fatal("a cached value was opened again")
					}
				default:
					evict(order[at])
					trim()
					order = append(order, v)
				}
				refs[v]++
				used = append(used, l)
				if v.key != k || v.version != w.versions[k].Load() {
					t.Fatalf("key %d: version %d of %d", k, v.version, v.key)
				}
			},
			"release": func(t *rapid.T) {
				if len(used) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(used)-1).Draw(t, "which")
				used[i].Value.bytes.Store(int64(rapid.IntRange(0, 4).Draw(t, "bytes")))
				release(i, rapid.IntRange(0, 4).Draw(t, "keep") > 0)
			},
			"change": func(t *rapid.T) { w.versions[rapid.IntRange(0, 4).Draw(t, "key")].Add(1) },
			"evict": func(t *rapid.T) {
				k := rapid.IntRange(0, 4).Draw(t, "key")
				if err := s.Evict(k); err != nil {
					t.Fatal(err)
				}
				order = slices.DeleteFunc(order, func(v *value) bool { return v.key == k })
			},
			"": func(t *rapid.T) {
				if s.Len() != len(order) {
					t.Fatalf("%d values are cached, want %d", s.Len(), len(order))
				}
				open := maps.Clone(refs)
				for _, v := range order {
					open[v]++
				}
				n := int64(0)
				for v, r := range open {
					if r > 0 {
						n++
					}
					if v.closed.Load() != (r == 0) {
						t.Fatalf("a value of key %d with %d uses: closed is %v", v.key, r, v.closed.Load())
					}
				}
				if n != w.open.Load() {
					t.Fatalf("%d are open, want %d", w.open.Load(), n)
				}
			},
		})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		order = nil
		for len(used) > 0 {
			release(0, true)
		}
		if n := w.open.Load(); n != 0 || s.Len() != 0 || s.Bytes() != 0 {
			t.Fatalf("%d values are open at the end, %d cached with %d bytes", n, s.Len(), s.Bytes())
		}
	})
}

// TestCacheConcurrent: concurrent users never see a closed value or one older than their request, and every value is
// closed once.
func TestCacheConcurrent(t *testing.T) {
	w := &world{}
	s := refcache.New[int](options(2, 5))
	var g sync.WaitGroup
	for seed := range uint64(8) {
		g.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			for range 2000 {
				k := rng.IntN(5)
				if rng.IntN(20) == 0 {
					w.versions[k].Add(1)
				}
				before := w.versions[k].Load()
				l, err := s.Acquire(t.Context(), k, w.opener(k))
				if err != nil {
					t.Error(err)
					return
				}
				l.Value.bytes.Store(rng.Int64N(4))
				if l.Value.closed.Load() || l.Value.version < before || l.Value.key != k {
					t.Error("a closed, old or wrong value")
				}
				if rng.IntN(50) == 0 {
					if err := s.Evict(k); err != nil {
						t.Error(err)
					}
				}
				if l.Value.closed.Load() {
					t.Error("closed in use")
				}
				if err := l.Release(rng.IntN(10) > 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	g.Wait()
	if err := s.Close(); err != nil || w.open.Load() != 0 {
		t.Errorf("%d are open at the end, %v", w.open.Load(), err)
	}
}

// TestCacheOpensOnce: concurrent users of a missing value share one open call and its error, but not its cancellation.
func TestCacheOpensOnce(t *testing.T) {
	w := &world{}
	s := refcache.New[int](options(2, 0))
	started, release := make(chan struct{}), make(chan error)
	slow := func(context.Context) (*value, error) {
		close(started)
		if err := <-release; err != nil {
			return nil, err
		}
		return w.opener(1)(context.Background())
	}
	asked := func(n int, open func(context.Context) (*value, error)) chan error {
		out := make(chan error, n)
		for range n {
			go func() {
				l, err := s.Acquire(t.Context(), 1, open)
				if err == nil {
					err = l.Release(true)
				}
				out <- err
			}()
		}
		return out
	}
	never := func(context.Context) (*value, error) { return nil, errors.New("opened twice") }
	for _, x := range []struct {
		name   string
		fails  error
		others func(context.Context) (*value, error)
		cancel bool
	}{
		{"an error", errors.New("none"), never, false},
		{"a canceled opener", context.Canceled, w.opener(1), true},
		{"success", nil, never, false},
	} {
		started, release = make(chan struct{}), make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error)
		go func() {
			l, err := s.Acquire(ctx, 1, slow)
			if err == nil {
				err = l.Release(true)
			}
			first <- err
		}()
		<-started
		late, cancelLate := context.WithCancel(t.Context())
		cancelLate()
		if _, err := s.Acquire(late, 1, never); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: a canceled user: %v", x.name, err)
		}
		others := asked(3, x.others)
		if x.cancel {
			cancel()
		}
		release <- x.fails
		if err := <-first; !errors.Is(err, x.fails) {
			t.Errorf("%s: %v", x.name, err)
		}
		for range 3 {
			// A user that comes after an error opens the value itself, with `never`, which fails.
			err := <-others
			if x.fails == nil && err != nil || x.cancel && err != nil || err == nil && x.fails != nil && !x.cancel {
				t.Errorf("%s: another: %v", x.name, err)
			}
		}
		cancel()
		if x.cancel {
			if err := s.Evict(1); err != nil {
				t.Error(err)
			}
		}
	}
	if err := s.Close(); err != nil || w.open.Load() != 0 {
		t.Errorf("%d are open, %v", w.open.Load(), err)
	}
}

// TestReusable: decides which errors of a use let the value stay cached.
func TestReusable(t *testing.T) {
	for err, want := range map[error]bool{
		nil:                                     true,
		context.Canceled:                        true,
		fault.At(fault.NotFound, "", 0, "x"):    true,
		fault.At(fault.Unsupported, "", 0, "x"): true,
		fault.At(fault.Corrupt, "", 0, "x"):     false,
		fault.At(fault.Limit, "", 0, "x"):       false,
		errors.New("x"):                         false,
	} {
		if refcache.Reusable(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
}

// TestSharedLease promises that a value is closed once, by the last of the leases that share it, also where the cache
// has closed before a lease was shared.
func TestSharedLease(t *testing.T) {
	closed := 0
	c := refcache.New[string](refcache.Options[int]{MaxEntries: 1, Close: func(int) error { closed++; return nil }})
	first, err := c.Acquire(t.Context(), "a", func(context.Context) (int, error) { return 7, nil })
	if err != nil {
		t.Fatal(err)
	}
	second := first.Share()
	if err := errors.Join(c.Close(), first.Release(true), first.Release(true)); err != nil {
		t.Fatal(err)
	}
	third := first.Share() // of a released one, while second is not
	for i, l := range []*refcache.Lease[string, int]{second, third} {
		if closed > 0 || l.Value != 7 {
			t.Fatalf("closed %d times with %d leases left", closed, 2-i)
		}
		if err := l.Release(true); err != nil {
			t.Fatal(err)
		}
	}
	if closed != 1 {
		t.Errorf("closed %d times", closed)
	}
}

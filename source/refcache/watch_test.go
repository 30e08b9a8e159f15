package refcache_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/source/refcache"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestWatchOfFiles: Changed notices a file that was overwritten, replaced, deleted or created, but
// not one that was read.
func TestWatchOfFiles(t *testing.T) {
	files := &openers.Files{}
	defer files.Close()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	write := func(t *testing.T, path, text string) {
		t.Helper()
		testfile.Write(t, path, []byte(text))
		at = at.Add(time.Second)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	for name, x := range map[string]struct {
		change func(t *testing.T, a, b string)
		want   bool
	}{
		"nothing":  {func(*testing.T, string, string) {}, false},
		"in place": {func(t *testing.T, a, _ string) { write(t, a, "1") }, true},
		"longer":   {func(t *testing.T, a, _ string) { write(t, a, "11") }, true},
		"another there": {
			func(t *testing.T, a, b string) { write(t, b+"2", "2"); must(t, os.Rename(b+"2", a)) },
			true,
		},
		"gone":             {func(t *testing.T, a, _ string) { must(t, os.Remove(a)) }, true},
		"appeared":         {func(t *testing.T, _, b string) { write(t, b, "1") }, true},
		"something beside": {func(t *testing.T, a, _ string) { write(t, a+"3", "1") }, false},
	} {
		dir := t.TempDir()
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		write(t, a, "0")
		w := refcache.NewWatch(files)
		r, err := files.Open(t.Context(), a)
		must(t, err)
		for range 2 {
			if !w.Record(a, r) {
				t.Errorf("%s: a file differs from itself", name)
			}
		}
		must(t, r.Close())
		w.RecordAbsent(b)
		x.change(t, a, b)
		if got := w.Changed(t.Context()); got != x.want {
			t.Errorf("%s: changed is %v", name, got)
		}
		if r, err := files.Open(t.Context(), a); err == nil {
			if got := w.Record(a, r); got != (!x.want || name == "appeared") {
				t.Errorf("%s: opened again, it is the same: %v", name, got)
			}
			must(t, r.Close())
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// store has objects with entity tags, and counts the requests.
type store struct {
	mu    sync.Mutex
	tags  map[string]string
	reads int
	gate  chan struct{} // if it is not nil, reads wait for it
}

func (s *store) Open(ctx context.Context, uri string) (source.Reader, error) {
	return s.OpenKnown(ctx, uri, source.Known{Size: 10, ETag: s.tags[uri]})
}

func (s *store) OpenKnown(_ context.Context, uri string, k source.Known) (source.Reader, error) {
	return &object{s, uri, k}, nil
}

type object struct {
	s   *store
	uri string
	k   source.Known
}

func (o *object) Size() int64  { return o.k.Size }
func (o *object) Close() error { return nil }
func (o *object) ETag() string { return o.k.ETag }
func (o *object) ReadAt(ctx context.Context, p []byte, _ int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if o.s.gate != nil {
		<-o.s.gate
	}
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	o.s.reads++
	if len(p) != 1 {
		return fault.At(fault.Limit, "", 0, "%d bytes", len(p))
	}
	if o.s.tags[o.uri] != o.k.ETag {
		return fault.At(fault.Corrupt, "", 0, "the entity tag differs")
	}
	return nil
}

// TestWatchOfObjects: a check reads one byte of each remote object, and its interval grows with the number of objects.
func TestWatchOfObjects(t *testing.T) {
	for _, n := range []int{1, 20} {
		s, clock := &store{tags: map[string]string{}}, time.Now()
		w := refcache.NewWatchAt(s, func() time.Time { return clock })
		for i := range n {
			uri := "s3://b/" + strconv.Itoa(i)
			s.tags[uri] = "1"
			r, err := s.Open(t.Context(), uri)
			must(t, err)
			w.Record(uri, r)
		}
		w.RecordAbsent("s3://b/none")
		every := refcache.CheckInterval * time.Duration(1+n/16)
		for _, x := range []struct {
			after time.Duration
			reads int
		}{{0, 0}, {every - 1, 0}, {1, n}, {every - 1, 0}, {every, n}} {
			clock = clock.Add(x.after)
			s.reads = 0
			if w.Changed(t.Context()) || s.reads != x.reads {
				t.Errorf("%d objects, %v later: %d requests, want %d", n, x.after, s.reads, x.reads)
			}
		}
		s.tags["s3://b/0"] = "2"
		if w.Changed(t.Context()) {
			t.Error("an object was checked again before the interval ended")
		}
		clock = clock.Add(every)
		for range 2 { // a change stays noticed
			if !w.Changed(t.Context()) {
				t.Error("a changed entity tag is not noticed")
			}
		}
	}
}

// TestWatchConcurrent: of concurrent callers one checks, and the others use its result. A cancelled
// check leaves no result.
func TestWatchConcurrent(t *testing.T) {
	for _, tag := range []string{"1", "2"} {
		synctest.Test(t, func(t *testing.T) {
			s, clock := &store{tags: map[string]string{}}, time.Now()
			w := refcache.NewWatchAt(s, func() time.Time { return clock })
			for _, uri := range []string{"s3://b/0", "s3://b/1", "s3://b/2"} {
				s.tags[uri] = "1"
				r, err := s.Open(t.Context(), uri)
				must(t, err)
				w.Record(uri, r)
			}
			clock = clock.Add(refcache.CheckInterval)
			canceled, cancel := context.WithCancel(t.Context())
			cancel()
			_ = w.Changed(canceled)
			for uri := range s.tags {
				s.tags[uri] = tag
			}
			s.reads, s.gate = 0, make(chan struct{})
			var g sync.WaitGroup
			for range 8 {
				g.Go(func() {
					if w.Changed(t.Context()) != (tag != "1") {
						t.Error("Changed returned the wrong answer")
					}
				})
			}
			synctest.Wait()
			close(s.gate)
			g.Wait()
			if s.reads > 3 || tag == "1" && s.reads != 3 {
				t.Errorf("%d requests for 3 objects, tag %s", s.reads, tag)
			}
		})
	}
}

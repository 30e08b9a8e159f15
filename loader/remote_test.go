package loader_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/diskcache"
	"github.com/chaski-eo/chaski/source/httpsource"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
	"github.com/chaski-eo/chaski/tools/testkit/netsim/fakes3"
)

// bucket is a set of chips in a store behind a slow link, read by HTTP, and a catalog of them on disk.
type bucket struct {
	store   *fakes3.Store
	opener  *remote.Opener // over the link
	disk    *diskcache.Ref // of the opener
	folder  string         // where the chips lie: their URIs are 0000.tif and so on below it
	catalog string
	bytes   int64 // of all chips
}

func newBucket(tb testing.TB, chips, bands, side, tile int, roundTrip time.Duration, rate float64) *bucket {
	tb.Helper()
	noise := func(i int) []byte { return netsim.Chip(uint64(i), bands, side, tile) }
	return bucketOf(tb, chips, noise, roundTrip, rate)
}

// bucketOf returns a bucket of chips that are files, behind a link.
func bucketOf(tb testing.TB, chips int, file func(i int) []byte, roundTrip time.Duration, rate float64) *bucket {
	tb.Helper()
	b := &bucket{store: fakes3.Start(tb, "chips")}
	fatal := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	for i := range chips {
		chip := file(i)
		b.bytes += int64(len(chip))
		fatal(b.store.Put(fmt.Sprintf("c/%04d.tif", i), chip))
	}
	link, err := netsim.NewLink(strings.TrimPrefix(b.store.URL, "http://"), roundTrip, rate)
	fatal(err)
	b.folder, b.disk = "http://"+link.Addr+"/chips/c", new(diskcache.Ref)
	uris := make([]string, chips)
	for i := range uris {
		uris[i] = fmt.Sprintf("%s/%04d.tif", b.folder, i)
	}
	open := func() *remote.Opener {
		o, err := httpsource.New(httpsource.Options{Options: remote.Options{Disk: b.disk}})
		fatal(err)
		return o
	}
	first := open() // b.opener has no chip in memory
	var table strings.Builder
	_, err = build.Write(context.Background(), &table, uris, build.Options{Opener: first})
	fatal(err)
	fatal(first.Close())
	b.catalog = filepath.Join(tb.TempDir(), "chips.parquet")
	fatal(writeFile(b.catalog, table.String()))
	b.opener = open()
	tb.Cleanup(func() {
		if err := b.opener.Close(); err != nil {
			tb.Error(err)
		}
		link.Close()
	})
	return b
}

// stream reads epochs until some bytes have arrived, and returns the time since the first batch and
// the bytes since then.
func (b *bucket) stream(tb testing.TB, o loader.Options, batch int, atLeast int64) (time.Duration, int64) {
	tb.Helper()
	ctx := context.Background()
	o.Opener = &openers.Mux{Files: &openers.Files{}, Schemes: map[string]source.Opener{"http": b.opener}}
	e, err := loader.Open(ctx, loader.Spec{
		Source: b.catalog, BatchSize: batch, Shuffle: true, Last: steps.LastDrop,
		Fields: []loader.Field{{Name: "image", DType: "native"}},
	}, o)
	if err != nil {
		tb.Fatal(err)
	}
	defer e.Close()
	l, err := loader.NewLoader(e, loader.LoaderOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	var start time.Time
	var first, n int64
	for n-first < atLeast || start.IsZero() {
		x, err := l.Next(ctx)
		if err != nil {
			tb.Fatal(err)
		}
		x.Release()
		if n = b.opener.Stats().Bytes; start.IsZero() {
			start, first = time.Now(), n
		}
	}
	return time.Since(start), n - first
}

// TestFetchersReadAheadOfDecoders: requests overlap, decoding uses no more than its workers, and
// the batches equal those of one worker.
func TestFetchersReadAheadOfDecoders(t *testing.T) {
	b := newBucket(t, 24, 1, 64, 64, 0, 1e9)
	const together = 6 // of 8 chips a batch
	var now, most, wanted atomic.Int64
	wanted.Store(1)
	var once sync.Once
	met := make(chan struct{}) // closed when the wanted number of requests is there at a time
	b.store.Answer(func(_ http.ResponseWriter, r *http.Request, _ int64) bool {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if wanted.Load() == 1 { // others have time to come, though they must not
			time.Sleep(5 * time.Millisecond)
			return false
		}
		if n == wanted.Load() {
			once.Do(func() { close(met) })
		}
		select {
		case <-met:
		case <-time.After(5 * time.Minute):
		case <-r.Context().Done():
		}
		return false
	})
	read := func(workers, fetchers int) (all []byte) {
		ctx := context.Background()
		e, err := loader.Open(ctx, loader.Spec{
			Source: b.catalog, BatchSize: 8, Shuffle: true, Fields: []loader.Field{{Name: "image", DType: "native"}},
		}, loader.Options{
			Workers: workers, Fetchers: fetchers,
			Opener: &openers.Mux{Files: &openers.Files{}, Schemes: map[string]source.Opener{"http": b.opener}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		l, err := loader.NewLoader(e, loader.LoaderOptions{Epochs: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		most.Store(0)
		for {
			x, err := l.Next(ctx)
			if errors.Is(err, io.EOF) {
				return all
			}
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, x.Tensors[0].Data...)
			x.Release()
		}
	}
	before := b.store.Requests()
	one := read(1, 1)
	if n := most.Load(); n != 1 {
		t.Errorf("%d requests at a time with one worker", n)
	}
	if n := b.store.Requests() - before; n != 24 {
		t.Errorf("%d requests for 24 chips", n)
	}
	wanted.Store(together)
	many := read(1, 12)
	if n := most.Load(); n < together || n > 12 {
		t.Errorf("%d requests at a time with 12 fetchers", n)
	}
	if string(one) != string(many) {
		t.Error("other batches")
	}
}

// TestFaultsNeverChangeBatches: over HTTP from a server where one answer in five goes wrong, in
// every way, batches equal those without faults, and a missing chip is a bad sample under every
// policy.
func TestFaultsNeverChangeBatches(t *testing.T) {
	s := netsim.NewServer(false)
	web, err := httpsource.New(httpsource.Options{Options: remote.Options{
		Attempts: 40, Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond, // 12 s for an answer
		Timeout: 300 * time.Millisecond, MinRate: 1 << 30, RetryBurst: 100_000,
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		s.Close()
		if err := web.Close(); err != nil {
			t.Error(err)
		}
	}()
	opener := &openers.Mux{Files: &openers.Files{}, Schemes: map[string]source.Opener{"http": web}}
	var uris []string
	for i := range 24 {
		s.Put(fmt.Sprintf("/%02d.tif", i), netsim.Chip(uint64(i), 2, 64, 32))
		uris = append(uris, fmt.Sprintf("%s/%02d.tif", s.URL, i))
	}
	first, err := httpsource.New(httpsource.Options{}) // another one, since opener has no chip in memory
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	var table strings.Builder
	if _, err := build.Write(t.Context(), &table, uris, build.Options{Opener: first}); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "chips.parquet")
	if err := writeFile(name, table.String()); err != nil {
		t.Fatal(err)
	}
	epoch := func(bad string) (all []byte, invalid int, err error) {
		e, err := loader.Open(t.Context(), loader.Spec{
			Source: name, BatchSize: 6, Shuffle: true, BadSamples: bad,
			Fields: []loader.Field{{Name: "image", DType: "float32"}},
		}, loader.Options{Opener: opener, Workers: 2})
		if err != nil {
			return nil, 0, err
		}
		defer e.Close()
		l, err := loader.NewLoader(e, loader.LoaderOptions{Epochs: 1})
		if err != nil {
			return nil, 0, err
		}
		defer l.Close()
		for b, err := range l.All(t.Context()) {
			if err != nil {
				return nil, 0, err
			}
			all = append(all, b.Tensors[0].Data...)
			invalid += len(b.Bad)
		}
		return all, invalid, nil
	}
	want, _, err := epoch(spec.BadError)
	if err != nil || len(want) == 0 {
		t.Fatal(err)
	}
	faults := []netsim.Fault{
		netsim.Unavailable, netsim.TooMany, netsim.ShortBody, netsim.ShortRange, netsim.WrongRange,
		netsim.StallBody, netsim.Stall, netsim.Reset, netsim.Garbage, netsim.Extra,
	}
	s.OnRequest(func(n int, _ *http.Request) netsim.Fault {
		if n%5 == 2 {
			return faults[n/5%len(faults)]
		}
		return netsim.None
	})
	for range 3 {
		if got, _, err := epoch(spec.BadError); err != nil || string(got) != string(want) {
			t.Errorf("other batches: %v", err)
		}
	}
	gone := func(f netsim.Fault) {
		s.OnRequest(func(_ int, r *http.Request) netsim.Fault {
			if r.URL.Path == "/07.tif" {
				return f
			}
			return netsim.None
		})
	}
	gone(netsim.NotFound)
	if _, _, err := epoch(spec.BadError); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a chip that is gone: %v", err)
	}
	if _, n, err := epoch(spec.BadSkip); n != 1 || err != nil {
		t.Errorf("a chip that is gone, skipped: %d, %v", n, err)
	}
	gone(netsim.Unavailable) // says nothing about the sample
	_, _, err = epoch(spec.BadSkip)
	if err == nil || fault.KindOf(err) != 0 || !strings.Contains(err.Error(), "/07.tif: byte range at") {
		t.Errorf("a server that does not answer: %v", err)
	}
}

// BenchmarkRemoteStream streams TOG chips over a link of 30 ms and 100 MB/s. link% is the
// share of the link's rate that arrives as chips; heap-MB is the growth of the process, with its
// server's answers.
func BenchmarkRemoteStream(b *testing.B) {
	const rate = 100e6
	s := newBucket(b, 160, 3, 256, 256, 30*time.Millisecond, rate)
	for _, fetchers := range []int{1, 16, 32, 64} {
		b.Run(fmt.Sprintf("fetchers=%d", fetchers), func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			start := s.opener.Stats()
			total, spent := int64(0), time.Duration(0)
			for b.Loop() {
				d, n := s.stream(b, loader.Options{Fetchers: fetchers}, 16, 2*s.bytes)
				total, spent = total+n, spent+d
			}
			runtime.ReadMemStats(&after)
			end := s.opener.Stats()
			b.SetBytes(0)
			b.ReportMetric(float64(total)/1e6/spent.Seconds(), "MB/s")
			b.ReportMetric(100*float64(total)/spent.Seconds()/rate, "link%")
			b.ReportMetric((float64(after.HeapInuse)-float64(before.HeapInuse))/1e6, "heap-MB")
			b.ReportMetric(float64(end.Bytes-start.Bytes)/float64(end.Requests-start.Requests), "B/request")
		})
	}
}

func writeFile(name, text string) error { return os.WriteFile(name, []byte(text), 0o600) }

// TestForecastOverAServer: an epoch of an array on a web server costs the requests and the bytes of
// its forecast, as the server counts them. No request opens a tile file.
func TestForecastOverAServer(t *testing.T) {
	dir, ctx := filepath.Dir(corpus.Known(t, "server")), t.Context()
	var requests, bytes atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/dn.tdb") {
			var first, last int64
			if n, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last); n != 2 {
				t.Errorf("Range %q: %v", r.Header.Get("Range"), err)
			}
			requests.Add(1)
			bytes.Add(last - first + 1)
		}
		http.FileServer(http.Dir(dir)).ServeHTTP(w, r)
	}))
	defer server.Close()
	for _, sampler := range []loader.Sampler{
		{},
		{Kind: spec.RandomWindow, Height: 100, Width: 90, PerAsset: 4},
		{Kind: spec.GridWindow, Height: 64, Width: 64, GridWindows: spec.GridWindows{StrideY: 40}},
		{Kind: spec.TileWindow, Height: 50, Width: 50, TileWindows: spec.TileWindows{TileHeight: 100, TileWidth: 90,
			PerVisit: 2, Pool: 2}},
	} {
		web, err := httpsource.New(httpsource.Options{Options: remote.Options{}})
		if err != nil {
			t.Fatal(err)
		}
		e, err := loader.Open(ctx, loader.Spec{
			Source: server.URL + "/server", Dims: "n b y x", BatchSize: 3, Shuffle: true, Sampler: sampler,
		},
			loader.Options{
				Workers: 1, Fetchers: 1,
				Opener: &openers.Mux{Files: &openers.Files{}, Schemes: map[string]source.Opener{"http": web}},
			})
		if err != nil {
			t.Fatal(err)
		}
		f, err := e.Forecast(ctx, dryrun.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if requests.Load() != 0 {
			t.Errorf("%q: the forecast read tiles", sampler.Kind)
		}
		l, err := loader.NewLoader(e, loader.LoaderOptions{Epochs: 1})
		if err != nil {
			t.Fatal(err)
		}
		for {
			b, err := l.Next(ctx)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			b.Release()
		}
		l.Close()
		if n := requests.Load(); sampler.Kind == "" && n != 4 { // of images, whose 24 tiles lie side by side
			t.Errorf("%d requests for 4 images", n)
		}
		n, size := requests.Swap(0), bytes.Swap(0)
		// Windows that share chunks read them once if they are known early enough.
		exact := n == f.Total.Requests && size == f.Total.Bytes && f.Exact()
		if shared := f.Loose && size <= f.Total.Bytes; n == 0 || !exact && !shared {
			t.Errorf("%q: the server had %d requests for %d bytes, the forecast was %+v",
				sampler.Kind, n, size, f.Total)
		}
		e.Close()
		if err := web.Close(); err != nil {
			t.Error(err)
		}
	}
}

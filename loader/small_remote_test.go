package loader_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/httpsource"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
	"github.com/chaski-eo/chaski/tools/testkit/netsim/far"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// chipsOf reads an epoch of whole chips, and returns the samples and their bytes.
func chipsOf(
	t *testing.T, o loader.Options, src string, sampler loader.Sampler, fields ...loader.Field,
) (samples int, data string) {
	t.Helper()
	o.Workers = 2
	e, err := loader.Open(t.Context(), loader.Spec{
		Source: src, BatchSize: 1, Fields: fields, Sampler: sampler, Shuffle: true, Seed: 5,
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	l, err := loader.NewLoader(e, loader.LoaderOptions{Epochs: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var all strings.Builder
	for b, err := range l.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		samples++
		for _, x := range b.Tensors {
			all.Write(x.Data)
		}
	}
	return samples, all.String()
}

// tail is the size of the end of netsim.Chip that no reader needs.
const tail = 4

// TestSmallRemoteChipsAreReadOnce: a small chip of a container, whose size is known, costs one request together with
// its header.
func TestSmallRemoteChipsAreReadOnce(t *testing.T) {
	near := loader.Options{Opener: &openers.Files{}}
	path := filepath.Join(filepath.Dir(coast(t, "")), "containers", "taco-v1", "stream_n1.taco")
	fields := []loader.Field{{Name: "a", Column: "hrf", DType: "native"}}
	window := loader.Sampler{Kind: spec.RandomWindow, Height: 64, Width: 64} // the chips are of several sizes
	container := testfile.Read(t, path)
	for scheme, p := range far.Places(t, filepath.Base(path), container, remote.Options{}) {
		p.Asked()
		n, got := chipsOf(t, loader.Options{Opener: p.Opener}, p.URI, window, fields...)
		requests := int64(len(p.Asked()))
		t.Logf("%s: %d requests, %d bytes for %d chips", scheme, requests, p.Opener.Stats().Bytes, n)
		_, want := chipsOf(t, near, path, window, fields...)
		if got != want || n != 4 {
			t.Errorf("%s: %d other chips", scheme, n)
		}
		if opening := int64(1); requests != opening+int64(n) {
			t.Errorf("%s: %d requests for %d chips and 1 that opens the container", scheme, requests, n)
		}
	}
}

// TestHeadersOfChipsAreReadOnce: of files that nothing is known of, an epoch reads each byte once, although the header
// comes first. The forecast has the requests and bytes of the pixels alone.
func TestHeadersOfChipsAreReadOnce(t *testing.T) {
	const chips, head = 6, 64 << 10
	dir := t.TempDir()
	store := &netsim.Store{Dir: dir}
	server := httptest.NewServer(store)
	defer server.Close()
	web, err := httpsource.New(httpsource.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	size, table := int64(0), "image\n"
	for i := range chips {
		chip := netsim.Chip(uint64(i), 1, 256, 64)
		size += int64(len(chip))
		testfile.Write(t, filepath.Join(dir, fmt.Sprintf("%d.tif", i)), chip)
		table += fmt.Sprintf("%s/%d.tif\n", server.URL, i)
	}
	name := filepath.Join(t.TempDir(), "chips.csv")
	if err := writeFile(name, table); err != nil {
		t.Fatal(err)
	}
	o := loader.Options{Opener: &openers.Mux{Files: &openers.Files{}, Schemes: map[string]source.Opener{"http": web}}}
	e, err := loader.Open(t.Context(), loader.Spec{Source: name, BatchSize: 2}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	f, err := e.Forecast(t.Context(), dryrun.Options{})
	if err != nil || !f.Exact() || f.Total.Requests != chips || f.Total.Bytes != size-chips*(head+tail) {
		t.Errorf("%d chips of %d bytes: the forecast is %+v, %v", chips, size, f, err)
	}
	l, err := loader.NewLoader(e, loader.LoaderOptions{Epochs: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	rows := 0
	for b, err := range l.All(t.Context()) {
		if err != nil || len(b.Bad) > 0 {
			t.Fatal(b, err)
		}
		rows += b.Rows
	}
	if requests, bytes := store.Counts(); rows != chips || requests != 2*chips || bytes != size-chips*tail {
		t.Errorf("%d requests of %d bytes for %d chips of %d bytes", requests, bytes, chips, size)
	}
}

// patience is how long a request waits for others. Those that the next batch needs may be the last of their prefetch:
// no others come before they are answered. The client gives up after 10 s.
const patience = 2 * time.Second

// crowd holds requests back until n of them are there at a time.
type crowd struct {
	n, now atomic.Int64 // n is 0 for none
	once   sync.Once
	met    chan struct{} // closed then
}

func (c *crowd) wait() {
	if c.n.Load() == 0 {
		return
	}
	if c.now.Add(1) == c.n.Load() {
		c.once.Do(func() { close(c.met) })
	}
	defer c.now.Add(-1)
	select {
	case <-c.met:
	case <-time.After(patience):
	}
}

// hasMet reports whether they were.
func (c *crowd) hasMet() bool {
	select {
	case <-c.met:
		return true
	default:
		return false
	}
}

// distant serves the files of a directory, whose requests wait for each other, and returns options to read them with,
// and a catalog of them.
func distant(t *testing.T, dir string) (store *netsim.Store, c *crowd, o loader.Options, table string) {
	t.Helper()
	store, c = &netsim.Store{Dir: dir}, &crowd{met: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.wait()
		store.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	open := func() *openers.Mux {
		web, err := httpsource.New(httpsource.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := web.Close(); err != nil {
				t.Error(err)
			}
		})
		return &openers.Mux{Files: &openers.Files{}, Schemes: map[string]source.Opener{"http": web}}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var uris []string
	for _, e := range entries {
		uris = append(uris, server.URL+"/"+e.Name())
	}
	var made strings.Builder
	if _, err := build.Write(t.Context(), &made, uris, build.Options{Opener: open()}); err != nil {
		t.Fatal(err)
	}
	table = filepath.Join(t.TempDir(), "chips.parquet")
	if err := writeFile(table, made.String()); err != nil {
		t.Fatal(err)
	}
	return store, c, loader.Options{Workers: 1, Opener: open()}, table // which has no file in memory
}

// epochOfChips reads an epoch and returns its samples.
func epochOfChips(t *testing.T, o loader.Options, s loader.Spec, prefetch int) (samples int) {
	t.Helper()
	e, err := loader.Open(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	l, err := loader.NewLoader(e, loader.LoaderOptions{Epochs: 1, Prefetch: prefetch})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for b, err := range l.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		samples += b.Rows
	}
	return samples
}

// TestWindowsReadWhatTheyNeed: windows of a wide image read its tiles, not what lies between the rows of tiles, and ask
// for all of them at the same time.
func TestWindowsReadWhatTheyNeed(t *testing.T) {
	race.SkipCovered(t)
	const side, tile, window, windows = 2048, 128, 180, 32
	dir := t.TempDir()
	testfile.Write(t, filepath.Join(dir, "a.tif"), netsim.Chip(1, 1, side, tile))
	store, c, o, table := distant(t, dir)
	c.n.Store(2)
	o.Fetchers = 1
	_, before := store.Counts()
	sampler := loader.Sampler{Kind: spec.RandomWindow, Height: window, Width: window, PerAsset: windows}
	s := loader.Spec{Source: table, BatchSize: 4, Seed: 3, Sampler: sampler}
	e, err := loader.Open(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	f, err := e.Forecast(t.Context(), dryrun.Options{})
	if err != nil || f.Gap < source.MinGap || f.Gap > source.MaxGap || !f.Loose || f.Exact() {
		t.Errorf("the link decides about the reads, and the forecast is %+v, %v", f, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	n := epochOfChips(t, o, s, 3)
	_, bytes := store.Counts()
	// A window of 180 pixels meets at most 3 tiles of 128 on each side. Two rows of tiles are 512 KiB apart.
	if limit := int64(n * 3 * 3 * tile * tile * 2); n != windows || bytes-before > limit || !c.hasMet() {
		t.Errorf("%d windows read %d bytes, and need at most %d; two requests at a time: %v", n, bytes-before, limit,
			c.hasMet())
	}
}

// TestSmallSamplesFillTheLink: many more requests than Options.Fetchers are on the way at a time if samples are small,
// chips or windows of large rasters.
func TestSmallSamplesFillTheLink(t *testing.T) {
	const samples, batch = 600, 8
	for _, test := range []struct {
		files, side int
		sampler     loader.Sampler
	}{
		{samples, 16, loader.Sampler{}},
		{4, 640, loader.Sampler{Kind: spec.RandomWindow, PerAsset: samples / 4, Height: 16, Width: 16}},
	} {
		dir := t.TempDir()
		for i := range test.files {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.tif", i)),
				netsim.Chip(uint64(i), 1, test.side, 16), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, c, o, table := distant(t, dir)
		s := loader.Spec{Source: table, BatchSize: batch, Fields: []loader.Field{{Name: "image", DType: "native"}},
			Sampler: test.sampler}
		e, err := loader.Open(t.Context(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		l, err := loader.NewLoader(e, loader.LoaderOptions{Epochs: 1, Prefetch: 32})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		rows := 0
		for b, err := range l.All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if rows += b.Rows; rows == 10*batch { // now it is known how much memory a sample takes
				c.n.Store(3 * resources.DefaultFetchers)
			}
		}
		if rows != samples || !c.hasMet() {
			t.Errorf("%d samples of %d files; %d requests at a time: %v", rows, test.files, c.n.Load(), c.hasMet())
		}
	}
}

// TestPrefetchOfRemoteSamples: small samples of remote files are prepared further ahead, within a quarter of the
// memory, and the forecast counts their memory; those of local files are not.
func TestPrefetchOfRemoteSamples(t *testing.T) {
	dir := t.TempDir()
	for i := range 8 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.tif", i)), netsim.Chip(uint64(i), 1, 16, 16),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, _, far, table := distant(t, dir)
	near := loader.Options{Workers: 1}
	for _, c := range []struct {
		source  string
		options loader.Options
		memory  int64 // in batches; 0 for the default
		want    int
	}{
		{table, far, 0, 32}, {table, far, 40, 10}, {table, far, 4, 3}, {dir, near, 0, batch.DefaultPrefetch},
	} {
		s := loader.Spec{Source: c.source, BatchSize: 2}
		e, err := loader.Open(t.Context(), s, c.options)
		if err != nil {
			t.Fatal(err)
		}
		if c.memory > 0 {
			c.options.MemoryBytes = c.memory * e.BatchBytes()
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if e, err = loader.Open(t.Context(), s, c.options); err != nil {
				t.Fatal(err)
			}
		}
		f, err := e.Forecast(t.Context(), dryrun.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Prefetch(1); got != c.want || f.Memory.Batches != got+1 {
			t.Errorf("%s, memory of %d batches: %d ahead, want %d; %d in the forecast", c.source, c.memory, got,
				c.want, f.Memory.Batches)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

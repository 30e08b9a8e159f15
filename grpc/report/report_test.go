package report_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chaski-eo/chaski/format/chunk"
	_ "github.com/chaski-eo/chaski/format/tables/text"
	"github.com/chaski-eo/chaski/grpc/client"
	"github.com/chaski-eo/chaski/grpc/report"
	"github.com/chaski-eo/chaski/grpc/server"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/diskcache"
	"github.com/chaski-eo/chaski/source/httpsource"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

var quiet = slog.New(slog.DiscardHandler)

// chips writes n chips of noise, 0.tif and so on.
func chips(t *testing.T, n, bands, side int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for i := range n {
		chip := netsim.Chip(uint64(i), bands, side, min(side, 256))
		testfile.Write(t, filepath.Join(dir, fmt.Sprintf("%d.tif", i)), chip)
	}
	return dir
}

// writeLarge writes a chip of one large tile that is small in its file.
func writeLarge(t *testing.T, path string) {
	t.Helper()
	const side = 2048
	pixels := make([]byte, 2*side*side)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range pixels {
		pixels[i] = byte(random.Uint32() & 3)
	}
	var b bytes.Buffer
	err := tog.Write(&b, pixels, tog.Options{Shape: [3]int{1, side, side}, DType: chunk.Uint16, Tile: side,
		Level: 1, Predictor: chunk.NoPredictor})
	if err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, path, b.Bytes())
}

// store serves chips by HTTP, each request after a pause, and returns a table of them.
func store(t *testing.T, n, side int, pause func(path string) time.Duration) (table string) {
	t.Helper()
	files := http.FileServer(http.Dir(chips(t, n, 2, side)))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(pause(r.URL.Path))
		w.Header().Set("ETag", `"1"`)
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	lines := "image\n"
	for i := range n {
		lines += fmt.Sprintf("%s/%d.tif\n", web.URL, i)
	}
	table = filepath.Join(t.TempDir(), "chips.csv")
	testfile.Write(t, table, []byte(lines))
	return table
}

// serve starts a server of all files and returns its address.
func serve(t *testing.T, o server.Options, disk *diskcache.Ref) (address string) {
	t.Helper()
	web, err := httpsource.New(httpsource.Options{Options: remote.Options{Disk: disk}})
	if err != nil {
		t.Fatal(err)
	}
	opener := &openers.Mux{Files: &openers.Files{}, Schemes: map[string]source.Opener{"http": web}}
	o.Roots, o.Logger, o.Loader.Opener = []string{"/", "http://"}, quiet, opener
	s, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, opener.Close()); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// rank is a trainer.
type rank struct {
	address     string
	rank, world int
	step        time.Duration
}

// train trains so many epochs.
func (r rank) train(t *testing.T, spec loader.Spec, epochs uint64) error {
	c, err := client.Dial(r.address, client.Options{Logger: quiet})
	if err != nil {
		return err
	}
	defer c.Close()
	run, err := c.Open(t.Context(), spec)
	if err != nil {
		return err
	}
	l, err := run.Loader(batch.LoaderOptions{Rank: r.rank, World: max(r.world, 1), Epochs: epochs, Native: true})
	if err != nil {
		return err
	}
	defer l.Close()
	for {
		b, err := l.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		time.Sleep(r.step)
		b.Release()
	}
}

// figures asks a server for its figures.
func figures(t *testing.T, address string) report.Figures {
	t.Helper()
	c, err := client.Dial(address, client.Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all, err := report.ParseAll(c.Report(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return all[address]
}

// TestStages injects one slow part at a time, and promises that the answers name it.
func TestStages(t *testing.T) {
	race.SkipCovered(t)
	const never = time.Duration(0)
	// One tile of 2048 by 2048 pixels has to be decoded for a window of 8 by 8.
	many := loader.Spec{Source: t.TempDir(), BatchSize: 2,
		Sampler: loader.Sampler{Kind: spec.RandomWindow, Height: 8, Width: 8}}
	for i := range 8 {
		writeLarge(t, filepath.Join(many.Source, fmt.Sprintf("%d.tif", i)))
	}
	slow := func(string) time.Duration { return 40 * time.Millisecond }
	for want, c := range map[string]struct {
		spec    loader.Spec
		options server.Options
		step    time.Duration
		rate    float64 // bytes a second between server and rank
	}{
		"read":      {spec: loader.Spec{Source: store(t, 24, 64, slow), BatchSize: 2}},
		"decode":    {spec: many, options: oneWorker},
		"trainer":   {spec: loader.Spec{Source: chips(t, 24, 1, 64), BatchSize: 2}, step: 100 * time.Millisecond},
		"transport": {spec: loader.Spec{Source: chips(t, 24, 2, 256), BatchSize: 2}, rate: 4e6},
	} {
		t.Run(want, func(t *testing.T) {
			address := serve(t, c.options, nil)
			r := rank{address: address, step: c.step}
			if c.rate > 0 {
				link, err := netsim.NewLink(address, never, c.rate)
				if err != nil {
					t.Fatal(err)
				}
				defer link.Close()
				r.address = link.Addr
			}
			if err := r.train(t, c.spec, 2); err != nil {
				t.Fatal(err)
			}
			f := figures(t, address)
			a := f.Answers()
			others := a.Waits[report.Cache] + a.Waits[report.Memory]
			if a.Stage != want || a.Bound != (want != "trainer") || others > 0.05 {
				t.Errorf("%s is slow, and the answers are %+v\n%s", want, a, f.Table())
			}
			if !strings.Contains(f.Table(), "Which stage takes longest?  "+want) {
				t.Error(f.Table())
			}
		})
	}
}

var oneWorker = server.Options{Loader: loader.Options{Workers: 1}}

// TestSlowSourceAndFile promises that a slow source of a mixture and its slowest file are named.
func TestSlowSourceAndFile(t *testing.T) {
	far := store(t, 8, 64, func(path string) time.Duration {
		if path == "/5.tif" {
			return 300 * time.Millisecond
		}
		return 20 * time.Millisecond
	})
	mixture := loader.Spec{BatchSize: 4, Mixture: spec.Mixture{Until: spec.UntilLongest, Sources: []loader.Source{
		{Name: "near", Source: chips(t, 8, 2, 64), Weight: 1}, {Name: "far", Source: far, Weight: 1},
	}}}
	address := serve(t, server.Options{}, nil)
	if err := (rank{address: address}).train(t, mixture, 2); err != nil {
		t.Fatal(err)
	}
	table := figures(t, address).Table()
	for _, want := range []string{"Which source is slowest?    far:", "/5.tif: "} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
}

// TestSlowRank promises that of two ranks the one behind a slow link is named.
func TestSlowRank(t *testing.T) {
	address := serve(t, server.Options{}, nil)
	link, err := netsim.NewLink(address, 0, 2e6)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	data := loader.Spec{Source: chips(t, 24, 2, 256), BatchSize: 4}
	var group errgroup.Group
	group.Go(func() error { return rank{address, 0, 2, 150 * time.Millisecond}.train(t, data, 2) })
	group.Go(func() error { return rank{link.Addr, 1, 2, 10 * time.Millisecond}.train(t, data, 2) })
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	f := figures(t, address)
	if a := f.Answers(); len(f.Ranks) != 2 || a.Rank == nil || a.Rank.Rank != 1 {
		t.Errorf("%+v\n%s", a, f.Table())
	}
}

// TestCache promises that the time in the cache on disk is told apart from that of the store.
func TestCache(t *testing.T) {
	disk := &diskcache.Ref{}
	disk.Set(filepath.Join(t.TempDir(), "cache"), 1<<28)
	folder, err := disk.Get()
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	var slow atomic.Bool
	slow.Store(true)
	table := store(t, 8, 512, func(string) time.Duration {
		if slow.Load() {
			return 100 * time.Millisecond
		}
		return 0
	})
	one := server.Options{Cache: folder, Loader: loader.Options{Workers: 1, Fetchers: 1}}
	times := func() report.Times {
		address := serve(t, one, disk) // another engine each time, which has nothing in memory
		if err := (rank{address: address}).train(t, loader.Spec{Source: table, BatchSize: 2}, 1); err != nil {
			t.Fatal(err)
		}
		return figures(t, address).Ranks[0].Engine
	}
	cold := times()
	slow.Store(false)
	warm := times()
	t.Log(cold, warm)
	if cold[report.Read] < 8*0.1 || warm[report.Read] > cold[report.Read]/2 {
		t.Errorf("8 reads of 0.1 s take %.2f s while the cache is filled, and %.2f s once it is full",
			cold[report.Read], warm[report.Read])
	}
	if min(cold[report.Cache], warm[report.Cache]) <= 0 {
		t.Errorf("the cache takes %v s while it is filled, and %v s once it is full", cold[report.Cache],
			warm[report.Cache])
	}
}

// TestTimes compares the division of a rank's time with the rule, worked out by hand.
func TestTimes(t *testing.T) {
	engine := report.Times{report.Read: 6, report.Decode: 2}
	for _, c := range []struct {
		name string
		rank report.Rank
		want report.Times
	}{
		{"the rank says nothing", report.Rank{Engine: engine, Sent: 1, Idle: 3},
			report.Times{report.Read: 6, report.Decode: 2, report.Transport: 1, report.Trainer: 3}},
		{"the engine is slow", report.Rank{Engine: engine, Idle: 9, Waited: 8, Stepped: 1},
			report.Times{report.Read: 6, report.Decode: 2, report.Trainer: 1}},
		{"most waits cost nothing", report.Rank{Engine: engine, Waited: 4, Stepped: 10},
			report.Times{report.Read: 3, report.Decode: 1, report.Trainer: 10}},
		{"batches are late", report.Rank{Engine: engine, Sent: 7, Waited: 20, Stepped: 1},
			report.Times{report.Read: 6, report.Decode: 2, report.Transport: 12, report.Trainer: 1}},
		{"nothing happened", report.Rank{}, report.Times{}},
	} {
		if got := c.rank.Times(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	passed := report.Rank{World: 2, Rank: 1, Engine: report.Times{report.Transport: 8}, Waited: 8}
	passed.Through(report.Figures{Ranks: []report.Rank{
		{World: 2, Rank: 1, Engine: report.Times{report.Decode: 3}, Waited: 4, Stepped: 5},
		{World: 2, Rank: 0, Engine: report.Times{report.Read: 100}},
	}})
	if want := (report.Times{report.Decode: 6, report.Transport: 2}); passed.Engine != want {
		t.Errorf("%v through a server, want %v", passed.Engine, want)
	}
}

// TestSilentServer promises the figures of the servers that answer, and an error that names the one that does not.
func TestSilentServer(t *testing.T) {
	address := serve(t, server.Options{}, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := l.Addr().String()
	if err := l.Close(); err != nil { // so nobody listens there
		t.Fatal(err)
	}
	c, err := client.Dial(silent+","+address, client.Options{Logger: quiet, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all, err := report.ParseAll(c.Report(t.Context()))
	if _, answered := all[address]; len(all) != 1 || !answered {
		t.Errorf("figures of %v", all)
	}
	if err == nil || !strings.Contains(err.Error(), silent) || status.Code(err) != codes.Unavailable {
		t.Errorf("%v does not name %s", err, silent)
	}
}

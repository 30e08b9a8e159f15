package loader_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/httpsource"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// gate holds requests back until no further one has come for a while, and then lets all of them pass: those that pass
// together take one round trip.
type gate struct {
	mu    sync.Mutex
	quiet time.Duration // how long no request comes before it opens; 0 if it holds nothing back
	timer *time.Timer
	open  chan struct{}
	trips []int // the number of requests of each round trip
}

func (g *gate) wait() {
	g.mu.Lock()
	if g.quiet == 0 {
		g.mu.Unlock()
		return
	}
	if g.open == nil {
		open := make(chan struct{})
		g.open, g.trips = open, append(g.trips, 0)
		g.timer = time.AfterFunc(g.quiet, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.open == open { // a request that comes as the timer fires has it fire again
				close(open)
				g.open = nil
			}
		})
	}
	g.timer.Reset(g.quiet)
	if len(g.trips) > 0 { // otherwise the gate holds requests of the run before
		g.trips[len(g.trips)-1]++
	}
	open := g.open
	g.mu.Unlock()
	<-open
}

// TestRoundTripsToTheFirstBatch: a catalog, a container and a table of paths on a distant store have their first batch
// of small samples after a few round trips.
func TestRoundTripsToTheFirstBatch(t *testing.T) {
	const chips = 2 * resources.DefaultFetchers
	dir := t.TempDir()
	g := &gate{}
	files := http.FileServer(http.Dir(dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.wait()
		files.ServeHTTP(w, r)
	}))
	defer server.Close()
	var uris []string
	for i := range chips {
		name := fmt.Sprintf("%03d.tif", i)
		testfile.Write(t, filepath.Join(dir, name), netsim.Chip(uint64(i), 1, 16, 16))
		uris = append(uris, server.URL+"/"+name)
	}
	zip, err := os.ReadFile(coast(t, "flat.tacozip"))
	if err == nil {
		err = writeFile(filepath.Join(dir, "flat.tacozip"), string(zip))
	}
	if err != nil {
		t.Fatal(err)
	}
	var catalog strings.Builder
	if _, err := build.Write(t.Context(), &catalog, uris, build.Options{Opener: webOpener(t, 0)}); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(filepath.Join(dir, "catalog.parquet"), catalog.String()); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(filepath.Join(dir, "chips.csv"), "image\n"+strings.Join(uris, "\n")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		source string
		batch  int
		block  int // of a read; smaller than the index of all samples, as it is of large datasets
		trips  int
	}{
		{"catalog.parquet", chips, 1 << 10, 2}, // the table, the samples
		{"flat.tacozip", 4, 1 << 10, 4},        // its head, its table, the first sample, the others
		{"chips.csv", chips, 0, 4},             // the table, the first sample, the others: 32 heads fill a link
	} {
		var trips []int
		// A busy machine may take long between an answer and the next request.
		for quiet := 100 * time.Millisecond; quiet < time.Second; quiet *= 2 {
			g.mu.Lock()
			g.quiet, g.trips = quiet, nil
			g.mu.Unlock()
			trips = tripsToFirstBatch(t, g, webOpener(t, test.block), server.URL+"/"+test.source, test.batch)
			if len(trips) <= test.trips {
				break
			}
		}
		if t.Logf("%s: %v", test.source, trips); len(trips) > test.trips {
			t.Errorf("%s: %d round trips, want %d", test.source, len(trips), test.trips)
		}
	}
}

// webOpener returns an opener of http URIs that reads blocks of so many bytes, or of the default size.
func webOpener(t *testing.T, block int) source.Opener {
	t.Helper()
	web, err := httpsource.New(httpsource.Options{Options: remote.Options{Block: block}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = web.Close() })
	return &openers.Mux{Files: &openers.Files{}, Schemes: map[string]source.Opener{"http": web}}
}

// tripsToFirstBatch returns the number of requests of each round trip until the first batch of a source is there.
func tripsToFirstBatch(t *testing.T, g *gate, o source.Opener, uri string, batch int) []int {
	t.Helper()
	s := loader.Spec{Source: uri, BatchSize: batch, Fields: []loader.Field{{Name: "image"}}}
	e, err := loader.Open(t.Context(), s, loader.Options{Workers: 1, Opener: o})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	b, err := e.Start(t.Context(), s.Cut().Ticket(0, 0, int64(batch), 0, 1), false).Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.Release()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.trips
}

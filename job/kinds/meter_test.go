package kinds

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/httpsource"
)

// watched counts what readers of local files are asked for.
type watched struct {
	source.Files
	requests, bytes atomic.Int64
}

func (w *watched) Open(ctx context.Context, uri string) (source.Reader, error) {
	r, err := w.Files.Open(ctx, uri)
	if err != nil {
		return nil, err
	}
	return &watchedReader{r.(source.Timed), w}, nil
}

type watchedReader struct {
	source.Timed
	w *watched
}

func (r *watchedReader) ReadAt(ctx context.Context, p []byte, off int64) error {
	r.w.requests.Add(1)
	r.w.bytes.Add(int64(len(p)))
	return r.Timed.ReadAt(ctx, p, off)
}

// TestRequestsOfShards: the status says how many requests the shards of each kind made, and of how many bytes; shards
// that are done at the same time count their own.
func TestRequestsOfShards(t *testing.T) {
	sp := dataset(t, 9)
	one := sp
	one.Fields = sp.Fields[:1]
	dir := chips(t, 9)
	text, base := chipsRecipe(t, 9)
	for _, k := range []job.Kind{
		&Stats{Dataset{Spec: sp}},
		&Weights{Dataset: Dataset{Spec: one}, Field: "image", Cell: 16},
		&Verify{Paths: []string{dir}, MaxFaults: 10},
		&Index{Paths: []string{dir}, Base: dir},
		&Convert{Paths: []string{dir}, Into: filepath.Join(t.TempDir(), "new"), Options: togs()},
		newMake(t, text, base),
	} {
		j := plan(t, k, 3)
		w := &watched{}
		o := options()
		o.Opener = w
		lo := job.LocalOptions{RunOptions: job.RunOptions{Resource: o}, Shards: 3}
		if err := j.Local(t.Context(), lo); err != nil {
			t.Fatal(k.Name(), err)
		}
		check(t, j, w.requests.Load(), w.bytes.Load())
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

// check checks what the status says of requests, and that each shard has some.
func check(t *testing.T, j planned, requests, bytes int64) {
	t.Helper()
	s, err := j.Status(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if s.Requests != requests || s.Read != bytes || requests == 0 || bytes == 0 {
		t.Errorf("%s: %d requests of %d bytes, want %d of %d", s.Kind, s.Requests, s.Read, requests, bytes)
	}
	for _, r := range s.Runs {
		requests -= r.Requests
		bytes -= r.Read
		if r.Requests == 0 || r.Read == 0 {
			t.Errorf("%s: shard %d has %d requests of %d bytes", s.Kind, r.Shard, r.Requests, r.Read)
		}
	}
	if requests != 0 || bytes != 0 {
		t.Errorf("%s: the runs of shards lack %d requests of %d bytes", s.Kind, requests, bytes)
	}
}

// TestRequestsToServers: the requests of a job are those that the server gets, also those that fail and are tried
// again, and its bytes those that arrive.
func TestRequestsToServers(t *testing.T) {
	var requests, bytes atomic.Int64
	files := http.FileServer(http.Dir("../../testdata/coast/coast_dir/DATA"))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1)%5 == 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, r.URL.Path, _ = strings.Cut(r.URL.Path[1:], "/")
		files.ServeHTTP(&sent{w, &bytes}, r)
	}))
	defer server.Close()
	opener, err := httpsource.New(httpsource.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer opener.Close()
	var b strings.Builder
	b.WriteString("image\n")
	for i := range 12 { // each its own object, as what is in a cache costs nothing
		fmt.Fprintf(&b, "%s/%d/tile_%02d/s2/img.tif\n", server.URL, i, i%3)
	}
	sp := dataset(t, 1)
	sp.Fields = sp.Fields[:1]
	sp.Source = filepath.Join(t.TempDir(), "table.csv")
	write(t, sp.Source, []byte(b.String()))
	j := plan(t, &Stats{Dataset{Spec: sp}}, 4)
	o := options()
	local := &watched{}
	defer local.Close()
	o.Opener = &source.Mux{Files: local, Schemes: map[string]source.Opener{"http": opener}}
	if err := j.Local(t.Context(), job.LocalOptions{RunOptions: job.RunOptions{Resource: o}, Shards: 2}); err != nil {
		t.Fatal(err)
	}
	check(t, j, requests.Load()+local.requests.Load(), bytes.Load()+local.bytes.Load())
	if n := requests.Load(); n < 12+12/5 {
		t.Errorf("%d requests to the server", n)
	}
}

// sent counts the bytes of bodies.
type sent struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (s *sent) Write(p []byte) (int, error) {
	s.n.Add(int64(len(p)))
	return s.ResponseWriter.Write(p)
}

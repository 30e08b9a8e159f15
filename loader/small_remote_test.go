package loader_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/blobsource/s3"
	"github.com/chaski-eo/chaski/source/httpsource"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
	"github.com/chaski-eo/chaski/tools/testkit/netsim/fakes3"
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

// TestSmallRemoteChipsAreReadOnce: a small chip whose size is known, from a container or a listing,
// costs one request together with its header. A chip of unknown size does too if it arrives with
// the block that opens it.
func TestSmallRemoteChipsAreReadOnce(t *testing.T) {
	near := loader.Options{Opener: &source.Files{}}
	t.Run("container", func(t *testing.T) {
		path := filepath.Join(filepath.Dir(coast(t, "")), "containers", "taco-v1", "stream_n1.taco")
		fields := []loader.Field{{Name: "a", Column: "hrf", DType: "native"}}
		window := loader.Sampler{Kind: spec.RandomWindow, Height: 64, Width: 64} // the chips are of several sizes
		for scheme, p := range farContainers(t, path) {
			before := p.requests()
			n, got := chipsOf(t, loader.Options{Opener: p.opener}, p.uri, window, fields...)
			requests := p.requests() - before
			t.Logf("%s: %d requests, %d bytes for %d chips", scheme, requests, p.opener.Stats().Bytes, n)
			_, want := chipsOf(t, near, path, window, fields...)
			if got != want || n != 4 {
				t.Errorf("%s: %d other chips", scheme, n)
			}
			if opening := int64(1); requests != opening+int64(n) {
				t.Errorf("%s: %d requests for %d chips and 1 that opens the container", scheme, requests, n)
			}
		}
	})
	for _, side := range []int{64, 160, 320, 512} {
		t.Run(fmt.Sprint("listing of ", side), func(t *testing.T) {
			const chips = 12
			dir, store := t.TempDir(), fakes3.Start(t, "chips")
			var size int64
			for i := range chips {
				chip := netsim.Chip(uint64(i), 1, side, 64)
				size += int64(len(chip))
				name := fmt.Sprintf("%04d.tif", i)
				if err := store.Put("c/"+name, chip); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), chip, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			o, err := blobsource.New(s3.New(s3.Options{Endpoint: store.URL}), remote.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			far := loader.Options{
				Opener: &source.Mux{Files: &source.Files{}, Schemes: map[string]source.Opener{"s3": o}},
			}
			var asked atomic.Int64
			store.Answer(func(_ http.ResponseWriter, r *http.Request, _ int64) bool {
				if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, ".tif") {
					asked.Add(1)
				}
				return false
			})
			n, got := chipsOf(t, far, "s3://chips/c", loader.Sampler{}, loader.Field{Name: "image", DType: "native"})
			requests, bytes := asked.Load(), o.Stats().Bytes
			t.Logf("%d requests, %d bytes for %d chips of %d bytes", requests, bytes, n, size)
			_, local := chipsOf(t, near, dir, loader.Sampler{}, loader.Field{Name: "image", DType: "native"})
			if got != local || n != chips {
				t.Errorf("%d other chips", n)
			}
			want := int64(chips)
			if size/chips > 256<<10 { // the header comes first
				want *= 2
			}
			if requests != want || bytes > size || bytes < size-chips*tail {
				t.Errorf("%d requests of %d bytes for %d chips of %d bytes", requests, bytes, chips, size)
			}
		})
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
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.tif", i)), chip, 0o600); err != nil {
			t.Fatal(err)
		}
		table += fmt.Sprintf("%s/%d.tif\n", server.URL, i)
	}
	name := filepath.Join(t.TempDir(), "chips.csv")
	if err := writeFile(name, table); err != nil {
		t.Fatal(err)
	}
	o := loader.Options{Opener: &source.Mux{Files: &source.Files{}, Schemes: map[string]source.Opener{"http": web}}}
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

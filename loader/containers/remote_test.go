package containers_test

import (
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/tools/testkit/netsim/far"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// farContainer is a file on a web server or in a bucket, read without hedging.
type farContainer struct {
	uri      string
	opener   *remote.Opener
	requests func() int64 // that the server got so far
}

func farContainers(t *testing.T, path string) map[string]farContainer {
	t.Helper()
	b := testfile.Read(t, path)
	all := map[string]farContainer{}
	for scheme, p := range far.Places(t, filepath.Base(path), b, remote.Options{}) {
		var n int64
		all[scheme] = farContainer{p.URI, p.Opener, func() int64 { n += int64(len(p.Asked())); return n }}
	}
	return all
}

// TestForecastOfRemoteContainers: for TOG chips in a TACO that is read over HTTP or from S3, an
// epoch makes no more requests than its forecast, with no more bytes. Chips that come whole with
// their header need none.
func TestForecastOfRemoteContainers(t *testing.T) {
	stream := filepath.Join(filepath.Dir(coast(t, "")), "containers", "taco-v1", "stream_n2_top.taco")
	for _, c := range []struct {
		path   string
		fields []loader.Field
	}{
		{coast(t, "coast.tacozip"), coastFields},
		{coast(t, "flat.tacozip"), []loader.Field{{Name: "image"}}},
		{stream, []loader.Field{{Name: "image", Column: "t1/t1-img"}}},
	} {
		for scheme, p := range farContainers(t, c.path) {
			for _, s := range []loader.Sampler{
				{},
				{Kind: spec.RandomWindow, Height: 11, Width: 7, PerAsset: 3},
				{Kind: spec.GridWindow, Height: 8, Width: 8},
			} {
				if c.path == stream && s.Kind == "" {
					continue // its chips are of several sizes
				}
				spec := loader.Spec{Source: p.uri, Fields: c.fields, BatchSize: 4, Shuffle: true, Seed: 3, Sampler: s}
				o := loader.Options{Opener: p.opener, Workers: 2}
				first, err := loader.Open(t.Context(), spec, o)
				if err != nil {
					t.Fatal(err)
				}
				o.MemoryBytes = 4 * first.BatchBytes() // no room for chunks that windows share
				if err := first.Close(); err != nil {
					t.Fatal(err)
				}
				e, err := loader.Open(t.Context(), spec, o)
				if err != nil {
					t.Fatal(err)
				}
				f, err := e.Forecast(t.Context(), dryrun.Options{Samples: -1})
				if err != nil || !f.Exact() || f.Total.Requests == 0 {
					t.Fatalf("%+v, %v", f, err)
				}
				before, bytes := p.requests(), p.opener.Stats().Bytes
				l, err := loader.NewLoader(e, loader.LoaderOptions{Epochs: 1})
				if err != nil {
					t.Fatal(err)
				}
				for _, err := range l.All(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
				}
				requests := p.requests() - before
				if bytes = p.opener.Stats().Bytes - bytes; requests > f.Total.Requests || bytes > f.Total.Bytes {
					t.Errorf("%s of %s, %q: %d requests of %d bytes, the plan has only %d of %d",
						filepath.Base(c.path), scheme, s.Kind, requests, bytes, f.Total.Requests, f.Total.Bytes)
				}
				l.Close()
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

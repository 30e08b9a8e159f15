//go:build !race

package loader_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/blobsource/s3"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
	"github.com/chaski-eo/chaski/tools/testkit/netsim/fakes3"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestSmallListedChipsAreReadOnce: a small chip whose size is known from the listing of a bucket costs one request
// together with its header. The race detector goes without the SDK: see package far.
func TestSmallListedChipsAreReadOnce(t *testing.T) {
	near := loader.Options{Opener: &openers.Files{}}
	for _, side := range []int{64, 160, 320, 512} {
		t.Run(fmt.Sprint(side), func(t *testing.T) {
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
				testfile.Write(t, filepath.Join(dir, name), chip)
			}
			o, err := blobsource.New(s3.New(s3.Options{Endpoint: store.URL}), remote.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer o.Close()
			far := loader.Options{
				Opener: &openers.Mux{Files: &openers.Files{}, Schemes: map[string]source.Opener{"s3": o}},
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

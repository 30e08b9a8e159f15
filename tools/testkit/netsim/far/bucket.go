//go:build !race

package far

import (
	"net/http"
	"sync"
	"testing"

	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/blobsource/s3"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/tools/testkit/netsim/fakes3"
)

// addBucket serves the object from a bucket, too.
func addBucket(t testing.TB, places map[string]Place, name string, b []byte, o remote.Options) {
	t.Helper()
	store := fakes3.Start(t, "bucket")
	if err := store.Put(name, b); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var wanted []string
	store.Answer(func(_ http.ResponseWriter, r *http.Request, _ int64) bool {
		mu.Lock()
		defer mu.Unlock()
		wanted = append(wanted, describe(r))
		return false
	})
	opener, err := blobsource.New(s3.New(s3.Options{Endpoint: store.URL}), o)
	closed(t, opener, err)
	places["s3"] = Place{"s3://bucket/" + name, opener, func() (all []string) {
		mu.Lock()
		defer mu.Unlock()
		all, wanted = wanted, nil
		return all
	}}
}

// Package far serves an object to tests from a web server and from a bucket, with openers, and records the
// requests.
package far

import (
	"net/http"
	"sync"
	"testing"

	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/blobsource/s3"
	"github.com/chaski-eo/chaski/source/httpsource"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
	"github.com/chaski-eo/chaski/tools/testkit/netsim/fakes3"
)

// Place is an object on a server, with an opener for it.
type Place struct {
	URI    string
	Opener *remote.Opener
	Asked  func() []string // the requests since the last call, such as "GET bytes=0-255"
}

// Places serves an object from a web server ("http") and a bucket ("s3") until the test ends.
func Places(t testing.TB, name string, b []byte, o remote.Options) map[string]Place {
	t.Helper()
	web := netsim.NewServer(false)
	t.Cleanup(web.Close)
	web.Put("/"+name, b)
	web.Always(netsim.None)
	opener, err := httpsource.New(httpsource.Options{Options: o})
	closed(t, opener, err)

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
	s, err := blobsource.New(s3.New(s3.Options{Endpoint: store.URL}), o)
	closed(t, s, err)

	return map[string]Place{
		"http": {web.URL + "/" + name, opener, func() (all []string) {
			for _, r := range web.Requests() {
				all = append(all, describe(r))
			}
			web.Always(netsim.None)
			return all
		}},
		"s3": {"s3://bucket/" + name, s, func() (all []string) {
			mu.Lock()
			defer mu.Unlock()
			all, wanted = wanted, nil
			return all
		}},
	}
}

// closed closes an opener when the test ends. It fails the test if err is not nil.
func closed(t testing.TB, o *remote.Opener, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
}

func describe(r *http.Request) string { return r.Method + " " + r.Header.Get("Range") }

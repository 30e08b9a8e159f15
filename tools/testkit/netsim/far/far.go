// Package far serves an object to tests from a web server and from a bucket, with openers, and records the
// requests. Under the race detector there is no bucket: its SDK takes half a minute to compile, and it
// starts the same goroutines as the web server's opener.
package far

import (
	"net/http"
	"testing"

	"github.com/chaski-eo/chaski/source/httpsource"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
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

	places := map[string]Place{"http": {web.URL + "/" + name, opener, func() (all []string) {
		for _, r := range web.Requests() {
			all = append(all, describe(r))
		}
		web.Always(netsim.None)
		return all
	}}}
	addBucket(t, places, name, b, o)
	return places
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

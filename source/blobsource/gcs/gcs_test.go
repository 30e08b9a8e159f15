package gcs

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/tools/testkit/drivertest"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func TestReads(t *testing.T) {
	t.Setenv("STORAGE_EMULATOR_HOST", "") // restored by the test
	real := http.DefaultTransport
	defer func() { http.DefaultTransport = real }()
	drivertest.Reads(t, "gs", "/chips/dir/a.tif", func(host string, n *netsim.Network) blobsource.Driver {
		os.Setenv("STORAGE_EMULATOR_HOST", host)
		other := real.(*http.Transport).Clone()
		other.Proxy, other.DialContext = nil, n.DialContext
		http.DefaultTransport = other
		return New()
	})
}

// TestUserProject: each request names the project that pays, where the environment has one, and no other.
func TestUserProject(t *testing.T) {
	said := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said[r.Header.Get("X-Goog-User-Project")] = true
		http.NotFound(w, r)
	}))
	defer server.Close()
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(server.URL, "http://"))
	for _, project := range []string{"", "payer"} {
		t.Setenv("GS_USER_PROJECT", project)
		clear(said)
		o, err := blobsource.New(New(), remote.Options{Attempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		_, opened := o.Open(t.Context(), "gs://chips/a.tif")
		listed := o.List(t.Context(), "gs://chips", func(source.Entry) error { return nil })
		if err := o.Close(); err != nil {
			t.Error(err)
		}
		if opened == nil || listed == nil || len(said) != 1 || !said[project] {
			t.Errorf("%q: %v, %v, %v", project, said, opened, listed)
		}
	}
}

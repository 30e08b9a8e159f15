package gcs

import (
	"net/http"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/chaski-eo/chaski/source/blobsource"
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

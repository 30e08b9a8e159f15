package gcs

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/chaski-eo/chaski/tools/testkit/drivertest"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
)

func TestMain(m *testing.M) {
	// The SDK's tracing library starts a goroutine when it is imported.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

func TestReads(t *testing.T) {
	s := netsim.NewServer(false)
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(s.URL, "http://"))
	drivertest.Reads(t, s, New(Options{}), "gs", "/chips/dir/a.tif")
}

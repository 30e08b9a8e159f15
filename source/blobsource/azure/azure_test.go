package azure

import (
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
	t.Setenv("AZURE_STORAGE_ACCOUNT", "account")
	t.Setenv("AZURE_STORAGE_PROTOCOL", "http")
	t.Setenv("AZURE_STORAGE_IS_LOCAL_EMULATOR", "true")
	t.Setenv("AZURE_NO_SIGN_REQUEST", "YES")
	t.Setenv("AZURE_STORAGE_DOMAIN", "") // restored by the test
	drivertest.Reads(t, "az", "/account/chips/dir/a.tif", func(host string, n *netsim.Network) blobsource.Driver {
		os.Setenv("AZURE_STORAGE_DOMAIN", host)
		d := New(Options{}).(*driver)
		d.transport.Proxy, d.transport.DialContext = nil, n.DialContext
		return d
	})
}

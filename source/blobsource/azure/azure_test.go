package azure

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/chaski-eo/chaski/tools/testkit/drivertest"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func TestReads(t *testing.T) {
	s := netsim.NewServer(false)
	t.Setenv("AZURE_STORAGE_ACCOUNT", "account")
	t.Setenv("AZURE_STORAGE_DOMAIN", strings.TrimPrefix(s.URL, "http://"))
	t.Setenv("AZURE_STORAGE_PROTOCOL", "http")
	t.Setenv("AZURE_STORAGE_IS_LOCAL_EMULATOR", "true")
	t.Setenv("AZURE_NO_SIGN_REQUEST", "YES")
	drivertest.Reads(t, s, New(Options{}), "az", "/account/chips/dir/a.tif")
}

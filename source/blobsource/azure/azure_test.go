package azure

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/remote"
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
		d := New().(*driver)
		d.transport.Proxy, d.transport.DialContext = nil, n.DialContext
		return d
	})
}

// TestReadsOfAnotherAccount: CONTAINER@HOST names the account, whatever the environment says.
func TestWithoutAccount(t *testing.T) {
	for _, name := range []string{"ACCOUNT", "KEY", "SAS_TOKEN", "CONNECTION_STRING"} {
		t.Setenv("AZURE_STORAGE_"+name, "")
	}
	o, err := blobsource.New(New(), remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Open(t.Context(), "az://chips/a.tif")
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "AZURE_STORAGE_ACCOUNT is not set") {
		t.Errorf("%v", err)
	}
}

func TestReadsOfAnotherAccount(t *testing.T) {
	t.Setenv("AZURE_STORAGE_ACCOUNT", "account")
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "sig=secret") // of the account in the environment only
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=account;AccountKey=AAAA")
	t.Setenv("AZURE_STORAGE_PROTOCOL", "http")
	t.Setenv("AZURE_STORAGE_IS_LOCAL_EMULATOR", "true")
	t.Setenv("AZURE_NO_SIGN_REQUEST", "YES")
	t.Setenv("AZURE_STORAGE_DOMAIN", "") // restored by the test
	var n netsim.Network
	synctest.Test(t, func(t *testing.T) {
		s := n.NewServer()
		defer s.Close()
		os.Setenv("AZURE_STORAGE_DOMAIN", strings.TrimPrefix(s.URL, "http://"))
		d := New().(*driver)
		d.transport.Proxy, d.transport.DialContext = nil, n.DialContext
		o, err := blobsource.New(d, remote.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s.Put("/other/chips/dir/a.tif", []byte("bytes"))
		for _, host := range []string{"other.dfs.core.windows.net", "other.blob.core.windows.net", "other"} {
			r, err := o.Open(t.Context(), "abfs://chips@"+host+"/dir/a.tif")
			if err != nil || r.Size() != 5 {
				t.Errorf("%s: %v", host, err)
			}
		}
		for _, r := range s.Requests() {
			if r.URL.RawQuery != "" {
				t.Errorf("the signature was sent to another account: %s", r.URL)
			}
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestAccounts: credentials go to hosts of Azure only.
func TestAccounts(t *testing.T) {
	for host, want := range map[string]string{
		"acc":                                "acc blob.core.windows.net",
		"acc1.dfs.core.windows.net":          "acc1 blob.core.windows.net",
		"acc1.blob.core.windows.net":         "acc1 blob.core.windows.net",
		"acc.dfs.core.chinacloudapi.cn":      "acc blob.core.chinacloudapi.cn",
		"acc.dfs.core.usgovcloudapi.net":     "acc blob.core.usgovcloudapi.net",
		"acc.dfs.core.windows.net.evil.org":  "",
		"acc.evil.org":                       "",
		"evil.org/acc.dfs.core.windows.net":  "",
		"acc:80.dfs.core.windows.net":        "",
		"":                                   "",
		".dfs.core.windows.net":              "",
		"acc.queue.core.windows.net":         "",
		"user:pw@acc.blob.core.windows.net":  "",
		"acc.blob.core.windows.net:80":       "",
		"acc.dfs.core.windows.net@evil":      "",
		"evil#.dfs.core.windows.net":         "",
		"evil.org?x=.dfs.core.windows.net":   "",
		"127.0.0.1.dfs.core.windows.net":     "",
		"ACC.dfs.core.windows.net":           "",
		"acc.dfs.core.windows.net\r\nHost:x": "",
	} {
		account, domain, err := accountOf(host)
		if got := account + " " + domain; (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%q: %q: %v", host, got, err)
		}
	}
}

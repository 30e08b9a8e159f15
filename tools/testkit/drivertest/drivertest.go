// Package drivertest holds what every driver of package blobsource promises, for their tests.
package drivertest

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
)

// Reads reads through a driver's SDK from a server of ranges in memory, with and without faults, in a bubble of time.
// open returns the driver for a server with this host, which the driver's SDK calls its service, over the network; path
// is where the object dir/a.tif of the bucket "chips" lies on it.
func Reads(t *testing.T, scheme, path string, open func(host string, n *netsim.Network) blobsource.Driver) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var n netsim.Network
		server := n.NewServer()
		opener, err := blobsource.New(open(strings.TrimPrefix(server.URL, "http://"), &n), remote.Options{
			Attempts: 3, Backoff: time.Millisecond, MaxBackoff: time.Millisecond, Timeout: 200 * time.Millisecond,
			MinRate: 1 << 30, Block: 1024,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			server.Close()
			if err := opener.Close(); err != nil {
				t.Error(err)
			}
		}()
		reads(t, server, opener, scheme+"://chips/", path)
	})
}

func reads(t *testing.T, s *netsim.Server, o *remote.Opener, bucket, path string) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 1000)
	s.Put(path, data)
	ctx := context.Background()
	file, err := o.Open(ctx, bucket+"dir/a.tif")
	if err != nil {
		t.Fatal(err)
	}
	if file.Size() != int64(len(data)) {
		t.Fatalf("size %d", file.Size())
	}
	got := make([]byte, 5000)
	for _, f := range []netsim.Fault{netsim.None, netsim.Unavailable, netsim.ShortBody,
		netsim.StallBody, netsim.Reset} {
		s.OnRequest(func(n int, _ *netsim.Request) netsim.Fault {
			if n == 0 {
				return f
			}
			return netsim.None
		})
		clear(got)
		if err := file.ReadAt(ctx, got, 7); err != nil || !bytes.Equal(got, data[7:5007]) {
			t.Errorf("after %q: %v", f, err)
		}
		want := 2
		if f == netsim.None {
			want = 1
		}
		if n := len(s.Requests()); n != want {
			t.Errorf("%q: %d requests, want %d", f, n, want)
		}
	}
	s.Always(netsim.Unavailable)
	if err := file.ReadAt(ctx, got, 7); err == nil || fault.KindOf(err) != 0 ||
		!strings.Contains(err.Error(), "3 attempts") {
		t.Error(err)
	}
	s.Always(netsim.None)
	if _, err := o.Open(ctx, bucket+"none"); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
}

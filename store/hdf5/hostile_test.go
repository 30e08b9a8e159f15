package hdf5_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/httpsource"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/arrays"
	"github.com/chaski-eo/chaski/store/hdf5"
	"github.com/chaski-eo/chaski/tools/testkit/arrayfile"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestDamagedElements: all arrays and labels of damaged copies are read or refused, with a kind. Verify finds a fault
// in those that are refused.
func TestDamagedElements(t *testing.T) {
	arrayfile.Damage(t, hdf5.Open, testdata+"/samples.h5", testdata+"/filters_latest.h5", testdata+"/scene.nc",
		testdata+"/user_block.h5", testdata+"/types_v112.h5", testdata+"/packed_latest.h5")
}

// TestOthers: what has the name of an HDF5 file and is another one is refused with what it is.
func TestOthers(t *testing.T) {
	for text, want := range map[string]fault.Kind{"CDF\x01\x00\x00\x00\x00": fault.Unsupported,
		"\x0e\x03\x13\x01....": fault.Unsupported, "nothing": fault.Corrupt, "": fault.Corrupt,
		"\x89HDF\r\n\x1a\n\x09": fault.Unsupported, "\x89HDF\r\n\x1a\n\x00": fault.Corrupt} {
		one := source.OpenOne(func(context.Context) (source.Reader, error) { return &corpus.Mem{B: []byte(text)}, nil })
		_, err := hdf5.Open(context.Background(), one, "a.h5", arrays.Options{})
		if fault.KindOf(err) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestRemote: a file is recognised, opened and read over HTTP by ranges, with few requests for a window.
func TestRemote(t *testing.T) {
	var requests atomic.Int64
	files := http.FileServer(http.Dir(testdata))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		files.ServeHTTP(w, r)
	}))
	defer server.Close()
	web, err := httpsource.New(httpsource.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	o := &openers.Mux{Files: &openers.Files{}, Schemes: map[string]source.Opener{"http": web}}
	ctx, uri := context.Background(), server.URL+"/layouts_latest.h5"
	if kind, err := store.Of(ctx, o, uri); err != nil || kind != hdf5.Kind {
		t.Fatalf("%v, %v", kind, err)
	}
	node, err := hdf5.Open(ctx, o, uri, arrays.Options{})
	if err != nil {
		t.Fatal(err)
	}
	raster, err := node.Raster(ctx, "", "layouts/tree", "")
	if err != nil {
		t.Fatal(err)
	}
	expected := arrayfile.Expected(t, testdata)["layouts_latest.h5"]["layouts/tree"]
	before := requests.Load()
	a := raster.(*arrays.Raster).Arrays()[0]
	arrayfile.One(t, node, arrays.Member{Path: "layouts/tree", Array: a}, expected)
	if n := before; n > 30 {
		t.Errorf("%d requests to open a file of 250 KB", n)
	}
}

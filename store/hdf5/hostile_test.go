package hdf5_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/httpsource"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/arrays"
	"github.com/chaski-eo/chaski/store/hdf5"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestDamagedElements: all arrays and labels of damaged copies are read or refused, with a kind. Verify finds a fault
// in those that are refused.
func TestDamagedElements(t *testing.T) {
	race.SkipCovered(t)
	random := rand.New(rand.NewPCG(3, 4))
	copies := 150
	if testing.Short() {
		copies = 20
	}
	for _, name := range [...]string{"samples.h5", "filters_latest.h5", "scene.nc", "user_block.h5", "types_v112.h5"} {
		good := testfile.Read(t, filepath.Join(testdata, name))
		for range copies {
			bad := append([]byte(nil), good...)
			for range 1 + random.IntN(20) {
				bad[random.IntN(len(bad))] ^= 1 << random.IntN(8)
			}
			readAll(t, bad)
		}
	}
}

// readAll reads all that a file has, up to 1 MiB of each array.
func readAll(t *testing.T, b []byte) {
	t.Helper()
	ctx := context.Background()
	one := source.OpenOne(func(context.Context) (source.Reader, error) { return &corpus.Mem{B: b}, nil })
	known := func(err error) {
		t.Helper()
		if err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("an error without a kind: %v", err)
		}
	}
	node, err := hdf5.Open(ctx, one, "a.h5", arrays.Options{MaxChunk: 1 << 20, MaxMeta: 16 << 20})
	if known(err); err != nil {
		return
	}
	list, err := node.Members(ctx)
	known(err)
	for _, m := range list {
		labels, err := node.Labels(ctx, m.Path)
		if known(err); err == nil && labels.Len() > 0 {
			labels.Value(labels.Len() - 1)
		}
		if m.Array == nil {
			continue
		}
		cells := int64(1)
		for _, n := range m.Array.Shape {
			cells = min(cells*min(n, 1<<21), 1<<21)
		}
		if cells > 1<<17 {
			continue
		}
		node.Place(ctx, m.Array)
		_, err = read(ctx, m.Array)
		if known(err); err != nil {
			if checked, err := m.Array.Verify(ctx, 1); err == nil {
				t.Errorf("%s cannot be read, and %+v has no fault", m.Path, checked)
			}
		}
	}
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
	var expected map[string]map[string]*dataset
	text, err := os.ReadFile(filepath.Join(testdata, "expected.json"))
	if err != nil || json.Unmarshal(text, &expected) != nil {
		t.Fatal("no expected.json: ", err)
	}
	before := requests.Load()
	a := raster.(*arrays.Raster).Arrays()[0]
	compare(t, arrays.Member{Path: "layouts/tree", Array: a}, expected["layouts_latest.h5"]["layouts/tree"])
	if n := before; n > 30 {
		t.Errorf("%d requests to open a file of 250 KB", n)
	}
}

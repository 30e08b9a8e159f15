package store_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/httpsource"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/tiledb"
	"github.com/chaski-eo/chaski/store/zarr"
	"github.com/chaski-eo/chaski/tools/testkit/outage"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// container is registered here as loader/containers does it.
var container = store.Register(taco.Kind{})

// paths has a path of every kind, below testdata or below the directory that makePaths writes.
var paths = map[string]store.Kind{
	"tiledb/arrays/dense_2d_order_rc": tiledb.Kind,
	"tiledb/arrays/sparse_2d":         tiledb.Kind,
	"taco3/scenes":                    container,
	"taco3/scenes.zip":                container,
	"taco3/flat.zip":                  container,
	"raster/tog":                      store.Other,
	"lonlat.json":                     store.Other,
	"is/no/path":                      store.Other,
	"made/group.zarr":                 zarr.Kind,
	"made/plain":                      zarr.Kind,
	"made/old.zarr":                   zarr.Kind,
	"made/chips.tif":                  tiledb.Kind, // a directory may be called like a file
	"made/table.parquet":              store.Other,
	"made/empty":                      store.Other,
}

func write(t *testing.T, name, text string) {
	t.Helper()
	testfile.Write(t, name, []byte(text))
}

// makePaths returns a directory with the paths of testdata, and with those of paths that begin with "made".
func makePaths(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"tiledb", "taco3", "raster", "lonlat.json"} {
		whole, err := filepath.Abs(filepath.Join("..", "testdata", name))
		if err == nil {
			err = os.Symlink(whole, filepath.Join(root, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	made := filepath.Join(root, "made")
	group := `{"zarr_format": 3, "node_type": "group", "attributes": {}}`
	write(t, filepath.Join(made, "group.zarr", "zarr.json"), group)
	write(t, filepath.Join(made, "plain", "zarr.json"), "\n "+group)
	write(t, filepath.Join(made, "old.zarr", ".zgroup"), `{"zarr_format": 2}`)
	write(t, filepath.Join(made, "chips.tif", "__schema", "__1_1_00000000000000000000000000000000"), "x")
	write(t, filepath.Join(made, "table.parquet"), "PAR1")
	if err := os.Mkdir(filepath.Join(made, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestOf: every path is what it is, as a local path, as a path below roots, and over HTTP, where directories without
// the metadata of an array cannot be listed.
func TestOf(t *testing.T) {
	root := makePaths(t)
	server := httptest.NewServer(http.FileServer(http.Dir(root)))
	defer server.Close()
	web, err := httpsource.New(httpsource.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	local := &openers.Files{}
	defer local.Close()
	for name, want := range paths {
		if got, err := store.Of(t.Context(), local, filepath.Join(root, name)); err != nil || got != want {
			t.Errorf("%s: got %v, %v; want %v", name, got, err, want)
		}
		if name == "made/chips.tif" { // over HTTP the name decides
			want = store.Other
		}
		if got, err := store.Of(t.Context(), web, server.URL+"/"+name); err != nil || got != want {
			t.Errorf("%s over HTTP: got %v, %v; want %v", name, got, err, want)
		}
	}
}

// TestTwoAtOnce: a directory with the metadata of two kinds is an error that names both.
func TestTwoAtOnce(t *testing.T) {
	zarr := func(dir string) { write(t, filepath.Join(dir, "zarr.json"), `{"zarr_format": 3}`) }
	tiledb := func(dir string) { write(t, filepath.Join(dir, "__array_schema.tdb"), "\x01\x00\x00\x00") }
	taco := func(dir string) { write(t, filepath.Join(dir, "COLLECTION.json"), "{}") }
	files := &openers.Files{}
	defer files.Close()
	for _, test := range []struct {
		name        string
		make        []func(string)
		first, next string
	}{
		{"tiledb and zarr", []func(string){zarr, tiledb}, "a TileDB array", "a Zarr array or group"},
		{"tiledb and container", []func(string){tiledb, taco}, "a TileDB array", "a container"},
		{"zarr and container", []func(string){zarr, taco}, "a Zarr array or group", "a container"},
	} {
		dir := t.TempDir()
		for _, each := range test.make {
			each(dir)
		}
		kind, err := store.Of(t.Context(), files, dir)
		want := test.first + " and " + test.next + " at once"
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v; want an error of kind unsupported with %q", test.name, kind, err, want)
		}
	}
}

// counted counts what is opened.
type counted struct {
	source.Opener
	opened atomic.Int64
}

func (c *counted) Open(ctx context.Context, uri string) (source.Reader, error) {
	c.opened.Add(1)
	return c.Opener.Open(ctx, uri)
}

// TestNamesCostNothing: the names of rasters, tables and samples of containers are decided without a request.
func TestNamesCostNothing(t *testing.T) {
	for _, uri := range []string{"https://host/a.tif", "s3://b/a.TIFF", "gs://b/c.parquet", "s3://b/t.csv",
		"https://host/c.tacozip::roi/image", "https://host/p.png", "s3://b/a.rumi", "https://host/items.geojson"} {
		c := &counted{Opener: &openers.Files{}}
		kind, err := store.Of(t.Context(), c, uri)
		if kind != store.Other || err != nil || c.opened.Load() != 0 {
			t.Errorf("%s: got %v, %v after %d requests; want %v after none", uri, kind, err, c.opened.Load(),
				store.Other)
		}
	}
}

// TestServersOfPages: a server that sends a page for every name has no stores.
func TestServersOfPages(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("<!doctype html><html><body>Page not found</body></html>"))
	}))
	defer server.Close()
	web, err := httpsource.New(httpsource.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	for _, name := range []string{"/data", "/data.zarr", "/data/"} {
		if kind, err := store.Of(t.Context(), web, server.URL+name); kind != store.Other || err != nil {
			t.Errorf("%s: got %v, %v; want %v", name, kind, err, store.Other)
		}
	}
}

// unreachable is a server that does not answer, after retries.
type unreachable struct{ opened atomic.Int64 }

func (u *unreachable) Open(_ context.Context, uri string) (source.Reader, error) {
	u.opened.Add(1)
	return nil, &fault.RequestError{URI: uri, Part: "header", Off: fault.NoOffset, Attempts: 4,
		Err: errors.New("timeout")}
}

// TestUnreachable: each kind asks a server that does not answer once, since every further name would take as long. What
// a path is remains open then.
func TestUnreachable(t *testing.T) {
	for _, uri := range []string{"https://host/data", "s3://bucket/data/", "https://host/data.zarr"} {
		u := &unreachable{}
		if _, err := store.Of(t.Context(), u, uri); !source.Unreachable(err) || u.opened.Load() > 3 {
			t.Errorf("%s: %v after %d requests; want a timeout after 3 at most", uri, err, u.opened.Load())
		}
	}
}

// flaky has the files of a directory at https://host/. The call of Open or ReadAt that makes left 0 fails.
type flaky struct {
	dir   string
	files openers.Files
	left  atomic.Int64
}

func (f *flaky) Open(ctx context.Context, uri string) (source.Reader, error) {
	if f.left.Add(-1) == 0 {
		return nil, outage.Err
	}
	r, err := f.files.Open(ctx, filepath.Join(f.dir, strings.TrimPrefix(uri, "https://host/")))
	return flakyReader{r, f}, err
}

type flakyReader struct {
	source.Reader
	from *flaky
}

func (r flakyReader) ReadAt(ctx context.Context, p []byte, off int64) error {
	if r.from.left.Add(-1) == 0 {
		return outage.Err
	}
	return r.Reader.ReadAt(ctx, p, off)
}

// TestOutage: a remote path whose kind an outage hides is the error of the outage, not another kind.
func TestOutage(t *testing.T) {
	f := &flaky{dir: makePaths(t)}
	defer f.files.Close()
	hidden := 0
	for name := range paths {
		f.left.Store(0)
		want, err := store.Of(t.Context(), f, "https://host/"+name)
		if err != nil {
			t.Fatal(err)
		}
		for call := range -f.left.Load() {
			f.left.Store(call + 1)
			got, err := store.Of(t.Context(), f, "https://host/"+name)
			if hidden++; err == nil && got != want || err != nil && !source.Unreachable(err) {
				t.Errorf("%s: request %d fails: %v, %v; want %v", name, call+1, got, err, want)
			}
		}
	}
	if hidden < 50 {
		t.Errorf("%d requests failed", hidden)
	}
}

// TestOfStops: a question that its caller leaves is an error, not an answer.
func TestOfStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if kind, err := store.Of(ctx, &openers.Files{}, t.TempDir()); err == nil {
		t.Errorf("got %v; want an error", kind)
	}
}

// TestKeyFileThatIsNone: what cannot be read as a key file is a fault with a kind that names it.
func TestKeyFileThatIsNone(t *testing.T) {
	t.Setenv(store.KeyVar, "")
	dir := t.TempDir()
	for name, kind := range map[string]fault.Kind{dir: fault.Unsupported, filepath.Join(dir, "none"): fault.NotFound} {
		t.Setenv(store.KeyFileVar, name)
		_, err := store.KeyFromEnv()
		if fault.KindOf(err) != kind || !strings.HasPrefix(err.Error(), name+": key file: ") {
			t.Errorf("%v, want %v", err, kind)
		}
	}
}

package raster_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/httpsource"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// beside is a raster of testdata/overviews and what GDAL reads of its overviews.
type beside struct {
	Path      string
	Overviews []struct {
		Shape          []int
		Samples, Valid string
	} `json:"overview_sums"`
}

// overview reads overview n of a path, with what is valid.
func overview(t *testing.T, path string, n int, o resources.Options) (*raster.Array, error) {
	t.Helper()
	return raster.Read(t.Context(), []string{path}, raster.ReadOptions{Overview: &n, Validity: true, Options: o})
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// web returns a server that has the files of testdata/overviews, and options that read from it.
func web(t *testing.T) (*netsim.Server, resources.Options) {
	t.Helper()
	s := netsim.NewServer(false)
	t.Cleanup(s.Close)
	dir := filepath.Join(corpus.Testdata(t), "overviews")
	names, err := filepath.Glob(filepath.Join(dir, "*.tif*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b := testfile.Read(t, name)
		s.Put("/"+filepath.Base(name), b)
	}
	opener, err := httpsource.New(httpsource.Options{Options: remote.Options{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opener.Close() })
	return s, resources.Options{Opener: &openers.Mux{Files: &openers.Files{},
		Schemes: map[string]source.Opener{"http": opener}}}
}

// TestOverviewsBesideAreThoseOfGDAL: the overviews in NAME.ovr, local or remote, are those that GDAL reads, with their
// masks; a raster with overviews of its own does not ask for that file.
func TestOverviewsBesideAreThoseOfGDAL(t *testing.T) {
	s, o := web(t)
	dir := filepath.Join(corpus.Testdata(t), "overviews")
	for _, row := range corpus.Rows[beside](t, dir) {
		for _, path := range []string{filepath.Join(dir, row.Path), s.URL + "/" + row.Path,
			s.URL + "/" + row.Path + "?signed=yes"} {
			for n, want := range row.Overviews {
				a, err := overview(t, path, n, o)
				if err != nil {
					t.Fatal(err)
				}
				if fmt.Sprint(a.Shape) != fmt.Sprint(want.Shape) || sum(a.Data) != want.Samples {
					t.Errorf("%s: overview %d: %v %s, not %v", path, n, a.Shape, sum(a.Data), want)
				}
				if sum(a.Valid) != want.Valid {
					t.Errorf("%s: overview %d: other pixels are valid than in GDAL", path, n)
				}
			}
			n := len(row.Overviews)
			_, err := overview(t, path, n, o)
			if want := fmt.Sprintf("there is no number %d: the raster has ", n); fault.KindOf(err) != fault.NotFound ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%s: an overview that it has not: %v", path, err)
			}
		}
	}
	asked := func(name string) bool {
		return slices.ContainsFunc(s.Requests(), func(r *http.Request) bool { return r.URL.Path == name })
	}
	if asked("/both.tif.ovr") || !asked("/plain.tif.ovr") {
		t.Error("the file beside a raster is read where the raster has overviews, or not where it has none")
	}
}

// TestOverviewsBesideAreAskedForWhenNeeded: reading the raster itself makes no request for a file beside it, and one
// that is not there takes one request. A store that refuses what does not exist counts as one without the file; a
// store that does not answer is an error.
func TestOverviewsBesideAreAskedForWhenNeeded(t *testing.T) {
	s, o := web(t)
	b := testfile.Read(t, filepath.Join(corpus.Testdata(t), "overviews", "plain.tif"))
	s.Put("/alone.tif", b)
	asked := func() (n int) {
		for _, r := range s.Requests() {
			if strings.HasSuffix(r.URL.Path, ".ovr") {
				n++
			}
		}
		return n
	}
	if _, err := raster.Read(t.Context(), []string{s.URL + "/plain.tif"}, raster.ReadOptions{Options: o}); err != nil {
		t.Fatal(err)
	}
	if n := asked(); n != 0 {
		t.Errorf("%d requests for overviews, but none was read", n)
	}
	if _, err := overview(t, s.URL+"/alone.tif", 0, o); fault.KindOf(err) != fault.NotFound || asked() != 1 {
		t.Errorf("no file of overviews: %d requests: %v", asked(), err)
	}
	s.OnRequest(func(_ int, r *http.Request) netsim.Fault {
		if strings.HasSuffix(r.URL.Path, ".ovr") {
			return netsim.Forbidden
		}
		return netsim.None
	})
	if _, err := overview(t, s.URL+"/alone.tif", 0, o); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a store that refuses: %v", err)
	}
}

// TestWrongOverviewsBeside: a file of overviews that is not that of the raster, or is damaged, is refused by its own
// name, and does not prevent reading the raster.
func TestWrongOverviewsBeside(t *testing.T) {
	data := filepath.Join(corpus.Testdata(t), "overviews")
	file := func(name string) []byte {
		b := testfile.Read(t, filepath.Join(data, name))
		return b
	}
	plain := file("plain.tif.ovr")
	var square bytes.Buffer
	if err := tog.Write(&square, make([]byte, 2*39*39*2), tog.Options{Shape: [3]int{2, 39, 39},
		DType: chunk.Uint16, Tile: 16}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		of   string
		ovr  []byte
		kind fault.Kind
	}{
		"another dtype": {"plain.tif", file("thirds.tif.ovr"), fault.Unsupported},
		"other bands":   {"../extras/palette.tif", plain, fault.Unsupported},
		"a larger one":  {"plain.tif", file("../masks/tog.tif"), fault.Unsupported},
		"another ratio": {"plain.tif", square.Bytes(), fault.Unsupported},
		"an empty file": {"plain.tif", []byte{}, fault.Unsupported},
		"text":          {"plain.tif", []byte("no TIFF at all"), fault.Unsupported},
		"cut header":    {"plain.tif", plain[:60], fault.Corrupt},
		"cut pixels":    {"plain.tif", plain[:len(plain)-2000], fault.Corrupt},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.tif")
			for to, b := range map[string][]byte{path: file(c.of), path + ".ovr": c.ovr} {
				testfile.Write(t, to, b)
			}
			_, err := overview(t, path, 0, resources.Options{})
			if fault.KindOf(err) != c.kind || !strings.HasPrefix(err.Error(), path+".ovr: ") {
				t.Errorf("%v, want %v of %s.ovr", err, c.kind, path)
			}
			if _, err := raster.Read(t.Context(), []string{path}, raster.ReadOptions{}); err != nil {
				t.Errorf("the raster itself: %v", err)
			}
		})
	}
}

// TestOverviewsBesideBelowRoots: a link does not lead to a file of overviews outside of the roots.
func TestOverviewsBesideBelowRoots(t *testing.T) {
	data, dir := filepath.Join(corpus.Testdata(t), "overviews"), t.TempDir()
	b, err := os.ReadFile(filepath.Join(data, "plain.tif"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "a.tif")
	testfile.Write(t, path, b)
	if err := os.Symlink(filepath.Join(data, "plain.tif.ovr"), path+".ovr"); err != nil {
		t.Fatal(err)
	}
	if _, err := overview(t, path, 0, resources.Options{}); err != nil {
		t.Errorf("without roots: %v", err)
	}
	_, err = overview(t, path, 0, resources.Options{Roots: []string{dir}})
	if fault.KindOf(err) != fault.NotFound || strings.Contains(err.Error(), data) {
		t.Errorf("a link out of the roots: %v", err)
	}
}

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestOverviewsAreThoseOfGDAL: cat --overview gives the samples that rasterio reads with overview_level, and info lists
// the sizes, also of overviews in files beside their rasters (.ovr).
func TestOverviewsAreThoseOfGDAL(t *testing.T) {
	for _, folder := range []string{"extras", "overviews"} {
		t.Run(folder, func(t *testing.T) { testOverviews(t, folder) })
	}
}

func testOverviews(t *testing.T, folder string) {
	t.Helper()
	n := 0
	for _, row := range corpus.Rows[struct {
		Path      string
		Overviews []struct {
			Shape   []int
			Samples string
		} `json:"overview_sums"`
	}](t, testdata(t, folder)) {
		path := testdata(t, folder, row.Path)
		var sizes [][2]int
		for i, want := range row.Overviews {
			r := chaski(t.Context(), "cat", "--overview", fmt.Sprint(i), path)
			var got struct {
				Shape  []int
				SHA256 string
			}
			if err := json.Unmarshal([]byte(r.out), &got); r.code != 0 || err != nil {
				t.Fatalf("%s: overview %d: %+v: %v", row.Path, i, r, err)
			}
			if got.SHA256 != want.Samples || fmt.Sprint(got.Shape) != fmt.Sprint(want.Shape) {
				t.Errorf("%s: overview %d: %v, not %v", row.Path, i, got, want)
			}
			sizes = append(sizes, [2]int(want.Shape[1:]))
			n++
		}
		r := chaski(t.Context(), "cat", "--overview", fmt.Sprint(len(row.Overviews)), path)
		if want := fmt.Sprintf("there is no number %d: the raster has ", len(sizes)); r.code != 1 ||
			!strings.Contains(r.err, want) {
			t.Errorf("%s: an overview that it has not: %+v", row.Path, r)
		}
		var info struct {
			TIFF struct {
				Sizes [][2]int `json:"overview_sizes"`
			}
		}
		r = chaski(t.Context(), "info", "--json", path)
		if err := json.Unmarshal([]byte(r.out), &info); err != nil || fmt.Sprint(info.TIFF.Sizes) != fmt.Sprint(sizes) {
			t.Errorf("%s: info has overviews of %v, not %v: %v", row.Path, info.TIFF.Sizes, sizes, err)
		}
	}
	if n == 0 {
		t.Error("no overview")
	}
}

// TestInfoOfOverviewsBeside: info names the file of overviews, and says why it is refused.
func TestInfoOfOverviewsBeside(t *testing.T) {
	plain := testdata(t, "overviews", "plain.tif")
	if r := chaski(t.Context(), "info", plain); !strings.Contains(r.out, "overview_file: "+plain+".ovr\n") {
		t.Errorf("%+v", r)
	}
	b := testfile.Read(t, plain)
	path := filepath.Join(t.TempDir(), "a.tif")
	if err := errors.Join(os.WriteFile(path, b, 0o666),
		os.WriteFile(path+".ovr", []byte("no TIFF"), 0o666)); err != nil {
		t.Fatal(err)
	}
	r := chaski(t.Context(), "info", path)
	if r.code != 0 || !strings.Contains(r.out, path+".ovr: header at 0: ") {
		t.Errorf("%+v", r)
	}
}

// TestOverviewOfMember: the overview of a file in a container is that of the file.
func TestOverviewOfMember(t *testing.T) {
	dir := t.TempDir()
	b := testfile.Read(t, testdata(t, "extras", "scaled.tif"))
	in := filepath.Join(dir, "in")
	if err := errors.Join(os.Mkdir(in, 0o777), os.WriteFile(filepath.Join(in, "a.tif"), b, 0o666),
		os.WriteFile(filepath.Join(in, "b.tif"), b, 0o666),
		os.WriteFile(filepath.Join(dir, "about.json"), []byte(about), 0o666)); err != nil {
		t.Fatal(err)
	}
	packed := filepath.Join(dir, "x.tacozip")
	r := chaski(t.Context(), "pack", "-o", packed, "--collection", filepath.Join(dir, "about.json"), in)
	if r.code != 0 {
		t.Fatalf("%+v", r)
	}
	want := chaski(t.Context(), "cat", "--overview", "1", filepath.Join(in, "a.tif"))
	for _, name := range []string{"a.tif", "b.tif"} {
		got := chaski(t.Context(), "cat", "--overview", "1", packed+"::"+name)
		if got.code != 0 || got != want {
			t.Errorf("%s: %+v, not %+v", name, got, want)
		}
	}
}

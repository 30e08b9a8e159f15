package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/array"
	"github.com/chaski-eo/chaski/store/tiledb"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// writeChips writes TOGs of random uint16 samples of a shape. It returns their pixels, sorted by
// file name.
func writeChips(t *testing.T, dir string, n int, shape [3]int) (pixels [][]byte) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(uint64(n), uint64(shape[1])))
	for i := range n {
		data := make([]byte, 2*shape[0]*shape[1]*shape[2])
		for k := range data {
			data[k] = byte(rnd.UintN(256))
		}
		var b bytes.Buffer
		err := tiff.WriteTOG(&b, data, tiff.TOGOptions{Shape: shape, DType: chunk.Uint16, Tile: 32, Level: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("chip-%02d.tif", i)), b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		pixels = append(pixels, data)
	}
	return pixels
}

// TestConvertToAnArrayAndBack: the array has the samples of the rasters cell by cell, in any order
// of dimensions, and so have the images that are made from it in every format.
func TestConvertToAnArrayAndBack(t *testing.T) {
	const n, h, w = 7, 50, 41
	for _, c := range []struct {
		dims, extent string
		bands        int
	}{
		{"n b y x", "n=3 y=16 x=16", 2}, {"b y x n", "y=20,x=20", 2}, {"n y x", "", 1}, {"y n x", "n=7", 1},
	} {
		src, dir := t.TempDir(), t.TempDir()
		pixels := writeChips(t, src, n, [3]int{c.bands, h, w})
		cube := filepath.Join(dir, "deep", "cube")
		args := []string{
			"convert", "--to", "tiledb", "--dims", c.dims, "--extent",
			c.extent, "--attr", "dn", "--level", "1", src, "-o", cube,
		}
		if r := chaski(t.Context(), args...); r.code != 0 || r.out != "" || r.err != "" {
			t.Fatalf("%s: %+v", c.dims, r)
		}
		size := map[string]int{"n": n, "b": c.bands, "y": h, "x": w}
		var want []byte
		var visit func(d int, at map[string]int)
		names := strings.Fields(c.dims)
		visit = func(d int, at map[string]int) {
			if d == len(names) {
				i := 2 * ((at["b"]*h+at["y"])*w + at["x"])
				want = append(want, pixels[at["n"]][i:i+2]...)
				return
			}
			for i := range size[names[d]] {
				at[names[d]] = i
				visit(d+1, at)
			}
		}
		visit(0, map[string]int{})
		var read array.Read
		r := chaski(t.Context(), "array", cube)
		if r.code != 0 || json.Unmarshal([]byte(r.out), &read) != nil ||
			read.Attrs["dn"].SHA256 != corpus.SHA256(want) {
			t.Errorf("%s: %+v", c.dims, r)
		}
		for _, to := range []string{"tog", "rumi", "rumi2"} {
			out := filepath.Join(dir, to)
			r := chaski(t.Context(), "convert", "--to", to, "--level", "1", "--tile", "48", "--dims", c.dims,
				cube, "-o", out)
			if r.code != 0 {
				t.Fatalf("%s to %s: %+v", c.dims, to, r)
			}
			for i, data := range pixels {
				ext := map[bool]string{true: ".rumi", false: ".tif"}[to == "rumi2"]
				sameSum(t, c.dims+" to "+to, chaski(t.Context(), "cat", filepath.Join(out, fmt.Sprint(i)+ext)),
					[]int{c.bands, h, w}, "uint16", corpus.SHA256(data))
			}
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "deep", ".*")); left != nil {
			t.Errorf("%q is left", left)
		}
		if r := chaski(t.Context(), args...); r.code != 1 || !strings.Contains(r.err, "overwrite") {
			t.Errorf("over an array: %+v", r)
		}
		if r := chaski(t.Context(), append(args, "--overwrite")...); r.code != 0 {
			t.Errorf("--overwrite: %+v", r)
		}
	}
}

// TestConvertOriginalArrays: images of an array that the original library wrote have the cells of
// its manifest.
func TestConvertOriginalArrays(t *testing.T) {
	seen := 0
	for _, l := range tiledbLines(t) {
		dims := map[string]string{
			"dense_3d_mixed_order":       "b y x",
			"dense_2d_order_rc":          "y x",
			"dense_with_sparse_fragment": "y x",
		}[filepath.Base(l.Path)]
		if dims == "" {
			continue
		}
		path := l.Path
		out := filepath.Join(t.TempDir(), "one")
		if r := chaski(t.Context(), "convert", "--dims", dims, path, "-o", out+"/"); r.code != 0 {
			t.Errorf("%s: %+v", l.Path, r)
			continue
		}
		var read array.Read
		r := chaski(t.Context(), "array", path)
		if r.code != 0 || json.Unmarshal([]byte(r.out), &read) != nil {
			t.Fatalf("%+v", r)
		}
		for name, v := range read.Attrs {
			file := filepath.Join(out, name, "0.tif")
			if len(read.Attrs) == 1 {
				file = filepath.Join(out, "0.tif")
			}
			var got struct{ SHA256 string }
			r := chaski(t.Context(), "cat", file)
			if r.code != 0 || json.Unmarshal([]byte(r.out), &got) != nil || got.SHA256 != v.SHA256 {
				t.Errorf("%s, %s: %+v, want %s", l.Path, name, r, v.SHA256)
			}
			seen++
		}
	}
	if seen < 4 {
		t.Errorf("only %d", seen)
	}
}

// TestConvertArraysThatDoNotFit: rasters and arrays that do not fit are refused, and no output is
// left.
func TestConvertArraysThatDoNotFit(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	writeChips(t, src, 2, [3]int{2, 20, 20})
	other := filepath.Join(t.TempDir(), "z")
	if err := os.Mkdir(other, 0o777); err != nil {
		t.Fatal(err)
	}
	writeChips(t, other, 1, [3]int{2, 20, 21})
	cube := filepath.Join(dir, "cube")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--to", "tiledb", src, other, "-o", cube}, 1, "another shape"},
		{[]string{"--to", "tiledb", "--dims", "n y x", src, "-o", cube}, 1, "2 along b"},
		{[]string{"--to", "tiledb", "--dims", "b y x", src, "-o", cube}, 1, "2 along n"},
		{[]string{"--to", "tiledb", "--dims", "n b y", src, "-o", cube}, 2, "must have y and x"},
		{[]string{"--to", "tiledb", "--dims", "n b y x x", src, "-o", cube}, 2, "each once"},
		{[]string{"--to", "tiledb", "--extent", "z=3", src, "-o", cube}, 2, "DIM=CELLS"},
		{
			[]string{"--to", "tiledb", "--attr", "__fragment_metadata", src, "-o", cube},
			1, "chaski: " + cube + ": attribute __fragment_metadata",
		},
		{[]string{"--to", "tiledb", "--attr", "a/b", src, "-o", cube}, 1, "chaski: " + cube + ": array schema"},
		{[]string{"--to", "tiledb", src, "-o", "-"}, 2, "standard output"},
		{[]string{"--to", "tiledb", src, "-o", src}, 1, "exists"},
		{[]string{"--to", "tiledb", "--overwrite", src, "-o", src}, 1, "exists"},
		{
			[]string{"--attr", "none", testdata(t, "tiledb", "arrays", "dense_2d_order_rc"), "-o", cube},
			1, "no attribute",
		},
		{[]string{testdata(t, "tiledb", "arrays", "sparse_2d"), "-o", cube}, 1, "sparse"},
		{[]string{"--to", "tiledb", testdata(t, "tiledb", "arrays", "sparse_2d"), "-o", cube}, 2, "is an array"},
		{[]string{"--timestamp", "5", src, "-o", cube + ".tif"}, 2, "is not an array"},
	} {
		r := chaski(t.Context(), append([]string{"convert"}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("%q: %+v", c.args, r)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
}

// TestArraysByFileURI: every command accepts an array, or a raster to convert to one, as a file://
// URI.
func TestArraysByFileURI(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	writeChips(t, src, 2, [3]int{1, 20, 20})
	array := func(from, name string) string {
		out := filepath.Join(dir, name)
		if r := chaski(t.Context(), "convert", "--to", "tiledb", from, "-o", out); r.code != 0 {
			t.Fatalf("%s: %+v", from, r)
		}
		return out
	}
	cube := array(src, "cube")
	want := chaski(t.Context(), "array", cube)
	for _, from := range []string{"file://" + src, "file://" + src + "/"} {
		got := chaski(t.Context(), "array", array(from, fmt.Sprint("from", len(from))))
		if got != want || want.code != 0 {
			t.Errorf("from %s: %+v, want %+v", from, got, want)
		}
	}
	for _, args := range [][]string{{"array"}, {"verify"}, {"stats"}} {
		want, got := chaski(t.Context(), append(args, cube)...), chaski(t.Context(), append(args, "file://"+cube)...)
		if got != want || want.code != 0 {
			t.Errorf("%s: %+v, want %+v", args, got, want)
		}
	}
	for uri, files := range map[string]int{"file://" + cube: 2, "file://" + filepath.Join(src, "chip-00.tif"): 1} {
		out := filepath.Join(dir, fmt.Sprint("files", files)) + "/"
		if r := chaski(t.Context(), "convert", "--to", "tog", uri, "-o", out); r.code != 0 {
			t.Errorf("%s: %+v", uri, r)
		}
		if made, err := filepath.Glob(out + "*.tif"); err != nil || len(made) != files {
			t.Errorf("%s: %q, %v", uri, made, err)
		}
	}
}

// readCube prints the shape, filters and cells of an array.
const readCube = `
import hashlib, json, sys, tiledb
with tiledb.open(sys.argv[1]) as a:
    x = a[:]["dn"] if a.nattr > 1 or isinstance(a[:], dict) else a[:]
    print(json.dumps([list(x.shape), str(x.dtype), hashlib.sha256(x.tobytes()).hexdigest(), [str(type(f).__name__) for f in a.attr(0).filters]]))
`

// TestTileDBReadsWhatIsConverted: the newest original library reads converted arrays.
func TestTileDBReadsWhatIsConverted(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON_TILEDB")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON_TILEDB names no Python with tiledb")
	}
	src, cube := t.TempDir(), filepath.Join(t.TempDir(), "cube")
	pixels := writeChips(t, src, 5, [3]int{3, 40, 50})
	r := chaski(t.Context(), "convert", "--to", "tiledb", "--attr", "dn", "--extent", "n=2 y=16 x=16", src, "-o", cube)
	if r.code != 0 {
		t.Fatalf("%+v", r)
	}
	out, err := exec.Command(python, "-c", readCube, cube).CombinedOutput()
	want := fmt.Sprintf(`[[5, 3, 40, 50], "uint16", "%s", ["ByteShuffleFilter", "ZstdFilter"]]`,
		corpus.SHA256(bytes.Join(pixels, nil)))
	if err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("%s (%v)\nwant %s", out, err, want)
	}
	if !tiledb.IsArray(cube) {
		t.Error("no array")
	}
}

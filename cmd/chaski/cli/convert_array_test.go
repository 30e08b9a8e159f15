package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/array"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
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
		err := tog.Write(&b, data, tog.Options{Shape: shape, DType: chunk.Uint16, Tile: 32, Level: 1})
		if err != nil {
			t.Fatal(err)
		}
		testfile.Write(t, filepath.Join(dir, fmt.Sprintf("chip-%02d.tif", i)), b.Bytes())
		pixels = append(pixels, data)
	}
	return pixels
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
	chip, cube := filepath.Join(src, "chip-00.tif"), filepath.Join(dir, "cube")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{
			[]string{"--attr", "none", testdata(t, "tiledb", "arrays", "dense_2d_order_rc"), "-o", cube},
			1, "no attribute",
		},
		{[]string{testdata(t, "tiledb", "arrays", "sparse_2d"), "-o", cube}, 1, "sparse"},
		{[]string{"--timestamp", "5", src, "-o", cube + ".tif"}, 2, "--timestamp is for arrays"},
		{[]string{"--attr", "a", chip, "-o", cube + ".tif"}, 2, "--attr is for arrays"},
		{[]string{"--dims", "b y x", chip, "-o", cube + ".tif"}, 2, "--dims is for arrays"},
		{[]string{"--t", "0", chip, "-o", cube + ".tif"}, 1, "--t picks steps of time of rumi3, and it has none"},
		{[]string{"--t", "0", testdata(t, "tiledb", "cube"), "-o", cube}, 2, "--t picks steps of time of rumi3"},
		{[]string{chip, "-o", cube + ".png"}, 2, "another format than what is written: .tif, .tiff"},
		{[]string{chip, "-o", cube + ".zarr"}, 2, "another format"},
		{[]string{"--to", "tog", chip, "-o", cube + ".rumi"}, 2, "another format than what is written: .tif"},
		{[]string{"--to", "rumi2", chip, "-o", cube + ".tif"}, 2, "another format than what is written: .rumi"},
	} {
		r := chaski(t.Context(), append([]string{"convert"}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("%q: %+v", c.args, r)
		}
	}
	r := chaski(t.Context(), "paste", "--like", chip, "--window", "8", "-o", cube+".png", chip)
	if r.code != 2 || !strings.Contains(r.err, "another format than what is written: .tif") {
		t.Errorf("paste: %+v", r)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
}

// TestArraysByFileURI: every command accepts an array, or a raster, as a file://
// URI.
func TestArraysByFileURI(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	writeChips(t, src, 2, [3]int{1, 20, 20})
	cube := testdata(t, "tiledb", "cube")
	if abs, err := filepath.Abs(cube); err == nil {
		cube = abs
	}
	for _, args := range [][]string{{"array"}, {"verify"}, {"stats"}} {
		want, got := chaski(t.Context(), append(args, cube)...), chaski(t.Context(), append(args, "file://"+cube)...)
		if got != want || want.code != 0 {
			t.Errorf("%s: %+v, want %+v", args, got, want)
		}
	}
	for uri, files := range map[string]int{"file://" + cube: 6, "file://" + filepath.Join(src, "chip-00.tif"): 1} {
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

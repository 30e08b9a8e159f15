package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/corpus/whole"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// extras is a row of testdata/extras: a file, the file that GDAL's COG driver made from it, and the
// overviews as GDAL reads them.
type extras struct {
	Path, COG string
	Overviews []struct{ Samples, Masks string } `json:"overview_sums"`
}

func openTIFF(t *testing.T, path string) ([]byte, *ifd.File, *tiff.Image) {
	t.Helper()
	b := testfile.Read(t, path)
	f, err := ifd.Open(t.Context(), &corpus.Mem{B: b}, ifd.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	img, err := tiff.FromFile(t.Context(), f, tiff.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return b, f, img
}

// tagsOf returns the tags of a directory without the offsets and sizes of tiles.
func tagsOf(t *testing.T, f *ifd.File, d *ifd.Directory) map[uint16]ifdwrite.Field {
	t.Helper()
	tags, read := map[uint16]ifdwrite.Field{}, f.Tags(t.Context(), d)
	for _, e := range d.Entries {
		v := read.Value(e.Tag)
		if read.Err != nil {
			t.Fatal(read.Err)
		}
		if e.Tag != 324 && e.Tag != 325 {
			tags[e.Tag] = ifdwrite.Field{Tag: e.Tag, Type: v.Type, Data: v.Bytes()}
		}
	}
	return tags
}

// TestConvertHasTheTagsOfGDAL: a TOG has the tags that GDAL's COG driver writes, with the same
// values, and so has its mask's directory.
func TestConvertHasTheTagsOfGDAL(t *testing.T) {
	dir := t.TempDir()
	for _, row := range corpus.Rows[extras](t, testdata(t, "extras")) {
		dst := filepath.Join(dir, row.COG)
		r := chaski(t.Context(), "convert", "--tile", "32", testdata(t, "extras", row.Path), "-o", dst)
		if r.code != 0 {
			t.Fatalf("%+v", r)
		}
		_, theirs, _ := openTIFF(t, testdata(t, "extras", row.COG))
		_, ours, _ := openTIFF(t, dst)
		if len(ours.Dirs) != len(theirs.Dirs) {
			t.Fatalf("%s: %d directories, GDAL has %d", row.Path, len(ours.Dirs), len(theirs.Dirs))
		}
		for i := range ours.Dirs {
			got := tagsOf(t, ours, &ours.Dirs[i])
			for tag, want := range tagsOf(t, theirs, &theirs.Dirs[i]) {
				if g := got[tag]; g.Type != want.Type || !bytes.Equal(g.Data, want.Data) {
					t.Errorf("%s: directory %d: tag %d is %d %q, GDAL has %d %q",
						row.Path, i, tag, g.Type, g.Data, want.Type, want.Data)
				}
			}
		}
	}
}

// TestConvertKeepsOverviewsAndMasks: with --overviews, a TOG has the overviews of its source, with
// their masks, as GDAL reads them there.
func TestConvertKeepsOverviewsAndMasks(t *testing.T) {
	dir := t.TempDir()
	n := 0
	for _, row := range corpus.Rows[extras](t, testdata(t, "extras")) {
		dst := filepath.Join(dir, row.Path)
		r := chaski(t.Context(), "convert", "--strict", "--overviews", "--tile", "16",
			testdata(t, "extras", row.Path), "-o", dst)
		if r.code != 0 || r.err != "" {
			t.Fatalf("%+v", r)
		}
		b, f, img := openTIFF(t, dst)
		overviews, err := tiff.OpenOverviews(t.Context(), f, img.Index, tiff.Limits{})
		if err != nil || len(overviews) != len(row.Overviews) {
			t.Fatalf("%s: %d overviews, not %d: %v", row.Path, len(overviews), len(row.Overviews), err)
		}
		for i, x := range overviews {
			pixels, err := whole.Image(x, b, 1<<30)
			if err != nil || corpus.SHA256(pixels) != row.Overviews[i].Samples {
				t.Errorf("%s: overview %d: other samples: %v", row.Path, i, err)
			}
			mask, err := whole.Image(x.Mask, b, 1<<30)
			if err != nil {
				t.Fatal(err)
			}
			for k := range mask {
				mask[k] *= 255
			}
			if corpus.SHA256(bytes.Repeat(mask, x.Bands)) != row.Overviews[i].Masks {
				t.Errorf("%s: overview %d: another mask", row.Path, i)
			}
			n++
		}
	}
	if n == 0 {
		t.Error("no overview")
	}
}

// TestConvertNamesWhatIsLeftOut: a warning names what a format cannot hold, and --strict refuses
// the file.
func TestConvertNamesWhatIsLeftOut(t *testing.T) {
	scaled := testdata(t, "extras", "scaled.tif")
	palette := testdata(t, "extras", "palette.tif")
	points := testdata(t, "extras", "points.tif")
	tags := "nodata value, band names, scale, offset, units, metadata, TIFF tags"
	for _, c := range []struct {
		to   []string
		src  string
		left string
	}{
		{[]string{"--to", "tog"}, scaled, "overviews (--overviews keeps them)"},
		{[]string{"--to", "tog", "--overviews"}, scaled, ""},
		{[]string{"--to", "tog"}, palette, ""},
		{[]string{"--to", "tog"}, points, ""},
		{[]string{"--to", "rumi"}, scaled, "mask, overviews"},
		{[]string{"--to", "rumi"}, palette, "meaning of the bands (colours, alpha)"},
		{[]string{"--to", "rumi"}, points, ""},
		{[]string{"--to", "rumi2"}, scaled, "mask, overviews, " + tags},
		{[]string{"--to", "rumi2"}, palette, "meaning of the bands (colours, alpha), colour table"},
	} {
		dir := t.TempDir()
		args := slices.Concat([]string{"convert", "--level", "1", "--tile", "32"}, c.to,
			[]string{c.src, "-o", filepath.Join(dir, "x")})
		strict := chaski(t.Context(), append(args, "--strict")...)
		r := chaski(t.Context(), args...)
		want := ""
		if c.left != "" {
			want = "chaski: warning: " + c.src + ": left out: " + c.left + "\n"
			if strict.code != 1 || !errorLine.MatchString(strict.err) || !strings.Contains(strict.err, c.left) {
				t.Errorf("%v %s: strict: %+v", c.to, c.src, strict)
			}
		} else if r = strict; strict.code != 0 {
			t.Errorf("%v %s: strict: %+v", c.to, c.src, strict)
		}
		if r.code != 0 || r.err != want {
			t.Errorf("%v %s: exit %d: %q, not %q", c.to, filepath.Base(c.src), r.code, r.err, want)
		}
	}
}

// TestConvertWarnsOnceALoss: rasters that lose the same things share one warning, in the order of
// the rasters for any number of workers. A command that fails prints its error only.
func TestConvertWarnsOnceALoss(t *testing.T) {
	src, dir := filepath.Join(t.TempDir(), "src"), t.TempDir()
	for i, name := range []string{"scaled.tif", "palette.tif", "scaled.tif", "scaled.tif"} {
		b := testfile.Read(t, testdata(t, "extras", name))
		write(t, filepath.Join(src, fmt.Sprintf("%d.tif", i)), b)
	}
	for _, workers := range []string{"1", "5"} {
		r := chaski(t.Context(), "convert", "--to", "rumi", "--workers", workers, "--level", "1", "--overwrite",
			src, "-o", dir)
		want := fmt.Sprintf("chaski: warning: %s/0.tif and 2 more: left out: mask, overviews\n"+
			"chaski: warning: %s/1.tif: left out: meaning of the bands (colours, alpha)\n", src, src)
		if r.code != 0 || r.err != want {
			t.Errorf("%s workers: %+v, not %q", workers, r, want)
		}
	}
	write(t, filepath.Join(src, "z.tif"), []byte("no raster"))
	r := chaski(t.Context(), "convert", "--to", "rumi", "--workers", "1", "--level", "1", "--overwrite", src, "-o", dir)
	if r.code != 1 || !errorLine.MatchString(r.err) {
		t.Errorf("%+v", r)
	}
}

// TestGDALReadsWhatIsKept: GDAL reads the same from a TOG as from its source, for random files
// whose seed is CHASKI_ORACLE_SEED. Files converted to rumi and back keep everything but masks,
// overviews and colours.
func TestGDALReadsWhatIsKept(t *testing.T) {
	python := os.Getenv("CHASKI_PYTHON")
	if python == "" {
		t.Skip("CHASKI_PYTHON names no Python with rasterio")
	}
	seed := os.Getenv("CHASKI_ORACLE_SEED")
	if seed == "" {
		seed = fmt.Sprint(os.Getpid())
	}
	fmt.Println("CHASKI_ORACLE_SEED=" + seed)
	script := filepath.Join(corpus.Root(t), "cmd", "chaski", "cli", "testdata", "extras.py")
	dir := t.TempDir()
	const files = 60
	if err := os.Mkdir(filepath.Join(dir, "src"), 0o777); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, script, "write", filepath.Join(dir, "src"), seed,
		fmt.Sprint(files)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, args := range [][]string{
		{"--to", "tog", "--strict", "--overviews", "src", "-o", "tog"},
		{"--to", "rumi", "src", "-o", "rumi"},
		{"--to", "tog", "--strict", "rumi", "-o", "back"},
	} {
		args = append([]string{"convert", "--tile", "16", "--level", "1"}, args...)
		for i, a := range args {
			if a == "src" || i > 0 && args[i-1] == "-o" || a == "rumi" && args[i-1] == "--strict" {
				args[i] = filepath.Join(dir, a)
			}
		}
		if r := chaski(t.Context(), args...); r.code != 0 {
			t.Fatalf("%v: %+v", args, r)
		}
	}
	read := func(folder string) map[string]map[string]any {
		args := []string{script, "read"}
		for i := range files {
			args = append(args, filepath.Join(dir, folder, fmt.Sprintf("%d.tif", i)))
		}
		out, err := exec.CommandContext(context.WithoutCancel(t.Context()), python, args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		rows := map[string]map[string]any{}
		byName := map[string]map[string]any{}
		if err := json.Unmarshal(out, &rows); err != nil {
			t.Fatal(err)
		}
		for path, row := range rows {
			byName[filepath.Base(path)] = row
		}
		return byName
	}
	src, tog, back := read("src"), read("tog"), read("back")
	notInRumi := map[string]bool{
		"masks":         true,
		"flags":         true,
		"overviews":     true,
		"colours":       true,
		"palette":       true,
		"white_is_zero": true,
	}
	for name, row := range src {
		for key, want := range row {
			if got := tog[name][key]; !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s is %v, of the source %v", name, key, got, want)
			}
			if got := back[name][key]; !notInRumi[key] && !reflect.DeepEqual(got, want) {
				t.Errorf("%s by way of rumi: %s is %v, of the source %v", name, key, got, want)
			}
		}
	}
}

package recipe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/ops/recipe"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tiff"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const head = `collection: {id: c, dataset_version: "1", description: d, licenses: [CC0-1.0], providers: [{name: Ana}],
  tasks: [other]}
`

// pixel is sample (b, y, x) of scene k. A tenth of the rows at the top is nodata.
func pixel(k, b, y, x int) uint16 {
	if y < 10 {
		return 0
	}
	return uint16(1 + k*7919 + b*1009 + y*101 + x*3)
}

const side = 100

// scene writes scene k, in UTM, with pixels of size metres.
func scene(t testing.TB, path string, k, bands, n int, size float64) {
	t.Helper()
	sceneAt(t, path, k, bands, n, transform(k, size))
}

// sceneAt writes scene k with another transform.
func sceneAt(t testing.TB, path string, k, bands, n int, at [6]float64) {
	t.Helper()
	pixels := make([]byte, 0, 2*bands*n*n)
	for b := range bands {
		for y := range n {
			for x := range n {
				v := pixel(k, b, y, x)
				pixels = append(pixels, byte(v), byte(v>>8))
			}
		}
	}
	var w bytes.Buffer
	err := tiff.WriteTOG(&w, pixels, tiff.TOGOptions{Shape: [3]int{bands, n, n}, DType: chunk.Uint16, Tile: 32,
		Level: 1, NoData: "0", BandNames: []string{"red", "green", "blue"}[:bands],
		Geo: tiff.Geo{EPSG: 32630, HasTransform: true, Transform: at}})
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o777)
	}
	if err == nil {
		err = os.WriteFile(path, w.Bytes(), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func transform(k int, size float64) [6]float64 {
	return [6]float64{500000 + 10000*float64(k), size, 0, 4500000, 0, -size}
}

// scenes writes pairs of an image and a mask of half the resolution.
func scenes(t *testing.T, n int) string {
	dir := t.TempDir()
	for k := range n {
		scene(t, filepath.Join(dir, "img", fmt.Sprintf("s%d.tif", k)), k, 3, side, 10)
		scene(t, filepath.Join(dir, "msk", fmt.Sprintf("s%d.tif", k)), k, 1, side/2, 20)
	}
	return dir
}

func create(t *testing.T, dir, text string, workers int) (string, *recipe.Result, error) {
	t.Helper()
	r, err := recipe.Parse([]byte(head + text))
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out.tacozip")
	res, err := recipe.Make(t.Context(), r, out, recipe.Options{Base: dir, Loader: loader.Options{Workers: workers}})
	return out, res, err
}

// pairs is a recipe of images and masks. Its levels of zstd are fast ones: for each encoder of the default level,
// 34 MiB of memory are cleared, and under the race detector the pool forgets a quarter of them.
const pairs = `source: .
windows: {kind: grid, size: 40, stride: 30}
fields:
  - {name: image, pattern: "img/{id}.tif", bands: [2, 0], codec: {level: 3}}
  - {name: mask, pattern: "msk/{id}.tif", codec: {format: rumi, graph: "delta>zstd", level: 3}}
`

// samples opens a container and visits its samples.
func samples(t *testing.T, path string, visit func(ctx context.Context, d *taco.Dataset, row int)) {
	t.Helper()
	files := &source.Files{}
	defer files.Close()
	d, err := taco.Open(t.Context(), files, []string{path}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	rows, err := d.Visible(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		visit(t.Context(), d, row)
	}
}

// TestChips: each chip has the pixels and the place of its window of the scene, by arithmetic of the test's own.
func TestChips(t *testing.T) {
	dir := scenes(t, 3)
	out, res, err := create(t, dir, pairs, 2)
	if err != nil {
		t.Fatal(err)
	}
	// Windows at 0, 30 and 60 along each side: the last one fits exactly.
	if res.Samples != 27 || res.Files != 54 || res.Windows != 27 {
		t.Fatalf("%+v", res)
	}
	for k := range 3 {
		for y := 0; y <= 60; y += 30 {
			for x := 0; x <= 60; x += 30 {
				id := fmt.Sprintf("img_s%d_y%d_x%d", k, y, x)
				check(t, out+"::"+id+"/image", k, []int{2, 0}, y, x, 40, transform(k, 10), []string{"blue", "red"})
				check(t, out+"::"+id+"/mask", k, []int{0}, y/2, x/2, 20, transform(k, 20), []string{"red"})
			}
		}
	}
}

// check compares a chip with the window of a scene at y, x.
func check(t *testing.T, path string, k int, bands []int, y, x, n int, tr [6]float64, names []string) {
	t.Helper()
	a, err := raster.Read(t.Context(), []string{path}, raster.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a.Shape, []int{len(bands), n, n}) || a.DType != chunk.Uint16 {
		t.Fatalf("%s: %v %v", path, a.Shape, a.DType)
	}
	i := 0
	for _, b := range bands {
		for r := range n {
			for c := range n {
				if got := uint16(a.Data[i]) | uint16(a.Data[i+1])<<8; got != pixel(k, b, y+r, x+c) {
					t.Fatalf("%s: band %d row %d column %d is %d", path, b, r, c, got)
				}
				i += 2
			}
		}
	}
	m := metaOf(t, path)
	want := [6]float64{tr[0] + float64(x)*tr[1], tr[1], 0, tr[3] + float64(y)*tr[5], 0, tr[5]}
	if m.EPSG != 32630 || m.Transform != want || m.NoData != "0" || !slices.Equal(m.BandNames, names) {
		t.Errorf("%s: %+v", path, m)
	}
}

// metaOf returns the metadata of a member of a container.
func metaOf(t *testing.T, path string) tiff.Meta {
	t.Helper()
	out, member, _ := strings.Cut(path, "::")
	files := &source.Files{}
	defer files.Close()
	d, err := taco.Open(t.Context(), files, []string{out}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	e, err := d.Resolve(t.Context(), member)
	if err != nil {
		t.Fatal(err)
	}
	m, err := convert.ReadMeta(t.Context(), out, section{files, e})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

type section struct {
	files source.Opener
	entry taco.Entry
}

func (s section) Open(ctx context.Context, _ string) (source.Reader, error) {
	return taco.Section(ctx, s.files, s.entry)
}

// TestWorkersChangeNothing: the container has the same bytes for any number of workers.
func TestWorkersChangeNothing(t *testing.T) {
	dir := scenes(t, 2)
	for _, text := range []string{pairs, strings.Replace(pairs, "kind: grid, size: 40, stride: 30",
		"kind: random, size: 24, per_file: 9, seed: 5", 1) +
		"split: {by: place, cell: 0.001, shares: {a: 1, b: 1}}\n"} {
		var first []byte
		for _, workers := range []int{1, 2, 7} {
			out, _, err := create(t, dir, text, workers)
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = b
			}
			if !bytes.Equal(b, first) {
				t.Errorf("%d workers: other bytes", workers)
			}
		}
	}
}

// TestStatistics: geotiff:stats are those of the valid pixels, by a plain loop.
func TestStatistics(t *testing.T) {
	dir := scenes(t, 1)
	out, _, err := create(t, dir, "source: img\nwindows: {kind: grid, size: 50}\n", 2)
	if err != nil {
		t.Fatal(err)
	}
	samples(t, out, func(ctx context.Context, d *taco.Dataset, row int) {
		l, err := d.Level(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		v, err := l.Column(ctx, "geotiff:stats")
		if err != nil {
			t.Fatal(err)
		}
		y0, x0 := row/2*50, row%2*50
		for b := range 3 {
			var values []float64
			for y := range 50 {
				for x := range 50 {
					if p := pixel(0, b, y0+y, x0+x); p != 0 {
						values = append(values, float64(p))
					}
				}
			}
			slices.Sort(values)
			mean, squares := 0.0, 0.0
			for _, p := range values {
				mean += p / float64(len(values))
			}
			for _, p := range values {
				squares += (p - mean) * (p - mean) / float64(len(values))
			}
			bands, from, _ := v.List(row)
			of, lo, hi := bands.List(from + b)
			have := of.Floats()[lo:hi]
			want := []float64{values[0], values[len(values)-1], mean, math.Sqrt(squares), float64(len(values)) / 25}
			for i, w := range want {
				if math.Abs(have[i]-w) > 1e-5*math.Abs(w) {
					t.Errorf("chip %d band %d: number %d is %v, want %v", row, b, i, have[i], w)
				}
			}
			if have[6] < have[5] || math.Abs(have[6]-values[len(values)/2]) > 101 {
				t.Errorf("chip %d band %d: median %v of %v", row, b, have[6], values[len(values)/2])
			}
		}
	})
}

// TestQuality: chips with too much nodata are left out and counted. Of windows of 20 pixels at the top, half is nodata.
func TestQuality(t *testing.T) {
	dir := scenes(t, 1)
	text := "source: img\nwindows: {kind: grid, size: 20}\nquality: {max_nodata: %g}\n"
	for share, want := range map[float64]int64{0.5: 0, 0.49: 5} {
		_, res, err := create(t, dir, fmt.Sprintf(text, share), 2)
		if err != nil {
			t.Fatal(err)
		}
		if res.Empty != want || res.Samples != 25-int(want) {
			t.Errorf("%g: %+v", share, res)
		}
	}
	_, _, err := create(t, dir, "source: img\nquality: {max_nodata: 0.05}\n", 2)
	if !errors.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "none is left of 1 windows") {
		t.Errorf("no chip is left: %v", err)
	}
}

// TestBadSamples: a bad sample ends the run with its name and nothing written, or is left out and counted.
func TestBadSamples(t *testing.T) {
	dir := scenes(t, 3)
	if err := os.Truncate(filepath.Join(dir, "img", "s1.tif"), 2000); err != nil {
		t.Fatal(err)
	}
	out, _, err := create(t, dir, pairs, 2)
	if err == nil || fault.KindOf(err) == 0 || !strings.Contains(err.Error(), "s1.tif") {
		t.Errorf("error %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	_, res, err := create(t, dir, pairs+"bad_samples: skip\n", 2)
	if err != nil || res.Bad == 0 || res.Samples+int(res.Bad) != int(res.Windows) || res.First == nil {
		t.Errorf("%+v %v", res, err)
	}
}

// TestPairs: a pair that does not lie together ends the run, or is dropped.
func TestPairs(t *testing.T) {
	dir := scenes(t, 2)
	scene(t, filepath.Join(dir, "msk", "s1.tif"), 0, 1, side/2, 20) // at the place of another scene
	if _, _, err := create(t, dir, pairs, 2); !errors.Is(err, fault.Misplaced) {
		t.Errorf("error %v", err)
	}
	_, res, err := create(t, dir, pairs+"quality: {pairs: drop}\n", 2)
	if err != nil || res.Misplaced != 9 || res.Samples != 9 {
		t.Errorf("%+v %v", res, err)
	}
}

// TestOldOrNew: whichever sync or rename fails, the container is the old one or the new one, and nothing lies beside
// it. TestEveryFaultLeavesTheOldOrTheNew of package build has the writes.
func TestOldOrNew(t *testing.T) {
	dir := scenes(t, 1)
	r, err := recipe.Parse([]byte(head + "source: img\nwindows: {kind: grid, size: 50}\n"))
	if err != nil {
		t.Fatal(err)
	}
	injected := errors.New("injected")
	n, at := 0, -1
	next := func() error {
		if n++; n == at {
			return injected
		}
		return nil
	}
	restore := durable.Inject(func(f *os.File) error {
		if err := next(); err != nil {
			return err
		}
		return f.Sync()
	}, func(from, to string) error {
		if err := next(); err != nil {
			return err
		}
		return os.Rename(from, to)
	})
	defer restore()
	folder := t.TempDir()
	out := filepath.Join(folder, "out.tacozip")
	run := func(fail int) error {
		if err := os.WriteFile(out, []byte("old"), 0o666); err != nil {
			t.Fatal(err)
		}
		n, at = 0, fail
		_, err := recipe.Make(t.Context(), r, out, recipe.Options{Base: dir})
		return err
	}
	if err := run(-1); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	operations := n
	if operations < 3 {
		t.Fatalf("%d operations: a sync, a rename and the sync of the folder are three", operations)
	}
	for fail := 1; fail <= operations; fail++ {
		if err := run(fail); !errors.Is(err, injected) {
			t.Errorf("operation %d fails: %v", fail, err)
		}
		got, err := os.ReadFile(out)
		if err != nil || string(got) != "old" && (!bytes.Equal(got, whole) || fail < operations) {
			t.Errorf("operation %d fails, and leaves %d bytes (%v)", fail, len(got), err)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
			t.Errorf("operation %d fails, and leaves %v (%v)", fail, left, err)
		}
	}
}

// TestCancel: a run that is cancelled leaves nothing.
func TestCancel(t *testing.T) {
	dir := scenes(t, 1)
	r, err := recipe.Parse([]byte(head + "source: img\nwindows: {kind: grid, size: 10}\n"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	folder := t.TempDir()
	_, err = recipe.Make(ctx, r, filepath.Join(folder, "out.tacozip"), recipe.Options{Base: dir,
		Progress: func(done, total int64) {
			if done == total/2 {
				cancel()
			}
		}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestPaddingIsNoData: what is past the edge gets the nodata value of the source, so that chips need no mask, which a
// rumi could not hold and which would hide the nodata of single bands.
func TestPaddingIsNoData(t *testing.T) {
	const n, none = 20, 9
	pixels := make([]byte, 2*n*n) // two bands
	for i := range pixels {
		pixels[i] = byte(i%5 + 1)
	}
	pixels[3*n+4] = none // of the first band alone
	var w bytes.Buffer
	if err := tiff.WriteTOG(&w, pixels, tiff.TOGOptions{Shape: [3]int{2, n, n}, DType: chunk.Uint8, Tile: 16,
		Level: 1, NoData: "9"}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s.tif"), w.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"tog", "rumi"} {
		text := "source: s.tif\nwindows: {kind: grid, size: 16, pad: true}\nfields: [{codec: {format: %s}}]\n"
		out, _, err := create(t, dir, fmt.Sprintf(text, format), 2)
		if err != nil {
			t.Fatal(format, err)
		}
		for _, at := range [][2]int{{0, 0}, {0, 16}, {16, 0}, {16, 16}} {
			path := fmt.Sprintf("%s::s_y%d_x%d", out, at[0], at[1])
			a, err := raster.Read(t.Context(), []string{path}, raster.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for i, got := range a.Data {
				b, y, x := i/256, at[0]+i/16%16, at[1]+i%16
				want := byte(none)
				if y < n && x < n {
					want = pixels[b*n*n+y*n+x]
				}
				if got != want {
					t.Fatalf("%s: sample (%d, %d, %d) is %d, want %d", format, b, y, x, got, want)
				}
			}
			if format == "tog" {
				if m := metaOf(t, path); m.NoData != "9" {
					t.Errorf("%s: nodata %q", path, m.NoData)
				}
			}
		}
	}
}

// TestNoData: another nodata value replaces the source's in the pixels of the chips, and a container is a source whose
// columns go along.
func TestNoData(t *testing.T) {
	dir := scenes(t, 1)
	first, _, err := create(t, dir, "source: img\nsplit: {by: hash, shares: {a: 1}}\n", 1)
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := create(t, "", "source: "+first+"\nfields: [{nodata: 7, bands: [1]}]\ncolumns: [split]\n", 2)
	if err != nil {
		t.Fatal(err)
	}
	a, err := raster.Read(t.Context(), []string{out + "::s0"}, raster.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range side * side {
		want := pixel(0, 1, i/side, i%side)
		if want == 0 {
			want = 7
		}
		if got := uint16(a.Data[2*i]) | uint16(a.Data[2*i+1])<<8; got != want {
			t.Fatalf("pixel %d is %d, want %d", i, got, want)
		}
	}
	if m := metaOf(t, out+"::s0"); m.NoData != "7" || !slices.Equal(m.BandNames, []string{"green"}) {
		t.Errorf("%+v", m)
	}
	samples(t, out, func(ctx context.Context, d *taco.Dataset, row int) {
		l, err := d.Level(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := l.Column(ctx, "split"); err != nil || v.Str(row) != "a" {
			t.Errorf("split %v", err)
		}
	})
}

// TestOwnIDs: a table's own columns id and type are kept under other names, since every container has these.
func TestOwnIDs(t *testing.T) {
	dir := scenes(t, 2)
	table := "path,id,type,cloud\nimg/s0.tif,first,a,1\nimg/s1.tif,second,b,2\n"
	if err := os.WriteFile(filepath.Join(dir, "t.csv"), []byte(table), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, columns := range []string{`["*"]`, "[cloud, type, id]"} {
		out, _, err := create(t, dir, "source: t.csv\nfields: [{column: path}]\ncolumns: "+columns+"\n", 2)
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		samples(t, out, func(ctx context.Context, d *taco.Dataset, row int) {
			l, err := d.Level(ctx, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"source:id", "source:type"} {
				v, err := l.Column(ctx, name)
				if err != nil {
					t.Fatal(err)
				}
				found += v.Str(row) + " "
			}
		})
		if found != "first a second b " {
			t.Errorf("%s: %q", columns, found)
		}
		// The columns of a container, which is a source too, keep their names.
		if _, _, err := create(t, "", "source: "+out+"\ncolumns: [\"*\"]\n", 1); err != nil {
			t.Error(err)
		}
		if _, _, err := create(t, "", "source: "+out+"\ncolumns: [id]\n", 1); err == nil {
			t.Error("the id of a container is kept twice")
		}
	}
}

// urls opens the files of a folder by the last names of URLs.
type urls string

func (u urls) Open(ctx context.Context, uri string) (source.Reader, error) {
	address, err := url.Parse(uri)
	if err != nil {
		return nil, err
	}
	return (&source.Files{}).Open(ctx, filepath.Join(string(u), filepath.Base(address.Path)))
}

// TestSecretsStay promises that a container has no password and no signature of the URIs that it is made of.
func TestSecretsStay(t *testing.T) {
	dir := scenes(t, 1)
	table := "image\nhttps://host/s0.tif?X-Amz-Signature=SECRET&v=SECRET\nhttps://user:SECRET@host/s0.tif?SECRET\n"
	if err := os.WriteFile(filepath.Join(dir, "scenes.csv"), []byte(table), 0o666); err != nil {
		t.Fatal(err)
	}
	r, err := recipe.Parse([]byte(head + "source: scenes.csv\ncolumns: ['*']\n" +
		"fields: [{name: image, column: image}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	files := &source.Mux{Files: &source.Files{},
		Schemes: map[string]source.Opener{"https": urls(filepath.Join(dir, "img"))}}
	out := filepath.Join(t.TempDir(), "out")
	_, err = recipe.Make(t.Context(), r, out, recipe.Options{Base: dir, Loader: loader.Options{Opener: files}})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	samples(t, out, func(ctx context.Context, d *taco.Dataset, row int) {
		level, err := d.Level(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"image", "chaski:source", "id"} {
			values, err := level.Column(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(values.Str(row), "SECRET") {
				t.Errorf("%s: %q", name, values.Str(row))
			}
			if name == "id" {
				ids = append(ids, values.Str(row))
			}
		}
	})
	if want := []string{"https___host_s0", "https___host_s0-2"}; !slices.Equal(ids, want) {
		t.Errorf("ids %q, want %q", ids, want)
	}
	err = filepath.WalkDir(out, func(path string, _ fs.DirEntry, err error) error {
		if strings.Contains(path, "SECRET") {
			t.Error(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

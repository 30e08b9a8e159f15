package recipe_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/ops/recipe"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tiff"
)

// houses are rectangles of scene k in its pixels, from row y0 to y1-1 and column x0 to x1-1, with a class.
var houses = []struct {
	k, y0, x0, y1, x1 int
	class             string
}{
	{0, 5, 5, 30, 45, "house"}, {0, 20, 40, 60, 90, "shed"}, {1, 0, 0, 100, 10, "house"}, {1, 50, 5, 55, 95, "garage"},
}

// drawHouses writes the houses as GeoJSON.
func drawHouses(t *testing.T, path string) {
	t.Helper()
	var features []string
	for _, h := range houses {
		tr := transform(h.k, 10)
		x := func(c int) float64 { return tr[0] + float64(c)*10 }
		y := func(r int) float64 { return tr[3] - float64(r)*10 }
		features = append(features, fmt.Sprintf(`{"type":"Feature","properties":{"class":%q},"geometry":{"type":"Polygon",
			"coordinates":[[[%g,%g],[%[4]g,%[3]g],[%[4]g,%[5]g],[%[2]g,%[5]g],[%[2]g,%[3]g]]]}}`, h.class, x(h.x0), y(h.y0),
			x(h.x1), y(h.y1)))
	}
	text := `{"type":"FeatureCollection","crs":{"type":"name","properties":{"name":"urn:ogc:def:crs:EPSG::32630"}},
		"features":[` + strings.Join(features, ",") + `]}`
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// houseAt is what the mask of the classes house and shed has at a pixel of scene k: later houses cover earlier ones.
func houseAt(k, y, x int) (value byte) {
	for _, h := range houses {
		class := map[string]byte{"house": 1, "shed": 2}[h.class]
		if class > 0 && h.k == k && y >= h.y0 && y < h.y1 && x >= h.x0 && x < h.x1 {
			value = class
		}
	}
	return value
}

const ofHouses = `
  - {name: mask, vector: {path: houses.geojson, column: class, classes: [house, shed]}, codec: {tile: 16, level: 3}}
`

// TestVectorField: the chips of a field of shapes have at each pixel what lies there, in the place of the image.
func TestVectorField(t *testing.T) {
	dir := scenes(t, 2)
	drawHouses(t, filepath.Join(dir, "houses.geojson"))
	out, _, err := create(t, dir, `source: img
windows: {kind: grid, size: 40, stride: 30, pad: true}
fields:`+ofHouses+"  - {name: image}\nquality: {max_nodata: 0.95}\n", 2)
	if err != nil {
		t.Fatal(err)
	}
	drawn := 0
	for k := range 2 {
		for y := 0; y <= 60; y += 30 {
			for x := 0; x <= 60; x += 30 {
				path := fmt.Sprintf("%s::s%d_y%d_x%d/", out, k, y, x)
				a, err := raster.Read(t.Context(), []string{path + "mask"}, raster.ReadOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for i, v := range a.Data {
					if want := houseAt(k, y+i/40, x+i%40); v != want {
						t.Fatalf("%s: pixel %d is %d, want %d", path, i, v, want)
					}
					drawn += int(min(v, 1))
				}
				if m, i := metaOf(t, path+"mask"), metaOf(t, path+"image"); m.Transform != i.Transform ||
					m.EPSG != 32630 || m.NoData != "" {
					t.Errorf("%s: %+v", path, m)
				}
			}
		}
	}
	if drawn < 1000 {
		t.Errorf("%d pixels are drawn", drawn)
	}
}

// TestGround: chips of windows on the ground have the pixels of the scenes at their place and what is drawn there,
// whichever scenes they are of, the place in their ids, and nodata where no scene is.
func TestGround(t *testing.T) {
	dir := t.TempDir()
	// Scene 1 lies 400 m to the east of scene 0: columns 40 to 99 of scene 0 are columns 0 to 59 of scene 1.
	scene(t, filepath.Join(dir, "img", "s0.tif"), 0, 2, side, 10)
	at := transform(0, 10)
	at[0] += 400
	sceneAt(t, filepath.Join(dir, "img", "s1.tif"), 1, 2, side, at)
	drawHouses(t, filepath.Join(dir, "houses.geojson"))
	for _, windows := range []string{"stride_m: 200", "per_epoch: 20, edge: true, seed: 3"} {
		text := "source: img\nwindows: {kind: ground, size_m: 320, resolution: 10, " + windows + "}\nfields:\n" +
			"  - {name: image, bands: [1], codec: {level: 3}}" + ofHouses + "columns: []\nbad_samples: error\n"
		out, res, err := create(t, dir, text, 2)
		if err != nil {
			t.Fatal(err)
		}
		if res.Samples < 20 {
			t.Errorf("%s: %+v", windows, res)
		}
		seen := 0
		samples(t, out, func(ctx context.Context, d *taco.Dataset, row int) {
			l, err := d.Level(ctx, 0)
			if err != nil {
				t.Fatal(err)
			}
			ids, err := l.Column(ctx, "id")
			if err != nil {
				t.Fatal(err)
			}
			seen += groundChip(t, out+"::"+ids.Str(row))
		})
		if seen < 10000 {
			t.Errorf("%s: %d pixels have a value", windows, seen)
		}
	}
}

// groundChip checks a chip of TestGround, and returns how many of its pixels have a value.
func groundChip(t *testing.T, path string) (seen int) {
	t.Helper()
	m := metaOf(t, path+"/image")
	parts := strings.Split(path, "_")
	for i, name := range []string{"32630", strconv.Itoa(int(m.Transform[0])), strconv.Itoa(int(m.Transform[3]))} {
		if len(parts) < 3 || strings.TrimSuffix(parts[len(parts)-3+i], "-2") != name {
			t.Errorf("%s: it lies at %v", path, m.Transform)
		}
	}
	if m.EPSG != 32630 || m.NoData != "0" || m.Transform[1] != 10 || m.Transform[5] != -10 {
		t.Errorf("%s: %+v", path, m)
	}
	x0, y0 := int(m.Transform[0]-500000)/10, int(4500000-m.Transform[3])/10
	image, err := raster.Read(t.Context(), []string{path + "/image"}, raster.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mask, err := raster.Read(t.Context(), []string{path + "/mask"}, raster.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range mask.Data {
		y, x := y0+i/32, x0+i%32
		want := uint16(0)
		switch {
		case y < 10 || y >= side: // above row 10 both scenes have nodata
		case x >= 0 && x < side:
			want = pixel(0, 1, y, x)
		case x >= 40 && x < 40+side:
			want = pixel(1, 1, y, x-40)
		}
		if v := uint16(image.Data[2*i]) | uint16(image.Data[2*i+1])<<8; v != want {
			t.Fatalf("%s: row %d column %d is %d, want %d", path, y, x, v, want)
		}
		if want > 0 {
			seen++
		}
		if got != houseAt(0, y, x) {
			t.Fatalf("%s: row %d column %d of the mask is %d", path, y, x, got)
		}
	}
	return seen
}

// otherNoData writes two scenes of 32 by 32 pixels side by side, one with 0 and one with 255 as nodata, and returns the
// value of sample i of a band of one of them. With all, pixels are missing in all bands, otherwise in the first one.
func otherNoData(t *testing.T, dir string, bands int, all bool) (at func(k, b, i int) (v byte, valid bool)) {
	t.Helper()
	none := []byte{0, 255}
	at = func(k, b, i int) (byte, bool) {
		if i%8 == 4 && (all || b == 0) {
			return none[k], false
		}
		return []byte{1, 2, none[1-k], 3}[i%4], true
	}
	for k := range none {
		var pixels []byte
		for i := range bands * 1024 {
			v, _ := at(k, i/1024, i%1024)
			pixels = append(pixels, v)
		}
		var w bytes.Buffer
		o := tiff.TOGOptions{Shape: [3]int{bands, 32, 32}, DType: chunk.Uint8, Tile: 16, Level: 1,
			NoData: strconv.Itoa(int(none[k])), Geo: tiff.Geo{EPSG: 32630, HasTransform: true,
				Transform: [6]float64{500000 + 320*float64(k), 10, 0, 4500000, 0, -10}}}
		err := tiff.WriteTOG(&w, pixels, o)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("s%d.tif", k)), w.Bytes(), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return at
}

// TestScenesWithOtherNoData: a pixel of a scene is not missing because it has the nodata value of another scene of the
// window.
func TestScenesWithOtherNoData(t *testing.T) {
	const text = "source: .\nwindows: {kind: ground, size_m: 320, resolution: 10, stride_m: 160}\nfields: [{%s}]\n"
	for _, c := range []struct {
		bands        int
		all          bool
		field, fails string
	}{
		{1, true, "", ""}, {2, true, "", ""}, {2, false, "", "the field's nodata gives one"},
		{2, false, "nodata: 7", ""}, {1, true, "codec: {format: rumi}", "would leave out: mask"},
	} {
		dir := t.TempDir()
		at := otherNoData(t, dir, c.bands, c.all)
		out, _, err := create(t, dir, fmt.Sprintf(text, c.field), 1)
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) || !strings.Contains(err.Error(), ".tif") {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"s0_32630_500000_4500000", "s0_32630_500160_4500000",
			"s1_32630_500320_4500000"} {
			a, err := raster.Read(t.Context(), []string{out + "::" + id}, raster.ReadOptions{Validity: true})
			if err != nil {
				t.Fatal(err)
			}
			x0, err := strconv.Atoi(id[9:15])
			if err != nil {
				t.Fatal(err)
			}
			for i, got := range a.Data {
				b, y, x := i/1024, i/32%32, (x0-500000)/10+i%32
				want, valid := at(x/32, b, y*32+x%32)
				if (a.Valid[i] == 1) != valid || valid && got != want {
					t.Fatalf("%+v, %s, sample %d: %d (valid %d), want %d (valid %t)", c, id, i, got, a.Valid[i], want,
						valid)
				}
			}
			a.Release()
		}
	}
}

// TestRumi3: chips of rumi of generation 3 have the pixels, the names of bands, and the time of their row or of the
// recipe. A nodata value, which it cannot hold, is left out where the recipe says so. The loader reads the chips.
func TestRumi3(t *testing.T) {
	dir := scenes(t, 2)
	table := "image,datetime\nimg/s0.tif,2024-05-01T10:00:01.9Z\nimg/s1.tif,1969-12-31T23:59:59.5Z\n"
	if err := os.WriteFile(filepath.Join(dir, "table.csv"), []byte(table), 0o666); err != nil {
		t.Fatal(err)
	}
	text := `source: %s
windows: {kind: grid, size: 50}
fields:
  - {name: image, %s codec: {format: rumi3, unit: cell, graph: "delta>zstd", strict: %t%s}}
`
	column, pattern := `column: image, bands: [2, 0],`, `bands: [2, 0],`
	for _, c := range []struct {
		source, field, time string
		strict              bool
		want                [2][]int64 // of each scene
		fails               string
	}{
		{"table.csv", column, "", false, [2][]int64{{1714557601}, {-1}}, ""},
		{"table.csv", column, ", time: 2024-05-01", false, [2][]int64{{1714521600}, {1714521600}}, ""},
		{"img", pattern, ", time: 2024-05-01/2024-05-02", false,
			[2][]int64{{1714521600, 1714608000}, {1714521600, 1714608000}}, ""},
		{"img", pattern, "", false, [2][]int64{}, "codec.time gives one"},
		{"img", pattern, ", time: 2024-05-01", true, [2][]int64{}, "would leave out: nodata value"},
	} {
		out, _, err := create(t, dir, fmt.Sprintf(text, c.source, c.field, c.strict, c.time), 2)
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		samples(t, out, func(ctx context.Context, d *taco.Dataset, row int) {
			e, err := d.Entry(ctx, 0, row)
			if err != nil {
				t.Fatal(err)
			}
			rumi3Chip(t, out, e, row, c.want[row/4])
		})
		e, err := loader.Open(t.Context(), loader.Spec{Source: out, BatchSize: 4,
			Fields: []loader.Field{{Name: "image", DType: "native"}}}, loader.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := e.Start(t.Context(), shuffle.StepTicket(0, 0, 4, 0, 1), false).Wait(t.Context())
		if err != nil || len(b.Bad) > 0 {
			t.Errorf("the loader reads chips: %v %v", b, err)
		} else {
			b.Release()
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// rumi3Chip checks chip number row of TestRumi3, of times.
func rumi3Chip(t *testing.T, out string, e taco.Entry, row int, times []int64) {
	t.Helper()
	files := &source.Files{}
	defer files.Close()
	r, err := taco.Section(t.Context(), files, e)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f, err := rumi.Open(t.Context(), r, tiff.Limits{}.IFD())
	if err != nil {
		t.Fatal(err)
	}
	trailer, err := rumi.TrailerOf(t.Context(), f)
	if err != nil || !slices.Equal(trailer.Times, times) || !slices.Equal(trailer.Bands, []string{"blue", "red"}) {
		t.Errorf("chip %d: %+v %v", row, trailer, err)
	}
	a, err := raster.Read(t.Context(), []string{out + "::" + e.ID}, raster.ReadOptions{Layout: "b y x"})
	if err != nil {
		t.Fatal(err)
	}
	k, y, x := row/4, row%4/2*50, row%2*50
	for i := range len(a.Data) / 2 {
		want := pixel(k, []int{2, 0}[i/2500], y+i%2500/50, x+i%50)
		if got := uint16(a.Data[2*i]) | uint16(a.Data[2*i+1])<<8; got != want {
			t.Fatalf("chip %d: pixel %d is %d, want %d", row, i, got, want)
		}
	}
}

// TestBilinearOfInts: what bilinear resampling makes of whole numbers needs a dtype, and the error says so.
func TestBilinearOfInts(t *testing.T) {
	const text = `source: img
windows: {kind: ground, size_m: 320, resolution: 10}
fields:
  - {name: image, resample: bilinear%s}
`
	dir := scenes(t, 1)
	_, _, err := create(t, dir, fmt.Sprintf(text, ""), 1)
	if err == nil || !strings.Contains(err.Error(), "bilinear makes float32 of uint16, and dtype says uint16") {
		t.Error(err)
	}
	if _, _, err := create(t, dir, fmt.Sprintf(text, ", dtype: float32"), 1); err != nil {
		t.Error(err)
	}
}

// TestKeysOfTheLoader: shapes and windows on the ground have the keys that a spec has.
func TestKeysOfTheLoader(t *testing.T) {
	for text, want := range map[string]string{
		"windows: {kind: grid, size: 8, size_m: 10}\n":                                `member of kind "geo_window"`,
		"windows: {kind: random, size: 8, per_file: -1}\n":                            "windows.per_file is -1",
		"windows: {kind: grid, size: 8, stride: [8, -4]}\n":                           "windows.stride is [8,-4]",
		"windows: {kind: grid, size: -8}\n":                                           "windows.size is -8: it must be",
		"windows: {kind: ground, size: 8, size_m: 9, resolution: 1}\n":                "not for kind",
		"windows: {kind: ground, size_m: 15, resolution: 10}\n":                       "size_m is 15",
		"windows: {kind: ground, size_m: 20, resolution: 10, length: 2}\n":            "sequences",
		"windows: {kind: ground, size_m: 20, resolution: 10, metres: 2}\n":            `no member "windows.metres"`,
		"fields: [{name: a, layout: n y x b}]\n":                                      "members of tensors",
		"fields: [{name: a}, {name: b, vector: {path: x, colour: 3}}]\n":              `"fields[1].vector.colour"`,
		"fields: [{name: a}, {name: b, vector: {path: x, kind: boxes}}]\n":            `vector.kind is "boxes"`,
		"fields: [{name: a}, {name: b, vector: {path: x}, bands: [1]}]\n":             "no members of rasters",
		"fields: [{name: b, vector: {path: x}}]\n":                                    "raster",
		"fields: [{name: a}, {name: b, vector: {path: x}}]\nquality: {fields: [b]}\n": "have no nodata",
		"fields: [{name: a}, {name: b, vector: {path: x, column: [a]}}]\n":            "it must be a string",
		"fields: [{name: a}, {name: b, vector: {path: x, dtype: u}}]\n":               "dtype",
	} {
		_, err := recipe.Parse([]byte(head + "source: x\n" + text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

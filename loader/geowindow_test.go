package loader_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestGeoWindow: windows of two scenes side by side have at each place the value that the scene has there, wherever
// the window lies, and none of them has a pixel outside.
func TestGeoWindow(t *testing.T) {
	dir := t.TempDir()
	const n = 64
	for i := range 2 {
		pix := make([]byte, n*n)
		for k := range pix {
			pix[k] = byte(1 + (k/n+k%n+i*n)%250) // row + column from the corner of the first scene
		}
		writeRaster(t, filepath.Join(dir, []string{"a.tif", "b.tif"}[i]), pix, n, 32630,
			[6]float64{500000 + float64(i*n*10), 10, 0, 4.6e6, 0, -10})
	}
	s := loader.Spec{Source: dir, Fields: []loader.Field{{Name: "image", DType: "native", Validity: "ok"}},
		BatchSize: 16, Shuffle: true, Seed: 3, Geo: true,
		Sampler: loader.Sampler{Kind: spec.GeoWindow,
			GeoWindows: spec.GeoWindows{SizeM: 160, Resolution: 10, PerEpoch: 64}}}
	e, err := loader.Open(t.Context(), s, loader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	crossing := 0
	for step := range e.Steps() {
		b, err := e.Start(t.Context(), steps.StepTicket(0, step, 16, 0, 1), false).Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		image, ok, at := b.Tensor("image"), b.Tensor("ok"), b.Tensor("geo.transform")
		for k := range b.Rows {
			f := floatsOf(at)[6*k:]
			x0, y0 := int(f[0]-500000)/10, int(4.6e6-f[3])/10
			if x0 < 0 || y0 < 0 || x0+16 > 2*n || y0+16 > n {
				t.Fatalf("row %d begins at %d, %d", k, y0, x0)
			}
			if x0 < n && x0+16 > n {
				crossing++
			}
			for i := range 256 {
				if want := byte(1 + (y0+i/16+x0+i%16)%250); image.Data[256*k+i] != want || ok.Data[256*k+i] != 1 {
					t.Fatalf("row %d at %d, %d: pixel %d is %d (%d), want %d", k, y0, x0, i, image.Data[256*k+i],
						ok.Data[256*k+i], want)
				}
			}
		}
		b.Release()
	}
	if crossing < 5 {
		t.Errorf("%d windows lie in both scenes", crossing)
	}
}

// TestGeoWindowPick: of three scenes at one place the rule decides which comes first, its nodata is filled from the
// next one unless there is no mosaic, and explain names the scenes in this order.
func TestGeoWindowPick(t *testing.T) {
	dir := t.TempDir()
	const n = 64
	table := "image,datetime,cloud\n"
	for i, columns := range []string{"2024-05-01,30", "2024-07-01,20", "2024-06-01,"} {
		name := []string{"a.tif", "b.tif", "c.tif"}[i]
		pix := bytes.Repeat([]byte{byte(i + 1)}, n*n)
		for k := range n * n {
			if k%n%3 == i { // each third column is nodata, in each scene another one
				pix[k] = 0
			}
		}
		o := tog.Options{Shape: [3]int{1, n, n}, DType: chunk.Uint8, Tile: 16, NoData: "0",
			Geo: tiff.Geo{EPSG: 32719, Transform: [6]float64{300000, 20, 0, 7e6, 0, -20}, HasTransform: true}}
		var b bytes.Buffer
		if err := tog.Write(&b, pix, o); err != nil {
			t.Fatal(err)
		}
		testfile.Write(t, filepath.Join(dir, name), b.Bytes())
		table += name + "," + columns + "\n"
	}
	source := filepath.Join(dir, "scenes.csv")
	testfile.Write(t, source, []byte(table))
	shapes := filepath.Join(dir, "all.geojson")
	everywhere := `{"type":"FeatureCollection","features":[{"type":"Feature","properties":{},"geometry":{"type":"Polygon",
		"coordinates":[[[-72,-28],[-70,-28],[-70,-26],[-72,-26],[-72,-28]]]}}]}`
	testfile.Write(t, shapes, []byte(everywhere))
	for _, c := range []struct {
		pick, mosaic string
		rows         []int64 // the order of the scenes
	}{
		{"first", "", []int64{0, 1, 2}},
		{"newest", "", []int64{1, 2, 0}},
		{"oldest", "none", []int64{0}},
		{"least:cloud", "", []int64{1, 0, 2}},
		{"most:cloud", "", []int64{0, 1, 2}}, // a row without a value comes last
	} {
		s := loader.Spec{Source: source, BatchSize: 4, Seed: 1, Fields: []loader.Field{
			{Name: "image", Column: "image", DType: "float32"}, {Name: "datetime", Kind: "text"},
			{Name: "inside", Vector: &spec.Vector{Path: shapes}}},
			Sampler: loader.Sampler{Kind: spec.GeoWindow,
				GeoWindows: spec.GeoWindows{SizeM: 320, Resolution: 20, PerEpoch: 4, Pick: c.pick, Mosaic: c.mosaic}}}
		e, err := loader.Open(t.Context(), s, loader.Options{})
		if err != nil {
			t.Fatal(c.pick, err)
		}
		ticket := steps.StepTicket(0, 0, 4, 0, 1)
		b, err := e.Start(t.Context(), ticket, false).Wait(t.Context())
		if err != nil {
			t.Fatal(c.pick, err)
		}
		explained, err := e.Explain(t.Context(), ticket)
		if err != nil {
			t.Fatal(err)
		}
		image := b.Tensor("image")
		for k := range b.Rows {
			x0 := (int(e.Plan().Place(&explained[k].Draw).X) - 15000) % n
			for i := range 256 {
				want := float32(0)
				for _, row := range c.rows {
					if int64((x0+i%16)%3) != row {
						want = float32(row + 1)
						break
					}
				}
				got := math.Float32frombits(binary.LittleEndian.Uint32(image.Data[4*(256*k+i):]))
				if got != want {
					t.Fatalf("%s %s: row %d, pixel %d is %v, want %v", c.pick, c.mosaic, k, i, got, want)
				}
			}
			if explained[k].Draw.Row != c.rows[0] || explained[k].Assets[0].Row != c.rows[0] {
				t.Errorf("%s: row %d is named by %d, and %v is read", c.pick, k, explained[k].Draw.Row,
					explained[k].Assets)
			}
		}
		if inside := b.Tensor("inside").Data; bytes.Contains(inside, []byte{0}) {
			t.Errorf("%s: pixels lie outside of a shape that holds all", c.pick)
		}
		b.Release()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestGeoWindowStacks: bands in files of their own, of which one is coarser, are brought to the window each by its own
// place.
func TestGeoWindowStacks(t *testing.T) {
	dir := t.TempDir()
	const n = 64
	fine, coarse := make([]byte, n*n), make([]byte, n*n)
	for k := range fine {
		fine[k], coarse[k] = byte(1+k%n), byte(1+k/n)
	}
	writeRaster(t, filepath.Join(dir, "x_B02.tif"), fine, n, 32630, [6]float64{500000, 10, 0, 4.6e6, 0, -10})
	writeRaster(t, filepath.Join(dir, "x_B11.tif"), coarse, n, 32630, [6]float64{500000, 20, 0, 4.6e6, 0, -20})
	s := loader.Spec{Source: dir, BatchSize: 4, Seed: 1, Geo: true, Fields: []loader.Field{{Name: "image",
		Patterns: []string{"{id}_B02.tif", "{id}_B11.tif"}, DType: "native"}},
		Sampler: loader.Sampler{Kind: spec.GeoWindow,
			GeoWindows: spec.GeoWindows{SizeM: 160, Resolution: 10, PerEpoch: 16}}}
	e, err := loader.Open(t.Context(), s, loader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for step := range e.Steps() {
		b, err := e.Start(t.Context(), steps.StepTicket(0, step, 4, 0, 1), false).Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at, image := floatsOf(b.Tensor("geo.transform")), b.Tensor("image").Data
		for k := range b.Rows {
			x0, y0 := int(at[6*k]-500000)/10, int(4.6e6-at[6*k+3])/10
			for i := range 256 {
				if got, want := image[512*k+i], byte(1+x0+i%16); got != want {
					t.Fatalf("row %d: fine pixel %d is %d, want %d", k, i, got, want)
				}
				if got, want := image[512*k+256+i], byte(1+(y0+i/16)/2); got != want {
					t.Fatalf("row %d: coarse pixel %d is %d, want %d", k, i, got, want)
				}
			}
		}
		b.Release()
	}
}

// floatsOf returns the numbers of a tensor of float64.
func floatsOf(t *batch.Tensor) []float64 {
	out := make([]float64, len(t.Data)/8)
	for i := range out {
		out[i] = math.Float64frombits(binary.LittleEndian.Uint64(t.Data[8*i:]))
	}
	return out
}

// TestGeoWindowShapes promises that shapes are drawn into windows on the ground by their places: a pixel has the value
// of the last polygon that its middle, by the transform that the batch says, lies in. Boxes and polygons are those of
// the same windows.
func TestGeoWindowShapes(t *testing.T) {
	race.SkipCovered(t)
	const n = 32
	dir, path := t.TempDir(), onlyPolygons(t)
	for i := range 2 {
		writeRaster(t, filepath.Join(dir, fmt.Sprintf("%d.tif", i)), make([]byte, 128*128), 128, 32630,
			[6]float64{499500 + 512*float64(i), 4, 0, 4600300, 0, -4})
	}
	e := mustOpen(t, loader.Spec{Source: dir, BatchSize: 4, Seed: 1, Geo: true, Fields: []loader.Field{{Name: "image"},
		{Name: "polygons", Vector: &spec.Vector{Path: path, Column: "value", Kind: "polygons"}},
		{Name: "mask", Vector: &spec.Vector{Path: path, Column: "value", DType: "uint8"}},
		{Name: "boxes", Vector: &spec.Vector{Path: path, Column: "value", Kind: "boxes"}}},
		Sampler: loader.Sampler{Kind: spec.GeoWindow,
			GeoWindows: spec.GeoWindows{SizeM: 4 * n, Resolution: 4, PerEpoch: 12}}},
		loader.Options{})
	shapes := groundPolygons(t, path)
	covered := 0
	for step := range e.Steps() {
		b, err := e.Start(t.Context(), steps.StepTicket(0, step, 4, 0, 1), false).Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for k := range b.Rows {
			if !b.Valid[k] {
				continue
			}
			mask := b.Tensor("mask").Data[k*n*n:][:n*n]
			row := cutRowOf(t, b, k)
			painted, near := row.paint(t, n)
			g := b.Tensor("geo.transform").Float64()[6*k:][:6]
			for i, got := range mask {
				x, y := g[0]+(float64(i%n)+0.5)*g[1], g[3]+(float64(i/n)+0.5)*g[5]
				want := byte(0)
				for _, s := range shapes {
					if s.holds(x, y) {
						want = s.value
					}
				}
				if !near[i] && (got != want || painted[i] != want) {
					t.Fatalf("pixel %d of row %d: %d drawn, %d painted, want %d", i, k, got, painted[i], want)
				}
				if want != 0 {
					covered++
				}
			}
		}
		b.Release()
	}
	if covered < 500 {
		t.Fatal(covered)
	}
}

// groundPolygon is a shape of several polygons of several rings.
type groundPolygon struct {
	value byte
	parts [][][][2]float64
}

// holds reports whether a place is inside of an odd number of rings of a polygon.
func (g *groundPolygon) holds(x, y float64) bool {
	for _, rings := range g.parts {
		odd := false
		for _, r := range rings {
			for i := 1; i < len(r); i++ {
				a, b := r[i-1], r[i]
				if (a[1] > y) != (b[1] > y) && x < a[0]+(y-a[1])/(b[1]-a[1])*(b[0]-a[0]) {
					odd = !odd
				}
			}
		}
		if odd {
			return true
		}
	}
	return false
}

// groundPolygons reads the file of onlyPolygons.
func groundPolygons(t *testing.T, path string) (out []groundPolygon) {
	t.Helper()
	data := testfile.Read(t, path)
	var all struct {
		Features []textShape `json:"features"`
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for _, f := range all.Features {
		value, ok := f.Properties["value"].(float64)
		if !ok {
			continue // without a value it is not drawn
		}
		g := groundPolygon{value: byte(value), parts: make([][][][2]float64, 1)}
		to := any(&g.parts)
		if f.Geometry.Type == "Polygon" {
			to = &g.parts[0]
		}
		if err := json.Unmarshal(f.Geometry.Coordinates, to); err != nil {
			t.Fatal(err)
		}
		out = append(out, g)
	}
	return out
}

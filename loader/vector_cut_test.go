package loader_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// textShape is a feature of a GeoJSON file of the tests.
type textShape struct {
	Type       string         `json:"type"`
	Properties map[string]any `json:"properties"`
	Geometry   *struct {
		Type        string          `json:"type"`
		Coordinates json.RawMessage `json:"coordinates"`
	} `json:"geometry"`
}

// onlyPolygons writes the polygons of testdata's GeoJSON to a file of their own, and returns its path.
func onlyPolygons(t *testing.T) string {
	t.Helper()
	data := testfile.Read(t, filepath.Join(vectorFiles, "utm.geojson"))
	var all struct {
		Type     string          `json:"type"`
		CRS      json.RawMessage `json:"crs"`
		Features []textShape     `json:"features"`
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	var kept []textShape
	for _, f := range all.Features {
		if f.Geometry != nil && strings.HasSuffix(f.Geometry.Type, "Polygon") {
			kept = append(kept, f)
		}
	}
	if all.Features = kept; len(kept) < 50 {
		t.Fatal(len(kept))
	}
	out, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "polygons.geojson")
	testfile.Write(t, path, out)
	return path
}

// cutRow is what a row of a batch has of a field of polygons, and of one of boxes.
type cutRow struct {
	coords, boxes []float32
	rings         []int32
	values        []int64
}

func cutRowOf(t *testing.T, b *batch.Batch, row int) (out cutRow) {
	t.Helper()
	row32 := func(name string) []float32 {
		at := b.Tensor(name)
		from, to := at.Row(row)
		return at.Float32()[from:to]
	}
	out.coords, out.boxes = row32("polygons"), row32("boxes")
	rings, values, same := b.Tensor("polygons_rings"), b.Tensor("polygons_values"), b.Tensor("boxes_values")
	from, to := rings.Row(row)
	out.rings = rings.Int32()[from:to]
	from, to = values.Row(row)
	out.values = values.Int64()[from:to]
	if from, to = same.Row(row); fmt.Sprint(same.Int64()[from:to]) != fmt.Sprint(out.values) {
		t.Fatalf("row %d has values %v of polygons and %v of boxes", row, out.values, same.Int64()[from:to])
	}
	if len(out.boxes) != 4*len(out.values) {
		t.Fatalf("%d sides of %d boxes", len(out.boxes), len(out.values))
	}
	return out
}

// paint draws the polygons of a row, each pixel by a ray from its middle, and compares their boxes. near reports the
// pixels whose middle lies on a line but for rounding.
func (c *cutRow) paint(t *testing.T, n int) (mask []byte, near []bool) {
	t.Helper()
	mask, near = make([]byte, n*n), make([]bool, n*n)
	at := 0
	for shape := range c.values {
		var parts [][]bool // for each polygon its pixels
		box := [4]float32{float32(n), float32(n), 0, 0}
		for k := 0; k < len(c.rings); k += 4 {
			if int(c.rings[k]) != shape {
				continue
			}
			for int(c.rings[k+1]) >= len(parts) {
				parts = append(parts, make([]bool, n*n))
			}
			odd := parts[c.rings[k+1]]
			points := c.coords[at : at+2*int(c.rings[k+2])]
			at += len(points)
			area := 0.0
			for i := 0; i < len(points); i += 2 {
				j := (i + 2) % len(points)
				ax, ay, bx, by := float64(points[i]), float64(points[i+1]), float64(points[j]), float64(points[j+1])
				area += ax*by - bx*ay
				box = [4]float32{min(box[0], points[i]), min(box[1], points[i+1]), max(box[2], points[i]),
					max(box[3], points[i+1])}
				for y := range n {
					my := float64(y) + 0.5
					if (ay > my) == (by > my) {
						continue
					}
					cross := ax + (my-ay)/(by-ay)*(bx-ax)
					for x := range n {
						if d := cross - float64(x) - 0.5; d > 0 {
							odd[y*n+x] = !odd[y*n+x]
							near[y*n+x] = near[y*n+x] || d < 1e-3
						} else {
							near[y*n+x] = near[y*n+x] || d > -1e-3
						}
					}
				}
			}
			if hole := c.rings[k+3] == 1; hole != (area < 0) {
				t.Errorf("a ring of area %v is a hole: %v", area, hole)
			}
		}
		for _, odd := range parts {
			for i, in := range odd {
				if in {
					mask[i] = byte(c.values[shape])
				}
			}
		}
		if got := [4]float32(c.boxes[4*shape:]); got != box {
			t.Errorf("box %v, want %v", got, box)
		}
	}
	if at != len(c.coords) {
		t.Errorf("%d coordinates, and rings of %d", len(c.coords), at)
	}
	return mask, near
}

// TestPolygonsOfWindows promises that polygons, drawn by a slow version, cover the pixels of the mask of the same
// window, and that boxes are those around them: in every sampler, flipped, turned and resized, for all ranks.
func TestPolygonsOfWindows(t *testing.T) {
	race.SkipCovered(t)
	const n = 64
	dir, path := t.TempDir(), onlyPolygons(t)
	for i := range 5 {
		writeRaster(t, filepath.Join(dir, fmt.Sprintf("%d.tif", i)), make([]byte, n*n), n, 32630,
			[6]float64{499600 + 100*float64(i), 4, 0, 4600300 - 50*float64(i), 0, -4})
	}
	s := loader.Spec{Source: dir, BatchSize: 4, Shuffle: true, Seed: 3, Augment: "d4", Fields: []loader.Field{
		{Name: "image"},
		{Name: "polygons", Vector: &spec.Vector{Path: path, Column: "value", Kind: "polygons"}},
		{Name: "mask", Vector: &spec.Vector{Path: path, Column: "value", DType: "uint8"}},
		{Name: "boxes", Vector: &spec.Vector{Path: path, Column: "value", Kind: "boxes"}}}}
	for name, sampler := range map[string]loader.Sampler{
		"chip":    {},
		"random":  {Kind: spec.RandomWindow, Height: 24, Width: 24, PerAsset: 3},
		"grid":    {Kind: spec.GridWindow, Height: 24, Width: 24},
		"resized": {Kind: spec.ResizedWindow, Height: 24, Width: 24, PerAsset: 2},
	} {
		s.Sampler = sampler
		e := mustOpen(t, s, loader.Options{})
		shapes, covered, left := 0, 0, 0
		for step := range e.Steps() {
			for rank := range 3 {
				b, err := e.Start(t.Context(), steps.Ticket{First: step * 4, Count: 4, RowStart: rank, RowStride: 3},
					false).Wait(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				size := int(b.Tensor("mask").Shape[1])
				for k := range b.Rows {
					row := cutRowOf(t, b, k)
					got, near := row.paint(t, size)
					want := b.Tensor("mask").Data[k*size*size:][:size*size]
					for i := range got {
						switch {
						case near[i]:
							left++
						case got[i] != want[i]:
							t.Fatalf("%s: pixel %d of row %d of step %d is %d, want %d", name, i, k, step, got[i],
								want[i])
						case got[i] != 0:
							covered++
						}
					}
					shapes += len(row.values)
				}
				b.Release()
			}
		}
		if shapes < 20 || covered < 500 || left > covered {
			t.Errorf("%s: %d shapes, %d pixels, %d left out", name, shapes, covered, left)
		}
	}
}

// TestBoxesOfLinesAndPoints promises that a line has the box of its part in the window, and a point one without a
// size; and that polygons of a file with either are refused.
func TestBoxesOfLinesAndPoints(t *testing.T) {
	dir := t.TempDir()
	image, shapes := filepath.Join(dir, "image.tif"), filepath.Join(dir, "shapes.geojson")
	writeRaster(t, image, make([]byte, 256), 16, 32630, [6]float64{500000, 10, 0, 4600000, 0, -10})
	var all []string
	for i, g := range []string{
		`{"type": "Point", "coordinates": [500025, 4599945]}`,                                   // in
		`{"type": "Point", "coordinates": [499999, 4599945]}`,                                   // out
		`{"type": "LineString", "coordinates": [[499900, 4599950], [500100, 4599850]]}`,         // over the left edge
		`{"type": "LineString", "coordinates": [[500010, 4599990], [500010, 4599980]]}`,         // no width
		`{"type": "LineString", "coordinates": [[499000, 4599000], [499000, 4601000]]}`,         // out
		`{"type": "MultiPoint", "coordinates": [[500015, 4599985], [500155, 4599845], [0, 0]]}`, // two in
		`{"type": "MultiLineString", "coordinates": [[[500020, 4599980], [500030, 4599970]], [[0, 0], [1, 1]]]}`,
		`{"type": "Polygon", "coordinates": [[[500140, 4599990], [500200, 4599990], [500200, 4599900],
			[500140, 4599990]]]}`,
		`null`,
	} {
		all = append(all, fmt.Sprintf(`{"type": "Feature", "properties": {"v": %d}, "geometry": %s}`, i, g))
	}
	write := func(list []string) {
		text := `{"type": "FeatureCollection", "crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32630"}},
			"features": [` + strings.Join(list, ",") + `]}`
		testfile.Write(t, shapes, []byte(text))
	}
	write(all)
	s := loader.Spec{Source: image, BatchSize: 2, Fields: []loader.Field{{Name: "image"},
		{Name: "boxes", Vector: &spec.Vector{Path: shapes, Column: "v", Kind: "boxes"}}}}
	b := first(t, mustOpen(t, s, loader.Options{}))
	boxes, values := b.Tensor("boxes"), b.Tensor("boxes_values")
	want := map[int64][4]float32{0: {2.5, 5.5, 2.5, 5.5}, 2: {0, 10, 10, 15}, 3: {1, 1, 1, 2},
		5: {1.5, 1.5, 15.5, 15.5}, 6: {2, 2, 3, 3}, 7: {14, 1, 16, 4}}
	if from, to := boxes.Row(0); from != 0 || to != 4*len(want) || len(values.Int64()) != len(want) {
		t.Fatal(from, to, values.Int64())
	}
	if from, to := boxes.Row(1); from != to {
		t.Errorf("padding has values %d to %d", from, to)
	}
	for i, v := range values.Int64() {
		got := [4]float32(boxes.Float32()[4*i:])
		for k := range got {
			if math.Abs(float64(got[k]-want[v][k])) > 1e-4 {
				t.Errorf("shape %d: %v, want %v", v, got, want[v])
			}
		}
	}
	s.Fields[1].Vector.Kind = "polygons"
	for _, c := range []struct {
		shape int
		says  string
	}{{0, "has a Point"}, {2, "has a LineString"}, {6, "has a LineString"}} {
		write([]string{all[7], all[c.shape]})
		_, err := mustOpen(t, s, loader.Options{}).Start(t.Context(), steps.Ticket{Count: 1, RowStride: 1},
			false).Wait(t.Context())
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), c.says) ||
			!strings.Contains(err.Error(), "shape 1") {
			t.Errorf("%v, want %q", err, c.says)
		}
	}
}

// TestBoxesOfBadSamples promises that a row without a sample has no boxes, under every policy, and that a substitute
// has its own.
func TestBoxesOfBadSamples(t *testing.T) {
	race.SkipCovered(t)
	dir, path := t.TempDir(), onlyPolygons(t)
	g := [6]float64{499900, 4, 0, 4600100, 0, -4}
	for i := range 3 {
		writeRaster(t, filepath.Join(dir, fmt.Sprintf("%d.tif", i)), make([]byte, 64*64), 64, 32630, g)
	}
	writePlaced(t, filepath.Join(dir, "none.tif"), 0, 0, 0, 1)
	s := loader.Spec{Source: dir, BatchSize: 4, Sampler: loader.Sampler{Kind: spec.RandomWindow, Height: 32, Width: 32},
		Fields: []loader.Field{{Name: "image"}, {Name: "boxes", Vector: &spec.Vector{Path: path, Kind: "boxes"}}}}
	for _, policy := range []string{spec.BadSkip, spec.BadFill, spec.BadReplace} {
		s.BadSamples = policy
		b := first(t, mustOpen(t, s, loader.Options{}))
		boxes := b.Tensor("boxes")
		from, to := boxes.Row(3)
		if (from == to) != (policy != spec.BadReplace) || len(boxes.Data) == 0 {
			t.Errorf("%s: the row has values %d to %d of %d", policy, from, to, len(boxes.Data)/4)
		}
		if n := len(b.Tensor("boxes_values").Data); n != len(boxes.Data)/2 || bytes.Count(boxes.Data, nil) == 0 {
			t.Errorf("%s: %d bytes of values, %d of boxes", policy, n, len(boxes.Data))
		}
	}
}

// TestShapesOverTheMemory promises that boxes that do not fit into the memory of batches end the ticket.
func TestShapesOverTheMemory(t *testing.T) {
	dir := t.TempDir()
	image, shapes := filepath.Join(dir, "image.tif"), filepath.Join(dir, "shapes.geojson")
	writeRaster(t, image, make([]byte, 256), 16, 32630, [6]float64{500000, 10, 0, 4600000, 0, -10})
	one := `{"type": "Feature", "properties": {}, "geometry": {"type": "Point", "coordinates": [500025, 4599945]}}`
	text := `{"type": "FeatureCollection", "crs": {"type": "name", "properties": {"name": "EPSG:32630"}},
		"features": [` + strings.TrimSuffix(strings.Repeat(one+",", 5000), ",") + `]}`
	testfile.Write(t, shapes, []byte(text))
	e := mustOpen(t, loader.Spec{Source: image, BatchSize: 1, Fields: []loader.Field{{Name: "image"},
		{Name: "boxes", Vector: &spec.Vector{Path: shapes, Kind: "boxes"}}}}, loader.Options{MemoryBytes: 1 << 16})
	_, err := e.Start(t.Context(), steps.Ticket{Count: 1, RowStride: 1}, false).Wait(t.Context())
	if fault.KindOf(err) != fault.Limit {
		t.Errorf("%v, want a limit", err)
	}
}

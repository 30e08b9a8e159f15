package vectors

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/shapes"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// triangle is a triangle with the value that it is drawn with.
type triangle struct {
	corners [3]crs.Point
	value   byte
}

// distance is how far a point lies inside of the triangle, in its units: negative outside of it.
func (t *triangle) distance(p crs.Point) float64 {
	least, sign := math.Inf(1), 1.0
	side := func(a, b, p crs.Point) float64 {
		return ((b[0]-a[0])*(p[1]-a[1]) - (b[1]-a[1])*(p[0]-a[0])) / math.Hypot(b[0]-a[0], b[1]-a[1])
	}
	if side(t.corners[0], t.corners[1], t.corners[2]) < 0 {
		sign = -1
	}
	for i := range t.corners {
		least = min(least, sign*side(t.corners[i], t.corners[(i+1)%3], p))
	}
	return least
}

// geoJSON returns the triangles as a file, in longitude and latitude or the coordinates of EPSG:32633.
func geoJSON(list []triangle) string {
	var features []string
	for _, t := range list {
		var ring []string
		for i := range 4 {
			ring = append(ring, fmt.Sprintf("[%v,%v]", t.corners[i%3][0], t.corners[i%3][1]))
		}
		features = append(features, fmt.Sprintf(`{"type":"Feature","properties":{"v":%d},"geometry":{"type":"Polygon",`+
			`"coordinates":[[%s]]}}`, t.value, strings.Join(ring, ",")))
	}
	return `{"type":"FeatureCollection","features":[` + strings.Join(features, ",") + "]}"
}

// opened opens a field of the shapes of a GeoJSON file.
func opened(t *testing.T, text string, v spec.Vector) (*field, error) {
	t.Helper()
	v.Path = filepath.Join(t.TempDir(), "shapes.geojson")
	testfile.Write(t, v.Path, []byte(text))
	field := &field{Traits: shapes.Traits{Vector: v, Name: "label"}}
	err := field.open(t.Context(), &rows.Table{}, 0, resources.Options{}.WithDefaults())
	if err == nil {
		field.To = chunk.Uint8
		t.Cleanup(func() { _ = field.Close() })
	}
	return field, err
}

// TestDrawTriangles: a pixel has the value of the last triangle that holds its centre, in windows that are resized and
// turned, and where the triangles are in another CRS than the image. Pixels whose centre is within a hundredth of a
// pixel of an edge may be either.
func TestDrawTriangles(t *testing.T) {
	const side, metres, west, north = 60, 10.0, 500_000.0, 5_500_000.0
	random := rand.New(rand.NewPCG(3, 9))
	utm, err := crs.Lookup(32633)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"EPSG:32633", "EPSG:4326"} {
		var list []triangle
		for i := range 12 {
			one := triangle{value: byte(i + 1)}
			for c := range one.corners {
				one.corners[c] = crs.Point{west + random.Float64()*side*metres, north - random.Float64()*side*metres}
			}
			if name == "EPSG:4326" {
				utm.Inverse(one.corners[:], one.corners[:])
			}
			list = append(list, one)
		}
		field, err := opened(t, geoJSON(list), spec.Vector{Kind: spec.MaskVector, Column: "v", CRS: name})
		if err != nil {
			t.Fatal(err)
		}
		asset := &catalog.Asset{Index: &chunk.Index{Height: side, Width: side, Bands: 1},
			Place: catalog.NewPlace(32633, &[6]float64{west, metres, 0, north, 0, -metres}, side, side)}
		inside, skipped := 0, 0
		for k := range 64 {
			turn, n := shuffle.Element(k%8), 8+random.IntN(30)
			size := 10 + random.IntN(40)
			win := shuffle.Box{Y: random.IntN(side - size), X: random.IntN(side - size), H: size, W: size}
			p, err := field.Picture(t.Context(), 0, asset, win, n, n, turn)
			if err != nil {
				t.Fatal(err)
			}
			dst := make([]byte, n*n)
			if err := p.Draw(t.Context(), dst); err != nil {
				t.Fatal(err)
			}
			pixel := metres * float64(size) / float64(n)
			for i := range n * n {
				y, x := i/n, i%n
				centre := []crs.Point{{west + metres*float64(win.X) + pixel*(float64(x)+0.5),
					north - metres*float64(win.Y) - pixel*(float64(y)+0.5)}}
				margin := pixel / 100
				if name == "EPSG:4326" {
					utm.Inverse(centre, centre)
					margin /= 110_000 // metres of a degree of latitude; one of longitude is shorter
				}
				want, near := byte(0), false
				for _, one := range list {
					d := one.distance(centre[0])
					if near = near || math.Abs(d) < margin; d > 0 {
						want = one.value
					}
				}
				if near {
					skipped++
					continue
				}
				if want > 0 {
					inside++
				}
				turnedY, turnedX := turn.Apply(y, x, n, n)
				if got := dst[turnedY*n+turnedX]; got != want {
					t.Fatalf("%s: window %+v to %d, %v: pixel %d %d is %d, want %d", name, win, n, turn, y, x, got,
						want)
				}
			}
		}
		if inside < 1000 || skipped > inside {
			t.Errorf("%s: %d pixels in triangles, %d left out", name, inside, skipped)
		}
	}
}

// TestShapesWithoutAPlace: shapes on the ground need to know where an image lies, those in pixels do not.
func TestShapesWithoutAPlace(t *testing.T) {
	text := geoJSON([]triangle{{[3]crs.Point{{0, 0}, {8, 0}, {0, 8}}, 7}})
	asset := &catalog.Asset{Index: &chunk.Index{Height: 8, Width: 8, Bands: 1}}
	field, err := opened(t, text, spec.Vector{Kind: spec.MaskVector, Column: "v"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = field.Picture(t.Context(), 0, asset, shuffle.Box{H: 8, W: 8}, 8, 8, shuffle.Identity)
	if fault.KindOf(err) != fault.Unsupported {
		t.Errorf("an image without a place: %v", err)
	}
	boxed := *asset
	boxed.Place = catalog.NewPlace(4326, &[6]float64{0, 1, 0, 8, 0, -1}, 8, 8)
	boxed.Place.Boxed = true
	if err := field.placed(&boxed); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("an image of which the box is known: %v", err)
	}
}

// TestOpenRefuses: what is said of a file that the field cannot use.
func TestOpenRefuses(t *testing.T) {
	one := []triangle{{[3]crs.Point{{0, 0}, {8, 0}, {0, 8}}, 7}}
	for name, x := range map[string]struct {
		text string
		v    spec.Vector
	}{
		"a CRS that is not known":  {geoJSON(one), spec.Vector{CRS: "EPSG:1"}},
		"a column that is missing": {geoJSON(one), spec.Vector{Column: "w"}},
		"images that may lack":     {geoJSON(one), spec.Vector{Missing: spec.MissingEmpty}},
		"a text that is cut":       {geoJSON(one)[:100], spec.Vector{}},
	} {
		if _, err := opened(t, x.text, x.v); err == nil {
			t.Errorf("%s is opened", name)
		}
	}
	_, err := shapes.Open(t.Context(), spec.Field{Vector: &spec.Vector{Pattern: "{id}.json"}}, &rows.Table{Array: true},
		0, resources.Options{})
	if fault.KindOf(err) != fault.Unsupported {
		t.Errorf("images of an array: %v", err)
	}
}

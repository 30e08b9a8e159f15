package rasterize

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// drawn is a shape, and the pixels that rasterio covers.
type drawn struct {
	Transform     [6]float64
	Height, Width int
	Touched       bool
	Shape         struct {
		Type        string
		Coordinates json.RawMessage
	}
	Spans [][3]int
}

// geometry returns the shape.
func (c *drawn) geometry() (orb.Geometry, error) {
	var err error
	read := func(to any) { err = json.Unmarshal(c.Shape.Coordinates, to) }
	switch c.Shape.Type {
	case "Point":
		var s orb.Point
		read(&s)
		return s, err
	case "LineString":
		var s orb.LineString
		read(&s)
		return s, err
	case "MultiPolygon":
		var s orb.MultiPolygon
		read(&s)
		return s, err
	}
	var s orb.Polygon
	read(&s)
	return s, err
}

func compare(t *testing.T, data []byte, least, spare int) {
	t.Helper()
	var cases []drawn
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) < least {
		t.Fatal(len(cases), err)
	}
	bad := map[string]int{}
	for i, c := range cases {
		shape, err := c.geometry()
		if err != nil {
			t.Fatal(err)
		}
		want, got := make([]byte, c.Height*c.Width), make([]byte, c.Height*c.Width)
		for _, s := range c.Spans {
			for x := s[1]; x < s[2]; x++ {
				want[s[0]*c.Width+x] = 1
			}
		}
		if !burn(got, Grid{c.Transform, c.Height, c.Width, c.Touched}, shape, 1) {
			t.Fatal("the transform has no inverse")
		}
		if string(want) == string(got) {
			continue
		}
		key := c.Shape.Type
		if c.Touched {
			key += " touched"
		}
		if bad[key]++; bad[key] <= 2 {
			t.Logf("shape %d, %s %s, touched %v, grid %v %d by %d:", i, c.Shape.Type, c.Shape.Coordinates, c.Touched,
				c.Transform, c.Height, c.Width)
			for k := range want {
				if want[k] != got[k] {
					t.Logf("row %d, column %d: want %d", k/c.Width, k%c.Width, want[k])
				}
			}
		}
	}
	n := 0
	for _, k := range bad {
		n += k
	}
	if t.Logf("%d shapes, unlike: %v", len(cases), bad); n > spare {
		t.Errorf("%d shapes are unlike rasterio's, more than %d", n, spare)
	}
}

// TestShapes: random shapes cover the pixels that they cover in rasterio.features.rasterize.
func TestShapes(t *testing.T) {
	b := testfile.Read(t, "testdata/shapes.json")
	compare(t, b, 100, 0)
}

// TestLikeRasterio: the same of 10,000 shapes, but for the few in whose masks GDAL writes past the end of a row. GDAL
// 3.10 (rasterio 1.4.4) gives no other mask; rasterio 1.5.2 covers a pixel more in 18 polygons with all_touched, which
// is an open difference.
func TestLikeRasterio(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON names no Python with rasterio")
	}
	count := 10000
	if testing.Short() {
		count = 3000
	}
	b, err := exec.Command(python, "-W", "ignore", "testdata/shapes.py", strconv.Itoa(count)).Output()
	if err != nil {
		t.Fatal(err)
	}
	compare(t, b, count-count/200, count/400)
}

// TestHostile: coordinates that no map has cost no more than the grid is large, and cover what they can.
func TestHostile(t *testing.T) {
	huge := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300, -1e300, 1e12, -1e12, 0, 5, 1e-300}
	for _, touched := range []bool{false, true} {
		g := Grid{Transform: [6]float64{0, 1, 0, 0, 0, 1}, Height: 10, Width: 10, AllTouched: touched}
		for _, a := range huge {
			for _, b := range huge {
				for _, c := range huge {
					l := orb.LineString{{a, b}, {c, a}, {b, c}}
					shapes := []orb.Geometry{l, orb.Polygon{orb.Ring(l)}, orb.Point{a, b}, orb.Ring{}, orb.Polygon{nil}}
					for _, s := range shapes {
						n := 0
						g.Spans(s, func(y, x0, x1 int) {
							if n++; y < 0 || x0 < 0 || y >= 10 || x1 > 10 || x0 >= x1 || n > 1000 {
								t.Fatal(s, y, x0, x1, n)
							}
						})
					}
				}
			}
		}
	}
	for _, tr := range [][6]float64{{}, {0, 1, 1, 0, 1, 1}, {0, math.NaN(), 0, 0, 0, 1}} {
		if burn(make([]byte, 1), Grid{Transform: tr, Height: 1, Width: 1}, orb.Point{}, 1) {
			t.Errorf("transform %v is taken", tr)
		}
	}
}

// BenchmarkPolygons draws 100 polygons of 12 corners into a window of 256 by 256 pixels.
func BenchmarkPolygons(b *testing.B) {
	var shapes []orb.Geometry
	for i := range 100 {
		var r orb.Ring
		for k := range 12 {
			s, c := math.Sincos(float64(k) * math.Pi / 6)
			r = append(r, orb.Point{float64(i%10)*25 + 12 + 15*c, float64(i/10)*25 + 12 + 15*s})
		}
		shapes = append(shapes, orb.Polygon{append(r, r[0])})
	}
	mask := make([]byte, 256*256)
	for _, touched := range []bool{false, true} {
		b.Run(map[bool]string{false: "centres", true: "touched"}[touched], func(b *testing.B) {
			g := Grid{Transform: [6]float64{0, 1, 0, 0, 0, 1}, Height: 256, Width: 256, AllTouched: touched}
			for b.Loop() {
				for _, s := range shapes {
					burn(mask, g, s, 1)
				}
			}
		})
	}
}

// burn writes value into the pixels of dst, row by row, that a geometry covers. It reports false if dst has not
// the size of the grid, or the grid's transform no inverse.
func burn[T any](dst []T, g Grid, shape orb.Geometry, value T) bool {
	if len(dst) != g.Height*g.Width {
		return false
	}
	return g.Spans(shape, func(y, x0, x1 int) {
		row := dst[y*g.Width:][x0:x1]
		for i := range row {
			row[i] = value
		}
	})
}

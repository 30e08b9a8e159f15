package warp

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/crs"
)

// at returns a window around a place on the ground.
func at(t testing.TB, code int, lon, lat, metres float64, h, w int, turn float64) Raster {
	t.Helper()
	c, err := crs.Lookup(code)
	if err != nil {
		t.Fatal(err)
	}
	p := []crs.Point{{lon, lat}}
	c.OwnDatum().Forward(p, p)
	if c.Geographic() {
		metres /= 111_320
	}
	s, co := math.Sincos(turn)
	r := Raster{CRS: c, Height: h, Width: w}
	r.Transform = [6]float64{0, metres * co, metres * s, 0, metres * s, -metres * co}
	corner := r.ground(float64(w)/2, float64(h)/2)
	r.Transform[0], r.Transform[3] = p[0][0]-corner[0], p[0][1]-corner[1]
	return r
}

// exact returns the place of a pixel of the window in the raster, by its definition.
func exact(t *crs.Transform, window, raster *Raster, row, col int) crs.Point {
	p := []crs.Point{window.ground(float64(col)+0.5, float64(row)+0.5)}
	t.Points(p, p)
	a := raster.Transform
	middle := raster.ground(float64(raster.Width)/2, float64(raster.Height)/2)
	x, y := p[0][0]-a[0], p[0][1]-a[3]
	if w := raster.CRS.Width(); w > 0 {
		x = middle[0] + math.Remainder(p[0][0]-middle[0], w) - a[0]
	}
	det := a[1]*a[5] - a[2]*a[4]
	return crs.Point{(x*a[5] - y*a[2]) / det, (y*a[1] - x*a[4]) / det}
}

// pairs are windows and rasters: neighbouring zones, poles, the antimeridian, coarse and fine ones, off the map.
func pairs(t testing.TB) map[string][2]Raster {
	const wide = 1500
	world, err := crs.Lookup(4326)
	if err != nil {
		t.Fatal(err)
	}
	globe := Raster{CRS: world, Height: 1800, Width: 3600, Transform: [6]float64{-180, 0.1, 0, 90, 0, -0.1}}
	return map[string][2]Raster{
		"zones":        {at(t, 32632, 12.1, 50, 10, 200, 256, 0), at(t, 32633, 12.1, 50, 10, wide, wide, 0)},
		"zone edge":    {at(t, 32632, 12.1, 50, 10, 256, 256, 0), at(t, 32633, 12.115, 50.005, 10, 256, 256, 0)},
		"north":        {at(t, 32633, 27, 78, 20, 300, 500, 0), at(t, 32635, 27, 78, 10, wide, wide, 0)},
		"one zone":     {at(t, 32633, 15, 50, 20, 128, 128, 0), at(t, 32633, 15, 50, 10, 400, 400, 0)},
		"turned":       {at(t, 32633, 15, 50, 10, 200, 300, 0.5), at(t, 32633, 15, 50, 10, 600, 600, 0)},
		"degrees":      {at(t, 32633, 15, 50, 10, 256, 256, 0), at(t, 4326, 15, 50, 10, wide, wide, 0)},
		"to degrees":   {at(t, 4326, 15, 70, 30, 300, 300, 0), at(t, 32633, 15, 70, 30, wide, wide, 0)},
		"web":          {at(t, 3857, 2, 48, 20, 300, 512, 0), at(t, 32631, 2, 48, 10, wide, wide, 0)},
		"europe":       {at(t, 3035, 25, 60, 100, 300, 300, 0), at(t, 32635, 25, 60, 60, wide, wide, 0)},
		"polar":        {at(t, 3413, 30, 80, 1000, 256, 256, 0), at(t, 32635, 28, 80, 100, wide, wide, 0)},
		"pole":         {at(t, 3031, 0, -90, 50_000, 166, 158, 0), globe},
		"globe":        {at(t, 6933, 0, 0, 100_000, 150, 350, 0), globe},
		"antimeridian": {at(t, 32601, -179.9, 20, 1000, 256, 256, 0), globe},
		"past 180":     {at(t, 4326, 180, 20, 5000, 100, 100, 0), globe},
		"whole disc":   {at(t, 3035, 10, 52, 150_000, 150, 150, 0), globe},
		"sinusoidal":   {at(t, 54008, -60, 40, 50_000, 200, 200, 0), globe},
		"albers":       {at(t, 32613, -105, 40, 30, 400, 400, 0), at(t, 5070, -105, 40, 30, wide, wide, 0)},
		"zone to far":  {at(t, 4326, 0, 0, 111_000, 180, 360, 0), at(t, 32633, 15, 50, 1000, wide, wide, 0)},
		"one pixel":    {at(t, 32632, 12, 50, 10, 1, 1, 0), at(t, 32633, 12, 50, 10, 10, 10, 0)},
		"one row":      {at(t, 32632, 12, 50, 10, 1, 300, 0), at(t, 32633, 12, 50, 10, 500, 500, 0)},
		"one column":   {at(t, 32632, 12, 50, 10, 300, 1, 0), at(t, 32633, 12, 50, 10, 500, 500, 0)},
	}
}

// TestPlaces: every pixel of a window lies where the exact conversion puts it, to 0.05 pixels, and
// those without a cell lie off the raster.
func TestPlaces(t *testing.T) {
	stride := 1
	if testing.Short() {
		stride = 11
	}
	for name, p := range pairs(t) {
		m, err := NewMapping(p[0], p[1])
		if err != nil {
			t.Fatal(name, err)
		}
		tr, err := crs.NewTransform(p[0].CRS, p[1].CRS)
		if err != nil {
			t.Fatal(err)
		}
		seen := make([]bool, m.height*m.width)
		worst := 0.0
		for i := range m.cells {
			c := &m.cells[i]
			for k := range c.h {
				from, step := c.row(k)
				for j := range c.w {
					row, col := c.y+k, c.x+j
					if seen[row*m.width+col] {
						t.Fatalf("%s: pixel (%d, %d) has two cells", name, row, col)
					}
					if seen[row*m.width+col] = true; (31*row+col)%stride != 0 {
						continue
					}
					x, y := float64(from.x+int64(j)*step.x)/one, float64(from.y+int64(j)*step.y)/one
					want := exact(tr, &p[0], &p[1], row, col)
					if want[0] != want[0] || math.Abs(want[0]) > 1e8 || math.Abs(want[1]) > 1e8 {
						if x >= 0 && y >= 0 && x < float64(p[1].Width) && y < float64(p[1].Height) {
							t.Errorf("%s: pixel (%d, %d) has no place, not (%v, %v)", name, row, col, x, y)
						}
						continue
					}
					worst = max(worst, math.Abs(x-want[0]), math.Abs(y-want[1]))
				}
			}
		}
		missing := 0
		for i, ok := range seen {
			if ok || i%stride != 0 {
				continue
			}
			want := exact(tr, &p[0], &p[1], i/m.width, i%m.width)
			if want[0] >= 0 && want[1] >= 0 && want[0] < float64(p[1].Width) && want[1] < float64(p[1].Height) {
				missing++
			}
		}
		if !(worst <= 0.05) || missing > 0 {
			t.Errorf("%s: places are off by %g pixels, and %d have no cell", name, worst, missing)
		}
		t.Logf("%s: %d cells, %.2g pixels", name, len(m.cells), worst)
	}
}

// TestRefusals: what cannot be mapped is an error, of kind unsupported where a CRS is to blame.
func TestRefusals(t *testing.T) {
	good := at(t, 32633, 15, 50, 10, 10, 10, 0)
	if _, err := NewMapping(good, at(t, 27700, 0, 52, 10, 10, 10, 0)); !errors.Is(err, fault.Unsupported) {
		t.Error(err)
	}
	for i, change := range []func(r *Raster){
		func(r *Raster) { r.Width = 0 },
		func(r *Raster) { r.Height = math.MaxInt },
		func(r *Raster) { r.Transform = [6]float64{} },
		func(r *Raster) { r.Transform[2] = math.NaN() },
		func(r *Raster) { r.Transform[0] = math.Inf(1) },
	} {
		bad := good
		if change(&bad); i != 0 {
			if _, err := NewMapping(good, bad); err == nil {
				t.Errorf("raster %v is taken", bad)
			}
		}
		if _, err := NewMapping(bad, good); err == nil && i != 2 {
			t.Errorf("window %v is taken", bad)
		}
	}
}

// TestRandomPlaces: the same over random windows and rasters of random CRSs.
func TestRandomPlaces(t *testing.T) {
	codes := []int{4326, 3857, 32633, 32733, 32601, 32660, 3035, 6933, 3031, 3413, 5070, 2154, 54008}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		lon, lat := r.Float64()*360-180, math.Asin(r.Float64()*2-1)*180/math.Pi
		pick := func() Raster {
			for {
				code := codes[r.IntN(len(codes))]
				size, turn := math.Exp(r.Float64()*9), r.Float64()*6*float64(r.IntN(2))
				w := at(t, code, lon, lat, size, 1+r.IntN(60), 1+r.IntN(60), turn)
				if w.Transform[0] == w.Transform[0] && w.Transform[3] == w.Transform[3] {
					return w
				}
			}
		}
		window, raster := pick(), pick()
		m, err := NewMapping(window, raster)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := crs.NewTransform(window.CRS, raster.CRS)
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.cells {
			c := &m.cells[i]
			for k := range c.h {
				from, step := c.row(k)
				for j := range c.w {
					x, y := float64(from.x+int64(j)*step.x)/one, float64(from.y+int64(j)*step.y)/one
					want := exact(tr, &window, &raster, c.y+k, c.x+j)
					if off := max(math.Abs(x-want[0]), math.Abs(y-want[1])); want[0] == want[0] && off > 0.05 &&
						math.Abs(want[0]) < 1e8 && math.Abs(want[1]) < 1e8 {
						t.Fatal(fmt.Sprint(window, raster), c.y+k, c.x+j, off)
					}
				}
			}
		}
	}
}

// TestShift: a window lies on the grid of a raster if its pixels are moved by whole pixels, also past the raster's
// edge, and on no other grid.
func TestShift(t *testing.T) {
	raster := at(t, 32631, 3, 45, 10, 100, 200, 0)
	moved := func(y, x float64) Raster {
		w := raster
		p := raster.ground(x, y)
		w.Height, w.Width, w.Transform[0], w.Transform[3] = 33, 20, p[0], p[1]
		return w
	}
	coarse, turned, zone := moved(0, 0), moved(0, 0), moved(0, 0)
	coarse.Transform[1], turned.Transform[5] = 10.001, 10
	zone.CRS = at(t, 32632, 3, 45, 10, 1, 1, 0).CRS
	for name, c := range map[string]struct {
		window Raster
		y, x   int
		ok     bool
	}{
		"inside": {moved(7, 11), 7, 11, true}, "past the corner": {moved(-5, -3), -5, -3, true},
		"past the end": {moved(90, 199), 90, 199, true}, "half a pixel": {moved(7.5, 11), 0, 0, false},
		"a thousandth": {moved(7, 11.001), 0, 0, false}, "coarser": {coarse, 0, 0, false},
		"upside down": {turned, 0, 0, false}, "another zone": {zone, 0, 0, false}, "off": {moved(900, 0), 0, 0, false},
	} {
		m, err := NewMapping(c.window, raster)
		if err != nil {
			t.Fatal(name, err)
		}
		if y, x, ok := m.Shift(); y != c.y || x != c.x || ok != c.ok {
			t.Errorf("%s: %d, %d, %v; want %d, %d, %v", name, y, x, ok, c.y, c.x, c.ok)
		}
	}
}

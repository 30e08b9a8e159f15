package catalog

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/crs"
)

// placed returns an asset of h by w pixels with a transform.
func placed(epsg, h, w int, t [6]float64) *Asset {
	m := Meta{EPSG: epsg, Transform: &t}
	return &Asset{URI: "a.tif", Index: &chunk.Index{Height: h, Width: w}, Place: m.Place(h, w)}
}

// north is the transform of a north-up raster.
func north(x, y, size float64) [6]float64 { return [6]float64{x, size, 0, y, 0, -size} }

func TestSameGround(t *testing.T) {
	const utm, longlat = 32630, 4326
	image := placed(utm, 128, 128, north(500000, 5000000, 10))
	boxed := *image
	box := image.Place.box()
	boxed.Place = &box
	for name, c := range map[string]struct {
		other *Asset
		says  string // "" if it fits
	}{
		"itself":               {image, ""},
		"its box":              {&boxed, ""},
		"coarser":              {placed(utm, 64, 64, north(500000, 5000000, 20)), ""},
		"finer":                {placed(utm, 1280, 1280, north(500000, 5000000, 1)), ""},
		"half a pixel":         {placed(utm, 128, 128, north(500005, 4999995, 10)), ""},
		"half a coarser pixel": {placed(utm, 64, 64, north(500010, 5000010, 20)), ""},
		"without a place":      {&Asset{Index: image.Index}, ""},
		"without a CRS":        {placed(0, 128, 128, north(500000, 5000000, 10)), ""},
		"64 pixels":            {placed(utm, 128, 128, north(500640, 5000000, 10)), "640 m (64 pixels) east"},
		"south and west": {placed(utm, 128, 128, north(499980, 4999970, 10)),
			"20 m (2 pixels) west and 30 m (3 pixels) south"},
		"more than half":     {placed(utm, 128, 128, north(500006, 5000000, 10)), "6 m (0.6 pixels) east"},
		"of a coarser grid":  {placed(utm, 64, 64, north(500040, 5000000, 20)), "40 m (2 pixels) east"},
		"another CRS":        {placed(longlat, 100, 100, north(-3, 45.15, 1.6e-4)), "the CRSs differ"},
		"a larger extent":    {placed(utm, 128, 128, north(500000, 5000000, 20)), "the extents differ"},
		"of another unknown": {placed(0, 128, 128, north(-3, 45.15, 1.6e-4)), "the extents differ"},
		"rows from south": {placed(utm, 128, 128, [6]float64{500000, 10, 0, 4998720, 0, 10}),
			"its rows or columns run another way"},
		"turned by 90 degrees": {placed(utm, 128, 128, [6]float64{500000, 0, 10, 5000000, -10, 0}),
			"its rows or columns run another way"},
		"a box of it": {boxOf(placed(utm, 128, 128, [6]float64{500000, 10, 0, 4998720, 0, 10})), ""},
	} {
		err := SameGround(image, c.other)
		switch {
		case c.says == "" && err != nil, c.says != "" && err == nil:
			t.Errorf("%s: %v", name, err)
		case err != nil && (fault.KindOf(err) != fault.Misplaced || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v, without %q", name, err, c.says)
		}
	}
}

func boxOf(a *Asset) *Asset {
	b := a.Place.box()
	a.Place = &b
	return a
}

// TestShiftsOnAnyGrid: two rasters of one grid that differ by a shift fit if it is at most half a pixel of the coarser
// one along the axes of the grid, however large their pixels, and at whatever scale.
func TestShiftsOnAnyGrid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := math.Exp(rapid.Float64Range(-8, 8).Draw(t, "log of the size of a pixel"))
		factor := rapid.SampledFrom([]int{1, 2, 3, 6}).Draw(t, "factor")
		n := rapid.IntRange(1, 50).Draw(t, "pixels")
		x := rapid.Float64Range(-1e5, 1e5).Draw(t, "x") * size
		y := rapid.Float64Range(-1e5, 1e5).Draw(t, "y") * size
		dx := rapid.Float64Range(-3, 3).Draw(t, "shift in x")
		dy := rapid.Float64Range(-3, 3).Draw(t, "shift in y")
		coarse := size * float64(factor)
		a := placed(0, n*factor, n*factor, north(x, y, size))
		b := placed(0, n, n, north(x+dx*coarse, y+dy*coarse, coarse))
		far := max(math.Abs(dx), math.Abs(dy))
		if math.Abs(far-0.5) < 0.002 {
			t.Skip("at the limit")
		}
		if err := SameGround(a, b); (err == nil) != (far < 0.5) {
			t.Errorf("%d and %d pixels, shifted by %v and %v: %v", n*factor, n, dx, dy, err)
		}
		if err := SameGround(b, a); (err == nil) != (far < 0.5) {
			t.Errorf("the other way: %v", err)
		}
	})
}

// TestTransformOfPlace: a place has the transform that made it.
func TestTransformOfPlace(t *testing.T) {
	for _, want := range [][6]float64{north(500000, 4600000, 10), {-3, 0.25, 0.5, 41, 0.125, -2}} {
		if got := placed(32630, 64, 48, want).Place.Transform(64, 48); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// TestBoxOfPlace: a box goes from the least to the largest coordinates of the corners, with north up.
func TestBoxOfPlace(t *testing.T) {
	for _, c := range []struct{ transform, want [6]float64 }{
		{north(500, 4600, 10), north(500, 4600, 10)},
		{[6]float64{500, 10, 0, 4600, 0, 10}, north(500, 4640, 10)},
		{[6]float64{500, 3, 4, 4600, 4, -3}, [6]float64{500, 7, 0, 4616, 0, -7}},
		{[6]float64{500, -10, 0, 4600, 0, -10}, north(460, 4600, 10)},
		{[6]float64{500, -3, -4, 4600, -4, 3}, north(472, 4612, 7)},
	} {
		box := placed(32630, 4, 4, c.transform).Place.box()
		if got := box.Transform(4, 4); got != c.want || !box.Boxed {
			t.Errorf("%v: %v, want %v", c.transform, got, c.want)
		}
	}
}

// TestPartInMemory: a part of a file in memory has the bytes of the file that it holds, and no others.
func TestPartInMemory(t *testing.T) {
	const file, off, n = "0123456789", 3, 4
	part := &memoryReader{bytes: []byte(file[off : off+n]), off: off, size: int64(len(file))}
	for from := range len(file) {
		for size := range len(file) - from + 1 {
			got, held := make([]byte, size), from >= off && from+size <= off+n
			err := part.ReadAt(t.Context(), got, int64(from))
			if held != (err == nil) || held && string(got) != file[from:][:size] {
				t.Errorf("%d bytes at %d: %q, %v", size, from, got, err)
			}
		}
	}
}

// TestUnplaced: the error says what an asset lacks, and how to give it a place.
func TestUnplaced(t *testing.T) {
	square := [6]float64{500, 10, 0, 4600, 0, -10}
	for says, a := range map[string]*Asset{
		"":                     placed(32630, 4, 4, square),
		"has 1 ground control": {GCPs: 1},
		"does not say":         {},
		"not name its CRS":     placed(0, 4, 4, square),
		`"Mine", is not`:       {Place: placed(0, 4, 4, square).Place, CRSName: "Mine"},
		`"Lambert", is not`:    {Place: placed(0, 4, 4, square).Place, CRSName: `PROJCS["Lambert",GEOGCS["x"]]`},
	} {
		err := a.Unplaced("the sampler needs")
		if (err != nil) != (says != "") || err != nil && (!strings.Contains(err.Error(), says) ||
			!strings.Contains(err.Error(), "the sampler needs") || fault.KindOf(err) != fault.Unsupported) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// TestPlaceText: a place is told by the name of its CRS and its box, a shift in the CRS's units.
func TestPlaceText(t *testing.T) {
	at := placed(32630, 4, 2, [6]float64{500, 10, 0, 4600, 0, -10}).Place
	const box = " (500, 4560, 520, 4600)"
	for want, p := range map[string]*Place{"EPSG:32630" + box: at, "an unknown CRS" + box: {Corners: at.Corners},
		"a CRS of its own, +proj=x," + box: {CRS: "+proj=x", Corners: at.Corners}} {
		if got := p.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for code, want := range map[int]string{4326: "degrees", 32630: "m", 0: "units"} {
		if got := unitOf(code); got != want {
			t.Errorf("the unit of %d is %s, want %s", code, got, want)
		}
	}
	for _, c := range []struct {
		off, pixel crs.Point
		want       string
	}{
		{crs.Point{0.5, -30}, crs.Point{0.1, 10}, "0.5 m (5 pixels) east and 30 m (3 pixels) south"},
		{crs.Point{0.04, 0.05}, crs.Point{10, 10}, "0.05 m (0.005 pixels) north"},
		{crs.Point{1, -7}, crs.Point{0, 10}, "7 m (0.7 pixels) south"},
	} {
		if got := shift(32630, c.off, c.pixel); got != c.want {
			t.Errorf("%v is a shift by %s, want %s", c.off, got, c.want)
		}
	}
}

// TestSameCRS: codes are compared with codes, parameters with parameters, and a code with parameters by where both have
// the raster.
func TestSameCRS(t *testing.T) {
	const utm = " k_0=0.9996 x_0=500000 base=4326"
	const zone30, zone31 = "tmerc lon_0=-3" + utm, "tmerc lon_0=3" + utm
	at := func(code int, parameters string) *Place {
		p := placed(code, 4, 4, north(500000, 4600000, 10)).Place
		p.CRS = parameters
		return p
	}
	for _, c := range []struct {
		a, b *Place
		want bool
	}{
		{at(32630, ""), at(32630, ""), true}, {at(32630, ""), at(32631, ""), false}, {at(32630, ""), at(0, ""), true},
		{at(0, ""), at(0, ""), true}, {at(0, zone30), at(0, ""), true}, {at(0, zone30), at(0, zone30), true},
		{at(0, zone30), at(0, zone31), false}, {at(32630, ""), at(0, zone30), true},
		{at(32630, ""), at(0, zone31), false}, {at(1, ""), at(0, zone31), true}, // no such code
	} {
		if c.a.SameCRS(c.b) != c.want || c.b.SameCRS(c.a) != c.want {
			t.Errorf("%v and %v: want %v", c.a, c.b, c.want)
		}
	}
	// Only where the raster with the code lies, because numbers of the other CRS may say anything.
	far := placed(0, 4, 4, north(9e9, 9e9, 1)).Place
	if far.CRS = zone31; far.SameCRS(at(32630, "")) || at(32630, "").SameCRS(far) {
		t.Error("parameters of another zone are the same far away")
	}
}

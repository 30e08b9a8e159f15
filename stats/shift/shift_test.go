package shift_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/stats/shift"
)

// scene is the scene of the demo: six bands of 640 by 640 pixels.
type scene struct{ data []byte }

const side = 640

func coast(t *testing.T) *scene {
	t.Helper()
	r, err := raster.Read(t.Context(), []string{"../../testdata/demo/coast.tif"}, raster.ReadOptions{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	return &scene{r.Data}
}

func (s *scene) at(b, y, x int) float32 {
	return float32(binary.LittleEndian.Uint16(s.data[2*((b*side+y)*side+x):]))
}

// cut returns h by w pixels of some bands.
func (s *scene) cut(y, x, h, w int, bands ...int) *shift.Raster {
	r := &shift.Raster{Height: h, Width: w}
	for _, b := range bands {
		band := make([]float32, 0, h*w)
		for i := range h * w {
			band = append(band, s.at(b, y+i/w, x+i%w))
		}
		r.Bands = append(r.Bands, band)
	}
	return r
}

// classes returns the pixels of a cut as classes: water, vegetation or land.
func (s *scene) classes(y, x, h, w int) *shift.Raster {
	r := s.cut(y, x, h, w, 0)
	for i := range r.Bands[0] {
		red, nir, swir := s.at(0, y+i/w, x+i%w), s.at(3, y+i/w, x+i%w), s.at(4, y+i/w, x+i%w)
		switch {
		case red > swir:
			r.Bands[0][i] = 1
		case (nir-red)/(nir+red) > 0.4:
			r.Bands[0][i] = 2
		default:
			r.Bands[0][i] = 0
		}
	}
	r.Classes = true
	return r
}

// TestShiftsOfRealImagery: shifts of up to 100 pixels of a 256 by 192 window are found to within a pixel: of a mask,
// of another band with gaps, and of the same bands with noise and other units. None is found where there is none.
func TestShiftsOfRealImagery(t *testing.T) {
	s := coast(t)
	var e shift.Estimator
	rng := rand.New(rand.NewPCG(1, 2))
	const h, w = 256, 192
	shifts := [][2]int{{100, -100}, {0, 0}, {-100, 64}, {3, -1}, {-64, 0}, {0, 2}, {37, 90}}
	if testing.Short() {
		shifts = shifts[:1]
	}
	for _, by := range shifts {
		y, x := 150+rng.IntN(100), 150+rng.IntN(100)
		first := s.cut(y, x, h, w, 0, 3, 4)
		band := s.cut(y-by[0], x-by[1], h, w, 5)
		for range 20 {
			band.Bands[0][rng.IntN(h*w)] = float32(math.NaN())
		}
		noisy := s.cut(y-by[0], x-by[1], h, w, 0, 3)
		for _, b := range noisy.Bands {
			for i := range b {
				b[i] = 1 - b[i]/1e4 + float32(rng.NormFloat64())*0.002
			}
		}
		for name, other := range map[string]*shift.Raster{"mask": s.classes(y-by[0], x-by[1], h, w), "band": band,
			"noisy": noisy} {
			got := e.Estimate(first, other)
			if math.Abs(got.Y-float64(by[0])) > 1 || math.Abs(got.X-float64(by[1])) > 1 || got.Confidence < shift.Sure {
				t.Errorf("%s by %v: %+v", name, by, got)
			}
		}
	}
}

// TestNoConfidence: rasters without edges, of other ground, and of other sizes have no shift that is to be trusted.
func TestNoConfidence(t *testing.T) {
	s := coast(t)
	var e shift.Estimator
	flat := &shift.Raster{Height: 128, Width: 128, Bands: [][]float32{make([]float32, 128*128)}}
	none := &shift.Raster{Height: 128, Width: 128, Bands: [][]float32{make([]float32, 128*128)}}
	huge := s.cut(0, 0, 128, 128, 0)
	for i := range none.Bands[0] {
		none.Bands[0][i] = float32(math.NaN())
		huge.Bands[0][i] *= 1e36
	}
	image := s.cut(0, 0, 128, 128, 0, 3)
	for name, other := range map[string]*shift.Raster{"flat": flat, "none": none,
		"elsewhere": s.classes(400, 450, 128, 128), "size": s.cut(0, 0, 128, 64, 0),
		"no bands": {Height: 128, Width: 128},
	} {
		for _, pair := range [][2]*shift.Raster{{image, other}, {other, image}} {
			if got := e.Estimate(pair[0], pair[1]); !(got.Confidence < shift.Sure) {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
	if got := e.Estimate(s.cut(0, 0, 20, 300, 0), s.cut(0, 0, 20, 300, 0)); got != (shift.Shift{}) {
		t.Errorf("20 rows: %+v", got)
	}
	if got := e.Estimate(image, huge); math.IsNaN(got.Y) || math.IsNaN(got.Confidence) {
		t.Errorf("of 1e39: %+v", got)
	}
}

func BenchmarkEstimate(b *testing.B) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{256, 512} {
		band := make([]float32, n*n)
		for i := range band {
			band[i] = float32(rng.NormFloat64())
		}
		r := &shift.Raster{Height: n, Width: n, Bands: [][]float32{band, band, band, band}}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			var e shift.Estimator
			for b.Loop() {
				e.Estimate(r, r)
			}
		})
	}
}

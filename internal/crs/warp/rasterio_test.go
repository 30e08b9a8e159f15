package warp

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/internal/cputime"
	"github.com/chaski-eo/chaski/internal/crs"
)

// warped is a window that rasterio made.
type warped struct {
	Name            string
	Window, Raster  grid
	Kernel          Kernel
	Nodata          *float64
	Out             [][]float32
	Files           [2]string
	Seconds, Native float64
}

// grid is [EPSG code, transform, height, width].
type grid struct{ Raster }

func (g *grid) UnmarshalJSON(b []byte) error {
	var code int
	err := json.Unmarshal(b, &[]any{&code, &g.Transform, &g.Height, &g.Width})
	if err == nil {
		g.CRS, err = crs.Lookup(code)
	}
	return err
}

// scene returns the pixels of testdata/warps.py.
func scene(h, w int) []uint16 {
	abs := func(v int) int { return max(v, -v) }
	mod := func(v, n int) int { return (v%n + n) % n }
	pix := make([]uint16, h*w)
	for i := range pix {
		y, x := i/w, i%w
		pix[i] = uint16(abs(mod(3*y+2*x, 200)-100)*10 + abs(mod(5*x-y, 600)-300)*4 + 1)
	}
	return pix
}

// difference compares a window with rasterio's, whose missing pixels are -1. It returns how many
// pixels only one has, and over the others the mean and the largest difference.
func difference(out []float32, valid []byte, want []float32) (alone int, mean, most float64) {
	n := 0.0
	for i, v := range want {
		if ok := v != -1; ok != (valid[i] == 1) {
			alone++
		} else if ok {
			d := math.Abs(float64(out[i]) - float64(v))
			mean, most, n = mean+d, max(most, d), n+1
		}
	}
	return alone, mean / max(n, 1), most
}

// TestWarps: windows are those of rasterio with exact places: the same pixels by nearest, and values
// that differ by what the rounding of places and weights explains by the others.
func TestWarps(t *testing.T) {
	b, err := os.ReadFile("testdata/warps.json")
	var cases []warped
	if err == nil {
		err = json.Unmarshal(b, &cases)
	}
	if err != nil || len(cases) < 20 {
		t.Fatal(len(cases), err)
	}
	for _, c := range cases {
		m, err := NewMapping(c.Window.Raster, c.Raster.Raster)
		if err != nil {
			t.Fatal(err)
		}
		src := Plane[uint16]{Box: m.raster, Pix: scene(c.Raster.Height, c.Raster.Width)}
		if c.Nodata != nil {
			for y := 5; y < 9; y++ {
				for x := 3; x < min(30, c.Raster.Width); x++ {
					src.Pix[y*c.Raster.Width+x] = 0
				}
			}
		}
		var want []float32
		for _, row := range c.Out {
			want = append(want, row...)
		}
		out, valid := make([]float32, len(want)), make([]byte, len(want))
		if err := Sample(m, c.Kernel, src, out, valid); err != nil {
			t.Fatal(err)
		}
		alone, mean, most := difference(out, valid, want)
		t.Logf("EPSG:%d to %d, kernel %d: %d alone, mean %.3g, most %.3g", c.Raster.CRS.Code(), c.Window.CRS.Code(),
			c.Kernel, alone, mean, most)
		// Neighbouring pixels of the scene differ by up to 74, and places that are interpolated may be
		// 0.05 pixels off.
		bound := []float64{0, 0.02, 0.2}[c.Kernel] // rasterio's are rounded to 0.01
		if len(m.cells) > 1 {
			bound = []float64{40, 4, 4}[c.Kernel]
		}
		if alone > 0 || mean > bound/4 || most > bound {
			t.Errorf("%d pixels alone, mean difference %g, most %g", alone, mean, most)
		}
	}
}

// TestLikeRasterio: larger windows of scenery, and of the images in CHASKI_CORPUS, differ from
// rasterio's by at most 0.5 % of the range in the mean. With these images, it also logs the time of both on one core.
func TestLikeRasterio(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON names no Python with rasterio")
	}
	folder := t.TempDir()
	var tiffs []string
	rounds := 1
	if corpus := os.Getenv("CHASKI_CORPUS"); corpus != "" {
		rounds = 3
		for _, name := range []string{"tog-pan-1b", "tog-s2-6b-512", "tog-naip-4b"} {
			tiffs = append(tiffs, filepath.Join(corpus, "raster", "tog", name+".tif"))
		}
	}
	cmd := exec.Command(python, append([]string{"testdata/warps.py", folder}, tiffs...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	b, err := os.ReadFile(filepath.Join(folder, "cases.json"))
	var cases []warped
	if err == nil {
		err = json.Unmarshal(b, &cases)
	}
	if err != nil || len(cases) == 0 {
		t.Fatal(len(cases), err)
	}
	for _, c := range cases {
		src := Plane[uint16]{Box: Box{0, 0, c.Raster.Height, c.Raster.Width}}
		src.Pix = make([]uint16, c.Raster.Height*c.Raster.Width)
		floats := Plane[float32]{Box: src.Box, Pix: make([]float32, len(src.Pix))}
		want := make([]float32, c.Window.Height*c.Window.Width)
		load(t, filepath.Join(folder, c.Files[0]), src.Pix)
		load(t, filepath.Join(folder, c.Files[1]), want)
		top := 0.0
		for i, v := range src.Pix {
			floats.Pix[i] = float32(v)
			top = max(top, float64(v))
		}
		out, valid := make([]float32, len(want)), make([]byte, len(want))
		own := timed(t, rounds, func() error { return resample(&c, floats, out, valid) })
		native := timed(t, rounds, func() error { return resample(&c, src, out, valid) })
		alone, mean, most := difference(out, valid, want)
		t.Logf("%-14s EPSG:%d to %d, %d², kernel %d: mean %.4f %%, most %.2f %%, %d alone", c.Name, c.Raster.CRS.Code(),
			c.Window.CRS.Code(), c.Window.Width, c.Kernel, 100*mean/top, 100*most/top, alone)
		if rounds > 1 {
			t.Logf("%.2f ms, rasterio %.2f (%.1f); uint16 %.2f, %.2f (%.1f)", own*1e3, c.Seconds*1e3, c.Seconds/own,
				native*1e3, c.Native*1e3, c.Native/native)
		}
		if mean/top > 0.005 || alone > len(want)/500 {
			t.Errorf("mean difference %g of %g, %d pixels alone", mean, top, alone)
		}
	}
}

func resample[T Number](c *warped, src Plane[T], out []float32, valid []byte) error {
	m, err := NewMapping(c.Window.Raster, c.Raster.Raster)
	if err != nil {
		return err
	}
	return Sample(m, c.Kernel, src, out, valid)
}

// timed returns the seconds of processor time of the best of some calls.
func timed(t *testing.T, calls int, do func() error) float64 {
	best := math.Inf(1)
	for range calls {
		begin := cputime.Used()
		if err := do(); err != nil {
			t.Fatal(err)
		}
		best = min(best, (cputime.Used() - begin).Seconds())
	}
	return best
}

func load(t *testing.T, path string, to any) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := binary.Read(f, binary.LittleEndian, to); err != nil {
		t.Fatal(err)
	}
}

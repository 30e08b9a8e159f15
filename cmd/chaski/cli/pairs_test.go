package cli

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/tiff"
)

// coastCuts writes images and masks cut out of the scene of the demo.
type coastCuts struct {
	t    *testing.T
	dir  string
	data []byte
}

func newCoastCuts(t *testing.T) *coastCuts {
	t.Helper()
	scene, err := raster.Read(t.Context(), []string{testdata(t, "demo", "coast.tif")}, raster.ReadOptions{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	return &coastCuts{t, t.TempDir(), scene.Data}
}

// value returns a pixel of the cut.
func (c *coastCuts) value(b, y, x int) uint16 {
	const side, y0, x0 = 640, 200, 150
	return binary.LittleEndian.Uint16(c.data[2*((b*side+y0+y)*side+x0+x):])
}

func (c *coastCuts) image(b, y, x int) byte { return byte(c.value(b, y, x) / 24) }

// mask returns the class of each pixel, which is that of the demo: water, vegetation or land.
func (c *coastCuts) mask(dy, dx int) func(b, y, x int) byte {
	return func(_, y, x int) byte {
		y, x = y+dy, x+dx
		red, nir, swir := float64(c.value(0, y, x)), float64(c.value(3, y, x)), float64(c.value(4, y, x))
		switch {
		case red > swir:
			return 1
		case (nir-red)/(nir+red) > 0.4:
			return 2
		}
		return 0
	}
}

// write writes a raster of n by n pixels.
func (c *coastCuts) write(name string, bands, n int, o tiff.TOGOptions, pixel func(b, y, x int) byte) {
	o.Shape, o.DType, o.Tile = [3]int{bands, n, n}, chunk.Uint8, 64
	pixels := make([]byte, 0, bands*n*n)
	for i := range bands * n * n {
		pixels = append(pixels, pixel(i/(n*n), i/n%n, i%n))
	}
	var b bytes.Buffer
	if err := tiff.WriteTOG(&b, pixels, o); err != nil {
		c.t.Fatal(err)
	}
	path := filepath.Join(c.dir, name+".tif")
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		c.t.Fatal(err)
	}
}

// coastPairs cuts images and masks out of the scene of the demo, and returns their folder. What is wrong with each pair
// is its name.
func coastPairs(t *testing.T) string {
	t.Helper()
	c := newCoastCuts(t)
	geo := func(epsg int, x, y, size float64) (o tiff.TOGOptions) {
		o.Geo = tiff.Geo{EPSG: epsg, Transform: [6]float64{x, size, 0, y, 0, -size}, HasTransform: true}
		return o
	}
	here, no := geo(32630, 5e5, 4.6e6, 10), tiff.TOGOptions{}
	for name, o := range map[string]tiff.TOGOptions{"aligned": here, "east640m": here, "lonlat": here, "noplace": no,
		"offset": no, "flat": no} {
		c.write("images/"+name, 3, 128, o, c.image)
	}
	c.write("masks/aligned", 1, 128, here, c.mask(0, 0))
	c.write("masks/east640m", 1, 128, geo(32630, 5e5+640, 4.6e6, 10), c.mask(0, 64))
	c.write("masks/lonlat", 1, 100, geo(4326, -3, 41.55, 1.3e-4), c.mask(0, 0))
	c.write("masks/noplace", 1, 128, no, c.mask(0, 0))
	c.write("masks/offset", 1, 128, no, c.mask(12, -30))
	c.write("masks/flat", 1, 128, no, func(_, _, _ int) byte { return 7 })
	return c.dir
}

// TestVerifyPairs: masks at another place are named with their shift, as headers and pixels say it, masks without a
// place by the shift of what they show. Aligned pairs are not, nor those whose pixels do not tell.
func TestVerifyPairs(t *testing.T) {
	dir := coastPairs(t)
	fields := []string{"--field", "image=images/{id}.tif", "--field", "mask=masks/{id}.tif"}
	pictures := filepath.Join(t.TempDir(), "new", "pictures")
	args := append([]string{"verify", "--pairs", "--json", "--pictures", pictures}, fields...)
	r := chaski(t.Context(), append(args, dir)...)
	var got survey.PairReport
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || r.code != 1 ||
		!strings.HasSuffix(r.err, ": misplaced\n") {
		t.Fatalf("exit %d: %s%s", r.code, r.out, r.err)
	}
	if got.Samples != 6 || got.Pairs != 6 || got.Misplaced != 2 || got.Unplaced != 3 || got.Shifted != 2 ||
		got.Aligned != 2 || got.Unsure != 2 || got.Unreadable != 0 || len(got.Worst) != 3 {
		t.Fatalf("%s", r.out)
	}
	near := func(s *survey.PixelShift, y, x, by float64) bool {
		return s != nil && math.Abs(s.Y-y) <= by && math.Abs(s.X-x) <= by
	}
	for i, want := range []struct {
		name, verdict, says string
		y, x                float64
		place, pixels       bool
	}{
		{"lonlat", survey.Misplaced, "the CRSs differ", 0, 0, false, false},
		{"east640m", survey.Misplaced, "640 m (64 pixels) east", 0, -64, true, true},
		{"offset", survey.Shifted, "pixels", -12, 30, false, true},
	} {
		p := got.Worst[i]
		if filepath.Base(p.OtherFile) != want.name+".tif" || p.Verdict != want.verdict ||
			!strings.Contains(p.Error, want.says) {
			t.Errorf("%+v, want %+v", p, want)
		}
		if want.place != near(p.ByPlace, want.y, want.x, 1e-6) || want.pixels != near(p.ByPixels, want.y, want.x, 0.5) {
			t.Errorf("%s: by place %v, by pixels %v, want %v, %v", want.name, p.ByPlace, p.ByPixels, want.y, want.x)
		}
		b, err := os.ReadFile(p.Picture)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := png.Decode(bytes.NewReader(b)); err != nil {
			t.Error(err)
		}
	}
	r = chaski(t.Context(), append(append([]string{"verify", "--pairs"}, fields...), dir)...)
	for _, line := range []string{"3 pairs have no place", "by place:  64.0 pixels left",
		"masks/offset.tif: pixels: what it shows lies", "confidence 0."} {
		if !strings.Contains(r.out, line) {
			t.Errorf("%q is missing in\n%s", line, r.out)
		}
	}
	if r.code != 1 || strings.Contains(r.out, "flat") || strings.Contains(r.out, "aligned.tif") {
		t.Errorf("exit %d:\n%s", r.code, r.out)
	}
}

// TestVerifyPairsNodata: stripes of nodata, which both rasters have at the same place, hide no shift of what lies
// between them, and are no edges of a mask. A mask whose only class lies in nodata has its edges there.
func TestVerifyPairsNodata(t *testing.T) {
	c := newCoastCuts(t)
	striped := func(nodata byte, pixel func(b, y, x int) byte) func(b, y, x int) byte {
		return func(b, y, x int) byte {
			if (x+y/4)%16 < 4 {
				return nodata
			}
			return pixel(b, y, x)
		}
	}
	water := func(_, y, x int) byte {
		if c.mask(-9, 5)(0, y, x) == 1 {
			return 1
		}
		return 0
	}
	for name, mask := range map[string]func(b, y, x int) byte{"aligned": striped(9, c.mask(0, 0)),
		"shifted": striped(9, c.mask(3, -4)), "water": water} {
		image, nodata := striped(0, c.image), "9"
		if name == "water" {
			image, nodata = c.image, "0"
		}
		c.write("images/"+name, 3, 192, tiff.TOGOptions{NoData: "0"}, image)
		c.write("masks/"+name, 1, 192, tiff.TOGOptions{NoData: nodata}, mask)
	}
	r := chaski(t.Context(), "verify", "--pairs", "--json", "--field", "image=images/{id}.tif", "--field",
		"mask=masks/{id}.tif", c.dir)
	var got survey.PairReport
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || got.Aligned != 1 || got.Shifted != 2 ||
		len(got.Worst) != 2 {
		t.Fatalf("exit %d: %s%s", r.code, r.out, r.err)
	}
	for i, want := range [][2]float64{{9, -5}, {-3, 4}} {
		s := got.Worst[i].ByPixels
		if s == nil || math.Abs(s.Y-want[0]) > 1 || math.Abs(s.X-want[1]) > 1 || !(s.Radius < 1) {
			t.Errorf("%+v, want %v", s, want)
		}
	}
}

// TestReportOfPairs: a report names the samples whose rasters lie at different places.
func TestReportOfPairs(t *testing.T) {
	r := chaski(t.Context(), "view", "--report", "--batch", "1", "--field", "image=images/{id}.tif", "--field",
		"mask=masks/{id}.tif", "-o", "-", coastPairs(t))
	for _, text := range []string{"2 rasters lie at another place", "640 m (64 pixels) east", "the CRSs differ",
		"paired by their sizes"} {
		if r.code != 0 || strings.Count(r.out, text) != 1 {
			t.Errorf("exit %d: %q is there %d times: %s", r.code, text, strings.Count(r.out, text), r.err)
		}
	}
}

// TestVerifyPairsUsage: flags of pairs need --pairs, which takes one dataset of several rasters a sample.
func TestVerifyPairsUsage(t *testing.T) {
	workplace(t)
	for _, args := range [][]string{
		{"verify", "--worst", "3", "chip.tif"},
		{"verify", "--pairs", "chip.tif", "chip.tif"},
		{"verify", "--pairs", "chips"},
		{"verify", "--pairs", "--max-shift", "0", "pairs"},
		{"verify", "--pairs", "--max-faults", "3", "pairs"},
	} {
		if r := chaski(t.Context(), args...); r.code != 2 || r.out != "" {
			t.Errorf("%q: exit %d: %s%s", args, r.code, r.out, r.err)
		}
	}
	plain, asked := chaski(t.Context(), "verify", "chip.tif"), chaski(t.Context(), "verify", "--json", "chip.tif")
	if asked.code != 0 || asked.out != plain.out {
		t.Errorf("verify --json: exit %d and %q, want what it prints without, %q", asked.code, asked.out, plain.out)
	}
}

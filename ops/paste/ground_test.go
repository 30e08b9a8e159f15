package paste

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

var utm30 = GroundGrid{EPSG: 32630, West: 5e5, North: 4e6, Resolution: 10}

// placed appends a window of some values at a row and a column.
func placed(b []byte, y, x int32, values ...float32) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(y))
	b = binary.LittleEndian.AppendUint32(b, uint32(x))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func nowhere(write func(io.Writer) error) error { return write(io.Discard) }

// pixelsOf returns the pixels of the raster that Ground writes.
func pixelsOf(t *testing.T, in []byte, o Options) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.tif")
	var b bytes.Buffer
	to := func(write func(io.Writer) error) error { return write(&b) }
	err := Ground(bytes.NewReader(in), "windows", utm30, o, 1, to)
	if err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, path, b.Bytes())
	a, err := raster.Read(context.Background(), []string{path}, raster.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return a.Data
}

// TestGround: windows at any place, also far beside the raster, add to the pixels that they cover, computed in float64.
func TestGround(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	o := options(20, 30, 6, 8, 0, 0, false)
	var in []byte
	sums, weights := make([]float64, 2*20*30), make([]float64, 20*30)
	for j := range 40 {
		y0, x0 := int32(r.IntN(30)-6), int32(r.IntN(40)-8)
		switch j {
		case 7:
			y0, x0 = math.MinInt32, math.MinInt32
		case 8:
			y0, x0 = math.MaxInt32, 3
		case 9:
			y0, x0 = 3, math.MaxInt32
		}
		values := make([]float32, 2*6*8)
		for i := range values {
			values[i] = r.Float32()
			k, y, x := i/48, i/8%6, i%8
			row, column := int(y0)+y, int(x0)+x
			if row < 0 || row >= 20 || column < 0 || column >= 30 {
				continue
			}
			w := float64(min(y+1, 6-y) * min(x+1, 8-x))
			sums[(k*20+row)*30+column] += w * float64(values[i])
			if k == 0 {
				weights[row*30+column] += w
			}
		}
		in = placed(in, y0, x0, values...)
	}
	got := pixelsOf(t, in, o)
	o.Argmax = true
	classes := pixelsOf(t, in, o)
	empty := 0
	for i, w := range weights {
		if w == 0 {
			empty++
			if v := at(got, i); v == v || classes[i] != 255 {
				t.Fatalf("pixel %d without a window is %v, class %d", i, v, classes[i])
			}
			continue
		}
		for k := range 2 {
			if v, want := at(got, k*600+i), sums[k*600+i]/w; !(math.Abs(v-want) < 1e-5) {
				t.Fatalf("band %d of pixel %d is %v, want %v", k, i, v, want)
			}
		}
		if want := sums[600+i] > sums[i]; (classes[i] == 1) != want && math.Abs(sums[600+i]-sums[i]) > 1e-4 {
			t.Fatalf("pixel %d: class %d of %v and %v", i, classes[i], sums[i], sums[600+i])
		}
	}
	if empty == 0 || empty > 300 {
		t.Errorf("%d pixels without a window", empty)
	}
}

// TestGroundFromTheTop: a window may begin above the one before it as long as its rows are held, and is refused, and
// not lost, behind that.
func TestGroundFromTheTop(t *testing.T) {
	o := options(1200, 4, 2, 4, 0, 0, false)
	o.Bands = 1
	row := func(y int32) []byte { return placed(nil, y, 0, 1, 1, 1, 1, 1, 1, 1, 1) }
	in := bytes.Join([][]byte{row(-1), row(511), row(3), row(1199), row(1024), row(1300), row(-2)}, nil)
	got := pixelsOf(t, in, o)
	for y := range 1200 {
		_, found := map[int]bool{0: true, 3: true, 4: true, 511: true, 512: true, 1024: true, 1025: true, 1199: true}[y]
		if v := at(got, 4*y); found != (v == 1) {
			t.Errorf("row %d is %v", y, v)
		}
	}
	in = append(row(513), row(511)...)
	if err := Ground(bytes.NewReader(in), "windows", utm30, o, 1, nowhere); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("a window above the rows that are held: %v", err)
	}
}

func TestGroundRefuses(t *testing.T) {
	o := options(20, 20, 4, 4, 0, 0, false)
	many := o
	many.Bands, many.Argmax, many.MaxBytes = 256, true, 1<<30
	large := o
	large.Height, large.Width = 1<<20, 1<<20
	for name, c := range map[string]struct {
		g    GroundGrid
		o    Options
		kind fault.Kind
	}{
		"an unknown CRS":    {GroundGrid{9, 0, 0, 10}, o, fault.Unsupported},
		"no resolution":     {GroundGrid{32630, 0, 0, 0}, o, 0},
		"a turned grid":     {GroundGrid{32630, 0, 0, -10}, o, 0},
		"no place":          {GroundGrid{32630, math.NaN(), 0, 10}, o, 0},
		"256 classes":       {utm30, many, 0},
		"a large raster":    {utm30, large, fault.Limit},
		"windows of nought": {utm30, options(20, 20, 0, 4, 0, 0, false), 0},
	} {
		err := Ground(bytes.NewReader(nil), "windows", c.g, c.o, 1, nowhere)
		if err == nil || fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzGround blends any stream of windows of one pixel: it is refused as corrupt if its last window is not whole, and
// is the mean of the windows of each pixel otherwise.
func FuzzGround(f *testing.F) {
	f.Add(placed(placed(nil, 1, 2, 7), 1, 2, 9))
	f.Add(placed(nil, math.MinInt32, math.MaxInt32, float32(math.NaN())))
	f.Add(placed(nil, 0, 0, 1)[:9])
	f.Add(placed(nil, 0, 0, 1)[:8])
	f.Fuzz(func(t *testing.T, in []byte) {
		o := Options{Bands: 1, Height: 3, Width: 4, Blend: Mean, MaxBytes: 1 << 16}
		o.Grid.H, o.Grid.W = 1, 1
		if len(in)%12 != 0 {
			err := Ground(bytes.NewReader(in), "windows", utm30, o, 1, nowhere)
			if fault.KindOf(err) != fault.Corrupt {
				t.Fatal(err)
			}
			return
		}
		var sums, counts [12]float32
		for b := in; len(b) > 0; b = b[12:] {
			y, x := int32(binary.LittleEndian.Uint32(b)), int32(binary.LittleEndian.Uint32(b[4:]))
			if y >= 0 && y < 3 && x >= 0 && x < 4 {
				sums[4*y+x] += math.Float32frombits(binary.LittleEndian.Uint32(b[8:]))
				counts[4*y+x]++
			}
		}
		got := pixelsOf(t, in, o)
		for i := range sums {
			want := sums[i] / counts[i]
			if v := float32(at(got, i)); v != want && (v == v || want == want) {
				t.Fatalf("pixel %d is %v, want %v", i, v, want)
			}
		}
	})
}

// TestGroundWithoutNumbers: a pixel for which a window has NaN in all bands is nodata, and not of class 0; NaN in one
// band leaves the class to the others, and so do values without end.
func TestGroundWithoutNumbers(t *testing.T) {
	nan, low := float32(math.NaN()), float32(math.Inf(-1))
	o := options(1, 4, 1, 4, 0, 0, true)
	o.Argmax = true
	in := placed(nil, 0, 0, nan, nan, low, 2, nan, 1, low, nan)
	if got, want := pixelsOf(t, in, o), []byte{noClass, 1, 0, 0}; !bytes.Equal(got, want) {
		t.Errorf("classes are %v, want %v", got, want)
	}
	over := placed(in, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8) // another window
	if got, want := pixelsOf(t, over, o), []byte{noClass, 1, 0, 0}; !bytes.Equal(got, want) {
		t.Errorf("classes under two windows are %v, want %v", got, want)
	}
}

package pixels

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
)

// plane is one band of a window. Some of its samples are missing.
type plane struct {
	height, width int
	sample        func(y, x int) (value float64, valid bool)
}

// floorOf returns floor(a / b).
func floorOf(a, b int) int {
	q := new(big.Int).Div(big.NewInt(int64(a)), big.NewInt(int64(b))) // Euclidean: floor for b > 0
	return int(q.Int64())
}

// nearest is Nearest of docs/order.md.
func (p *plane) nearest(y, x, h, w int) (float64, bool) {
	return p.sample(floorOf((2*y+1)*p.height, 2*h), floorOf((2*x+1)*p.width, 2*w))
}

// bilinear is Bilinear of docs/order.md.
func (p *plane) bilinear(y, x, h, w int) (float64, bool) {
	near, valid := p.nearest(y, x, h, w)
	if !valid {
		return near, false
	}
	side := func(i, m, n int) (a, b int, weight float32) {
		num := (2*i+1)*m - n
		low := floorOf(num, 2*n)
		return min(max(low, 0), m-1), min(max(low+1, 0), m-1), float32(num-low*2*n) / float32(2*n)
	}
	ay, by, ty := side(y, p.height, h)
	ax, bx, tx := side(x, p.width, w)
	between := func(p, q, t float32) float32 {
		if t == 0 || p == q {
			return p
		}
		difference := q - p
		product := t * difference
		return p + product
	}
	at := func(y, x int) float32 {
		if value, valid := p.sample(y, x); valid {
			return float32(value)
		}
		return float32(near)
	}
	return float64(between(between(at(ay, ax), at(ay, bx), tx), between(at(by, ax), at(by, bx), tx), ty)), true
}

// TestTaps: the middle of sample i of n lies at an exact place among the middles of m samples: between two of them, or
// at the edge, where both are the same sample.
func TestTaps(t *testing.T) {
	for m := 1; m <= 9; m++ {
		for n := 1; n <= 20; n++ {
			for i, tap := range taps(nil, m, n) {
				place := big.NewRat(int64((2*i+1)*m-n), int64(2*n))
				low := floorOf((2*i+1)*m-n, 2*n)
				weight, _ := place.Sub(place, big.NewRat(int64(low), 1)).Float32()
				near := floorOf((2*i+1)*m, 2*n)
				if tap.a != max(low, 0) || tap.b != min(low+1, m-1) || tap.weight != weight || tap.near != near {
					t.Fatalf("sample %d of %d among %d: %+v, want %v behind %d", i, n, m, tap, weight, low)
				}
			}
		}
	}
}

// antialias is Antialias of docs/order.md, over all samples of the window. Sums of small whole numbers are exact in any
// order.
func (p *plane) antialias(y, x, h, w int) (float64, bool) {
	weight := func(i, j, m, n int) float64 {
		return math.Max(0, float64(2*max(m, n))-math.Abs(float64((2*j+1)*n-(2*i+1)*m)))
	}
	sum, there, total := 0.0, 0.0, 0.0
	for row := range p.height {
		for column := range p.width {
			k := weight(y, row, p.height, h) * weight(x, column, p.width, w)
			total += k
			if value, valid := p.sample(row, column); valid {
				sum, there = sum+k*value, there+k
			}
		}
	}
	if 2*there < total {
		return 0, false
	}
	return float64(float32(sum / there)), true
}

// TestResampledAgainstSlow: a window that is resampled, with as many bands at a time as fit into the limit, has the
// values of docs/order.md, sample by sample.
func TestResampledAgainstSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawSteps(t, dtypes.Draw(t, "dtype"), rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "times"))
		x := m.asset.Index
		way := rapid.SampledFrom([]string{"", spec.Nearest, spec.Bilinear, spec.Antialias}).Draw(t, "way")
		f, err := drawField(t, x, way)
		if err != nil { // a float would be rounded to an integer
			if way != spec.Bilinear && way != spec.Antialias || !x.DType.Integer() ||
				fault.KindOf(err) != fault.Unsupported || !strings.HasPrefix(err.Error(), "resample: "+way) {
				t.Fatal(err)
			}
			return
		}
		win := shuffle.Box{
			Y: rapid.IntRange(-3, x.Height-1).Draw(t, "y"), X: rapid.IntRange(-3, x.Width-1).Draw(t, "x"),
		}
		win.H = rapid.IntRange(max(1, 1-win.Y), 14).Draw(t, "h")
		win.W = rapid.IntRange(max(1, 1-win.X), 14).Draw(t, "w")
		f.SetSize(rapid.IntRange(1, 16).Draw(t, "rows"), rapid.IntRange(1, 16).Draw(t, "columns"))
		h, w := f.H, f.W
		turn := shuffle.Element(rapid.IntRange(0, 7).Draw(t, "turn"))
		bands := drawBands(t, f, x)
		s := newTensor(t, x, f, bands, shuffle.Box{H: h, W: w}, turn&^shuffle.Transpose)
		if h == w {
			s.row.Transform = turn
		}
		r := NewReader(resources.Options{Opener: m}.WithDefaults())
		limit := (f.rawSize() + 1) * win.H * win.W * rapid.IntRange(1, 6).Draw(t, "bands at a time")
		if f.smooths { // its rows and weights have a limit of their own
			limit += 1 << 20
		}
		if err := r.Resampled(t.Context(), m.asset, win, s.row, limit); err != nil {
			t.Fatal(err)
		}
		want, there := map[[3]int]float64{}, map[[3]int]bool{}
		for j, b := range bands.Picked {
			p := plane{win.H, win.W, func(y, c int) (float64, bool) {
				value, valid := m.at(b, win.Y+y, win.X+c)
				outside := win.Y+y < 0 || win.X+c < 0 || win.Y+y >= x.Height || win.X+c >= x.Width
				if outside {
					value = 0
				} else if valid {
					value = physical(f, x, b, value)
				}
				return value, valid
			}}
			of := p.nearest
			switch {
			case way == spec.Antialias:
				of = p.antialias
			case way == spec.Bilinear || way == "" && isFloat(f.To):
				of = p.bilinear
			}
			for y := range h {
				for c := range w {
					value, valid := of(y, c, h, w)
					if f.Blends && f.To == chunk.Uint8 { // the cast rounds
						value = math.RoundToEven(value)
					}
					if !valid && f.Final.Base.FillNoData {
						value = filled(f)
					}
					if valid {
						value = normalized(f, j, value)
					}
					ty, tx := turned(s.row.Transform, s.row.Win, y, c)
					want[[3]int{j, ty, tx}], there[[3]int{j, ty, tx}] = value, valid
				}
			}
		}
		s.check(t, func(j, y, x int) (float64, bool) { return want[[3]int{j, y, x}], there[[3]int{j, y, x}] })
		checkMemory(t, r, f, win, limit)
		over := (f.rawSize()+1)*win.H*win.W - 1
		err = r.Resampled(t.Context(), m.asset, win, s.row, over)
		if fault.KindOf(err) != fault.Limit || !strings.Contains(err.Error(), "to resample are over") {
			t.Fatalf("a band over the limit: %v", err)
		}
	})
}

// checkMemory compares the memory that a reader holds after it has resampled a window with what was said before.
func checkMemory(t *rapid.T, r *Reader, f *Raster, win shuffle.Box, limit int) {
	s := &r.Resample
	buffers := int64(cap(s.In) + cap(s.InValid) + cap(s.Out) + cap(s.OutValid) + 4*len(s.picks))
	said := f.ResampledBytes(win, limit)
	whole := said // but for the weights and the rows of antialiasing
	if f.smooths {
		whole -= smootherBytes(win.H, win.W, f.H, f.W)
	}
	if whole != buffers {
		t.Fatalf("%d bytes are held, %d were said", buffers, whole)
	}
	if f.smooths {
		sides := win.H + win.W + f.H + f.W
		smooth := &s.Smooth
		tents := 32*(len(smooth.y.spans)+len(smooth.x.spans)) + 8*(len(smooth.y.weights)+len(smooth.x.weights))
		held := buffers + int64(8*(len(smooth.Rows)+len(smooth.sums))+tents)
		if said < held || said > held+int64(tents+32*sides) {
			t.Fatalf("%d bytes are held, %d were said", held, said)
		}
		need := int64(max(8*len(smooth.Rows), 32*sides))
		enough := smooth.Prepare(win.H, win.W, f.H, f.W, need)
		if err := smooth.Prepare(win.H, win.W, f.H, f.W, need-1); enough != nil || fault.KindOf(err) != fault.Limit {
			t.Fatalf("up to %d bytes: %v, %v", need, enough, err)
		}
	}
	kept := int64(cap(r.Stored)+cap(r.Samples)) + buffers - int64(4*len(s.picks))
	if said := r.HeldBytes() - ReaderBytes; said < kept || said > 4*kept {
		t.Fatalf("%d bytes are kept for the next window, %d were said", kept, said)
	}
}

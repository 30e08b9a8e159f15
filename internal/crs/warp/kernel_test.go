package warp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// image returns pixels of a plane, of which some are missing.
func image(r *rand.Rand, box Box, holes bool) Plane[uint16] {
	p := Plane[uint16]{Box: box, Pix: make([]uint16, (box.Y1-box.Y0)*(box.X1-box.X0))}
	for i := range p.Pix {
		p.Pix[i] = uint16(r.IntN(10_000))
	}
	if holes {
		p.Valid = make([]byte, len(p.Pix))
		for i := range p.Valid {
			if r.IntN(4) > 0 {
				p.Valid[i] = 1
			}
		}
	}
	return p
}

// places returns the place of each pixel of the window in pixels of the raster, from the cells; NaN for those without.
func places(m *Mapping) (list [][2]float64) {
	list = make([][2]float64, m.height*m.width)
	for i := range list {
		list[i] = [2]float64{math.NaN(), math.NaN()}
	}
	for i := range m.cells {
		c := &m.cells[i]
		for k := range c.h {
			from, step := c.row(k)
			for j := range c.w {
				list[(c.y+k)*m.width+c.x+j] = [2]float64{
					float64(from.x+int64(j)*step.x) / one, float64(from.y+int64(j)*step.y) / one,
				}
			}
		}
	}
	return list
}

// slow is a kernel by its definition, in float64, on the whole raster.
func slow(m *Mapping, k Kernel, p *Plane[uint16], x, y float64) (value float64, valid bool) {
	h, w := p.Box.Y1, p.Box.X1
	const e = float64(nudge) / one
	if near := k == Nearest; near || x < 0 || y < 0 || x >= float64(w)-e || y >= float64(h)-e {
		x, y = x+e, y+e
	}
	if !(x >= 0 && y >= 0 && x < float64(w) && y < float64(h)) {
		return 0, false
	}
	known := func(row, col int) bool { return p.Valid == nil || p.Valid[row*w+col] != 0 }
	near := [2]int{max(0, int(y)), max(0, int(x))}
	tent := func(d, radius float64) float64 { return max(0, 1-math.Abs(d)/radius) }
	switch k {
	case Nearest:
		return float64(p.Pix[near[0]*w+near[1]]), known(near[0], near[1])
	case Bilinear:
		if !known(near[0], near[1]) {
			return 0, false
		}
		for row := int(y) - 1; row <= int(y)+1; row++ {
			for col := int(x) - 1; col <= int(x)+1; col++ {
				// Past the edge stands the pixel at the edge, and for one that is missing the nearest.
				r, c := min(max(row, 0), h-1), min(max(col, 0), w-1)
				if !known(r, c) {
					r, c = near[0], near[1]
				}
				value += tent(float64(row)+0.5-y, 1) * tent(float64(col)+0.5-x, 1) * float64(p.Pix[r*w+c])
			}
		}
		return value, true
	}
	var weight, all float64
	for row := range h {
		for col := range w {
			u := tent(float64(row)+0.5-y, m.radiusY) * tent(float64(col)+0.5-x, m.radiusX)
			if all += u; known(row, col) {
				weight += u
				value += u * float64(p.Pix[row*w+col])
			}
		}
	}
	if math.Abs(2*weight-all) < 0.02*all { // too near to call, as weights are rounded
		return math.NaN(), true
	}
	return value / weight, 2*weight >= all
}

// TestKernels: each kernel is what its definition says, from the whole raster and from the part that Source names, and
// takes no pixel outside of Boxes.
func TestKernels(t *testing.T) {
	cases := map[string][2]Raster{
		"same":     {at(t, 32633, 15, 50, 10, 24, 24, 0), at(t, 32633, 15, 50, 10, 24, 24, 0)},
		"finer":    {at(t, 32633, 15, 50, 3, 50, 60, 0), at(t, 32633, 15, 50, 10, 24, 24, 0)},
		"coarser":  {at(t, 32633, 15, 50, 25, 20, 20, 0), at(t, 32633, 15.001, 50, 10, 40, 44, 0)},
		"turned":   {at(t, 32633, 15, 50, 8, 40, 30, 1), at(t, 32633, 15, 50, 10, 24, 26, 0)},
		"mirrored": {at(t, 32633, 15, 50, 8, 20, 30, math.Pi), at(t, 32633, 15, 50, 10, 24, 26, 0)},
		"zones":    {at(t, 32632, 12, 50, 10, 40, 40, 0), at(t, 32633, 12, 50, 10, 24, 50, 0)},
		"degrees":  {at(t, 32632, 12, 50, 30, 20, 20, 0), at(t, 4326, 12, 50, 10, 60, 60, 0)},
		"beside":   {at(t, 32632, 13, 50, 10, 40, 40, 0), at(t, 32633, 12, 50, 10, 24, 50, 0)},
	}
	r := rand.New(rand.NewPCG(3, 4))
	for name, p := range cases {
		m, err := NewMapping(p[0], p[1])
		if err != nil {
			t.Fatal(err)
		}
		for _, holes := range []bool{false, true} {
			all := image(r, m.raster, holes)
			for k := Nearest; k <= Antialias; k++ {
				checkKernel(t, fmt.Sprintf("%s, kernel %d, holes %v", name, k, holes), m, k, all)
			}
		}
	}
}

func checkKernel(t *testing.T, name string, m *Mapping, k Kernel, all Plane[uint16]) {
	n := m.height * m.width
	out, valid := make([]float32, n), make([]byte, n)
	if err := Sample(m, k, all, out, valid); err != nil {
		t.Fatal(name, err)
	}
	worst := 0.0
	for i, p := range places(m) {
		want, ok := slow(m, k, &all, p[0], p[1])
		if want != want {
			continue
		}
		if ok != (valid[i] == 1) || !ok && out[i] != 0 {
			t.Fatalf("%s: pixel %d at %v: %v, valid %d, want %v, %v", name, i, p, out[i], valid[i], want, ok)
		}
		if ok {
			worst = max(worst, math.Abs(float64(out[i])-want))
		}
	}
	// Of 10,000: a tent's place is rounded to 1/512 pixel, and its neighbours differ by up to 10,000.
	bound := []float64{0, 0.01, 60}[k]
	if worst > bound {
		t.Errorf("%s: off by %v", name, worst)
	}
	need := m.Source(k)
	part := Plane[uint16]{Box: need}
	taken := map[[2]int]bool{}
	for i := range m.cells {
		b := m.boxOf(k, &m.cells[i])
		for y := b.Y0; y < b.Y1; y++ {
			for x := b.X0; x < b.X1; x++ {
				taken[[2]int{y, x}] = true
			}
		}
	}
	for y := need.Y0; y < need.Y1; y++ {
		for x := need.X0; x < need.X1; x++ {
			v := all.Pix[y*all.Box.X1+x]
			if !taken[[2]int{y, x}] {
				v = 60_000
			}
			part.Pix = append(part.Pix, v)
			if all.Valid != nil {
				part.Valid = append(part.Valid, all.Valid[y*all.Box.X1+x])
			}
		}
	}
	again, againValid := make([]float32, n), make([]byte, n)
	if err := Sample(m, k, part, again, againValid); err != nil {
		t.Fatal(name, err)
	}
	for i := range out {
		if again[i] != out[i] || againValid[i] != valid[i] {
			t.Fatalf("%s: pixel %d is %v of %v, but %v of the whole raster", name, i, again[i], need, out[i])
		}
	}
	if k != Nearest {
		return
	}
	same := make([]uint16, n)
	if err := Pick(m, part, same, againValid); err != nil {
		t.Fatal(name, err)
	}
	for i, v := range same {
		if againValid[i] != valid[i] || valid[i] == 1 && float32(v) != out[i] {
			t.Fatalf("%s: pixel %d is %v, want %v", name, i, v, out[i])
		}
	}
}

// TestInfinite: pixels that are infinite or no number touch no pixel that has no weight of them.
func TestInfinite(t *testing.T) {
	w := at(t, 32633, 15, 50, 10, 4, 4, 0)
	m, err := NewMapping(w, w)
	if err != nil {
		t.Fatal(err)
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	p := Plane[float32]{Box: m.raster, Pix: []float32{1, 2, inf, inf, 3, nan, 4, 5, 6, 7, 8, -inf, 9, 10, 11, 12}}
	for k := Nearest; k <= Antialias; k++ {
		out, valid := make([]float32, 16), make([]byte, 16)
		if err := Sample(m, k, p, out, valid); err != nil {
			t.Fatal(err)
		}
		for i, v := range out {
			if want := p.Pix[i]; (valid[i] != 1 || v != want) && want == want {
				t.Errorf("kernel %d: pixel %d is %v, want %v", k, i, v, want)
			}
		}
	}
}

// TestCheck: memory that does not fit is refused.
func TestCheck(t *testing.T) {
	w := at(t, 32633, 15, 50, 10, 4, 4, 0)
	m, err := NewMapping(w, w)
	if err != nil {
		t.Fatal(err)
	}
	good := Plane[uint8]{Box: Box{0, 0, 4, 4}, Pix: make([]uint8, 16)}
	for i, p := range []Plane[uint8]{
		{Box: Box{0, 0, 4, 4}, Pix: make([]uint8, 15)},
		{Box: Box{0, 0, 4, 4}, Pix: make([]uint8, 16), Valid: make([]byte, 2)},
		{Box: Box{0, 0, 3, 4}, Pix: make([]uint8, 12)},
		{Box: Box{-1, 0, 4, 4}, Pix: make([]uint8, 20)},
		{},
	} {
		if err := Pick(m, p, make([]uint8, 16), make([]byte, 16)); err == nil {
			t.Errorf("plane %d is taken", i)
		}
	}
	if err := Pick(m, good, make([]uint8, 15), make([]byte, 15)); err == nil {
		t.Error("15 pixels of 16 are taken")
	}
	if err := Sample(m, 9, good, make([]float32, 16), make([]byte, 16)); err == nil {
		t.Error("kernel 9 is taken")
	}
	if err := Pick(m, good, make([]uint8, 16), make([]byte, 16)); err != nil {
		t.Error(err)
	}
}

// TestInside: the range of places between bounds is that of trying each.
func TestInside(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 100_000 {
		n, from, step := r.IntN(12), int64(r.IntN(60)-30), int64(r.IntN(15)-7)
		lo := int64(r.IntN(40) - 20)
		hi := lo + int64(r.IntN(30))
		first, end := inside(from, step, n, lo, hi)
		for i := range n {
			v := from + int64(i)*step
			if (v >= lo && v < hi) != (i >= first && i < end) {
				t.Fatal(from, step, n, lo, hi, first, end, i)
			}
		}
		if first < 0 || end > n {
			t.Fatal(first, end, n)
		}
	}
}

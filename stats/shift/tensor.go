package shift

import (
	"math"
	"math/cmplx"
)

// tensor finds the edges of a raster: for each pixel a number whose size is the strength of the edge, and whose angle
// is twice the angle of its gradient.
type tensor struct {
	h, w  int
	sum   []complex128 // of all bands; 0 where valid is false
	valid []bool       // whether a pixel and its neighbours have values in all bands
	edges []complex128 // of one band; scratch
	band  []float64    // one band, smoothed
}

// of finds the edges of all bands of r. Pixels next to the edge of the raster, or to one without a value, have none.
func (t *tensor) of(r *Raster) {
	t.h, t.w = r.Height, r.Width
	n := t.h * t.w
	t.sum, t.edges, t.band, t.valid = grown(t.sum, n), grown(t.edges, n), grown(t.band, n), grown(t.valid, n)
	clear(t.sum)
	for i := range t.valid {
		y, x := i/t.w, i%t.w
		t.valid[i] = y > 0 && x > 0 && y < t.h-1 && x < t.w-1
	}
	for _, b := range r.Bands {
		for i, v := range b {
			t.band[i] = float64(v)
		}
		clear(t.edges)
		if r.Classes {
			t.borders()
		} else {
			smooth(t, t.band)
			t.gradients()
		}
		t.exclude()
		// Each band counts the same, independent of the unit of its values.
		if mean := meanSize(t.edges); mean > 0 {
			for i, e := range t.edges {
				t.sum[i] += e / complex(mean, 0)
			}
		}
	}
	// A label may be drawn a pixel beside its object, so the edges of both are widened until they meet.
	smooth(t, t.sum)
	t.mask()
}

// exclude makes pixels invalid where t.band has no value beside them.
func (t *tensor) exclude() {
	for i, ok := range t.valid {
		if ok {
			around := t.band[i-1] + t.band[i+1] + t.band[i-t.w] + t.band[i+t.w]
			t.valid[i] = around == around
		}
	}
}

// mask removes what smoothing spread into invalid pixels.
func (t *tensor) mask() {
	for i, ok := range t.valid {
		if !ok {
			t.sum[i] = 0
		}
	}
}

// gradients finds the edges of t.band by differences.
func (t *tensor) gradients() {
	for y := 1; y < t.h-1; y++ {
		for x := 1; x < t.w-1; x++ {
			i := y*t.w + x
			g := complex(t.band[i+1]-t.band[i-1], t.band[i+t.w]-t.band[i-t.w])
			if e := g * g; finite(e) {
				t.edges[i] = e
			}
		}
	}
}

// borders finds the edges of the classes in t.band: the sum of the edges of each class as a picture of 0 and 1.
func (t *tensor) borders() {
	differ := func(a, b float64) float64 {
		if a != b {
			return 1
		}
		return 0
	}
	for y := 1; y < t.h-1; y++ {
		for x := 1; x < t.w-1; x++ {
			i := y*t.w + x
			l, r, u, d := t.band[i-1], t.band[i+1], t.band[i-t.w], t.band[i+t.w]
			if s := l + r + u + d; s != s {
				continue
			}
			// The products of the differences, summed over the classes: a class adds to one of them only where
			// both pixels have it.
			xx, yy := 2*differ(l, r), 2*differ(u, d)
			xy := differ(r, u) + differ(l, d) - differ(r, d) - differ(l, u)
			t.edges[i] = complex(xx-yy, 2*xy)
		}
	}
}

// balance brings the strengths of edges closer to each other, so that a few strong ones do not decide alone, and
// subtracts the mean of the valid pixels, which would correlate the shapes of the valid areas. It reports whether there
// are any edges.
func (t *tensor) balance() bool {
	mean := meanSize(t.sum)
	if !(mean > 0) || math.IsInf(mean, 0) {
		return false
	}
	const most = 3 // as strong as nine times the mean counts
	for i, e := range t.sum {
		if size := cmplx.Abs(e); size > 0 {
			t.sum[i] = e * complex(min(math.Sqrt(size/mean), most)/size, 0)
		}
	}
	sum, n := complex128(0), 0
	for i, ok := range t.valid {
		if ok {
			sum, n = sum+t.sum[i], n+1
		}
	}
	for i := range t.sum {
		t.sum[i] -= sum / complex(float64(n), 0)
	}
	t.mask()
	return true
}

func meanSize(c []complex128) float64 {
	sum := 0.0
	for _, v := range c {
		sum += cmplx.Abs(v)
	}
	return sum / float64(len(c))
}

func finite(c complex128) bool { return !cmplx.IsNaN(c) && !cmplx.IsInf(c) }

// smooth applies the binomial filter of five pixels along both axes, whose standard deviation is one pixel. Pixels at
// the edge of the raster repeat.
func smooth[T float64 | complex128](t *tensor, p []T) {
	line := make([]T, max(t.h, t.w)+4)
	pass := func(pos, step, n int) {
		for i := range n {
			line[i+2] = p[pos+i*step]
		}
		line[0], line[1], line[n+2], line[n+3] = line[2], line[2], line[n+1], line[n+1]
		for i := range n {
			p[pos+i*step] = (line[i] + line[i+4] + 4*(line[i+1]+line[i+3]) + 6*line[i+2]) / 16
		}
	}
	for y := range t.h {
		pass(y*t.w, 1, t.w)
	}
	for x := range t.w {
		pass(x, t.w, t.h)
	}
}

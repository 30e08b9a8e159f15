package shift

import "gonum.org/v1/gonum/dsp/fourier"

// transform is the Fourier transform of planes of h by w numbers. Transformed planes are transposed, which saves a
// pass over them.
type transform struct {
	h, w       int
	rows, cols *fourier.CmplxFFT
	turned     []complex128
}

// resize prepares for planes of h by w.
func (t *transform) resize(h, w int) {
	if t.h == h && t.w == w {
		return
	}
	t.h, t.w = h, w
	t.rows, t.cols = fourier.NewCmplxFFT(w), fourier.NewCmplxFFT(h)
	t.turned = grown(t.turned, h*w)
}

// forward transforms p, whose rows from used on are 0.
func (t *transform) forward(p []complex128, used int) {
	lines(p[:used*t.w], t.w, t.rows.Coefficients)
	transpose(t.turned, p, t.h, t.w)
	lines(t.turned, t.h, t.cols.Coefficients)
	copy(p, t.turned)
}

// inverse transforms p back, but for a factor of h·w.
func (t *transform) inverse(p []complex128) {
	lines(p, t.h, t.cols.Sequence)
	transpose(t.turned, p, t.w, t.h)
	lines(t.turned, t.w, t.rows.Sequence)
	copy(p, t.turned)
}

// lines transforms each line of n numbers of p.
func lines(p []complex128, n int, do func(to, from []complex128) []complex128) {
	for ; len(p) > 0; p = p[n:] {
		do(p[:n], p[:n])
	}
}

// transpose writes the h by w plane from, transposed, to to.
func transpose(to, from []complex128, h, w int) {
	const block = 16 // 16 numbers are four cache lines; 16 rows of them stay in the first cache
	for y0 := 0; y0 < h; y0 += block {
		for x0 := 0; x0 < w; x0 += block {
			for y := y0; y < min(y0+block, h); y++ {
				for x := x0; x < min(x0+block, w); x++ {
					to[x*h+y] = from[y*w+x]
				}
			}
		}
	}
}

// fast returns the smallest number from n on that has no prime factor above 5, for which the transform is fast.
func fast(n int) int {
	for ; ; n++ {
		k := n
		for _, p := range [...]int{2, 3, 5} {
			for k%p == 0 {
				k /= p
			}
		}
		if k == 1 {
			return n
		}
	}
}

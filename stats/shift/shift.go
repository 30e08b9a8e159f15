// Package shift estimates by how many pixels two rasters of one place are shifted against each other, from their
// pixels alone.
//
// It compares where edges are and which way they run, not values, so that a mask can be compared with an image, and an
// image with one of another sensor: each pixel gets a structure tensor, whose angle is doubled so that bright to dark
// and dark to bright are one. The two fields of angles are correlated by their Fourier transforms with half of the
// amplitudes removed: phase correlation, which removes all, is easily misled by the few edges of a mask, and plain
// correlation has wide peaks. The shift is where the correlation is highest.
//
// A second measure checks the first: the normalised correlation of the pixels that both rasters have, without any
// transform (D. Padfield, Masked object registration in the Fourier domain, IEEE Transactions on Image Processing 21,
// 2012). The transform of a raster with gaps smears its frequencies, whose equalised amplitudes then favour no shift at
// all; the pixels themselves do not. The second measure also says how exact the shift is, by how much it moves when a
// part of the raster is left out.
package shift

import (
	"math"
	"math/cmplx"
)

// MinSide is the shortest side of rasters that are compared, in pixels. Smaller ones have too few edges.
const MinSide = 32

// Raster is one of the two rasters to compare, both of the same size.
type Raster struct {
	Height, Width int
	// Bands are Height × Width values each, in C order. NaN is a pixel without a value.
	Bands [][]float32
	// Classes says that the values of the only band are numbers of classes, which are equal or not.
	Classes bool
}

// Shift is how far the content of a raster lies from the content of another one.
type Shift struct {
	// Y and X are in pixels, downwards and to the right.
	Y, X float64
	// Radius is the standard error of the shift, in pixels.
	Radius float64
	// Confidence is from 0 (a guess) to 1: how far the peak of the correlation stands above the next one, less
	// where it hardly stands above the noise, and 0 if the pixels that both rasters have say another shift.
	Confidence float64
}

// Sure is the Confidence from which on a Shift is to be trusted (docs/measurements.md has how often it is wrong).
const Sure = 0.25

// Verdict is what a Shift says about a pair of rasters.
type Verdict int

// Unsure pairs may be aligned or shifted.
const (
	Unsure Verdict = iota
	Aligned
	Shifted
)

// Verdict returns whether the shift is longer than bound, in pixels. It is unsure if that is within the error.
func (s Shift) Verdict(bound float64) Verdict {
	switch {
	case s.Confidence < Sure:
		return Unsure
	case s.Length()+s.Radius <= bound:
		return Aligned
	case s.Length()-s.Radius > bound:
		return Shifted
	}
	return Unsure
}

// Length returns the length of the shift in pixels.
func (s Shift) Length() float64 { return math.Hypot(s.Y, s.X) }

const (
	// minOverlap is the share of the pixels that both rasters have after the shift. Peaks at less come from a few
	// edges that happen to fit: a fifth lets 128 pixels be shifted by 70 along both axes.
	minOverlap = 0.2
	// aside is the distance in pixels from the peak at which another one counts as another.
	aside = 8
	// noisePeak is the height above which a peak is certainly not noise, in units of the noise's root mean square. Of
	// 380 pairs of unrelated rasters 99 % had no peak above 8.
	noisePeak = 10
	// enough is the side in pixels of a square with enough edges. Of 840 masks and images of 64 by 64 pixels, ten
	// were estimated wrong by more than a pixel: the confidence of smaller ones is less.
	enough = 96
)

// Estimator estimates shifts, and keeps memory for the next pair. It is not safe for concurrent use.
type Estimator struct {
	plane      transform
	first      []complex128
	other      []complex128
	firstEdges tensor
	otherEdges tensor
}

// Estimate returns where the content of other lies in comparison with first. Rasters of different sizes or with a side
// below MinSide, and rasters without edges, have no shift and no confidence.
func (e *Estimator) Estimate(first, other *Raster) Shift {
	height, width := first.Height, first.Width
	if other.Height != height || other.Width != width || min(height, width) < MinSide {
		return Shift{}
	}
	// Shifts of up to 1 - minOverlap of a side do not wrap around.
	e.plane.resize(fast(height+reach(height)), fast(width+reach(width)))
	e.first, e.other = grown(e.first, e.plane.h*e.plane.w), grown(e.other, e.plane.h*e.plane.w)
	if !e.spectrum(e.first, &e.firstEdges, first) || !e.spectrum(e.other, &e.otherEdges, other) {
		return Shift{}
	}
	e.correlate()
	return e.check(e.peak(height, width))
}

// reach is the longest shift along a side that leaves enough overlap.
func reach(side int) int { return int((1 - minOverlap) * float64(side)) }

// spectrum puts the edges of a raster into t, and their transform into to. It reports whether there are any.
func (e *Estimator) spectrum(to []complex128, t *tensor, r *Raster) bool {
	t.of(r)
	some := t.balance()
	clear(to)
	for y := range r.Height {
		copy(to[y*e.plane.w:], t.sum[y*r.Width:][:r.Width])
	}
	e.plane.forward(to, r.Height)
	return some
}

// correlate puts the correlation into e.other.
func (e *Estimator) correlate() {
	mean := 0.0
	for i, a := range e.first {
		e.other[i] *= cmplx.Conj(a)
		mean += cmplx.Abs(e.other[i])
	}
	// A thousandth of the mean keeps frequencies that neither raster has from being raised to noise.
	floor := mean / float64(len(e.other)) / 1000
	for i, c := range e.other {
		if size := cmplx.Abs(c) + floor; size > 0 {
			e.other[i] = c / complex(math.Sqrt(size), 0)
		}
	}
	e.plane.inverse(e.other)
}

// at returns the correlation at a shift.
func (e *Estimator) at(y, x int) float64 {
	if y < 0 {
		y += e.plane.h
	}
	if x < 0 {
		x += e.plane.w
	}
	return real(e.other[y*e.plane.w+x])
}

// shifts calls f for each shift that leaves enough overlap.
func shifts(h, w int, f func(y, x int)) {
	for y := -reach(h); y <= reach(h); y++ {
		for x := -reach(w); x <= reach(w); x++ {
			if float64(h-abs(y))*float64(w-abs(x)) >= minOverlap*float64(h*w) {
				f(y, x)
			}
		}
	}
}

// peak finds the highest correlation.
func (e *Estimator) peak(h, w int) Shift {
	best, step, bx := math.Inf(-1), 0, 0
	shifts(h, w, func(y, x int) {
		if c := e.at(y, x); c > best {
			best, step, bx = c, y, x
		}
	})
	second, noise, n := 0.0, 0.0, 0
	shifts(h, w, func(y, x int) {
		if abs(y-step) > aside || abs(x-bx) > aside {
			c := e.at(y, x)
			second, noise, n = max(second, c), noise+c*c, n+1
		}
	})
	if !(best > 0) || !(noise > 0) {
		return Shift{}
	}
	above := best / math.Sqrt(noise/float64(n))
	return Shift{
		Y:          float64(step) + between(e.at(step-1, bx), best, e.at(step+1, bx)),
		X:          float64(bx) + between(e.at(step, bx-1), best, e.at(step, bx+1)),
		Confidence: (1 - second/best) * min(1, above/noisePeak) * min(1, math.Sqrt(float64(h*w))/enough),
	}
}

// between returns where a parabola through three neighbours has its top, within half a pixel of the middle one.
func between(before, at, after float64) float64 {
	d := before - 2*at + after
	if !(d < 0) {
		return 0
	}
	return min(max((before-after)/(2*d), -0.5), 0.5)
}

func abs(n int) int { return max(n, -n) }

// grown returns s with length n and arbitrary content.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// Package kernel holds the inner loops of the geozl codecs: plain loops over memory of the caller. They do
// not allocate and do not format errors. The comment of a loop states what it requires of its arguments;
// the bindings in package geozl ensure it.
package kernel

import "github.com/chaski-eo/chaski/internal/scan"

// Unsigned is the type of a sample in arithmetic.
type Unsigned interface {
	uint8 | uint16 | uint32 | uint64
}

// The predictors fill dst, a plane of whole rows of width samples, from residuals. len(res) is
// len(dst), a multiple of width, and not 0; both may be the same memory. W is the sample to the
// left, N the one above, NW the one above W. Samples outside the plane are 0.

// DeltaW adds W.
func DeltaW[T Unsigned](dst, res []T, width int) {
	for len(dst) > 0 {
		scan.Sum(dst[:width], res[:width], 0)
		dst, res = dst[width:], res[width:]
	}
}

// DeltaN adds N.
func DeltaN[T Unsigned](dst, res []T, width int) {
	copy(dst[:width], res[:width])
	for at := width; at < len(dst); at += width {
		up, r, d := dst[at-width:at], res[at:at+width], dst[at:at+width]
		for i := range d {
			d[i] = r[i] + up[i]
		}
	}
}

// Planar adds W + N - NW, which equals adding N to the running sum of the residuals of the row.
func Planar[T Unsigned](dst, res []T, width int) {
	scan.Sum(dst[:width], res[:width], 0)
	for at := width; at < len(dst); at += width {
		scan.SumAbove(dst[at:at+width], res[at:at+width], dst[at-width:at])
	}
}

// PlanarZigzag is Planar for residuals that are zigzag-mapped.
func PlanarZigzag[T Unsigned](dst, res []T, width int) {
	scan.SumZigzag(dst[:width], res[:width])
	for at := width; at < len(dst); at += width {
		scan.SumZigzagAbove(dst[at:at+width], res[at:at+width], dst[at-width:at])
	}
}

// Med adds the median of W, N and W + N - NW.
func Med[T Unsigned](dst, res []T, width int) {
	scan.Sum(dst[:width], res[:width], 0)
	for at := width; at < len(dst); at += width {
		medRow(dst[at:at+width], res[at:at+width], dst[at-width:at])
	}
}

func medRow[T Unsigned](d, r, up []T) {
	r, up = r[:len(d)], up[:len(d)]
	w, nw := r[0]+up[0], up[0]
	d[0] = w
	for i := 1; i < len(d); i++ {
		n := up[i]
		// The median of W, N and W+N-NW is W + N minus the median of W, N and NW. In this form all that
		// depends on W comes last, so that the processor can start the rest of the next sample early.
		m := max(min(n, nw), min(w, max(n, nw)))
		w += r[i] + n - m
		d[i] = w
		nw = n
	}
}

// MedZigzag is Med for residuals that are zigzag-mapped.
func MedZigzag[T Unsigned](dst, res []T, width int) {
	scan.SumZigzag(dst[:width], res[:width])
	for at := width; at < len(dst); at += width {
		row := dst[at : at+width]
		scan.Zigzag(row, res[at:at+width])
		medRow(row, row, dst[at-width:at])
	}
}

// Average adds (W + N) / 2, rounded down, without losing the carry of the sum.
func Average[T Unsigned](dst, res []T, width int) {
	var w T
	for i := range width {
		w = res[i] + w>>1
		dst[i] = w
	}
	for at := width; at < len(dst); at += width {
		up, r, d := dst[at-width:at], res[at:at+width], dst[at:at+width]
		w := T(0)
		for i := range d {
			n := up[i]
			w = r[i] + n>>1 + w>>1 + w&n&1
			d[i] = w
		}
	}
}

// Weights are those of WPStatic: of N, NW, NE (above and to the right) and NN (two above), in
// units of 1 / 2^Shift.
type Weights struct {
	Of    [4]int64
	Shift uint // at most 63
}

// WPStatic adds W and, from the second row on, the weighted sum of four samples above, rounded.
// The sum wraps at 64 bits.
func WPStatic[T Unsigned](dst, res []T, width int, w *Weights) {
	scan.Sum(dst[:width], res[:width], 0)
	var round int64
	if w.Shift > 0 {
		round = 1 << (w.Shift - 1)
	}
	for at := width; at < len(dst); at += width {
		up, r, d := dst[at-width:at], res[at:at+width], dst[at:at+width]
		var up2 []T
		if at > width {
			up2 = dst[at-2*width : at-width]
		}
		var v T
		for i := range d {
			sum := w.Of[0]*int64(up[i]) + round
			if i > 0 {
				sum += w.Of[1] * int64(up[i-1])
			}
			if i+1 < width {
				sum += w.Of[2] * int64(up[i+1])
			}
			if up2 != nil {
				sum += w.Of[3] * int64(up2[i])
			}
			v += r[i] + T(sum>>w.Shift)
			d[i] = v
		}
	}
}

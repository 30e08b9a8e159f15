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
	for pos := width; pos < len(dst); pos += width {
		scan.Add(dst[pos:pos+width], res[pos:pos+width], dst[pos-width:pos])
	}
}

// Planar adds W + N - NW, which equals adding N to the running sum of the residuals of the row.
func Planar[T Unsigned](dst, res []T, width int) {
	scan.Sum(dst[:width], res[:width], 0)
	for pos := width; pos < len(dst); pos += width {
		scan.SumAbove(dst[pos:pos+width], res[pos:pos+width], dst[pos-width:pos])
	}
}

// PlanarZigzag is Planar for residuals that are zigzag-mapped.
func PlanarZigzag[T Unsigned](dst, res []T, width int) {
	scan.SumZigzag(dst[:width], res[:width])
	for pos := width; pos < len(dst); pos += width {
		scan.SumZigzagAbove(dst[pos:pos+width], res[pos:pos+width], dst[pos-width:pos])
	}
}

// Med adds the median of W, N and W + N - NW.
func Med[T Unsigned](dst, res []T, width int) {
	scan.Sum(dst[:width], res[:width], 0)
	pos := width
	for ; pos+2*width <= len(dst) && width > 1; pos += 2 * width {
		medRows(dst[pos:pos+2*width], res[pos:pos+2*width], dst[pos-width:pos])
	}
	for ; pos < len(dst); pos += width {
		medRow(dst[pos:pos+width], res[pos:pos+width], dst[pos-width:pos])
	}
}

func medRow[T Unsigned](d, r, up []T) {
	r, up = r[:len(d)], up[:len(d)]
	// Numbers of 64 bits, because the processor has no minimum of bytes without a branch, and
	// branches here cannot be foreseen.
	w, nw := uint64(r[0]+up[0]), uint64(up[0])
	d[0] = T(w)
	for i := 1; i < len(d); i++ {
		n := uint64(up[i])
		// The median of W, N and W+N-NW is W + N minus the median of W, N and NW. In this form all that
		// depends on W comes last, so that the processor can start the rest of the next sample early.
		m := max(min(n, nw), min(w, max(n, nw)))
		v := T(w-m) + (r[i] + T(n))
		d[i] = v
		w, nw = uint64(v), n
	}
}

// MedZigzag is Med for residuals that are zigzag-mapped.
func MedZigzag[T Unsigned](dst, res []T, width int) {
	scan.SumZigzag(dst[:width], res[:width])
	pos := width
	for ; pos+2*width <= len(dst) && width > 1; pos += 2 * width {
		rows := dst[pos : pos+2*width]
		scan.Zigzag(rows, res[pos:pos+2*width])
		medRows(rows, rows, dst[pos-width:pos])
	}
	for ; pos < len(dst); pos += width {
		row := dst[pos : pos+width]
		scan.Zigzag(row, res[pos:pos+width])
		medRow(row, row, dst[pos-width:pos])
	}
}

// medRows is medRow for two rows, the second one column behind the first: every sample waits for the one to
// its left, so that the processor has two chains to work on. Rows have at least two samples.
func medRows[T Unsigned](d, r, up []T) {
	width := len(up)
	a, ra := d[:width], r[:width]
	b, rb := d[width:][:width], r[width:][:width]
	wa, nwa := uint64(ra[0]+up[0]), uint64(up[0])
	a[0] = T(wa)
	wb, nwb := uint64(rb[0]+T(wa)), wa
	b[0] = T(wb)
	{
		n := uint64(up[1])
		m := max(min(n, nwa), min(wa, max(n, nwa)))
		v := T(wa-m) + (ra[1] + T(n))
		a[1] = v
		wa, nwa = uint64(v), n
	}
	for i := 2; i < width; i++ {
		n := uint64(up[i])
		nb := wa // above b[i-1]
		m := max(min(n, nwa), min(wa, max(n, nwa)))
		mb := max(min(nb, nwb), min(wb, max(nb, nwb)))
		v := T(wa-m) + (ra[i] + T(n))
		vb := T(wb-mb) + (rb[i-1] + T(nb))
		a[i], b[i-1] = v, vb
		wa, nwa, wb, nwb = uint64(v), n, uint64(vb), nb
	}
	mb := max(min(wa, nwb), min(wb, max(wa, nwb)))
	b[width-1] = T(wb-mb) + (rb[width-1] + T(wa))
}

// Average adds (W + N) / 2, rounded down, without losing the carry of the sum.
func Average[T Unsigned](dst, res []T, width int) {
	var w T
	for i := range width {
		w = res[i] + w>>1
		dst[i] = w
	}
	for pos := width; pos < len(dst); pos += width {
		up, r, d := dst[pos-width:pos], res[pos:pos+width], dst[pos:pos+width]
		up, r = up[:len(d)], r[:len(d)]
		w := T(0)
		for i := range d {
			// Terms without w are added first, since the next sample waits for w.
			n := up[i]
			w = r[i] + n>>1 + (w>>1 + w&(n&1))
			d[i] = w
		}
	}
}

// Weights are the weights of WPStatic: of N, NW, NE (above and to the right) and NN (two above), in
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
	for pos := width; pos < len(dst); pos += width {
		up, r, d := dst[pos-width:pos], res[pos:pos+width], dst[pos:pos+width]
		var up2 []T
		if pos > width {
			up2 = dst[pos-2*width : pos-width]
		}
		weighted(d, r, up, up2, w, round)
		scan.Sum(d, d, 0)
	}
}

// weighted fills d with r plus the weighted sums of samples above; up2 is nil in the second row.
func weighted[T Unsigned](d, r, up, up2 []T, w *Weights, round int64) {
	r, up = r[:len(d)], up[:len(d)]
	shift := w.Shift
	n, nw, ne, nn := w.Of[0], w.Of[1], w.Of[2], w.Of[3]
	left, c := int64(0), int64(up[0])
	last := len(d) - 1
	next, inner := up[1:], d[:last]
	next = next[:len(inner)]
	if up2 == nil {
		for i := range inner {
			right := int64(next[i])
			inner[i] = r[i] + T((n*c+nw*left+ne*right+round)>>(shift&63))
			left, c = c, right
		}
		d[last] = r[last] + T((n*c+nw*left+round)>>(shift&63))
		return
	}
	up2 = up2[:len(d)]
	first := weightedFast(d, r, up, up2, w, round)
	if first > 0 {
		// The first sample has nothing to its left.
		d[0] = r[0] + T((n*c+ne*int64(next[0])+nn*int64(up2[0])+round)>>(shift&63))
		left, c = int64(up[first-1]), int64(up[first])
	}
	for i := first; i < len(inner); i++ {
		right := int64(next[i])
		inner[i] = r[i] + T((n*c+nw*left+(ne*right+(nn*int64(up2[i])+round)))>>(shift&63))
		left, c = c, right
	}
	d[last] = r[last] + T((n*c+nw*left+nn*int64(up2[last])+round)>>(shift&63))
}

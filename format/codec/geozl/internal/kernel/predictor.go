// Package kernel holds the inner loops of the geozl codecs: plain loops over memory of the caller. They
// neither allocate nor format errors. The comment of a loop states what it requires of its arguments;
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
func PlanarZigzag[T Unsigned](dst, res []T, width int) { PlanarZigzagFrom(dst, res, width, 0) }

// PlanarZigzagFrom is PlanarZigzag for the rows from number pos on: dst has those before it.
func PlanarZigzagFrom[T Unsigned](dst, res []T, width, pos int) {
	if pos == 0 {
		scan.SumZigzag(dst[:width], res[:width])
		pos = width
	}
	for ; pos < len(dst); pos += width {
		scan.SumZigzagAbove(dst[pos:pos+width], res[pos:pos+width], dst[pos-width:pos])
	}
}

// Med adds the median of W, N and W + N - NW, as the predictor of JPEG-LS does.
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

func medRow[T Unsigned](row, residuals, above []T) {
	residuals, above = residuals[:len(row)], above[:len(row)]
	// Numbers of 64 bits: a minimum of bytes takes a branch, and branches here cannot be foreseen.
	w, nw := uint64(residuals[0]+above[0]), uint64(above[0])
	row[0] = T(w)
	for i := 1; i < len(row); i++ {
		n := uint64(above[i])
		// The median of W, N and W+N-NW is W + N minus the median of W, N and NW. In this form all that
		// depends on W comes last, so the processor can start the rest of the next sample early.
		median := max(min(n, nw), min(w, max(n, nw)))
		sample := T(w-median) + (residuals[i] + T(n))
		row[i] = sample
		w, nw = uint64(sample), n
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
// its left, so the processor has two chains to work on. Rows have at least two samples.
func medRows[T Unsigned](rows, residuals, above []T) {
	width := len(above)
	rowA, resA := rows[:width], residuals[:width]
	rowB, resB := rows[width:][:width], residuals[width:][:width]
	wa, nwa := uint64(resA[0]+above[0]), uint64(above[0])
	rowA[0] = T(wa)
	wb, nwb := uint64(resB[0]+T(wa)), wa
	rowB[0] = T(wb)
	{
		n := uint64(above[1])
		median := max(min(n, nwa), min(wa, max(n, nwa)))
		sample := T(wa-median) + (resA[1] + T(n))
		rowA[1] = sample
		wa, nwa = uint64(sample), n
	}
	for i := 2; i < width; i++ {
		n := uint64(above[i])
		nb := wa // above rowB[i-1]
		median := max(min(n, nwa), min(wa, max(n, nwa)))
		medianB := max(min(nb, nwb), min(wb, max(nb, nwb)))
		sample := T(wa-median) + (resA[i] + T(n))
		sampleB := T(wb-medianB) + (resB[i-1] + T(nb))
		rowA[i], rowB[i-1] = sample, sampleB
		wa, nwa, wb, nwb = uint64(sample), n, uint64(sampleB), nb
	}
	medianB := max(min(wa, nwb), min(wb, max(wa, nwb)))
	rowB[width-1] = T(wb-medianB) + (resB[width-1] + T(wa))
}

// Average adds (W + N) / 2, rounded down, without losing the carry of the sum.
func Average[T Unsigned](dst, res []T, width int) {
	var w T
	for i := range width {
		w = res[i] + w>>1
		dst[i] = w
	}
	for pos := width; pos < len(dst); pos += width {
		above, residuals, row := dst[pos-width:pos], res[pos:pos+width], dst[pos:pos+width]
		above, residuals = above[:len(row)], residuals[:len(row)]
		w := T(0)
		for i := range row {
			// Terms without w are added first, since the next sample waits for w.
			n := above[i]
			w = residuals[i] + n>>1 + (w>>1 + w&(n&1))
			row[i] = w
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
func WPStatic[T Unsigned](dst, res []T, width int, weights *Weights) {
	scan.Sum(dst[:width], res[:width], 0)
	var round int64
	if weights.Shift > 0 {
		round = 1 << (weights.Shift - 1)
	}
	for pos := width; pos < len(dst); pos += width {
		above, residuals, row := dst[pos-width:pos], res[pos:pos+width], dst[pos:pos+width]
		var above2 []T
		if pos > width {
			above2 = dst[pos-2*width : pos-width]
		}
		weighted(row, residuals, above, above2, weights, round)
		scan.Sum(row, row, 0)
	}
}

// weighted fills row with residuals plus the weighted sums of samples above; above2 is nil in the second row.
func weighted[T Unsigned](row, residuals, above, above2 []T, weights *Weights, round int64) {
	residuals, above = residuals[:len(row)], above[:len(row)]
	shift := weights.Shift
	n, nw, ne, nn := weights.Of[0], weights.Of[1], weights.Of[2], weights.Of[3]
	left, north := int64(0), int64(above[0])
	last := len(row) - 1
	next, inner := above[1:], row[:last]
	next = next[:len(inner)]
	if above2 == nil {
		for i := range inner {
			right := int64(next[i])
			inner[i] = residuals[i] + T((n*north+nw*left+ne*right+round)>>(shift&63))
			left, north = north, right
		}
		row[last] = residuals[last] + T((n*north+nw*left+round)>>(shift&63))
		return
	}
	above2 = above2[:len(row)]
	first := weightedFast(row, residuals, above, above2, weights, round)
	if first > 0 {
		// The first sample has nothing to its left.
		row[0] = residuals[0] + T((n*north+ne*int64(next[0])+nn*int64(above2[0])+round)>>(shift&63))
		left, north = int64(above[first-1]), int64(above[first])
	}
	for i := first; i < len(inner); i++ {
		right := int64(next[i])
		inner[i] = residuals[i] + T((n*north+nw*left+(ne*right+(nn*int64(above2[i])+round)))>>(shift&63))
		left, north = north, right
	}
	row[last] = residuals[last] + T((n*north+nw*left+nn*int64(above2[last])+round)>>(shift&63))
}

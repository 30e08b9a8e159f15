package picture

import "github.com/chaski-eo/chaski/internal/kernel"

// Filters of PNG (PNG Specification, third edition, section 9.2): what a byte is the difference to.
const (
	filterNone    = 0
	filterSub     = 1 // the byte of the pixel before
	filterUp      = 2 // the byte above
	filterAverage = 3 // the mean of both
	filterPaeth   = 4 // the one of both and of the byte before the one above that is nearest to left + up - corner
)

// unfilter undoes a filter of PNG on a row, whose pixels have size bytes: in becomes out, and up is the row above. All
// have one length, of whole pixels or with a size of 1, and do not overlap. It returns false for an unknown filter.
func unfilter(out, in, up []byte, size int, filter byte) bool {
	switch filter {
	case filterNone:
		copy(out, in)
	case filterSub:
		copy(out, in)
		kernel.UndoHorizontal(out, len(out), 1, size)
	case filterUp:
		done := addSIMD(out, in, up)
		add(out[done:], in[done:], up[done:])
	case filterAverage:
		done := averageSIMD(out, in, up, size)
		average(out, in, up, size, done)
	case filterPaeth:
		done := paethSIMD(out, in, up, size)
		paeth(out, in, up, size, done)
	default:
		return false
	}
	return true
}

func add(out, in, up []byte) {
	in, up = in[:len(out)], up[:len(out)]
	for i := range out {
		out[i] = in[i] + up[i]
	}
}

// average undoes filterAverage from byte first on, a multiple of size.
func average(out, in, up []byte, size, first int) {
	in, up = in[:len(out)], up[:len(out)]
	i := first
	for ; i < min(size, len(out)); i++ {
		out[i] = in[i] + up[i]/2
	}
	for ; i < len(out); i++ {
		out[i] = in[i] + byte((int(out[i-size])+int(up[i]))/2)
	}
}

// paeth undoes filterPaeth from byte first on, a multiple of size.
func paeth(out, in, up []byte, size, first int) {
	in, up = in[:len(out)], up[:len(out)]
	i := first
	for ; i < min(size, len(out)); i++ {
		out[i] = in[i] + up[i]
	}
	if size == 1 && i < len(out) {
		left, corner := int(out[i-1]), int(up[i-1])
		for ; i < len(out); i++ {
			above := int(up[i])
			left = int(in[i] + byte(paethOf(left, above, corner)))
			corner = above
			out[i] = byte(left)
		}
		return
	}
	for ; i < len(out); i++ {
		out[i] = in[i] + byte(paethOf(int(out[i-size]), int(up[i]), int(up[i-size])))
	}
}

// paethOf returns the predictor of Paeth. The distances are written without jumps, which processors would mistake.
func paethOf(left, above, corner int) int {
	toLeft, toAbove := above-corner, left-corner
	toCorner := toLeft + toAbove
	toLeft = (toLeft ^ toLeft>>63) - toLeft>>63
	toAbove = (toAbove ^ toAbove>>63) - toAbove>>63
	toCorner = (toCorner ^ toCorner>>63) - toCorner>>63
	best, other := left, above
	if toCorner < toAbove {
		other, toAbove = corner, toCorner
	}
	if toAbove < toLeft {
		best = other
	}
	return best
}

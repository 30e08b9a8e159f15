package vector

import "slices"

// Runs are the pixels of a mask, column by column: one run outside of it, one inside, and so on.
type Runs struct {
	counts []uint32 // where each run ends
	height int
}

// At reports whether a pixel of the image belongs to the mask. The pixel must lie in the image.
func (r *Runs) At(y, x int) bool {
	pos := uint32(x*r.height + y)
	// The first run that ends behind the pixel; empty ones end before it.
	k, _ := slices.BinarySearch(r.counts, pos+1)
	return k%2 == 1
}

// Columns returns the first and the last column of the image that the mask may have pixels in; the last one lies before
// the first one if it has none.
func (r *Runs) Columns() (first, last int) {
	inside := (len(r.counts) - 1) | 1 // the last run inside, or the one that would follow
	if inside >= len(r.counts) {
		inside -= 2
	}
	if inside < 0 {
		return 0, -1
	}
	return int(r.counts[0]) / r.height, (int(r.counts[inside]) - 1) / r.height
}

// unpack appends the runs of COCO's packed form. Each is a number in groups of 5 bits, the least first, in characters
// from '0' on: bit 5 says that another one follows, bit 4 of the last one is the sign. From the fourth on a number
// is the difference to the run before the last one.
func unpack(to []uint32, s string) ([]uint32, bool) {
	first := len(to)
	for i := 0; i < len(s); {
		n, shift := int64(0), 0
		for goesOn := true; goesOn; i++ {
			if i == len(s) || s[i] < '0' || s[i] > '0'+63 || shift > 35 {
				return to, false
			}
			c := int64(s[i] - '0')
			n |= c & 31 << shift
			shift += 5
			if goesOn = c&32 != 0; !goesOn && c&16 != 0 {
				n |= -1 << shift
			}
		}
		if k := len(to); k-first > 2 {
			n += int64(to[k-2])
		}
		if n < 0 || n >= 1<<32 {
			return to, false
		}
		to = append(to, uint32(n))
	}
	return to, true
}

package recipe

import (
	"math"
	"math/bits"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/ops/columns"
)

// A chip is a duplicate if its picture differs from the picture of an earlier chip, which stays, in at most
// Quality.Duplicates bits of their hashes. This is decided when chips are taken in order, so it does not depend on
// which worker or part made them. A part therefore keeps all its chips for Merge.

// maxDistance bounds Quality.Duplicates: one pair of 20 million random hashes differs in 11 bits or fewer, so a
// larger distance would leave out some of a million chips that have nothing in common.
const maxDistance = 11

// The picture of a chip has hashRows by hashColumns cells. A bit of the hash says whether a cell is darker than its
// neighbour to the right ("dHash"): noise and other brightness change few of them.
const (
	hashRows    = 8
	hashColumns = 9
)

// hashOf returns the hash of the valid samples of an image. It uses only sums and quotients, which are the same on
// every processor. It returns an error for images that would all have one hash, since all but one would be left out:
// images smaller than the picture, whose cells have no pixels, and complex numbers, which have no order.
func hashOf(pixels *loader.Tensor, valid []byte) (h uint64, _ error) {
	bands, height, width := int(pixels.Shape[1]), int(pixels.Shape[2]), int(pixels.Shape[3])
	if height < hashRows || width < hashColumns {
		return 0, fault.New(fault.Unsupported, "field "+pixels.Name, fault.NoOffset,
			"a chip has %d by %d pixels: quality.duplicates compares those of %d by %d or more", height, width,
			hashRows, hashColumns)
	}
	var sums, counts [hashRows * hashColumns]float64
	size := pixels.DType.Size()
	var line []float64
	for b := range bands {
		for y := range height {
			pos := (b*height + y) * width
			line = columns.AppendValues(line[:0], pixels.Data[pos*size:][:width*size], pixels.DType)
			if len(line) != width {
				return 0, fault.New(fault.Unsupported, "field "+pixels.Name, fault.NoOffset,
					"a chip is %s, which quality.duplicates does not compare", pixels.DType)
			}
			row := y * hashRows / height * hashColumns
			for x, v := range line {
				if valid[pos+x] != 0 && !math.IsNaN(v) && !math.IsInf(v, 0) {
					cell := row + x*hashColumns/width
					sums[cell] += v
					counts[cell]++
				}
			}
		}
	}
	for y := range hashRows {
		for x := range hashColumns - 1 {
			left := y*hashColumns + x
			h <<= 1
			// The quotient of a cell without pixels is NaN, which is not less.
			if sums[left]/counts[left] < sums[left+1]/counts[left+1] {
				h |= 1
			}
		}
	}
	return h, nil
}

// quarters are the parts of a hash, of 16 bits each, that tables are of.
const quarters = 4

// hashes finds hashes that are near each other. If two differ in n bits, one of their quarters differs in at most
// n/quarters: only those hashes are compared that have a quarter so near. Of a million random ones these are 60 if n is
// below 4, and 8,000 if it is 11. A hash takes 32 bytes, and up to twice as many while its lists grow: lists of the
// numbers of hashes would take half, but a step in memory for each comparison. A million hashes take 9 s of a core if n
// is 4 (BenchmarkHashes).
type hashes struct {
	within int
	flips  []uint16                    // all bits by which a quarter may differ
	by     [quarters][1 << 16][]uint64 // by the value of a quarter, the hashes that have it
}

func newHashes(within int) *hashes {
	s := &hashes{within: within}
	for v := range 1 << 16 {
		if bits.OnesCount16(uint16(v)) <= within/quarters {
			s.flips = append(s.flips, uint16(v))
		}
	}
	return s
}

// add adds a hash, or reports false if one is near it.
func (s *hashes) add(h uint64) bool {
	for q := range quarters {
		value := uint16(h >> (16 * q))
		for _, flip := range s.flips {
			for _, other := range s.by[q][value^flip] {
				if bits.OnesCount64(other^h) <= s.within {
					return false
				}
			}
		}
	}
	for q := range quarters {
		list := &s.by[q][uint16(h>>(16*q))]
		*list = append(*list, h)
	}
	return true
}

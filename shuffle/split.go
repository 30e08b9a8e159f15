package shuffle

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/internal/splitmix"
)

// SplitTotal is the sum of the shares of a split: the number of values of the upper half of a hash.
const SplitTotal = 1 << 32

// Share is a part of a split: Parts of the SplitTotal values of a hash.
type Share struct {
	Name  string `json:"name"`
	Parts int64  `json:"parts"`
}

// Split assigns rows to named shares by a hash of their id or place. It does not use their number:
// rows added or removed later leave the others where they are.
type Split struct {
	Seed   uint64  `json:"seed"`
	Shares []Share `json:"shares"`
}

// Check returns an error unless all shares are positive and sum to SplitTotal.
func (s *Split) Check() error {
	sum := int64(0)
	for _, share := range s.Shares {
		if share.Parts < 1 || share.Parts > SplitTotal-sum {
			return fmt.Errorf("split: share %q of %d parts, after %d of %d", share.Name, share.Parts, sum,
				int64(SplitTotal))
		}
		sum += share.Parts
	}
	if sum != SplitTotal {
		return fmt.Errorf("split: %d parts of %d", sum, int64(SplitTotal))
	}
	return nil
}

// OfText returns the index of the share of a string: the id of a row, or the value of a column whose
// rows are to stay together. Strings are compared as UTF-8 bytes.
func (s *Split) OfText(text string) int { return s.Of(s.HashOfText(text)) }

// HashOfText returns the hash by which OfText finds the share.
func (s *Split) HashOfText(text string) uint64 { return hashText(s.Seed, text) }

// OfCell returns the index of the share of a geographic cell. Square cells with sides of size degrees
// (or units of the CRS) are assigned as a whole, so neighbours stay together. bounds are minimum
// x, minimum y, maximum x and maximum y; a row belongs to the cell of its centre. The index is -1 if
// a bound is infinite or NaN, or the number of the cell exceeds an int64.
func (s *Split) OfCell(bounds [4]float64, size float64) int {
	hash, ok := s.HashOfCell(bounds, size)
	if !ok {
		return -1
	}
	return s.Of(hash)
}

// HashOfCell returns the hash by which OfCell finds the share, unless it finds none.
func (s *Split) HashOfCell(bounds [4]float64, size float64) (hash uint64, ok bool) {
	y, okY := cellOf(bounds[1], bounds[3], size)
	x, okX := cellOf(bounds[0], bounds[2], size)
	return splitmix.Hash(s.Seed, domainCell, uint64(y), uint64(x)), okY && okX
}

// Exactly returns what finds the share of a hash so that the shares of some hashes are kept: of n different ones, in
// ascending order, those up to n × the sum of the shares are of the first ones, rounded to the nearest. A share has at
// least one if n reaches. It sorts the hashes.
func (s *Split) Exactly(hashes []uint64) func(hash uint64) int {
	slices.Sort(hashes)
	hashes = slices.Compact(hashes)
	ends, parts, last := make([]int, len(s.Shares)), int64(0), 0
	for i, share := range s.Shares {
		parts += share.Parts
		end := int(math.Round(float64(len(hashes)) * float64(parts) / SplitTotal))
		others := len(s.Shares) - 1 - i // that need one each
		last = min(max(end, last+1), max(len(hashes)-others, last+1), len(hashes))
		ends[i] = last
	}
	return func(hash uint64) int {
		place, ok := slices.BinarySearch(hashes, hash)
		if !ok {
			return -1
		}
		return slices.IndexFunc(ends, func(end int) bool { return place < end })
	}
}

// Of returns the index of the share of a hash, or -1 if the shares do not sum to SplitTotal and leave it out.
func (s *Split) Of(h uint64) int {
	left := int64(h >> 32)
	for i, share := range s.Shares {
		if left -= share.Parts; left < 0 {
			return i
		}
	}
	return -1
}

// cellOf returns floor(((lo + hi) / 2) / size). Every operation is rounded to float64.
func cellOf(lo, hi, size float64) (int64, bool) {
	cell := math.Floor(float64(float64(float64(lo+hi)*0.5) / size))
	// Out of the range of int64 the conversion would differ between machines.
	return int64(cell), size > 0 && cell >= -0x1p62 && cell <= 0x1p62
}

// hashText is hash(seed, 5, length, words), of the text's bytes in little-endian words of 64 bits, the last
// one filled up with zeros.
func hashText(seed uint64, text string) uint64 {
	hash := splitmix.Hash(seed, domainText, uint64(len(text)))
	for ; len(text) >= 8; text = text[8:] {
		hash = splitmix.Further(hash, binary.LittleEndian.Uint64([]byte(text[:8])))
	}
	if len(text) > 0 {
		var last [8]byte
		copy(last[:], text)
		hash = splitmix.Further(hash, binary.LittleEndian.Uint64(last[:]))
	}
	return hash
}

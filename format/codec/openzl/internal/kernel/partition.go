package kernel

import (
	"math/bits"

	"github.com/chaski-eo/chaski/internal/cursor"
)

// Partitions are consecutive ranges of numbers.
type Partitions struct {
	Base  [256]uint64 // the first number of each
	bits  [256]uint8  // how many bits an offset in it takes
	Count int
}

// Add adds a range of that size at base and returns its end. There must be room for it.
func (p *Partitions) Add(base, size uint64) uint64 {
	p.Base[p.Count] = base
	p.bits[p.Count] = uint8(bits.Len64(size - 1))
	p.Count++
	return base + size
}

// Decode writes a number of width bytes for every bucket to dst: the base of that partition plus the next
// bits of extra, lowest first. It reports whether all partitions exist and extra has enough bits. dst has as
// many numbers as there are buckets.
func (p *Partitions) Decode(dst, buckets, extra []byte, width int) bool {
	pos := 0
	for i, bucket := range buckets {
		if int(bucket) >= p.Count {
			return false
		}
		offsetBits := int(p.bits[bucket])
		if pos+offsetBits > 8*len(extra) {
			return false
		}
		PutLE(dst, i, width, p.Base[bucket]+cursor.BitsAt(extra, pos, offsetBits))
		pos += offsetBits
	}
	return true
}

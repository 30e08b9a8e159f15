//go:build amd64 && !purego && !twins

package kernel

import (
	"golang.org/x/sys/cpu"

	"github.com/chaski-eo/chaski/internal/cast"
)

var hasAVX2 = cpu.X86.HasAVX2

// weightState has the arguments of the loops of weighted. left, right, up and up2 are the rows above from the
// first sample on: to the left, to the right, above, two above.
type weightState struct {
	dst, res             *byte
	left, up, right, up2 *byte
	n                    int // blocks of 16 samples, at least 1
	wN, wNW, wNE, wNN    int32
	round                int32
	_                    int32
	shift                uint64
}

// weighted16 is the loop of weighted for two-byte samples whose sums fit in 31 bits.
//
//go:noescape
func weighted16(s *weightState)

// weighted8 is the same for bytes.
//
//go:noescape
func weighted8(s *weightState)

// weightedFast does the samples from the second on in blocks of 16, and returns how many samples are done with
// the first one, or 0 if none is.
func weightedFast[T Unsigned](row, residuals, above, above2 []T, weights *Weights, round int64) int {
	highest := int64(^T(0))
	if !hasAVX2 || above2 == nil || highest > 1<<16 || highest < 0 || len(row) < 18 || weights.Shift > 30 {
		return 0
	}
	sum := round
	for _, weight := range weights.Of {
		sum += max(weight, -weight) * highest
	}
	if sum >= 1<<31 {
		return 0
	}
	state := weightState{n: (len(row) - 2) / 16, wN: int32(weights.Of[0]), wNW: int32(weights.Of[1]),
		wNE: int32(weights.Of[2]), wNN: int32(weights.Of[3]), round: int32(round), shift: uint64(weights.Shift)}
	first := func(s []T) *byte {
		bytes, _ := cast.Bytes(s)
		return &bytes[0]
	}
	state.dst, state.res, state.left = first(row[1:]), first(residuals[1:]), first(above)
	state.up, state.right, state.up2 = first(above[1:]), first(above[2:]), first(above2[1:])
	if highest > 1<<8 {
		weighted16(&state)
	} else {
		weighted8(&state)
	}
	return 1 + 16*state.n
}

//go:build amd64 && !purego && !twins

package kernel

import (
	"github.com/chaski-eo/chaski/internal/cast"
	"golang.org/x/sys/cpu"
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
func weightedFast[T Unsigned](d, r, up, up2 []T, w *Weights, round int64) int {
	highest := int64(^T(0))
	if !hasAVX2 || up2 == nil || highest > 1<<16 || highest < 0 || len(d) < 18 || w.Shift > 30 {
		return 0
	}
	sum := round
	for _, x := range w.Of {
		sum += max(x, -x) * highest
	}
	if sum >= 1<<31 {
		return 0
	}
	s := weightState{n: (len(d) - 2) / 16, wN: int32(w.Of[0]), wNW: int32(w.Of[1]), wNE: int32(w.Of[2]),
		wNN: int32(w.Of[3]), round: int32(round), shift: uint64(w.Shift)}
	first := func(s []T) *byte {
		b, _ := cast.Bytes(s)
		return &b[0]
	}
	s.dst, s.res, s.left = first(d[1:]), first(r[1:]), first(up)
	s.up, s.right, s.up2 = first(up[1:]), first(up[2:]), first(up2[1:])
	if highest > 1<<8 {
		weighted16(&s)
	} else {
		weighted8(&s)
	}
	return 1 + 16*s.n
}

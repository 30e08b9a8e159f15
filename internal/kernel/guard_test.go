package kernel

import (
	"math"
	"testing"

	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/tools/testkit/guard"
)

// floats views the memory at one end of a room as n numbers.
func floats(t *testing.T, r *guard.Room, back bool, n int) []float32 {
	f, ok := cast.Of[float32](r.At(back, 4*n))
	if !ok {
		t.Skip("no views in this build")
	}
	return f
}

// TestNothingOutsideIsTouched: no loop reads or writes outside of its arguments, whatever their
// length. Pages that fault lie at both ends of source and destination.
func TestNothingOutsideIsTouched(t *testing.T) {
	guard.Faults(t)
	from, to, third := guard.New(t, 1<<14), guard.New(t, 1<<14), guard.New(t, 1<<14)
	nan, _ := MatchValue(F32, math.NaN())
	for _, back := range []bool{false, true} {
		for n := range 301 {
			dst := floats(t, to, back, n)
			for _, num := range []Num{U8, U16, I16, F32, F16, BF16, U32, I32, U64, F64} {
				src := from.At(back, n*num.Size())
				Load(dst, src, num, 1)
				LoadAffine(dst, src, num, 1, 2, 3)
				StreamAffine(dst, src, num, 2, 3)
			}
			StreamEnd()
			Affine(dst, 2, 3)
			Clip(dst, -1, 1)
			src := floats(t, from, back, n)
			for _, num := range []Num{F16, BF16, U8, F32} {
				Store(to.At(back, n*num.Size()), src, num, 1)
			}
			valid := third.At(back, n)
			for size, m := range map[int]Match{1: MatchBits(U8, 3), 2: MatchBits(U16, 3), 4: nan} {
				Valid(valid, from.At(back, n*size), size, 1, &m)
			}
			zero, _ := MatchValue(F32, 0)
			Valid(valid, from.At(back, 4*n), 4, 1, &zero)
			for _, size := range []int{1, 2, 4, 8} {
				row := to.At(back, n*size)
				SwapBytes(row, size)
				for _, stride := range []int{1, 3, 6, 13} {
					pitch := n / stride * stride * size
					if pitch == 0 {
						continue
					}
					UndoHorizontal(row[:pitch], pitch, size, stride)
					UndoHorizontal(to.At(back, 2*pitch), pitch, size, stride)
					if size > 1 {
						UndoFloatPredictor(to.At(back, pitch), from.At(back, pitch), size, stride)
					}
				}
				for stride := 1; stride <= 6; stride++ {
					Copy(to.At(back, n*size), 1, from.At(back, max((n-1)*stride+1, 0)*size), stride, n, size)
				}
				Repeat(to.At(back, n*size), 1, make([]byte, size), n)
			}
		}
	}
}

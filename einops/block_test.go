package einops

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/format/dtype"
)

// TestBlocksThatAreTooShort: a block is refused if a sample of the box lies outside of its data, before the first one
// or behind the last one, and only then.
func TestBlocksThatAreTooShort(t *testing.T) {
	convert, err := NewConverter(Convert{From: dtype.Uint16, To: dtype.Uint16})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		side, stride := rapid.IntRange(1, 3), rapid.IntRange(-4, 4)
		blk := Block{DType: dtype.Uint16, Data: make([]byte, 2*rapid.IntRange(1, 12).Draw(t, "samples")),
			StrideB: stride.Draw(t, "bands"), StrideY: stride.Draw(t, "rows"), StrideX: stride.Draw(t, "columns"),
			First: rapid.IntRange(0, 11).Draw(t, "first")}
		box := Box{B1: side.Draw(t, "b"), Y1: side.Draw(t, "y"), X1: side.Draw(t, "x")}
		outside := false
		for b := range box.B1 {
			for y := range box.Y1 {
				for x := range box.X1 {
					i := blk.First + b*blk.StrideB + y*blk.StrideY + x*blk.StrideX
					outside = outside || i < 0 || i >= len(blk.Data)/2
				}
			}
		}
		defer func() {
			if refused := recover() != nil; refused != outside {
				t.Fatalf("%+v of %+v is refused: %v", box, blk, refused)
			}
		}()
		checkBlock(convert, box, blk)
	})
}

// TestStridesOfHostileBlocks: a stride whose products overflow to the place of a sample is refused as any other that
// leads out of the block. The stride of an axis of length 1 does not count.
func TestStridesOfHostileBlocks(t *testing.T) {
	convert, err := NewConverter(Convert{From: dtype.Uint8, To: dtype.Uint8})
	if err != nil {
		t.Fatal(err)
	}
	const quarter = math.MaxInt/2 + 1 // 4 times that is 0
	for _, length := range []int{1, 3, 5} {
		for _, stride := range []int{-quarter, quarter, math.MinInt, -math.MaxInt, math.MaxInt, -10, 10} {
			for axis := range 3 {
				blk := Block{DType: dtype.Uint8, Data: make([]byte, 9), First: 4}
				*[]*int{&blk.StrideB, &blk.StrideY, &blk.StrideX}[axis] = stride
				box := Box{B1: 1, Y1: 1, X1: 1}
				*[]*int{&box.B1, &box.Y1, &box.X1}[axis] = length
				func() {
					defer func() {
						if refused := recover(); (refused == "einops: block too short") != (length > 1) {
							t.Errorf("%+v of %+v: %v", box, blk, refused)
						}
					}()
					checkBlock(convert, box, blk)
				}()
			}
		}
	}
}

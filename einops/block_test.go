package einops

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/format/chunk"
)

// TestBlocksThatAreTooShort: a block is refused if a sample of the box lies outside of its data, before the first one
// or behind the last one, and only then.
func TestBlocksThatAreTooShort(t *testing.T) {
	convert, err := NewConverter(Convert{From: chunk.Uint16, To: chunk.Uint16})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		side, stride := rapid.IntRange(1, 3), rapid.IntRange(-4, 4)
		blk := Block{DType: chunk.Uint16, Data: make([]byte, 2*rapid.IntRange(1, 12).Draw(t, "samples")),
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

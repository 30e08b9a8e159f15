package chunk

import (
	"context"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// noArray is an array that is never read.
type noArray struct{}

func (noArray) Open() BlockReader                                 { return noArray{} }
func (noArray) ReadBox(context.Context, []byte, int64, Box) error { return nil }
func blocksIndex() Index {
	return Index{
		Bands: 3, Height: 50, Width: 40, ChunkB: 1, ChunkH: 16, ChunkW: 16, DType: Uint8,
		Predictor: NoPredictor, CutEdge: true, CutRight: true, Blocks: &Blocks{Array: noArray{}},
	}
}

// TestBlocksNeedNoRanges: an index that is read in blocks is valid without ranges, and may have
// none, but a mask with some: a file beside it.
func TestBlocksNeedNoRanges(t *testing.T) {
	x := blocksIndex()
	if err := x.Validate(-1, 1<<20); err != nil {
		t.Error(err)
	}
	if err := x.Validate(-1, 100); fault.KindOf(err) != fault.Limit {
		t.Errorf("chunks over the limit: %v", err)
	}
	with := x
	for _, n := range []int{1, 36} {
		with.Ranges = make([]Range, n)
		if err := with.Validate(-1, 1<<20); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("with %d ranges: %v", n, err)
		}
	}
	with = x
	with.Mask = &Index{
		Bands: 1, Height: 50, Width: 40, ChunkB: 1, ChunkH: 50, ChunkW: 40,
		DType: Uint8, Predictor: NoPredictor, Ranges: make([]Range, 1),
	}
	if err := with.Validate(-1, 1<<20); err != nil {
		t.Errorf("with a mask: %v", err)
	}
}

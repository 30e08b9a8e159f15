package chunk

import (
	"context"
	"slices"
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
	with.Ranges = make([]Range, 36)
	if err := with.Validate(-1, 1<<20); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("with ranges: %v", err)
	}
	with = x
	with.Mask = &Index{
		Bands: 1, Height: 50, Width: 40, ChunkB: 1, ChunkH: 50, ChunkW: 40,
		DType: Uint8, Predictor: NoPredictor, Ranges: make([]Range, 1),
	}
	if err := with.Validate(-1, 1<<20); err != nil {
		t.Errorf("with a mask: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a blob of it")
		}
	}()
	x.AppendBlob(nil)
}

// TestPlanOfBlocks: a plan of blocks has the chunks of a plan of ranges, computed by hand.
func TestPlanOfBlocks(t *testing.T) {
	x := blocksIndex()
	var p RunPlan
	p.Reset(&x, Box{B0: 0, B1: 3, Y0: 10, Y1: 17, X0: 33, X1: 40}, []int{2, 0}, 0, 1<<20)
	// Rows 0 and 1 of chunks, column 2 of 3: chunks (0*3+2)*3 + band, and (1*3+2)*3 + band.
	if want := []int{6, 8, 15, 17}; !slices.Equal(p.Blocks, want) || len(p.Runs)+len(p.Sparse) > 0 {
		t.Errorf("%v, want %v; runs %v, sparse %v", p.Blocks, want, p.Runs, p.Sparse)
	}
	x.Blocks.Order = [3]uint8{0, 2, 1} // bands slowest, rows fastest
	p.Reset(&x, Box{B0: 0, B1: 3, Y0: 10, Y1: 17, X0: 31, X1: 40}, []int{2, 0}, 0, 1<<20)
	if want := []int{3, 12, 6, 15, 5, 14, 8, 17}; !slices.Equal(p.Blocks, want) {
		t.Errorf("%v, want %v", p.Blocks, want)
	}
	p.Reset(&x, Box{}, nil, 0, 1<<20)
	if len(p.Blocks) > 0 {
		t.Errorf("of nothing: %v", p.Blocks)
	}
}

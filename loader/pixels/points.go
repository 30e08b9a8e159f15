package pixels

import (
	"context"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/tiledb"
)

// PointReader returns this worker's reader of an array of points. It shares the maxArrays readers of
// the worker with arrays of images.
func (r *Reader) PointReader(a *tiledb.Array) *tiledb.Reader {
	return r.reader(PointArray{a}).(pointReader).Reader
}

// PointArray is an array of points as a chunk.BlockArray, so that a Reader keeps the readers of points
// and of images in one list, with one bound.
type PointArray struct{ Array *tiledb.Array }

// Open implements chunk.BlockArray.
func (p PointArray) Open() chunk.BlockReader { return pointReader{p.Array.NewReader()} }

// Plan implements chunk.BlockPlanner.
func (p PointArray) Plan() chunk.BlockPlan { return PointPlan{p.Array.NewDryRun()} }

// PointPlan is the dry run of a reader of points: it lists the reads without making them.
type PointPlan struct{ *tiledb.DryRun }

// PlanBox implements chunk.BlockPlan. It always fails, because points have no image to take a box of.
func (PointPlan) PlanBox(context.Context, int64, chunk.Box, func(string, int64, int64)) (bool, error) {
	return false, fault.New(fault.Unsupported, "array", fault.NoOffset, "points are not an image")
}

// pointReader is a reader of points as a chunk.BlockReader.
type pointReader struct{ *tiledb.Reader }

// SetTurn implements chunk.TurnTaker.
func (r pointReader) SetTurn(turn func() (done func())) { r.Turn = turn }

// ReadBox implements chunk.BlockReader. It always fails, because points have no image to read a box of.
func (pointReader) ReadBox(context.Context, []byte, int64, chunk.Box) error {
	return fault.New(fault.Unsupported, "array", fault.NoOffset, "points are not an image")
}

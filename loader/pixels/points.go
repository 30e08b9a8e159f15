package pixels

import (
	"context"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/tiledb"
)

// PointReader returns this worker's reader of an array of points.
func (r *Reader) PointReader(a *tiledb.Array) *tiledb.Reader {
	return r.reader(PointArray{a}).(pointReader).Reader
}

// PointArray makes a worker's readers of points ones of its arrays.
type PointArray struct{ Array *tiledb.Array }

func (p PointArray) Open() chunk.BlockReader { return pointReader{p.Array.NewReader()} }

// Plan implements chunk.BlockPlanner.
func (p PointArray) Plan() chunk.BlockPlan { return PointPlan{p.Array.NewDryRun()} }

// PointPlan foresees what a pointReader reads.
type PointPlan struct{ *tiledb.DryRun }

// PlanBox implements chunk.BlockPlan: there are no images.
func (PointPlan) PlanBox(context.Context, int64, chunk.Box, func(string, int64, int64)) (bool, error) {
	return false, fault.New(fault.Unsupported, "array", fault.NoOffset, "points are no image")
}

type pointReader struct{ *tiledb.Reader }

// SetTurn implements chunk.TurnTaker.
func (r pointReader) SetTurn(turn func() (done func())) { r.Turn = turn }

// ReadBox implements chunk.BlockReader: there are no images.
func (pointReader) ReadBox(context.Context, []byte, int64, chunk.Box) error {
	return fault.New(fault.Unsupported, "array", fault.NoOffset, "points are no image")
}

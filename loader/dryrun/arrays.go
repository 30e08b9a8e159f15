package dryrun

import (
	"context"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
)

// Arrays plans the reads of arrays by a worker, without reading. It holds plans where a pixels.Reader
// holds readers, and as many: the reads of a reader depend on its earlier ones. The zero value is a
// worker that has read nothing.
type Arrays struct {
	// Held is the largest memory that those readers hold at a time, in bytes.
	Held  int64
	plans pixels.PerArray[chunk.BlockPlan]
}

// hold records the memory of the readers.
func (f *Arrays) hold() {
	n := int64(0)
	for _, p := range f.plans {
		n += p.Value.Held()
	}
	f.Held = max(f.Held, n)
}

// Blocks calls read for every byte range that is read for some chunks of an image of an array. It
// reports false if the reads are unknown: they depend on the data, or the array has no plans.
func (f *Arrays) Blocks(ctx context.Context, asset *Asset, chunks []Chunk,
	read func(file string, off, n int64)) (exact bool, err error) {
	blocks := asset.blocks
	a, ok := blocks.Array.(chunk.BlockPlanner)
	if !ok {
		return false, nil
	}
	defer f.hold()
	plan := f.plans.Get(a, a.Plan)
	// As in a run, the array must know all boxes of the window first, since it joins reads of
	// adjacent tiles.
	if prefetcher, ok := plan.(chunk.Prefetcher); ok {
		boxes := make([]chunk.Box, len(chunks))
		for k, c := range chunks {
			boxes[k] = c.box
		}
		if err := prefetcher.Ahead(ctx, blocks.Image, boxes); err != nil {
			return false, err
		}
	}
	exact = true
	for _, c := range chunks {
		sure, err := plan.PlanBox(ctx, blocks.Image, c.box, read)
		if err != nil {
			return false, err
		}
		exact = exact && sure
	}
	return exact, nil
}

// Points is Blocks for the points of a row. It sets Exact.
func (f *Arrays) Points(ctx context.Context, p *Points, read func(file string, off, n int64)) (err error) {
	if p.box == nil {
		return nil
	}
	defer f.hold()
	points := pixels.PointArray{Array: p.array}
	plan := f.plans.Get(points, points.Plan).(pixels.PointPlan)
	p.Exact, err = plan.Sparse(ctx, p.attr, p.box, read)
	return fault.WithFile(err, p.Array)
}

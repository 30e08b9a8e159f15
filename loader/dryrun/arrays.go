package dryrun

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
)

// Arrays plans the reads of arrays by a worker, without reading. It holds plans where a
// pixels.Reader holds readers. The zero value is a worker that has read nothing.
type Arrays struct {
	// Held is the largest memory that those readers hold at a time, in bytes.
	Held   int64
	arrays []plannedArray // the last one used comes first
}

// plannedArray is the plan of a worker's reader of an array.
type plannedArray struct {
	array chunk.BlockPlanner
	plan  chunk.BlockPlan
}

// plan returns the plan of an array. It keeps as many as a pixels.Reader keeps readers and drops
// the same ones, because the reads of a reader depend on its earlier ones.
func (f *Arrays) plan(a chunk.BlockPlanner) chunk.BlockPlan {
	k := slices.IndexFunc(f.arrays, func(p plannedArray) bool { return p.array == a })
	if k < 0 {
		f.arrays = slices.Insert(f.arrays[:min(len(f.arrays), pixels.MaxArrays-1)], 0, plannedArray{a, a.Plan()})
		return f.arrays[0].plan
	}
	found := f.arrays[k]
	copy(f.arrays[1:], f.arrays[:k])
	f.arrays[0] = found
	return found.plan
}

// hold records the memory of the readers.
func (f *Arrays) hold() {
	n := int64(0)
	for _, p := range f.arrays {
		n += p.plan.Held()
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
	plan := f.plan(a)
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
	plan := f.plan(pixels.PointArray{Array: p.array}).(pixels.PointPlan)
	p.Exact, err = plan.Sparse(ctx, p.attr, p.box, read)
	return fault.WithFile(err, p.Array)
}

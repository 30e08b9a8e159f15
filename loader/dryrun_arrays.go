package loader

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
)

// arrayDryRun plans what a worker reads of arrays, without reading it. It holds plans where a
// pixels.Reader holds readers.
type arrayDryRun struct {
	arrays []plannedArray // the last one used comes first
	held   int64          // the largest memory that those readers hold at a time, in bytes
}

// plannedArray is the plan of a worker's reader of an array.
type plannedArray struct {
	array chunk.BlockPlanner
	plan  chunk.BlockPlan
}

func newArrayDryRun() *arrayDryRun { return &arrayDryRun{} }

// plan returns the plan of an array. It keeps as many as a pixels.Reader keeps readers and drops
// the same ones, because what a reader reads depends on what it has read before.
func (f *arrayDryRun) plan(a chunk.BlockPlanner) chunk.BlockPlan {
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

// hold notes the memory of the readers.
func (f *arrayDryRun) hold() {
	n := int64(0)
	for _, p := range f.arrays {
		n += p.plan.Held()
	}
	f.held = max(f.held, n)
}

// blocks calls read for every byte range that is read for some chunks of an image of an array. It
// reports false if the reads are unknown: they depend on the data, or the array has no plans.
func (f *arrayDryRun) blocks(ctx context.Context, b *chunk.Blocks, chunks []ChunkPlan,
	read func(file string, off, n int64)) (exact bool, err error) {
	a, ok := b.Array.(chunk.BlockPlanner)
	if !ok {
		return false, nil
	}
	defer f.hold()
	plan := f.plan(a)
	// As in a run, the array must know all boxes of the window first, since it joins reads of
	// adjacent tiles.
	if t, ok := plan.(chunk.Prefetcher); ok {
		boxes := make([]chunk.Box, len(chunks))
		for k, c := range chunks {
			boxes[k] = c.box
		}
		if err := t.Ahead(ctx, b.Image, boxes); err != nil {
			return false, err
		}
	}
	exact = true
	for _, c := range chunks {
		sure, err := plan.PlanBox(ctx, b.Image, c.box, read)
		if err != nil {
			return false, err
		}
		exact = exact && sure
	}
	return exact, nil
}

// points is blocks for the points of a row. It sets Exact.
func (f *arrayDryRun) points(ctx context.Context, p *PointsPlan, read func(file string, off, n int64)) (err error) {
	if p.box == nil {
		return nil
	}
	defer f.hold()
	plan := f.plan(pixels.PointArray{Array: p.field.array}).(pixels.PointPlan)
	p.Exact, err = plan.Sparse(ctx, p.field.attr, p.box, read)
	return fault.WithFile(err, p.Array)
}

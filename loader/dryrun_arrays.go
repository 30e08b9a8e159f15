package loader

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/pixels"
)

// arrayDryRun says what a worker reads of arrays, without reading it: it has plans where a pixels.Reader has readers.
type arrayDryRun struct {
	arrays []plannedArray // the last used in front
	held   int64          // the most memory of those readers
}

// plannedArray is the plan of a worker's reader of an array.
type plannedArray struct {
	array chunk.BlockPlanner
	plan  chunk.BlockPlan
}

func newArrayDryRun() *arrayDryRun { return &arrayDryRun{} }

// plan mirrors the reader of pixels.Reader.
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

// blocks calls read for every range of a file that is read for some chunks of an image of an array. It is not exact where that
// depends on what is read, and of an array that has no plans, whose reads are unknown.
func (f *arrayDryRun) blocks(ctx context.Context, b *chunk.Blocks, chunks []ChunkPlan, read func(file string, off, n int64)) (exact bool, err error) {
	a, ok := b.Array.(chunk.BlockPlanner)
	if !ok {
		return false, nil
	}
	defer f.hold()
	plan := f.plan(a)
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

// points is blocks for the points of a row, and sets Exact.
func (f *arrayDryRun) points(ctx context.Context, p *PointsPlan, read func(file string, off, n int64)) (err error) {
	if p.box == nil {
		return nil
	}
	defer f.hold()
	plan := f.plan(pixels.PointArray{Array: p.field.array}).(pixels.PointPlan)
	p.Exact, err = plan.Sparse(ctx, p.field.attr, p.box, read)
	return fault.WithFile(err, p.Array)
}

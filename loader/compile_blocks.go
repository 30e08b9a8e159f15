package loader

import (
	"cmp"
	"context"
	"slices"

	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
)

const (
	// blockBytes is the default of samples in a block of files, in bytes: a range of this size is read in about the
	// time in which a store answers (20 ms at 200 MB/s).
	blockBytes = 4 << 20
	// poolBlocks is the default of blocks in a pool for each sample of a batch: of R samples each, 8 R batches in a row
	// have samples of the same blocks, an eighth of each.
	poolBlocks = 8
)

// blocks returns the blocks of the order of some items of the dataset, whose samples are counted; nil without blocks.
func (d *dataset) blocks(e *Engine, one *shuffle.Dataset) *shuffle.Blocks {
	wanted := e.spec.Blocks
	if wanted == nil {
		return nil
	}
	each := int64(max(one.Sampler.PerItem, 1))
	if items := one.Sampler.Runs.Items(); items > 0 { // items of several sizes have so many on average
		each = max(one.Sampler.Runs.Len()/items, 1)
	}
	rows := cmp.Or(wanted.Rows, d.together)
	if wanted.Rows == 0 && d.together <= 1 {
		rows = max(blockBytes/d.sampleBytes(), 1)
	}
	pool := cmp.Or(wanted.Pool, poolBlocks*e.spec.BatchSize)
	if len(e.spec.Sources) == 0 {
		filled := *wanted
		filled.Rows, filled.Pool = rows, pool
		d.blockSpec = &filled
	}
	// Larger ones are the same order, and their products might not fit.
	items := max(one.Len(), 1)
	rows = min(rows, items)
	blocks := (items-1)/rows + 1
	lanes := num.Common(pool, e.spec.BatchSize)
	ofLane := max(blocks/int64(lanes), 1)
	pool = int(min(int64(pool/lanes), blocks))
	share := int64(e.spec.BatchSize / lanes)
	d.variance = max(d.variance, batchVariance(share, int64(pool), ofLane))
	held := int(min(int64(pool)*int64(lanes), blocks))
	d.pool += upTo(maxTileBytes, int(rows), held, int(d.sampleBytes())) // strata fill pools at the same time
	return &shuffle.Blocks{Samples: rows * each, Pool: pool, Lanes: lanes}
}

// batchVariance returns the variance of a mean over a batch whose rows are sorted by it, as a multiple of the variance
// after a shuffle of all. The batch has B samples of each pool, P of n blocks, and their mean is the mean of the pool:
// 1 + (B-1)/P · (n-P)/(n-1).
func batchVariance(batch, pool, blocks int64) float64 {
	if pool >= blocks {
		return 1
	}
	return 1 + float64(batch-1)/float64(pool)*float64(blocks-pool)/float64(blocks-1)
}

// newBlockSpans returns the spans of an engine, or nil if it reads no blocks of remote files.
func (e *Engine) newBlockSpans(keep bool) *blockSpans {
	if !e.remote() || !slices.ContainsFunc(e.sets, (*dataset).spans) {
		return nil
	}
	bound := e.mayKeep(procs.Memory() / keptShare)
	if !keep {
		bound = e.options.MemoryBytes / plannedShare
		e.options.MemoryBytes -= bound
	}
	s := e.spansWithin(bound)
	s.budget = e.options.Budget
	s.loads = func(leaf int) bool { return e.leaves[leaf].table.Array }
	s.leave = s.budget.Join(s)
	return s
}

// spansWithin returns the spans of an engine, for so many bytes.
func (e *Engine) spansWithin(bound int64) *blockSpans {
	return &blockSpans{plan: e.plan, ranges: e.rangesOf, opener: e.options.Opener, bound: bound,
		loads: func(int) bool { return false },
		decoded: func(leaf int) bool {
			d := e.leaves[leaf]
			return d.table.Array && e.tiles != nil && d.pool <= e.tiles.Bound
		},
		blocks: map[shuffle.Block]*heldBlock{}, active: map[shuffle.Block]int{}, spans: map[string][]*span{}}
}

// spans reports whether samples of blocks are read by spans: those that are read whole.
func (d *dataset) spans() bool {
	if d.pool == 0 || !d.kind.Whole || d.views != nil {
		return false
	}
	return d.table.Array || slices.ContainsFunc(d.rasters, func(r *pixels.Raster) bool {
		return d.table.Fields[r.TableColumn].Extent() != nil
	})
}

// rangesOf returns what a sample needs of remote files, as far as it is known without their headers.
func (e *Engine) rangesOf(ctx context.Context, draw *shuffle.Draw) (out []source.Extent) {
	d := e.set(draw)
	for field, step := range d.images() {
		row := e.rowRead(d, draw, field, step)
		if row < 0 {
			continue
		}
		if extentOf := d.table.Fields[d.column(field, step)].Extent(); extentOf != nil {
			if extent, ok := extentOf(ctx, row); ok {
				out = append(out, extent)
			}
			continue
		}
		if !d.table.Array {
			continue
		}
		_ = e.eachRead(ctx, d, draw, field, step, row, func(rd *rasterRead) error { // a worker reports what is wrong
			reader := pixels.NewDryReader(e.options)
			reader.Finds = true
			err := reader.Read(ctx, rd.asset, rd.in, rd.bands.Picked, nil)
			for _, run := range reader.Runs {
				out = append(out, source.Extent{URI: run.File, Range: source.Range{Off: run.Off, Len: run.Len}})
			}
			return err
		})
	}
	return out
}

// tellOrder logs what the order of samples costs where chunks hold several.
func (e *Engine) tellOrder() {
	kept := int64(0)
	if e.tiles != nil {
		kept = e.tiles.Bound
	}
	for _, d := range e.sets {
		rows := d.rows.Len(d.table.N)
		switch {
		case e.spans != nil && d.spans():
			if d.pool > e.spans.bound+kept {
				e.options.Logger.Warn("a pool of blocks is larger than the memory for it: samples of the blocks that "+
					"have no room are read one by one", "pool bytes", d.pool, "memory bytes", e.spans.bound, "source",
					d.source.Source)
			}
		case d.pool > 0 && d.together > 1 && d.pool > kept:
			e.options.Logger.Warn("a pool of blocks is larger than the memory that keeps chunks: chunks are decoded "+
				"more than once", "pool bytes", d.pool, "memory bytes", kept, "source", d.source.Source)
		case d.pool == 0 && e.spec.Shuffle && d.together > 1 && rows > kept/d.sampleBytes():
			e.options.Logger.Warn("a chunk holds several samples, and a shuffle of all decodes it anew for most of "+
				"them: shuffle=chaski.Blocks() decodes it once a pool", "samples a chunk", d.together, "source",
				d.source.Source)
		}
	}
}

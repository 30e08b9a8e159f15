package loader

import (
	"cmp"

	"github.com/chaski-eo/chaski/shuffle"
)

const (
	// blockBytes is the default of samples in a block of files, in bytes: a range of this size is read in about the
	// time in which a store answers (20 ms at 200 MB/s).
	blockBytes = 4 << 20
	// poolBlocks is the default of blocks in a pool for each sample of a batch: 1 + (B-1)/(8 B) is below 1.13.
	poolBlocks = 8
	// maxPool is the largest default of blocks in a pool, as many as a batch may have samples.
	maxPool = 1 << 20
)

// blocks returns the blocks of the order of some items of the dataset, whose samples are counted; nil without blocks.
func (d *dataset) blocks(e *Engine, one *shuffle.Dataset) *shuffle.Blocks {
	asked := e.spec.Blocks
	if asked == nil {
		return nil
	}
	each := int64(max(one.Sampler.PerItem, 1))
	if items := one.Sampler.Runs.Items(); items > 0 { // items of several sizes have so many on average
		each = max(one.Sampler.Runs.Len()/items, 1)
	}
	rows := cmp.Or(asked.Rows, d.together)
	if asked.Rows == 0 && d.together <= 1 {
		rows = max(blockBytes/d.sampleBytes(), 1)
	}
	pool := cmp.Or(asked.Pool, min(poolBlocks*e.spec.BatchSize, maxPool))
	if len(e.spec.Sources) == 0 {
		filled := *asked
		filled.Rows, filled.Pool = rows, pool
		d.filled = &filled
	}
	// Larger ones are the same order, and their products might not fit.
	items := max(one.Len(), 1)
	rows = min(rows, items)
	pool = int(min(int64(pool), (items-1)/rows+1))
	d.pool += upTo(maxTileBytes, int(rows), pool, int(d.sampleBytes())) // strata fill pools at the same time
	return &shuffle.Blocks{Samples: rows * each, Pool: pool}
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

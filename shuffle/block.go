package shuffle

import "iter"

// Block is a block of samples of a dataset in an epoch, and the pool that its first sample is shuffled in.
type Block struct {
	Dataset    int
	Epoch      uint64
	Number     int64
	Lane, Pool int64 // the lane of Blocks, and the pool among the lane's own
}

// Block returns the block that the sample of a draw is read with. ok is false for one of a dataset without blocks.
func (pl *Plan) Block(d *Draw) (b Block, ok bool) {
	lf := &pl.leaves[d.Dataset]
	if lf.Blocks == nil {
		return b, false
	}
	o := lf.Blocks.of(lf.seed, d.Epoch, lf.n, pl.shuffle)
	number := d.Sample / lf.Blocks.Samples
	lane, pool := o.pool(o.place(o.order.Position(number) * lf.Blocks.Samples))
	return Block{Dataset: d.Dataset, Epoch: d.Epoch, Number: number, Lane: lane, Pool: pool}, true
}

// InBlock visits the samples of a block in their order, as draws whose positions are not set.
func (pl *Plan) InBlock(b Block) iter.Seq[Draw] {
	return func(yield func(Draw) bool) {
		lf := &pl.leaves[b.Dataset]
		first := b.Number * lf.Blocks.Samples
		for sample := first; sample < min(first+lf.Blocks.Samples, lf.n); sample++ {
			draw := Draw{Dataset: b.Dataset, Seed: lf.seed, Epoch: b.Epoch, Sample: sample}
			lf.fill(&draw)
			if !yield(draw) {
				return
			}
		}
	}
}

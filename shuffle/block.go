package shuffle

import "iter"

// Block is a block of samples of a dataset in an epoch, and the pool that it is shuffled in.
type Block struct {
	Dataset      int
	Epoch        uint64
	Number, Pool int64
}

// Block returns the block that the sample of a draw is read with. ok is false for one of a dataset without blocks.
func (pl *Plan) Block(d *Draw) (b Block, ok bool) {
	lf := &pl.leaves[d.Dataset]
	if lf.Blocks == nil {
		return b, false
	}
	order := NewOrder(lf.seed, d.Epoch, (lf.n-1)/lf.Blocks.Samples+1, pl.shuffle)
	number := d.Sample / lf.Blocks.Samples
	return Block{Dataset: d.Dataset, Epoch: d.Epoch, Number: number,
		Pool: order.Position(number) / int64(lf.Blocks.Pool)}, true
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

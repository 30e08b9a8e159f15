package shuffle

import (
	"fmt"

	"github.com/chaski-eo/chaski/internal/splitmix"
)

// Blocks is an order in which a stored chunk with many samples is read once. The samples of a dataset are cut into
// blocks of Samples that follow each other; the last one may be shorter. The blocks of an epoch are permuted,
// and the samples of Pool blocks that follow each other are permuted together, one by one.
//
// A batch of B samples then comes from about B blocks if a pool has many more. On rows that are sorted by a class,
// the variance of a mean over a batch is about 1 + (B-1)/Pool times the variance in a full permutation.
type Blocks struct {
	Samples int64 // of a block
	Pool    int   // blocks that are shuffled together
}

func (b *Blocks) check() error {
	if b.Samples < 1 || b.Samples > MaxSamples || b.Pool < 1 || int64(b.Pool) > MaxSamples/b.Samples {
		return fmt.Errorf("blocks of %d samples in pools of %d", b.Samples, b.Pool)
	}
	return nil
}

// PoolLen returns the samples of a pool of whole blocks.
func (b *Blocks) PoolLen() int64 { return b.Samples * int64(b.Pool) }

// at returns the sample at position p of an epoch of n samples.
func (b *Blocks) at(seed, epoch uint64, n, p int64, shuffle bool) int64 {
	blocks := (n-1)/b.Samples + 1
	order := NewOrder(seed, epoch, blocks, shuffle)
	lacks := blocks*b.Samples - n // samples of the last block
	short := blocks               // where the last block comes, if it is short
	if lacks > 0 {
		short = order.Position(blocks - 1)
	}
	// The positions behind a short block are those that they would be if it were whole, less what it lacks.
	whole := p
	if p >= (short+1)*b.Samples-lacks {
		whole += lacks
	}
	pool := whole / b.PoolLen()
	first := pool * int64(b.Pool)
	in, count := whole-first*b.Samples, min(int64(b.Pool), blocks-first)*b.Samples
	end := count // of the short block in the pool
	if first <= short && short < first+int64(b.Pool) {
		in -= whole - p
		count -= lacks
		end = (short-first+1)*b.Samples - lacks
	}
	if shuffle {
		within := permutation(splitmix.Hash(seed, domainPool, epoch, uint64(pool)), count)
		in = within.At(in)
	}
	if in >= end {
		in += lacks
	}
	return order.At(first+in/b.Samples)*b.Samples + in%b.Samples
}

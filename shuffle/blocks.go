package shuffle

import (
	"fmt"

	"github.com/chaski-eo/chaski/internal/splitmix"
)

// Blocks is an order in which a stored chunk with many samples is read once. The samples of a dataset are cut into
// blocks of Samples that follow each other; the last one may be shorter. The blocks of an epoch are permuted,
// and the samples of Pool blocks that follow each other are permuted together, one by one.
//
// Position p is in lane p mod Lanes. Each lane has pools of its own, of blocks that no other lane has but the two at
// its ends. If Lanes divides the batch, row k of every batch is in lane k mod Lanes. A rank has the same rows of every
// batch, so it reads blocks of its own if the number of ranks divides Lanes, or Lanes is the batch.
//
// A batch of B samples has B/Lanes of each lane. On rows that are sorted by a class, the variance of a mean over a
// batch is at most about 1 + (B/Lanes-1)/Pool times the variance in a full permutation.
type Blocks struct {
	Samples int64 // of a block
	Pool    int   // blocks that are shuffled together
	Lanes   int   // 0 for one
}

func (b *Blocks) check() error {
	if b.Samples < 1 || b.Samples > MaxSamples || b.Pool < 1 || int64(b.Pool) > MaxSamples/b.Samples ||
		b.Lanes < 0 || int64(b.Lanes) > MaxSamples {
		return fmt.Errorf("blocks of %d samples in pools of %d, in %d lanes", b.Samples, b.Pool, b.Lanes)
	}
	return nil
}

// PoolLen returns the samples of a pool of whole blocks.
func (b *Blocks) PoolLen() int64 { return b.Samples * int64(b.Pool) }

// blockOrder is the blocks of an epoch one after another. A place is the index of a sample in it, and a whole place
// the index that it would have if the last block were not shorter.
type blockOrder struct {
	*Blocks
	order Order
	n     int64
	lacks int64 // samples of the last block
	gap   int64 // the place where they would be
}

// of returns the order of the blocks of n samples.
func (b *Blocks) of(seed, epoch uint64, n int64, shuffle bool) blockOrder {
	blocks := (n-1)/b.Samples + 1
	o := blockOrder{Blocks: b, order: NewOrder(seed, epoch, blocks, shuffle), n: n, lacks: blocks*b.Samples - n, gap: n}
	if o.lacks > 0 {
		o.gap = (o.order.Position(blocks-1)+1)*b.Samples - o.lacks
	}
	return o
}

// wholePlace returns the whole place of a place.
func (o *blockOrder) wholePlace(place int64) int64 {
	if place >= o.gap {
		place += o.lacks
	}
	return place
}

// place returns the place of a whole place, or the one behind the gap.
func (o *blockOrder) place(whole int64) int64 {
	if whole >= o.gap {
		whole = max(whole-o.lacks, o.gap)
	}
	return whole
}

// lanes returns the number of lanes.
func (b *Blocks) lanes() int64 { return max(int64(b.Lanes), 1) }

// first returns the first place of a lane. The numbers of places of two lanes differ by at most one.
func (o *blockOrder) first(lane int64) int64 {
	lanes := o.lanes()
	return lane*(o.n/lanes) + min(lane, o.n%lanes)
}

// start returns the whole place where the first pool of a lane starts: at a block, which may begin in the lane
// before it.
func (o *blockOrder) start(lane int64) int64 {
	whole := o.wholePlace(o.first(lane))
	return whole - whole%o.Samples
}

// pool returns the lane of a place, and the number of its pool in the lane.
func (o *blockOrder) pool(place int64) (lane, pool int64) {
	lanes := o.lanes()
	each, longer := o.n/lanes, o.n%lanes // so many lanes have one more
	if lane = place / (each + 1); lane >= longer {
		lane = longer + (place-longer*(each+1))/each
	}
	return lane, (o.wholePlace(place) - o.start(lane)) / o.PoolLen()
}

// at returns the sample at position p of an epoch of n samples.
func (b *Blocks) at(seed, epoch uint64, n, p int64, shuffle bool) int64 {
	o := b.of(seed, epoch, n, shuffle)
	lanes := b.lanes()
	lane := p % lanes
	first, end := o.first(lane), o.first(lane+1)
	place := first + p/lanes
	if shuffle {
		start := o.start(lane)
		pool := (o.wholePlace(place) - start) / b.PoolLen()
		first = max(o.place(start+pool*b.PoolLen()), first)
		end = min(o.place(start+(pool+1)*b.PoolLen()), end)
		shuffled := permutation(splitmix.Hash(seed, domainPool, epoch, uint64(pool*lanes+lane)), end-first)
		place = first + shuffled.At(place-first)
	}
	whole := o.wholePlace(place)
	return o.order.At(whole/b.Samples)*b.Samples + whole%b.Samples
}

package shuffle

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/internal/splitmix"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// RowWeights draws samples, or items, by weight in O(log n) time. It holds 8 bytes for each 256 weights, and reads the
// weights themselves where they lie. It is safe for concurrent use if its reader is.
type RowWeights struct {
	n     int64
	scale float64  // a power of two: see whole
	sums  []uint64 // sums[i] is the whole weight of the blocks 0 to i
	read  ReadWeights
}

// ReadWeights fills to with weights from number first on, as float32 in little-endian order.
type ReadWeights func(ctx context.Context, to []byte, first int64) error

const (
	// weightBlock weights share a sum: one draw reads 1 KiB, and 10^8 weights have 3 MB of sums.
	weightBlock = 256
	// weightBits is the bits of the largest whole weight, unless there are over 2^26 weights.
	weightBits = 36
	// WeightPiece weights are read at a time: a whole number of blocks, and 1 MiB, which stays in a processor's cache.
	WeightPiece = 1 << 18
)

// NewRowWeights reads n weights once for their largest, and once more for their sums, by some workers at a time. see,
// if it is not nil, gets each piece of WeightPiece weights of the first walk by its number, from several workers at a
// time. A weight that is negative, infinite or not a number is an error, and so are weights that are all 0.
func NewRowWeights(ctx context.Context, n int64, workers int, read ReadWeights,
	see func(piece int64, weights []byte)) (*RowWeights, error) {
	w := &RowWeights{n: n, read: read, sums: make([]uint64, (n-1)/weightBlock+1)}
	pieces := (n-1)/WeightPiece + 1
	walk := func(visit func(piece int64, weights []byte) error) error {
		return each.Share(ctx, each.Numbers(pieces), int(min(int64(workers), pieces)),
			func(ctx context.Context, _ int, numbers iter.Seq[int64]) error {
				buffer := make([]byte, 4*min(n, WeightPiece))
				for i := range numbers {
					weights := buffer[:4*min(n-i*WeightPiece, WeightPiece)]
					if err := read(ctx, weights, i*WeightPiece); err != nil {
						return err
					}
					if err := visit(i, weights); err != nil {
						return err
					}
				}
				return nil
			})
	}
	largest := make([]float32, pieces)
	err := walk(func(i int64, weights []byte) (err error) {
		if see != nil {
			see(i, weights)
		}
		largest[i], err = largestOf(weights, i*WeightPiece)
		return err
	})
	if err != nil {
		return nil, err
	}
	top := slices.Max(largest)
	if top == 0 {
		return nil, fmt.Errorf("the weights of all %d rows are 0", n)
	}
	_, exponent := math.Frexp(float64(top))
	w.scale = math.Ldexp(1, min(weightBits, 62-bits.Len64(uint64(n)))-exponent)
	if err = walk(w.sum); err != nil {
		return nil, err
	}
	before := uint64(0)
	for first := 0; first < len(w.sums); first += WeightPiece / weightBlock {
		piece := w.sums[first:min(first+WeightPiece/weightBlock, len(w.sums))]
		for i := range piece {
			piece[i] += before
		}
		before = piece[len(piece)-1]
	}
	return w, nil
}

// largestOf returns the largest of the weights from number first on.
func largestOf(weights []byte, first int64) (float32, error) {
	// Numbers of at least 0 are ordered as their bits are.
	const valid = 0x7f7fffff
	top := uint32(0)
	for i := 0; i+4 <= len(weights); i += 4 {
		top = max(top, binary.LittleEndian.Uint32(weights[i:]))
	}
	if top <= valid {
		return math.Float32frombits(top), nil
	}
	largest := float32(0)
	for i := range len(weights) / 4 {
		weight := weightAt(weights, i) // -0 is 0
		if !(weight >= 0 && weight <= math.MaxFloat32) {
			return 0, fmt.Errorf("the weight of row %d is negative, infinite or not a number", first+int64(i))
		}
		largest = max(largest, weight)
	}
	return largest, nil
}

// sum sets the sums of the blocks of a piece, counted from its begin.
func (w *RowWeights) sum(piece int64, weights []byte) error {
	sum := uint64(0)
	sums := w.sums[piece*(WeightPiece/weightBlock):]
	for block := 0; len(weights) > 0; block++ {
		some := weights[:min(4*weightBlock, len(weights))]
		for i := range len(some) / 4 {
			sum += w.integer(weightAt(some, i))
		}
		sums[block] = sum
		weights = weights[len(some):]
	}
	return nil
}

// weightAt returns weight i of a piece.
func weightAt(piece []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(piece[4*i:]))
}

// integer returns a weight as a whole number, so sums do not depend on their order. The largest has weightBits bits.
func (w *RowWeights) integer(weight float32) uint64 {
	if weight == 0 {
		return 0
	}
	return max(uint64(int64(float64(weight)*w.scale)), 1) // below 2^62, and int64 is the faster conversion
}

// at returns the first row whose running sum is over the hash as a share of the sum of all. It reads a block of weights
// into buffer.
func (w *RowWeights) at(ctx context.Context, hash uint64, buffer *[4 * weightBlock]byte) (int64, error) {
	place, _ := bits.Mul64(hash, w.sums[len(w.sums)-1])
	k := sort.Search(len(w.sums)-1, func(i int) bool { return w.sums[i] > place })
	first, sum := int64(k)*weightBlock, uint64(0)
	if k > 0 {
		sum = w.sums[k-1]
	}
	rows := min(w.n-first, weightBlock)
	block := buffer[:4*rows]
	if err := w.read(ctx, block, first); err != nil {
		return 0, err
	}
	for i := range int(rows) {
		if sum += w.integer(weightAt(block, i)); sum > place {
			return first + int64(i), nil
		}
	}
	return 0, fmt.Errorf("the weights of rows %d to %d have changed since they were opened", first, first+rows-1)
}

// Weigh returns the sample of each row of a ticket, drawn by weight, and -1 for padding. The weights are of the samples
// of an epoch, or of the items if these have equally many samples. With once, an epoch has each sample once, and what
// it has more is drawn; positions that Spec.Drops leaves out do not count. The plan must be of one dataset, without
// visits and places on the ground.
func (pl *Plan) Weigh(ctx context.Context, t steps.Ticket, w *RowWeights, once bool) ([]int64, error) {
	lf := &pl.leaves[0]
	perWeight, err := pl.samplesOf(w)
	switch {
	case err != nil:
		return nil, err
	case len(t.Positions) > 0:
		return nil, fmt.Errorf("weights of rows, and a ticket that names positions")
	}
	given := pl.Len()
	if pl.drops {
		given -= given % pl.batch
	}
	if once && (pl.Len() <= lf.n || given < lf.n) {
		return nil, fmt.Errorf("an epoch of %d samples has no room for each of %d once and others by weight: take more",
			given, lf.n)
	}
	order := NewOrder(splitmix.Hash(pl.seed, domainOnce), t.Epoch, given, pl.shuffle)
	samples, buffer := make([]int64, t.Rows()), new([4 * weightBlock]byte)
	for k := range samples {
		p := t.Position(k, pl.Len())
		if samples[k] = -1; p < 0 {
			continue
		}
		if once && p < given {
			if samples[k] = order.At(p); samples[k] < lf.n {
				continue
			}
		}
		if samples[k], err = w.sample(ctx, pl.seed, t.Epoch, p, perWeight, buffer); err != nil {
			return nil, err
		}
	}
	return samples, nil
}

// sample draws the sample at a position. Each weight is of perWeight samples.
func (w *RowWeights) sample(ctx context.Context, seed, epoch uint64, position, perWeight int64,
	buffer *[4 * weightBlock]byte) (int64, error) {
	hash := splitmix.Hash(seed, domainRow, epoch, uint64(position))
	row, err := w.at(ctx, splitmix.Further(hash, 0), buffer)
	return row*perWeight + splitmix.Below64(splitmix.Further(hash, 1), perWeight), err
}

// SubstituteByWeight is Substitute for a sample that was drawn by weight: the same weights draw its substitute.
func (pl *Plan) SubstituteByWeight(ctx context.Context, d Draw, attempt int, w *RowWeights) (Draw, error) {
	perWeight, err := pl.samplesOf(w)
	if err != nil {
		return d, err
	}
	d = pl.Substitute(d, attempt)
	d.Sample, err = w.sample(ctx, d.Seed, d.Epoch, d.Position, perWeight, new([4 * weightBlock]byte))
	if err == nil {
		pl.leaves[d.Dataset].fill(&d)
	}
	return d, err
}

// Chance returns the chance of a sample in each draw by weight.
func (pl *Plan) Chance(ctx context.Context, sample int64, w *RowWeights) (float64, error) {
	perWeight, err := pl.samplesOf(w)
	if err != nil {
		return 0, err
	}
	var weight [4]byte
	if err := w.read(ctx, weight[:], sample/perWeight); err != nil {
		return 0, err
	}
	whole, sum := w.integer(weightAt(weight[:], 0)), w.sums[len(w.sums)-1]
	return float64(whole) / float64(sum) / float64(perWeight), nil
}

// samplesOf returns how many samples each of the weights is for. It fails if the plan cannot be drawn by them.
func (pl *Plan) samplesOf(w *RowWeights) (int64, error) {
	lf := &pl.leaves[0]
	switch lf.Sampler.Kind.(type) {
	case *Visits, *Ground:
		return 0, fmt.Errorf("weights of rows have no use for windows drawn tile by tile, or at places on the ground")
	}
	switch {
	case len(pl.nodes) > 1:
		return 0, fmt.Errorf("weights of rows are for one dataset, not for a mixture or strata")
	case w.n == lf.n:
		return 1, nil
	case w.n == lf.runs.items && lf.runs.ends == nil:
		return lf.runs.each, nil
	}
	return 0, fmt.Errorf("%d weights for %d samples of %d rows", w.n, lf.n, lf.runs.Items())
}

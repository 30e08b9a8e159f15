package shuffle

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"sort"

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
	// weightPiece is a whole number of blocks, which is read at a time: 256 KiB.
	weightPiece = 256 * weightBlock
)

// NewRowWeights reads n weights once for their largest, and once more for their sums. A weight that is negative,
// infinite or not a number is an error, and so are weights that are all 0.
func NewRowWeights(ctx context.Context, n int64, read ReadWeights) (*RowWeights, error) {
	w := &RowWeights{n: n, read: read}
	largest, buffer := float32(0), make([]byte, 4*min(n, weightPiece))
	each := func(visit func(first int64, piece []byte)) error {
		for first := int64(0); first < n; first += weightPiece {
			piece := buffer[:4*min(n-first, weightPiece)]
			if err := read(ctx, piece, first); err != nil {
				return err
			}
			visit(first, piece)
		}
		return nil
	}
	wrong := int64(-1)
	err := each(func(first int64, piece []byte) {
		for i := range len(piece) / 4 {
			weight := weightAt(piece, i)
			if !(weight >= 0 && weight <= math.MaxFloat32) && wrong < 0 {
				wrong = first + int64(i)
			}
			largest = max(largest, weight)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case wrong >= 0:
		return nil, fmt.Errorf("the weight of row %d is negative, infinite or not a number", wrong)
	case largest == 0:
		return nil, fmt.Errorf("the weights of all %d rows are 0", n)
	}
	_, exponent := math.Frexp(float64(largest))
	w.scale = math.Ldexp(1, min(weightBits, 62-bits.Len64(uint64(n)))-exponent)
	w.sums = make([]uint64, 0, (n-1)/weightBlock+1)
	sum := uint64(0)
	err = each(func(_ int64, piece []byte) {
		for i := range len(piece) / 4 {
			sum += w.integer(weightAt(piece, i))
			if i%weightBlock == weightBlock-1 || i == len(piece)/4-1 {
				w.sums = append(w.sums, sum)
			}
		}
	})
	return w, err
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
	return max(uint64(float64(weight)*w.scale), 1)
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
// it has more is drawn. The plan must be of one dataset, without visits and places on the ground.
func (pl *Plan) Weigh(ctx context.Context, t steps.Ticket, w *RowWeights, once bool) ([]int64, error) {
	lf, each := &pl.leaves[0], int64(1)
	switch lf.Sampler.Kind.(type) {
	case *Visits, *Ground:
		return nil, fmt.Errorf("weights of rows have no use for windows drawn tile by tile, or at places on the ground")
	}
	switch {
	case len(pl.nodes) > 1:
		return nil, fmt.Errorf("weights of rows are for one dataset, not for a mixture or strata")
	case len(t.Positions) > 0:
		return nil, fmt.Errorf("weights of rows, and a ticket that names positions")
	case w.n == lf.n:
	case w.n == lf.runs.Items() && lf.n == w.n*lf.runs.Count(0):
		each = lf.runs.Count(0)
	default:
		return nil, fmt.Errorf("%d weights for %d samples of %d rows", w.n, lf.n, lf.runs.Items())
	}
	if once && pl.Len() <= lf.n {
		return nil, fmt.Errorf("an epoch of %d samples has no room for each of %d once and others by weight: take more",
			pl.Len(), lf.n)
	}
	order := NewOrder(splitmix.Hash(pl.seed, domainOnce), t.Epoch, pl.Len(), pl.shuffle)
	samples, buffer := make([]int64, t.Rows()), new([4 * weightBlock]byte)
	for k := range samples {
		p := t.Position(k, pl.Len())
		if samples[k] = -1; p < 0 {
			continue
		}
		if once {
			if samples[k] = order.At(p); samples[k] < lf.n {
				continue
			}
		}
		hash := splitmix.Hash(pl.seed, domainRow, t.Epoch, uint64(p))
		row, err := w.at(ctx, splitmix.Further(hash, 0), buffer)
		if err != nil {
			return nil, err
		}
		samples[k] = row*each + splitmix.Below64(splitmix.Further(hash, 1), each)
	}
	return samples, nil
}

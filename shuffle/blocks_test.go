package shuffle

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/internal/splitmix"
)

// slowBlocks is the order of an epoch with blocks as docs/order.md has it, by lists.
func slowBlocks(b Blocks, seed, epoch uint64, n int64, shuffled bool) (samples []int64, pools []int) {
	blocks := (n + b.Samples - 1) / b.Samples
	order := NewOrder(seed, epoch, blocks, shuffled)
	var pool []int64
	for q := range blocks {
		first := order.At(q) * b.Samples
		for s := first; s < min(first+b.Samples, n); s++ {
			pool = append(pool, s)
		}
		if (q+1)%int64(b.Pool) != 0 && q+1 < blocks {
			continue
		}
		number := uint64(q) / uint64(b.Pool)
		within := permutation(splitmix.Hash(seed, domainPool, epoch, number), int64(len(pool)))
		for i := range pool {
			if shuffled {
				samples = append(samples, pool[within.At(int64(i))])
			} else {
				samples = append(samples, pool[i])
			}
			pools = append(pools, int(number))
		}
		pool = pool[:0]
	}
	return samples, pools
}

// TestBlocksAsSlow promises each sample once, and the pools of lists, with and without a short block.
func TestBlocksAsSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Blocks{Samples: rapid.Int64Range(1, 9).Draw(t, "samples"), Pool: rapid.IntRange(1, 7).Draw(t, "pool")}
		n := rapid.Int64Range(1, 200).Draw(t, "n")
		seed, epoch := rapid.Uint64().Draw(t, "seed"), rapid.Uint64Range(0, 9).Draw(t, "epoch")
		shuffled := rapid.Bool().Draw(t, "shuffled")
		of := &Dataset{Items: n, Blocks: &b}
		plan, err := NewPlan(Spec{Seed: seed, Shuffle: shuffled, Source: Source{Dataset: of}})
		if err != nil {
			t.Fatal(err)
		}
		want, _ := slowBlocks(b, seed, epoch, n, shuffled)
		got := make([]int64, n)
		for p := range n {
			got[p] = plan.At(epoch, p).Sample
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v of %d: %v, want %v", b, n, got, want)
		}
	})
}

// TestBlockOfADraw promises that the samples of an epoch lie in their blocks, and that pools follow each other.
func TestBlockOfADraw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Blocks{Samples: rapid.Int64Range(1, 9).Draw(t, "samples"), Pool: rapid.IntRange(1, 7).Draw(t, "pool")}
		n := rapid.Int64Range(1, 90).Draw(t, "n")
		plan, err := NewPlan(Spec{Seed: 3, Shuffle: true, Source: Source{Dataset: &Dataset{Items: n, Blocks: &b}}})
		if err != nil {
			t.Fatal(err)
		}
		_, pools := slowBlocks(b, 3, 2, n, true)
		for p := range n {
			draw := plan.At(2, p)
			block, ok := plan.Block(&draw)
			if !ok || block.Pool != int64(pools[p]) {
				t.Fatalf("position %d: %+v, want pool %d", p, block, pools[p])
			}
			found := 0
			for other := range plan.InBlock(block) {
				if other.Sample/b.Samples != block.Number {
					t.Fatalf("sample %d is in %+v", other.Sample, block)
				}
				if other.Sample == draw.Sample && other.Row == draw.Row {
					found++
				}
			}
			if found != 1 {
				t.Fatalf("sample %d is %d times in its block", draw.Sample, found)
			}
		}
	})
}

// TestBlocksAreRefused beside windows that have an order of their own, and without a size.
func TestBlocksAreRefused(t *testing.T) {
	runs, err := EqualRuns(4, 2)
	if err != nil {
		t.Fatal(err)
	}
	visits := &Visits{H: 4, W: 4, TileH: 8, TileW: 8, PerVisit: 2, Pool: 2, AlignY: 1, AlignX: 1}
	for name, d := range map[string]Dataset{
		"visits":  {Items: 4, Sampler: Sampler{Kind: visits, Runs: runs}, Blocks: &Blocks{Samples: 2, Pool: 2}},
		"nothing": {Items: 4, Blocks: &Blocks{}},
		"pool":    {Items: 4, Blocks: &Blocks{Samples: 2}},
		"large":   {Items: 4, Blocks: &Blocks{Samples: math.MaxInt64, Pool: math.MaxInt32}},
	} {
		if _, err := NewPlan(Spec{Source: Source{Dataset: &d}}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestBatchesOfBlocksVaryAsComputed promises 1 + (B-1)/P: the variance of the mean of a batch of B rows that are sorted
// by a class, in pools of P blocks, over the variance in a full permutation.
func TestBatchesOfBlocksVaryAsComputed(t *testing.T) {
	const n, batch, epochs = 1 << 17, 64, 4
	variance := func(b *Blocks) float64 {
		plan, err := NewPlan(Spec{Seed: 5, Shuffle: true, Source: Source{Dataset: &Dataset{Items: n, Blocks: b}}})
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for epoch := range uint64(epochs) {
			for first := int64(0); first < n; first += batch {
				ones := 0
				for p := first; p < first+batch; p++ {
					if plan.At(epoch, p).Sample < n/2 {
						ones++
					}
				}
				off := float64(ones)/batch - 0.5
				sum += off * off
			}
		}
		return sum
	}
	full := variance(nil)
	for _, pool := range []int{16, 64} {
		// 8,192 batches, and at least 256 pools: the deviation is below sqrt(2 * 2/8192) = 2.2 % for the batches, and
		// sqrt(2/256) = 8.8 % of the share of the pools, which is at most half: 4.9 %, of which two are allowed.
		want := 1 + float64(batch-1)/float64(pool)
		if got := variance(&Blocks{Samples: 32, Pool: pool}) / full; math.Abs(got/want-1) > 0.1 {
			t.Errorf("pools of %d blocks: %.3f, want %.3f", pool, got, want)
		}
	}
}

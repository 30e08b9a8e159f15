package shuffle

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/internal/splitmix"
)

// slowBlocks is the order of an epoch with blocks as docs/order.md has it, by lists. pools has the lane and the pool of
// each position.
func slowBlocks(b Blocks, seed, epoch uint64, n int64, shuffled bool) (samples []int64, pools [][2]int64) {
	blocks := (n + b.Samples - 1) / b.Samples
	order := NewOrder(seed, epoch, blocks, shuffled)
	type placed struct{ sample, whole int64 }
	var places []placed
	for q := range blocks {
		first := order.At(q) * b.Samples
		for s := first; s < min(first+b.Samples, n); s++ {
			places = append(places, placed{s, q*b.Samples + s - first})
		}
	}
	lanes := int64(max(b.Lanes, 1))
	samples, pools = make([]int64, n), make([][2]int64, n)
	for lane := range lanes {
		share := (n - lane + lanes - 1) / lanes // of the positions lane, lane + lanes, ...
		mine := places[:share]
		places = places[share:]
		for at, pool := int64(0), int64(0); at < share; pool++ {
			var in []int64
			for ; at+int64(len(in)) < share; in = append(in, mine[at+int64(len(in))].sample) {
				if mine[at+int64(len(in))].whole/b.Samples-mine[0].whole/b.Samples >= (pool+1)*int64(b.Pool) {
					break
				}
			}
			within := permutation(splitmix.Hash(seed, domainPool, epoch, uint64(pool*lanes+lane)), int64(len(in)))
			for i := range in {
				p := (at+int64(i))*lanes + lane
				samples[p], pools[p] = in[i], [2]int64{lane, pool}
				if shuffled {
					samples[p] = in[within.At(int64(i))]
				}
			}
			at += int64(len(in))
		}
	}
	return samples, pools
}

// drawnBlocks draws sizes of blocks.
func drawnBlocks(t *rapid.T) Blocks {
	return Blocks{Samples: rapid.Int64Range(1, 9).Draw(t, "samples"), Pool: rapid.IntRange(1, 7).Draw(t, "pool"),
		Lanes: rapid.IntRange(0, 5).Draw(t, "lanes")}
}

// TestBlocksAsSlow promises each sample once, and the pools of lists, with and without a short block.
func TestBlocksAsSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawnBlocks(t)
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

// TestBlockOfADraw promises that the samples of an epoch lie in their blocks, that pools follow each other, and that a
// block is in the lane of its samples, but for those at the ends of lanes.
func TestBlockOfADraw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawnBlocks(t)
		n := rapid.Int64Range(1, 90).Draw(t, "n")
		plan, err := NewPlan(Spec{Seed: 3, Shuffle: true, Source: Source{Dataset: &Dataset{Items: n, Blocks: &b}}})
		if err != nil {
			t.Fatal(err)
		}
		samples, pools := slowBlocks(b, 3, 2, n, true)
		firsts := map[int64][2]int64{} // the lane and the pool of the first sample of each block
		for p, sample := range samples {
			if sample%b.Samples == 0 {
				firsts[sample/b.Samples] = pools[p]
			}
		}
		strays := map[int64]bool{}
		for p := range n {
			draw := plan.At(2, p)
			block, ok := plan.Block(&draw)
			if want := firsts[block.Number]; !ok || [2]int64{block.Lane, block.Pool} != want {
				t.Fatalf("position %d: %+v, want lane and pool %v", p, block, want)
			}
			if pools[p] != [2]int64{block.Lane, block.Pool} {
				strays[block.Number] = true
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
		if ends := max(b.Lanes, 1) - 1; len(strays) > ends {
			t.Fatalf("%d blocks are in two lanes of %d", len(strays), b.Lanes)
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

// TestBatchesOfBlocksVaryAsComputed promises 1 + (B/L-1)/P for L lanes: the variance of the mean of a batch of B rows
// that are sorted by a class, in pools of P blocks, over the variance in a full permutation.
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
	for _, of := range []Blocks{{32, 16, 1}, {32, 64, 1}, {32, 16, 4}, {32, 2, 64}} {
		// 8,192 batches, and at least 256 pools: the deviation is below sqrt(2 * 2/8192) = 2.2 % for the batches, and
		// sqrt(2/256) = 8.8 % of the share of the pools, which is at most half: 4.9 %, of which two are allowed.
		want := 1 + float64(batch/of.Lanes-1)/float64(of.Pool)
		if got := variance(&of) / full; math.Abs(got/want-1) > 0.1 {
			t.Errorf("pools of %d blocks in %d lanes: %.3f, want %.3f", of.Pool, of.Lanes, got, want)
		}
	}
}

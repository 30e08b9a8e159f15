package shuffle

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/shuffle/steps"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
)

// TestExactShares: in a mixture with Batch, every batch has each source's count, also summed over
// any number of ranks. Over a run each source gives every sample once before it repeats one. Take
// changes where epochs end, but not the samples.
func TestExactShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.IntRange(1, 4).Draw(t, "sources")
		var counts, sizes []int64
		g := int64(0)
		mix := &Mixture{Until: rapid.SampledFrom([]Until{Shortest, Longest}).Draw(t, "until")}
		for i := range m {
			c := int64(rapid.IntRange(1, 6).Draw(t, "count"))
			n := c + int64(rapid.IntRange(0, 40).Draw(t, "more"))
			counts, sizes, g = append(counts, c), append(sizes, n), g+c
			mix.Sources = append(mix.Sources, Source{Dataset: &Dataset{Items: sizes[i]}})
		}
		mix.Counts, mix.Batch = counts, g
		spec := Spec{
			Seed:    rapid.Uint64().Draw(t, "seed"),
			Shuffle: rapid.Bool().Draw(t, "shuffle"), Source: Source{Mixture: mix},
		}
		pl, err := NewPlan(spec)
		if err != nil {
			t.Fatal(err)
		}
		least, most := int64(1<<62), int64(0)
		for i := range counts {
			least, most = min(least, sizes[i]/counts[i]), max(most, (sizes[i]+counts[i]-1)/counts[i])
		}
		if want := map[Until]int64{Shortest: least, Longest: most}[mix.Until]; pl.Len() != want*g {
			t.Fatalf("an epoch of %d positions, not %d batches of %d", pl.Len(), want, g)
		}
		spec.Take = g * int64(rapid.IntRange(1, 9).Draw(t, "take"))
		taken, err := NewPlan(spec)
		if err != nil {
			t.Fatal(err)
		}
		world := rapid.IntRange(1, 5).Draw(t, "world")
		seen := make([]map[int64]int, m) // times that each sample came
		for i := range seen {
			seen[i] = map[int64]int{}
		}
		for b := range 3 * pl.Len() / g {
			epoch, step := uint64(b/(pl.Len()/g)), b%(pl.Len()/g)
			in := make([]int64, m)
			rows := 0
			for rank := range world {
				tk := steps.StepTicket(epoch, step, int(g), rank, world)
				for k := range tk.Rows() {
					p := tk.Position(k, pl.Len())
					if p < 0 {
						continue
					}
					d := pl.At(epoch, p)
					in[d.Dataset]++
					seen[d.Dataset][d.Sample]++
					rows++
					q := uint64(b)*uint64(g) + uint64(p%g) // position of the run
					if other := taken.At(q/uint64(spec.Take), int64(q%uint64(spec.Take))); other != d {
						t.Fatalf("position %d: %+v, and with take %+v", q, d, other)
					}
				}
			}
			if !slices.Equal(in, counts) || int64(rows) != g {
				t.Fatalf("batch %d has %v of each, not %v", b, in, counts)
			}
			for i := range seen {
				times := map[int]bool{}
				for s := range sizes[i] {
					times[seen[i][s]] = true
				}
				whole := int((b + 1) * counts[i] / sizes[i])
				for n := range times {
					if n != whole && n != whole+1 {
						t.Fatalf("after batch %d of source %d samples came %d times, after %d whole epochs",
							b, i, n, whole)
					}
				}
			}
		}
	})
}

// TestTakeIsOneRun: epochs of any length, put together, are one run over the dataset's own epochs.
func TestTakeIsOneRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, take := rapid.Int64Range(1, 60).Draw(t, "n"), rapid.Int64Range(1, 150).Draw(t, "take")
		source := Source{Dataset: &Dataset{Items: n}}
		own, err := NewPlan(Spec{Seed: 3, Shuffle: true, Source: source})
		if err != nil {
			t.Fatal(err)
		}
		pl, err := NewPlan(Spec{Seed: 3, Shuffle: true, Source: source, Take: take})
		if err != nil || pl.Len() != take {
			t.Fatal(pl, err)
		}
		at := int64(0)
		for epoch := range uint64(4) {
			for p := range take {
				if got, want := pl.At(epoch, p), own.At(uint64(at/n), at%n); got != want {
					t.Fatalf("epoch %d position %d: %+v, not %+v", epoch, p, got, want)
				}
				at++
			}
		}
	})
}

// TestSharesDoNotFollowRanks: over many batches, every slot gets every source about as often as its
// share says, so no rank gets one source only.
func TestSharesDoNotFollowRanks(t *testing.T) {
	mix := &Mixture{
		Batch: 4, Counts: []int64{2, 2}, Until: Longest,
		Sources: []Source{{Dataset: &Dataset{Items: 40_000}}, {Dataset: &Dataset{Items: 40_000}}},
	}
	pl := mustPlan(t, Spec{Seed: 1, Shuffle: true, Source: Source{Mixture: mix}})
	var first [4]int
	batches := int(pl.Len() / 4)
	for b := range batches {
		for j := range first {
			if pl.At(0, int64(4*b+j)).Dataset == 0 {
				first[j]++
			}
		}
	}
	for j, n := range first { // 5 standard deviations of 20,000 tosses are 354
		if d := n - batches/2; d < -354 || d > 354 {
			t.Errorf("slot %d has the first source in %d of %d batches", j, n, batches)
		}
	}
}

func TestBatchesRefused(t *testing.T) {
	two := []Source{{Dataset: &Dataset{Items: 9}}, {Dataset: &Dataset{Items: 3}}}
	inner := Source{Mixture: &Mixture{Batch: 4, Counts: []int64{2, 2}, Sources: two}}
	for what, s := range map[string]Spec{
		"too few samples": {Source: Source{Mixture: &Mixture{Batch: 8, Counts: []int64{4, 4}, Sources: two}}},
		"sum":             {Source: Source{Mixture: &Mixture{Batch: 8, Counts: []int64{4, 3}, Sources: two}}},
		"length": {
			Source: Source{Mixture: &Mixture{Batch: 4, Counts: []int64{2, 2}, Sources: two, Until: Given, Length: 6}},
		},
		"take":          {Source: inner, Take: 6},
		"negative take": {Source: inner, Take: -1},
		"not aligned": {
			Source: Source{Mixture: &Mixture{Counts: []int64{WordLen - 4, 4}, Sources: []Source{two[0], inner}}},
		},
		"other count": {
			Source: Source{Mixture: &Mixture{Batch: 9, Counts: []int64{4, 5}, Sources: []Source{two[0], inner}}},
		},
	} {
		if pl, err := NewPlan(s); err == nil {
			t.Errorf("%s: a plan of %d positions", what, pl.Len())
		} else {
			t.Log(fmt.Sprint(what, ": ", err))
		}
	}
}

// TestBatchesOfOneSource: in a mixture with Block, every batch is of one source for any number of ranks, in any stretch
// of batches each source has its share but for few batches, and exactly in WordLen of them. Over a run each source
// gives every sample once before it repeats one. Take changes where epochs end, but not the samples.
func TestBatchesOfOneSource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.IntRange(1, 4).Draw(t, "sources")
		g := int64(rapid.IntRange(1, 9).Draw(t, "batch"))
		mix := &Mixture{Block: g, Until: rapid.SampledFrom([]Until{Shortest, Longest}).Draw(t, "until")}
		weights, sizes := make([]float64, m), make([]int64, m)
		for i := range m {
			weights[i] = rapid.Float64Range(1, 9).Draw(t, "weight")
			sizes[i] = g + int64(rapid.IntRange(0, 40).Draw(t, "more"))
			mix.Sources = append(mix.Sources, Source{Dataset: &Dataset{Items: sizes[i]}})
		}
		var err error
		if mix.Counts, err = Apportion(WordLen, weights); err != nil {
			t.Fatal(err)
		}
		spec := Spec{Seed: rapid.Uint64().Draw(t, "seed"), Shuffle: true, Source: Source{Mixture: mix}}
		pl, err := NewPlan(spec)
		if err != nil {
			t.Fatal(err)
		}
		spec.Take = g * int64(rapid.IntRange(1, 9).Draw(t, "take"))
		taken, err := NewPlan(spec)
		if err != nil {
			t.Fatal(err)
		}
		count := pl.Len() / g
		if pl.Len()%g != 0 || count < 1 {
			t.Fatalf("an epoch of %d positions, in batches of %d", pl.Len(), g)
		}
		batches := make([]int64, m) // of each source
		seen := make([][]int, m)    // times that each sample came
		inEpoch := make([]int64, m) // batches of each source in this epoch
		for i := range seen {
			seen[i] = make([]int, sizes[i])
		}
		for b := range 3 * count {
			epoch, step := uint64(b/count), b%count
			if step == 0 {
				clear(inEpoch)
			}
			source := pl.At(epoch, step*g).Dataset
			for world := range 4 {
				rows := int64(0)
				for rank := range world + 1 {
					ticket := steps.StepTicket(epoch, step, int(g), rank, world+1)
					for k := range ticket.Rows() {
						p := ticket.Position(k, pl.Len())
						if p < 0 {
							continue
						}
						rows++
						draw := pl.At(epoch, p)
						if draw.Dataset != source {
							t.Fatalf("batch %d has sources %d and %d", b, source, draw.Dataset)
						}
						if world == 0 {
							seen[source][draw.Sample]++
							q := uint64(b*g + p%g)
							if other := taken.At(q/uint64(spec.Take), int64(q%uint64(spec.Take))); other != draw {
								t.Fatalf("position %d: %+v, and with take %+v", q, draw, other)
							}
						}
					}
				}
				if rows != g {
					t.Fatalf("batch %d has %d rows on %d ranks", b, rows, world+1)
				}
			}
			batches[source]++
			inEpoch[source]++
			for i, c := range mix.Counts {
				// Of each source, one more or less than its share of the word up to here, whose length is that sum.
				share := float64(c) / WordLen * float64(step+1)
				if off := float64(inEpoch[i]) - share; off > float64(m)+1 || off < -float64(m)-1 {
					t.Fatalf("after %d batches source %d has %d, not %.1f", step+1, i, inEpoch[i], share)
				}
			}
			whole := int(batches[source] * g / sizes[source])
			for s, n := range seen[source] {
				if n != whole && n != whole+1 {
					t.Fatalf("after batch %d of source %d sample %d came %d times", b, source, s, n)
				}
			}
		}
		counts := make([]int64, m)
		for _, i := range evenly(spec.Seed, mix.Counts) {
			counts[i]++
		}
		if !slices.Equal(counts, mix.Counts) {
			t.Fatalf("the word has %v, not %v", counts, mix.Counts)
		}
	})
}

// TestBlockRefused: blocks that cannot lie whole in the batches around them, and epochs that cannot be whole.
func TestBlockRefused(t *testing.T) {
	one := func(n int64) Source { return Source{Dataset: &Dataset{Items: n}} }
	half := []int64{WordLen / 2, WordLen / 2}
	blocks := func(block int64) Source {
		return Source{Mixture: &Mixture{Sources: []Source{one(8), one(9)}, Counts: half, Block: block}}
	}
	for _, refused := range []struct {
		mixture Mixture
		take    int64
		want    string
	}{
		{Mixture{Sources: []Source{one(3), one(9)}, Counts: half, Block: 4}, 0, "source \"0\" has 3 samples"},
		{Mixture{Sources: []Source{one(9), one(9)}, Counts: half, Block: 4}, 6, "batches of 4"},
		{Mixture{Sources: []Source{one(9), one(9)}, Counts: half, Block: 4, Until: Given, Length: 6}, 0,
			"batches of 4"},
		{Mixture{Sources: []Source{one(9), blocks(4)}, Counts: half}, 0, "takes 1 of it at a time"},
		{Mixture{Sources: []Source{one(9), blocks(4)}, Counts: half, Block: 2}, 0, "takes 2 of it at a time"},
		{Mixture{Sources: []Source{one(9), one(9)}, Counts: []int64{2, 2}, Batch: 4, Block: 4}, 0, "blocks of 4"},
	} {
		_, err := NewPlan(Spec{Source: Source{Mixture: &refused.mixture}, Take: refused.take})
		if err == nil || !strings.Contains(err.Error(), refused.want) {
			t.Errorf("%+v: %v, want %q", refused.mixture, err, refused.want)
		}
	}
}

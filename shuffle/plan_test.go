package shuffle

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestPlanOfOneDatasetIsTheOrder: a plan of one dataset agrees with Order and Window, which came
// before plans.
func TestPlanOfOneDatasetIsTheOrder(t *testing.T) {
	for _, shuffled := range []bool{true, false} {
		pl := mustPlan(t, Spec{Seed: 9, Shuffle: shuffled, Source: Source{Dataset: &Dataset{
			Items: 37, Sampler: Sampler{Kind: RandomWindow{}, PerItem: 3, H: 16, W: 24, AlignY: 2},
		}}})
		for epoch := range uint64(3) {
			o := NewOrder(9, epoch, 37*3, shuffled)
			for p := range pl.Len() {
				d := pl.At(epoch, p)
				if d.Sample != o.At(p) || d.Row != o.At(p)/3 || d.Epoch != epoch || d.Position != p ||
					d.Transform != 0 {
					t.Fatalf("position %d: %+v", p, d)
				}
				box := Window(Crop{
					Seed: 9, Epoch: epoch, Position: p,
					Height: 100, Width: 80, H: 16, W: 24, AlignY: 2, AlignX: 1,
				})
				y, x := box.Y, box.X
				if b, _ := pl.Window(&d, 100, 80, nil); b != (Box{y, x, 16, 24}) {
					t.Fatalf("position %d: %+v", p, b)
				}
			}
		}
	}
}

// TestEverySampleOnce: an epoch has each sample once, in the plain and in the tile-aware order.
func TestEverySampleOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.Int64Range(1, 30).Draw(t, "items")
		counts := rapid.SliceOfN(rapid.Int64Range(1, 5), int(items), int(items)).Draw(t, "counts")
		runs, err := NewRuns(items, func(i int64) int64 { return counts[i] })
		if err != nil {
			t.Fatal(err)
		}
		s := Sampler{Runs: runs, Kind: &Grid{4, 4, 4, 4, 1, 1, false}}
		if rapid.Bool().Draw(t, "visits") {
			k, pool := rapid.IntRange(1, 5).Draw(t, "k"), rapid.IntRange(1, 9).Draw(t, "pool")
			s = Sampler{Runs: runs, Kind: &Visits{4, 4, 8, 8, k, pool, 1, 1}}
		}
		pl, err := NewPlan(Spec{
			Seed: rapid.Uint64().Draw(t, "seed"), Shuffle: rapid.Bool().Draw(t, "shuffle"),
			Source: Source{Dataset: &Dataset{Items: items, Sampler: s}},
		})
		if err != nil {
			t.Fatal(err)
		}
		epoch := rapid.Uint64().Draw(t, "epoch")
		seen := map[int64]bool{}
		for p := range pl.Len() {
			d := pl.At(epoch, p)
			if seen[d.Sample] {
				t.Fatalf("sample %d at %d comes twice", d.Sample, p)
			}
			seen[d.Sample] = true
		}
	})
}

// TestRunsAgainstAList: At and Index agree with a list of all samples.
func TestRunsAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.SliceOfN(rapid.Int64Range(0, 4), 1, 20).Draw(t, "counts")
		r, err := NewRuns(int64(len(counts)), func(i int64) int64 { return counts[i] })
		if err != nil {
			t.Fatal(err)
		}
		i := int64(0)
		for item, n := range counts {
			for sub := range n {
				if a, b := r.At(i); a != int64(item) || b != sub || r.Index(a, b) != i {
					t.Fatalf("sample %d is %d of item %d, not %d of %d", i, b, a, sub, item)
				}
				i++
			}
			if r.Count(int64(item)) != n {
				t.Fatalf("item %d has %d samples", item, r.Count(int64(item)))
			}
		}
		if r.Len() != i {
			t.Fatalf("%d samples, not %d", r.Len(), i)
		}
		if equal := len(slices.Compact(slices.Clone(counts))) == 1; equal != (r.ends == nil) {
			t.Fatalf("items of %d samples take %d numbers", counts, len(r.ends))
		}
	})
}

func TestRunsRefuse(t *testing.T) {
	for _, counts := range [][]int64{{1, -1}, {-1, -1}, {1 << 61, 1<<61 + 1}, {1 << 62, 1 << 62}, {math.MaxInt64, 1}} {
		if r, err := NewRuns(int64(len(counts)), func(i int64) int64 { return counts[i] }); err == nil {
			t.Errorf("%v: %d samples", counts, r.Len())
		}
	}
	if _, err := NewRuns(-1, nil); err == nil {
		t.Error("a negative number of items was accepted")
	}
}

// dataset is a source of whole chips.
func dataset(n int64) Source { return Source{Dataset: &Dataset{Items: n}} }

// TestMixtureHoldsItsProportions: any WordLen consecutive positions of an epoch have exactly the
// right counts, and short spans nearly.
func TestMixtureHoldsItsProportions(t *testing.T) {
	counts := []int64{6000, 2999, 1001}
	pl := mustPlan(t, Spec{Seed: 5, Shuffle: true, Source: Source{Mixture: &Mixture{
		Sources: []Source{dataset(100), dataset(1e6), dataset(777)}, Counts: counts, Until: Given, Length: 35_000,
	}}})
	of := make([]int, pl.Len())
	var n [3]int64
	for p := range pl.Len() {
		of[p] = pl.At(3, p).Dataset
		n[of[p]]++
		if p >= WordLen {
			n[of[p-WordLen]]--
		}
		if p >= WordLen-1 && [3]int64(counts) != n {
			t.Fatalf("the %d positions up to %d have %v", WordLen, p, n)
		}
	}
	// Every second, third, ... position, as on a rank, is near the proportions too: within five
	// standard deviations of draws without replacement.
	for stride := 2; stride <= 8; stride++ {
		first, all := 0, 0
		for p := 0; p < WordLen; p += stride {
			all++
			if of[p] == 0 {
				first++
			}
		}
		if got, want := float64(first)/float64(all), 0.6; math.Abs(got-want) > 5*math.Sqrt(0.24/float64(all)) {
			t.Errorf("every position number %d has source 0 at %.3f, not %.1f", stride, got, want)
		}
	}
}

// TestMixtureEpochs: an epoch ends where its rule says, and the source that ends it gives every
// sample once in each epoch.
func TestMixtureEpochs(t *testing.T) {
	sizes := []int64{50, 400, 35}
	for _, c := range []struct {
		until Until
		whole int // the source whose epochs are the mixture's
	}{{Shortest, 0}, {Longest, 2}} {
		pl := mustPlan(t, Spec{Seed: 1, Shuffle: true, Source: Source{Mixture: &Mixture{
			Sources: []Source{dataset(sizes[0]), dataset(sizes[1]), dataset(sizes[2])},
			Counts:  []int64{7000, 2900, 100}, Until: c.until,
		}}})
		for epoch := range uint64(5) {
			seen := make([]map[int64]bool, 3)
			for i := range seen {
				seen[i] = map[int64]bool{}
			}
			drawn := make([]int64, 3)
			for p := range pl.Len() {
				d := pl.At(epoch, p)
				seen[d.Dataset][d.Sample] = true
				drawn[d.Dataset]++
				if d.Dataset == c.whole && d.Epoch != epoch {
					t.Fatalf("rule %d: epoch %d has a sample of epoch %d", c.until, epoch, d.Epoch)
				}
			}
			if drawn[c.whole] != sizes[c.whole] || int64(len(seen[c.whole])) != sizes[c.whole] {
				t.Errorf("rule %d: source %d gave %d samples %d times",
					c.until, c.whole, len(seen[c.whole]), drawn[c.whole])
			}
			for i, n := range drawn {
				if c.until == Shortest && n > sizes[i] || c.until == Longest && n < sizes[i] {
					t.Errorf("rule %d: source %d of %d was drawn %d times", c.until, i, sizes[i], n)
				}
			}
		}
	}
}

// TestNestedSourcesHaveOrdersOfTheirOwn: equal datasets at different places of a spec have
// different orders.
func TestNestedSourcesHaveOrdersOfTheirOwn(t *testing.T) {
	inner := Source{Mixture: &Mixture{Sources: []Source{dataset(1000), dataset(1000)}, Counts: []int64{5000, 5000}}}
	pl := mustPlan(t, Spec{Seed: 1, Shuffle: true, Source: Source{Mixture: &Mixture{
		Sources: []Source{inner, inner, dataset(1000)}, Counts: []int64{4000, 4000, 2000},
	}}})
	var first [5][]int64
	for p := range pl.Len() {
		d := pl.At(0, p)
		if d.Epoch == 0 && d.Position < 100 {
			first[d.Dataset] = append(first[d.Dataset], d.Sample)
		}
	}
	for i := range first {
		for k := range i {
			same := 0
			for q := range min(len(first[i]), len(first[k])) {
				if first[i][q] == first[k][q] {
					same++
				}
			}
			if same > 5 || len(first[i]) != 100 {
				t.Errorf("datasets %d and %d agree at %d of %d positions", i, k, same, len(first[i]))
			}
		}
	}
}

// TestSubstitutes: all samples are equally likely as substitutes, attempts and positions get
// different ones, and a substitute's windows are drawn anew.
func TestSubstitutes(t *testing.T) {
	const n = 20
	pl := mustPlan(t, Spec{Seed: 3, Shuffle: true, Source: Source{Dataset: &Dataset{
		Items: n, Sampler: Sampler{Kind: RandomWindow{}, PerItem: 100, H: 8, W: 8}, Transforms: D4,
	}}})
	rows, sameWindow, sameElement, all := make([]int, n), 0, 0, 0
	for p := range pl.Len() {
		d := pl.At(0, p)
		b, _ := pl.Window(&d, 32, 32, nil)
		for attempt := 1; attempt <= 4; attempt++ {
			s := pl.Substitute(d, attempt)
			c, _ := pl.Window(&s, 32, 32, nil)
			rows[s.Row]++
			all++
			if b == c {
				sameWindow++
			}
			if s.Transform == d.Transform {
				sameElement++
			}
		}
	}
	if c := chiSquare(rows, float64(all)/n, n-1); c > 2.5 {
		t.Errorf("chi-square of substitutes is %.2f a degree of freedom", c)
	}
	if sameWindow > 40 || sameElement > all/6 {
		t.Errorf("%d windows and %d transforms of %d are those of the bad sample", sameWindow, sameElement, all)
	}
}

func TestPoolsAreTogether(t *testing.T) {
	pl := mustPlan(t, visitSpec(10, 6, 4, 16))
	counts := map[steps.Pool]int64{}
	rows := map[steps.Pool]map[int64]bool{}
	for p := range pl.Len() {
		pool, ok := pl.poolOf(2, p)
		if !ok || pool.Index != p/64 || pool.Epoch != 2 {
			t.Fatalf("position %d is in %+v", p, pool)
		}
		counts[pool]++
		if rows[pool] == nil {
			rows[pool] = map[int64]bool{}
		}
		d := pl.At(2, p)
		rows[pool][d.Sample/4] = true
	}
	for pool, n := range counts {
		if int64(len(rows[pool])) != n/4 {
			t.Errorf("%+v has %d windows of %d visits", pool, n, len(rows[pool]))
		}
	}
	if _, ok := mustPlan(t, Spec{Source: dataset(3)}).poolOf(0, 1); ok {
		t.Error("whole chips have a pool")
	}
}

// visitSpec has items with visits visits each, of k windows, in pools.
func visitSpec(items, visits int64, k, pool int) Spec {
	runs, _ := EqualRuns(items, visits)
	return Spec{Seed: 4, Shuffle: true, Source: Source{Dataset: &Dataset{Items: items, Sampler: Sampler{
		Runs: runs, Kind: &Visits{H: 16, W: 16, TileH: 32, TileW: 32, PerVisit: k, Pool: pool, AlignY: 1, AlignX: 1},
	}}}}
}

func TestMeasure(t *testing.T) {
	const items, k, batch = 4000, 16, 64
	random := Spec{
		Seed: 4, Shuffle: true,
		Source: Source{Dataset: &Dataset{Items: items, Sampler: Sampler{Kind: RandomWindow{}, PerItem: k, H: 1, W: 1}}},
	}
	still := random
	still.Shuffle = false
	r := mustPlan(t, random).Measure(0, 5, 20_000, batch)
	if math.Abs(r.Displacement-1) > 0.05 || math.Abs(r.RowsABatch/r.RowsExpected-1) > 0.02 || r.SameRow > 0.001 ||
		math.Abs(r.SameRowExpected-15.0/63999) > 1e-9 || r.Repeats != 0 || r.Positions != 20_000 {
		t.Errorf("random order: %+v", r)
	}
	s := mustPlan(t, still).Measure(0, 0, 20_000, batch)
	if s.Displacement != 0 || s.RowsABatch > 4.01 || math.Abs(s.SameRow-15.0/16) > 0.001 {
		t.Errorf("order of the dataset: %+v", s)
	}
	// A pool has 256 visits and 4096 windows. Of 64 windows, 63.5 come from different visits, less
	// the pairs of the same row.
	v := mustPlan(t, visitSpec(items, 1, k, 256)).Measure(0, 0, 20_000, batch)
	if math.Abs(v.Displacement-1) > 0.1 || v.RowsABatch < 55 || v.RowsABatch > 59 ||
		math.Abs(v.SameRow-15.0/4095) > 0.002 || v.Repeats != 0 {
		t.Errorf("tile-aware order: %+v", v)
	}
	m := mustPlan(t, Spec{Seed: 1, Shuffle: true, Source: Source{Mixture: &Mixture{
		Sources: []Source{dataset(10), dataset(100000)}, Counts: []int64{5000, 5000}, Until: Given, Length: 100,
	}}}).Measure(0, 0, 1000, 10)
	if m.Repeats < 35 || m.Positions != 100 {
		t.Errorf("a mixture with a small source: %+v", m)
	}
}

func TestPlanRefuses(t *testing.T) {
	window := func(s Sampler) Source { return Source{Dataset: &Dataset{Items: 4, Sampler: s}} }
	mixture := func(m Mixture) Source { return Source{Mixture: &m} }
	two := []Source{dataset(1), dataset(2)}
	deep := dataset(1)
	for range 20 {
		deep = mixture(Mixture{Sources: []Source{deep}, Counts: []int64{WordLen}})
	}
	runs, _ := EqualRuns(3, 2)
	many, _ := EqualRuns(4, MaxSamples/4)
	for _, c := range []struct {
		source Source
		want   string
	}{
		{Source{}, "either a dataset or a mixture"},
		{Source{Dataset: &Dataset{}, Mixture: &Mixture{}}, "either a dataset or a mixture"},
		{dataset(-1), "-1 rows"},
		{dataset(MaxSamples + 1), "more than"},
		{Source{Dataset: &Dataset{Items: 3, Rows: []uint32{0, 3}}}, "row 3 of 3"},
		{window(Sampler{Kind: RandomWindow{}, H: 0, W: 1}), "0 by 1 pixels"},
		{window(Sampler{Kind: RandomWindow{}, H: 1 << 25, W: 1}), "pixels"},
		{window(Sampler{Kind: WeightedWindow{}, H: 1, W: 1, PerItem: MaxSamples}), "more than"},
		{
			window(Sampler{Runs: runs, Kind: &Grid{1, 1, 1, 1, 1, 1, false}}),
			"windows of 3 items, for 4",
		},
		{window(Sampler{Kind: &Grid{1, 1, 0, 1, 1, 1, false}}), "every 0 by 1"},
		{window(Sampler{Kind: &Grid{1, 1, 3, 1, 2, 1, false}}), "aligned to 2 by 1"},
		{window(Sampler{Kind: &Resized{1, 1, math.NaN(), 1, 1, false, 1, 1}}), "NaN"},
		{window(Sampler{Kind: &Resized{1, 1, 0.5, 0.4, 1, false, 1, 1}}), "scale is [0.5, 0.4]"},
		{window(Sampler{Kind: &Resized{1, 1, 0.5, 2, 1, true, 1, 1}}), "scale is [0.5, 2]"},
		{window(Sampler{Kind: &Resized{1, 1, 0.5, 1, 0.5, false, 1, 1}}), "ratio is 0.5"},
		{window(Sampler{Kind: &Visits{1, 1, 8, 8, 0, 1, 1, 1}}), "visits of 0 windows"},
		{window(Sampler{Runs: many, Kind: &Visits{1, 1, 8, 8, 2, 1, 1, 1}}), "more than"},
		{
			Source{Dataset: &Dataset{Items: 1, Transforms: D4, Sampler: Sampler{Kind: RandomWindow{}, H: 1, W: 2}}},
			"not square",
		},
		{mixture(Mixture{}), "0 counts for 0 sources"},
		{mixture(Mixture{Sources: two, Counts: []int64{WordLen}}), "1 counts for 2 sources"},
		{mixture(Mixture{Sources: two, Counts: []int64{WordLen, 0}}), "count of 0"},
		{mixture(Mixture{Sources: two, Counts: []int64{WordLen, 1}}), "count of 1 after 10000"},
		{mixture(Mixture{Sources: two, Counts: []int64{1, 2}}), "sum to 3"},
		{
			mixture(Mixture{Sources: []Source{dataset(1), dataset(0)}, Counts: []int64{5000, 5000}}),
			"source 1 has 0 samples",
		},
		{mixture(Mixture{Sources: []Source{dataset(1 << 60)}, Counts: []int64{WordLen}}), "source 0 has"},
		{mixture(Mixture{Sources: two, Counts: []int64{5000, 5000}, Until: Given}), "epoch of 0 positions"},
		{mixture(Mixture{Sources: two, Counts: []int64{5000, 5000}, Length: 3}), "a length of 3"},
		{mixture(Mixture{Sources: two, Counts: []int64{5000, 5000}, Until: 9}), "no rule 9"},
		{
			mixture(Mixture{
				Sources: []Source{dataset(1), window(Sampler{Kind: &Visits{}})}, Counts: []int64{5000, 5000},
			}),
			"source 1: sampler: visits of 0 windows",
		},
		{deep, "deep"},
	} {
		if _, err := NewPlan(Spec{Source: c.source}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q expected, got %v", c.want, err)
		}
	}
}

// TestAnyEpochHasADraw: epochs and positions of a hostile ticket wrap around, without any other
// effect.
func TestAnyEpochHasADraw(t *testing.T) {
	pl := mustPlan(t, threeMillion())
	for _, epoch := range []uint64{1 << 40, math.MaxInt64, math.MaxUint64} {
		for _, p := range []int64{0, 1, pl.Len() - 1} {
			d := pl.At(epoch, p)
			if d.Sample < 0 || d.Sample >= 1e6 || pl.Substitute(d, 1).Sample >= 1e6 {
				t.Errorf("epoch %d position %d: %+v", epoch, p, d)
			}
		}
	}
}

// threeMillion is a mixture of three datasets with a million samples each, and three samplers.
func threeMillion() Spec {
	runs, _ := EqualRuns(10_000, 25)
	return Spec{Seed: 1, Shuffle: true, Source: Source{Mixture: &Mixture{
		Sources: []Source{
			{
				Dataset: &Dataset{
					Items: 250_000, Transforms: D4,
					Sampler: Sampler{Kind: RandomWindow{}, PerItem: 4, H: 256, W: 256},
				},
			},
			{
				Dataset: &Dataset{
					Items:   10_000,
					Sampler: Sampler{Runs: runs, Kind: &Visits{256, 256, 512, 512, 4, 256, 1, 1}},
				},
			},
			dataset(1_000_000),
		},
		Counts: []int64{5000, 3000, 2000}, Until: Given, Length: 64 * 1_100_000,
	}}}
}

// TestSeekDoesNotAllocate: finding the draw of a position does not allocate, also where runs are
// searched. Compiling a plan allocates for the mixture's word only, however many samples there are.
func TestSeekDoesNotAllocate(t *testing.T) {
	pl := mustPlan(t, threeMillion())
	at := int64(64 * 1_000_000)
	if n := testing.AllocsPerRun(100, func() {
		d := pl.At(3, at)
		pl.Window(&d, 3000, 2000, nil)
		pl.Row(&d, 0)
		pl.Substitute(d, 1)
		pl.poolOf(3, at)
		at++
	}); n != 0 {
		t.Errorf("%v allocations a position", n)
	}
	bytes := func(n int64) uint64 {
		return corpus.Allocated(func() {
			for range 10 {
				mustPlan(t, Spec{Seed: 1, Shuffle: true, Source: Source{Mixture: &Mixture{
					Sources: []Source{dataset(n), dataset(n)}, Counts: []int64{5000, 5000},
				}}})
			}
		}) / 10
	}
	if small, large := bytes(1e3), bytes(1e12); large > small+small/10 || large > 200_000 {
		t.Errorf("a plan of 10^12 samples allocates %d bytes, one of 10^3 %d", large, small)
	}
}

// TestSeekIsFast: the batch of step 10^15 of a mixture of three datasets of a million samples is found without a walk
// over the steps before it, which would take years.
func TestSeekIsFast(t *testing.T) {
	long := threeMillion()
	long.Source.Mixture.Length = 64 * (1e15 + 1)
	pl := mustPlan(t, long)
	for row := range int64(64) {
		d := pl.At(0, 64*1e15+row)
		pl.Window(&d, 3000, 2000, nil)
	}
}

// BenchmarkSeek compiles a mixture of three datasets of a million samples and finds the batch of
// step 1,000,000.
func BenchmarkSeek(b *testing.B) {
	spec := threeMillion()
	b.ReportAllocs()
	for range b.N {
		pl, err := NewPlan(spec)
		if err != nil {
			b.Fatal(err)
		}
		for row := range int64(64) {
			d := pl.At(0, 64*1_000_000+row)
			pl.Window(&d, 3000, 2000, nil)
		}
	}
}

// BenchmarkPlanAt measures one position of a compiled mixture, with its window.
func BenchmarkPlanAt(b *testing.B) {
	pl := mustPlan(b, threeMillion())
	b.ReportAllocs()
	for i := range b.N {
		d := pl.At(0, 64*1_000_000+int64(i)%1_000_000)
		pl.Window(&d, 3000, 2000, nil)
	}
}

// poolOf returns the pool of position p of an epoch, and whether there is one.
func (pl *Plan) poolOf(epoch uint64, p int64) (steps.Pool, bool) {
	draw := pl.locate(epoch, p)
	visits, ok := pl.leaves[draw.Dataset].Sampler.Kind.(*Visits)
	if !ok {
		return steps.Pool{}, false
	}
	pool := int64(visits.PerVisit) * int64(visits.Pool)
	return steps.Pool{Dataset: draw.Dataset, Epoch: draw.Epoch, Index: draw.Position / pool}, true
}

// length returns the rows of a sample of a dataset: 1, or the length of its sequences.
func (pl *Plan) length(dataset int) int {
	if s := pl.leaves[dataset].Series; s != nil {
		return s.Length()
	}
	return 1
}

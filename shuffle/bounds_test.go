package shuffle

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/shuffle/steps"
)

// panics reports whether f panics.
func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}

// TestPositionsOutsideAnEpochPanic: an epoch has the positions 0 to N-1, also where the network of its order is larger.
func TestPositionsOutsideAnEpochPanic(t *testing.T) {
	for _, n := range []int64{0, 1, 2, 5, 63, 64, 65, 128} {
		for _, shuffled := range []bool{false, true} {
			order := NewOrder(1, 2, n, shuffled)
			pl := mustPlan(t, Spec{Shuffle: shuffled, Source: dataset(n)})
			for _, p := range []int64{math.MinInt64, -1, 0, n - 1, n, n + 1, math.MaxInt64} {
				outside := p < 0 || p >= n
				for name, f := range map[string]func(){
					"Order.At": func() { order.At(p) }, "Plan.At": func() { pl.At(3, p) },
				} {
					if got := panics(f); got != outside {
						t.Errorf("%s of position %d of %d, shuffled %v: panic %v", name, p, n, shuffled, got)
					}
				}
			}
		}
	}
	if !panics(func() { NewOrder(0, 0, -1, false) }) {
		t.Error("an order of -1 samples")
	}
	pl := mustPlan(t, Spec{Source: dataset(3)})
	for _, attempt := range []int{-1, 0, 1, MaxAttempts, MaxAttempts + 1} {
		outside := attempt < 1 || attempt > MaxAttempts
		if got := panics(func() { pl.Substitute(pl.At(0, 0), attempt) }); got != outside {
			t.Errorf("attempt %d: panic %v", attempt, got)
		}
	}
}

// TestDrawIsAtThePositionOfItsRow: row k of a ticket is what stands at its position; a ticket with positions names one
// window each, and has no side of a batch.
func TestDrawIsAtThePositionOfItsRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pl, err := NewPlan(Spec{Seed: 3, Shuffle: true, Batch: 4, Source: Source{Dataset: &Dataset{
			Items: 40, Transforms: D4, Sampler: Sampler{Kind: RandomWindow{}, H: 8, W: 8, Sides: []int{8, 16}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		epoch := rapid.Uint64().Draw(t, "epoch")
		rows := rapid.IntRange(1, 6).Draw(t, "rows")
		list := rapid.SliceOfN(rapid.Int64Range(0, 39), rows, rows).Draw(t, "positions")
		corners := rapid.SliceOfN(rapid.Uint32(), 2*rows, 2*rows).Draw(t, "corners")
		run := steps.Ticket{Epoch: epoch, First: 3, Count: rows, RowStride: 1}
		named := steps.Ticket{Epoch: epoch, Positions: list}
		cornered := steps.Ticket{Epoch: epoch, Positions: list, Corners: corners}
		for k := range rows {
			if got, want := pl.Draw(run, k), pl.At(epoch, 3+int64(k)); got != want {
				t.Fatalf("row %d of a run: %+v, want %+v", k, got, want)
			}
			want := pl.At(epoch, list[k])
			want.Side = 0
			if got := pl.Draw(named, k); got != want {
				t.Fatalf("row %d of named positions: %+v, want %+v", k, got, want)
			}
			got := pl.Draw(cornered, k)
			pairs := slices.Collect(slices.Chunk(corners, 2))
			if got.Corner == nil || *got.Corner != [2]int{int(pairs[k][0]), int(pairs[k][1])} {
				t.Fatalf("row %d has the corner %v of %v", k, got.Corner, pairs)
			}
			if got.Corner = nil; got != want {
				t.Fatalf("row %d with a corner: %+v, want %+v", k, got, want)
			}
		}
	})
}

// bound is a spec with a number at its bound, and one with the next number, which the error about it names.
type bound struct {
	accepted, refused Spec
	want              string
}

func checkBounds(t *testing.T, bounds []bound) {
	t.Helper()
	for _, c := range bounds {
		if _, err := NewPlan(c.accepted); err != nil {
			t.Errorf("before %q: %v", c.want, err)
		}
		if _, err := NewPlan(c.refused); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q expected, got %v", c.want, err)
		}
	}
}

// windows is a source of one item.
func windows(s Sampler) Source { return Source{Dataset: &Dataset{Items: 1, Sampler: s}} }

func TestBoundsOfMixtures(t *testing.T) {
	mixed := func(m Mixture) Spec { return Spec{Source: Source{Mixture: &m}} }
	one := func(batch int64) Spec {
		return mixed(Mixture{Batch: batch, Counts: []int64{batch}, Sources: []Source{dataset(1)}, Until: Longest})
	}
	block := func(block int64) Spec {
		return mixed(Mixture{Block: block, Counts: []int64{WordLen}, Sources: []Source{dataset(1)}, Until: Longest})
	}
	size := func(n int64) Spec { return mixed(Mixture{Counts: []int64{WordLen}, Sources: []Source{dataset(n)}}) }
	length := func(n int64) Spec {
		return mixed(Mixture{Counts: []int64{WordLen}, Sources: []Source{dataset(1)}, Until: Given, Length: n})
	}
	deep := func(mixtures int) Spec {
		source := dataset(1)
		for range mixtures {
			source = Source{Mixture: &Mixture{Sources: []Source{source}, Counts: []int64{WordLen}}}
		}
		return Spec{Source: source}
	}
	take := func(n int64) Spec { return Spec{Source: dataset(3), Take: n} }
	batched := func(n int64) Spec {
		return Spec{Batch: n, Source: windows(Sampler{Kind: RandomWindow{}, H: 8, W: 8, Sides: []int{8}})}
	}
	row := func(r uint32) Spec { return Spec{Source: Source{Dataset: &Dataset{Items: 3, Rows: []uint32{r}}}} }
	checkBounds(t, []bound{
		{one(1), one(-1), "batches of -1"},
		{one(MaxSamples), one(MaxSamples + 1), "batches of 4611686018427387905"},
		{block(0), block(-1), "blocks of -1"},
		{block(MaxSamples / WordLen), block(MaxSamples/WordLen + 1), "blocks of 461168601842739"},
		{size(1), size(0), "0 samples"},
		{size(MaxSamples / WordLen), size(MaxSamples/WordLen + 1), "461168601842739 samples"},
		{length(1), length(0), "an epoch of 0 positions"},
		{length(MaxSamples), length(MaxSamples + 1), "an epoch of 4611686018427387905 positions"},
		{take(0), take(-1), "an epoch of -1 positions"},
		{take(MaxSamples), take(MaxSamples + 1), "an epoch of 4611686018427387905 positions"},
		{Spec{Source: dataset(0)}, Spec{Source: dataset(0), Take: 1}, "a source without samples"},
		{Spec{Source: dataset(MaxSamples)}, Spec{Source: dataset(MaxSamples + 1)}, "more than"},
		{row(2), row(3), "row 3 of 3"},
		{batched(1), batched(0), "in batches of 0"},
		{deep(steps.MaxDepth), deep(steps.MaxDepth + 1), "deep"},
	})
}

func TestBoundsOfSamplers(t *testing.T) {
	window := func(s Sampler) Spec { return Spec{Source: windows(s)} }
	random := func(h, w, alignY, alignX int) Spec {
		return window(Sampler{Kind: RandomWindow{}, H: h, W: w, AlignY: alignY, AlignX: alignX})
	}
	resized := func(h, w, alignY, alignX int) Spec {
		return window(Sampler{Kind: &Resized{h, w, 0.5, 1, 1, false, alignY, alignX}})
	}
	shape := func(lo, hi, ratio float64, ofAsset bool) Spec {
		return window(Sampler{Kind: &Resized{8, 8, lo, hi, ratio, ofAsset, 1, 1}})
	}
	ground := func(side, cell int, samples int64, run CellRun) Spec {
		return window(Sampler{Kind: &Ground{Side: side, Cell: cell, Samples: samples, Runs: []CellRun{run},
			Scene: func(Place) int64 { return 0 }}})
	}
	cells := func(run CellRun) Spec { return ground(8, 4, 0, run) }
	series, err := NewSeries([]int{0}, []int64{0}, nil, 1, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	inTime := cells(CellRun{N: 1})
	inTime.Source.Dataset.Series = series
	checkBounds(t, []bound{
		{random(1, 1, 1, 1), random(1, 0, 1, 1), "windows of 1 by 0"},
		{random(maxSide, 1, 1, 1), random(maxSide+1, 1, 1, 1), "windows of 16777217 by 1"},
		{random(1, maxSide, 1, 1), random(1, maxSide+1, 1, 1), "windows of 1 by 16777217"},
		{random(1, 1, maxSide, 1), random(1, 1, maxSide+1, 1), "aligned to 16777217 by 1"},
		{random(1, 1, 1, maxSide), random(1, 1, 1, maxSide+1), "aligned to 1 by 16777217"},
		{resized(1, 1, 1, 1), resized(0, 1, 1, 1), "windows of 0 by 1"},
		{resized(1, 1, 1, maxSide), resized(1, 1, 1, maxSide+1), "aligned to 1 by 16777217"},
		{shape(1, 1, 1, true), shape(1, math.Nextafter(1, 2), 1, true), "relative to the raster"},
		{shape(1, 1e6, 1, false), shape(1, math.Nextafter(1e6, 2e6), 1, false), "scale is [1, "},
		{shape(math.SmallestNonzeroFloat64, 1, 1, false), shape(0, 1, 1, false), "scale is [0, 1]"},
		{shape(1, 1, 1e6, false), shape(1, 1, math.Nextafter(1e6, 2e6), false), "ratio is"},
		{shape(1, 1, 1, false), shape(1, 1, math.Nextafter(1, 0), false), "ratio is"},
		{ground(1, 1, 0, CellRun{N: 1}), ground(0, 1, 0, CellRun{N: 1}), "windows of 0 pixels"},
		{ground(1, maxSide, 0, CellRun{N: 1}), ground(1, maxSide+1, 0, CellRun{N: 1}), "cells of 16777217"},
		{ground(1, 1, MaxSamples, CellRun{N: 1}), ground(1, 1, MaxSamples+1, CellRun{N: 1}), "an epoch"},
		{ground(1, 1, 0, CellRun{N: 1}), ground(1, 1, -1, CellRun{N: 1}), "-1 an epoch"},
		{cells(CellRun{N: maxCells}), cells(CellRun{N: maxCells + 1}), "run 0"},
		{cells(CellRun{N: 1}), cells(CellRun{N: 0}), "run 0"},
		{cells(CellRun{N: 1, Y: maxCells}), cells(CellRun{N: 1, Y: maxCells + 1}), "run 0"},
		{cells(CellRun{N: 1, Y: -maxCells}), cells(CellRun{N: 1, Y: -maxCells - 1}), "run 0"},
		{cells(CellRun{N: 1, X: maxCells}), cells(CellRun{N: 1, X: maxCells + 1}), "run 0"},
		{cells(CellRun{N: 1, X: -maxCells}), cells(CellRun{N: 1, X: -maxCells - 1}), "run 0"},
		{cells(CellRun{N: 1}), cells(CellRun{N: 1, Map: -1}), "run 0"},
		{cells(CellRun{N: 1}), inTime, "ground windows of sequences"},
	})
}

// TestBoundsOfParts: the parts that a spec is made from have bounds of their own.
func TestBoundsOfParts(t *testing.T) {
	equal := func(items, each int64) error { _, err := EqualRuns(items, each); return err }
	listed := func(counts ...int64) error {
		_, err := NewRuns(int64(len(counts)), func(i int64) int64 { return counts[i] })
		return err
	}
	series := func(length, stride int) error {
		_, err := NewSeries([]int{0}, []int64{0}, nil, length, stride, false)
		return err
	}
	apportion := func(total int64, weights int) error {
		_, err := Apportion(total, slices.Repeat([]float64{1}, weights))
		return err
	}
	temperature := func(size int64, exponent float64) error {
		_, err := Temperature([]int64{size}, exponent)
		return err
	}
	for _, c := range []struct {
		what              string
		accepted, refused error
	}{
		{"items", equal(0, 1), equal(-1, 1)},
		{"samples of an item", equal(1, 0), equal(1, -1)},
		{"samples of all items", equal(MaxSamples/2, 2), equal(MaxSamples/2+1, 2)},
		{"samples of a list", listed(1, MaxSamples-1), listed(2, MaxSamples-1)},
		{"samples of an item of a list", listed(1, 0), listed(1, -1)},
		{"rows of a sequence", series(maxLength, 1), series(maxLength+1, 1)},
		{"stride", series(1, maxLength), series(1, maxLength+1)},
		{"parts", apportion(3, 3), apportion(3, 4)},
		{"all parts", apportion(1<<52, 1), apportion(1<<52+1, 1)},
		{"weights", apportion(1, 1), apportion(1, 0)},
		{"size", temperature(1, 1), temperature(0, 1)},
		{"temperature", temperature(1, math.SmallestNonzeroFloat64), temperature(1, 0)},
	} {
		if c.accepted != nil || c.refused == nil {
			t.Errorf("%s: the bound gives %v, and the next number %v", c.what, c.accepted, c.refused)
		}
	}
	split := Split{Shares: shares([]int64{1, SplitTotal - 1})}
	if err := split.Check(); err != nil {
		t.Error(err)
	}
	// The centre of a cell may have any coordinate whose cell is at most 2^62.
	for _, c := range []struct {
		x    float64
		want int
	}{{0x1p62, 0}, {-0x1p62, 0}, {0x1p62 + 1024, -1}, {-0x1p62 - 1024, -1}} {
		whole := Split{Shares: shares([]int64{SplitTotal})}
		for _, bounds := range [][4]float64{{c.x, 0, c.x, 0}, {0, c.x, 0, c.x}} {
			if got := whole.OfCell(bounds, 1); got != c.want {
				t.Errorf("cell %v has share %d, want %d", bounds, got, c.want)
			}
		}
	}
}

// TestLastEpoch: draws of the last epoch of batches of one source, or of exact shares, are numbered below 2^64, and
// those of the next one would not be. Epochs without them have no end.
func TestLastEpoch(t *testing.T) {
	two := []Source{dataset(7), dataset(9)}
	for _, c := range []struct {
		spec    Spec
		bounded bool
	}{
		{Spec{Source: dataset(7)}, false},
		{Spec{Source: dataset(7), Take: 5}, false},
		{Spec{Source: Source{Mixture: &Mixture{Sources: two, Counts: []int64{5000, 5000}, Block: 1}}}, true},
		{Spec{Source: Source{Mixture: &Mixture{Sources: two, Counts: []int64{2, 2}, Batch: 4}}}, true},
		{Spec{Source: Source{Mixture: &Mixture{Sources: two, Counts: []int64{2, 2}, Batch: 4}}, Take: 20}, true},
	} {
		pl := mustPlan(t, c.spec)
		last, n := pl.LastEpoch(), uint64(pl.Len())
		if !c.bounded {
			if last != math.MaxUint64 {
				t.Errorf("%+v: the last epoch is %d", c.spec, last)
			}
			continue
		}
		// Epoch e has the draws from e*n up to (e+1)*n.
		if ends := last + 1; ends > math.MaxUint64/n || ends+1 <= math.MaxUint64/n {
			t.Errorf("%+v: the last epoch of %d draws is %d", c.spec, n, last)
		}
	}
}

// drawMixture draws a mixture of datasets, plain, in blocks or with exact shares, and the sizes of the datasets.
func drawMixture(t *rapid.T) (mix *Mixture, sizes []int64) {
	m := rapid.IntRange(1, 4).Draw(t, "sources")
	mix = &Mixture{
		Until:  Until(rapid.IntRange(0, 2).Draw(t, "until")),
		Counts: make([]int64, m), Sources: make([]Source, m),
	}
	unit := int64(1)
	switch rapid.SampledFrom([]string{"plain", "block", "batch"}).Draw(t, "form") {
	case "batch":
		for i := range mix.Counts {
			mix.Counts[i] = rapid.Int64Range(1, 4).Draw(t, "count")
			mix.Batch += mix.Counts[i]
		}
		unit = mix.Batch
	case "block":
		mix.Block = rapid.Int64Range(1, 5).Draw(t, "block")
		unit = mix.Block
		fallthrough
	default:
		left := int64(WordLen)
		for i := range mix.Counts {
			mix.Counts[i] = left / int64(m-i)
			left -= mix.Counts[i]
		}
	}
	sizes = make([]int64, m)
	for i := range sizes {
		sizes[i] = rapid.Int64Range(unit, unit+30).Draw(t, "size")
		mix.Sources[i] = dataset(sizes[i])
	}
	if mix.Until == Given {
		mix.Length = unit * rapid.Int64Range(1, 12).Draw(t, "units")
	}
	return mix, sizes
}

// TestMixtureAgainstASlowOne: the draws of a source are numbered through its own epochs, one position after another.
func TestMixtureAgainstASlowOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mix, sizes := drawMixture(t)
		m, unit := len(sizes), cmp.Or(mix.Batch, mix.Block, 1)
		pl, err := NewPlan(Spec{Seed: rapid.Uint64().Draw(t, "seed"), Source: Source{Mixture: mix}})
		if err != nil {
			t.Fatal(err)
		}
		if want := mix.Length; want > 0 && pl.Len() != want {
			t.Fatalf("an epoch of %d positions, not %d", pl.Len(), want)
		}
		// In the order of the dataset a source gives 0, 1, 2, ..., but for the order of draws in a batch.
		drawn := make([]int64, m)
		for epoch := range uint64(3) {
			for first := int64(0); first < pl.Len(); first += unit {
				got, want := make([][]int64, m), make([][]int64, m)
				for p := first; p < first+unit; p++ {
					draw := pl.At(epoch, p)
					i := draw.Dataset
					want[i] = append(want[i], drawn[i])
					got[i] = append(got[i], int64(draw.Epoch)*sizes[i]+draw.Position)
					if drawn[i]++; draw.Sample != draw.Position || draw.Row != draw.Position {
						t.Fatalf("position %d: %+v", p, draw)
					}
				}
				for i := range got {
					if mix.Batch > 0 {
						slices.Sort(got[i])
					}
					if !slices.Equal(got[i], want[i]) {
						t.Fatalf("epoch %d, positions from %d, source %d: draws %v, want %v", epoch, first, i, got[i],
							want[i])
					}
				}
			}
			if epoch > 0 {
				continue
			}
			for i := range sizes { // Until: who ends the epoch
				if mix.Until == Shortest && drawn[i] > sizes[i] || mix.Until == Longest && drawn[i] < sizes[i] {
					t.Fatalf("source %d of %d samples was drawn %d times", i, sizes[i], drawn[i])
				}
			}
		}
	})
}

// TestMixturesOverManyWords: in epochs of more than WordLen blocks, too, each source goes on where it was.
func TestMixturesOverManyWords(t *testing.T) {
	for _, block := range []int64{0, 3} {
		unit := max(block, 1)
		mix := &Mixture{Block: block, Counts: []int64{WordLen / 2, WordLen/2 - 7, 7}, Until: Given,
			Sources: []Source{dataset(5003), dataset(101), dataset(17)}, Length: unit * (2*WordLen + 11)}
		pl := mustPlan(t, Spec{Seed: 3, Source: Source{Mixture: mix}})
		drawn := [3]int64{}
		for epoch := range uint64(3) {
			for p := range pl.Len() {
				draw := pl.At(epoch, p)
				i := draw.Dataset
				if got := int64(draw.Epoch)*mix.Sources[i].Dataset.Items + draw.Position; got != drawn[i] {
					t.Fatalf("blocks of %d, epoch %d, position %d: draw %d of source %d, want %d", block, epoch, p,
						got, i, drawn[i])
				}
				drawn[i]++
			}
		}
	}
}

// TestGridHasTheWindowsThatCount: with a list of windows, sample i is window number Windows[i] of its item, and there
// must be as many numbers as samples.
func TestGridHasTheWindowsThatCount(t *testing.T) {
	counts, windows := []int64{2, 0, 3}, []uint32{5, 1, 0, 2, 7}
	runs, err := NewRuns(3, func(i int64) int64 { return counts[i] })
	if err != nil {
		t.Fatal(err)
	}
	spec := func(windows []uint32) Spec {
		return Spec{Source: Source{Dataset: &Dataset{Items: 9, Rows: []uint32{8, 4, 6}, Sampler: Sampler{
			Runs: runs, Windows: windows, Kind: &Grid{4, 4, 4, 4, 1, 1, false},
		}}}}
	}
	pl := mustPlan(t, spec(windows))
	for p, want := range []struct{ item, row, window int64 }{{0, 8, 5}, {0, 8, 1}, {2, 6, 0}, {2, 6, 2}, {2, 6, 7}} {
		draw := pl.At(0, int64(p))
		if draw.Item != want.item || draw.Row != want.row || draw.Sub != want.window {
			t.Errorf("position %d: %+v, want %+v", p, draw, want)
		}
		// An asset of 16 by 16 pixels has four windows a row.
		box := Box{Y: int(want.window) / 4 * 4, X: int(want.window) % 4 * 4, H: 4, W: 4}
		if got, _ := pl.Window(&draw, 16, 16, nil); got != box {
			t.Errorf("position %d: %+v, want %+v", p, got, box)
		}
	}
	for _, wrong := range [][]uint32{{}, windows[1:], append(windows, 1)} {
		if _, err := NewPlan(spec(wrong)); err == nil {
			t.Errorf("%d windows for 5 samples", len(wrong))
		}
	}
}

// TestEpochsOfTheGround: an epoch has Samples random windows, or one of each cell.
func TestEpochsOfTheGround(t *testing.T) {
	for samples, want := range map[int64]int64{0: 17, 1: 1, 2: 2, 100: 100} {
		pl := groundPlan(t, Ground{Side: 8, Cell: 4, Samples: samples, Runs: groundRuns}, false)
		if pl.Len() != want {
			t.Errorf("%d samples: an epoch of %d", samples, pl.Len())
		}
	}
	if ground := (Ground{Runs: groundRuns}); ground.Cells() != 17 {
		t.Errorf("%d cells, not 17", ground.Cells())
	}
}

// drawValid draws valid pixels that fill whole cells, or none of them, and returns their weights.
func drawValid(t *rapid.T, cellH, cellW, height, width int) (valid [][]bool, weights []uint32) {
	across := (width + cellW - 1) / cellW
	weights = make([]uint32, (height+cellH-1)/cellH*across)
	for range height {
		valid = append(valid, make([]bool, width))
	}
	for i := range weights {
		if !rapid.Bool().Draw(t, "valid") {
			continue
		}
		for y := i / across * cellH; y < min((i/across+1)*cellH, height); y++ {
			for x := i % across * cellW; x < min((i%across+1)*cellW, width); x++ {
				valid[y][x] = true
				weights[i]++
			}
		}
	}
	return valid, weights
}

// without counts the pixels of a window that have no data.
func without(valid [][]bool, b Box) (n int) {
	for y := b.Y; y < b.Y+b.H; y++ {
		for x := b.X; x < b.X+b.W; x++ {
			if y >= len(valid) || x >= len(valid[y]) || !valid[y][x] {
				n++
			}
		}
	}
	return n
}

// cornersOf returns the corners of cells on a side, up to the last corner of a window.
func cornersOf(cell, last int) (all []int) {
	for corner := 0; corner < last; corner += cell {
		all = append(all, corner)
	}
	return append(all, last)
}

// TestCoversAgainstPixels: of valid pixels that fill whole cells, or none of them, the share without data is that which
// one counts pixel by pixel, and EachCovered lists the corners of cells whose windows count, row by row.
func TestCoversAgainstPixels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		side := rapid.IntRange(1, 4)
		cellH, cellW := side.Draw(t, "cellH"), side.Draw(t, "cellW")
		height, width := rapid.IntRange(1, 13).Draw(t, "height"), rapid.IntRange(1, 13).Draw(t, "width")
		valid, weights := drawValid(t, cellH, cellW, height, width)
		w, err := NewWeights(weights, cellH, cellW, height, width, nil)
		if err != nil {
			t.Fatal(err)
		}
		windowH, windowW := rapid.IntRange(1, 8).Draw(t, "h"), rapid.IntRange(1, 8).Draw(t, "w")
		area := windowH * windowW
		for y := 0; y <= max(height-windowH, 0); y++ {
			for x := 0; x <= max(width-windowW, 0); x++ {
				box := Box{Y: y, X: x, H: windowH, W: windowW}
				n := without(valid, box)
				if !w.Covers(box, height, width, float64(n)/float64(area)) ||
					n > 0 && w.Covers(box, height, width, (float64(n)-0.5)/float64(area)) {
					t.Fatalf("%+v: %d pixels of %d have no data", box, n, area)
				}
			}
		}
		limit := rapid.IntRange(0, area).Draw(t, "limit")
		var got, want []Box
		crop := Crop{Height: height, Width: width, H: windowH, W: windowW, AlignY: 1, AlignX: 1}
		w.EachCovered(crop, float64(limit)/float64(area), func(b Box) bool { got = append(got, b); return true })
		for _, y := range cornersOf(cellH, max(height-windowH, 0)) {
			for _, x := range cornersOf(cellW, max(width-windowW, 0)) {
				if box := (Box{Y: y, X: x, H: windowH, W: windowW}); without(valid, box) <= limit {
					want = append(want, box)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("at most %d of %d pixels without data: %v, want %v", limit, area, got, want)
		}
		if box := w.Covered(crop, float64(limit)/float64(area)); len(want) > 0 && without(valid, box) > limit {
			t.Fatalf("%+v has %d pixels without data, over %d", box, without(valid, box), limit)
		}
		first := 0
		w.EachCovered(crop, 1, func(Box) bool { first++; return false })
		if first != 1 {
			t.Fatalf("%d windows after the one that ends the list", first)
		}
	})
}

package loader

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// unlike returns three sources of images that have different bands and sizes, and no batch in common.
func unlike() map[string]*fakeTable {
	r := rand.New(rand.NewPCG(1, 2))
	tabs := map[string]*fakeTable{}
	for name, of := range map[string]struct{ rows, bands, size int }{
		"a": {23, 2, 16}, "b": {11, 5, 24}, "c": {40, 3, 8},
	} {
		tab := &fakeTable{rows: int64(of.rows), kinds: []catalog.Kind{catalog.Raster}}
		for row := range tab.rows {
			asset, object := newFakeAsset(r, of.bands, of.size, of.size, 8, false, false)
			tab.add(0, row, asset, object)
		}
		tabs[name] = tab
	}
	return tabs
}

// unlikeSpec returns a spec of batches of one source.
func unlikeSpec(batch int, until string) Spec {
	sp := Spec{Fields: []Field{{Name: "image", DType: "float32"}}, BatchSize: batch, Shuffle: true, Seed: 5}
	sp.Batches, sp.Until = "one source", spec.Text(until)
	sp.Sources = []Source{{Name: "a", Source: "a"}, {Name: "b", Source: "b", Weight: 2,
		Fields: []Field{{Name: "image", Bands: []int{4, 1, 0, 2}}}}, {Name: "c", Source: "c"}}
	return sp
}

// checkUnlike compares a batch with the pixels of the source that its first position has.
func checkUnlike(t *testing.T, e *Engine, tabs map[string]*fakeTable, b *batch.Batch, first int64) {
	t.Helper()
	draw := e.plan.At(b.Epoch, first)
	source := e.Sources()[draw.Dataset]
	tab, bands := tabs[source.Name], []int{0, 1, 2}
	if source.Name == "b" {
		bands = []int{4, 1, 0, 2}
	}
	asset := tab.assets[[2]int64{0, 0}]
	bands = bands[:min(len(bands), asset.b)]
	image, number := b.Tensor("image"), b.Tensor("source").Int64()
	want := []int64{int64(b.Rows), int64(len(bands)), int64(asset.h), int64(asset.w)}
	if !slices.Equal(image.Shape, want) || !slices.Equal(source.Fields[0].Shape[1:], want[1:]) {
		t.Fatalf("batch at %d: shape %v, described as %v, want %v", first, image.Shape, source.Fields[0].Shape, want)
	}
	pixels, size := image.Float32(), asset.h*asset.w
	for k, p := range b.Positions {
		if number[k] != int64(draw.Dataset) {
			t.Fatalf("row %d of the batch at %d is of source %d, not %d", k, first, number[k], draw.Dataset)
		}
		if p < 0 {
			continue
		}
		at := e.plan.At(b.Epoch, p)
		if at.Dataset != draw.Dataset || at.Sample != b.Samples[k] {
			t.Fatalf("position %d: %+v in a batch of source %d", p, at, draw.Dataset)
		}
		for i, band := range bands {
			for j := range size {
				got := pixels[(k*len(bands)+i)*size+j]
				if v := tab.assets[[2]int64{0, at.Row}].pix[band*size+j]; got != float32(v) {
					t.Fatalf("position %d, band %d, pixel %d: %g, want %d", p, band, j, got, v)
				}
			}
		}
	}
}

// TestBatchesOfUnlikeSources: each batch is of one source with its bands, shape and pixels, on 1 to 4 ranks, and a run
// that resumes at any step, with another number of ranks, goes on with the same batches.
func TestBatchesOfUnlikeSources(t *testing.T) {
	race.SkipCovered(t)
	tabs := unlike()
	for _, until := range []string{"shortest", "longest"} {
		e := openMixed(t, unlikeSpec(5, until), tabs, 2)
		if e.Len()%5 != 0 || e.Steps() != e.Len()/5 {
			t.Fatalf("%s: an epoch of %d samples", until, e.Len())
		}
		seen := map[int]bool{}
		for world := 1; world <= 4; world++ {
			for rank := range world {
				run, err := NewLoader(e, LoaderOptions{Rank: rank, World: world, Epochs: 2})
				if err != nil {
					t.Fatal(err)
				}
				steps := int64(0)
				for b, err := range run.All(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					first := steps % e.Steps() * 5
					seen[e.plan.At(b.Epoch, first).Dataset] = true
					checkUnlike(t, e, tabs, b, first)
					again := run.State()
					resumed, err := NewLoader(e, LoaderOptions{World: 1 + int(steps)%4, State: &again, Epochs: 3})
					if err != nil {
						t.Fatal(err)
					}
					next, err := resumed.Next(t.Context())
					if err != nil && err != io.EOF {
						t.Fatal(err)
					}
					checkUnlike(t, e, tabs, next, (steps+1)%e.Steps()*5)
					next.Release()
					resumed.Close()
					steps++
				}
				if run.Close(); steps != 2*e.Steps() {
					t.Fatalf("%d steps, want %d", steps, 2*e.Steps())
				}
			}
		}
		if len(seen) != 3 {
			t.Fatalf("%s: batches of sources %v only", until, seen)
		}
	}
}

// TestTicketsOfOneSource: a ticket of positions that have no batch in common is refused, also in a dry run.
func TestTicketsOfOneSource(t *testing.T) {
	e := openMixed(t, unlikeSpec(4, "longest"), unlike(), 1)
	of := func(p int64) int { return e.plan.At(0, p).Dataset }
	other := int64(0)
	for of(other) == of(0) {
		other += 4
	}
	for _, c := range []struct {
		ticket steps.Ticket
		want   string
	}{
		{steps.Ticket{First: 2, Count: 4, RowStride: 1}, "of two batches"},
		{steps.Ticket{Positions: []int64{0, other}}, "no batch in common"},
		{steps.Ticket{Positions: []int64{0, 3, 1}}, ""},
		{steps.Ticket{First: 5, Count: 3, RowStride: 2}, ""},
		{steps.Ticket{First: e.Len(), Count: 4, RowStride: 1}, ""},
	} {
		b, err := e.Start(t.Context(), c.ticket, false).Wait(t.Context())
		_, planned := e.Explain(t.Context(), c.ticket)
		for _, err := range []error{err, planned} {
			if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) ||
				fault.KindOf(err) != fault.Unsupported) {
				t.Errorf("%+v: %v, want %q", c.ticket, err, c.want)
			}
		}
		if err == nil {
			b.Release()
		}
	}
}

// TestLastEpochs: until the last epoch that an engine takes, batches are of one source, also where an epoch is not that
// of the mixture; later ones, in which draws would wrap at 2^64, are refused, and so are their dry runs.
func TestLastEpochs(t *testing.T) {
	for take := range int64(3) {
		sp := unlikeSpec(6, "longest")
		sp.Take = take * 66
		tabs := unlike()
		e := openMixed(t, sp, tabs, 2)
		last := ^uint64(0)/uint64(e.Len()) - 1
		for _, epoch := range []uint64{last - 1, last, last + 1, ^uint64(0)} {
			for step := range e.Steps() {
				ticket := steps.StepTicket(epoch, step, 6, 0, 1)
				b, err := e.Start(t.Context(), ticket, false).Wait(t.Context())
				_, planned := e.Explain(t.Context(), ticket)
				if epoch > last {
					want := fmt.Sprintf("epoch %d: the last one is %d", epoch, last)
					for _, err := range []error{err, planned} {
						if err == nil || !strings.Contains(err.Error(), want) || fault.KindOf(err) != fault.Limit {
							t.Fatalf("epoch %d: %v, want %q", epoch, err, want)
						}
					}
					continue
				}
				if err != nil || planned != nil {
					t.Fatal(err, planned)
				}
				checkUnlike(t, e, tabs, b, step*6)
				b.Release()
			}
		}
	}
}

// TestNestedBatchesOfOneSource: sources of a mixture within share batches, and so need one shape, and the mixture
// around batches of one source needs the same.
func TestNestedBatchesOfOneSource(t *testing.T) {
	tabs := unlike()
	tabs["a2"] = tabs["a"]
	sp := unlikeSpec(6, "longest")
	alike := []Source{{Name: "a", Source: "a"}, {Name: "a2", Source: "a2"}}
	sp.Sources[0] = Source{Name: "both", Mixture: spec.Mixture{Sources: alike, PerBatch: true}}
	e := openMixed(t, sp, tabs, 2)
	shapes := map[string]bool{}
	for step := range e.Steps() {
		b, err := e.Start(t.Context(), steps.StepTicket(0, step, 6, 0, 1), false).Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		counts := map[int64]int{}
		for _, n := range b.Tensor("source").Int64() {
			counts[n]++
		}
		shapes[fmt.Sprint(b.Tensor("image").Shape, counts)] = true
		b.Release()
	}
	for _, want := range []string{"[6 2 16 16] map[0:3 1:3]", "[6 4 24 24] map[2:6]", "[6 3 8 8] map[3:6]"} {
		if !shapes[want] {
			t.Errorf("no batch of %s among %v", want, shapes)
		}
	}
	sp.Sources[0].Sources = []Source{{Source: "a"}, {Source: "c"}}
	if _, err := tryMixed(sp, tabs, 1); err == nil || !strings.Contains(err.Error(), "need one shape") {
		t.Errorf("a mixture of unlike sources within: %v", err)
	}
	outer := Spec{Fields: sp.Fields, BatchSize: 6}
	outer.Sources = []Source{{Mixture: unlikeSpec(6, "").Mixture}}
	if _, err := tryMixed(outer, tabs, 1); err == nil || !strings.Contains(err.Error(), "of the mixture around it") {
		t.Errorf("batches of one source in a mixture without: %v", err)
	}
	both := unlikeSpec(6, "")
	both.PerBatch = true
	if _, err := tryMixed(both, tabs, 1); err == nil || !strings.Contains(err.Error(), "per_batch is true") {
		t.Errorf("with exact shares: %v", err)
	}
}

// TestMemoryOfUnlikeSources: batches are bounded by the largest source, and none is opened that does not fit.
func TestMemoryOfUnlikeSources(t *testing.T) {
	e := openMixed(t, unlikeSpec(4, ""), unlike(), 1)
	image := int64(4 * 4 * 24 * 24 * chunk.Float32.Size())
	if n := e.BatchBytes(); n < image || n > 2*image {
		t.Errorf("batches of %d bytes, the largest tensor has %d", n, image)
	}
	if fit, err := e.BatchesFit(4); err != nil || fit > e.options.MemoryBytes/image {
		t.Errorf("%d batches fit: %v", fit, err)
	}
}

// TestSizesOfBatches: each batch has windows of one of the sizes, the same on all ranks, also of mixed sources and of
// fields of another resolution, and with its own pixels; samples that are named have the largest.
func TestSizesOfBatches(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	tabs := map[string]*fakeTable{}
	for _, name := range []string{"a", "b"} {
		tab := &fakeTable{rows: 30, kinds: []catalog.Kind{catalog.Raster, catalog.Raster}}
		for row := range tab.rows {
			asset, object := newFakeAsset(r, 2, 40, 40, 8, false, false)
			tab.add(0, row, asset, object)
			asset, object = newFakeAsset(r, 1, 20, 20, 8, false, false)
			tab.add(1, row, asset, object)
		}
		tabs[name] = tab
	}
	sp := Spec{Fields: []Field{{Name: "image", DType: "native"}, {Name: "coarse", DType: "float32"}}, BatchSize: 6,
		Shuffle: true, Seed: 11, Augment: "d4", Windows: true,
		Sampler: Sampler{Kind: spec.RandomWindow, Sizes: []int{16, 32, 24, 16}}}
	sp.Sources = []Source{{Source: "a"}, {Source: "b"}}
	e := openMixed(t, sp, tabs, 2)
	if got := e.Fields()[0].Shape; !slices.Equal(got, []int64{1, 2, 32, 32}) {
		t.Errorf("described as %v", got)
	}
	seen := map[int64]int{}
	for step := range e.Steps() {
		side := int64(0)
		for rank := range 4 {
			b, err := e.Start(t.Context(), steps.StepTicket(0, step, 6, rank, 4), true).Wait(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			image, coarse, window := b.Tensor("image"), b.Tensor("coarse"), b.Tensor("window").Int64()
			if rank == 0 {
				side = image.Shape[2]
				seen[side]++
			}
			if !slices.Equal(image.Shape, []int64{2, 2, side, side}) ||
				!slices.Equal(coarse.Shape, []int64{2, 1, side / 2, side / 2}) {
				t.Fatalf("step %d: %v and %v", step, image.Shape, coarse.Shape)
			}
			for k, p := range b.Positions {
				if p < 0 {
					continue
				}
				draw := e.plan.At(0, p)
				asset := tabs[e.Sources()[draw.Dataset].Source].assets[[2]int64{0, draw.Row}]
				sum, want := 0, 0
				for _, v := range image.Uint16()[k*int(2*side*side) : (k+1)*int(2*side*side)] {
					sum += int(v)
				}
				y0, x0 := int(window[4*k]), int(window[4*k+1])
				for i := range int(side * side) {
					y, x := y0+i/int(side), x0+i%int(side)
					want += int(asset.at(0, y, x)) + int(asset.at(1, y, x))
				}
				if window[4*k+2] != side || sum != want {
					t.Fatalf("position %d, window %v: pixels sum to %d, not %d", p, window[4*k:4*k+4], sum, want)
				}
			}
			b.Release()
		}
	}
	if len(seen) != 3 {
		t.Errorf("batches of sizes %v", seen)
	}
	named, err := e.Start(t.Context(), steps.Ticket{Positions: []int64{0, 7, 50}}, false).Wait(t.Context())
	if err != nil || named.Tensor("image").Shape[2] != 32 {
		t.Fatalf("named: %v", err)
	}
	named.Release()
	if n := e.BatchBytes(); n < 6*2*32*32*2 {
		t.Errorf("batches of %d bytes", n)
	}
	for want, sampler := range map[string]Sampler{
		"only random":                      {Kind: "grid", Sizes: []int{16, 24, 32}},
		"sides of at least 1 pixel":        {Kind: spec.RandomWindow, Sizes: []int{16, 0, 32}},
		"given beside it":                  {Kind: spec.RandomWindow, Sizes: []int{16, 32}, Height: 16, Width: 16},
		"no whole size in every field":     {Kind: spec.RandomWindow, Sizes: []int{16, 31, 40}},
		"both sides must be from 1 to 655": {Kind: spec.RandomWindow, Sizes: []int{1 << 17}},
	} {
		sp.Sampler = sampler
		if _, err := tryMixed(sp, tabs, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", sampler, err, want)
		}
	}
	sp.Sampler = Sampler{Kind: spec.RandomWindow, Sizes: []int{16, 32}}
	sp.Sources[1].Sampler = &Sampler{Kind: spec.RandomWindow, Sizes: []int{24, 32}}
	if _, err := tryMixed(sp, tabs, 1); err == nil || !strings.Contains(err.Error(), "need one size") {
		t.Errorf("two lists of sizes: %v", err)
	}
	sp.Batches = spec.OneSource
	e = openMixed(t, sp, tabs, 1)
	clear(seen)
	for step := range e.Steps() {
		b, err := e.Start(t.Context(), steps.StepTicket(0, step, 6, 0, 1), false).Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen[100*b.Tensor("source").Int64()[0]+b.Tensor("image").Shape[2]]++
		b.Release()
	}
	if seen[16]+seen[32]+seen[124]+seen[132] != int(e.Steps()) {
		t.Errorf("sizes of sources: %v", seen)
	}
}

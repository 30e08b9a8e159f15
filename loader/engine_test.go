package loader

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed"
)

// chips is a dataset of n chips (3, 20, 24) uint16 with masks of half their resolution, a number,
// a measure and a name. Chunk forms vary from chip to chip; some have masks in their files.
func chips(seed uint64, n int64) *fakeTable {
	r := rand.New(rand.NewPCG(seed, 1))
	t := &fakeTable{
		rows:  n,
		kinds: []catalog.Kind{catalog.Raster, catalog.Raster, catalog.Int, catalog.Float, catalog.Text},
	}
	for row := range n {
		a, o := newFakeAsset(r, 3, 20, 24, 5+int(row%4)*5, row%2 == 0, row%3 == 0)
		if row%5 < 2 {
			o = a.addMask(r, o, 3+int(row%7), 5+int(row%6)*8, row%5 == 0)
		}
		t.add(0, row, a, o)
		m, o := newFakeAsset(r, 1, 10, 12, 7, false, false)
		if row%3 == 1 { // of a field that does not ask
			o = m.addMask(r, o, 4, 12, true)
		}
		t.add(1, row, m, o)
	}
	return t
}

var chipFields = []Field{
	{
		Name: "image", DType: "float32",
		Normalize: &spec.Normalize{Scale: []float64{0.5, 0.25, 1e-3}, Offset: []float64{-1, 0, 3}},
		Validity:  "image_valid",
	},
	{Name: "mask", Layout: "n y x"},
	{Name: "label"}, {Name: "measure"}, {Name: "name"},
}

func float32At(b []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
}

func uint16At(b []byte, i int) uint16 { return binary.LittleEndian.Uint16(b[2*i:]) }

// checkBatch compares a batch of chipFields with the dataset, index by index.
func checkBatch(t testing.TB, e *Engine, tab *fakeTable, tk steps.Ticket, b *batch.Batch) {
	t.Helper()
	o := shuffle.NewOrder(e.spec.Seed, tk.Epoch, e.Len(), e.spec.Shuffle)
	s := e.sets[0].sampler
	img, val, mask := b.Tensor("image"), b.Tensor("image_valid"), b.Tensor("mask")
	if fmt.Sprint(img.Shape) != fmt.Sprint([]int{tk.Rows(), 3, s.Height, s.Width}) {
		t.Fatalf("shape %v", img.Shape)
	}
	for k := range tk.Rows() {
		pos := tk.Position(k, e.Len())
		if b.Valid[k] != (pos >= 0) || b.Positions[k] != pos {
			t.Fatalf("row %d: valid %v, position %d, want %d", k, b.Valid[k], b.Positions[k], pos)
		}
		var a, m *fakeAsset
		y0, x0 := 0, 0
		row := int64(0)
		if pos >= 0 {
			row = o.At(pos) / int64(e.spec.Sampler.PerAsset)
			a, m = tab.assets[[2]int64{0, row}], tab.assets[[2]int64{1, row}]
			if s.Kind == spec.RandomWindow {
				box := shuffle.Window(shuffle.Crop{
					Seed: e.spec.Seed, Epoch: tk.Epoch, Position: pos,
					Height: a.h, Width: a.w, H: s.Height, W: s.Width, AlignY: 2, AlignX: 2,
				})
				y0, x0 = box.Y, box.X
			}
			if len(tk.Corners) > 0 {
				y0, x0 = int(tk.Corners[2*k]), int(tk.Corners[2*k+1])
			}
		}
		for c := range 3 {
			for y := range s.Height {
				for x := range s.Width {
					want, valid := float32(0), byte(0)
					if a != nil && y0+y < a.h && x0+x < a.w {
						v := a.at(c, y0+y, x0+x)
						if a.valid(c, y0+y, x0+x) {
							n := e.spec.Fields[0].Normalize
							p := float32(float32(v) * float32(n.Scale[c])) // rounded: no processor may fuse it
							want, valid = p+float32(n.Offset[c]), 1
						}
					}
					i := ((k*3+c)*s.Height+y)*s.Width + x
					if got := float32At(img.Data, i); got != want || val.Data[i] != valid {
						t.Fatalf("row %d (%d, %d, %d): %v valid %d, want %v valid %d",
							k, c, y, x, got, val.Data[i], want, valid)
					}
				}
			}
		}
		for y := range s.Height / 2 {
			for x := range s.Width / 2 {
				want := uint16(0)
				if m != nil && y0/2+y < m.h && x0/2+x < m.w {
					want = m.at(0, y0/2+y, x0/2+x)
				}
				if got := uint16At(mask.Data, (k*s.Height/2+y)*s.Width/2+x); got != want {
					t.Fatalf("row %d mask (%d, %d): %d, want %d", k, y, x, got, want)
				}
			}
		}
		checkValues(t, b, k, row, pos >= 0)
	}
}

func checkValues(t testing.TB, b *batch.Batch, k int, row int64, valid bool) {
	t.Helper()
	label := int64(binary.LittleEndian.Uint64(b.Tensor("label").Data[8*k:]))
	measure := math.Float64frombits(binary.LittleEndian.Uint64(b.Tensor("measure").Data[8*k:]))
	n := b.Tensor("name")
	text := string(n.Data[binary.LittleEndian.Uint64(n.Offsets[8*k:]):binary.LittleEndian.Uint64(n.Offsets[8*k+8:])])
	if valid && (label != row*10 || measure != float64(row)/4 || text != fmt.Sprintf("chip %d", row)) {
		t.Fatalf("row %d: values %d %v %q of sample %d", k, label, measure, text, row)
	}
	if !valid && (label != 0 || !math.IsNaN(measure) || text != "") {
		t.Fatalf("row %d: padding has values %d %v %q", k, label, measure, text)
	}
}

func wait(t testing.TB, p *Pending) *batch.Batch {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	b, err := p.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBatchAgainstIndexByIndex: batches of random specs agree with a reader that looks up every
// element.
func TestBatchAgainstIndexByIndex(t *testing.T) {
	tab := chips(1, 11)
	rapid.Check(t, func(rt *rapid.T) {
		fields := append([]Field(nil), chipFields...)
		sp := Spec{
			Fields: fields, BatchSize: rapid.IntRange(1, 9).Draw(rt, "g"),
			Seed: rapid.Uint64().Draw(rt, "seed"), Shuffle: rapid.Bool().Draw(rt, "shuffle"),
		}
		switch rapid.IntRange(0, 2).Draw(rt, "sampler") {
		case 1:
			sp.Sampler = Sampler{
				Kind: spec.RandomWindow, Height: 2 * rapid.IntRange(1, 10).Draw(rt, "h"),
				Width:    2 * rapid.IntRange(1, 12).Draw(rt, "w"),
				PerAsset: rapid.IntRange(1, 3).Draw(rt, "per"),
			}
		case 2: // larger than the asset: padded
			sp.Sampler = Sampler{Kind: spec.RandomWindow, Height: 26, Width: 30}
			fields[0].Pad, fields[1].Pad = true, true
		}
		e := openFake(t, sp, tab, 2)
		world := rapid.IntRange(1, 4).Draw(rt, "world")
		tk := steps.StepTicket(rapid.Uint64().Draw(rt, "epoch"), rapid.Int64Range(0, e.Steps()-1).Draw(rt, "step"),
			sp.BatchSize, rapid.IntRange(0, world-1).Draw(rt, "rank"), world)
		b := wait(t, e.Start(context.Background(), tk, false))
		checkBatch(t, e, tab, tk, b)
		b.Release()
	})
}

// collect runs a loader to its end and returns the bytes of all batches.
func collect(t testing.TB, e *Engine, o LoaderOptions) (out [][]byte, states []steps.State) {
	t.Helper()
	l, err := NewLoader(e, o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for b, err := range l.All(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		out, states = append(out, flat(b)), append(states, l.State())
	}
	return out, states
}

// flat returns everything in a batch as bytes.
func flat(b *batch.Batch) []byte {
	buf := fmt.Appendf(nil, "%d %d %v %v %v", b.Epoch, b.First, b.Valid, b.Positions, b.Samples)
	for _, t := range b.Tensors {
		buf = fmt.Appendf(buf, "%s %v %v %v", t.Name, t.DType, t.Axes, t.Shape)
		buf = append(append(buf, t.Data...), t.Offsets...)
	}
	return buf
}

func windowSpec() Spec {
	return Spec{
		Fields: chipFields, BatchSize: 4, Seed: 5, Shuffle: true,
		Sampler: Sampler{Kind: spec.RandomWindow, Height: 8, Width: 6, PerAsset: 2},
	}
}

func TestSameBatchesForAnyWorkerCount(t *testing.T) {
	tab := chips(2, 13)
	want, _ := collect(t, openFake(t, windowSpec(), tab, 1), LoaderOptions{Epochs: 2})
	if len(want) != 14 {
		t.Fatalf("%d batches in two epochs of 26 windows by 4", len(want))
	}
	for _, workers := range []int{2, 7} {
		got, _ := collect(t, openFake(t, windowSpec(), tab, workers), LoaderOptions{Epochs: 2, Prefetch: workers})
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Errorf("%d workers: batch %d differs", workers, i)
			}
		}
	}
}

// TestSameSamplesForAnyWorldSize: rank by rank, the rows of W ranks are those of one.
func TestSameSamplesForAnyWorldSize(t *testing.T) {
	tab := chips(3, 13)
	e := openFake(t, windowSpec(), tab, 2)
	for _, world := range []int{1, 3, 8} {
		for s := range e.Steps() {
			for rank := range world {
				tk := steps.StepTicket(1, s, 4, rank, world)
				b := wait(t, e.Start(context.Background(), tk, false))
				if b.Rows != (4+world-1)/world {
					t.Fatalf("world %d: rank %d has %d rows", world, rank, b.Rows)
				}
				checkBatch(t, e, tab, tk, b)
				b.Release()
			}
		}
	}
}

// TestNamedPositions: a ticket may name positions in any order, again and again, also with the corners of windows.
// Positions and windows that do not exist are errors of a kind, and end the ticket only.
func TestNamedPositions(t *testing.T) {
	race.SkipCovered(t)
	tab := chips(3, 13)
	e := openFake(t, windowSpec(), tab, 2)
	n := e.Len()
	named := []int64{5, 0, 5, n - 1, 12, 7, 0}
	corners := make([]uint32, 2*len(named))
	for k, p := range named {
		row := e.Plan().At(1, p).Row
		a := tab.assets[[2]int64{0, row}]
		corners[2*k], corners[2*k+1] = uint32(a.h-8)/2*2, uint32(a.w-6)/4*2
	}
	for _, tk := range []steps.Ticket{
		{Epoch: 1, Positions: named}, {Epoch: 1, Positions: named, Corners: corners}, {Positions: []int64{3}},
	} {
		b := wait(t, e.Start(t.Context(), tk, false))
		checkBatch(t, e, tab, tk, b)
		b.Release()
	}
	for _, c := range []struct {
		ticket steps.Ticket
		kind   fault.Kind
	}{
		{steps.Ticket{Positions: []int64{0, n}}, fault.NotFound},
		{steps.Ticket{Positions: []int64{-1}}, fault.NotFound},
		{steps.Ticket{Positions: []int64{1}, Count: 1, RowStride: 1}, fault.Unsupported},
		{steps.Ticket{Corners: []uint32{0, 0}}, fault.Unsupported},
		{steps.Ticket{Positions: []int64{1}, Corners: []uint32{0}}, fault.Unsupported},
		{steps.Ticket{Positions: []int64{1}, Corners: []uint32{1, 0}}, fault.Unsupported}, // a coarser field has none
		{steps.Ticket{Positions: []int64{1}, Corners: []uint32{1 << 20, 0}}, fault.NotFound},
		{steps.Ticket{Positions: []int64{1}, Corners: []uint32{0, math.MaxUint32 - 1}}, fault.NotFound},
		{steps.Ticket{Positions: make([]int64, 1<<24)}, fault.Limit},
	} {
		if _, err := e.Start(t.Context(), c.ticket, false).Wait(t.Context()); fault.KindOf(err) != c.kind {
			t.Errorf("%d positions, corners %v: %v", len(c.ticket.Positions), c.ticket.Corners, err)
		}
	}
	whole := windowSpec()
	whole.Sampler = Sampler{}
	e = openFake(t, whole, chips(3, 1), 1)
	tk := steps.Ticket{Positions: []int64{0}, Corners: []uint32{0, 0}}
	if _, err := e.Start(t.Context(), tk, false).Wait(t.Context()); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("the corner of a whole chip: %v", err)
	}
}

func TestResumeGivesSameBatches(t *testing.T) {
	tab := chips(4, 13)
	e := openFake(t, windowSpec(), tab, 2)
	want, states := collect(t, e, LoaderOptions{Epochs: 2})
	for i := range states {
		got, _ := collect(t, e, LoaderOptions{Epochs: 2, State: &states[i]})
		if len(got) != len(want)-i-1 {
			t.Fatalf("resumed after batch %d: %d batches, want %d", i, len(got), len(want)-i-1)
		}
		for k := range got {
			if !bytes.Equal(got[k], want[i+1+k]) {
				t.Fatalf("resumed after batch %d: batch %d differs", i, i+1+k)
			}
		}
	}
	other := states[3]
	other.Spec = "another"
	if _, err := NewLoader(e, LoaderOptions{State: &other}); err == nil {
		t.Error("the state of another spec was accepted")
	}
}

func TestSpecHash(t *testing.T) {
	tab := chips(4, 3)
	base := openFake(t, windowSpec(), tab, 1).Hash()
	moved := windowSpec()
	moved.Source = "elsewhere"
	for name, c := range map[string]struct {
		change func(*Spec)
		same   bool
	}{
		"nothing":    {func(*Spec) {}, true},
		"seed":       {func(s *Spec) { s.Seed++ }, false},
		"batch size": {func(s *Spec) { s.BatchSize++ }, false},
		"window":     {func(s *Spec) { s.Sampler.Width += 2 }, false},
		"policy":     {func(s *Spec) { s.BadSamples = spec.BadSkip }, false},
		"layout": {
			func(s *Spec) { s.Fields = append([]Field(nil), s.Fields...); s.Fields[1].Layout = "n x y" },
			false,
		},
	} {
		s := windowSpec()
		c.change(&s)
		if got := openFake(t, s, tab, 1).Hash(); (got == base) != c.same {
			t.Errorf("after a change of %s the hash is %s, before %s", name, got, base)
		}
	}
}

func TestBadSamples(t *testing.T) {
	tab := chips(5, 10)
	tab.broken = map[int64]error{
		3: fault.At(fault.Corrupt, "tile 1", 99, "broken"),
		7: fault.At(fault.Limit, "tile 2", 5, "large"),
	}
	sp := Spec{Fields: chipFields, BatchSize: 5}
	ctx := context.Background()
	e := openFake(t, sp, tab, 3)
	for range 5 {
		_, err := e.Start(ctx, steps.StepTicket(0, 0, 5, 0, 1), false).Wait(ctx)
		if !errors.Is(err, fault.Corrupt) {
			t.Fatalf("error %v, want that of sample 3", err)
		}
	}
	sp.BadSamples = spec.BadSkip
	e = openFake(t, sp, tab, 3)
	b := wait(t, e.Start(ctx, steps.StepTicket(0, 0, 5, 0, 1), false))
	defer b.Release()
	if fmt.Sprint(b.Valid) != "[true true true false true]" || len(b.Bad) != 1 || b.Bad[0].Row != 3 ||
		b.Bad[0].Position != 3 {
		t.Fatalf("valid %v, bad %v", b.Valid, b.Bad)
	}
	if !errors.Is(b.Bad[0].Err, fault.Corrupt) {
		t.Errorf("bad row's error is %v", b.Bad[0].Err)
	}
	per := 3 * 20 * 24
	for i := 3 * per; i < 4*per; i++ {
		if float32At(b.Tensor("image").Data, i) != 0 || b.Tensor("image_valid").Data[i] != 0 {
			t.Fatalf("element %d of the skipped row is not filled", i)
		}
	}
	checkValues(t, b, 3, 0, false)
	checkValues(t, b, 4, 4, true)
}

func TestInvalidTickets(t *testing.T) {
	e := openFake(t, Spec{Fields: chipFields[:1], BatchSize: 2}, chips(6, 4), 1)
	for _, tk := range []steps.Ticket{
		{First: -1, Count: 1, RowStride: 1},
		{First: 5, Count: 1, RowStride: 1},
		{First: math.MaxInt64, Count: 1, RowStride: 1},
		{Count: 0, RowStride: 1},
		{Count: -4, RowStride: 1},
		{Count: 1, RowStride: 0},
		{Count: 1, RowStart: 1, RowStride: 1},
		{Count: 1, RowStart: -1, RowStride: 1},
		{Count: math.MaxInt32, RowStride: 1},
		{Count: 1 << 20, RowStride: 1},
	} {
		if b, err := e.Start(context.Background(), tk, false).Wait(context.Background()); fault.KindOf(err) == 0 {
			t.Errorf("ticket %+v: %v, %v", tk, b, err)
		}
	}
	// A stride that overflows every int sum, at the end of the epoch.
	tk := steps.Ticket{First: 4, Count: 2, RowStart: math.MaxInt - 1, RowStride: math.MaxInt}
	b := wait(t, e.Start(context.Background(), tk, false))
	defer b.Release()
	if len(b.Valid) != 1 || b.Valid[0] {
		t.Errorf("ticket %+v has rows %v", tk, b.Valid)
	}
}

// TestMemoryByTheBatch: by default there is room for eight batches, within a quarter of the
// machine's memory.
func TestMemoryByTheBatch(t *testing.T) {
	quarter := procs.Memory() / 4
	if quarter < 1<<30 {
		t.Skipf("a machine with %d bytes of memory", 4*quarter)
	}
	for _, c := range []struct {
		side, batch int
		want        func(one int64) int64
		fits        bool
	}{
		{64, 4, func(int64) int64 { return resources.DefaultMemoryBytes }, true},
		{4096, 6, func(one int64) int64 { return 8 * one }, true},                    // 192 MiB a batch
		{1 << 15, int(quarter>>31) + 2, func(int64) int64 { return quarter }, false}, // 2 GiB a row
	} {
		tab := chips(7, 8)
		f := chipFields[0]
		f.Bands, f.Pad = []int{0}, true
		sp := Spec{
			Source: "memory", Fields: []Field{f}, BatchSize: c.batch,
			Sampler: Sampler{Kind: spec.RandomWindow, Height: c.side, Width: c.side},
		}.WithDefaults()
		sp.Fields[0].DType, sp.Fields[0].Validity = "native", ""
		sp.Fields[0].Normalize = nil
		var log bytes.Buffer
		e, err := newEngine(t.Context(), sp, Options{
			Workers: 1, Opener: tab, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		}.WithDefaults(), tab.table())
		if err != nil {
			t.Fatal(err)
		}
		one := int64(2 * c.side * c.side * c.batch)
		got, want := e.options.MemoryBytes, c.want(one)
		if e.tiles != nil { // of windows whose corners are named
			got += e.tiles.Bound
		}
		most := want + want/100
		if e.tiles != nil && e.tiles.Keeps() {
			most += procs.Memory() / keptShare
		}
		if got < want || got > most {
			t.Errorf("%d rows of %d pixels: %d bytes of memory, not %d", c.batch, c.side, got, want)
		}
		l, err := NewLoader(e, LoaderOptions{})
		switch {
		case !c.fits && !errors.Is(err, fault.Limit):
			t.Errorf("a batch of %d bytes in %d: %v", one, e.options.MemoryBytes, err)
		case c.fits && (err != nil || log.Len() > 0):
			t.Errorf("%d rows: prefetch cut, or %v, %s", c.batch, err, log.String())
		}
		if err == nil {
			l.Close()
		}
		e.Close()
	}
}

// TestMemoryIsBounded: batches that are not released hold back further ones.
func TestMemoryIsBounded(t *testing.T) {
	tab := chips(7, 8)
	sp := Spec{Source: "memory", Fields: chipFields[:1], BatchSize: 2}.WithDefaults()
	probe := openFake(t, sp, tab, 1)
	l, err := probe.layout(layoutKey{group: probe.groups[0], rows: 2})
	if err != nil {
		t.Fatal(err)
	}
	one := int64(l.bytes)
	if least := int64(2 * 3 * 20 * 24 * (4 + 1)); one < least || one > least+1024 {
		t.Fatalf("a batch of %d bytes of tensors takes %d", least, one)
	}
	e, err := newEngine(context.Background(), sp, Options{
		Workers: 2, Opener: tab, MemoryBytes: 2*one + 1,
	}.WithDefaults(), tab.table())
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var pend []*Pending
	for s := range int64(4) {
		pend = append(pend, e.Start(context.Background(), steps.StepTicket(0, s, 2, 0, 1), false))
	}
	a, b := wait(t, pend[0]), wait(t, pend[1])
	if taken, _ := e.memory.counts(); taken != 2*one {
		t.Fatalf("%d bytes taken, want %d", taken, 2*one)
	}
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := pend[2].Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a third batch came: %v", err)
	}
	a.Release()
	a.Release() // does nothing
	c := wait(t, pend[3])
	b.Release()
	c.Release()
	sp.BatchSize = 8
	var log bytes.Buffer
	e, err = newEngine(context.Background(), sp, Options{
		Workers: 2, Opener: tab, MemoryBytes: 2*one + 1, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}.WithDefaults(), tab.table())
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	big := steps.Ticket{Count: 8, RowStride: 1}
	if _, err := e.Start(context.Background(), big, false).Wait(context.Background()); !errors.Is(err, fault.Limit) {
		t.Fatalf("a batch over the bound: %v", err)
	}
	if _, err := NewLoader(e, LoaderOptions{}); !errors.Is(err, fault.Limit) {
		t.Fatalf("a loader of batches over the bound: %v", err)
	}
	// With four ranks, batches have two rows, which fit.
	if l, err := NewLoader(e, LoaderOptions{World: 4}); err != nil {
		t.Fatal(err)
	} else if l.Close(); !strings.Contains(log.String(), "prefetch=3 prefetched=1") {
		t.Errorf("batches ahead in memory for two: %s", log.String())
	}
}

// TestCancelReleasesEverything: tickets that are cancelled at any stage give back all of their
// memory.
func TestCancelReleasesEverything(t *testing.T) {
	tab := chips(8, 13)
	e := openFake(t, windowSpec(), tab, 3)
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		ctx, cancel := context.WithCancel(context.Background())
		p := e.Start(ctx, steps.StepTicket(0, r.Int64N(e.Steps()), 4, 0, 1), false)
		switch r.IntN(4) {
		case 0:
			p.Cancel()
		case 1:
			cancel()
			if b, err := p.Wait(context.Background()); err == nil {
				b.Release()
			}
		case 2:
			short, c := context.WithTimeout(ctx, time.Duration(r.IntN(300))*time.Microsecond)
			if b, err := p.Wait(short); err == nil {
				b.Release()
			}
			c()
		default:
			wait(t, p).Release()
		}
		cancel()
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if taken, idle := e.memory.counts(); taken != idle {
		t.Errorf("%d bytes are still out", taken-idle)
	}
}

func TestClosedEngineEndsItsTickets(t *testing.T) {
	tab := chips(9, 13)
	e := openFake(t, windowSpec(), tab, 1)
	var pend []*Pending
	for s := range e.Steps() {
		pend = append(pend, e.Start(context.Background(), steps.StepTicket(0, s, 4, 0, 1), false))
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	late := e.Start(context.Background(), steps.StepTicket(0, 0, 4, 0, 1), false)
	for i, p := range append(pend, late) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		if b, err := p.Wait(ctx); err == nil {
			b.Release()
		} else if !errors.Is(err, ErrClosed) {
			t.Errorf("ticket %d: %v", i, err)
		}
		cancel()
	}
}

// TestNativeTensorsConvertToTheFinalOnes: native tensors, converted the slow way, equal the final
// ones.
func TestNativeTensorsConvertToTheFinalOnes(t *testing.T) {
	tab := chips(10, 9)
	fill := spec.Float(-3)
	for name, f := range map[string]Field{
		"per band": {Name: "image", DType: "float32", Normalize: chipFields[0].Normalize, Fill: &fill},
		"one": {
			Name: "image", DType: "float32",
			Normalize: &spec.Normalize{Scale: []float64{.1}, Offset: []float64{2}, Clip: &[2]spec.Float{3, 400}},
		},
		"cast":       {Name: "image", DType: "float32"},
		"padded":     {Name: "image", DType: "float32", Pad: true, Normalize: chipFields[0].Normalize, Fill: &fill},
		"band last":  {Name: "image", DType: "float32", Layout: "n y x b", Normalize: chipFields[0].Normalize},
		"not native": {Name: "image", DType: "float32", Layout: "n (y b) x", Normalize: chipFields[0].Normalize},
	} {
		sp := Spec{Fields: []Field{f}, BatchSize: 4, Sampler: Sampler{Kind: spec.RandomWindow, Height: 10, Width: 10}}
		if f.Pad {
			sp.Sampler.Height = 22
		}
		e := openFake(t, sp, tab, 2)
		for s := range e.Steps() {
			tk := steps.StepTicket(0, s, 4, 0, 1)
			final := wait(t, e.Start(context.Background(), tk, false))
			wire := wait(t, e.Start(context.Background(), tk, true))
			w := wire.Tensors[0]
			if (w.Convert == nil) != (name == "not native") {
				t.Fatalf("%s: convert is %v", name, w.Convert)
			}
			if w.Convert != nil {
				w.Data = slowConvert(w)
			}
			if !bytes.Equal(w.Data, final.Tensors[0].Data) {
				t.Errorf("%s: step %d differs", name, s)
			}
			final.Release()
			wire.Release()
		}
	}
}

// slowConvert is the receiver's arithmetic, element by element.
func slowConvert(t batch.Tensor) []byte {
	c := t.Convert
	n := len(t.Data) / 2
	out := make([]byte, 0, 4*n)
	for i := range n {
		band := 0
		if c.BandAxis >= 0 {
			rest := int64(i)
			for a := len(t.Shape) - 1; a > c.BandAxis; a-- {
				rest /= t.Shape[a]
			}
			band = int(rest % t.Shape[c.BandAxis])
		}
		v := float32(uint16At(t.Data, i))
		if len(c.Scale) > 0 {
			p := float32(v * c.Scale[band])
			v = p + c.Offset[band]
		}
		if c.Clip {
			v = min(max(v, c.Lo), c.Hi)
		}
		if c.Mask != nil && c.Mask[i] == 0 {
			v = float32(c.Fill)
		}
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

// TestDecodeAllocatesNothingPerChunk: batches whose assets have many chunks allocate no more than
// batches whose assets have few.
func TestDecodeAllocatesNothingPerChunk(t *testing.T) {
	race.SkipCovered(t)
	allocs := func(tile int) float64 {
		r := rand.New(rand.NewPCG(1, 1))
		tab := &fakeTable{rows: 4, kinds: []catalog.Kind{catalog.Raster}}
		for row := range tab.rows {
			a, o := newFakeAsset(r, 3, 128, 128, tile, false, false)
			tab.add(0, row, a, o)
		}
		e := openFake(t, Spec{Fields: []Field{{Name: "image", DType: "float32"}}, BatchSize: 4}, tab, 1)
		return testing.AllocsPerRun(20, func() {
			wait(t, e.Start(context.Background(), steps.StepTicket(0, 0, 4, 0, 1), false)).Release()
		})
	}
	few, many := allocs(128), allocs(8) // 12 and 3072 chunks a batch
	if many > few+8 {
		t.Errorf("%.0f allocations with 12 chunks a batch, %.0f with 3072", few, many)
	}
}

func TestLoaderEndsWithEOF(t *testing.T) {
	e := openFake(t, Spec{Fields: chipFields[:1], BatchSize: 4, Last: "drop"}, chips(11, 6), 1)
	l, err := NewLoader(e, LoaderOptions{Epochs: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 2 {
		b, err := l.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	for range 2 {
		if _, err := l.Next(context.Background()); err != io.EOF {
			t.Fatalf("after the last epoch: %v", err)
		}
	}
}

func TestSelection(t *testing.T) {
	for text, want := range map[string]string{"": "[0 1 2 3]", "1:3": "[1 2]", "3,0,3": "[3 0 3]", "2": "[2]"} {
		s, err := raster.ParseSelection(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Indices("b", 4); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"4", "-1", "1:5", "2:2", "3:1", "-1:2", "0,9"} {
		s, err := raster.ParseSelection(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Indices("b", 4); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"a", "1:2:3", ":", "1:", ",", "1,,2"} {
		if s, err := raster.ParseSelection(text); err == nil {
			t.Errorf("%q is %v", text, s)
		}
	}
}

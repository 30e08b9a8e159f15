package loader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/store/catalog"
)

// pairs is a dataset of n samples with an image of (2, h, w) and a second raster of other sizes.
func pairs(n int64, size func(row int64) (h, w, h2, w2 int)) *fakeTable {
	r := rand.New(rand.NewPCG(9, 9))
	t := &fakeTable{rows: n, kinds: []catalog.Kind{catalog.Raster, catalog.Raster}}
	for row := range n {
		h, w, h2, w2 := size(row)
		a, o := newFakeAsset(r, 2, h, w, 7, false, row%2 == 0)
		t.add(0, row, a, o)
		a, o = newFakeAsset(r, 1, h2, w2, 5, false, false)
		t.add(1, row, a, o)
	}
	return t
}

var pairFields = []Field{{Name: "a"}, {Name: "b"}}

func tryEngine(sp Spec, tab *fakeTable) (*Engine, error) {
	sp.Source = "memory"
	sp = sp.WithDefaults()
	if err := sp.Validate(); err != nil {
		return nil, err
	}
	return newEngine(context.Background(), sp, Options{Workers: 2, Opener: tab}.WithDefaults(), tab.table())
}

// TestFieldsOfOtherResolution: windows of two rasters whose sizes have a ratio begin on whole
// pixels of both, and every sample is right.
func TestFieldsOfOtherResolution(t *testing.T) {
	for _, c := range []struct{ num, den, alignY, alignX int }{{1, 2, 2, 2}, {2, 1, 1, 1}, {3, 2, 2, 2}, {2, 3, 3, 3}} {
		tab := pairs(5, func(row int64) (int, int, int, int) {
			h, w := 24+6*int(row), 30+6*int(row)
			return h, w, h * c.num / c.den, w * c.num / c.den
		})
		e, err := tryEngine(Spec{
			Fields: pairFields, BatchSize: 4, Shuffle: true, Seed: 3,
			Sampler: Sampler{Kind: spec.RandomWindow, Height: 12, Width: 6, PerAsset: 9},
		}, tab)
		if err != nil {
			t.Fatal(err)
		}
		o := shuffle.NewOrder(3, 0, e.Len(), true)
		for s := range e.Steps() {
			b := wait(t, e.Start(context.Background(), steps.StepTicket(0, s, 4, 0, 1), false))
			for k, p := range b.Positions {
				if p < 0 {
					continue
				}
				row := o.At(p) / 9
				first, second := tab.assets[[2]int64{0, row}], tab.assets[[2]int64{1, row}]
				box := shuffle.Window(shuffle.Crop{
					Seed: 3, Position: p,
					Height: first.h, Width: first.w, H: 12, W: 6, AlignY: c.alignY, AlignX: c.alignX,
				})
				y, x := box.Y, box.X
				checkWindow(t, b.Tensor("a"), k, first, y, x, 12, 6)
				checkWindow(t, b.Tensor("b"), k, second, y*c.num/c.den, x*c.num/c.den, 12*c.num/c.den, 6*c.num/c.den)
			}
			b.Release()
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

func checkWindow(t *testing.T, got *batch.Tensor, row int, a *fakeAsset, y0, x0, h, w int) {
	t.Helper()
	if want := fmt.Sprint([]int{int(got.Shape[0]), a.b, h, w}); fmt.Sprint(got.Shape) != want {
		t.Fatalf("%s has shape %v, want %s", got.Name, got.Shape, want)
	}
	for b := range a.b {
		for y := range h {
			for x := range w {
				if g, want := uint16At(got.Data, ((row*a.b+b)*h+y)*w+x), a.at(b, y0+y, x0+x); g != want {
					t.Fatalf("%s row %d (%d, %d, %d): %d, want %d", got.Name, row, b, y, x, g, want)
				}
			}
		}
	}
}

// TestSizesThatDoNotFit: sizes that do not fit are found when the run is opened, in the first
// sample, or when another sample is read.
func TestSizesThatDoNotFit(t *testing.T) {
	whole := func(h, w, h2, w2 int) func(int64) (int, int, int, int) {
		return func(int64) (int, int, int, int) { return h, w, h2, w2 }
	}
	last := func(h, w, h2, w2 int) func(int64) (int, int, int, int) {
		return func(row int64) (int, int, int, int) {
			if row == 2 {
				return h, w, h2, w2
			}
			return 20, 20, 10, 10
		}
	}
	window := Sampler{Kind: spec.RandomWindow, Height: 12, Width: 12}
	for name, c := range map[string]struct {
		size    func(int64) (int, int, int, int)
		sampler Sampler
		opens   bool
		want    string
	}{
		"no common grid":        {whole(20, 20, 10, 131), window, false, "share a grid"},
		"a ratio over the most": {whole(650, 65, 10, 1), window, false, "share a grid"},
		"an odd window": {
			whole(20, 20, 10, 10), Sampler{Kind: spec.RandomWindow, Height: 12, Width: 11},
			false, "multiple of 2 by 2",
		},
		"chip too high":   {last(22, 20, 11, 10), Sampler{}, true, "whole chips"},
		"chip too wide":   {last(20, 22, 10, 11), Sampler{}, true, "whole chips"},
		"chip too low":    {last(18, 20, 9, 10), Sampler{}, true, "does not pad"},
		"window too high": {last(10, 20, 5, 10), window, true, "does not pad"},
		"window too wide": {last(20, 10, 10, 5), window, true, "does not pad"},
		"another ratio":   {last(20, 20, 20, 20), window, true, "share a grid"},
	} {
		e, err := tryEngine(Spec{Fields: pairFields, BatchSize: 1, Sampler: c.sampler}, pairs(3, c.size))
		if (err == nil) != c.opens {
			t.Errorf("%s: open gives %v", name, err)
			continue
		}
		if err == nil {
			_, err = e.Start(context.Background(), steps.StepTicket(0, 2, 1, 0, 1), false).Wait(context.Background())
			if cerr := e.Close(); cerr != nil {
				t.Error(cerr)
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestAssetsUnlikeTheFirst(t *testing.T) {
	tab := chips(30, 3)
	a, o := newFakeAsset(rand.New(rand.NewPCG(1, 1)), 4, 20, 24, 8, false, false)
	tab.add(0, 1, a, o)
	e := openFake(t, Spec{Fields: []Field{{Name: "image"}}, BatchSize: 1}, &fakeTable{
		rows: 3, kinds: tab.kinds[:1], assets: tab.assets, objects: tab.objects,
	}, 1)
	_, err := e.Start(context.Background(), steps.StepTicket(0, 1, 1, 0, 1), false).Wait(context.Background())
	if fault.KindOf(err) != fault.Unsupported {
		t.Errorf("four bands where three are: %v", err)
	}
	// If the field picks bands, an additional band does not matter.
	e = openFake(t, Spec{Fields: []Field{{Name: "image", Bands: []int{2}}}, BatchSize: 1}, &fakeTable{
		rows: 3, kinds: tab.kinds[:1], assets: tab.assets, objects: tab.objects,
	}, 1)
	wait(t, e.Start(context.Background(), steps.StepTicket(0, 1, 1, 0, 1), false)).Release()
}

// TestSkippedRowIsCleared: data of an earlier batch do not show in a row that is not valid.
func TestSkippedRowIsCleared(t *testing.T) {
	tab := chips(31, 8)
	tab.broken = map[int64]error{}
	sp := Spec{Fields: chipFields, BatchSize: 4, BadSamples: spec.BadSkip}
	e := openFake(t, sp, tab, 2)
	ctx := context.Background()
	wait(t, e.Start(ctx, steps.StepTicket(0, 0, 4, 0, 1), false)).Release()
	tab.broken[5] = fault.At(fault.Corrupt, "tile", 1, "broken")
	b := wait(t, e.Start(ctx, steps.StepTicket(0, 1, 4, 0, 1), false))
	defer b.Release()
	if b.Valid[1] {
		t.Fatal("row 1 is valid")
	}
	for _, name := range []string{"image", "image_valid", "mask"} {
		data := b.Tensor(name).Data
		for i, v := range data[len(data)/4 : len(data)/2] {
			if v != 0 {
				t.Fatalf("%s: byte %d of the skipped row is %d", name, i, v)
			}
		}
	}
}

// TestFirstSampleMayBeBad: if bad samples are skipped, the first one is too.
func TestFirstSampleMayBeBad(t *testing.T) {
	tab := chips(32, 4)
	tab.broken = map[int64]error{0: fault.At(fault.Corrupt, "tile", 1, "broken")}
	if _, err := tryEngine(Spec{Fields: chipFields, BatchSize: 2}, tab); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("without skip: %v", err)
	}
	e := openFake(t, Spec{Fields: chipFields, BatchSize: 2, BadSamples: spec.BadSkip}, tab, 1)
	b := wait(t, e.Start(context.Background(), steps.StepTicket(0, 0, 2, 0, 1), false))
	defer b.Release()
	if fmt.Sprint(b.Valid) != "[false true]" {
		t.Errorf("valid %v", b.Valid)
	}
}

// TestSystemErrorsAreNotSkipped: an error of the system is not the sample's fault.
func TestSystemErrorsAreNotSkipped(t *testing.T) {
	tab := chips(33, 4)
	tab.broken = map[int64]error{2: syscall.EMFILE}
	e := openFake(t, Spec{Fields: chipFields, BatchSize: 4, BadSamples: spec.BadSkip}, tab, 1)
	_, err := e.Start(context.Background(), steps.StepTicket(0, 0, 4, 0, 1), false).Wait(context.Background())
	if !errors.Is(err, syscall.EMFILE) {
		t.Errorf("error %v", err)
	}
	// Another fault of the sample does not hide the error.
	for _, part := range []string{"a part", "zone"} {
		tab.second = map[int64]error{2: fault.At(fault.Corrupt, part, 0, "broken")}
		for range 20 {
			_, err := e.Start(context.Background(), steps.StepTicket(0, 0, 4, 0, 1), false).Wait(context.Background())
			if !errors.Is(err, syscall.EMFILE) {
				t.Fatalf("error %v beside one in %q", err, part)
			}
		}
	}
}

// TestFirstErrorIsReported: the error is that of the first row, whichever worker is faster.
func TestFirstErrorIsReported(t *testing.T) {
	tab := chips(34, 16)
	tab.broken = map[int64]error{}
	for row := int64(2); row < 16; row++ {
		tab.broken[row] = fault.At(fault.Corrupt, fmt.Sprint("row ", row), 0, "broken")
	}
	e := openFake(t, Spec{Fields: chipFields, BatchSize: 16}, tab, 7)
	for range 50 {
		_, err := e.Start(context.Background(), steps.StepTicket(0, 0, 16, 0, 1), false).Wait(context.Background())
		if err == nil || !strings.Contains(err.Error(), "row 2 ") {
			t.Fatalf("error %v", err)
		}
	}
}

// TestNextAfterAnError: Next tries the same step again; after a deadline, the work has continued.
func TestNextAfterAnError(t *testing.T) {
	tab := chips(35, 12)
	broken := fault.At(fault.Corrupt, "tile", 1, "broken")
	tab.broken = map[int64]error{5: broken}
	e := openFake(t, Spec{Fields: chipFields, BatchSize: 4}, tab, 1)
	l, err := NewLoader(e, LoaderOptions{Epochs: 1, Prefetch: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx := context.Background()
	next := func() *batch.Batch {
		t.Helper()
		b, err := l.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	next().Release()
	for range 2 {
		if _, err := l.Next(ctx); !errors.Is(err, fault.Corrupt) {
			t.Fatalf("the bad step gives %v", err)
		}
	}
	delete(tab.broken, 5)
	b := next()
	if b.First != 4 {
		t.Errorf("position %d after the bad step, want 4", b.First)
	}
	b.Release()
	// After several short deadlines the batch still comes.
	for deadline := time.Now().Add(5 * time.Minute); ; {
		short, cancel := context.WithTimeout(ctx, 100*time.Microsecond)
		b, err := l.Next(short)
		cancel()
		if err == nil {
			if b.First != 8 {
				t.Errorf("position %d, want 8", b.First)
			}
			b.Release()
			break
		}
		if !errors.Is(err, context.DeadlineExceeded) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestBatchesOfSeveralSizesShareTheMemory: idle buffers of the wrong size make room.
func TestBatchesOfSeveralSizesShareTheMemory(t *testing.T) {
	tab := chips(36, 8)
	sp := Spec{Source: "memory", Fields: chipFields[:1], BatchSize: 4}.WithDefaults()
	probe := openFake(t, sp, tab, 1)
	l, err := probe.layout(layoutKey{group: probe.groups[0], rows: 4})
	if err != nil {
		t.Fatal(err)
	}
	e, err := newEngine(context.Background(), sp, Options{
		Workers: 1, Opener: tab, MemoryBytes: int64(l.bytes),
	}.WithDefaults(), tab.table())
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for range 3 {
		for _, world := range []int{1, 2, 4} {
			wait(t, e.Start(context.Background(), steps.StepTicket(0, 0, 4, 0, world), false)).Release()
		}
	}
}

func TestStatesOfOtherRuns(t *testing.T) {
	e := openFake(t, windowSpec(), chips(37, 4), 1)
	good := steps.State{Version: steps.Version, Spec: e.Hash(), Seed: 5, Epoch: 2, Samples: 4}
	for name, change := range map[string]func(*steps.State){
		"spec": func(s *steps.State) { s.Spec = "x" }, "seed": func(s *steps.State) { s.Seed++ },
		"version": func(s *steps.State) { s.Version++ }, "step": func(s *steps.State) { s.Samples++ },
	} {
		s := good
		change(&s)
		if _, err := NewLoader(e, LoaderOptions{State: &s}); err == nil {
			t.Errorf("a state with another %s was accepted", name)
		}
	}
	l, err := NewLoader(e, LoaderOptions{State: &good}) // one without parts, as before
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if b, err := l.Next(t.Context()); err != nil || b.Epoch != 2 || b.First != 4 {
		t.Fatalf("%+v, %v", b, err)
	} else {
		b.Release()
	}
}

// TestStateNamesWhatDiffers: a state of a run that differs in one setting is refused with its name.
func TestStateNamesWhatDiffers(t *testing.T) {
	sp := windowSpec()
	sp.Fields = slices.Clone(sp.Fields)
	was := openFake(t, sp, chips(37, 4), 1).State()
	if s, err := steps.ParseState(mustJSON(t, was)); err != nil || !reflect.DeepEqual(s, was) {
		t.Fatalf("%+v, written and read %+v: %v", was, s, err)
	}
	for want, change := range map[string]func(*Spec) *fakeTable{
		"batch_size is 3, in the state 4":     func(s *Spec) *fakeTable { s.BatchSize = 3; return nil },
		"shuffle is false, in the state true": func(s *Spec) *fakeTable { s.Shuffle = false; return nil },
		"last is drop, in the state it is not given": func(s *Spec) *fakeTable {
			s.Last = "drop"
			return nil
		},
		"seed is 6, in the state 5": func(s *Spec) *fakeTable { s.Seed = 6; return nil },
		"fields.image.dtype is float16, in the state float32": func(s *Spec) *fakeTable {
			s.Fields[0].DType = "float16"
			return nil
		},
		"fields.image.normalize.scale is [0.5,0.25,0.002], in t": func(s *Spec) *fakeTable {
			s.Fields[0].Normalize = &spec.Normalize{Scale: []float64{0.5, 0.25, 0.002}, Offset: []float64{-1, 0, 3}}
			return nil
		},
		"sampler.height is 6, in the state 8": func(s *Spec) *fakeTable { s.Sampler.Height = 6; return nil },
		"samples is 10, in the state 8":       func(*Spec) *fakeTable { t := chips(37, 5); t.print = "5"; return t },
		"data differs":                        func(*Spec) *fakeTable { t := chips(38, 4); t.print = "8"; return t },
	} {
		s, tab := windowSpec(), chips(37, 4)
		s.Fields = slices.Clone(s.Fields)
		if other := change(&s); other != nil {
			tab = other
		}
		e := openFake(t, s, tab, 1)
		if _, err := NewLoader(e, LoaderOptions{State: &was}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("not %q: %v", want, err)
		}
	}
}

// TestStateOfOtherRunGoesOn: with AnyState a run resumes with more data, and every sample comes
// once from the next epoch on.
func TestStateOfOtherRunGoesOn(t *testing.T) {
	grown := chips(37, 7)
	grown.print = "7"
	small, large := openFake(t, windowSpec(), chips(37, 4), 1), openFake(t, windowSpec(), grown, 1)
	l, err := NewLoader(small, LoaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b, err := l.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.Release()
	state := l.State()
	more, err := NewLoader(large, LoaderOptions{State: &state, AnyState: true, Epochs: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	fresh, err := NewLoader(large, LoaderOptions{Epochs: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	if b, err = fresh.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Release()
	for b, err := range more.All(t.Context()) {
		want, err2 := fresh.Next(t.Context())
		if err = errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if b.Epoch != want.Epoch || b.First != want.First || !slices.Equal(b.Samples, want.Samples) ||
			!reflect.DeepEqual(more.State(), fresh.State()) {
			t.Errorf("epoch %d first %d: %v, not %v", b.Epoch, b.First, b.Samples, want.Samples)
		}
		want.Release()
	}
	if _, err := fresh.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("the run over more data ended early: %v", err)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestNullValues(t *testing.T) {
	null := catalog.Value{Null: true}
	of := func(kind catalog.Kind) valueField { return newValueField(Field{DType: "native"}, 0, kind) }
	if _, err := of(catalog.Int).bits(null); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("a null integer: %v", err)
	}
	if _, err := of(catalog.Float).bits(null); err != nil {
		t.Errorf("a null float: %v", err)
	}
	f := of(catalog.Float).tensor([]catalog.Value{null, {Float: 2}}, []bool{true, true})
	if fmt.Sprintf("%x", f.Data) != "010000000000f87f0000000000000040" {
		t.Errorf("null and 2 as floats: %x", f.Data)
	}
}

func TestSpecsThatAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"an unknown member":     `{"source":"a","batch_size":1,"colour":1}`,
		"more after it":         `{"source":"a","batch_size":1} {}`,
		"no source":             `{"batch_size":1}`,
		"no batch size":         `{"source":"a"}`,
		"a policy":              `{"source":"a","batch_size":1,"bad_samples":"hope"}`,
		"a sampler":             `{"source":"a","batch_size":1,"sampler":{"kind":"spiral"}}`,
		"a window of nothing":   `{"source":"a","batch_size":1,"sampler":{"kind":"random_window"}}`,
		"a name twice":          `{"source":"a","batch_size":1,"fields":[{"name":"a"},{"name":"a"}]}`,
		"a name of the batch's": `{"source":"a","batch_size":1,"fields":[{"name":"a","validity":"valid"}]}`,
		"two places":            `{"source":"a","batch_size":1,"fields":[{"name":"a","column":"c","pattern":"{id}"}]}`,
		"a dtype":               `{"source":"a","batch_size":1,"fields":[{"name":"a","dtype":"int7"}]}`,
		"native and normalised": `{"source":"a","batch_size":1,` +
			`"fields":[{"name":"a","normalize":{"scale":[1],"offset":[0]}}]}`,
		"scales and offsets": `{"source":"a","batch_size":1,"fields":[{"name":"a","dtype":"float32",` +
			`"normalize":{"scale":[1,2],"offset":[0,0,0]}}]}`,
		"a scale over float32": `{"source":"a","batch_size":1,"fields":[{"name":"a","dtype":"float32",` +
			`"normalize":{"scale":[1e300],"offset":[0]}}]}`,
		"a scale under float32": `{"source":"a","batch_size":1,"fields":[{"name":"a","dtype":"float32",` +
			`"normalize":{"scale":[1e-60],"offset":[0]}}]}`,
		"an empty clip": `{"source":"a","batch_size":1,"fields":[{"name":"a","dtype":"float32",` +
			`"normalize":{"scale":[1],"offset":[0],"clip":[1,0]}}]}`,
		"a fill":                             `{"source":"a","batch_size":1,"fields":[{"name":"a","fill":"zero"}]}`,
		"three times":                        `{"source":"a","batch_size":1,"timestamp":[1,2,3]}`,
		"a member that is wrong, then right": `{"source":"a","batch_size":1,"sampler":{"colour":1},"sampler":{}}`,
		"half a range of time":               `{"source":"a","batch_size":1,"timestamp":[2]}`,
	} {
		if s, err := ParseSpec([]byte(text)); err == nil {
			t.Errorf("%s: accepted as %+v", name, s)
		}
	}
	const pair = "the side of a square, or [height, width] in pixels; several sides are the `sizes` of a sampler"
	for text, want := range map[string]string{
		`{"augment":["flip_x"]}`:           `augment is ["flip_x"]: it must be a string`,
		`{"batch_size":"4"}`:               `batch_size is "4": it must be a whole number`,
		`{"batch_size":2.0}`:               `batch_size is 2.0: it must be a whole number`,
		`{"batch_size":1e30}`:              `batch_size is 1e30: it must be a whole number`,
		`{"take":9223372036854775808}`:     `take is 9223372036854775808: it must be a whole number of 64 bits`,
		`{"seed":-1}`:                      `seed is -1: it must be a whole number from 0 to 2^64-1`,
		`{"sampler":{"height":2.5}}`:       `height is 2.5: it must be a whole number`,
		`{"sampler":{"ratio":"nan"}}`:      `ratio is "nan": it must be a finite number`,
		`{"shuffle":1}`:                    `shuffle is 1: it must be true or false`,
		`[1]`:                              `it is [1]: it must be an object`,
		`{"where":[{"bbox":[0,1]}]}`:       `bbox is [0,1]: it must be a list of 4 numbers`,
		`{"where":[{"bbox":[0,1,2,3,4]}]}`: `bbox is [0,1,2,3,4]: it must be a list of 4 numbers`,
		`{"timestamp":[null,1]}`: `timestamp is [null,1]: it must be milliseconds since 1970, or a time with a time ` +
			`zone such as 2026-11-20T12:00:00Z`,
		`{"sampler":0}`:                  `sampler is 0: it must be at least 1 pixel`,
		`{"sampler":[8,0]}`:              `sampler is [8,0]: it must be at least 1 pixel`,
		`{"sampler":true}`:               `sampler is true: it must be ` + pair,
		`{"sampler":[8,16,24]}`:          `sampler is [8,16,24]: it must be ` + pair,
		`{"sampler":{"size":[8]}}`:       `size is [8]: it must be ` + pair,
		`{"sampler":{"size":[8,16,24]}}`: `size is [8,16,24]: it must be ` + pair,
		`{"sources":[{"name":"s","where":["a","<",3]}]}`: `source "s": where[1] is "<": it must be SQL: a condition ` +
			`with an operator goes into a list, [["cloud", "<", 10]]`,
		`{"where":3}`:           `where is 3: it must be SQL or a list of conditions`,
		`{"where":[["a","<"]]}`: `where[0] is ["a","<"]: it must be SQL, or [column, operator, value]`,
		`{"where":[{"colour":1}]}`: `no member "colour"; there are bbox, bbox_crs, column, concat, datetime, ` +
			`level, op, ` +
			`select, sql, value, within`,
		`{"bbox_crs":"WGS 84"}`: `bbox_crs is "WGS 84": it must be an EPSG code, such as 32633 or ` +
			`"EPSG:32633"`,
		`{"source":"d","batch_size":1,"use":"a","split":{"by":"hash","shares":{"a":0.8,"b":0.3}}}`: `split: shares ` +
			`sum to 1.1: fractions must sum to 1; whole numbers are weights, such as 4 and 1`,
		`{"source":"d","batch_size":1,"use":"a","split":{"by":"date","column":"d","ranges":` +
			`{"a":["2024-02","2024-01-15"]}}}`: `split: range "a" is ["2024-02", "2024-01-15"]: it must begin before ` +
			`it ends`,
		`{"source":"d","batch_size":1,"use":"a","split":{"by":"date","column":"d","ranges":{"a":[7,7]}}}`: `split: ` +
			`range "a" is [7, 7]: it must begin before it ends`,
		`{"source":"d","batch_size":1,"fields":[{"name":"a","validity":"a"}]}`: `field "a": validity is "a": another ` +
			`member of the batch has this name, so give the mask its own, such as "a_valid"`,
		`{"split":3}`:                    `split is 3: it must be the name of a part, or a split`,
		`{"split":{"shares":{"a":"b"}}}`: `share "a": weight is "b": it must be a finite number`,
		`{"split":{"ranges":{"a":[1]}}}`: `split.ranges.a is [1]: it must be [from, to]`,
		`{"until":1.5}`:                  `until is 1.5: it must be a string or a whole number`,
		`{"sampler":{"roi":[1]}}`:        `roi is [1]: it must be a path or GeoJSON`,
		`{"split":{"by":"hash","shares":[{"name":"a","weight":"x"}]}}`: `share "a": weight is "x": ` +
			`it must be a finite number`,
		`{"Shuffle":true,"colour":1}`: `no member "Shuffle"; there are all_fields, augment, bad, bad_limit, ` +
			`bad_samples, base_path, batch_size, batches, bbox, bbox_crs, blocks, datetime, defaults, ` +
			`dims, fields, geo, id_column, ` +
			`id_list, last, length, missing, only, parts, per_batch, sampler, seed, shuffle, source, ` +
			`sources, split, stats, strata, strict, tables, take, temperature, time, timestamp, until, use, ` +
			`version, where, windows`,
		`{"fields":[{"name":"a","bands":true}]}`:      `field "a": bands is true: it must be a list`,
		`{"fields":[{"name":"a","bands":[0,"B"]}]}`:   `field "a": bands[1] is "B": it must be a whole number`,
		`{"fields":[{"name":"a","sizes":{"p":1.5}}]}`: `field "a": sizes.p is 1.5: it must be a whole number`,
		`{"fields":[{"name":"a","fill":"none"}]}`: `field "a": fill is "none": ` +
			`it must be a number, "nan", "inf" or "-inf"`,
		`{"fields":[{"pad":1}]}`: `field 0: pad is 1: it must be true or false`,
		`{"fields":[{"name":"a","normalize":{"clip":[0]}}]}`: `field "a": normalize.clip is [0]: ` +
			`it must be a list of 2 numbers`,
		`{"fields":[{"name":"a","normalize":{"clip":[0,null]}}]}`: `field "a": normalize.clip[1] is null: ` +
			`it must be a number, "nan", "inf" or "-inf"`,
		`{"sources":[{"name":"s","sources":[{"name":"t","fields":[{"name":"a","colour":1}]}]}]}`: `source "s": ` +
			`source "t": field "a": no member "colour"; there are band_names, bands, blob, by_position, classes, ` +
			`clip, column, columns, dims, dtype, fill, grid, ground, gsd, kind, layout, lut, match, match_days, ` +
			`missing, ` +
			`name, nodata, normalize, offset, pad, pages, pattern, patterns, physical, resample, scale, scenes, ` +
			`sizes, split, times, validity, vector, wavelengths`,
	} {
		if _, err := ParseSpec([]byte(text)); err == nil || err.Error() != "spec: "+want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	s, err := ParseSpec([]byte(`{"source":"a","batch_size":1,"fields":[{"name":"a","dtype":"float32","fill":"nan"}]}`))
	if err != nil || fmt.Sprint(*s.Fields[0].Fill) != "NaN" {
		t.Errorf("fill nan: %v", err)
	}
}

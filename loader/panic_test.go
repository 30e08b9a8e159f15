package loader

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// tripping is a table whose bad row panics where a decoder would: when its bytes are read.
type tripping struct {
	*fakeTable
	bad   string // name of the object that panics when it is read; "*": all
	asset int64  // row whose asset panics when it is looked up, or -1
	value int64  // row whose metadata columns panic, or -1
}

func (t tripping) Open(ctx context.Context, uri string) (source.Reader, error) {
	f, err := t.fakeTable.Open(ctx, uri)
	if err == nil && (uri == t.bad || t.bad == "*") {
		return trippingReader{f}, nil
	}
	return f, err
}

type trippingReader struct{ source.Reader }

func (trippingReader) ReadAt(_ context.Context, p []byte, _ int64) error {
	p[len(p)] = 1 // out of range
	return nil
}

// table returns the table of t, in which a raster and a value panic.
func (t tripping) table() *rows.Table { return rows.New(trippingStore{fakeStore{t.fakeTable}, t}) }

type trippingStore struct {
	fakeStore
	at tripping
}

func (s trippingStore) Asset(ctx context.Context, field int, row int64) (catalog.Asset, error) {
	if row == s.at.asset {
		panic("asset")
	}
	return s.fakeStore.Asset(ctx, field, row)
}

func (s trippingStore) Value(ctx context.Context, field int, row int64) (catalog.Value, error) {
	if row == s.at.value {
		panic("value")
	}
	return s.fakeStore.Value(ctx, field, row)
}

// openTripping opens an engine of 24 chips, of which row 7 panics.
func openTripping(t *testing.T, sp Spec, tab tripping, workers int) *Engine {
	t.Helper()
	sp.Source, sp.Fields = "memory", chipFields
	sp = sp.WithDefaults()
	if err := sp.Validate(); err != nil {
		t.Fatal(err)
	}
	o := Options{Workers: workers, Opener: tab, Logger: slog.New(slog.DiscardHandler)}.WithDefaults()
	e, err := newEngine(t.Context(), sp, o, tab.table())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestPanicEndsOneTicket: a panic in a worker is the error of its ticket, where bad samples are errors. All other
// tickets, before, beside and after it, get their batches, and all memory comes back.
func TestPanicEndsOneTicket(t *testing.T) {
	tab := chips(5, 24)
	tile := Sampler{Kind: spec.TileWindow, Height: 8, Width: 8, TileWindows: spec.TileWindows{Pool: 4}}
	for name, c := range map[string]struct {
		tab     tripping
		sampler Sampler
	}{
		"reading":       {tripping{tab, "0/7", -1, -1}, Sampler{}},
		"opening":       {tripping{tab, "", 7, -1}, Sampler{}},
		"a column":      {tripping{tab, "", -1, 7}, Sampler{}},
		"tiles, shared": {tripping{tab, "0/7", -1, -1}, tile},
	} {
		t.Run(name, func(t *testing.T) {
			before := crash.Count()
			e := openTripping(t, Spec{BatchSize: 4, Sampler: c.sampler}, c.tab, 3)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			var ps []*Pending
			tries := 3
			if testing.Short() && c.sampler.Kind != "" {
				tries = 1
			}
			for range tries {
				for step := range e.Steps() {
					ps = append(ps, e.Start(ctx, steps.StepTicket(0, step, 4, 0, 1), false))
				}
			}
			failed, filled := 0, 0
			for _, p := range ps {
				b, err := p.Wait(ctx)
				switch {
				case err == nil:
					if c.sampler.Kind == "" { // with tiles a row has several samples
						checkNoRow(t, b, 7)
					}
					b.Release()
					filled++
				case !crash.Is(err) || fault.KindOf(err) != 0:
					t.Fatal(err)
				default:
					failed++
					var at *SampleError
					if !errors.As(err, &at) || at.Sample.Row != 7 && c.tab.asset < 0 {
						t.Errorf("the error does not name the sample: %v", err)
					}
				}
			}
			if failed == 0 || c.sampler.Kind == "" && (failed != 3 || filled != len(ps)-3) {
				t.Errorf("%d tickets failed, %d have batches, of %d", failed, filled, len(ps))
			}
			if n := crash.Count() - before; n < int64(failed) {
				t.Errorf("%d panics are counted for %d tickets", n, failed)
			}
			if taken, idle := e.memory.counts(); taken != idle {
				t.Errorf("%d bytes of memory are lost", taken-idle)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func checkNoRow(t *testing.T, b *batch.Batch, row int64) {
	t.Helper()
	for _, s := range b.Samples {
		if s == row {
			t.Errorf("a batch has row %d, which panics", row)
		}
	}
}

// TestPanicIsABadSample: under the other policies a reader that panics over a file makes its sample bad, also where
// each sample that could take its place panics.
func TestPanicIsABadSample(t *testing.T) {
	for name, c := range map[string]struct {
		bad, policy string
		valid       bool
	}{
		"skipped":             {"0/7", spec.BadSkip, false},
		"filled":              {"0/7", spec.BadFill, true}, // its columns are there
		"replaced":            {"0/7", spec.BadReplace, true},
		"without substitutes": {"*", spec.BadReplace, false},
	} {
		e := openTripping(t, Spec{BatchSize: 1, BadSamples: c.policy}, tripping{chips(5, 24), c.bad, -1, -1}, 2)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		before := crash.Count()
		b, err := e.Start(ctx, steps.StepTicket(0, 7, 1, 0, 1), false).Wait(ctx)
		if err != nil {
			t.Fatal(name, err)
		}
		if b.Valid[0] != c.valid || len(b.Bad) != 1 || b.Bad[0].Sample.Row != 7 ||
			fault.KindOf(b.Bad[0].Err) != fault.Corrupt || !crash.Is(b.Bad[0].Err) {
			t.Errorf("%s: valid %v, bad %+v", name, b.Valid, b.Bad)
		}
		if crash.Count() == before {
			t.Errorf("%s: the panic is not counted", name)
		}
		b.Release()
		if err := e.Close(); err != nil {
			t.Error(name, err)
		}
	}
}

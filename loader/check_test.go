package loader

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
)

// TestCheckFindsWhatRunsMeet: for every source, Check finds the rows that a run of whole chips
// reports as bad, among the rows that the spec uses, for any policy and number of workers.
func TestCheckFindsWhatRunsMeet(t *testing.T) {
	for _, workers := range []int{1, 4} {
		tabs := sampledTables()
		delete(tabs["b"].broken, 8)
		short := tabs["b"].objects["1/5"]
		tabs["b"].objects["1/5"] = short[:len(short)-4] // a mask whose last chunk ends early
		sp := Spec{
			Fields: slices.Clone(sampledFields), BatchSize: 4, BadSamples: spec.BadError,
			Sampler: Sampler{Kind: spec.WholeChip, Height: 20, Width: 24},
			Mixture: spec.Mixture{Until: spec.UntilLongest, Sources: []Source{
				{
					Name: "x", Source: "a",
					Subset: Subset{Where: []Condition{{Column: "class", Op: "!=", Value: json.RawMessage(`"water"`)}}},
				},
				{Name: "y", Source: "b"},
			}},
		}
		e := openMixed(t, sp, tabs, workers)
		last := int64(0)
		got, err := e.Check(t.Context(), CheckOptions{Progress: func(done, total int64) {
			if done != last+1 || done > total {
				t.Errorf("progress %d of %d after %d", done, total, last)
			}
			last = done
		}})
		if err != nil {
			t.Fatal(err)
		}
		sp.BadSamples = spec.BadSkip
		run := openMixed(t, sp, tabs, 2)
		l, err := NewLoader(run, LoaderOptions{Epochs: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		met := map[string]bool{}
		rows := map[string]bool{}
		for b, err := range l.All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			for _, pos := range b.Positions {
				if pos >= 0 {
					d := run.Plan().At(0, pos)
					rows[fmt.Sprint(run.leaves[d.Dataset].name, d.Row)] = true
				}
			}
			for _, bad := range b.Bad {
				d := run.Plan().At(0, bad.Position)
				met[fmt.Sprint(run.leaves[d.Dataset].name, d.Row, bad.Err)] = true
			}
		}
		found := map[string]bool{}
		for _, b := range got.List {
			found[fmt.Sprint(b.Source, b.Row, b.Err)] = true
			if b.ID != fmt.Sprint(b.Row) {
				t.Errorf("id %q of row %d", b.ID, b.Row)
			}
		}
		if !maps.Equal(found, met) || len(met) < 3 || got.Bad != int64(len(met)) || got.Samples != int64(len(rows)) ||
			last != got.Samples {
			t.Errorf("found %v, a run met %v; %d of %d samples", found, met, got.Samples, len(rows))
		}
	}
}

// TestSampleErrorSaysWhich: the error that ends a ticket names the draw.
func TestSampleErrorSaysWhich(t *testing.T) {
	tab := chips(4, 17)
	tab.broken = map[int64]error{2: fault.At(fault.Corrupt, "tile", 3, "broken")}
	e := openFake(t, Spec{
		BatchSize: 4, Fields: []Field{{Name: "image"}}, Sampler: Sampler{Height: 20, Width: 24},
	}, tab, 1)
	l, err := NewLoader(e, LoaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = l.Next(t.Context())
	var s *SampleError
	if !errors.As(err, &s) || s.Draw.Row != 2 || s.Sample != (batch.SampleRef{Index: 2, Row: 2, ID: "2"}) ||
		s.Position != 2 || fault.KindOf(err) != fault.Corrupt ||
		err.Error() != "sample 2 at position 2 of epoch 0: tile at 3: broken: corrupt" {
		t.Errorf("%v, %+v", err, s)
	}
}

// TestSampleErrorOfASubstitute: an error that no policy covers, met while a substitute is read,
// names the substitute in its text and in its fields.
func TestSampleErrorOfASubstitute(t *testing.T) {
	tab := chips(4, 17)
	e := openFake(t, Spec{
		BatchSize: 1, BadSamples: spec.BadReplace,
		Fields: []Field{{Name: "image"}}, Sampler: Sampler{Height: 20, Width: 24},
	}, tab, 1)
	tab.broken = map[int64]error{2: fault.At(fault.Corrupt, "tile", 3, "broken")}
	for row := range tab.rows {
		if int64(row) != 2 {
			tab.broken[int64(row)] = errors.New("no answer")
		}
	}
	_, err := e.Start(t.Context(), steps.StepTicket(0, 2, 1, 0, 1), false).Wait(t.Context())
	var s *SampleError
	if !errors.As(err, &s) || s.Draw.Attempt != 1 || s.Sample.Index == 2 || s.Sample.Index != s.Draw.Sample ||
		s.Position != 2 ||
		err.Error() != fmt.Sprintf("sample %d at position 2 of epoch 0: no answer", s.Sample.Index) {
		t.Errorf("%v, %+v", err, s)
	}
}

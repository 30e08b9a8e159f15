package ground

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/loader/scenes"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// vectorsOf returns a list of testdata/order.json.
func vectorsOf[T any](t *testing.T, name string) (list []T) {
	t.Helper()
	b := testfile.Read(t, filepath.Join("..", "..", "testdata", "order.json"))
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(all[name], &list); err != nil || len(list) == 0 {
		t.Fatalf("%s: %d vectors, %v", name, len(list), err)
	}
	return list
}

// sceneVector is a scene of a vector.
type sceneVector struct {
	Transform     [6]float64
	Height, Width int
	Dataset       int
	Clouds, Time  *int64
	Step          *int64
}

// vectorOptions are what the vectors of both lists say about windows.
type vectorOptions struct {
	EPSG, Side int
	Resolution float64
	Scenes     []sceneVector
}

func (v *vectorOptions) scene(i int) scenes.Scene {
	s := &v.Scenes[i]
	return scenes.Scene{Row: int64(i), Name: "scene", Dataset: s.Dataset,
		Place: *catalog.NewPlace(v.EPSG, &s.Transform, s.Height, s.Width)}
}

func (v *vectorOptions) options() scenes.Options {
	return scenes.Options{Side: v.Side, Resolution: v.Resolution, CRS: fmt.Sprint("EPSG:", v.EPSG)}
}

// TestSceneVectors: cells, windows and the scenes that they see are those of testdata/order.json.
func TestSceneVectors(t *testing.T) {
	for i, v := range vectorsOf[struct {
		vectorOptions
		Stride  int
		Edge    bool
		Cover   string
		Cell    int
		Runs    [][4]int32
		Samples int64
		At      []json.RawMessage
	}](t, "ground_scenes") {
		o := v.options()
		o.Stride, o.Edge = v.Stride, v.Edge
		var list []scenes.Scene
		for k := range v.Scenes {
			list = append(list, v.scene(k))
			if v.Cover == "all" {
				o.All = max(o.All, v.Scenes[k].Dataset+1)
			}
		}
		s, err := New(list, o)
		if err != nil {
			t.Fatalf("vector %d: %v", i, err)
		}
		var runs [][4]int32
		for _, r := range s.Ground.Runs {
			runs = append(runs, [4]int32{r.Map, r.Y, r.X, r.N})
		}
		if s.Ground.Cell != v.Cell || !slices.Equal(runs, v.Runs) {
			t.Errorf("vector %d: cells of %d: %v, want %d: %v", i, s.Ground.Cell, runs, v.Cell, v.Runs)
			continue
		}
		for _, raw := range v.At {
			var seed, epoch uint64
			var p, y, x, row int64
			var seen []int64
			if err := json.Unmarshal(raw, &[]any{&seed, &epoch, &p, &y, &x, &row, &seen}); err != nil {
				t.Fatal(err)
			}
			pl, err := shuffle.NewPlan(shuffle.Spec{Seed: seed, Shuffle: true, Source: shuffle.Source{
				Dataset: &shuffle.Dataset{Items: int64(len(list)), Sampler: shuffle.Sampler{
					Kind: s.Ground}}}})
			if err != nil || pl.Len() != v.Samples {
				t.Fatalf("vector %d: %d samples, want %d, %v", i, pl.Len(), v.Samples, err)
			}
			d := pl.At(epoch, p)
			place := pl.Place(&d)
			if got := s.Rows(nil, place); place.Y != y || place.X != x || d.Row != row || !slices.Equal(got, seen) {
				t.Errorf("vector %d, position %d: %v of row %d sees %v, want %d, %d of %d, %v", i, p, place, d.Row, got,
					y, x, row, seen)
			}
		}
	}
}

// rule is a column and whether its greatest value comes first.
type rule struct {
	column   string
	greatest bool
}

// UnmarshalJSON reads a list of both.
func (r *rule) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&r.column, &r.greatest})
}

// sorted sorts scenes by a rule (nil for none), those without a value last, as package loader does.
func (v *vectorOptions) sorted(list []scenes.Scene, r *rule) {
	if r == nil {
		return
	}
	of := func(s scenes.Scene) *int64 {
		if r.column == "time" {
			return v.Scenes[s.Row].Time
		}
		return v.Scenes[s.Row].Clouds
	}
	slices.SortStableFunc(list, func(a, b scenes.Scene) int {
		x, y := of(a), of(b)
		switch {
		case x == nil && y == nil:
			return 0
		case x == nil:
			return 1
		case y == nil:
			return -1
		case r.greatest:
			x, y = y, x
		}
		return cmp.Compare(*x, *y)
	})
}

// TestSequenceVectors: sequences of scenes, and what fields of other datasets take in each step, are those of
// testdata/order.json.
func TestSequenceVectors(t *testing.T) {
	for i, v := range vectorsOf[struct {
		vectorOptions
		Leads       []int
		Length      int
		Pick, Order *rule
		Match       *string
		Days        int64 `json:"match_days"`
		At          []json.RawMessage
	}](t, "scene_sequences") {
		var list []scenes.Scene
		for k, from := range v.Scenes {
			s := v.scene(k)
			if s.Step = -1; from.Step != nil {
				s.Step = *from.Step
			}
			if s.Timed = from.Time != nil; s.Timed {
				s.Time = *from.Time
			}
			s.Beside = !slices.Contains(v.Leads, s.Dataset)
			list = append(list, s)
		}
		v.sorted(list, v.Pick)
		for k := range list {
			list[k].Rank = k
		}
		if v.Order != nil {
			stand := slices.Clone(list)
			slices.SortFunc(stand, func(a, b scenes.Scene) int { return cmp.Compare(a.Row, b.Row) })
			v.sorted(stand, v.Order)
			for k := range list {
				list[k].Rank = slices.IndexFunc(stand, func(s scenes.Scene) bool { return s.Row == list[k].Row })
			}
		}
		o := v.options()
		o.Length = v.Length
		s, err := New(list, o)
		if err != nil {
			t.Fatalf("vector %d: %v", i, err)
		}
		for _, raw := range v.At {
			var p shuffle.Place
			var steps [][]int64
			var matched [][][]int64
			if err := json.Unmarshal(raw, &[]any{&p.Y, &p.X, &steps, &matched}); err != nil {
				t.Fatal(err)
			}
			got := s.Steps(p)
			if len(got) != len(steps) {
				t.Fatalf("vector %d at %v: %v, want %v", i, p, got, steps)
			}
			for k := range got {
				if !slices.Equal(got[k].Rows, steps[k]) {
					t.Errorf("vector %d at %v: step %d is %v, want %v", i, p, k, got[k].Rows, steps[k])
				}
				for _, want := range matched {
					within := int64(1<<63 - 1)
					if v.Days > 0 {
						within = v.Days * 24 * 60 * 60 * 1e6
					}
					has := func(row int64) bool { return v.Scenes[row].Dataset == 1 }
					rows := s.SameStep(p, &got[k], has)
					if *v.Match == "nearest" {
						rows = s.Nearest(p, &got[k], has, within)
					}
					if !slices.Equal(rows, want[k]) {
						t.Errorf("vector %d at %v: step %d has %v beside it, want %v", i, p, k, rows, want[k])
					}
				}
			}
		}
	}
}

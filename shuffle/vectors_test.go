package shuffle

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// list returns a list of testdata/order.json and requires that it is not empty.
func list[T any](t *testing.T, name string) []T {
	t.Helper()
	return listOf[T](t, "order.json", name)
}

// withBatches returns a list of testdata/order.json, followed by that of
// testdata/order_batches.json.
func withBatches[T any](t *testing.T, name string) []T {
	t.Helper()
	return append(list[T](t, name), listOf[T](t, "order_batches.json", name)...)
}

func listOf[T any](t *testing.T, file, name string) []T {
	t.Helper()
	b := testfile.Read(t, filepath.Join("..", "testdata", file))
	var lists map[string]json.RawMessage
	if err := json.Unmarshal(b, &lists); err != nil {
		t.Fatal(err)
	}
	var v []T
	if err := json.Unmarshal(lists[name], &v); err != nil || len(v) == 0 {
		t.Fatalf("%s: %d vectors, %v", name, len(v), err)
	}
	return v
}

// at holds the fields that most vectors have in common.
type at struct {
	Seed   uint64 `json:"seed"`
	Epoch  uint64 `json:"epoch"`
	P      int64  `json:"p"`
	Height int    `json:"height"`
	Width  int    `json:"width"`
	H      int    `json:"h"`
	W      int    `json:"w"`
	AlignY int    `json:"align_y"`
	AlignX int    `json:"align_x"`
}

// TestStateVectors: states of other runs are accepted or refused as in Python
// (testdata/state_vectors.py).
func TestStateVectors(t *testing.T) {
	b := testfile.Read(t, filepath.Join("..", "testdata", "states.json"))
	type outcome struct {
		Epoch       uint64
		Samples     int64
		Note, Error string
		Held        bool // weights or means
	}
	var cases []struct {
		State, Now  steps.State
		N           int64
		G           int
		DropsLast   bool `json:"drops_last"`
		Strict, Any outcome
	}
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) < 50 {
		t.Fatalf("%d cases: %v", len(cases), err)
	}
	for i, c := range cases {
		for strict, want := range map[bool]outcome{true: c.Strict, false: c.Any} {
			next, note, err := c.State.Resume(c.Now, c.N, c.G, c.DropsLast, strict)
			if (err != nil) != (want.Error != "") ||
				err != nil && strings.Contains(want.Error, "another run") && err.Error() != want.Error {
				t.Errorf("case %d, strict %t: error %v, not %q", i, strict, err, want.Error)
			}
			if err != nil {
				continue
			}
			if held := len(next.Weights) > 0 || next.Scores != nil; held != want.Held {
				t.Errorf("case %d, strict %t: weights or means %t", i, strict, held)
			}
			if next.Epoch != want.Epoch || next.Samples != want.Samples || note != want.Note || next.Run != c.Now.Run {
				t.Errorf("case %d, strict %t: epoch %d, %d samples, %q, not %+v",
					i, strict, next.Epoch, next.Samples, note, want)
			}
			if _, err := next.Step(c.N, c.G); err != nil {
				t.Errorf("case %d: %v", i, err)
			}
		}
	}
}

func TestGridVectors(t *testing.T) {
	for _, v := range list[struct {
		at
		StrideY int      `json:"stride_y"`
		StrideX int      `json:"stride_x"`
		Pad     bool     `json:"pad"`
		Down    int      `json:"down"`
		Across  int      `json:"across"`
		Windows [][2]int `json:"windows"`
	}](t, "grids") {
		g := Grid{v.H, v.W, v.StrideY, v.StrideX, v.AlignY, v.AlignX, v.Pad}
		if err := g.check(); err != nil {
			t.Fatal(err)
		}
		down, across := g.Shape(v.Height, v.Width)
		if down != v.Down || across != v.Across || g.Count(v.Height, v.Width) != int64(len(v.Windows)) {
			t.Errorf("%+v: %d by %d windows", v, down, across)
			continue
		}
		for j, w := range v.Windows {
			if b := g.At(int64(j), v.Height, v.Width); b != (Box{w[0], w[1], v.H, v.W}) {
				t.Errorf("%+v: window %d is %+v", v, j, b)
			}
		}
	}
}

func TestResizedVectors(t *testing.T) {
	for _, v := range list[struct {
		at
		Lo      float64 `json:"lo"`
		Hi      float64 `json:"hi"`
		Ratio   float64 `json:"ratio"`
		OfAsset bool    `json:"of_asset"`
		Box     [4]int  `json:"box"`
	}](t, "resized") {
		r := Resized{v.H, v.W, v.Lo, v.Hi, v.Ratio, v.OfAsset, v.AlignY, v.AlignX}
		if err := r.check(); err != nil {
			t.Fatal(err)
		}
		if b := r.Window(&Draw{Seed: v.Seed, Epoch: v.Epoch, Position: v.P}, v.Height, v.Width); [4]int{b.Y, b.X, b.H,
			b.W} != v.Box {
			t.Errorf("%+v: got %+v", v, b)
		}
	}
}

func TestCoveredVectors(t *testing.T) {
	for _, v := range list[struct {
		at
		CellH   int      `json:"cell_h"`
		CellW   int      `json:"cell_w"`
		Weights []uint32 `json:"weights"`
		Most    float64  `json:"most"`
		Y       int      `json:"y"`
		X       int      `json:"x"`
		Listed  int      `json:"listed"`
	}](t, "covered") {
		w, err := NewWeights(v.Weights, v.CellH, v.CellW, v.Height, v.Width, nil)
		if err != nil {
			t.Fatal(err)
		}
		crop := Crop{
			Seed: v.Seed, Epoch: v.Epoch, Position: v.P,
			Height: v.Height, Width: v.Width, H: v.H, W: v.W, AlignY: v.AlignY, AlignX: v.AlignX,
		}
		listed := 0
		w.EachCovered(crop, v.Most, func(Box) bool { listed++; return true })
		if b := w.Covered(crop, v.Most); b.Y != v.Y || b.X != v.X || listed != v.Listed {
			t.Errorf("%+v: got %+v, of %d", v, b, listed)
		}
	}
}

func TestWeightedVectors(t *testing.T) {
	for _, v := range list[struct {
		at
		CellH    int      `json:"cell_h"`
		CellW    int      `json:"cell_w"`
		Weights  []uint32 `json:"weights"`
		Y        int      `json:"y"`
		X        int      `json:"x"`
		Weighted bool     `json:"weighted"`
	}](t, "weighted") {
		w, err := NewWeights(v.Weights, v.CellH, v.CellW, v.Height, v.Width, nil)
		if err != nil {
			t.Fatal(err)
		}
		box, weighted := w.Window(Crop{
			Seed: v.Seed, Epoch: v.Epoch, Position: v.P,
			Height: v.Height, Width: v.Width, H: v.H, W: v.W, AlignY: v.AlignY, AlignX: v.AlignX,
		})
		y, x := box.Y, box.X
		if y != v.Y || x != v.X || weighted != v.Weighted {
			t.Errorf("%+v: got (%d, %d), %v", v, y, x, weighted)
		}
	}
}

// TestViewVectors: windows of views, and their transforms, are as in testdata/order.json.
func TestViewVectors(t *testing.T) {
	fell := 0
	for _, v := range list[struct {
		at
		View       int     `json:"view"`
		FirstH     int     `json:"first_h"`
		FirstW     int     `json:"first_w"`
		Kind       []any   `json:"kind"`
		MinOverlap float64 `json:"min_overlap"`
		First, Box [4]int
		Try        int
		Element    int
	}](t, "views") {
		h, w := int(v.Kind[1].(float64)), int(v.Kind[2].(float64))
		sampler := Sampler{Kind: RandomWindow{}, H: h, W: w, AlignY: v.AlignY, AlignX: v.AlignX}
		if v.Kind[0] == "resized" {
			sampler.Kind = &Resized{h, w, v.Kind[3].(float64), v.Kind[4].(float64), v.Kind[5].(float64),
				v.Kind[6].(bool), v.AlignY, v.AlignX}
		}
		pl := mustPlan(t, Spec{Seed: v.Seed, Shuffle: true, Source: Source{Dataset: &Dataset{
			Items: 1 << 30, Views: slices.Repeat([]Sampler{sampler}, v.View), Transforms: Flips,
			Sampler: Sampler{Kind: RandomWindow{}, H: v.FirstH, W: v.FirstW, AlignY: v.AlignY, AlignX: v.AlignX},
		}}})
		draw := pl.At(v.Epoch, v.P)
		first, _ := pl.Window(&draw, v.Height, v.Width, nil)
		view, ok := pl.View(&draw, v.View), true
		box, _ := pl.Window(&view, v.Height, v.Width, nil)
		if v.MinOverlap > 0 {
			box, ok = pl.Overlapping(&view, first, v.MinOverlap, v.Height, v.Width)
		}
		got := [4]int{box.Y, box.X, box.H, box.W}
		if [4]int{first.Y, first.X, first.H, first.W} != v.First || got != v.Box || int(view.Transform) != v.Element {
			t.Errorf("%+v: the windows are %v and %v, the transform is %v", v, first, box, view.Transform)
		}
		if v.Try < 0 {
			fell++
		} else if !ok {
			t.Errorf("%+v: try %d shares enough", v, v.Try)
		}
	}
	if fell == 0 {
		t.Error("no view lies on the middle of its first window because no try shares enough")
	}
}

// TestGroundViewVectors: views on the ground are as in testdata/order.json.
func TestGroundViewVectors(t *testing.T) {
	fell := 0
	for _, v := range list[struct {
		Seed, Epoch uint64
		P           int64
		View        int
		Side, Cell  int
		ViewSide    int     `json:"view_side"`
		MinOverlap  float64 `json:"min_overlap"`
		Grid        bool
		Runs        [][4]int32
		Map         int
		First       [2]int64
		Try         int
		Y, X        int64
	}](t, "ground_views") {
		g := &Ground{Side: v.Side, Cell: v.Cell, Samples: 1 << 50, Scene: func(Place) int64 { return 0 }}
		if v.Grid {
			g.Samples = 0
		}
		for _, r := range v.Runs {
			g.Runs = append(g.Runs, CellRun{r[0], r[1], r[2], r[3]})
		}
		pl := mustPlan(t, Spec{Seed: v.Seed, Shuffle: true, Source: Source{Dataset: &Dataset{Items: 1,
			Sampler: Sampler{Kind: g},
			Views:   slices.Repeat([]Sampler{{Kind: &Beside{v.ViewSide, v.MinOverlap}}}, v.View)}}})
		draw := pl.At(v.Epoch, v.P)
		view := pl.View(&draw, v.View)
		first, second := pl.Place(&draw), pl.Place(&view)
		if first != (Place{v.Map, v.First[0], v.First[1]}) || second != (Place{v.Map, v.Y, v.X}) {
			t.Errorf("%+v: the windows are at %v and %v", v, first, second)
		}
		if v.Try < 0 {
			fell++
		}
	}
	if fell == 0 {
		t.Error("no view lies on the middle of its first window because no try shares enough")
	}
}

func TestGroundVectors(t *testing.T) {
	for _, v := range list[struct {
		Seed, Epoch uint64
		P           int64
		Side, Cell  int
		Runs        [][4]int32
		Map         int
		Y, X        int64
	}](t, "ground") {
		g := &Ground{Side: v.Side, Cell: v.Cell, Samples: 1 << 50, Scene: func(Place) int64 { return 0 }}
		for _, r := range v.Runs {
			g.Runs = append(g.Runs, CellRun{r[0], r[1], r[2], r[3]})
		}
		pl, err := NewPlan(Spec{Seed: v.Seed, Source: Source{Dataset: &Dataset{Items: 1,
			Sampler: Sampler{Kind: g}}}})
		if err != nil {
			t.Fatal(err)
		}
		d := pl.At(v.Epoch, v.P)
		if got, want := pl.Place(&d), (Place{v.Map, v.Y, v.X}); got != want {
			t.Errorf("seed %d, epoch %d, position %d: %v, want %v", v.Seed, v.Epoch, v.P, got, want)
		}
	}
}

func TestBlockVectors(t *testing.T) {
	for _, v := range list[struct {
		Seed  uint64  `json:"seed"`
		Epoch uint64  `json:"epoch"`
		N     int64   `json:"n"`
		Rows  int64   `json:"rows"`
		Pool  int     `json:"pool"`
		Lanes int     `json:"lanes"`
		At    []int64 `json:"at"`
	}](t, "blocks") {
		pl := mustPlan(t, Spec{Seed: v.Seed, Shuffle: true, Source: Source{Dataset: &Dataset{Items: v.N,
			Blocks: &Blocks{Samples: v.Rows, Pool: v.Pool, Lanes: v.Lanes}}}})
		for p, want := range v.At {
			if got := pl.At(v.Epoch, int64(p)).Sample; got != want {
				t.Errorf("%d samples in blocks of %d in %d lanes, position %d: %d, want %d", v.N, v.Rows, v.Lanes,
					p, got, want)
			}
		}
	}
}

func TestVisitVectors(t *testing.T) {
	for _, v := range list[struct {
		at
		TileH    int        `json:"tile_h"`
		TileW    int        `json:"tile_w"`
		PerVisit int        `json:"per_visit"`
		Pool     int        `json:"pool"`
		Items    [][3]int   `json:"items"`
		At       [][7]int64 `json:"at"`
		View     [2]int     `json:"view"`
		ViewAt   [][2]int   `json:"view_at"`
	}](t, "visits") {
		runs, err := NewRuns(int64(len(v.Items)), func(i int64) int64 { return int64(v.Items[i][2]) })
		if err != nil {
			t.Fatal(err)
		}
		first := Visits{
			H: v.H, W: v.W, TileH: v.TileH, TileW: v.TileW, PerVisit: v.PerVisit,
			Pool: v.Pool, AlignY: v.AlignY, AlignX: v.AlignX,
		}
		second := first
		second.H, second.W = v.View[0], v.View[1]
		pl := mustPlan(t, Spec{Seed: v.Seed, Shuffle: true, Source: Source{Dataset: &Dataset{
			Items: int64(len(v.Items)), Sampler: Sampler{Runs: runs, Kind: &first}, Views: []Sampler{{Kind: &second}},
		}}})
		if pl.Len() != int64(len(v.At)) {
			t.Fatalf("%d samples, want %d", pl.Len(), len(v.At))
		}
		for p, want := range v.At {
			d := pl.At(v.Epoch, int64(p))
			size := v.Items[d.Item]
			visits := pl.leaves[0].Sampler.Kind.(*Visits)
			ty, tx := visits.Tile(d.Seed, d.Epoch, d.Item, d.Sub, int64(size[2]), size[0], size[1])
			b, _ := pl.Window(&d, size[0], size[1], nil)
			got := [7]int64{d.Sample, d.Item, d.Sub, int64(ty), int64(tx), int64(b.Y), int64(b.X)}
			if got != want {
				t.Errorf("pool %d, position %d: %v, want %v", v.Pool, p, got, want)
			}
			view := pl.View(&d, 1)
			b, _ = pl.Window(&view, size[0], size[1], nil)
			if want := (Box{Y: v.ViewAt[p][0], X: v.ViewAt[p][1], H: v.View[0], W: v.View[1]}); b != want {
				t.Errorf("pool %d, position %d: the view is %v, want %v", v.Pool, p, b, want)
			}
		}
	}
}

// jsonSource is a source as the vectors write it.
type jsonSource struct {
	N        int64        `json:"n"`
	Visits   int64        `json:"visits"` // of one item, where there are pools
	PerVisit int          `json:"per_visit"`
	Pool     int          `json:"pool"`
	Counts   []int64      `json:"counts"`
	Sources  []jsonSource `json:"sources"`
	Until    string       `json:"until"`
	Length   int64        `json:"length"`
	Batch    int64        `json:"batch"`
	Block    int64        `json:"block"`
}

func (s jsonSource) source() Source {
	if s.Visits > 0 {
		v := Visits{H: 1, W: 1, TileH: 1, TileW: 1, AlignY: 1, AlignX: 1, PerVisit: s.PerVisit, Pool: s.Pool}
		runs, _ := EqualRuns(1, s.Visits)
		return Source{Dataset: &Dataset{Items: 1, Sampler: Sampler{Runs: runs, Kind: &v}}}
	}
	if s.N > 0 {
		return Source{Dataset: &Dataset{Items: s.N}}
	}
	m := &Mixture{
		Counts: s.Counts, Batch: s.Batch, Block: s.Block, Length: s.Length,
		Until: map[string]Until{"shortest": Shortest, "longest": Longest, "given": Given}[s.Until],
	}
	for _, c := range s.Sources {
		m.Sources = append(m.Sources, c.source())
	}
	return Source{Mixture: m}
}

func TestMixtureVectors(t *testing.T) {
	for _, v := range withBatches[struct {
		Seed   uint64     `json:"seed"`
		Source jsonSource `json:"source"`
		Take   int64      `json:"take"`
		N      int64      `json:"n"`
		At     [][6]int64 `json:"at"`
	}](t, "mixtures") {
		pl := mustPlan(t, Spec{Seed: v.Seed, Shuffle: true, Source: v.Source.source(), Take: v.Take})
		if pl.Len() != v.N {
			t.Errorf("%+v: an epoch of %d positions", v.Source, pl.Len())
			continue
		}
		for _, want := range v.At {
			d := pl.At(uint64(want[0]), want[1])
			if got := [6]int64{want[0], want[1], int64(d.Dataset), int64(d.Epoch), d.Position, d.Sample}; got != want {
				t.Errorf("%+v: got %v, want %v", v.Source, got, want)
			}
		}
	}
}

func TestGroupVectors(t *testing.T) {
	for _, v := range withBatches[struct {
		Seed    uint64      `json:"seed"`
		Source  jsonSource  `json:"source"`
		Take    int64       `json:"take"`
		N       int64       `json:"n"`
		Dataset int         `json:"dataset"`
		Pool    int64       `json:"pool"`
		Levels  [][2]int64  `json:"levels"`
		At      [][3]uint64 `json:"at"`
	}](t, "groups") {
		g, ok := mustPlan(t, Spec{Seed: v.Seed, Shuffle: true, Source: v.Source.source(), Take: v.Take}).Groups()
		want := steps.Groups{Dataset: v.Dataset, Pool: v.Pool, Samples: v.N}
		for _, l := range v.Levels {
			want.Levels = append(want.Levels, steps.Level{Drawn: l[0], Samples: l[1]})
		}
		if !ok || !reflect.DeepEqual(g, want) || g.Check() != nil {
			t.Errorf("%+v: got %+v, %v, %v", v.Source, g, ok, g.Check())
			continue
		}
		for _, at := range v.At {
			if got, _ := g.Of(steps.Ticket{Epoch: at[0], First: int64(at[1])}, 3); got != int64(at[2]) {
				t.Errorf("%+v: epoch %d, position %d is in group %d, want %d", v.Source, at[0], at[1], got, at[2])
			}
		}
	}
}

func shares(parts []int64) []Share {
	s := make([]Share, len(parts))
	for i, n := range parts {
		s[i].Parts = n
	}
	return s
}

func TestSplitVectors(t *testing.T) {
	type vector struct {
		Seed   uint64     `json:"seed"`
		Parts  []int64    `json:"parts"`
		Text   string     `json:"text"`
		Bounds [4]float64 `json:"bounds"`
		Size   float64    `json:"size"`
		Share  int        `json:"share"`
	}
	for _, v := range list[vector](t, "texts") {
		s := Split{v.Seed, shares(v.Parts)}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		if got := s.OfText(v.Text); got != v.Share {
			t.Errorf("%+v: got %d", v, got)
		}
	}
	for _, v := range list[vector](t, "cells") {
		s := Split{v.Seed, shares(v.Parts)}
		if got := s.OfCell(v.Bounds, v.Size); got != v.Share {
			t.Errorf("%+v: got %d", v, got)
		}
	}
}

func TestTransformVectors(t *testing.T) {
	source := []string{"abc", "def"}
	for _, v := range list[struct {
		Element Element  `json:"element"`
		Image   []string `json:"image"`
	}](t, "transforms") {
		for y := range 2 {
			for x := range 3 {
				if a, b := v.Element.Apply(y, x, 2, 3); v.Image[a][b] != source[y][x] {
					t.Errorf("%v: (%d, %d) goes to (%d, %d)", v.Element, y, x, a, b)
				}
			}
		}
	}
	for _, v := range list[struct {
		at
		Elements []Element `json:"elements"`
		At       []Element `json:"at"`
	}](t, "drawn_transforms") {
		var set Elements
		for _, g := range v.Elements {
			set |= 1 << g
		}
		for p, want := range v.At {
			if g := set.At(v.Seed, v.Epoch, int64(p)); g != want {
				t.Errorf("%08b: position %d has %v, want %v", set, p, g, want)
			}
		}
	}
}

func TestSeriesVectors(t *testing.T) {
	for _, v := range list[struct {
		Keys      []string  `json:"keys"`
		Times     []int64   `json:"times"`
		Rows      []uint32  `json:"rows"`
		Length    int       `json:"length"`
		Stride    int       `json:"stride"`
		Cut       bool      `json:"cut"`
		Sequences [][]int64 `json:"sequences"`
	}](t, "series") {
		s, err := NewSeries(v.Keys, v.Times, v.Rows, v.Length, v.Stride, v.Cut)
		if err != nil {
			t.Fatal(err)
		}
		if s.Len() != int64(len(v.Sequences)) {
			t.Errorf("%+v: %d sequences", v, s.Len())
			continue
		}
		got := make([]int64, v.Length)
		for i, want := range v.Sequences {
			if s.Rows(int64(i), got); !slices.Equal(got, want) {
				t.Errorf("%+v: sequence %d is %v", v, i, got)
			}
			for k := range want {
				if row := s.Row(int64(i), k); row != want[k] {
					t.Errorf("%+v: sequence %d has row %d at %d", v, i, row, k)
				}
			}
		}
	}
}

func TestSubstituteVectors(t *testing.T) {
	for _, v := range list[struct {
		at
		N       int64   `json:"n"`
		Attempt int     `json:"attempt"`
		NewSeed uint64  `json:"new_seed"`
		Sample  int64   `json:"sample"`
		Window  [2]int  `json:"window"`
		Element Element `json:"element"`
	}](t, "substitutes") {
		pl := mustPlan(t, Spec{Seed: v.Seed, Source: Source{Dataset: &Dataset{
			Items: v.N, Transforms: D4, Sampler: Sampler{Kind: RandomWindow{}, H: 64, W: 64},
		}}})
		d := Draw{Seed: v.Seed, Epoch: v.Epoch, Position: v.P}
		s := pl.Substitute(d, v.Attempt)
		b, _ := pl.Window(&s, 512, 300, nil)
		if s.Seed != v.NewSeed || s.Sample != v.Sample || s.Row != v.Sample || [2]int{b.Y, b.X} != v.Window ||
			s.Transform != v.Element {
			t.Errorf("%+v: got %+v, %+v", v, s, b)
		}
		if again := pl.Substitute(pl.Substitute(d, 3), v.Attempt); again != s {
			t.Errorf("the substitute of a substitute is %+v, not %+v", again, s)
		}
	}
}

func TestApportionVectors(t *testing.T) {
	for _, v := range list[struct {
		Total   int64     `json:"total"`
		Weights []float64 `json:"weights"`
		Parts   []int64   `json:"parts"`
	}](t, "apportion") {
		if got, err := Apportion(v.Total, v.Weights); err != nil || !slices.Equal(got, v.Parts) {
			t.Errorf("%+v: got %v, %v", v, got, err)
		}
	}
}

func mustPlan(t testing.TB, s Spec) *Plan {
	t.Helper()
	pl, err := NewPlan(s)
	if err != nil {
		t.Fatal(err)
	}
	return pl
}

// TestSideVectors: the side of a batch follows from the run's seed, the epoch and the number of the batch, also in a
// mixture; all positions of the batch have it, and positions that a ticket names have none.
func TestSideVectors(t *testing.T) {
	for _, v := range listOf[[5]uint64](t, "order_batches.json", "sides") {
		seed, epoch, batch, n, want := v[0], v[1], int64(v[2]), int(v[3]), int(v[4])
		var list []int
		for i := range n {
			list = append(list, 8*(i+1))
		}
		sampler := Sampler{Kind: RandomWindow{}, H: 8 * n, W: 8 * n, Sides: list}
		one := Source{Dataset: &Dataset{Items: 1 << 43, Sampler: sampler}}
		other := Source{Dataset: &Dataset{Items: 1 << 43, Sampler: sampler}}
		for _, source := range []Source{one, {Mixture: &Mixture{Sources: []Source{one, other}, Until: Given,
			Length: 1 << 44, Counts: []int64{WordLen / 2, WordLen / 2}}}} {
			pl := mustPlan(t, Spec{Seed: seed, Shuffle: true, Source: source, Batch: 4})
			p := 4 * batch
			for k := range int64(4) {
				draw := pl.At(epoch, p+k)
				if draw.Side != list[want] {
					t.Fatalf("%v: position %d has side %d", v, p+k, draw.Side)
				}
				if w, _ := pl.Window(&draw, 1000, 900, nil); w.H != draw.Side || w.W != draw.Side {
					t.Fatalf("%v: window %+v", v, w)
				}
			}
			named := pl.Draw(steps.Ticket{Epoch: epoch, Positions: []int64{p}}, 0)
			if w, _ := pl.Window(&named, 1000, 900, nil); w.H != 8*n {
				t.Fatalf("%v: a named position has %+v", v, w)
			}
		}
	}
}

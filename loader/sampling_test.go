package loader

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/soak"
)

// fakeColumn is a column of a fakeTable beside its fields.
type fakeColumn struct {
	kind   catalog.Kind
	values []catalog.Value
	unit   time.Duration
}

func (t *fakeTable) column(_ context.Context, name string) (*rows.Column, error) {
	c, ok := t.columns[name]
	if !ok {
		return nil, fault.New(fault.NotFound, "table", "no column %q", name)
	}
	return &rows.Column{Kind: c.kind, Unit: c.unit, Rows: int64(len(c.values)),
		Each: func(_ context.Context, visit func(int64, catalog.Value) error) error {
			for i, v := range c.values {
				if err := visit(int64(i), v); err != nil {
					return err
				}
			}
			return nil
		}}, nil
}

func (t *fakeTable) ints(name string, of func(row int64) int64) {
	c := fakeColumn{kind: catalog.Int}
	for row := range t.rows {
		c.values = append(c.values, catalog.Value{Int: of(row)})
	}
	t.put(name, c)
}

func (t *fakeTable) texts(name string, of func(row int64) string) {
	c := fakeColumn{kind: catalog.Text}
	for row := range t.rows {
		s := of(row)
		c.values = append(c.values, catalog.Value{Text: []byte(s), Null: s == ""})
	}
	t.put(name, c)
}

func (t *fakeTable) put(name string, c fakeColumn) {
	if t.columns == nil {
		t.columns = map[string]fakeColumn{}
	}
	t.columns[name] = c
}

// openMixed compiles a spec whose sources have the names of tables.
func openMixed(t testing.TB, sp Spec, tabs map[string]*fakeTable, workers int) *Engine {
	t.Helper()
	e, err := tryMixed(sp, tabs, workers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func tryMixed(sp Spec, tabs map[string]*fakeTable, workers int) (*Engine, error) {
	sp = sp.WithDefaults()
	if err := sp.Validate(); err != nil {
		return nil, err
	}
	all := &fakeTable{objects: map[string][]byte{}}
	for name, tab := range tabs {
		for uri, o := range tab.objects {
			all.objects[name+":"+uri] = o
		}
	}
	e, err := openEngine(context.Background(), sp, Options{Workers: workers, Opener: all}.WithDefaults(),
		func(_ context.Context, src Source, _ []Field) (*rows.Table, error) {
			tab, ok := tabs[src.Source]
			if !ok {
				return nil, fmt.Errorf("no table %q", src.Source)
			}
			return placed(tab, src.Source), nil
		})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// placed returns a table whose objects have a name in front.
func placed(t *fakeTable, name string) *rows.Table {
	return rows.New(placedStore{fakeStore{t}, name})
}

type placedStore struct {
	fakeStore
	name string
}

func (s placedStore) Fingerprint() string { return "fake " + s.name }

func (s placedStore) Asset(_ context.Context, field int, row int64) (catalog.Asset, error) {
	a, err := s.t.asset(field, row)
	a.URI = s.name + ":" + a.URI
	return a, err
}

var sampledFields = []Field{
	{Name: "image", DType: "float32", Normalize: &spec.Normalize{Scale: []float64{0.5, 0.25, 1e-3},
		Offset: []float64{-1, 0, 3}}, Fill: fillOf(-9), Validity: "image_valid"},
	{Name: "mask", Layout: "n y x"},
	{Name: "label"}, {Name: "measure"}, {Name: "name"},
}

func fillOf(v float64) *spec.Float { f := spec.Float(v); return &f }

// pixel returns a sample of an asset, and whether it is there.
func pixel(a *fakeAsset, c, y, x int) (v uint16, there bool) {
	if y < 0 || x < 0 || y >= a.h || x >= a.w {
		return 0, false
	}
	return a.at(c, y, x), a.valid(c, y, x)
}

// places returns where the samples of a resampled side come from, as exact fractions.
func places(i, m, n int) (a, b, near int, w float32) {
	at := big.NewRat(int64((2*i+1)*m), int64(2*n))
	near = int(new(big.Int).Div(at.Num(), at.Denom()).Int64())
	at.Sub(at, big.NewRat(1, 2))
	low := new(big.Int).Div(at.Num(), at.Denom()) // Euclidean: the floor, as the denominator is positive
	f, _ := new(big.Rat).Sub(at, new(big.Rat).SetInt(low)).Float64()
	k := int(low.Int64())
	return min(max(k, 0), m-1), min(max(k+1, 0), m-1), near, float32(f)
}

func lerp(a, b, w float32) float32 {
	d := b - a
	p := float32(w * d) // rounded: no processor may fuse it
	return a + p
}

// tentOf returns the weight of sample j of m in sample i of n, as exact fractions: 1 - |distance of
// the centres| in samples of the coarser side, in units that make it whole.
func tentOf(i, j, m, n int) float64 {
	centre := big.NewRat(int64((2*i+1)*m), int64(2*n))
	d := new(big.Rat).Sub(big.NewRat(int64(2*j+1), 2), centre)
	d.Abs(d)
	coarse := max(m, n)
	d.Mul(d, big.NewRat(int64(n), int64(coarse))) // in samples of the result where it is the coarser one
	w := new(big.Rat).Sub(big.NewRat(1, 1), d)
	if w.Mul(w, big.NewRat(int64(2*coarse), 1)); w.Sign() < 0 {
		return 0
	}
	if !w.IsInt() {
		panic("a weight is not whole")
	}
	f, _ := w.Float64()
	return f
}

// antialiased is expected with antialiasing.
func antialiased(a *fakeAsset, b shuffle.Box, c, y, x, h, w int) (v float32, there bool) {
	var sum, weight, all float64
	for r := range b.H {
		var s, ws, wa float64
		for q := range b.W {
			k := tentOf(x, q, b.W, w)
			wa += k
			if u, ok := pixel(a, c, b.Y+r, b.X+q); ok && k > 0 {
				p := float64(k * float64(u))
				s += p
				ws += k
			}
		}
		k := tentOf(y, r, b.H, h)
		ps, pw, pa := float64(k*s), float64(k*ws), float64(k*wa)
		sum, weight, all = sum+ps, weight+pw, all+pa
	}
	if 2*weight < all {
		return 0, false
	}
	return float32(sum / weight), true
}

// expected returns the element (c, y, x) of a field before its transform: a sample of a (h, w)
// tensor whose window is b. there reports whether it is inside.
func expected(a *fakeAsset, b shuffle.Box, c, y, x, h, w int, blend bool) (v float32, there bool) {
	if b.H == h && b.W == w && !blend {
		u, there := pixel(a, c, b.Y+y, b.X+x)
		return float32(u), there
	}
	ya, yb, yn, wy := places(y, b.H, h)
	xa, xb, xn, wx := places(x, b.W, w)
	near, there := pixel(a, c, b.Y+yn, b.X+xn)
	if !blend || !there {
		return float32(near), there
	}
	at := func(y, x int) float32 {
		if u, ok := pixel(a, c, b.Y+y, b.X+x); ok {
			return float32(u)
		}
		return float32(near)
	}
	return lerp(lerp(at(ya, xa), at(ya, xb), wx), lerp(at(yb, xa), at(yb, xb), wx), wy), true
}

// checkSampled compares a batch of sampledFields with the plan, index by index. Windows are those
// of package shuffle, whose tests compare it with docs/order.md.
func checkSampled(t testing.TB, e *Engine, tabs map[string]*fakeTable, tk steps.Ticket, b *batch.Batch) {
	t.Helper()
	steps := max(e.sets[0].steps, 1)
	for k := range tk.Rows() {
		pos := tk.Position(k, e.Len())
		if b.Positions[k] != pos {
			t.Fatalf("row %d: position %d, want %d", k, b.Positions[k], pos)
		}
		bad := slices.ContainsFunc(b.Bad, func(x batch.Bad) bool { return x.Row == k })
		var draw shuffle.Draw
		var tab *fakeTable
		exists, stepwise := pos >= 0, false // stepwise: bad steps are listed one by one
		fills := e.spec.BadSamples == spec.BadFill
		if exists {
			draw = e.Plan().At(tk.Epoch, pos)
			tab = tabs[e.Sources()[sourceOf(e, draw.Dataset)].Source]
			good := rowsGood(e, tab, &draw)
			if !good && fills && e.sets[0].steps > 0 {
				checkBadSteps(t, e, tab, b, k, &draw)
				stepwise = true
			} else if good == bad {
				t.Fatalf("row %d: bad %v, of a sample that is good: %v", k, bad, good)
			}
			first := draw
			for a := 1; !good && e.spec.BadSamples == spec.BadReplace && a <= shuffle.MaxAttempts; a++ {
				s := e.Plan().Substitute(e.Plan().At(tk.Epoch, pos), a)
				if good = rowsGood(e, tab, &s); good {
					draw = s
				}
			}
			if bad && !stepwise {
				checkBad(t, e, tab, b, k, &first, &draw)
			}
			valid := good || fills // only images are broken
			if b.Valid[k] != valid || b.Samples[k] != draw.Sample {
				t.Fatalf("row %d: valid %v, sample %d, want %v and %d", k, b.Valid[k], b.Samples[k], valid, draw.Sample)
			}
			exists = valid
		} else if b.Valid[k] {
			t.Fatalf("row %d is padding, and valid", k)
		}
		rows := make([]int64, steps)
		if pos >= 0 {
			for step := range rows {
				rows[step] = e.Plan().Row(&draw, step)
			}
		}
		if s := b.Tensor("steps"); s != nil {
			for i, r := range rows {
				if got := s.Data[k*steps+i] == 1; got != (exists && r >= 0) {
					t.Fatalf("row %d step %d: validity %v of row %d", k, i, got, r)
				}
			}
		}
		for i := range steps {
			there := exists && rows[i] >= 0
			imageThere := there && tab.broken[rows[i]] == nil
			for number, view := range e.sets[0].ofViews() {
				drawn := e.Plan().View(&draw, number)
				checkStep(t, e, tab, &drawn, rows, i, imageThere, there, k, b, view)
			}
			for _, f := range e.spec.Fields {
				says := b.Tensor("there." + f.Name)
				if (says != nil) != fills {
					t.Fatalf("there.%s: %v", f.Name, says)
				}
				if fills && (says.Data[k*steps+i] == 1) != (imageThere || there && f.Name != "image") {
					t.Fatalf("row %d step %d: %s is there: %d", k, i, f.Name, says.Data[k*steps+i])
				}
			}
			label := int64(binary.LittleEndian.Uint64(b.Tensor("label").Data[8*(k*steps+i):]))
			measure := math.Float64frombits(binary.LittleEndian.Uint64(b.Tensor("measure").Data[8*(k*steps+i):]))
			name := ""
			if there {
				name = fmt.Sprintf("chip %d", rows[i])
			}
			if got := b.Tensor("name").Texts(); len(got) != tk.Rows()*steps || got[k*steps+i] != name {
				t.Fatalf("row %d step %d: the names are %q, want %q", k, i, got, name)
			}
			if there && (label != rows[i]*10 || measure != float64(rows[i])/4) || !there &&
				(label != 0 || !math.IsNaN(measure)) {
				t.Fatalf("row %d step %d: values %d %v of row %d, there: %v", k, i, label, measure, rows[i], there)
			}
		}
	}
}

// checkBad compares a batch's report on a bad row with the sample that was drawn and its
// substitute.
func checkBad(t testing.TB, e *Engine, tab *fakeTable, b *batch.Batch, k int, first, last *shuffle.Draw) {
	t.Helper()
	ref := func(d *shuffle.Draw) *batch.SampleRef {
		id, _ := tab.table().ID(context.Background(), d.Row)
		return &batch.SampleRef{Index: d.Sample, Row: d.Row, ID: id}
	}
	want := batch.Bad{Row: k, Position: b.Positions[k], Sample: ref(first)}
	if len(e.Sources()) > 1 {
		want.Source = e.Sources()[sourceOf(e, first.Dataset)].Name
	}
	if last.Attempt > 0 {
		want.Instead = ref(last)
	}
	got := b.Bad[slices.IndexFunc(b.Bad, func(x batch.Bad) bool { return x.Row == k })]
	if got.Err = nil; !reflect.DeepEqual(got, want) {
		t.Fatalf("row %d: %+v of %+v in place of %+v, want %+v of %+v in place of %+v", k, got, got.Instead,
			got.Sample, want, want.Instead, want.Sample)
	}
}

// checkBadSteps compares a batch's report on a sequence with bad steps with those steps, in order.
func checkBadSteps(t testing.TB, e *Engine, tab *fakeTable, b *batch.Batch, k int, draw *shuffle.Draw) {
	t.Helper()
	rows := make([]int64, e.sets[0].steps)
	for step := range rows {
		rows[step] = e.Plan().Row(draw, step)
	}
	var want, got []batch.Bad
	for _, r := range rows {
		if r >= 0 && tab.broken[r] != nil {
			id, _ := tab.table().ID(t.Context(), r)
			bad := batch.Bad{Row: k, Position: b.Positions[k],
				Sample: &batch.SampleRef{Index: draw.Sample, Row: r, ID: id}}
			if len(e.Sources()) > 1 {
				bad.Source = e.Sources()[sourceOf(e, draw.Dataset)].Name
			}
			want = append(want, bad)
		}
	}
	for _, bad := range b.Bad {
		if bad.Row == k {
			bad.Err = nil
			got = append(got, bad)
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("row %d: bad steps %+v, want %+v", k, got, want)
	}
}

func sourceOf(e *Engine, dataset int) int {
	return slices.IndexFunc(e.Sources(), func(s batch.SourceInfo) bool { return slices.Contains(s.Datasets, dataset) })
}

func rowsGood(e *Engine, tab *fakeTable, d *shuffle.Draw) bool {
	rows := make([]int64, max(e.leaves[d.Dataset].steps, 1))
	for step := range rows {
		rows[step] = e.Plan().Row(d, step)
	}
	return !slices.ContainsFunc(rows, func(r int64) bool { return tab.broken[r] != nil })
}

func checkStep(t testing.TB, e *Engine, tab *fakeTable, draw *shuffle.Draw, rows []int64, step int,
	imageThere, there bool, k int, b *batch.Batch, view *dataset) {
	t.Helper()
	suffix := ""
	if h, w := view.sampler.Height, view.sampler.Width; len(view.ofSizes()) > 1 && h == w {
		suffix = fmt.Sprintf(".%d", h)
	} else if len(view.ofSizes()) > 1 {
		suffix = fmt.Sprintf(".%dx%d", h, w)
	}
	img, val, mask := b.Tensor("image"+suffix), b.Tensor("image_valid"+suffix), b.Tensor("mask"+suffix)
	h, w, kind := view.rasters[0].H, view.rasters[0].W, view.sampler.Kind
	at := (k*max(view.rasters[0].Views, 1)+view.place)*len(rows) + step
	want := make([]float32, 3*h*w)
	valid := make([]byte, 3*h*w)
	wantMask := make([]float32, h/2*w/2)
	for i := range want {
		want[i] = -9
	}
	if there {
		lead := tab.assets[[2]int64{0, rows[0]}]
		a, m := tab.assets[[2]int64{0, rows[step]}], tab.assets[[2]int64{1, rows[step]}]
		var weights *shuffle.Weights
		if d := e.leaves[draw.Dataset]; d.weights != nil {
			weights, _ = d.weights.Of(draw.Row, lead.h, lead.w)
		}
		box, _ := e.Plan().Window(draw, lead.h, lead.w, weights)
		if share := view.sampler.MinOverlap; share > 0 {
			base := *draw
			base.View = 0
			first, _ := e.Plan().Window(&base, lead.h, lead.w, weights)
			if box, _ = e.Plan().Overlapping(draw, first, share, lead.h, lead.w); shuffle.Overlap(box, first) < share {
				t.Fatalf("%+v overlaps %+v less than %v", box, first, share)
			}
		}
		if kind == spec.WholeChip {
			box = shuffle.Box{H: h, W: w}
		}
		half := shuffle.Box{Y: box.Y / 2, X: box.X / 2, H: box.H / 2, W: box.W / 2}
		resized := kind == spec.ResizedWindow
		n := e.spec.Fields[0].Normalize
		for y := range h {
			for x := range w {
				ty, tx := draw.Transform.Apply(y, x, h, w)
				for c := range 3 {
					v, ok := expected(a, box, c, y, x, h, w, resized)
					if e.spec.Fields[0].Resample == spec.Antialias && resized {
						v, ok = antialiased(a, box, c, y, x, h, w)
					}
					if ok && imageThere {
						p := float32(v * float32(n.Scale[c]))
						want[(c*h+ty)*w+tx], valid[(c*h+ty)*w+tx] = p+float32(n.Offset[c]), 1
					}
				}
			}
		}
		for y := range h / 2 {
			for x := range w / 2 {
				ty, tx := draw.Transform.Apply(y, x, h/2, w/2)
				v, _ := expected(m, half, 0, y, x, h/2, w/2, false)
				wantMask[ty*(w/2)+tx] = v
			}
		}
	}
	for i := range want {
		if got := float32At(img.Data, at*3*h*w+i); got != want[i] || val.Data[at*3*h*w+i] != valid[i] {
			t.Fatalf("%+v: image %d (%d, %d, %d) is %v valid %d, want %v valid %d", *draw, at, i/h/w, i/w%h, i%w,
				got, val.Data[at*3*h*w+i], want[i], valid[i])
		}
	}
	for i := range wantMask {
		if got := uint16At(mask.Data, at*(h/2)*(w/2)+i); float32(got) != wantMask[i] {
			t.Fatalf("%+v: mask %d element %d is %d, want %v", *draw, at, i, got, wantMask[i])
		}
	}
}

// drawSampler returns a random sampler.
func drawSampler(rt *rapid.T) Sampler {
	side := func(name string, most int) int { return 2 * rapid.IntRange(1, most/2).Draw(rt, name) }
	s := Sampler{Height: side("h", 20), Width: side("w", 24)}
	switch s.Kind = rapid.SampledFrom([]string{spec.WholeChip, spec.RandomWindow, spec.GridWindow,
		spec.ResizedWindow, spec.TileWindow}).Draw(rt, "kind"); s.Kind {
	case spec.WholeChip:
		s = Sampler{}
	case spec.RandomWindow:
		s.PerAsset = rapid.IntRange(1, 3).Draw(rt, "per")
	case spec.GridWindow:
		s.StrideY, s.StrideX = side("sy", 14), side("sx", 14)
		s.Pad = rapid.Bool().Draw(rt, "pad")
	case spec.ResizedWindow:
		if s.Whole = rapid.Bool().Draw(rt, "whole"); s.Whole {
			break
		}
		s.OfAsset = rapid.Bool().Draw(rt, "of asset")
		s.Ratio = rapid.SampledFrom([]float64{1, 1.5, 3}).Draw(rt, "ratio")
		s.PerAsset = rapid.IntRange(1, 3).Draw(rt, "per")
	case spec.TileWindow:
		s.TileHeight, s.TileWidth = side("th", 12), side("tw", 12)
		s.PerVisit, s.Pool = rapid.IntRange(1, 4).Draw(rt, "k"), rapid.IntRange(1, 5).Draw(rt, "b")
		s.PerAsset = rapid.IntRange(0, 3).Draw(rt, "visits")
	}
	return s
}

// drawViews gives a spec further windows of each sample, and its fields the axis v.
func drawViews(rt *rapid.T, s *Spec, inTime bool) {
	lead := s.Sampler
	for range rapid.IntRange(1, 3).Draw(rt, "views") {
		view := Sampler{Kind: rapid.SampledFrom([]string{spec.RandomWindow, spec.ResizedWindow}).Draw(rt, "view"),
			Height: lead.Height, Width: lead.Width}
		if rapid.Bool().Draw(rt, "size") {
			view.Height = 2 * rapid.IntRange(1, 10).Draw(rt, "view side")
			view.Width = view.Height
		}
		if !lead.Pad {
			view.MinOverlap = rapid.SampledFrom([]float64{0, 0.02}).Draw(rt, "overlap")
		}
		s.Sampler.Views = append(s.Sampler.Views, view)
	}
	if s.Fields[0].Layout, s.Fields[1].Layout = "", "(n v) y x"; inTime {
		s.Fields[0].Layout, s.Fields[1].Layout = "n v t b y x", "(n v t) y x"
	}
}

// drawSpec returns a random spec over tables "a" and "b" that may use every option.
func drawSpec(rt *rapid.T) Spec {
	s := Spec{
		Fields: slices.Clone(sampledFields), BatchSize: rapid.IntRange(1, 6).Draw(rt, "g"),
		Seed:    rapid.Uint64().Draw(rt, "seed"),
		Shuffle: rapid.Bool().Draw(rt, "shuffle"), Sampler: drawSampler(rt),
		BadSamples: rapid.SampledFrom([]string{spec.BadSkip, spec.BadReplace, spec.BadFill}).Draw(rt, "policy"),
	}
	s.Fields[0].Pad, s.Fields[1].Pad = true, true
	s.Fields[0].Resample = rapid.SampledFrom([]string{"", spec.Bilinear, spec.Antialias}).Draw(rt, "resample")
	sets := []string{"", "flip_x", "flip_y", "flips"}
	if s.Sampler.Height == s.Sampler.Width && s.Sampler.Height > 0 {
		sets = append(sets, "rotations", "d4", "d4")
	}
	s.Augment = rapid.SampledFrom(sets).Draw(rt, "augment")
	subset := func() (u Subset) {
		if rapid.Bool().Draw(rt, "where") {
			u.Where = []Condition{{Column: "cloud", Op: "<", Value: json.RawMessage("7")}}
		}
		if rapid.Bool().Draw(rt, "split") {
			u.Split, u.Use = &spec.Split{By: "hash", Shares: []spec.Share{{Name: "train", Weight: 3},
				{Name: "val", Weight: 1}}}, "train"
		}
		return u
	}
	inTime := rapid.IntRange(0, 3).Draw(rt, "time") == 0
	in := &spec.Time{Key: "site", Order: "date", Length: rapid.IntRange(1, 4).Draw(rt, "t"),
		Stride: rapid.IntRange(0, 3).Draw(rt, "ts")}
	if inTime {
		s.Fields[0].Layout, s.Fields[1].Layout = "n t b y x", "(n t) y x"
	}
	if s.Sampler.Height > 0 && s.Sampler.Kind != spec.TileWindow && rapid.IntRange(0, 2).Draw(rt, "several") == 0 {
		drawViews(rt, &s, inTime)
	}
	exact := !inTime && s.BatchSize >= 4 && rapid.Bool().Draw(rt, "per batch")
	if rapid.IntRange(0, 2).Draw(rt, "take") == 0 {
		if s.Take = rapid.Int64Range(1, 40).Draw(rt, "samples"); exact {
			s.Take *= int64(s.BatchSize)
		}
	}
	if rapid.IntRange(0, 2).Draw(rt, "mixed") > 0 {
		s.Source, s.Subset = "a", subset()
		if inTime {
			s.Time = in
		} else if rapid.Bool().Draw(rt, "strata") {
			s.Strata = &spec.Strata{Column: "class",
				Until: rapid.SampledFrom([]spec.Text{"", spec.UntilShortest, spec.UntilLongest}).Draw(rt, "until")}
			if exact {
				s.Strata.PerBatch, s.Strata.Until = true,
					rapid.SampledFrom([]spec.Text{"", spec.UntilLongest}).Draw(rt, "until of batches")
			}
		}
		return s
	}
	for _, name := range []string{"a", "b"} {
		c := Source{Source: name, Name: name, Weight: rapid.Float64Range(0.5, 2).Draw(rt, "weight"), Subset: subset()}
		if inTime {
			c.Time = in
		}
		s.Sources = append(s.Sources, c)
	}
	if s.Sampler.Kind == spec.WholeChip { // of two sizes
		s.Sampler.Height, s.Sampler.Width = 22, 24
		if s.Augment == "d4" || s.Augment == "rotations" {
			s.Augment = "flips"
		}
	}
	s.Until = rapid.SampledFrom([]spec.Text{spec.UntilShortest, spec.UntilLongest}).Draw(rt, "until")
	if exact {
		s.PerBatch, s.Until = true, spec.UntilLongest
	}
	if rapid.Bool().Draw(rt, "nested") {
		s.Sources = []Source{{Mixture: spec.Mixture{Sources: s.Sources[:1]}}, s.Sources[1]}
	}
	return s
}

// tables returns "a" and "b", with columns and a few broken rows.
func sampledTables() map[string]*fakeTable {
	tabs := map[string]*fakeTable{"a": chips(7, 17), "b": chips(8, 9)}
	for _, tab := range tabs {
		tab.ints("cloud", func(r int64) int64 { return r * 7 % 10 })
		tab.ints("site", func(r int64) int64 { return r % 4 })
		tab.texts("date", func(r int64) string { return fmt.Sprintf("2024-%02d-01", (r*5)%12+1) })
		tab.texts("class", func(r int64) string { return []string{"forest", "water", ""}[r%3] })
		gone := fault.At(fault.Corrupt, "tile", 3, "broken")
		tab.broken = map[int64]error{3: gone, 8: gone}
	}
	return tabs
}

// TestAnySampledBatchAgainstIndexByIndex: batches of random specs agree with a reader that looks up
// every element. The race detector would follow that reader, which is slow: it has TestSampledRunsAreTheSame.
func TestAnySampledBatchAgainstIndexByIndex(t *testing.T) {
	race.SkipCovered(t)
	soak.Checks(t, 40) // each takes 65 ms of a processor
	tabs := sampledTables()
	met := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		sp := drawSpec(rt)
		e, err := tryMixed(sp, tabs, 2)
		if err != nil {
			if strings.Contains(err.Error(), "is selected") || strings.Contains(err.Error(), "has a value") {
				return
			}
			rt.Fatal(err)
		}
		defer e.Close()
		met[sp.Sampler.Kind]++
		if len(sp.Sampler.Views) > 0 {
			met["views"]++
		}
		world := rapid.IntRange(1, 3).Draw(rt, "world")
		tk := steps.StepTicket(rapid.Uint64Range(0, 5).Draw(rt, "epoch"),
			rapid.Int64Range(0, e.Steps()-1).Draw(rt, "step"),
			sp.BatchSize, rapid.IntRange(0, world-1).Draw(rt, "rank"), world)
		b := wait(t, e.Start(context.Background(), tk, false))
		checkSampled(t, e, tabs, tk, b)
		b.Release()
	})
	if len(met) < 6 && !testing.Short() { // eight specs need not meet all
		t.Errorf("samplers met: %v", met)
	}
}

// TestHashOfOldSpecs: specs have the hash that they had when a spec had one source and two
// samplers, because runs resume across versions.
func TestHashOfOldSpecs(t *testing.T) {
	e := openFake(t, Spec{BatchSize: 4, Seed: 5, Shuffle: true, Sampler: Sampler{Kind: spec.RandomWindow, Height: 8,
		Width: 6, PerAsset: 2}, Fields: []Field{{Name: "image"}, {Name: "mask"}}}, chips(1, 3), 1)
	h := xxh3.Hash128([]byte(`{"order":1,"fingerprint":"fake","spec":{"version":1,"source":"","fields":[` +
		`{"name":"image","dtype":"native","layout":"n b y x"},{"name":"mask","dtype":"native","layout":"n b y x"}],` +
		`"batch_size":4,"shuffle":true,"seed":5,"sampler":{"kind":"random_window","height":8,"width":6,` +
		`"per_asset":2},"bad_samples":"error"}}`))
	if want := fmt.Sprintf("%016x%016x", h.Hi, h.Lo); e.Hash() != want {
		t.Errorf("hash %s, was %s", e.Hash(), want)
	}
}

// fixedSpecs are specs that together use every option.
func fixedSpecs() map[string]Spec {
	base := func(s Sampler) Spec {
		return Spec{Source: "a", Fields: slices.Clone(sampledFields), BatchSize: 5, Seed: 3, Shuffle: true,
			Sampler: s, BadSamples: spec.BadReplace, Augment: "flips"}
	}
	tiles := base(Sampler{Kind: spec.TileWindow, Height: 8, Width: 8, TileWindows: spec.TileWindows{TileHeight: 10,
		TileWidth: 10, PerVisit: 4, Pool: 3}})
	tiles.Augment = "d4"
	resized := base(Sampler{Kind: spec.ResizedWindow, Height: 12, Width: 12, PerAsset: 2})
	resized.Augment = "rotations"
	mixed := base(Sampler{Kind: spec.RandomWindow, Height: 6, Width: 10, PerAsset: 2})
	mixed.Source, mixed.Until, mixed.BadSamples = "", spec.UntilLongest, spec.BadFill
	mixed.Sources = []Source{{Source: "a",
		Subset: Subset{Where: []Condition{{Column: "class", Op: "==", Value: json.RawMessage(`"water"`)}}}},
		{Source: "b", Weight: 2}}
	exact := base(Sampler{Kind: spec.RandomWindow, Height: 6, Width: 10, PerAsset: 2})
	exact.Source, exact.Until, exact.PerBatch, exact.Take = "", spec.UntilLongest, true, 15
	exact.Sources = []Source{{Source: "a", Weight: 3,
		Subset: Subset{Strata: &spec.Strata{Column: "class", PerBatch: true}}}, {Source: "b", Weight: 2}}
	inTime := base(Sampler{Kind: spec.GridWindow, Height: 12, Width: 12, GridWindows: spec.GridWindows{StrideY: 6}})
	inTime.BadSamples = spec.BadSkip
	inTime.Fields[0].Layout, inTime.Fields[1].Layout = "n t b y x", "(n t) y x"
	inTime.Time = &spec.Time{Key: "site", Order: "date", Length: 3}
	strata := base(Sampler{Kind: spec.WholeChip, Height: 20, Width: 24})
	strata.Strata = &spec.Strata{Column: "class"}
	filled := inTime
	filled.BadSamples = spec.BadFill
	views, viewsInTime := base(resized.Sampler), inTime
	views.Sampler.Views = []Sampler{{Kind: spec.ResizedWindow, Size: &spec.Pair{12, 12}, MinOverlap: 0.3},
		{Kind: spec.RandomWindow, Size: &spec.Pair{6, 8}}, {Kind: spec.RandomWindow, Size: &spec.Pair{6, 8}}}
	viewsInTime.Sampler.Views = []Sampler{{Kind: spec.RandomWindow, Size: &spec.Pair{12, 12}, MinOverlap: 0.3}}
	viewsInTime.Fields, views.Fields = slices.Clone(inTime.Fields), slices.Clone(views.Fields)
	viewsInTime.Fields[0].Layout, viewsInTime.Fields[1].Layout = "n v t b y x", "(n v t) y x"
	views.Fields[1].Layout = "n v y x"
	return map[string]Spec{"tiles": tiles, "resized": resized, "mixed": mixed, "time": inTime, "views": views,
		"views in time": viewsInTime, "filled steps": filled, "strata": strata, "exact shares": exact}
}

// TestSampledRunsAreTheSame: runs are equal for any number of workers and ranks, resumed at any
// step, and sent in the native dtype.
func TestSampledRunsAreTheSame(t *testing.T) {
	tabs := sampledTables()
	for name, sp := range fixedSpecs() {
		t.Run(name, func(t *testing.T) {
			e := openMixed(t, sp, tabs, 1)
			want, states := collect(t, e, LoaderOptions{Epochs: 2})
			if int64(len(want)) != 2*e.Steps() || len(want) < 6 {
				t.Fatalf("%d batches in two epochs of %d steps", len(want), e.Steps())
			}
			for _, workers := range []int{2, 7} {
				if testing.Short() && workers == 2 {
					continue // of the same goroutines, fewer
				}
				got, _ := collect(t, openMixed(t, sp, tabs, workers), LoaderOptions{Epochs: 2, Prefetch: workers})
				sameRun(t, fmt.Sprint(workers, " workers"), got, want)
			}
			for i := range states {
				if testing.Short() && i != len(states)/2 {
					continue // each runs all that is left: the race detector sees the same goroutines
				}
				got, _ := collect(t, e, LoaderOptions{Epochs: 2, State: &states[i]})
				sameRun(t, fmt.Sprint("resumed after ", i), got, want[i+1:])
			}
			ctx := context.Background()
			for step := range e.Steps() {
				if testing.Short() && step != 1 {
					continue
				}
				whole := wait(t, e.Start(ctx, steps.StepTicket(1, step, 5, 0, 1), false))
				checkSampled(t, e, tabs, steps.StepTicket(1, step, 5, 0, 1), whole)
				for _, world := range []int{3, 8} {
					if testing.Short() && world == 8 {
						continue
					}
					for rank := range world {
						tk := steps.StepTicket(1, step, 5, rank, world)
						b := wait(t, e.Start(ctx, tk, false))
						checkSampled(t, e, tabs, tk, b)
						b.Release()
					}
				}
				native := wait(t, e.Start(ctx, steps.StepTicket(1, step, 5, 0, 1), true))
				for i := range native.Tensors {
					if n := &native.Tensors[i]; n.Convert != nil {
						n.Data, n.DType = slowConvert(*n), n.Convert.To
					}
				}
				if string(flat(native)) != string(flat(whole)) {
					t.Fatalf("step %d: the native form differs", step)
				}
				native.Release()
				whole.Release()
			}
		})
	}
}

func sameRun(t *testing.T, what string, got, want [][]byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d batches, want %d", what, len(got), len(want))
	}
	for i := range want {
		if string(got[i]) != string(want[i]) {
			t.Fatalf("%s: batch %d differs", what, i)
		}
	}
}

// TestNativeSampled: an image without validity is sent in its native dtype.
func TestNativeSampled(t *testing.T) {
	tabs := sampledTables()
	sp := fixedSpecs()["mixed"]
	sp.Fields[0].Validity = ""
	sp.BadSamples = spec.BadReplace
	e := openMixed(t, sp, tabs, 3)
	ctx := context.Background()
	for step := range e.Steps() {
		tk := steps.StepTicket(0, step, 5, 0, 1)
		whole, native := wait(t, e.Start(ctx, tk, false)), wait(t, e.Start(ctx, tk, true))
		n := native.Tensor("image")
		if n.Convert == nil {
			t.Fatal("the image is not native")
		}
		n.Data, n.DType = slowConvert(*n), n.Convert.To
		if string(flat(native)) != string(flat(whole)) {
			t.Fatalf("step %d: the native form differs", step)
		}
		whole.Release()
		native.Release()
	}
}

func BenchmarkResample(b *testing.B) {
	const side = 256
	for name, to := range map[string]*pixels.Raster{"bilinear": {H: side, W: side, Blends: true},
		"nearest": {H: side, W: side}} {
		b.Run(name, func(b *testing.B) {
			s := &pixels.Resampler{In: make([]byte, 4*300*280), InValid: make([]byte, 300*280)}
			for i := range s.InValid {
				s.InValid[i] = 1
				binary.LittleEndian.PutUint32(s.In[4*i:], math.Float32bits(float32(i%1000)))
			}
			for b.Loop() {
				s.Resample(1, 300, 280, to, 4)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/side/side, "ns/pixel")
		})
	}
}

// TestAntialiasIsBounded: rows that are kept for a result far wider than its window count against
// the limit.
func TestAntialiasIsBounded(t *testing.T) {
	var s pixels.Smoother
	for _, size := range [][4]int{{4096, 1, 1, 65536}, {1, 1 << 20, 1, 1}} {
		if err := s.Prepare(size[0], size[1], size[2], size[3], 16<<20); fault.KindOf(err) != fault.Limit {
			t.Errorf("%v: %v", size, err)
		}
	}
	if err := s.Prepare(4096, 64, 4, 4, 16<<20); err != nil || cap(s.Rows) > 1<<20 {
		t.Errorf("%v, %d sums", err, cap(s.Rows))
	}
}

func BenchmarkAntialias(b *testing.B) {
	const side = 256
	for _, m := range []int{300, 1024} {
		b.Run(fmt.Sprint(m, " to ", side), func(b *testing.B) {
			s := &pixels.Resampler{In: make([]byte, 4*m*m), InValid: bytes.Repeat([]byte{1}, m*m)}
			to := &pixels.Raster{H: side, W: side}
			for b.Loop() {
				if err := s.Smooth.Prepare(m, m, side, side, 1<<30); err != nil {
					b.Fatal(err)
				}
				s.Antialias(1, m, m, to)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/side/side, "ns/pixel")
		})
	}
}

package rows

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	_ "github.com/chaski-eo/chaski/format/tables/text"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// TestScenesOfSeveralDatasets: datasets of scenes are one table, one after the other; a field has rasters in the rows
// of its datasets alone.
func TestScenesOfSeveralDatasets(t *testing.T) {
	first := folder.Of(t, "a.tif", "b.tif")                     // of heights 1 and 2
	other := folder.Of(t, "x.txt=", "y.txt=", "c.tif", "d.tif") // of heights 3 and 4
	o := resources.Options{}.WithDefaults()
	fields := []spec.Field{{Name: "image"}, {Name: "label", Scenes: []string{other}},
		{Name: "both", Scenes: []string{"", other}}}
	for i := range fields {
		fields[i].Kind, fields[i].DType, fields[i].Column = spec.RasterField, "native", ""
	}
	fields[2].Bands = []int{0}
	table, err := Open(t.Context(), spec.Source{Source: first}, fields, o)
	if err != nil {
		t.Fatal(err)
	}
	heights := [3][4]int{{1, 2, 0, 0}, {0, 0, 3, 4}, {1, 2, 3, 4}} // 0: no raster
	for row := range int64(4) {
		for k := range fields {
			height := heights[k][row]
			if table.Lacks(k, row) != (height == 0) || table.Joined.Has(k, int(row/2)) != (height > 0) {
				t.Errorf("field %d, row %d: lacks %v", k, row, table.Lacks(k, row))
			}
			asset, err := table.Fields[k].Asset(t.Context(), row)
			if (err == nil) != (height > 0) || err == nil && asset.Index.Height != height ||
				err != nil && fault.KindOf(err) != fault.NotFound {
				t.Errorf("field %d, row %d: %v, want a height of %d", k, row, err, height)
			}
			value, err := table.Fields[k].Value(t.Context(), row)
			if err != nil || value.Null != (height == 0) {
				t.Errorf("field %d, row %d: %+v, %v", k, row, value, err)
			}
		}
	}
	var ids []string
	err = table.ScanIDs(t.Context(), func(row int64, id string) error {
		if got, err := table.ID(t.Context(), row); err != nil || got != id {
			t.Errorf("row %d is %q, %q; %v", row, got, id, err)
		}
		ids = append(ids, filepath.Base(id))
		return nil
	})
	if err != nil || !slices.Equal(ids, []string{"a.tif", "b.tif", "c.tif", "d.tif"}) || table.N != 4 ||
		table.Joined.Count() != 2 || !table.Joined.Leads(0) {
		t.Errorf("ids %v of %d rows, %v", ids, table.N, err)
	}
	for rows, want := range map[string][]int{"": {1, 3, 1}, "\x01\x03": {2, 4, 2}} {
		some := []uint32(nil)
		for _, row := range []byte(rows) {
			some = append(some, uint32(row))
		}
		assets, err := FirstOf(t.Context(), table, fields, []int{0, 1, 2}, spec.BadError, some)
		if err != nil || len(assets) != 3 {
			t.Fatal(err)
		}
		for i, a := range assets {
			if a.Index.Height != want[i] {
				t.Errorf("the first of field %d has height %d, want %d", i, a.Index.Height, want[i])
			}
		}
	}
	if _, err := FirstOf(t.Context(), table, fields, []int{0, 1}, spec.BadError, []uint32{0}); err == nil ||
		!strings.Contains(err.Error(), "field label") {
		t.Errorf("no scene of the label: %v", err)
	}
	got, err := Selected(t.Context(), table, spec.Source{Subset: spec.Subset{Bad: ids[:0]}}, o)
	if got != nil || err != nil {
		t.Errorf("all rows: %v, %v", got, err)
	}
	got, err = Selected(t.Context(), table, spec.Source{Subset: spec.Subset{Bad: []string{"none"}}}, o)
	if !slices.Equal(got, []uint32{0, 1, 2, 3}) || err != nil {
		t.Errorf("all rows but none: %v, %v", got, err)
	}
	swapped, err := Open(t.Context(), spec.Source{Source: other}, []spec.Field{fields[0]}, o)
	if err != nil || swapped.Fingerprint == table.Fingerprint {
		t.Error("another dataset has the same fingerprint", err)
	}
	if err := errors.Join(table.Close(), swapped.Close()); err != nil {
		t.Error(err)
	}
	if _, err := Open(t.Context(), spec.Source{Source: first}, fields[1:2], o); err == nil ||
		!strings.Contains(err.Error(), "no field has rasters of the source itself") {
		t.Errorf("no field of the source: %v", err)
	}
}

// TestOptionsThatDoNotSuit: options that a directory of files has no use for are refused.
func TestOptionsThatDoNotSuit(t *testing.T) {
	dir := folder.Of(t, "a.tif", "b.tif")
	o := resources.Options{}.WithDefaults()
	image := spec.Field{Name: "image", Kind: spec.RasterField, DType: "native"}
	bands := image
	bands.Bands = []int{0}
	number := spec.Field{Name: "n", Kind: spec.NumberField}
	var dropping spec.Source
	dropping.Missing = spec.MissingDrop
	for name, c := range map[string]struct {
		source spec.Source
		fields []spec.Field
		want   string // "": it opens
	}{
		"an image":       {spec.Source{}, []spec.Field{image}, ""},
		"bands of it":    {spec.Source{}, []spec.Field{image, bands}, ""},
		"the same again": {spec.Source{}, []spec.Field{image, image}, "it would be the image of the field"},
		"a number":       {spec.Source{}, []spec.Field{image, number}, "name its column"},
		"drop without a pattern": {dropping, []spec.Field{image},
			"no field has a pattern"},
		"parts": {spec.Source{Container: spec.Container{BasePath: "x"}}, []spec.Field{image}, "containers"},
	} {
		c.source.Source = dir
		table, err := Open(t.Context(), c.source, c.fields, o)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
		if err == nil {
			_ = table.Close()
		}
	}
	s := spec.Spec{Source: dir, Fields: []spec.Field{image}}
	table, err := Open(t.Context(), s.Root(), s.Fields, o)
	if err != nil || table.N != 2 {
		t.Fatal(err)
	}
	defer table.Close()
	if err := table.Single(s.Fields, "tests"); err != nil {
		t.Error(err)
	}
	table.Fields[0].Steps = &Steps{Fields: []int{0, 0, 0}}
	if err := table.Single(s.Fields, "tests"); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("steps of time: %v", err)
	}
}

// TestScalesOfColumns: rasters have the scales and offsets of their rows, in all steps, and these are part of the
// fingerprint.
func TestScalesOfColumns(t *testing.T) {
	open := func(scales []any, field spec.Field) (*Table, error) {
		columns := map[string]listed{"s": {catalog.Float, 0, scales}, "o": {catalog.Int, 0, []any{int64(5),
			int64(6)}}, "t": {catalog.Text, 0, []any{"a", "b"}}}
		table := New(&stored{n: 2, columns: columns, fields: 3, rasters: func(_ int, row int64) (catalog.Asset, error) {
			if row > 1 {
				return catalog.Asset{}, errors.New("no row")
			}
			return catalog.Asset{URI: "f", Index: &chunk.Index{Bands: 2}}, nil
		}})
		table.Fields[0].Steps = &Steps{Fields: []int{1}}
		return table, table.scale(t.Context(), []spec.Field{field})
	}
	plain, err := open([]any{2.0, 3.0}, spec.Field{Name: "x"})
	if err != nil || plain.Fingerprint != "0" {
		t.Errorf("no scales: %q, %v", plain.Fingerprint, err)
	}
	prints := map[string]bool{"0": true}
	for _, c := range []struct {
		scales []any
		field  spec.Field
		want   [2]chunk.Linear
	}{
		{[]any{2.0, 3.0}, spec.Field{Scale: spec.Names{"s"}}, [2]chunk.Linear{{Scale: 2}, {Scale: 3}}},
		{[]any{2.0, 4.0}, spec.Field{Scale: spec.Names{"s"}}, [2]chunk.Linear{{Scale: 2}, {Scale: 4}}},
		{[]any{2.0, 3.0}, spec.Field{Offset: spec.Names{"o"}},
			[2]chunk.Linear{{Scale: 1, Offset: 5}, {Scale: 1, Offset: 6}}},
		{[]any{2.0, 3.0}, spec.Field{Scale: spec.Names{"s"}, Offset: spec.Names{"o"}},
			[2]chunk.Linear{{Scale: 2, Offset: 5}, {Scale: 3, Offset: 6}}},
	} {
		table, err := open(c.scales, c.field)
		if err != nil || prints[table.Fingerprint] {
			t.Errorf("%+v: %v; fingerprint %s", c.field, err, table.Fingerprint)
		}
		prints[table.Fingerprint] = true
		for row, want := range c.want {
			for k := range table.Fields {
				asset, err := table.Fields[k].Asset(t.Context(), int64(row))
				if scaled := k < 2; err != nil || scaled && asset.Index.Linear(1) != want ||
					!scaled && asset.Index.Physical != nil {
					t.Errorf("%+v: field %d, row %d has %+v, %v", c.field, k, row, asset.Index.Physical, err)
				}
			}
		}
		if _, err := table.Fields[0].Asset(t.Context(), 2); err == nil {
			t.Error("an asset that cannot be opened has a scale")
		}
	}
	for _, name := range []string{"absent", "t"} {
		if _, err := open([]any{2.0, 3.0}, spec.Field{Name: "x", Scale: spec.Names{name}}); err == nil ||
			!strings.Contains(err.Error(), "x") {
			t.Errorf("scales of column %s: %v", name, err)
		}
		if _, err := open([]any{2.0, 3.0}, spec.Field{Name: "x", Offset: spec.Names{name}}); err == nil {
			t.Errorf("offsets of column %s: %v", name, err)
		}
	}
	table, err := open([]any{2.0, nil}, spec.Field{Scale: spec.Names{"s"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.Fields[0].Asset(t.Context(), 1); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("a scale that is null: %v", err)
	}
}

// TestStacksAgainstSlow: a stack has the size of its first raster and the bands of all, or as many pixels of some
// metres as lie on the first one, from its upper left corner.
func TestStacksAgainstSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		side := rapid.IntRange(1, 50)
		var parts []catalog.Asset
		bands := 0
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			x := &chunk.Index{Bands: rapid.IntRange(1, 3).Draw(t, "bands"), Height: side.Draw(t, "height"),
				Width: side.Draw(t, "width"), ChunkH: side.Draw(t, "rows"), ChunkW: side.Draw(t, "columns")}
			bands += x.Bands
			parts = append(parts, catalog.Asset{URI: "f", Index: x})
		}
		first := parts[0].Index
		size := float64(rapid.SampledFrom([]int{5, 10, 20, 60}).Draw(t, "pixel"))
		transform := [6]float64{500000, size, 0, 5000000, 0, -2 * size}
		place := catalog.NewPlace(32631, &transform, first.Height, first.Width)
		parts[0].Place = place
		table := func(grid spec.Grid) (catalog.Asset, error) {
			below := New(&stored{fields: len(parts), rasters: func(field int, _ int64) (catalog.Asset, error) {
				return parts[field], nil
			}})
			made := Field{values: &stacked{parts: below.Fields, grid: grid}}
			return made.Asset(context.Background(), 0)
		}
		a, err := table(0)
		if err != nil || a.Index.Bands != bands || a.Index.Height != first.Height || a.Index.Width != first.Width ||
			a.Place != place || len(a.Parts) != len(parts) {
			t.Fatalf("%+v, %v", a.Index, err)
		}
		metres := float64(rapid.SampledFrom([]int{3, 10, 25, 100, 4000}).Draw(t, "grid"))
		h, w := math.Round(float64(first.Height)*2*size/metres), math.Round(float64(first.Width)*size/metres)
		a, err = table(spec.Grid(metres))
		if fits := h >= 1 && w >= 1; fits != (err == nil) || err != nil && fault.KindOf(err) != fault.Unsupported {
			t.Fatalf("%v by %v pixels: %v", h, w, err)
		} else if !fits {
			return
		}
		chunkSide := func(n int, size float64) int { return int(max(math.Round(float64(n)*size/metres), 1)) }
		got := a.Place.Transform(a.Index.Height, a.Index.Width)
		want := [6]float64{500000, metres, 0, 5000000, 0, -metres}
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-6 {
				t.Fatalf("transform %v, want %v", got, want)
			}
		}
		if a.Index.Height != int(h) || a.Index.Width != int(w) || a.Index.ChunkH != chunkSide(first.ChunkH, 2*size) ||
			a.Index.ChunkW != chunkSide(first.ChunkW, size) || a.Place.EPSG != 32631 {
			t.Fatalf("%+v; want %v by %v", a.Index, h, w)
		}
	})
}

// TestStacksRefused: the rasters of a stack have equal steps of time, and no masks then. A stack has no more bands than
// a raster may have, and a grid in metres only in a CRS of metres, with sides that a grid may have.
func TestStacksRefused(t *testing.T) {
	one := func(x chunk.Index, epsg int, pixel float64) error {
		x.Height, x.Width = 2, 2
		asset := catalog.Asset{URI: "f", Index: &x}
		if pixel > 0 {
			asset.Place = catalog.NewPlace(epsg, &[6]float64{0, pixel, 0, 0, 0, -pixel}, 2, 2)
		}
		_, err := newStack([]catalog.Asset{asset}, 1)
		return err
	}
	for name, c := range map[string]struct {
		err  error
		kind fault.Kind
	}{
		"metres":                 {one(chunk.Index{Bands: 1}, 32631, 10), 0},
		"steps of time":          {one(chunk.Index{Bands: 2, Times: 2}, 32631, 10), 0},
		"steps with a mask":      {one(chunk.Index{Bands: 4, Times: 2, Alpha: true}, 32631, 10), fault.Unsupported},
		"the most bands":         {one(chunk.Index{Bands: chunk.MaxBands}, 32631, 10), 0},
		"too many bands":         {one(chunk.Index{Bands: chunk.MaxBands + 1}, 32631, 10), fault.Limit},
		"degrees":                {one(chunk.Index{Bands: 1}, 4326, 10), fault.Unsupported},
		"feet":                   {one(chunk.Index{Bands: 1}, 2225, 10), fault.Unsupported},
		"an unknown CRS":         {one(chunk.Index{Bands: 1}, 999999, 10), fault.Unsupported},
		"no place":               {one(chunk.Index{Bands: 1}, 32631, 0), fault.Unsupported},
		"the largest side":       {one(chunk.Index{Bands: 1}, 32631, maxSide/2), 0},
		"a side that is larger":  {one(chunk.Index{Bands: 1}, 32631, maxSide/2+1), fault.Unsupported},
		"the smallest side":      {one(chunk.Index{Bands: 1}, 32631, 0.3), 0},
		"a side that is smaller": {one(chunk.Index{Bands: 1}, 32631, 0.2), fault.Unsupported},
	} {
		if fault.KindOf(c.err) != c.kind || c.kind == 0 && c.err != nil {
			t.Errorf("%s: %v, want %v", name, c.err, c.kind)
		}
	}
	fields := []spec.Field{{Name: "a"}, {Name: "b", Columns: []string{"x", "y"}, Grid: 10}, {Name: "c"}}
	flat, stacks := flatten(fields)
	var names []string
	for _, f := range flat {
		names = append(names, f.Name)
	}
	if !slices.Equal(names, []string{"a", "b.x", "b.y", "c"}) ||
		!slices.Equal(stacks, []stack{{first: 0}, {first: 1, n: 2, grid: 10}, {first: 3}}) {
		t.Errorf("%v, %+v", names, stacks)
	}
	if flat, stacks := flatten(fields[:1]); len(flat) != 1 || stacks != nil {
		t.Errorf("without a stack: %v, %+v", flat, stacks)
	}
}

// flatKind is a kind of stores without dimensions and times.
type flatKind struct{}

func (flatKind) String() string { return "a flat store" }

func (flatKind) Named(p source.Path) bool { return p.Base() == "flat" }

func (k flatKind) Is(_ context.Context, _ source.Opener, p source.Path) (bool, error) {
	return k.Named(p), nil
}

// TestDimensionsAndTimesOfAStore: only a kind that has dimensions, or times, takes their options.
func TestDimensionsAndTimesOfAStore(t *testing.T) {
	flat := store.Register(flatKind{})
	dir := folder.Of(t, "flat=x", "a.tif")
	o := resources.Options{}.WithDefaults()
	at := &spec.Timestamp{}
	for _, c := range []struct {
		source spec.Source
		kind   store.Kind
		want   string // "": it is not refused
	}{
		{spec.Source{Source: "flat"}, flat, ""}, {spec.Source{Source: "a.tif"}, store.Other, ""},
		{spec.Source{Source: "flat", Dims: "y x"}, nil, "a flat store has no dimensions"},
		{spec.Source{Source: "flat", Timestamp: at}, nil, "a flat store has no times"},
		{spec.Source{Source: "a.tif", Dims: "y x", Timestamp: at}, store.Other, ""},
	} {
		c.source.Source = filepath.Join(dir, c.source.Source)
		kind, err := kindOf(t.Context(), &c.source, o)
		if kind != c.kind || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, %v", c.source, kind, err)
		}
	}
}

// TestOptionsOfOtherSources: what is opened and has no use for an option says which one it is, not what another kind of
// source would have.
func TestOptionsOfOtherSources(t *testing.T) {
	dir := folder.Of(t, "a.tif", "t.csv=image\na.tif\n")
	fields := []spec.Field{{Name: "image", Kind: spec.RasterField, DType: "native"}}
	for _, name := range []string{"", "a.tif", "t.csv"} {
		for want, source := range map[string]spec.Source{
			"": {}, "dims of rows is for arrays": {Dims: "y x"},
			"timestamp is for a TileDB array": {Timestamp: &spec.Timestamp{}},
		} {
			source.Source = filepath.Join(dir, name)
			table, err := Open(t.Context(), source, fields, resources.Options{}.WithDefaults())
			if (err == nil) != (want == "") || err != nil && (fault.KindOf(err) != fault.Unsupported ||
				!strings.Contains(err.Error(), want)) {
				t.Errorf("%q, %q: %v", name, want, err)
			}
			if err == nil {
				_ = table.Close()
			}
		}
	}
}

// TestStacksOfColumns: a stack has rasters of several columns, and a column of numbers is refused.
func TestStacksOfColumns(t *testing.T) {
	file := filepath.Join(folder.Of(t, "a.tif", "b.tif", "t.csv=one,two,n\na.tif,b.tif,1\nb.tif,a.tif,2\n"), "t.csv")
	for second, want := range map[string]string{"two": "", "n": "field stack.n"} {
		fields := []spec.Field{{Name: "stack", Kind: spec.RasterField, DType: "native",
			Columns: []string{"one", second}}}
		table, err := Open(t.Context(), spec.Source{Source: file}, fields, resources.Options{}.WithDefaults())
		if (err == nil) != (want == "") || err != nil && (fault.KindOf(err) != fault.Unsupported ||
			!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file)) {
			t.Errorf("one and %s: %v", second, err)
		}
		if err != nil {
			continue
		}
		a, err := table.Fields[0].Asset(t.Context(), 1)
		if err != nil || len(a.Parts) != 2 || a.Index.Height != 2 || a.Index.Bands != 2 {
			t.Errorf("one and %s: %+v, %v", second, a, err)
		}
		_ = table.Close()
	}
}

// TestBareError: an error without its file is otherwise the same.
func TestBareError(t *testing.T) {
	cause := fault.At(fault.Corrupt, "header", 7, "torn")
	for _, err := range []error{cause, fault.WithFile(cause, "a.tif")} {
		var bare *fault.Error
		if !errors.As(Bare(err), &bare) || bare.File != "" || bare.Error() != cause.Error() {
			t.Errorf("%v becomes %v", err, Bare(err))
		}
	}
	if err := errors.New("plain"); Bare(err) != err || Bare(nil) != nil {
		t.Error("another error is changed")
	}
}

// TestCellsOfBounds: rows are divided by the middle of their bounds in degrees. A row without a CRS is in no part; one
// whose CRS is not known is an error, unless it was dropped before.
func TestCellsOfBounds(t *testing.T) {
	const n = 12
	columns := map[string]listed{"epsg": {catalog.Int, 0, make([]any, n)}}
	for _, name := range spec.BoundsColumns {
		columns[name] = listed{catalog.Float, 0, make([]any, n)}
	}
	for row := range n {
		for i, name := range spec.BoundsColumns {
			columns[name].values[row] = float64(7*row) - 40 + 3*float64(i/2)
		}
		columns["epsg"].values[row] = int64(4326)
	}
	columns["epsg"].values[3], columns["epsg"].values[5] = nil, int64(999999)
	table := inMemory(n, 0, columns)
	split := &spec.Split{By: "cell", LonLat: true, Size: 2, Seed: 3, Columns: spec.BoundsColumns, CRS: "epsg",
		Shares: []spec.Share{{Name: "a", Parts: 1 << 31}, {Name: "b", Parts: 1 << 31}}}
	parts := shuffle.Split{Seed: 3, Shares: []shuffle.Share{{Name: "a", Parts: 1 << 31}, {Name: "b", Parts: 1 << 31}}}
	for number, use := range []string{"a", "b"} {
		var want []uint32
		for row := range n {
			middle := float64(7*row) - 40 + 1.5
			if row != 3 && row != 5 && parts.OfCell([4]float64{middle, middle, middle, middle}, 2) == number {
				want = append(want, uint32(row))
			}
		}
		subset := &spec.Subset{Split: split, Use: use, Bad: []string{"5"}}
		got, err := selectRows(t.Context(), table, subset, resources.Options{})
		if err != nil || !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("part %s: %v, want %v; %v", use, got, want, err)
		}
	}
	_, err := selectRows(t.Context(), table, &spec.Subset{Split: split, Use: "a"}, resources.Options{})
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "epsg of row 5") {
		t.Errorf("an unknown CRS: %v", err)
	}
	columns["epsg"] = listed{catalog.Text, 0, columns["epsg"].values}
	_, err = selectRows(t.Context(), table, &spec.Subset{Split: split, Use: "a"}, resources.Options{})
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "not EPSG codes") {
		t.Errorf("a CRS that is a string: %v", err)
	}
}

// TestOperandsOfDates: a string is compared with dates in the unit of the column; without rows nothing is wrong.
func TestOperandsOfDates(t *testing.T) {
	const day = 24 * time.Hour
	days := map[string]listed{"d": {catalog.Int, day, []any{int64(0), int64(1), int64(2)}}}
	for operand, want := range map[string][]uint32{`"1970-01-02"`: {1, 2}, `"1970-01-03"`: {2}, `1`: {1, 2},
		`"spring"`: nil} {
		where := []spec.Condition{{Column: "d", Op: ">=", Value: []byte(operand)}}
		got, err := selectRows(t.Context(), inMemory(3, 0, days), &spec.Subset{Where: where}, resources.Options{})
		if (err == nil) != (want != nil) || err == nil && !slices.Equal(got, want) {
			t.Errorf("from %s: %v, %v", operand, got, err)
		}
	}
	text := []spec.Condition{{Column: "d", Op: "<", Value: []byte(`"a"`)}}
	numbers := map[string]listed{"d": {catalog.Int, 0, []any{int64(0)}}}
	if _, err := selectRows(t.Context(), inMemory(1, 0, numbers), &spec.Subset{Where: text},
		resources.Options{}); err == nil {
		t.Error("a string is compared with numbers")
	}
	if _, err := selectRows(t.Context(), inMemory(0, 0, numbers), &spec.Subset{Where: text},
		resources.Options{}); err != nil {
		t.Errorf("without rows: %v", err)
	}
}

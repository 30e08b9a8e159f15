package tiledb

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
)

// model is what an array should hold: cells by their coordinates.
type model struct {
	s      *Schema
	cells  map[string][]string // of every attribute
	sparse bool                // the last write was of single cells
}

func cellKey(at []Coord) string { return fmt.Sprint(at) }

func drawPipeline(t *rapid.T, label string) filter.Pipeline {
	ids := []filter.ID{filter.Zstd, filter.ByteShuffle, filter.None}
	p := filter.Pipeline{MaxChunk: rapid.SampledFrom([]uint32{40, 500, maxChunk}).Draw(t, label+" chunk")}
	for range rapid.IntRange(0, 3).Draw(t, label+" filters") {
		p.Filters = append(p.Filters, filter.Filter{ID: rapid.SampledFrom(ids).Draw(t, label), Level: 1})
	}
	return p
}

func drawSchema(t *rapid.T) *Schema {
	s := &Schema{Dense: rapid.Bool().Draw(t, "dense"), TileOrder: Order(rapid.IntRange(0, 1).Draw(t, "tile order")),
		CellOrder: Order(rapid.IntRange(0, 1).Draw(t, "cell order")),
		Capacity:  uint64(rapid.IntRange(1, 20).Draw(t, "capacity")),
		DimType: rapid.SampledFrom([]Datatype{Int8, Uint8, Int16, Uint16, Int32, Uint32, Int64, Uint64,
			DatetimeDay}).Draw(t, "dims")}
	s.Coords, s.Offsets = drawPipeline(t, "coords"), drawPipeline(t, "offsets")
	for d := range rapid.IntRange(1, 3).Draw(t, "n dims") {
		lo := int64(rapid.IntRange(-100, 10).Draw(t, "lo"))
		if s.DimType.unsigned() {
			lo = max(lo, 0)
		}
		n := int64(rapid.IntRange(1, 12).Draw(t, "n"))
		s.Dims = append(s.Dims, Dim{Name: fmt.Sprint("d", d), Domain: Interval{s.DimType.CoordOf(lo),
			s.DimType.CoordOf(lo + n - 1)},
			Extent: uint64(rapid.Int64Range(1, n).Draw(t, "extent"))})
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "n attrs") {
		a := Attr{Name: fmt.Sprint("a ", i), Type: Datatype(rapid.IntRange(0, int(numOfFormat3)-1).Draw(t, "type")),
			Values: uint32(rapid.SampledFrom([]uint32{1, 1, 3, VarLen}).Draw(t, "values"))}
		if a.Type == Any {
			a.Values = VarLen
		}
		a.Pipeline = drawPipeline(t, "attr")
		s.Attrs = append(s.Attrs, a)
	}
	return s
}

// drawCell draws a cell of an attribute.
func drawCell(t *rapid.T, a *Attr) string {
	n := int(a.Values)
	if a.Var() {
		n = rapid.IntRange(0, 3).Draw(t, "length")
	}
	return string(rapid.SliceOfN(rapid.Byte(), n*a.Type.Size(), n*a.Type.Size()).Draw(t, "cell"))
}

// join makes the values of attribute i of some cells.
func joinCells(a *Attr, cells []string) (v Values) {
	for _, c := range cells {
		if a.Var() {
			v.Offsets = append(v.Offsets, uint64(len(v.Data)))
		}
		v.Data = append(v.Data, c...)
	}
	return v
}

// walkBox calls f for all coordinates of a box, in row-major order.
func walkBox(b Box, f func(at []Coord)) {
	at := make([]Coord, len(b))
	for d := range at {
		at[d] = b[d].Lo
	}
	for {
		f(at)
		d := len(at) - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d] <= b[d].Hi {
				break
			}
			at[d] = b[d].Lo
		}
		if d < 0 {
			return
		}
	}
}

func drawBox(t *rapid.T, s *Schema) Box {
	b := make(Box, len(s.Dims))
	for d, dim := range s.Dims {
		n := uint64(dim.Domain.Hi - dim.Domain.Lo)
		lo := rapid.Uint64Range(0, n).Draw(t, "lo")
		hi := rapid.Uint64Range(lo, n).Draw(t, "hi")
		b[d] = Interval{dim.Domain.Lo + Coord(lo), dim.Domain.Lo + Coord(hi)}
	}
	return b
}

// write writes some cells, drawn, to the array and to the model.
func (m *model) write(t *rapid.T, a *Array) {
	s, ctx := m.s, context.Background()
	// After a sparse fragment no dense one: TestSparseUnderDense has those.
	dense := s.Dense && !m.sparse && rapid.IntRange(0, 3).Draw(t, "dense write") > 0
	m.sparse = !dense
	cells := make([][]string, len(s.Attrs))
	var raw []byte
	add := func(at []Coord) {
		row := make([]string, len(s.Attrs))
		for i := range s.Attrs {
			row[i] = drawCell(t, &s.Attrs[i])
			cells[i] = append(cells[i], row[i])
		}
		m.cells[cellKey(at)] = row
		for _, c := range at {
			raw = s.DimType.store(raw, c)
		}
	}
	box := drawBox(t, s)
	if dense {
		walkBox(box, add)
	} else {
		seen := map[string][]Coord{}
		for range rapid.IntRange(1, 30).Draw(t, "cells") {
			at := make([]Coord, len(box))
			for d, i := range drawBox(t, s) {
				at[d] = i.Lo
			}
			seen[cellKey(at)] = at
		}
		for _, k := range slices.Sorted(maps.Keys(seen)) {
			add(seen[k])
		}
	}
	values := make([]Values, len(s.Attrs))
	for i := range values {
		values[i] = joinCells(&s.Attrs[i], cells[i])
	}
	var err error
	if dense {
		err = a.writeDense(ctx, box, values, timeAtCompletion, timeAtCompletion)
	} else {
		err = a.WriteSparse(ctx, raw, values)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// check reads a box and compares it with the model.
func (m *model) check(t *rapid.T, a *Array, box Box) {
	s, ctx := m.s, context.Background()
	want := make([][]string, len(s.Attrs))
	var coords []byte
	n := 0
	walkBox(box, func(at []Coord) {
		row, ok := m.cells[cellKey(at)]
		if !ok && !s.Dense {
			return
		}
		n++
		for _, c := range at {
			coords = s.DimType.store(coords, c)
		}
		for i := range s.Attrs {
			cell := strings.Repeat(string(s.Attrs[i].Type.fill()), max(1, int(int32(s.Attrs[i].Values))))
			if ok {
				cell = row[i]
			}
			want[i] = append(want[i], cell)
		}
	})
	r := a.NewReader()
	var attrs []int
	for i := range s.Attrs {
		attrs = append(attrs, i)
	}
	var got []Values
	if s.Dense {
		for i := range s.Attrs {
			v, err := r.Dense(ctx, i, box)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, v)
		}
	} else {
		c, err := r.Sparse(ctx, attrs, box)
		if err != nil {
			t.Fatal(err)
		}
		if c.N != n || string(c.Coords) != string(coords) {
			t.Fatalf("%d cells %x, want %d %x", c.N, c.Coords, n, coords)
		}
		got = c.Values
	}
	for i := range s.Attrs {
		w := joinCells(&s.Attrs[i], want[i])
		if string(got[i].Data) != string(w.Data) || !slices.Equal(got[i].Offsets, w.Offsets) {
			t.Fatalf("attribute %d of %v: %x %v, want %x %v", i, s.Attrs[i], got[i].Data,
				got[i].Offsets, w.Data, w.Offsets)
		}
	}
}

// TestWrittenIsRead: arrays of any schema, with fragments over each other, give what was written last, and are without
// fault.
func TestWrittenIsRead(t *testing.T) {
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		path := filepath.Join(t.TempDir(), fmt.Sprint("array", n))
		s := drawSchema(rt)
		m := &model{s: s, cells: map[string][]string{}}
		if err := Create(path, s); err != nil {
			rt.Fatal(err)
		}
		var files Files
		defer files.Close()
		open := func() *Array {
			a, err := Open(context.Background(), &files, path, Options{})
			if err != nil {
				rt.Fatal(err)
			}
			return a
		}
		for range rapid.IntRange(0, 4).Draw(rt, "writes") {
			m.write(rt, open())
		}
		a := open()
		for range 4 {
			m.check(rt, a, drawBox(rt, s))
		}
		m.check(rt, a, s.Domain())
		if _, err := a.Verify(context.Background()); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestSchemasThatAreRefused: schemas that make no sense are refused.
func TestSchemasThatAreRefused(t *testing.T) {
	good := func() *Schema {
		return &Schema{Dense: true, Capacity: 10, DimType: Int32,
			Dims:  []Dim{{Name: "x", Domain: Interval{Int32.CoordOf(1), Int32.CoordOf(4)}, Extent: 2}},
			Attrs: []Attr{{Name: "v", Type: Int32, Values: 1}}}
	}
	for name, spoil := range map[string]func(*Schema){
		"extent 0":      func(s *Schema) { s.Dims[0].Extent = 0 },
		"extent 5 of 4": func(s *Schema) { s.Dims[0].Extent = 5 },
		"no attribute":  func(s *Schema) { s.Attrs = nil },
		"no dimension":  func(s *Schema) { s.Dims = nil },
		"swapped":       func(s *Schema) { s.Dims[0].Domain = Interval{Int32.CoordOf(4), Int32.CoordOf(1)} },
		"path":          func(s *Schema) { s.Attrs[0].Name = "../v" },
		"twice":         func(s *Schema) { s.Attrs = append(s.Attrs, s.Attrs[0]) },
		"coords":        func(s *Schema) { s.Attrs[0].Name = coordsName },
		"real":          func(s *Schema) { s.DimType = Float32 },
		"type":          func(s *Schema) { s.Attrs[0].Type = 99 },
	} {
		s := good()
		spoil(s)
		if _, err := parseSchema(s.append(nil), DefaultMaxTile); fault.KindOf(err) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCoordOrder: coordinates are ordered as their values are, and keep them through text and bytes.
func TestCoordOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom([]Datatype{Int8, Uint8, Int16, Uint16, Int32, Uint32, Int64, Uint64, Float32,
			Float64, DatetimeNanosecond}).Draw(t, "type")
		draw := func(name string) (Coord, float64, []byte) {
			b := rapid.SliceOfN(rapid.Byte(), typ.Size(), typ.Size()).Draw(t, name)
			c := typ.Coord(b)
			if nan(typ, c) {
				t.Skip("NaN")
			}
			v := float64(int64(uint64(c) ^ signBit))
			switch {
			case typ.Real():
				v = c.float()
			case typ.unsigned():
				v = float64(c)
			}
			return c, v, b
		}
		a, va, raw := draw("a")
		b, vb, _ := draw("b")
		if va < vb && a >= b || va > vb && a <= b {
			t.Fatalf("%v: %v and %v are ordered as %d and %d", typ, va, vb, a, b)
		}
		if got, err := typ.ParseCoord(typ.FormatCoord(a)); err != nil || got != a {
			t.Fatalf("%v: %s is read as %d, %v, want %d", typ, typ.FormatCoord(a), got, err, a)
		}
		all := make([]Coord, 3)
		typ.loadAll(all, slices.Concat(raw, raw, raw))
		if all[0] != a || all[1] != a || all[2] != a {
			t.Fatalf("%v: %d at once, %d one by one", typ, all, a)
		}
		if back := typ.store(nil, a); string(back) != string(raw) && va != 0 {
			t.Fatalf("%v: %x is written as %x", typ, raw, back)
		}
	})
}

// testArrays are the arrays in the module's own testdata, in memory.
func testArrays(f *testing.F) (list []manifestLine) {
	return lines(f, filepath.Join(corpus.Testdata(f), "tiledb"))
}

// readAll reads the whole array in boxes no larger than those that were written.
func readAll(t *testing.T, a *Array) {
	ctx, r := context.Background(), a.NewReader()
	box := a.NonEmpty()
	if box == nil {
		return
	}
	if !a.Schema.Domain().covers(box) { // to the bounds of tiles
		box = box.cut(a.Schema.Domain())
	}
	check := func(err error) {
		if err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("error without a kind: %v", err)
		}
	}
	if a.Schema.Dense {
		for i := range a.Schema.Attrs {
			_, err := r.Dense(ctx, i, box)
			check(err)
		}
	} else {
		_, err := r.Sparse(ctx, []int{0, len(a.Schema.Attrs) - 1}, box)
		check(err)
	}
	_, err := a.Verify(ctx)
	check(err)
}

// fuzzLimits keep what a mutated array may ask for small.
var fuzzLimits = Options{MaxTile: 1 << 16, MaxResult: 1 << 16, Key: []byte("0123456789abcdeF0123456789abcdeF")}

// FuzzSchema: any content of a schema gives a schema that is written again as it was, or an error with a kind.
func FuzzSchema(f *testing.F) {
	for _, l := range testArrays(f) {
		a := l.open(f)
		f.Add(a.Schema.append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseSchema(b, 1<<20)
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("error without a kind: %v", err)
			}
			return
		}
		if s.version() != Version { // append writes that format alone, for fingerprints
			return
		}
		again, err := parseSchema(s.append(nil), 1<<20)
		if err != nil || fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", s) {
			t.Fatalf("%v: %+v, want %+v", err, again, s)
		}
	})
}

// FuzzSchemaFile opens any schema file together with real fragments.
func FuzzSchemaFile(f *testing.F) {
	all := testArrays(f)
	var stores []*memStore
	for i := range all {
		stores = append(stores, all[i].load(f))
		f.Add(uint8(i), stores[i].files["array/"+schemaName])
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		m := stores[int(which)%len(stores)]
		files := maps.Clone(m.files)
		files["array/"+schemaName] = b
		fuzzArray(t, files)
	})
}

// FuzzFragment opens any metadata of a fragment together with real tiles.
func FuzzFragment(f *testing.F) {
	all := testArrays(f)
	var stores []*memStore
	for i := range all {
		stores = append(stores, all[i].load(f))
		for name, b := range stores[i].files {
			if strings.HasSuffix(name, metadataName) {
				f.Add(uint8(i), b)
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		files := maps.Clone(stores[int(which)%len(stores)].files)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if strings.HasSuffix(name, metadataName) {
				files[name] = b
				break
			}
		}
		fuzzArray(t, files)
	})
}

// FuzzFooter: any numbers in a footer, before real lists and tiles: the generic tiles in the metadata are
// compressed, and bytes changed there are mostly refused early.
func FuzzFooter(f *testing.F) {
	all := testArrays(f)
	var stores []*memStore
	var names []string
	for i := range all {
		m := all[i].load(f)
		for _, name := range slices.Sorted(maps.Keys(m.files)) {
			if strings.HasSuffix(name, metadataName) {
				stores, names = append(stores, m), append(names, name)
			}
		}
	}
	for i := range stores {
		f.Add(uint8(i), uint16(8), uint64(1)<<40)
	}
	f.Fuzz(func(t *testing.T, which uint8, at uint16, v uint64) {
		i := int(which) % len(stores)
		files := maps.Clone(stores[i].files)
		b := slices.Clone(files[names[i]])
		if n := len(b) - 8 - int(at); n >= 0 {
			binary.LittleEndian.PutUint64(b[n:], v)
		}
		files[names[i]] = b
		fuzzArray(t, files)
	})
}

func fuzzArray(t *testing.T, files map[string][]byte) {
	m := &memStore{files: files, read: map[string]int64{}}
	a, err := Open(context.Background(), m, "array", fuzzLimits)
	if err != nil {
		if fault.KindOf(err) == 0 {
			t.Fatalf("error without a kind: %v", err)
		}
		return
	}
	readAll(t, a)
}

// FuzzRTree: any bytes give a tree that finds what it should, or an error with a kind.
func FuzzRTree(f *testing.F) {
	for _, l := range testArrays(f) {
		if a := l.open(f); !a.Schema.Dense && len(a.Schema.Dims) == 2 && a.Schema.DimType == Int32 {
			for _, fr := range a.Fragments {
				tree, err := a.rtree(context.Background(), fr)
				if err != nil {
					f.Fatal(err)
				}
				f.Add(appendTree(nil, a.Schema, tree.levels[len(tree.levels)-1]), fr.Tiles, int32(10), int32(60))
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, tiles int64, lo, hi int32) {
		tree, err := parseRTree(b, formatTraits{}, []Datatype{Int32, Int32}, tiles)
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("error without a kind: %v", err)
			}
			return
		}
		i := Interval{Int32.CoordOf(int64(min(lo, hi))), Int32.CoordOf(int64(max(lo, hi)))}
		var got, want []int64
		tree.tiles(Box{i, i}, func(n int64) { got = append(got, n) })
		if n := len(tree.levels); n > 0 {
			for k, box := range tree.levels[n-1] {
				if box.intersects(Box{i, i}) {
					want = append(want, int64(k))
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("tiles %v, want %v", got, want)
		}
	})
}

// FuzzAttribute: any bytes in one of a fragment's files of tiles.
func FuzzAttribute(f *testing.F) {
	all := testArrays(f)
	var stores []*memStore
	var names []string
	for i := range all {
		m := all[i].load(f)
		for _, name := range slices.Sorted(maps.Keys(m.files)) {
			if base := filepath.Base(name); strings.Count(name, "/") == 2 && base != metadataName {
				f.Add(uint8(len(names)), m.files[name])
				stores, names = append(stores, m), append(names, name)
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		i := int(which) % len(names)
		files := maps.Clone(stores[i].files)
		files[names[i]] = b
		fuzzArray(t, files)
	})
}

// TestNamesOfAttributes reads attributes whose names look like those of other files.
func TestNamesOfAttributes(t *testing.T) {
	for _, attrs := range []map[string]uint32{
		{"a": 1, "a_var": 1}, {"a": 1, "a_var": VarLen}, {"__attr": 1, "_a": 1, "..": 1},
	} {
		at := Int32.CoordOf
		s := &Schema{Dense: true, Capacity: 4, DimType: Int32,
			Dims: []Dim{{Name: "x", Domain: Interval{at(0), at(1)}, Extent: 2}}}
		var values []Values
		for _, name := range slices.Sorted(maps.Keys(attrs)) {
			s.Attrs = append(s.Attrs, Attr{Name: name, Type: Uint8, Values: attrs[name]})
			v := Values{Data: []byte{byte(len(s.Attrs)), 9}}
			if attrs[name] == VarLen {
				v.Offsets = []uint64{0, 1}
			}
			values = append(values, v)
		}
		path := filepath.Join(t.TempDir(), "a")
		if err := Create(path, s); err != nil {
			t.Fatalf("%v: %v", attrs, err)
		}
		a, err := Open(t.Context(), localFiles(t), path, Options{})
		if err == nil {
			err = a.WriteDense(t.Context(), s.Domain(), values)
		}
		if err == nil {
			a, err = Open(t.Context(), localFiles(t), path, Options{})
		}
		if err != nil {
			t.Fatalf("%v: %v", attrs, err)
		}
		if got := everything(t, a); !slices.EqualFunc(got, values, sameValues) {
			t.Errorf("%v: %v, want %v", attrs, got, values)
		}
	}
}

// FuzzBox parses any sub-array of real arrays: it is refused, or its intervals lie in the domain, and written back they
// are read as the same box.
func FuzzBox(f *testing.F) {
	var schemas []*Schema
	for i, l := range testArrays(f) {
		s := l.open(f).Schema
		schemas = append(schemas, s)
		f.Add(uint8(i), formatBox(s, s.Domain()))
		for _, text := range []string{"", "..", "0..0", "1..0", "0..0,0..0", "-1..9223372036854775808", "0x1..2",
			"NaN..1", "1..2..3", " 1 .. 2 ", "'a'..'b'", "1e400..1"} {
			f.Add(uint8(i), text)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		s := schemas[int(which)%len(schemas)]
		b, err := s.ParseBox(text)
		if err != nil {
			return
		}
		for d, i := range b {
			if dom := s.Dims[d].Domain; i.Lo > i.Hi || i.Lo < dom.Lo || i.Hi > dom.Hi {
				t.Fatalf("%q is %v in dimension %d of %v", text, i, d, dom)
			}
		}
		if again, err := s.ParseBox(formatBox(s, b)); err != nil || !slices.Equal(again, b) {
			t.Fatalf("%q is %v, written as %q: %v, %v", text, b, formatBox(s, b), again, err)
		}
	})
}

func formatBox(s *Schema, b Box) string {
	var parts []string
	for d, i := range b {
		parts = append(parts, s.Type(d).FormatCoord(i.Lo)+".."+s.Type(d).FormatCoord(i.Hi))
	}
	return strings.Join(parts, ",")
}

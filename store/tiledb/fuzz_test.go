package tiledb

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
)

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

// append appends the content of a schema without filters, as a file of format 3 has it.
func (s *Schema) append(b []byte) []byte {
	kind := byte(1)
	if s.Dense {
		kind = 0
	}
	pipeline := make([]byte, 8)
	b = binary.LittleEndian.AppendUint32(b, Version)
	b = append(b, kind, byte(s.TileOrder), byte(s.CellOrder))
	b = binary.LittleEndian.AppendUint64(b, s.Capacity)
	b = append(append(append(b, pipeline...), pipeline...), byte(s.DimType))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.Dims)))
	for _, d := range s.Dims {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(d.Name))), d.Name...)
		b = append(s.DimType.store(s.DimType.store(b, d.Domain.Lo), d.Domain.Hi), 0)
		b = s.DimType.store(b, s.DimType.CoordOf(0)+Coord(d.Extent))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.Attrs)))
	for _, attr := range s.Attrs {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(attr.Name))), attr.Name...)
		b = binary.LittleEndian.AppendUint32(append(b, byte(attr.Type)), attr.Values)
		b = append(b, pipeline...)
	}
	return b
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

// FuzzSchema: any content of a schema gives a schema, or an error with a kind.
func FuzzSchema(f *testing.F) {
	for _, l := range testArrays(f) {
		a := l.open(f)
		f.Add(a.Schema.content)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := parseSchema(b, 1<<20); err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("error without a kind: %v", err)
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
				r, err := a.store.Open(context.Background(), fr.uri+"/"+metadataName)
				if err != nil {
					f.Fatal(err)
				}
				tree, err := openGeneric(context.Background(), r, a.key, rtreePart, fr.foot.rtree, fr.foot.start, 1<<20)
				if err = errors.Join(err, r.Close()); err != nil {
					f.Fatal(err)
				}
				f.Add(tree, fr.Tiles, int32(10), int32(60))
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

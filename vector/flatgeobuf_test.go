package vector

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// testFile returns a file of testdata.
func testFile(t testing.TB, name string) memory {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// openFile opens a file of testdata.
func openFile(t testing.TB, name, column string) *Layer {
	t.Helper()
	l, err := Open(t.Context(), testFile(t, name), name, Options{Column: column})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// everywhere finds all shapes of a layer.
func everywhere(l *Layer) []uint32 {
	inf := math.Inf(1)
	return l.Search(-inf, -inf, inf, inf, 0)
}

// sameNumber reports whether a shape has the same value in two columns, of whole numbers or not.
func sameNumber(a, b *Values, row int) bool {
	number := func(v *Values) float64 {
		if v.Ints != nil {
			return float64(v.Ints[row])
		}
		return v.Floats[row]
	}
	return a.Null(row) == b.Null(row) && (a.Null(row) || number(a) == number(b))
}

// TestFlatGeobuf promises that files that GDAL wrote, with an index and without one, have the shapes, the values, the
// boxes and the CRS of the same shapes in GeoParquet.
func TestFlatGeobuf(t *testing.T) {
	for flat, parquet := range map[string]string{"utm_plain": "utm", "utm_index": "utm_index",
		"lonlat_plain": "lonlat", "lonlat_index": "lonlat_index", "types_plain": "types"} {
		columns := []string{"", "value", "height", "class"}
		if parquet == "types" {
			columns = []string{"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float",
				"double", "bool", "string", "last"}
		}
		for _, column := range columns {
			got, want := openFile(t, flat+".fgb", column), openFile(t, parquet+".parquet", column)
			if got.Len() != want.Len() || got.CRS != want.CRS && got.CRS.Code() != want.CRS.Code() {
				t.Fatalf("%s: %d shapes in %s, want %d in %s", flat, got.Len(), got.CRS, want.Len(), want.CRS)
			}
			if a, b := everywhere(got), everywhere(want); !slices.Equal(a, b) {
				t.Errorf("%s: %d boxes, want %d", flat, len(a), len(b))
			}
			for row := range want.Len() {
				a, err := got.Shape(t.Context(), uint32(row))
				b, werr := want.Shape(t.Context(), uint32(row))
				if err != nil || werr != nil || !reflect.DeepEqual(a, b) {
					t.Fatalf("%s: shape %d is %v, %v, want %v, %v", flat, row, a, err, b, werr)
				}
				if b != nil {
					at := b.Bound()
					x, y := at.Max[0], at.Max[1]
					if found := got.Search(x, y, x, y, 0); !slices.Contains(found, uint32(row)) {
						t.Errorf("%s: shape %d is not found at the corner of its box", flat, row)
					}
					if found := got.Search(x+1e5, y, x+1e5, y, 0); len(found) > 0 {
						t.Errorf("%s: %d shapes are found far away", flat, len(found))
					}
				}
				switch v, w := got.Values, want.Values; {
				case w == nil:
				case w.Codes == nil && !sameNumber(v, w, row), w.Codes != nil && v.Null(row) != w.Null(row),
					w.Codes != nil && !v.Null(row) && v.Names[v.Codes[row]] != w.Names[w.Codes[row]]:
					t.Errorf("%s: shape %d has another value of %s", flat, row, column)
				}
			}
			if err := got.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestFlatColumns promises what is refused as a column of values.
func TestFlatColumns(t *testing.T) {
	for column, kind := range map[string]fault.Kind{"none": fault.NotFound, "bytes": fault.Unsupported} {
		_, err := Open(t.Context(), testFile(t, "types_plain.fgb"), "f", Options{Column: column})
		if fault.KindOf(err) != kind {
			t.Errorf("%s: %v", column, err)
		}
	}
}

// TestDamagedFlatGeobuf promises that files that are cut, or that have one other byte in what leads to their shapes,
// are refused with a kind, or read without a panic.
func TestDamagedFlatGeobuf(t *testing.T) {
	race.SkipCovered(t)
	for _, name := range []string{"types_plain.fgb", "utm_index.fgb"} {
		whole := testFile(t, name)
		for n := 0; n < len(whole); n += 1 + len(whole)/100 {
			_, err := Open(t.Context(), whole[:n], "f", Options{Column: "last"})
			if fault.KindOf(err) == 0 {
				t.Errorf("%s of %d bytes: %v", name, n, err)
			}
		}
		for at := 0; at < min(len(whole), 4096); at += 1 + len(whole)/5000 {
			b := bytes.Clone(whole)
			b[at] ^= 0x81
			openAll(t, b)
		}
	}
}

// openAll opens a file of any bytes, and reads all of its shapes.
func openAll(t *testing.T, b []byte) {
	t.Helper()
	for _, column := range []string{"", "value"} {
		l, err := Open(t.Context(), memory(b), "f", Options{Column: column, MaxShapes: 1 << 12})
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("an error without a kind: %v", err)
			}
			continue
		}
		for row := range l.Len() {
			if _, err := l.Shape(t.Context(), uint32(row)); err != nil && fault.KindOf(err) == 0 {
				t.Fatalf("an error without a kind: %v", err)
			}
		}
	}
}

// TestFlatPartsAreNotShared promises that a collection that has one part a thousand times is refused: nested, a file of
// some kilobytes would have more shapes than memory holds.
func TestFlatPartsAreNotShared(t *testing.T) {
	const n = 1000
	// A root with a geometry of type 7 with n parts, which are all the same geometry of type 2.
	vtable := func(size uint16, fields ...uint16) (b []byte) {
		b = binary.LittleEndian.AppendUint16(b, uint16(4+2*len(fields)))
		b = binary.LittleEndian.AppendUint16(b, size)
		for _, f := range fields {
			b = binary.LittleEndian.AppendUint16(b, f)
		}
		return b
	}
	word := binary.LittleEndian.AppendUint32
	b := word(nil, 12)
	b = append(b, append(vtable(8, 4), 0, 0)...)         // at 4, 8 bytes with padding
	b = word(word(b, 8), 4+20)                           // at 12: the root, and its geometry at 40
	b = append(b, vtable(12, 0, 0, 0, 0, 0, 0, 4, 8)...) // at 20
	b = word(word(word(b, 20), flatCollection), 4)       // at 40: the geometry, and its parts at 52
	parts := len(b) + 4                                  // at 56
	b = word(b, n)                                       // at 52
	vector := parts + 4*n                                // of the part
	part := vector + 20                                  // after its vtable
	for i := range n {                                   // each leads to the part
		b = word(b, uint32(part-parts-4*i))
	}
	b = append(b, vtable(8, 0, 0, 0, 0, 0, 0, 4, 0)...)
	b = word(word(b, uint32(part-vector)), flatLineString)
	if shape, _, err := flatFeature(b, 0); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("%v, %v", shape, err)
	}
	binary.LittleEndian.PutUint32(b[52:], 1)
	if shape, _, err := flatFeature(b, 0); err != nil ||
		!reflect.DeepEqual(shape, orb.Collection{orb.LineString{}}) {
		t.Errorf("the same with one part: %v, %v", shape, err)
	}
}

// FuzzFlatGeobuf: files of any bytes are refused with a kind, or all their shapes are read or refused with one.
func FuzzFlatGeobuf(f *testing.F) {
	for _, name := range []string{"types_plain.fgb", "utm_index.fgb"} {
		b := testFile(f, name)
		f.Add([]byte(b))
		f.Add([]byte(b[:8]))
	}
	f.Fuzz(func(t *testing.T, b []byte) { openAll(t, bytes.Clone(b)) })
}

package containers

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestGround: a transform counts if it has six numbers, and the shape is the raster's. GDAL's order is x, width of a
// pixel, 0, y, 0, height; STAC's is width of a pixel, 0, x, 0, height, y.
func TestGround(t *testing.T) {
	floats, ints := tables.Type{Kind: tables.Float64}, tables.Type{Kind: tables.Int64, Bits: 64}
	gdal, stac := []float64{5e5, 10, 0, 4.6e6, 0, -10}, []float64{10, 0, 5e5, 0, -10, 4.6e6}
	list := func(v []float64) *tables.Vector {
		return tables.NewList(tables.NewFloats(floats, v, nil), []uint32{0, uint32(len(v))}, []bool{v == nil})
	}
	shape := func(v ...int64) *tables.Vector {
		return tables.NewList(tables.NewInts(ints, v, nil), []uint32{0, uint32(len(v))}, []bool{v == nil})
	}
	old, stacNames := []string{"stac:crs", "stac:geotransform"}, []string{"stac:proj_transform", "stac:proj_shape"}
	spatial := []string{"spatial:proj_code", "spatial:proj_transform", "spatial:proj_shape"}
	type vectors []*tables.Vector
	code := tables.NewStrings([]string{"EPSG:32630"}, nil)
	for name, c := range map[string]struct {
		names  []string
		values vectors
		placed bool
		epsg   int
	}{
		"TACO 2":         {old, vectors{code, list(gdal)}, true, 32630},
		"without a CRS":  {[]string{"stac:geotransform"}, vectors{list(gdal)}, true, 0},
		"a null CRS":     {old, vectors{tables.NewNulls(code.Type(), 1), list(gdal)}, true, 0},
		"a number":       {old, vectors{shape(32630), list(gdal)}, true, 0},
		"null":           {[]string{"stac:geotransform"}, vectors{list(nil)}, false, 0},
		"five numbers":   {[]string{"stac:geotransform"}, vectors{list(gdal[:5])}, false, 0},
		"integers":       {[]string{"stac:geotransform"}, vectors{shape(1, 2, 3, 4, 5, 6)}, false, 0},
		"no list":        {[]string{"stac:geotransform"}, vectors{code}, false, 0},
		"nothing":        {[]string{"stac:crs"}, vectors{code}, false, 0},
		"TACO 3":         {spatial, vectors{code, list(stac), shape(3, 5)}, true, 32630},
		"STAC":           {stacNames, vectors{list(stac), shape(3, 5)}, true, 0},
		"shape first":    {[]string{stacNames[1], stacNames[0]}, vectors{shape(3, 5), list(stac)}, true, 0},
		"another height": {stacNames, vectors{list(stac), shape(4, 5)}, false, 0},
		"another width":  {stacNames, vectors{list(stac), shape(3, 4)}, false, 0},
		"three sides":    {stacNames, vectors{list(stac), shape(3, 5, 1)}, false, 0},
		"a null shape":   {stacNames, vectors{list(stac), shape()}, false, 0},
		"no shape":       {[]string{"stac:proj_transform"}, vectors{list(stac)}, false, 0},
		"sides of text":  {stacNames, vectors{list(stac), code}, false, 0},
		"real sides":     {stacNames, vectors{list(stac), list([]float64{3, 5})}, false, 0},
	} {
		found, err := groundOf(t.Context(), tables.FromVectors(c.names, c.values))
		if err != nil {
			t.Error(name, err)
			continue
		}
		place := found.of(0, &chunk.Index{Height: 3, Width: 5})
		if (place != nil) != c.placed {
			t.Errorf("%s: %+v", name, place)
		}
		if place != nil && (place.EPSG != c.epsg || place.Transform(3, 5) != [6]float64(gdal)) {
			t.Errorf("%s: %+v", name, place)
		}
	}
}

// TestRecords: the fingerprint takes a value as its length and its bytes, little-endian, and null as a length that no
// value has.
func TestRecords(t *testing.T) {
	number := func(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }
	var want []byte
	h := digest.New()
	add := func(k catalog.Kind, v catalog.Value, record []byte) {
		v.Hash(h, k)
		want = append(want, record...)
	}
	add(catalog.Int, catalog.Value{Int: -3}, number(number(nil, 8), math.MaxUint64-2))
	add(catalog.Float, catalog.Value{Float: 0.5}, number(number(nil, 8), math.Float64bits(0.5)))
	add(catalog.Text, catalog.Value{Text: []byte("abc")}, append(number(nil, 3), "abc"...))
	add(catalog.Float, catalog.Value{Null: true}, number(nil, math.MaxUint64))
	add(catalog.Int|column.List, catalog.Value{List: []catalog.Value{{Int: 7}, {Null: true}}},
		number(number(number(number(nil, 2), 8), 7), math.MaxUint64))
	if got, sum := h.Sum(), xxh3.Hash128(want).Bytes(); got != sum {
		t.Errorf("%x, want %x", got, sum)
	}
}

// TestNumbered: names of tables end in a number as it is written.
func TestNumbered(t *testing.T) {
	for name, want := range map[string]int{"below0": 0, "Below12": 12, "below": -1, "below01": -1, "below-1": -1,
		"below+1": -1, "below1x": -1, "entries1": -1, "1": -1} {
		if level, ok := numbered(name, "below"); ok != (want >= 0) || ok && level != want {
			t.Errorf("%s: %d, %v", name, level, ok)
		}
	}
}

// TestSelectRefuses: an invalid subset is an error, not all samples.
func TestSelectRefuses(t *testing.T) {
	set := opened(t, options(t), []string{corpus.Testdata(t) + "/coast/coast.tacozip"})
	if all, err := set.Samples(t.Context(), spec.Subset{}, options(t)); err != nil || len(all.Rows) == 0 {
		t.Errorf("%+v, %v", all, err)
	}
	for _, s := range []spec.Subset{{Where: []spec.Condition{{Op: "=="}}}, {Split: &spec.Split{By: "none"}}} {
		if all, err := set.Samples(t.Context(), s, options(t)); err == nil || fault.KindOf(err) == fault.Corrupt {
			t.Errorf("%+v: %+v, %v", s, all, err)
		}
	}
}

package containers

import (
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/tables"
)

// TestShapesOfPlaces: the transform of TACO 3, in the order of STAC, counts for rasters of the shape beside it alone;
// one of TACO 2 for all.
func TestShapesOfPlaces(t *testing.T) {
	floats := func(values ...float64) *tables.Vector {
		return tables.NewFloats(tables.Type{Kind: tables.Float64, Bits: 64}, values, nil)
	}
	list := func(values *tables.Vector, null bool) *tables.Vector {
		return tables.NewList(values, []uint32{0, uint32(values.Len())}, []bool{null})
	}
	sides := func(values ...int64) *tables.Vector {
		return tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, values, nil)
	}
	gdal, stac := floats(500, 10, 0, 4600, 0, -10), floats(10, 0, 500, 0, -10, 4600)
	for name, c := range map[string]struct {
		transform, shape *tables.Vector
		there            bool
	}{
		"TACO 2": {list(gdal, false), nil, true}, "null": {list(gdal, true), nil, false},
		"five numbers":  {list(floats(500, 10, 0, 4600, 0), false), nil, false},
		"TACO 3":        {list(stac, false), list(sides(8, 4), false), true},
		"no shape":      {list(stac, false), list(sides(8, 4), true), false},
		"turned":        {list(stac, false), list(sides(4, 8), false), false},
		"other width":   {list(stac, false), list(sides(8, 5), false), false},
		"other height":  {list(stac, false), list(sides(9, 4), false), false},
		"one side":      {list(stac, false), list(sides(8), false), false},
		"three sides":   {list(stac, false), list(sides(8, 4, 1), false), false},
		"float sides":   {list(stac, false), list(floats(8, 4), false), false},
		"int transform": {list(sides(10, 0, 500, 0, -10, 4600), false), list(sides(8, 4), false), false},
	} {
		g := &ground{transform: c.transform, shape: c.shape}
		place := g.of(0, &chunk.Index{Height: 8, Width: 4})
		if (place != nil) != c.there || place != nil && place.Transform(8, 4) != [6]float64{500, 10, 0, 4600, 0, -10} {
			t.Errorf("%s: %+v", name, place)
		}
	}
	var none *ground
	if place := none.of(0, &chunk.Index{}); place != nil {
		t.Errorf("without columns: %+v", place)
	}
}

package containers

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestPlacesOfSamplesAbove: rasters of TACO 3 without columns of places have those of their samples, if these say the
// shape that they are of.
func TestPlacesOfSamplesAbove(t *testing.T) {
	number := tables.Type{Kind: tables.Int64, Bits: 64}
	list := tables.NewList(tables.NewFloats(tables.Type{Kind: tables.Float64}, nil, nil), []uint32{0, 0}, nil)
	sides := tables.NewList(tables.NewInts(number, nil, nil), []uint32{0, 0}, nil)
	shaped := tables.FromVectors([]string{"spatial:proj_transform", "spatial:proj_shape"},
		[]*tables.Vector{list, sides})
	plain := tables.FromVectors([]string{"stac:geotransform"}, []*tables.Vector{list})
	none := tables.FromVectors([]string{"id"}, []*tables.Vector{tables.NewStrings([]string{"a"}, nil)})
	stop := errors.New("stop")
	fails := func(context.Context, int) (*tables.Vector, error) { return nil, stop }
	broken := tables.New(1, shaped.Columns(), fails)
	three := opened(t, options(t), []string{filepath.Join(corpus.Testdata(t), "taco3", "scenes.zip")})
	two := opened(t, options(t), []string{filepath.Join(corpus.Testdata(t), "coast", "coast.tacozip")})
	for name, c := range map[string]struct {
		set              Set
		level            int
		above, own       *tables.Table
		found, fromAbove bool
	}{
		"TACO 3":    {three, 1, shaped, none, true, true},
		"its own":   {three, 1, shaped, plain, true, false},
		"level 0":   {three, 0, shaped, none, false, false},
		"TACO 2":    {two, 1, shaped, none, false, false},
		"no shape":  {three, 1, plain, none, false, false},
		"broken":    {three, 1, shaped, broken, false, false},
		"one above": {three, 1, broken, none, false, false},
		"not asked": {three, 0, broken, none, false, false},
		"nothing":   {three, 1, none, none, false, false},
	} {
		got, err := (&Container{set: c.set, level0: c.above}).groundOf(t.Context(), c.level, c.own)
		if wrong := c.own == broken || c.above == broken && c.level > 0; wrong != errors.Is(err, stop) ||
			(got != nil) != c.found || got != nil && got.samples != c.fromAbove {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

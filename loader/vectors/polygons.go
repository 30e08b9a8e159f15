package vectors

import (
	"cmp"
	"context"
	"errors"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/format/vector"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/source"
)

// polygons is shapes.Reader.Polygons.
func polygons(ctx context.Context, o source.Opener, path string) (list []orb.Polygon, _ *crs.CRS, err error) {
	layer, err := vector.Open(ctx, o, path, vector.Options{Grow: budget.Grow})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, layer.Close()) }()
	if layer.CRS == nil {
		return nil, nil, nil
	}
	for row := range layer.Len() {
		shape, err := layer.Shape(ctx, uint32(row))
		if err != nil {
			return nil, nil, err
		}
		list, _ = polygonsOf(list, shape)
	}
	return list, layer.CRS, nil
}

// polygonsOf appends the polygons of a shape. other is the name of the first type in it that is not a
// polygon.
func polygonsOf(to []orb.Polygon, shape orb.Geometry) (out []orb.Polygon, other string) {
	switch s := shape.(type) {
	case nil:
	case orb.Polygon:
		to = append(to, s)
	case orb.Collection:
		for _, part := range s {
			var kind string
			to, kind = polygonsOf(to, part)
			other = cmp.Or(other, kind)
		}
	default:
		other = shape.GeoJSONType()
	}
	return to, other
}

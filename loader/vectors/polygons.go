package vectors

import (
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
		list = appendPolygons(list, shape)
	}
	return list, layer.CRS, nil
}

// appendPolygons appends the polygons of a shape of package wkb.
func appendPolygons(list []orb.Polygon, shape orb.Geometry) []orb.Polygon {
	switch s := shape.(type) {
	case orb.Polygon:
		return append(list, s)
	case orb.Collection:
		for _, part := range s {
			list = appendPolygons(list, part)
		}
	}
	return list
}

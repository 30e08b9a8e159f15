package containers

import (
	"context"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/store/catalog"
)

// ground is the columns of a level that say where rasters lie. A chunk index does not.
type ground struct {
	crs, transform *tables.Vector
	// shape is height and width of the raster that the transform is of, in TACO 3. Its transforms are in the order of
	// STAC; transforms of TACO 2 are in GDAL's.
	shape *tables.Vector
	// samples says that the columns are of level 0. They hold for the rasters below of that shape.
	samples bool
}

// groundNames are the columns of places: of TACO 2, and of the two groups of TACO 3 that have them.
var groundNames = [...]struct{ crs, transform, shape string }{
	{"stac:crs", "stac:geotransform", ""},
	{"stac:proj_code", "stac:proj_transform", "stac:proj_shape"},
	{"spatial:proj_code", "spatial:proj_transform", "spatial:proj_shape"},
}

// groundOf returns the columns of a level, nil if it has no transforms.
func groundOf(ctx context.Context, t *tables.Table) (*ground, error) {
	for _, names := range groundNames {
		if t.Index(names.transform) < 0 || names.shape != "" && t.Index(names.shape) < 0 {
			continue
		}
		places := &ground{}
		for name, target := range map[string]**tables.Vector{names.crs: &places.crs, names.transform: &places.transform,
			names.shape: &places.shape} {
			if t.Index(name) < 0 {
				continue
			}
			values, err := t.Column(ctx, name)
			if err != nil {
				return nil, err
			}
			*target = values
		}
		if places.transform.Kind() != tables.List || places.shape != nil && places.shape.Kind() != tables.List {
			return nil, nil
		}
		if places.crs != nil && places.crs.Kind() != tables.String {
			places.crs = nil
		}
		return places, nil
	}
	return nil, nil
}

// groundOf returns the columns of places of a level or, in TACO 3, of the samples above it.
func (c *Container) groundOf(ctx context.Context, level int, t *tables.Table) (*ground, error) {
	found, err := groundOf(ctx, t)
	above := level > 0 && c.set.LevelNames() != nil
	if found != nil || err != nil || !above {
		return found, err
	}
	if found, err = groundOf(ctx, c.level0); found != nil && found.shape != nil {
		found.samples = true
		return found, nil
	}
	return nil, err
}

// of returns the place of the raster in a row, nil if the columns do not say it.
func (g *ground) of(row int, x *chunk.Index) *catalog.Place {
	if g == nil || g.transform.Null(row) {
		return nil
	}
	values, lo, hi := g.transform.List(row)
	if hi-lo != 6 || values.Kind() != tables.Float64 {
		return nil
	}
	transform := [6]float64(values.Floats()[lo:hi])
	if g.shape != nil {
		sizes, first, end := g.shape.List(row)
		if g.shape.Null(row) || end-first != 2 || sizes.Kind() != tables.Int64 ||
			sizes.Int(first) != int64(x.Height) || sizes.Int(first+1) != int64(x.Width) {
			return nil
		}
		transform = [6]float64{transform[2], transform[0], transform[1], transform[5], transform[3], transform[4]}
	}
	text := ""
	if g.crs != nil && !g.crs.Null(row) {
		text = g.crs.Str(row)
	}
	return catalog.DescribedPlace(text, &transform, x.Height, x.Width)
}

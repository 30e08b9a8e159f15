package rows

import (
	"context"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tables"
)

// ground is the columns of a level that say where its rasters lie. A chunk index does not.
type ground struct{ crs, transform *tables.Vector }

// groundOf returns the columns of STAC of a level, nil if it has no transforms.
func groundOf(ctx context.Context, t *tables.Table) (*ground, error) {
	g := &ground{}
	for name, to := range map[string]**tables.Vector{"stac:crs": &g.crs, "stac:geotransform": &g.transform} {
		if t.Index(name) < 0 {
			continue
		}
		v, err := t.Column(ctx, name)
		if err != nil {
			return nil, err
		}
		*to = v
	}
	if g.transform == nil || g.transform.Kind() != tables.List {
		return nil, nil
	}
	if g.crs != nil && g.crs.Kind() != tables.String {
		g.crs = nil
	}
	return g, nil
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
	text := ""
	if g.crs != nil && !g.crs.Null(row) {
		text = g.crs.Str(row)
	}
	return catalog.DescribedPlace(text, &transform, x.Height, x.Width)
}

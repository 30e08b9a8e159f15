package taco

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tables"
)

// classes are the names of Tortillas whose tables have certain columns (Tortilla 0.5.0, "The
// Footer"). One column of each list must exist: the shape is called raster_shape by the older
// specification and by writers, and tensor_shape by TACO 0.2.0.
var classes = []struct {
	name    string
	columns [][]string
}{
	{"stac-tortilla", [][]string{{"stac:crs"}, {"stac:geotransform"}, {"stac:raster_shape", "stac:tensor_shape"},
		{"stac:time_start"}, {"stac:time_end"}}},
	{"rai-tortilla", [][]string{{"rai:elevation"}, {"rai:cisi"}, {"rai:gdp"}, {"rai:hdi"}, {"rai:gmi"}, {"rai:pop"},
		{"rai:admin0"}, {"rai:admin1"}, {"rai:admin2"}}},
}

// Classes returns the names for a table of samples, by its columns: "stac-tortilla", "rai-tortilla".
func Classes(t *tables.Table) []string {
	var names []string
	for _, c := range classes {
		equal := true
		for _, names := range c.columns {
			equal = equal && slices.ContainsFunc(names, func(n string) bool { return t.Index(n) >= 0 })
		}
		if equal {
			names = append(names, c.name)
		}
	}
	return names
}

// Partitions returns the number of files that the first container is split into, or 0 if its format has no such number.
func (d *Dataset) Partitions() int {
	if len(d.parts) == 0 {
		return 0
	}
	return d.parts[0].Partitions
}

// chunks returns the chunks of all containers, for which hasChunks must be true. stored includes
// the chunks of histograms.
func (d *Dataset) chunks(ctx context.Context, stored bool) (*tables.Table, error) {
	t, _, err := d.concat(ctx, "chunks", func(_ context.Context, p *model.Container) (*tables.Table, error) {
		if stored || len(p.Histograms) == 0 {
			return p.Chunks.Table, nil
		}
		return p.Chunks.Table.Take(p.Chunks.Samples()), nil
	})
	return t, err
}

// hasChunks reports whether all containers have named chunks.
func (d *Dataset) hasChunks() bool {
	without := func(p *model.Container) bool { return p.Chunks == nil }
	return len(d.parts) > 0 && !slices.ContainsFunc(d.parts, without)
}

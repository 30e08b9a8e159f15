package report

import (
	"context"

	"github.com/chaski-eo/chaski/draw"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Panels measures a dataset and returns one panel for each band of its raster fields, at most draw.MaxPanels, and the
// number of all bands. If there are several fields, the name of a panel begins with the name of its field. It returns
// the same errors as loader.Stats.
func Panels(ctx context.Context, spec loader.Spec, o loader.Options,
	progress func(done, total int64)) (p []draw.Panel, bands int, err error) {
	spec = spec.WithDefaults()
	report, err := survey.Stats(ctx, spec, o, progress)
	if err != nil {
		return nil, 0, err
	}
	names, err := bandNames(ctx, spec, o)
	if err != nil {
		return nil, 0, err
	}
	for i, f := range spec.Fields {
		s, measured := report.Fields[f.Name]
		if !measured {
			continue
		}
		bands += len(s.Bands)
		field := Field{BandNames: names[i], Stats: &s}
		for _, panel := range field.Panels(draw.MaxPanels - len(p)) {
			if len(report.Fields) > 1 {
				panel.Name = f.Name + ": " + panel.Name
			}
			p = append(p, panel)
		}
	}
	if len(p) == 0 {
		return nil, 0, fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset, "it has no raster"),
			spec.Source)
	}
	return p, bands, nil
}

// bandNames returns the names of bands in the first asset of each field.
func bandNames(ctx context.Context, spec loader.Spec, o loader.Options) (names [][]string, err error) {
	if o.Opener == nil {
		files := &source.Files{}
		defer files.Close() //nolint:errcheck // they were only read
		o.Opener = files
	}
	table, err := rows.OpenTable(ctx, spec, o)
	if err != nil {
		return nil, err
	}
	defer table.Close() //nolint:errcheck // it was only read
	for i := range spec.Fields {
		var list []string
		if table.Kind(i) == catalog.Raster {
			asset, err := table.Asset(ctx, i, 0)
			if err != nil {
				return nil, err
			}
			alone := o
			alone.Opener = rows.Alone(o.Opener, asset)
			if info, err := survey.Inspect(ctx, asset.URI, alone); err == nil && info.TIFF != nil {
				list = info.TIFF.BandNames
			}
		}
		names = append(names, list)
	}
	return names, nil
}

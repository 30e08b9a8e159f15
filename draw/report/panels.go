package report

import (
	"context"
	"fmt"

	"github.com/chaski-eo/chaski/draw"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/survey"
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
	for _, f := range spec.Fields {
		s, measured := report.Fields[f.Name]
		if !measured {
			continue
		}
		bands += len(s.Bands)
		field := Field{Stats: &s}
		for i, band := range s.Bands {
			name := band.Name
			if n := band.Number(); name == "" && n >= 0 && n != i {
				name = fmt.Sprintf("band %d", n)
			}
			field.BandNames = append(field.BandNames, name)
		}
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

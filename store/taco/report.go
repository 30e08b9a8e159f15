package taco

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/stats"
	"github.com/chaski-eo/chaski/store"
)

// maxComponents limits the fields of a report of all components. More ids are hardly names of components.
const maxComponents = 64

// Report returns the statistics of Pool in the form that normalisation uses: a field named like the component. For
// component "*" it has a field for each id of the deepest level with statistics if level 0 has folders, otherwise one
// field "image". No pixels are read, only the header of one raster for its dtype.
func (d *Dataset) Report(ctx context.Context, component string, keep func(row int) bool) (*stats.Report, error) {
	names := []string{component}
	if component == "*" && d.Levels() > 1 {
		var err error
		if names, err = d.components(ctx); err != nil {
			return nil, err
		}
	}
	report := &stats.Report{Version: stats.ReportVersion, Fields: map[string]stats.FieldReport{}}
	for _, name := range names {
		pooled, err := d.Pool(ctx, name, keep)
		if len(names) > 1 && fault.KindOf(err) == fault.NotFound {
			continue // a component without statistics
		}
		if err != nil {
			return nil, err
		}
		field := d.fieldReport(ctx, name, pooled)
		if name == "*" {
			name = "image"
		}
		report.Samples += int64(pooled.Samples)
		report.Fields[name] = field
	}
	return report, nil
}

// components returns the ids of the deepest level, or "*" for all of them if there are many.
func (d *Dataset) components(ctx context.Context) (names []string, err error) {
	deepest := d.Levels() - 1
	ids, err := d.IDs(ctx, deepest)
	if err != nil {
		return nil, err
	}
	rows, err := d.Visible(ctx, deepest)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, row := range rows {
		if id := ids.Bytes(row); !seen[string(id)] {
			seen[string(id)], names = true, append(names, string(id))
		}
		if len(names) > maxComponents {
			return []string{"*"}, nil
		}
	}
	return names, nil
}

// fieldReport turns pooled statistics into the statistics of a field.
func (d *Dataset) fieldReport(ctx context.Context, component string, p *stats.Pooled) stats.FieldReport {
	report := stats.FieldReport{DType: d.dtypeOf(ctx, component)}
	for b := range p.Mean {
		least, largest := number(p.Min[b]), number(p.Max[b])
		band := stats.Band{Count: uint64(math.Round(p.Pixels[b])), Mean: &p.Mean[b], Std: &p.Std[b],
			Min: &least, Max: &largest}
		report.Bands = append(report.Bands, band)
	}
	return report
}

// isCalled reports whether a sample belongs to a component, as in Pool.
func isCalled(e store.Entry, component string) bool {
	return component == "*" || e.ID == component || strings.HasSuffix(e.Path, "/"+component)
}

func number(v float64) json.Number { return json.Number(strconv.FormatFloat(v, 'g', -1, 64)) }

// dtypeOf returns the dtype of the rasters of a component, from the header of the first one, or
// float64 if that is not a TIFF.
func (d *Dataset) dtypeOf(ctx context.Context, component string) chunk.DType {
	for sample, err := range d.Leaves(ctx, false) {
		if err != nil {
			break
		}
		if !isCalled(sample, component) {
			continue
		}
		if im, err := openSample(ctx, d.opener, sample); err == nil {
			return im.Index.DType
		}
		break
	}
	return chunk.Float64
}

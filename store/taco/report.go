package taco

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/stats"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tiff"
)

// Histograms of a streaming TACO (TACO 0.2.0, "Precomputed Histogram information") are rasters of counts: one band for
// each band, one row for each sample of level 0 in their order, and one column for each bin.

// histogramBins is the number of bins, which divide the range of the dataset's values.
const histogramBins = 100

// maxComponents limits the fields of a report of all components. More ids are hardly names of components.
const maxComponents = 64

// Report returns the statistics of Pool, with percentiles if there are histograms, in the form that normalisation uses:
// a field named like the component. For component "*" it has a field for each id of the deepest level with statistics
// if level 0 has folders, otherwise one field "image". No pixels are read, only the header of one raster for its dtype.
//
// Percentiles are interpolated inside a bin, and may be off by its width, which Resolution states.
// Several containers have no percentiles, because each has bins over a range of its own.
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
		field, err := d.fieldReport(ctx, name, pooled, keep)
		if err != nil {
			return nil, err
		}
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
func (d *Dataset) fieldReport(ctx context.Context, component string, p *Pooled,
	keep func(row int) bool) (stats.FieldReport, error) {
	report := stats.FieldReport{DType: d.dtypeOf(ctx, component)}
	counts, lo, hi, err := d.Histogram(ctx, component, keep)
	if k := fault.KindOf(err); err != nil && k != fault.NotFound && k != fault.Unsupported {
		return report, err
	}
	for b := range p.Mean {
		least, largest := number(p.Min[b]), number(p.Max[b])
		band := stats.Band{Count: uint64(math.Round(p.pixels[b])), Mean: &p.Mean[b], Std: &p.Std[b],
			Min: &least, Max: &largest}
		if b < len(counts) {
			fillHistogram(&band, counts[b], lo, hi, p.Min[b], p.Max[b])
		}
		report.Bands = append(report.Bands, band)
	}
	return report, nil
}

// isCalled reports whether a sample belongs to a component, as in Pool.
func isCalled(e Entry, component string) bool {
	return component == "*" || e.ID == component || strings.HasSuffix(e.Path, "/"+component)
}

func number(v float64) json.Number { return json.Number(strconv.FormatFloat(v, 'g', -1, 64)) }

// fillHistogram sets the percentiles and the histogram of a band from a histogram over [lo, hi],
// given that the values lie in [least, most]: those of each bin are taken to be spread evenly over its part inside.
func fillHistogram(b *stats.Band, counts []uint64, lo, hi, least, most float64) {
	histogram := &stats.Histogram{Counts: counts}
	edges, weights := make([]float64, len(counts)+1), make([]float64, len(counts)+1) // a bin's weight is at its end
	for i := range edges {
		edge := lo + (hi-lo)*float64(i)/float64(len(counts))
		histogram.Edges = append(histogram.Edges, edge)
		edges[i] = min(max(edge, least), most)
		if i > 0 {
			weights[i] = float64(counts[i-1])
		}
	}
	if floats.Sum(weights) == 0 {
		return
	}
	b.Histogram, b.Resolution, b.Percentiles = histogram, (hi-lo)/float64(len(counts)), map[string]float64{}
	for name, p := range map[string]float64{"2.5": 2.5, "50": 50, "98.5": 98.5} {
		b.Percentiles[name] = stat.Quantile(p/100, stat.LinInterp, edges, weights)
	}
}

// Histogram returns the counts of all pixels of some samples by band and bin, and the range that
// the bins divide. It sums the container's histograms over the rows that keep selects (nil: all)
// and over the components with an id ("*": all). A container without histograms is fault.NotFound.
func (d *Dataset) Histogram(ctx context.Context, component string, keep func(row int) bool) (counts [][]uint64,
	lo, hi float64, err error) {
	none := fault.WithFile(fault.New(fault.NotFound, "level0", fault.NoOffset, "there are no histograms of %q",
		component), d.name())
	if len(d.parts) != 1 || d.Levels() < 2 || len(d.all.Histograms) == 0 {
		return nil, 0, 0, none
	}
	rows, err := d.samples(ctx, 0)
	if err != nil {
		return nil, 0, 0, err
	}
	if lo, hi, err = d.valueRange(ctx); err != nil {
		return nil, 0, 0, err
	}
	top, err := d.Entry(ctx, 0, int(d.all.Histograms[0]))
	if err != nil {
		return nil, 0, 0, err
	}
	for sample, err := range d.LeavesOf(ctx, top, false) {
		if err != nil {
			return nil, 0, 0, err
		}
		if !isCalled(sample, component) {
			continue
		}
		if counts, err = d.addHistogram(ctx, counts, sample, rows, keep); err != nil {
			return nil, 0, 0, fault.WithFile(fault.WithPart(err, "sample "+sample.Path, sample.Offset), sample.URI)
		}
	}
	if counts == nil {
		return nil, 0, 0, none
	}
	return counts, lo, hi, nil
}

// valueRange returns the smallest and largest value of all samples of the deepest level with statistics.
func (d *Dataset) valueRange(ctx context.Context) (lo, hi float64, err error) {
	table, err := d.Level(ctx, d.Levels()-1)
	if err != nil {
		return 0, 0, err
	}
	lo, hi = math.Inf(1), math.Inf(-1)
	for k, name := range [...]string{"stats:min", "stats:max"} {
		vector, err := lists(ctx, table, name)
		if err != nil {
			return 0, 0, fault.WithFile(err, d.name())
		}
		for i := range table.Len() {
			values, _ := numbers(vector, i)
			for _, x := range values {
				if k == 0 {
					lo = min(lo, x)
				} else {
					hi = max(hi, x)
				}
			}
		}
	}
	if !(lo <= hi) || math.IsInf(hi-lo, 0) {
		return 0, 0, fault.WithFile(fault.New(fault.NotFound, "stats:min", fault.NoOffset,
			"the values have no range: %v to %v", lo, hi), d.name())
	}
	return lo, hi, nil
}

// maxWhole limits the size of samples that are read in one request.
const maxWhole = 8 << 20

// addHistogram adds the counts of a histogram. rows are the samples of level 0 that its rows describe.
func (d *Dataset) addHistogram(ctx context.Context, counts [][]uint64, e Entry, rows []int,
	keep func(row int) bool) ([][]uint64, error) {
	file, err := Section(ctx, d.opener, e)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	whole := file
	// Each strip would be a request otherwise.
	if file.Size() <= maxWhole {
		data := make([]byte, file.Size())
		if err := file.ReadAt(ctx, data, 0); err != nil {
			return nil, err
		}
		whole = &model.Tail{Reader: file, Bytes: data}
	}
	image, err := tiff.Open(ctx, whole, tiff.Limits{})
	if err != nil {
		return nil, err
	}
	index := image.Index
	if index.Width != histogramBins || index.Height != len(rows) {
		return nil, fault.New(fault.Unsupported, "histogram", fault.NoOffset,
			"it has %d rows of %d bins, expected %d of %d", index.Height, index.Width, len(rows), histogramBins)
	}
	if counts == nil {
		counts = make([][]uint64, index.Bands)
		for b := range counts {
			counts[b] = make([]uint64, histogramBins)
		}
	}
	if len(counts) != index.Bands {
		return nil, fault.New(fault.Unsupported, "histogram", fault.NoOffset,
			"it has %d bands, but earlier ones have %d", index.Bands, len(counts))
	}
	return counts, addCounts(ctx, counts, whole, index, func(y int) bool { return keep == nil || keep(rows[y]) })
}

// addCounts adds the rows of an image for which want returns true to the counts by band and column.
func addCounts(ctx context.Context, counts [][]uint64, r source.Reader, x *chunk.Index, want func(y int) bool) error {
	if !x.DType.Integer() && x.DType != chunk.Float32 && x.DType != chunk.Float64 {
		return fault.New(fault.Unsupported, "histogram", fault.NoOffset, "counts of type %v", x.DType)
	}
	if !x.ChunkFits(chunk.DefaultMaxBytes) {
		return x.OverLimit(chunk.DefaultMaxBytes)
	}
	dec := chunk.NewDecoder(nil)
	tile := make([]byte, x.MaxDecodedBytes(), x.MaxDecodedBytes()+chunk.Spare)
	size := x.DType.Size()
	for i, span := range x.Ranges {
		box := x.Box(i)
		y := box.Y0
		for y < box.Y1 && !want(y) {
			y++
		}
		if y == box.Y1 {
			continue
		}
		src := make([]byte, span.Len)
		if err := r.ReadAt(ctx, src, span.Off); err != nil {
			return err
		}
		if err := dec.Decode(tile[:x.DecodedBytes(i)], src, x, i); err != nil {
			return err
		}
		strides := x.Strides(i)
		for ; y < box.Y1; y++ {
			if !want(y) {
				continue
			}
			for b := range box.B1 - box.B0 {
				row, step := (strides.Plane(b)+(y-box.Y0)*strides.Y)*size, strides.X*size
				for col := box.X0; col < box.X1; col++ {
					// Values that are not counts are 0.
					if v := x.DType.Number(tile[row+(col-box.X0)*step:]); v >= 0 && v < 1<<53 {
						counts[box.B0+b][col] += uint64(v)
					}
				}
			}
		}
	}
	return nil
}

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

package taco

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/stats"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// statsColumns are the columns of the STATS extension of TACO 0.2, geotiffColumn the one that writers of TACO 2 use
// instead, and shapeColumns those that may hold the shape [bands, rows, columns] of a sample.
var (
	statsColumns  = [4]string{"stats:mean", "stats:std", "stats:min", "stats:max"}
	geotiffColumn = "geotiff:stats"
	scaleColumn   = "scaling:scale_factor"
	shapeColumns  = []string{"stac:tensor_shape", "stac:raster_shape"}
)

const geotiffNumbers = 9

// Pool combines the statistics that the rows of the deepest level have, in stats:mean and so on or
// in geotiff:stats, without reading pixels. component selects the samples: an id, a path of ids
// below a sample of level 0, or "*" for all. keep selects the samples of level 0; nil means all.
//
// The weight w of a row is rows × columns of its shape, for geotiff:stats times the share of valid
// pixels: mean = Σwm/Σw, std = √(Σw(s² + m²)/Σw − mean²). Rows with a null list are skipped. An
// infinite value or NaN, as of a chip without a valid pixel, is fault.Unsupported.
func (d *Dataset) Pool(ctx context.Context, component string, keep func(row int) bool) (*stats.Pooled, error) {
	k := max(d.Levels()-1, 0)
	table, err := d.Level(ctx, k)
	if err != nil {
		return nil, err
	}
	p := &pool{}
	if err := p.columns(ctx, table); err != nil {
		return nil, d.inLevel(err, k)
	}
	found := slices.IndexFunc(shapeColumns, func(name string) bool { return table.Index(name) >= 0 })
	if found < 0 {
		return nil, d.inLevel(fault.New(fault.NotFound, "", "no column of shapes (%v)", shapeColumns), k)
	}
	if p.shapes, err = lists(ctx, table, shapeColumns[found]); err != nil {
		return nil, fault.WithFile(err, d.name())
	}
	rows, err := d.named(ctx, k, component, keep)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if err := p.add(row); err != nil {
			return nil, fault.WithFile(fault.WithPart(err, model.RowName(k, row), fault.NoOffset), d.name())
		}
	}
	// A component without statistics needs to be an error, since its mean would be NaN.
	if p.n == 0 {
		return nil, d.inLevel(fault.New(fault.NotFound, "", "no sample %q has statistics", component), k)
	}
	out := &stats.Pooled{Min: p.min, Max: p.max, Samples: p.n}
	for _, band := range p.bands {
		out.Mean, out.Std = append(out.Mean, band.average()), append(out.Std, band.deviation())
		out.Pixels = append(out.Pixels, band.weight)
	}
	// Sums of squares may overflow although every value is finite: NaN must not reach a normaliser.
	if slices.ContainsFunc(slices.Concat(out.Mean, out.Std), isNotFinite) {
		return nil, d.inLevel(fault.New(fault.Unsupported, "", "the statistics are too large to be pooled"), k)
	}
	return out, nil
}

// inLevel adds a level and the file to an error.
func (d *Dataset) inLevel(err error, k int) error {
	return fault.WithFile(fault.WithPart(err, model.LevelName(k), fault.NoOffset), d.name())
}

func isNotFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// named returns the rows of a level with a name: an id, or the ids from level 1 down. They lie
// below the samples of level 0 that keep selects.
func (d *Dataset) named(ctx context.Context, k int, name string, keep func(int) bool) (rows []int, err error) {
	ids, parents := make([]*tables.Vector, k+1), make([][]int32, k+1) // by level
	for l := k; l >= 0; l-- {
		if ids[l], err = d.IDs(ctx, l); err == nil {
			parents[l], err = d.Parents(ctx, l)
		}
		if err != nil {
			return nil, err
		}
	}
	visible, err := d.Visible(ctx, k)
	if err != nil {
		return nil, err
	}
	for _, row := range visible {
		is := name == "*" || string(ids[k].Bytes(row)) == name
		// What is left of the name in front of the ids from level k up.
		rest, under := strings.CutSuffix(name, string(ids[k].Bytes(row)))
		root := row
		for l := k; l > 0; l-- {
			is = is || under && rest == "" && l == 1
			if root = int(parents[l][root]); under && l > 1 {
				rest, under = strings.CutSuffix(rest, string(ids[l-1].Bytes(root))+"/")
			}
		}
		if is && (keep == nil || keep(root)) {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// lists returns a column of lists of numbers.
func lists(ctx context.Context, t *tables.Table, name string) (*tables.Vector, error) {
	values, err := t.Column(ctx, name)
	if err != nil {
		return nil, err
	}
	if ty := values.Type(); ty.Kind != tables.List || ty.Elem.Kind != tables.Float64 && ty.Elem.Kind != tables.Int64 &&
		ty.Elem.Kind != tables.Uint64 {
		return nil, fault.New(fault.Corrupt, "column "+name, "has type %v, want lists of numbers", ty)
	}
	return values, nil
}

// moments pool a value over rows, without a list of them: a file of some KiB may state tens of millions.
type moments struct {
	weight, mean float64 // Σw, Σwx/Σw
	squares      float64 // Σws² + Σw(x − mean)²
}

// add adds a row with weight w, value x and, if x is a mean, the deviation s. A row without pixels is skipped.
func (m *moments) add(w, x, s float64) {
	if !(w > 0) {
		return
	}
	m.weight += w
	apart := x - m.mean
	m.mean += apart * w / m.weight
	m.squares += w*s*s + w*apart*(x-m.mean)
}

// average returns the mean, NaN if no row has pixels.
func (m *moments) average() float64 {
	if m.weight == 0 {
		return math.NaN()
	}
	return m.mean
}

// deviation returns the deviation of all pixels.
func (m *moments) deviation() float64 { return math.Sqrt(m.squares / m.weight) }

// pool sums the statistics of rows.
type pool struct {
	cols     [4]*tables.Vector // mean, std, min, max; nil if geotiff is set
	geotiff  *tables.Vector
	scale    *tables.Vector // scale of the rasters, or nil
	shapes   *tables.Vector
	n        int
	bands    []moments
	min, max []float64
}

// columns finds the columns of statistics.
func (p *pool) columns(ctx context.Context, t *tables.Table) (err error) {
	if t.Index(statsColumns[0]) >= 0 || t.Index(geotiffColumn) < 0 {
		for i, name := range statsColumns {
			if p.cols[i], err = lists(ctx, t, name); err != nil {
				return err
			}
		}
		return nil
	}
	if p.geotiff, err = geotiffStats(ctx, t); err != nil {
		return err
	}
	if t.Index(scaleColumn) >= 0 {
		p.scale, err = t.Column(ctx, scaleColumn)
	}
	return err
}

// geotiffStats returns the column geotiff:stats, which has a list of numbers for each band.
func geotiffStats(ctx context.Context, t *tables.Table) (*tables.Vector, error) {
	values, err := t.Column(ctx, geotiffColumn)
	if err != nil {
		return nil, err
	}
	if ty := values.Type(); ty.Kind != tables.List || ty.Elem.Kind != tables.List ||
		ty.Elem.Elem.Kind != tables.Float64 {
		return nil, fault.New(fault.Corrupt, "column "+geotiffColumn, "has type %v, want lists of lists of floats", ty)
	}
	return values, nil
}

// row returns mean, std, min and max of a row by band, and the share of valid pixels, or nothing
// for a row without statistics.
func (p *pool) row(row int) (v [4][]float64, valid []float64, err error) {
	if p.geotiff != nil {
		return p.geotiffRow(row)
	}
	for i, values := range p.cols {
		if values.Null(row) {
			return [4][]float64{}, nil, nil
		}
		var ok bool
		if v[i], ok = numbers(values, row); !ok || len(v[i]) != len(v[0]) {
			return v, nil, fault.New(fault.Corrupt, "column "+statsColumns[i],
				"%d values, but %s has %d", len(v[i]), statsColumns[0], len(v[0]))
		}
		if b := slices.IndexFunc(v[i], isNotFinite); b >= 0 {
			return v, nil, fault.New(fault.Unsupported, "column "+statsColumns[i],
				"%v for band %d, which cannot be pooled", v[i][b], b)
		}
	}
	return v, slices.Repeat([]float64{1}, len(v[0])), nil
}

func (p *pool) geotiffRow(row int) (v [4][]float64, valid []float64, err error) {
	bad := func(k fault.Kind, format string, args ...any) ([4][]float64, []float64, error) {
		return [4][]float64{}, nil, fault.New(k, "column "+geotiffColumn, format, args...)
	}
	if p.geotiff.Null(row) {
		return v, nil, nil
	}
	if p.scale != nil && !p.scale.Null(row) && !(p.scale.Kind() == tables.Float64 && p.scale.Float(row) == 1) {
		return bad(fault.Unsupported,
			"the row has %s: its statistics may be of scaled values, unlike the values of the file", scaleColumn)
	}
	bands, lo, hi := p.geotiff.List(row)
	for i := lo; i < hi; i++ {
		x, ok := numbers(bands, i)
		b := i - lo
		if !ok {
			return bad(fault.Corrupt, "band %d has nulls", b)
		}
		if len(x) != geotiffNumbers {
			return bad(fault.Unsupported,
				"band %d has %d numbers, not the %d of measurements: shares of classes cannot be pooled",
				len(x), b, geotiffNumbers)
		}
		if j := slices.IndexFunc(x, isNotFinite); j >= 0 {
			return bad(fault.Unsupported, "%v for band %d, which cannot be pooled", x[j], b)
		}
		if x[4] < 0 || x[4] > 100 {
			return bad(fault.Corrupt, "%v percent of band %d are valid", x[4], b)
		}
		for k, place := range [4]int{2, 3, 0, 1} {
			v[k] = append(v[k], x[place])
		}
		valid = append(valid, x[4]/100)
	}
	return v, valid, nil
}

// add adds a row, unless it has no statistics.
func (p *pool) add(row int) error {
	v, valid, err := p.row(row)
	if err != nil {
		return err
	}
	if len(v[0]) == 0 {
		return nil
	}
	shape, ok := numbers(p.shapes, row)
	if p.shapes.Null(row) || !ok || len(shape) < 2 {
		return fault.New(fault.Corrupt, "shape", "%v is not [bands, rows, columns]", shape)
	}
	w := shape[len(shape)-2] * shape[len(shape)-1]
	if !(w > 0) || math.IsInf(w, 0) {
		return fault.New(fault.Corrupt, "shape", "%v has no number of pixels", shape)
	}
	if p.n == 0 {
		p.bands = make([]moments, len(v[0]))
		p.min, p.max = append(p.min, v[2]...), append(p.max, v[3]...)
	}
	if len(v[0]) != len(p.bands) {
		return fault.New(fault.Unsupported, "stats", "%d bands, but earlier rows have %d", len(v[0]), len(p.bands))
	}
	p.n++
	for b := range p.bands {
		p.bands[b].add(w*valid[b], v[0][b], v[1][b])
		p.min[b], p.max[b] = min(p.min[b], v[2][b]), max(p.max[b], v[3][b])
	}
	return nil
}

// numbers returns the list of a row. ok is false if one of its values is null.
func numbers(v *tables.Vector, row int) (list []float64, ok bool) {
	if v.Null(row) {
		return nil, false
	}
	child, lo, hi := v.List(row)
	for i := lo; i < hi; i++ {
		switch {
		case child.Null(i):
			return list, false
		case child.Kind() == tables.Float64:
			list = append(list, child.Float(i))
		case child.Kind() == tables.Uint64:
			list = append(list, float64(uint64(child.Int(i))))
		default:
			list = append(list, float64(child.Int(i)))
		}
	}
	return list, true
}

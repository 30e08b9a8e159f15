package taco

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/taco/table"
)

// Pooled are statistics of all pixels of some samples, band by band.
type Pooled struct {
	Mean []float64 `json:"mean"`
	Std  []float64 `json:"std"` // of the whole, not an estimate
	Min  []float64 `json:"min"`
	Max  []float64 `json:"max"`
	// Samples is the number of rows with statistics.
	Samples int `json:"samples"`

	pixels float64 // of one band
}

// statsColumns are the columns of the STATS extension, and those that may hold the shape
// [bands, rows, columns] of a sample.
var (
	statsColumns = [4]string{"stats:mean", "stats:std", "stats:min", "stats:max"}
	shapeColumns = []string{"stac:tensor_shape", "stac:raster_shape"}
)

// Pool combines the statistics that the rows of the deepest level hold, of the samples called
// component ("*": of all), without reading a pixel. keep says which of the samples of level 0 count; nil
// means all. A row weighs as many pixels w = rows × columns as its shape says: mean = Σwm/Σw,
// std = √(Σw(s² + m²)/Σw − mean²). Of a row whose list is null nothing is taken; one with a value that is not finite,
// as of a chip without a valid pixel, is fault.Unsupported.
func (d *Dataset) Pool(ctx context.Context, component string, keep func(row int) bool) (*Pooled, error) {
	k := d.Levels() - 1
	t, err := d.Level(ctx, max(k, 0))
	if err != nil {
		return nil, err
	}
	p := &pool{}
	for i, name := range statsColumns {
		if p.cols[i], err = lists(ctx, t, name); err != nil {
			return nil, fault.WithFile(fault.WithPart(err, fmt.Sprintf("level%d", k), fault.NoOffset), d.name())
		}
	}
	for _, name := range shapeColumns {
		if t.Index(name) >= 0 {
			if p.shapes, err = lists(ctx, t, name); err != nil {
				return nil, fault.WithFile(err, d.name())
			}
			break
		}
	}
	if p.shapes == nil {
		return nil, fault.WithFile(fault.New(fault.NotFound, fmt.Sprintf("level%d", k), fault.NoOffset, "no column of shapes (%v)", shapeColumns), d.name())
	}
	rows, err := d.named(ctx, t, k, component, keep)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if err := p.add(row); err != nil {
			return nil, fault.WithFile(fault.WithPart(err, fmt.Sprintf("level%d row %d", k, row), fault.NoOffset), d.name())
		}
	}
	if p.n == 0 {
		return nil, fault.WithFile(fault.New(fault.NotFound, fmt.Sprintf("level%d", k), fault.NoOffset, "no sample %q with statistics", component), d.name())
	}
	out := p.pooled()
	if slices.ContainsFunc(slices.Concat(out.Mean, out.Std), isNotFinite) {
		return nil, fault.WithFile(fault.New(fault.Unsupported, fmt.Sprintf("level%d", k), fault.NoOffset, "statistics that are too large to be pooled"), d.name())
	}
	return out, nil
}

func isNotFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// named returns the rows of a level with an id, below the samples of level 0 that are kept.
func (d *Dataset) named(ctx context.Context, t *table.Table, k int, id string, keep func(int) bool) ([]int, error) {
	ids, err := t.Column(ctx, d.IDColumn())
	if err != nil {
		return nil, fault.WithFile(err, d.name())
	}
	var up [][]int32
	for l := k; l > 0 && keep != nil; l-- {
		parents, err := d.Parents(ctx, l)
		if err != nil {
			return nil, err
		}
		up = append(up, parents)
	}
	visible, err := d.Visible(ctx, k)
	if err != nil {
		return nil, err
	}
	var rows []int
	for _, i := range visible {
		root := i
		for _, parents := range up {
			root = int(parents[root])
		}
		if (id == "*" || string(ids.Bytes(i)) == id) && (keep == nil || keep(root)) {
			rows = append(rows, i)
		}
	}
	return rows, nil
}

// lists returns a column of lists of numbers.
func lists(ctx context.Context, t *table.Table, name string) (*table.Vector, error) {
	v, err := t.Column(ctx, name)
	if err != nil {
		return nil, err
	}
	if ty := v.Type(); ty.Kind != table.List || ty.Elem.Kind != table.Float64 && ty.Elem.Kind != table.Int64 && ty.Elem.Kind != table.Uint64 {
		return nil, fault.New(fault.Corrupt, "column "+name, fault.NoOffset, "has type %v, want lists of numbers", ty)
	}
	return v, nil
}

// pool sums up rows.
type pool struct {
	cols     [4]*table.Vector // mean, std, min, max
	shapes   *table.Vector
	n        int
	weight   float64
	sum, sq  []float64 // Σwm, Σw(s² + m²)
	min, max []float64
}

// add takes in a row, unless it has no statistics.
func (p *pool) add(row int) error {
	var v [4][]float64
	for i, c := range p.cols {
		if c.Null(row) {
			return nil
		}
		var ok bool
		if v[i], ok = numbers(c, row); !ok || len(v[i]) != len(v[0]) {
			return fault.New(fault.Corrupt, "column "+statsColumns[i], fault.NoOffset, "%d values of numbers, %s has %d", len(v[i]), statsColumns[0], len(v[0]))
		}
		if b := slices.IndexFunc(v[i], isNotFinite); b >= 0 {
			return fault.New(fault.Unsupported, "column "+statsColumns[i], fault.NoOffset, "%v for band %d, which cannot be pooled", v[i][b], b)
		}
	}
	if len(v[0]) == 0 {
		return nil
	}
	shape, ok := numbers(p.shapes, row)
	if p.shapes.Null(row) || !ok || len(shape) < 2 {
		return fault.New(fault.Corrupt, "shape", fault.NoOffset, "%v is not [bands, rows, columns]", shape)
	}
	w := shape[len(shape)-2] * shape[len(shape)-1]
	if !(w > 0) || math.IsInf(w, 0) {
		return fault.New(fault.Corrupt, "shape", fault.NoOffset, "%v has no number of pixels", shape)
	}
	if p.n == 0 {
		p.sum, p.sq = make([]float64, len(v[0])), make([]float64, len(v[0]))
		p.min, p.max = append(p.min, v[2]...), append(p.max, v[3]...)
	}
	if len(v[0]) != len(p.sum) {
		return fault.New(fault.Unsupported, "stats", fault.NoOffset, "%d bands, rows before have %d", len(v[0]), len(p.sum))
	}
	p.n++
	p.weight += w
	for b := range p.sum {
		m, s := v[0][b], v[1][b]
		p.sum[b] += w * m
		p.sq[b] += w * (s*s + m*m)
		p.min[b], p.max[b] = min(p.min[b], v[2][b]), max(p.max[b], v[3][b])
	}
	return nil
}

// numbers returns the list of a row; ok is false if one of its values is null.
func numbers(v *table.Vector, row int) (list []float64, ok bool) {
	if v.Null(row) {
		return nil, false
	}
	child, lo, hi := v.List(row)
	for i := lo; i < hi; i++ {
		switch {
		case child.Null(i):
			return list, false
		case child.Kind() == table.Float64:
			list = append(list, child.Float(i))
		case child.Kind() == table.Uint64:
			list = append(list, float64(uint64(child.Int(i))))
		default:
			list = append(list, float64(child.Int(i)))
		}
	}
	return list, true
}

func (p *pool) pooled() *Pooled {
	out := &Pooled{Min: p.min, Max: p.max, Samples: p.n, pixels: p.weight}
	for b := range p.sum {
		mean := p.sum[b] / p.weight
		out.Mean = append(out.Mean, mean)
		out.Std = append(out.Std, math.Sqrt(max(p.sq[b]/p.weight-mean*mean, 0)))
	}
	return out
}

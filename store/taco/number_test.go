package taco

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/budget"
)

// statsTable returns a table with the columns geotiff:stats (nil: null) and stac:tensor_shape.
func statsTable(stats [][][]float64, shapes [][]float64) *tables.Table {
	var values, sides []float64
	inner, outer, ends := []uint32{0}, []uint32{0}, []uint32{0}
	nulls := make([]bool, len(stats))
	for i, bands := range stats {
		for _, b := range bands {
			values = append(values, b...)
			inner = append(inner, uint32(len(values)))
		}
		outer = append(outer, uint32(len(inner)-1))
		nulls[i] = bands == nil
		sides = append(sides, shapes[i]...)
		ends = append(ends, uint32(len(sides)))
	}
	floats := func(v []float64) *tables.Vector {
		return tables.NewFloats(tables.Type{Kind: tables.Float64, Bits: 64}, v, nil)
	}
	columns := []*tables.Vector{
		tables.NewList(tables.NewList(floats(values), inner, nil), outer, nulls),
		tables.NewList(floats(sides), ends, nil),
	}
	return tables.New(len(stats), []tables.Column{
		{Name: geotiffColumn, Type: columns[0].Type()}, {Name: shapeColumns[0], Type: columns[1].Type()},
	}, func(_ context.Context, i int) (*tables.Vector, error) { return columns[i], nil })
}

// TestNumbersOfPixelsArePooled: numbers of rows that were computed from pixels give those of all pixels.
func TestNumbersOfPixelsArePooled(t *testing.T) {
	pixels := [][]float64{{1, 2, 3, 4, 5, 9}, {-7, 0}, {100, 101, 99, 100}}
	shapes := [][]float64{{1, 2, 3}, {1, 2}, {4, 1}, {1, 8, 8}, {9, 9}}
	var stats [][][]float64
	var all []float64
	for _, p := range pixels {
		all = append(all, p...)
		stats = append(stats, [][]float64{numbersOf(p)})
	}
	stats = append(stats, nil, [][]float64{}) // rows without statistics
	want := numbersOf(all)
	for i, name := range geotiffNames {
		p := numberPool{number: name, at: i}
		if err := p.rows(t.Context(), statsTable(stats, shapes), []int{4, 2, 3, 0, 1}); err != nil {
			t.Fatal(err)
		}
		exact := want[i]
		if i > 3 { // of percentiles the mean
			exact = (stats[0][0][i] + stats[1][0][i] + stats[2][0][i]) / 3
		}
		if got := p.bands[0][0].value(name); math.Abs(got-exact) > 1e-12*math.Abs(exact) {
			t.Errorf("%s is %v, want %v", name, got, exact)
		}
	}
}

// numbersOf returns the numbers that geotiff:stats has for a band. Of the percentiles only their difference matters.
func numbersOf(p []float64) []float64 {
	n := float64(len(p))
	mean, std := stat.MeanStdDev(p, nil)
	return []float64{slices.Min(p), slices.Max(p), mean, std, 100, n, 2 * n, 3 * n, 4 * n}
}

// TestMomentsArePooled: means and deviations of weighted rows are gonum's, which has all of them at once, but for
// roundings.
func TestMomentsArePooled(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 2))
	for range 500 {
		n := 1 + rng.IntN(60)
		w, x, within := make([]float64, n), make([]float64, n), make([]float64, n)
		var m moments
		for i := range n {
			w[i], x[i] = float64(1+rng.IntN(1<<16)), 300+math.Ldexp(rng.NormFloat64(), rng.IntN(8))
			s := rng.Float64() * 50
			within[i] = s * s
			m.add(w[i], x[i], s)
		}
		mean, variance := stat.PopMeanVariance(x, w)
		std := math.Sqrt(variance + stat.Mean(within, w))
		if got := m.average(); math.Abs(got-mean) > 1e-13*math.Abs(mean) {
			t.Fatalf("the mean of %d rows is %v, want %v", n, got, mean)
		}
		if got := m.deviation(0); math.Abs(got-std) > 1e-12*std {
			t.Fatalf("the deviation of %d rows is %v, want %v", n, got, std)
		}
	}
}

// TestSharesOfClassesArePooled: they are means over pixels.
func TestSharesOfClassesArePooled(t *testing.T) {
	table := statsTable([][][]float64{{{1, 0}, {0.5, 0.5}}, {{0, 1}, {0.5, 0.5}}}, [][]float64{{2, 3, 3}, {2, 3, 9}})
	p := numberPool{number: "categorical", at: -1}
	if err := p.rows(t.Context(), table, []int{0, 1}); err != nil {
		t.Fatal(err)
	}
	for b, want := range [][]float64{{0.25, 0.75}, {0.5, 0.5}} {
		for k, share := range want {
			if got := p.bands[b][k].value(p.number); math.Abs(got-share) > 1e-15 {
				t.Errorf("band %d, class %d: %v, want %v", b, k, got, share)
			}
		}
	}
}

// TestNumbersThatCannotBePooled: files are not trusted to have as many numbers in each row.
func TestNumbersThatCannotBePooled(t *testing.T) {
	nine := numbersOf([]float64{1, 2})
	for name, c := range map[string]struct {
		stats  [][][]float64
		number string
		kind   fault.Kind
	}{
		"nothing":              {[][][]float64{nil, {}}, "mean", fault.NotFound},
		"other bands":          {[][][]float64{{nine}, {nine, nine}}, "mean", fault.Unsupported},
		"fewer bands":          {[][][]float64{{nine, nine}, {nine}}, "p95", fault.Unsupported},
		"classes":              {[][][]float64{{{0, 1}}}, "std", fault.Unsupported},
		"no numbers":           {[][][]float64{{{}}}, "min", fault.Unsupported},
		"measurements":         {[][][]float64{{nine}}, "categorical", fault.Unsupported},
		"other classes":        {[][][]float64{{{0, 1}}, {{0, 1, 0}}}, "categorical", fault.Unsupported},
		"classes, then values": {[][][]float64{{{0, 1}}, {nine}}, "categorical", fault.Unsupported},
	} {
		at := -1
		for i, n := range geotiffNames {
			if n == c.number {
				at = i
			}
		}
		rows, shapes := make([]int, len(c.stats)), make([][]float64, len(c.stats))
		for i := range rows {
			rows[i] = i
		}
		p := numberPool{number: c.number, at: at}
		if err := p.rows(t.Context(), statsTable(c.stats, shapes), rows); fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMemoryOfClassesIsCharged: a file may have any number of classes, and the memory of a server is bounded.
func TestMemoryOfClassesIsCharged(t *testing.T) {
	const limit = 1 << 20
	b := budget.New(limit, nil)
	for name, bands := range map[string][][]float64{
		"classes": {make([]float64, limit/8)}, "bands": make([][]float64, limit/8),
	} {
		account, err := b.OpenQuestion(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		p := numberPool{number: "categorical", at: -1}
		table := statsTable([][][]float64{bands}, make([][]float64, 1))
		if err := p.rows(budget.With(t.Context(), account), table, []int{0}); fault.KindOf(err) != fault.Limit {
			t.Errorf("%s: %v", name, err)
		}
		account.Close()
	}
}

// TestRowsWithoutPixels: they say nothing of a mean.
func TestRowsWithoutPixels(t *testing.T) {
	table := statsTable([][][]float64{{numbersOf([]float64{1, 2})}}, [][]float64{{1, 0, 8}})
	p := numberPool{number: "mean", at: 2}
	if err := p.rows(t.Context(), table, []int{0}); err != nil {
		t.Fatal(err)
	}
	if got := p.bands[0][0].value(p.number); !math.IsNaN(got) {
		t.Errorf("the mean is %v", got)
	}
}

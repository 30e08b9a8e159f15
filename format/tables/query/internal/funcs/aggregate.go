package funcs

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/format/tables/query/internal/bind"
	"github.com/chaski-eo/chaski/format/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/format/tables/query/internal/vec"
)

// Aggregates returns the aggregate functions, in the order of the documentation.
func Aggregates() []*bind.AggregateFunction {
	return []*bind.AggregateFunction{
		bind.DefineAggregate("count_star()", "the number of rows; written count(*)", bindCount, countOf),
		bind.DefineAggregate("count(x)", "the number of values that are not NULL", bindCount, countOf),
		bind.DefineAggregate("sum(x)", "the sum; of integers it is exact", bindSum, sumOf),
		bind.DefineAggregate("avg(x) mean", "the mean", bindNumbers, avgOf),
		bind.DefineAggregate("min(x)", "the least value", bindAnyValue, extreme(1)),
		bind.DefineAggregate("max(x)", "the greatest value", bindAnyValue, extreme(-1)),
		bind.DefineAggregate("median(x)", "the middle value, or the mean of the two middle values", bindMedian,
			quantileCont),
		bind.DefineAggregate("quantile_cont(x, fraction)",
			"the value at a fraction of the sorted values, interpolated; the fraction is a literal", bindQuantile,
			quantileCont),
		bind.DefineAggregate("stddev_samp(x) stddev", "the standard deviation of a sample", bindNumbers,
			spreadOf(func(n, m2 float64) (float64, bool) { return math.Sqrt(m2 / (n - 1)), n > 1 })),
		bind.DefineAggregate("stddev_pop(x)", "the standard deviation of the population", bindNumbers,
			spreadOf(func(n, m2 float64) (float64, bool) { return math.Sqrt(m2 / n), n > 0 })),
		bind.DefineAggregate("var_samp(x) variance", "the variance of a sample", bindNumbers,
			spreadOf(func(n, m2 float64) (float64, bool) { return m2 / (n - 1), n > 1 })),
		bind.DefineAggregate("var_pop(x)", "the variance of the population", bindNumbers,
			spreadOf(func(n, m2 float64) (float64, bool) { return m2 / n, n > 0 })),
		bind.DefineAggregate("any_value(x)", "the first value that is not NULL", bindAnyValue, extreme(0)),
	}
}

// Compute returns the aggregate for each group.
func Compute(a *bind.Aggregate, ev *eval.Evaluator, g *vec.Groups, rel *vec.Rows) (*tables.Vector, error) {
	args, err := ev.Columns(a.Args, rel)
	if err != nil {
		return nil, err
	}
	input := &vec.Grouped{Groups: g, Args: args}
	input.Rows = usedRows(a, input)
	return a.Function.Compute(a, input)
}

// usedRows returns the rows that an aggregate counts: with DISTINCT, the first row of each value in a group.
func usedRows(a *bind.Aggregate, in *vec.Grouped) []int32 {
	use := make([]int32, 0, len(in.Groups.Of))
	seen := vec.NewKeySet()
	var key []byte
	for row := range in.Groups.Of {
		if len(in.Args) > 0 && in.Args[0].Null(row) {
			continue
		}
		if a.Distinct {
			key = binary.LittleEndian.AppendUint32(key[:0], uint32(in.Groups.Of[row]))
			key = vec.AppendKey(key, in.Args[0], row)
			if _, added := seen.Add(key); !added {
				continue
			}
		}
		use = append(use, int32(row))
	}
	return use
}

func bindCount(b *bind.Binder, a *bind.Aggregate) tables.Type {
	if a.Function.Names[0] == "count_star" {
		return sql.Int64
	}
	node := a.OneArgument(b)
	if a.Distinct && sql.RepOf(node.Type) == sql.RepOther && node.Op != ast.OpColumn {
		b.Fail(sql.Unsupported("COUNT(DISTINCT …) of type %s", eval.TypeName(node)))
	}
	return sql.Int64
}

// bindAnyValue binds the aggregates that return one of the values.
func bindAnyValue(b *bind.Binder, a *bind.Aggregate) tables.Type {
	node := a.OneArgument(b)
	if sql.RepOf(node.Type) == sql.RepOther {
		return a.Refuse(b, node)
	}
	return node.Type
}

func bindSum(b *bind.Binder, a *bind.Aggregate) tables.Type {
	node := a.OneArgument(b)
	switch typ := node.Type; {
	case typ.Kind == tables.Bool, sql.IsInteger(typ), typ.Kind == tables.Null:
		return sql.Int64
	case typ.Kind == tables.Float64:
		return sql.Double
	case sql.IsDay(typ), typ.Kind == tables.Time:
		return a.Refuse(b, node)
	default:
		return a.WrongArgument(b, node)
	}
}

// bindNumbers binds an aggregate of one number, which is converted to DOUBLE.
func bindNumbers(b *bind.Binder, a *bind.Aggregate) tables.Type {
	node := a.OneArgument(b)
	if !sql.IsNumber(node.Type) && node.Type.Kind != tables.Null {
		return a.WrongArgument(b, node)
	}
	a.Args[0] = b.Convert(node, sql.Double)
	return sql.Double
}

func bindMedian(b *bind.Binder, a *bind.Aggregate) tables.Type {
	a.Fraction = 0.5
	return quantileType(b, a)
}

// bindQuantile binds QUANTILE_CONT, whose fraction must be a literal between 0 and 1.
func bindQuantile(b *bind.Binder, a *bind.Aggregate) tables.Type {
	if len(a.Args) != 2 {
		return b.Fail(sql.Bind("quantile_cont needs a value and a fraction")).Type
	}
	fraction := b.Convert(a.Args[1], sql.Double)
	if fraction.Literal == nil || fraction.Literal.Null || fraction.Literal.Float < 0 {
		b.Fail(sql.Unsupported("quantile_cont with a fraction that is not a literal, or negative"))
	} else if a.Fraction = fraction.Literal.Float; a.Fraction > 1 {
		b.Fail(sql.Bind("quantile_cont: a fraction must be between 0 and 1"))
	}
	a.Args = a.Args[:1]
	return quantileType(b, a)
}

// quantileType returns the type of a quantile: the type of the values, but DOUBLE for integers.
func quantileType(b *bind.Binder, a *bind.Aggregate) tables.Type {
	node := a.OneArgument(b)
	switch typ := node.Type; {
	case a.Distinct:
		b.Fail(sql.Unsupported("%s(DISTINCT …)", a.Function.Names[0]))
	case sql.IsInteger(typ):
		a.Args[0] = b.Convert(node, sql.Double)
		return sql.Double
	case typ.Kind != tables.Float64 && typ.Kind != tables.Null:
		return a.Refuse(b, node)
	}
	return node.Type
}

func countOf(_ *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
	counts, _ := in.Counts()
	return tables.NewInts(sql.Int64, counts, nil), nil
}

func sumOf(a *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
	_, nulls := in.Counts()
	if a.Type.Kind == tables.Float64 {
		return tables.NewFloats(a.Type, in.Sums(), nulls), nil
	}
	sums, x := make([]int64, in.Len()), in.Args[0].Ints()
	unsigned := sql.RepOf(in.Args[0].Type()) == sql.RepUint
	for _, row := range in.Rows {
		id := in.Groups.Of[row]
		before := sums[id]
		sums[id] += x[row]
		// DuckDB sums in 128 bits: a sum that wraps around would be wrong without an error.
		if unsigned && x[row] < 0 || (sums[id] < before) != (x[row] < 0) {
			return nil, sql.Unsupported("a sum that 64 bits do not hold")
		}
	}
	return tables.NewInts(a.Type, sums, nulls), nil
}

func avgOf(_ *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
	counts, nulls := in.Counts()
	mean := in.Sums()
	for id, c := range counts {
		mean[id] /= float64(max(c, 1))
	}
	return tables.NewFloats(sql.Double, mean, nulls), nil
}

// extreme returns the least (sign 1), the greatest (sign -1) or the first (sign 0) value of each group.
func extreme(sign int) bind.Computation {
	return func(_ *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
		return in.Args[0].Take(in.Best(sign))
	}
}

// spreadOf computes variances by Welford's method, as DuckDB does, so rounding is the same. f returns the result
// for a count and a sum of squared differences, and whether there is one.
func spreadOf(f func(count, m2 float64) (float64, bool)) bind.Computation {
	return func(a *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
		counts, means, squares := make([]float64, in.Len()), make([]float64, in.Len()), make([]float64, in.Len())
		x := in.Args[0].Floats()
		for _, row := range in.Rows {
			id := in.Groups.Of[row]
			counts[id]++
			delta := x[row] - means[id]
			means[id] += delta / counts[id]
			squares[id] += delta * (x[row] - means[id])
		}
		return finite(a, in, func(id int) (float64, bool) { return f(counts[id], squares[id]) })
	}
}

// finite returns a float for each group. A result that is not finite is an error, as in DuckDB.
func finite(a *bind.Aggregate, in *vec.Grouped, f func(id int) (float64, bool)) (*tables.Vector, error) {
	out, nulls := make([]float64, in.Len()), make([]bool, in.Len())
	for id := range out {
		x, ok := f(id)
		if out[id], nulls[id] = x, !ok; !ok {
			out[id] = 0
			continue
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("%s is out of range: its values are not all finite, or too large",
				a.Function.Names[0])
		}
	}
	return tables.NewFloats(sql.Double, out, nulls), nil
}

// quantileCont returns the values at the fraction, interpolated between the two nearest.
func quantileCont(a *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
	if a.Type.Kind == tables.Null {
		return tables.NewNulls(a.Type, in.Len()), nil
	}
	x := in.Args[0].Floats()
	out, nulls := make([]float64, in.Len()), make([]bool, in.Len())
	for id, group := range in.Sorted() {
		if nulls[id] = len(group) == 0; nulls[id] {
			continue
		}
		rank := float64(len(group)-1) * a.Fraction
		lo, hi := x[group[int(math.Floor(rank))]], x[group[int(math.Ceil(rank))]]
		out[id] = between(lo, hi, rank-math.Floor(rank), a.Type.Bits)
	}
	return tables.NewFloats(a.Type, out, nulls), nil
}

// between interpolates as DuckDB does. Its formulas for FLOAT and DOUBLE differ if a value is infinite.
func between(lo, hi, part float64, bits uint8) float64 {
	switch {
	case part == 0:
		return lo
	case bits < 64:
		l, h := float32(lo), float32(hi)
		return float64(l + float32(float64(h-l)*part))
	}
	return lo*(1-part) + hi*part
}

// Package aggs defines the aggregate functions and their documentation.
package aggs

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/tables/query/internal/bind"
	"github.com/chaski-eo/chaski/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/tables/query/internal/plan"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
	"github.com/chaski-eo/chaski/tables/query/internal/sqltype"
	"github.com/chaski-eo/chaski/tables/query/internal/vec"
)

// List returns the aggregate functions, in the order of the documentation.
func List() []*bind.AggregateFunction {
	quantile := []string{"x, fraction", "; the fraction is a literal or, for several results, a list of them"}
	spread := func(name, doc string, f func(count, m2 float64) (float64, bool),
		more ...string) *bind.AggregateFunction {
		return &bind.AggregateFunction{Names: append([]string{name}, more...), Signature: name + "(x)", Doc: doc,
			Bind: bindNumbers, Compute: spreadOf(f)}
	}
	best := func(name, doc string, sign int, more ...string) *bind.AggregateFunction {
		return &bind.AggregateFunction{Names: append([]string{name}, more...), Signature: name + "(x, y)", Doc: doc,
			Bind: bindBest, Compute: bestOf(sign)}
	}
	pairs := func(name, doc string, f func(p *paired) (float64, bool)) *bind.AggregateFunction {
		return &bind.AggregateFunction{Names: []string{name}, Signature: name + "(y, x)", Doc: doc, Bind: bindPair,
			Compute: pairsOf(f)}
	}
	return []*bind.AggregateFunction{
		{Names: []string{"count_star"}, Signature: "count_star()", Doc: "the number of rows; written count(*)",
			Bind: bindCount, Compute: countOf, KeepNulls: true},
		{Names: []string{"count"}, Signature: "count(x)", Doc: "the number of values that are not NULL",
			Bind: bindCount, Compute: countOf},
		{Names: []string{"count_if", "countif"}, Signature: "count_if(condition)",
			Doc:  "the number of rows for which a condition holds; NULL if it is NULL for all rows",
			Bind: bindTruths(sqltype.Huge), Compute: countIf},
		{Names: []string{"sum"}, Signature: "sum(x)", Doc: "the sum; of integers it is exact",
			Bind: bindSum, Compute: sumOf},
		{Names: []string{"avg", "mean"}, Signature: "avg(x)", Doc: "the mean", Bind: bindAvg, Compute: avgOf},
		{Names: []string{"min"}, Signature: "min(x)", Doc: "the least value", Bind: bindAnyValue, Compute: extreme(1)},
		{Names: []string{"max"}, Signature: "max(x)", Doc: "the greatest value", Bind: bindAnyValue,
			Compute: extreme(-1)},
		{Names: []string{"median"}, Signature: "median(x)",
			Doc: "the middle value, or the mean of the two middle values", Bind: bindMedian, Compute: quantileCont},
		{Names: []string{"quantile_cont"}, Signature: "quantile_cont(" + quantile[0] + ")",
			Doc: "the value at a fraction of the sorted values, interpolated; also `percentile_cont(fraction) " +
				"WITHIN GROUP (ORDER BY x)`" + quantile[1], Bind: bindQuantile(true), Compute: quantileCont},
		{Names: []string{"quantile_disc", "quantile"}, Signature: "quantile_disc(" + quantile[0] + ")",
			Doc:  "the same, but not interpolated: one of the values; also `percentile_disc`" + quantile[1],
			Bind: bindQuantile(false), Compute: quantileDisc},
		{Names: []string{"mode"}, Signature: "mode(x)",
			Doc: "the most frequent value; of equally frequent ones, the first", Bind: bindAnyValue, Compute: modeOf},
		spread("stddev_samp", "the standard deviation of a sample", func(n, m2 float64) (float64, bool) {
			return math.Sqrt(m2 / (n - 1)), n > 1
		}, "stddev"),
		spread("stddev_pop", "the standard deviation of the population", func(n, m2 float64) (float64, bool) {
			return math.Sqrt(m2 / n), n > 0
		}),
		spread("var_samp", "the variance of a sample", func(n, m2 float64) (float64, bool) {
			return m2 / (n - 1), n > 1
		}, "variance"),
		spread("var_pop", "the variance of the population", func(n, m2 float64) (float64, bool) {
			return m2 / n, n > 0
		}),
		pairs("corr", "the correlation", (*paired).corr),
		pairs("covar_pop", "the covariance of the population", func(p *paired) (float64, bool) {
			return p.xy / p.n, p.n > 0
		}),
		pairs("covar_samp", "the covariance of a sample", func(p *paired) (float64, bool) {
			return p.xy / (p.n - 1), p.n > 1
		}),
		{Names: []string{"first", "arbitrary"}, Signature: "first(x)",
			Doc: "the value of the first row, which may be NULL", Bind: bindAnyValue,
			Compute: firstOf(false), KeepNulls: true},
		{Names: []string{"last"}, Signature: "last(x)", Doc: "the value of the last row, which may be NULL",
			Bind: bindAnyValue, Compute: firstOf(true), KeepNulls: true},
		{Names: []string{"any_value"}, Signature: "any_value(x)", Doc: "the first value that is not NULL",
			Bind: bindAnyValue, Compute: firstOf(false)},
		best("arg_min", "x of the first row with the least y", 1, "argmin", "min_by"),
		best("arg_max", "x of the first row with the greatest y", -1, "argmax", "max_by"),
		{Names: []string{"bool_and"}, Signature: "bool_and(condition)",
			Doc: "whether the condition holds for all rows", Bind: bindTruths(sqltype.Bool), Compute: allOf(false)},
		{Names: []string{"bool_or"}, Signature: "bool_or(condition)",
			Doc: "whether the condition holds for any row", Bind: bindTruths(sqltype.Bool), Compute: allOf(true)},
		{Names: []string{"string_agg", "group_concat", "listagg"}, Signature: "string_agg(string[, separator])",
			Doc:  "the strings joined by a separator, which is a literal (default: a comma)",
			Bind: bindJoined, Compute: joinedOf},
		{Names: []string{"list", "array_agg"}, Signature: "list(x)", Doc: "a list of the values, including NULLs",
			Bind: bindList, Compute: listOf, KeepNulls: true},
	}
}

// Compute returns the aggregate for each group.
func Compute(a *bind.Aggregate, ev *eval.Evaluator, g *vec.Groups, rel *vec.Rows) (*tables.Vector, error) {
	args, err := ev.Columns(a.Args, rel)
	if err != nil {
		return nil, err
	}
	in := &vec.Grouped{Groups: g, Args: args}
	if in.Rows, err = usedRows(a, ev, in, rel); err != nil {
		return nil, err
	}
	return a.Function.Compute(a, in)
}

// usedRows returns the rows that an aggregate counts, in order: with DISTINCT, the first row of each value in a group.
func usedRows(a *bind.Aggregate, ev *eval.Evaluator, in *vec.Grouped, rel *vec.Rows) ([]int32, error) {
	keep, err := filterValues(a, ev, rel)
	if err != nil {
		return nil, err
	}
	use := make([]int32, 0, len(in.Groups.Of))
	seen := vec.NewKeySet()
	var key []byte
	add := func(r int32) {
		left := keep != nil && (keep.Null(int(r)) || keep.Int(int(r)) == 0)
		if left || !a.Function.KeepNulls && in.Args[0].Null(int(r)) {
			return
		}
		if a.Distinct {
			key = binary.LittleEndian.AppendUint32(key[:0], uint32(in.Groups.Of[r]))
			key = vec.AppendKey(key, in.Args[0], int(r))
			if _, added := seen.Add(key); !added {
				return
			}
		}
		use = append(use, r)
	}
	if len(a.OrderBy) == 0 {
		for r := range in.Groups.Of {
			add(int32(r))
		}
		return use, nil
	}
	keys, err := ev.SortKeys(a.OrderBy, a.OrderTerms, rel)
	if err != nil {
		return nil, err
	}
	for _, r := range vec.SortRows(keys, len(in.Groups.Of), -1) {
		add(r)
	}
	return use, nil
}

// filterValues returns the values of the filter, or nil without a filter.
func filterValues(a *bind.Aggregate, ev *eval.Evaluator, rel *vec.Rows) (*tables.Vector, error) {
	if a.Filter == nil {
		return nil, nil
	}
	return ev.Column(a.Filter, rel)
}

func bindCount(_ *bind.Binder, a *bind.Aggregate) (tables.Type, error) {
	if a.Function.Names[0] == "count_star" {
		return sqltype.Int64, nil
	}
	n, err := a.OneArgument()
	if err == nil && a.Distinct && sqltype.RepOf(n.Type) == sqltype.RepOther && n.Op != ast.OpColumn {
		err = sqlerr.Unsupported("COUNT(DISTINCT …) of type %s", plan.TypeName(n))
	}
	return sqltype.Int64, err
}

// bindAnyValue binds the aggregates that return one of the values.
func bindAnyValue(b *bind.Binder, a *bind.Aggregate) (tables.Type, error) {
	node, err := a.OneArgument()
	if err != nil {
		return tables.Type{}, err
	}
	if sqltype.RepOf(node.Type) == sqltype.RepOther {
		return tables.Type{}, sqlerr.Unsupported("%s of type %s", a.Function.Names[0], plan.TypeName(node))
	}
	return node.Type, nil
}

func bindSum(b *bind.Binder, a *bind.Aggregate) (tables.Type, error) {
	node, err := a.OneArgument()
	if err != nil {
		return tables.Type{}, err
	}
	switch typ := node.Type; {
	case typ.Kind == tables.Bool, sqltype.IsInteger(typ), typ.Kind == tables.Null:
		return sqltype.Huge, nil
	case typ.Kind == tables.Float64:
		return sqltype.Double, nil
	case typ.Kind == tables.Decimal:
		return tables.Type{Kind: tables.Decimal, Precision: sqltype.MaxDigits, Scale: typ.Scale}, nil
	case sqltype.IsDay(typ), typ.Kind == tables.Time:
		return typ, sqlerr.Unsupported("sum of type %s", plan.TypeName(node))
	default:
		return typ, a.WrongArgument(node)
	}
}

func bindAvg(b *bind.Binder, a *bind.Aggregate) (tables.Type, error) {
	node, err := a.OneArgument()
	if err != nil {
		return tables.Type{}, err
	}
	switch {
	case sqltype.IsNumeric(node.Type), node.Type.Kind == tables.Null:
		return sqltype.Double, nil
	case sqltype.IsDay(node.Type), node.Type.Kind == tables.Time:
		return node.Type, sqlerr.Unsupported("avg of type %s", plan.TypeName(node))
	}
	return node.Type, a.WrongArgument(node)
}

// bindNumbers binds an aggregate of one number, which is converted to DOUBLE.
func bindNumbers(b *bind.Binder, a *bind.Aggregate) (tables.Type, error) {
	if _, err := a.OneArgument(); err != nil {
		return tables.Type{}, err
	}
	return sqltype.Double, doubles(a, b)
}

// doubles converts all arguments to DOUBLE.
func doubles(a *bind.Aggregate, b *bind.Binder) (err error) {
	for i, node := range a.Args {
		if !sqltype.IsNumeric(node.Type) && node.Type.Kind != tables.Null {
			return a.WrongArgument(node)
		}
		if a.Args[i], err = b.Convert(node, sqltype.Double); err != nil {
			return err
		}
	}
	return nil
}

func bindPair(b *bind.Binder, a *bind.Aggregate) (tables.Type, error) {
	if len(a.Args) != 2 {
		return tables.Type{}, sqlerr.Bind("%s of %d values", a.Function.Names[0], len(a.Args))
	}
	return sqltype.Double, doubles(a, b)
}

func bindBest(b *bind.Binder, a *bind.Aggregate) (tables.Type, error) {
	switch {
	case len(a.Args) == 3:
		return tables.Type{}, sqlerr.Unsupported("%s of several rows", a.Function.Names[0])
	case len(a.Args) != 2:
		return tables.Type{}, sqlerr.Bind("%s of %d values", a.Function.Names[0], len(a.Args))
	}
	for _, n := range a.Args {
		if sqltype.RepOf(n.Type) == sqltype.RepOther {
			return tables.Type{}, sqlerr.Unsupported("%s of type %s", a.Function.Names[0], plan.TypeName(n))
		}
	}
	return a.Args[0].Type, nil
}

func bindTruths(t tables.Type) func(b *bind.Binder, a *bind.Aggregate) (tables.Type, error) {
	return func(b *bind.Binder, a *bind.Aggregate) (tables.Type, error) {
		n, err := a.OneArgument()
		if err == nil {
			a.Args[0], err = b.Truth(n)
		}
		return t, err
	}
}

func bindJoined(b *bind.Binder, a *bind.Aggregate) (tables.Type, error) {
	a.Separator = ","
	if len(a.Args) == 2 {
		node := a.Args[1]
		if node.Literal == nil || node.Literal.Null || node.Type.Kind != tables.String {
			return sqltype.String, sqlerr.Unsupported("string_agg with a separator that is not a literal")
		}
		a.Separator, a.Args = node.Literal.String, a.Args[:1]
	}
	n, err := a.OneArgument()
	if err == nil {
		a.Args[0], err = b.AsString(n)
	}
	return sqltype.String, err
}

func bindList(b *bind.Binder, a *bind.Aggregate) (tables.Type, error) {
	t, err := bindAnyValue(b, a)
	return tables.Type{Kind: tables.List, Elem: &t}, err
}

func bindMedian(b *bind.Binder, a *bind.Aggregate) (tables.Type, error) {
	a.Fractions = []*big.Rat{big.NewRat(1, 2)}
	return quantileType(a, b, true)
}

func bindQuantile(cont bool) func(b *bind.Binder, a *bind.Aggregate) (tables.Type, error) {
	return func(b *bind.Binder, a *bind.Aggregate) (tables.Type, error) {
		if len(a.Args) == 2 && !a.ListResult {
			if err := a.AddFraction(a.Args[1]); err != nil {
				return tables.Type{}, err
			}
			a.Args = a.Args[:1]
		}
		if len(a.Fractions) == 0 {
			return tables.Type{}, sqlerr.Bind("%s needs a value and a fraction", a.Function.Names[0])
		}
		return quantileType(a, b, cont)
	}
}

// quantileType returns the type of a quantile: the type of the values, but DOUBLE for interpolated integers.
func quantileType(a *bind.Aggregate, b *bind.Binder, cont bool) (tables.Type, error) {
	node, err := a.OneArgument()
	if err != nil {
		return tables.Type{}, err
	}
	typ := node.Type
	switch {
	case a.Distinct:
		return typ, sqlerr.Unsupported("%s(DISTINCT …)", a.Function.Names[0])
	case cont && sqltype.IsInteger(typ):
		typ = sqltype.Double
		if a.Args[0], err = b.Convert(node, typ); err != nil {
			return typ, err
		}
	case cont && typ.Kind != tables.Float64 && typ.Kind != tables.Null, sqltype.RepOf(typ) == sqltype.RepOther:
		return typ, sqlerr.Unsupported("%s of type %s", a.Function.Names[0], plan.TypeName(node))
	}
	if a.ListResult {
		return tables.Type{Kind: tables.List, Elem: &typ}, nil
	}
	return typ, nil
}

func countOf(_ *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
	counts, _ := in.Counts()
	return tables.NewInts(sqltype.Int64, counts, nil), nil
}

func countIf(_ *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
	counts := make([]int64, in.Len())
	for _, r := range in.Rows {
		counts[in.Groups.Of[r]] += in.Args[0].Int(int(r))
	}
	_, nulls := in.Counts()
	return tables.NewBigs(sqltype.Huge, counts, make([]int64, len(counts)), nulls), nil
}

func sumOf(a *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
	_, nulls := in.Counts()
	if a.Type.Kind == tables.Float64 {
		return tables.NewFloats(a.Type, in.Sums(), nulls), nil
	}
	lo, hi := vec.SumInts(in.Groups, in.Args[0], in.Rows, in.Len())
	return tables.NewBigs(a.Type, lo, hi, nulls), nil
}

func avgOf(a *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
	counts, nulls := in.Counts()
	var mean []float64
	if typ := in.Args[0].Type(); sqltype.RepOf(typ) == sqltype.RepFloat {
		mean = in.Sums()
	} else {
		mean = make([]float64, len(counts))
		lo, hi := vec.SumInts(in.Groups, in.Args[0], in.Rows, len(counts))
		for id := range mean {
			mean[id] = sqltype.DecimalFloat(hi[id], lo[id], int(typ.Scale))
		}
	}
	for id, c := range counts {
		mean[id] /= float64(max(c, 1))
	}
	return tables.NewFloats(sqltype.Double, mean, nulls), nil
}

// extreme returns the least (sign 1) or the greatest (sign -1) value of each group.
func extreme(sign int) func(a *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
	return func(_ *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
		return in.Pick(in.Best(in.Args[0], sign))
	}
}

func bestOf(sign int) func(a *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
	return func(_ *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
		order := in.Args[1]
		in.Rows = slices.DeleteFunc(in.Rows, func(r int32) bool { return order.Null(int(r)) })
		return in.Pick(in.Best(order, sign))
	}
}

func firstOf(last bool) func(a *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
	return func(_ *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
		rows := in.NoRows()
		for _, r := range in.Rows {
			if id := in.Groups.Of[r]; last || rows[id] < 0 {
				rows[id] = int(r)
			}
		}
		return in.Pick(rows)
	}
}

// modeOf returns the most frequent value of each group; of equally frequent ones, the first.
func modeOf(_ *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
	seen := vec.NewKeySet()
	var first []int32
	var counts []int
	var key []byte
	for _, r := range in.Rows {
		key = vec.AppendKey(binary.LittleEndian.AppendUint32(key[:0], uint32(in.Groups.Of[r])), in.Args[0], int(r))
		id, added := seen.Add(key)
		if added {
			first, counts = append(first, r), append(counts, 0)
		}
		counts[id]++
	}
	rows, highest := in.NoRows(), make([]int, in.Len())
	for i, r := range first {
		if id := in.Groups.Of[r]; counts[i] > highest[id] {
			rows[id], highest[id] = int(r), counts[i]
		}
	}
	return in.Pick(rows)
}

func allOf(or bool) func(a *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
	return func(_ *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
		_, nulls := in.Counts()
		out := make([]int64, in.Len())
		for id := range out {
			out[id] = sqltype.Bit(!or)
		}
		for _, r := range in.Rows {
			if (in.Args[0].Int(int(r)) != 0) == or {
				out[in.Groups.Of[r]] = sqltype.Bit(or)
			}
		}
		return tables.NewInts(sqltype.Bool, out, nulls), nil
	}
}

// spreadOf computes variances by Welford's method, as DuckDB does, so that rounding is the same. f returns the result
// for a count and a sum of squared differences, and whether there is one.
func spreadOf(f func(count, m2 float64) (float64, bool)) func(a *bind.Aggregate,
	in *vec.Grouped) (*tables.Vector, error) {
	return func(a *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
		n, mean, m2 := make([]float64, in.Len()), make([]float64, in.Len()), make([]float64, in.Len())
		x := in.Args[0].Floats()
		for _, r := range in.Rows {
			id := in.Groups.Of[r]
			n[id]++
			d := x[r] - mean[id]
			mean[id] += d / n[id]
			m2[id] += d * (x[r] - mean[id])
		}
		return finite(a, in, func(id int) (float64, bool) { return f(n[id], m2[id]) })
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
	return tables.NewFloats(sqltype.Double, out, nulls), nil
}

// paired holds sums over pairs of values: the squared differences from the means, and their products.
type paired struct{ n, mx, my, xx, yy, xy float64 }

func (p *paired) add(x, y float64) {
	p.n++
	dx, dy := x-p.mx, y-p.my
	p.mx += dx / p.n
	p.my += dy / p.n
	p.xx += dx * (x - p.mx)
	p.yy += dy * (y - p.my)
	p.xy += dx * (y - p.my)
}

func (p *paired) corr() (float64, bool) {
	return p.xy / (math.Sqrt(p.xx) * math.Sqrt(p.yy)), p.n > 0
}

func pairsOf(f func(p *paired) (float64, bool)) func(a *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
	return func(a *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
		pairs := make([]paired, in.Len())
		values, vector := in.Args[0], in.Args[1]
		for _, r := range in.Rows {
			if !vector.Null(int(r)) {
				pairs[in.Groups.Of[r]].add(vector.Float(int(r)), values.Float(int(r)))
			}
		}
		if a.Function.Names[0] == "corr" { // unlike the others it may be NaN: it is, if all values are the same
			out, nulls := make([]float64, len(pairs)), make([]bool, len(pairs))
			for id := range pairs {
				c, ok := f(&pairs[id])
				if out[id], nulls[id] = c, !ok; !ok {
					out[id] = 0
				}
			}
			return tables.NewFloats(sqltype.Double, out, nulls), nil
		}
		return finite(a, in, func(id int) (float64, bool) { return f(&pairs[id]) })
	}
}

// quantileDisc returns the values at the fractions: value number ceil(fraction * count), the first for 0.
func quantileDisc(a *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
	var rows []int
	for _, group := range in.Sorted() {
		for _, ratio := range a.Fractions {
			if len(group) == 0 {
				rows = append(rows, -1)
				continue
			}
			rank := new(big.Int).Mul(ratio.Num(), big.NewInt(int64(len(group))))
			rank.Add(rank, ratio.Denom()).Sub(rank, big.NewInt(1)).Quo(rank, ratio.Denom())
			rows = append(rows, int(group[max(rank.Int64(), 1)-1]))
		}
	}
	values, err := in.Pick(rows)
	if err != nil {
		return nil, err
	}
	return listed(a, in, values), nil
}

// quantileCont returns the values at the fractions, interpolated between the two nearest.
func quantileCont(a *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
	x := in.Args[0].Floats()
	elem := a.Type
	if a.ListResult {
		elem = *a.Type.Elem
	}
	if elem.Kind == tables.Null {
		return tables.NewNulls(a.Type, in.Len()), nil
	}
	var out []float64
	var nulls []bool
	for _, group := range in.Sorted() {
		for _, ratio := range a.Fractions {
			nulls = append(nulls, len(group) == 0)
			if len(group) == 0 {
				out = append(out, 0)
				continue
			}
			fraction, _ := ratio.Float64()
			rank := float64(len(group)-1) * fraction
			lo, hi := x[group[int(math.Floor(rank))]], x[group[int(math.Ceil(rank))]]
			out = append(out, between(lo, hi, rank-math.Floor(rank), elem.Bits))
		}
	}
	return listed(a, in, tables.NewFloats(elem, out, nulls)), nil
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

// listed returns the values as they are, or as lists if each group has several.
func listed(a *bind.Aggregate, in *vec.Grouped, v *tables.Vector) *tables.Vector {
	if !a.ListResult {
		return v
	}
	_, nulls := in.Counts()
	offs := make([]uint32, in.Len()+1)
	for id := range in.Len() {
		offs[id+1] = offs[id] + uint32(len(a.Fractions))
	}
	return tables.NewList(v, offs, nulls)
}

func joinedOf(a *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
	_, nulls := in.Counts()
	var data []byte
	offs := make([]uint32, 1, in.Len()+1)
	for _, rows := range in.ByGroup() {
		for i, r := range rows {
			if i > 0 {
				data = append(data, a.Separator...)
			}
			data = append(data, in.Args[0].Bytes(int(r))...)
			if len(data) > vec.MaxBatchBytes {
				return nil, fault.New(fault.Limit, "query", fault.NoOffset, "string_agg of more than %d MiB",
					vec.MaxBatchBytes>>20)
			}
		}
		offs = append(offs, uint32(len(data)))
	}
	return tables.NewBytes(sqltype.String, data, offs, nulls), nil
}

// listOf returns the values of each group as a list, NULL for a group without rows.
func listOf(a *bind.Aggregate, in *vec.Grouped) (*tables.Vector, error) {
	_, nulls := in.Counts()
	var rows []int
	offs := make([]uint32, 1, in.Len()+1)
	for _, group := range in.ByGroup() {
		rows = append(rows, vec.ToInts(group)...)
		offs = append(offs, uint32(len(rows)))
	}
	values, err := in.Pick(rows)
	if err != nil {
		return nil, err
	}
	return tables.NewList(values, offs, nulls), nil
}

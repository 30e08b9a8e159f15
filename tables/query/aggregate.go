package query

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
)

// aggregateFunction is a function of the values of a group.
type aggregateFunction struct {
	names []string // the first is its name, the others mean the same
	sig   string
	doc   string
	// bind checks the arguments and returns the type of the result.
	bind func(b *binder, a *aggregate) (tables.Type, error)
	// compute returns a value for each group. The rows of use count, in that order: those that pass the filter and whose
	// first argument is not null, or all that pass where keepNulls is set.
	compute   func(a *aggregate, in *aggregated) (*tables.Vector, error)
	keepNulls bool
}

// aggregate is a call of an aggregate function.
type aggregate struct {
	f        *aggregateFunction
	args     []*node
	distinct bool
	filter   *node // nil: none
	order    []*node
	by       []orderItem // of order
	fraction []*big.Rat  // of quantiles
	many     bool        // of quantiles: a list of them
	text     string      // the separator of STRING_AGG
	typ      tables.Type
}

// aggregated is what an aggregate is computed of.
type aggregated struct {
	g    *groups
	args []*tables.Vector
	use  []int32 // rows
}

func (in *aggregated) groups() int { return len(in.g.first) }

// aggregates are the aggregate functions by each of their names.
var aggregates = map[string]*aggregateFunction{}

var aggregateList []*aggregateFunction

func init() {
	quantile := []string{"x, fraction", "; the fraction is a literal or, for several results, a list of them"}
	spread := func(name, doc string, f func(count, m2 float64) (float64, bool), more ...string) *aggregateFunction {
		return &aggregateFunction{names: append([]string{name}, more...), sig: name + "(x)", doc: doc, bind: bindNumbers, compute: spreadOf(f)}
	}
	best := func(name, doc string, sign int, more ...string) *aggregateFunction {
		return &aggregateFunction{names: append([]string{name}, more...), sig: name + "(x, y)", doc: doc, bind: bindBest, compute: bestOf(sign)}
	}
	pairs := func(name, doc string, f func(p *paired) (float64, bool)) *aggregateFunction {
		return &aggregateFunction{names: []string{name}, sig: name + "(y, x)", doc: doc, bind: bindPair, compute: pairsOf(f)}
	}
	aggregateList = []*aggregateFunction{
		{names: []string{"count_star"}, sig: "count_star()", doc: "the rows; written count(*)", bind: bindCount, compute: countOf, keepNulls: true},
		{names: []string{"count"}, sig: "count(x)", doc: "the values that are not NULL", bind: bindCount, compute: countOf},
		{names: []string{"count_if", "countif"}, sig: "count_if(condition)", doc: "the rows for which a condition holds; NULL if there is none for which it is known", bind: bindTruths(hugeType), compute: countIf},
		{names: []string{"sum"}, sig: "sum(x)", doc: "the sum; of integers it is exact", bind: bindSum, compute: sumOf},
		{names: []string{"avg", "mean"}, sig: "avg(x)", doc: "the mean", bind: bindAvg, compute: avgOf},
		{names: []string{"min"}, sig: "min(x)", doc: "the least value", bind: bindAnyValue, compute: extreme(1)},
		{names: []string{"max"}, sig: "max(x)", doc: "the greatest value", bind: bindAnyValue, compute: extreme(-1)},
		{names: []string{"median"}, sig: "median(x)", doc: "the value in the middle, or between the two of the middle", bind: bindMedian, compute: quantileCont},
		{names: []string{"quantile_cont"}, sig: "quantile_cont(" + quantile[0] + ")", doc: "the value at a fraction of the sorted ones, interpolated; also `percentile_cont(fraction) WITHIN GROUP (ORDER BY x)`" + quantile[1], bind: bindQuantile(true), compute: quantileCont},
		{names: []string{"quantile_disc", "quantile"}, sig: "quantile_disc(" + quantile[0] + ")", doc: "the same, one of the values; also `percentile_disc`" + quantile[1], bind: bindQuantile(false), compute: quantileDisc},
		{names: []string{"mode"}, sig: "mode(x)", doc: "the most frequent value, of several the first", bind: bindAnyValue, compute: modeOf},
		spread("stddev_samp", "the standard deviation of a sample", func(n, m2 float64) (float64, bool) { return math.Sqrt(m2 / (n - 1)), n > 1 }, "stddev"),
		spread("stddev_pop", "the standard deviation of all", func(n, m2 float64) (float64, bool) { return math.Sqrt(m2 / n), n > 0 }),
		spread("var_samp", "the variance of a sample", func(n, m2 float64) (float64, bool) { return m2 / (n - 1), n > 1 }, "variance"),
		spread("var_pop", "the variance of all", func(n, m2 float64) (float64, bool) { return m2 / n, n > 0 }),
		pairs("corr", "the correlation", (*paired).corr),
		pairs("covar_pop", "the covariance of all", func(p *paired) (float64, bool) { return p.xy / p.n, p.n > 0 }),
		pairs("covar_samp", "the covariance of a sample", func(p *paired) (float64, bool) { return p.xy / (p.n - 1), p.n > 1 }),
		{names: []string{"first", "arbitrary"}, sig: "first(x)", doc: "the value of the first row, which may be NULL", bind: bindAnyValue, compute: firstOf(false), keepNulls: true},
		{names: []string{"last"}, sig: "last(x)", doc: "the value of the last row, which may be NULL", bind: bindAnyValue, compute: firstOf(true), keepNulls: true},
		{names: []string{"any_value"}, sig: "any_value(x)", doc: "the first value that is not NULL", bind: bindAnyValue, compute: firstOf(false)},
		best("arg_min", "x of the first row with the least y", 1, "argmin", "min_by"),
		best("arg_max", "x of the first row with the greatest y", -1, "argmax", "max_by"),
		{names: []string{"bool_and"}, sig: "bool_and(condition)", doc: "whether it holds for all", bind: bindTruths(boolType), compute: allOf(false)},
		{names: []string{"bool_or"}, sig: "bool_or(condition)", doc: "whether it holds for one", bind: bindTruths(boolType), compute: allOf(true)},
		{names: []string{"string_agg", "group_concat", "listagg"}, sig: "string_agg(text[, separator])", doc: "the texts with a separator (default: a comma, a literal) between them", bind: bindJoined, compute: joinedOf},
		{names: []string{"list", "array_agg"}, sig: "list(x)", doc: "a list of the values, NULLs too", bind: bindList, compute: listOf, keepNulls: true},
	}
	for _, f := range aggregateList {
		for _, name := range f.names {
			aggregates[name] = f
		}
	}
}

// maxAggregates bounds the aggregates of a query: each is a column.
const maxAggregates = 1000

// aggregate binds a call of an aggregate function.
func (b *binder) aggregate(e *expr) (*node, error) {
	switch {
	case b.inAgg:
		return nil, binderError("aggregate function calls cannot be nested")
	case !b.allow:
		return nil, binderError("%s cannot contain aggregates", b.where)
	}
	a := aggregate{f: aggregates[e.name], distinct: e.flag}
	if e.name == "count" && len(e.args) == 0 && !e.flag {
		a.f = aggregates["count_star"]
	}
	b.inAgg = true
	err := b.aggregateParts(&a, e)
	b.inAgg = false
	if err != nil {
		return nil, err
	}
	if a.typ, err = a.f.bind(b, &a); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(b.aggs, func(o aggregate) bool { return a.same(&o) })
	if i < 0 {
		if len(b.aggs) >= maxAggregates {
			return nil, fault.New(fault.Limit, "query", fault.NoOffset, "more than %d aggregates", maxAggregates)
		}
		i = len(b.aggs)
		b.aggs = append(b.aggs, a)
	}
	return b.intern(&node{op: opAggregate, agg: i, typ: a.typ})
}

// aggregateParts binds the arguments, the filter and the order of an aggregate.
func (b *binder) aggregateParts(a *aggregate, e *expr) (err error) {
	args := e.args
	if len(e.order) > 0 && (a.f.names[0] == "quantile_cont" || a.f.names[0] == "quantile_disc") { // WITHIN GROUP
		args = append([]*expr{e.order[0].e}, args...)
	} else {
		for _, o := range e.order {
			if o.e == nil {
				return unsupported("ORDER BY ALL in an aggregate")
			}
			n, err := b.bind(o.e)
			if err != nil {
				return err
			}
			if repOf(n.typ) == repOther {
				return unsupported("ORDER BY of type %s", typeName(n))
			}
			a.order, a.by = append(a.order, n), append(a.by, o)
		}
	}
	for _, x := range args {
		if x.op == opList {
			if err := b.fractions(a, x.args); err != nil {
				return err
			}
			continue
		}
		n, err := b.bind(x)
		if err != nil {
			return err
		}
		a.args = append(a.args, n)
	}
	if e.filter != nil {
		a.filter, err = b.condition(e.filter)
	}
	return err
}

// same reports whether two calls have the same results.
func (a *aggregate) same(o *aggregate) bool {
	if a.f != o.f || a.distinct != o.distinct || a.filter != o.filter || a.text != o.text || a.many != o.many || !slices.Equal(a.args, o.args) || !slices.Equal(a.order, o.order) {
		return false
	}
	return slices.EqualFunc(a.by, o.by, func(x, y orderItem) bool { return x.desc == y.desc && x.first == y.first }) &&
		slices.EqualFunc(a.fraction, o.fraction, func(x, y *big.Rat) bool { return x.Cmp(y) == 0 })
}

// compute returns the aggregate for each group.
func (a *aggregate) compute(ev *evaluator, g *groups, rel *rows) (*tables.Vector, error) {
	args, err := ev.columns(a.args, rel)
	if err != nil {
		return nil, err
	}
	in := &aggregated{g: g, args: args}
	if in.use, err = a.rows(ev, in, rel); err != nil {
		return nil, err
	}
	return a.f.compute(a, in)
}

// rows returns the rows that count, in order: with DISTINCT the first of each value in a group.
func (a *aggregate) rows(ev *evaluator, in *aggregated, rel *rows) ([]int32, error) {
	keep, err := a.kept(ev, rel)
	if err != nil {
		return nil, err
	}
	use := make([]int32, 0, len(in.g.of))
	seen := newKeySet()
	var key []byte
	add := func(r int32) {
		if keep != nil && (keep.Null(int(r)) || keep.Int(int(r)) == 0) || !a.f.keepNulls && in.args[0].Null(int(r)) {
			return
		}
		if a.distinct {
			key = binary.LittleEndian.AppendUint32(key[:0], uint32(in.g.of[r]))
			key = appendKey(key, in.args[0], int(r))
			if _, added := seen.add(key); !added {
				return
			}
		}
		use = append(use, r)
	}
	if len(a.order) == 0 {
		for r := range in.g.of {
			add(int32(r))
		}
		return use, nil
	}
	keys, err := ev.sortKeys(a.order, a.by, rel)
	if err != nil {
		return nil, err
	}
	for _, r := range permutation(keys, len(in.g.of), -1) {
		add(r)
	}
	return use, nil
}

// kept returns the values of the filter, nil if there is none.
func (a *aggregate) kept(ev *evaluator, rel *rows) (*tables.Vector, error) {
	if a.filter == nil {
		return nil, nil
	}
	return ev.column(a.filter, rel)
}

// one checks that there is one argument.
func (a *aggregate) one() (*node, error) {
	if len(a.args) != 1 {
		return nil, binderError("%s of %d values", a.f.names[0], len(a.args))
	}
	return a.args[0], nil
}

func (a *aggregate) wrong(n *node) error {
	return binderError("no function matches %s(%s)", a.f.names[0], typeName(n))
}

func bindCount(_ *binder, a *aggregate) (tables.Type, error) {
	if a.f.names[0] == "count_star" {
		return int64Type, nil
	}
	n, err := a.one()
	if err == nil && a.distinct && repOf(n.typ) == repOther && n.op != opColumn {
		err = unsupported("COUNT(DISTINCT …) of type %s", typeName(n))
	}
	return int64Type, err
}

// bindAnyValue binds the aggregates that return one of the values.
func bindAnyValue(b *binder, a *aggregate) (tables.Type, error) {
	n, err := a.one()
	if err != nil {
		return tables.Type{}, err
	}
	if repOf(n.typ) == repOther {
		return tables.Type{}, unsupported("%s of type %s", a.f.names[0], typeName(n))
	}
	return n.typ, nil
}

func bindSum(b *binder, a *aggregate) (tables.Type, error) {
	n, err := a.one()
	if err != nil {
		return tables.Type{}, err
	}
	switch t := n.typ; {
	case t.Kind == tables.Bool, isInteger(t), t.Kind == tables.Null:
		return hugeType, nil
	case t.Kind == tables.Float64:
		return doubleType, nil
	case t.Kind == tables.Decimal:
		return tables.Type{Kind: tables.Decimal, Precision: maxDigits, Scale: t.Scale}, nil
	case isDay(t), t.Kind == tables.Time:
		return t, unsupported("sum of type %s", typeName(n))
	default:
		return t, a.wrong(n)
	}
}

func bindAvg(b *binder, a *aggregate) (tables.Type, error) {
	n, err := a.one()
	if err != nil {
		return tables.Type{}, err
	}
	switch {
	case isNumeric(n.typ), n.typ.Kind == tables.Null:
		return doubleType, nil
	case isDay(n.typ), n.typ.Kind == tables.Time:
		return n.typ, unsupported("avg of type %s", typeName(n))
	}
	return n.typ, a.wrong(n)
}

// bindNumbers binds an aggregate of one number, as DOUBLE.
func bindNumbers(b *binder, a *aggregate) (tables.Type, error) {
	if _, err := a.one(); err != nil {
		return tables.Type{}, err
	}
	return doubleType, a.doubles(b)
}

// doubles makes floats of all arguments.
func (a *aggregate) doubles(b *binder) (err error) {
	for i, n := range a.args {
		if !isNumeric(n.typ) && n.typ.Kind != tables.Null {
			return a.wrong(n)
		}
		if a.args[i], err = b.convert(n, doubleType); err != nil {
			return err
		}
	}
	return nil
}

func bindPair(b *binder, a *aggregate) (tables.Type, error) {
	if len(a.args) != 2 {
		return tables.Type{}, binderError("%s of %d values", a.f.names[0], len(a.args))
	}
	return doubleType, a.doubles(b)
}

func bindBest(b *binder, a *aggregate) (tables.Type, error) {
	switch {
	case len(a.args) == 3:
		return tables.Type{}, unsupported("%s of several rows", a.f.names[0])
	case len(a.args) != 2:
		return tables.Type{}, binderError("%s of %d values", a.f.names[0], len(a.args))
	}
	for _, n := range a.args {
		if repOf(n.typ) == repOther {
			return tables.Type{}, unsupported("%s of type %s", a.f.names[0], typeName(n))
		}
	}
	return a.args[0].typ, nil
}

func bindTruths(t tables.Type) func(b *binder, a *aggregate) (tables.Type, error) {
	return func(b *binder, a *aggregate) (tables.Type, error) {
		n, err := a.one()
		if err == nil {
			a.args[0], err = b.truth(n)
		}
		return t, err
	}
}

func bindJoined(b *binder, a *aggregate) (tables.Type, error) {
	a.text = ","
	if len(a.args) == 2 {
		s := a.args[1]
		if s.lit == nil || s.lit.null || s.typ.Kind != tables.Text {
			return textType, unsupported("string_agg with a separator that is no literal")
		}
		a.text, a.args = s.lit.s, a.args[:1]
	}
	n, err := a.one()
	if err == nil {
		a.args[0], err = b.asText(n)
	}
	return textType, err
}

func bindList(b *binder, a *aggregate) (tables.Type, error) {
	t, err := bindAnyValue(b, a)
	return tables.Type{Kind: tables.List, Elem: &t}, err
}

// fractions reads the fractions of a quantile.
func (b *binder) fractions(a *aggregate, list []*expr) error {
	a.many = true
	for _, e := range list {
		n, err := b.bind(e)
		if err == nil {
			err = a.addFraction(n)
		}
		if err != nil {
			return err
		}
	}
	if len(a.fraction) == 0 || len(a.fraction) > maxArgs {
		return unsupported("a list of %d fractions", len(a.fraction))
	}
	return nil
}

func (a *aggregate) addFraction(n *node) error {
	if n.lit == nil {
		return unsupported("%s with a fraction that is no literal", a.f.names[0])
	}
	r := n.lit.rat
	if n.typ.Kind == tables.Float64 {
		r = new(big.Rat).SetFloat64(n.lit.f)
	}
	if r == nil || r.Sign() < 0 {
		return unsupported("%s with such a fraction", a.f.names[0])
	}
	if r.Cmp(big.NewRat(1, 1)) > 0 {
		return binderError("%s: a fraction is between 0 and 1", a.f.names[0])
	}
	a.fraction = append(a.fraction, r)
	return nil
}

func bindMedian(b *binder, a *aggregate) (tables.Type, error) {
	a.fraction = []*big.Rat{big.NewRat(1, 2)}
	return a.quantileType(b, true)
}

func bindQuantile(cont bool) func(b *binder, a *aggregate) (tables.Type, error) {
	return func(b *binder, a *aggregate) (tables.Type, error) {
		if len(a.args) == 2 && !a.many {
			if err := a.addFraction(a.args[1]); err != nil {
				return tables.Type{}, err
			}
			a.args = a.args[:1]
		}
		if len(a.fraction) == 0 {
			return tables.Type{}, binderError("%s needs a value and a fraction", a.f.names[0])
		}
		return a.quantileType(b, cont)
	}
}

// quantileType returns the type of a quantile: that of the values, but interpolated integers are DOUBLE.
func (a *aggregate) quantileType(b *binder, cont bool) (tables.Type, error) {
	n, err := a.one()
	if err != nil {
		return tables.Type{}, err
	}
	t := n.typ
	switch {
	case a.distinct:
		return t, unsupported("%s(DISTINCT …)", a.f.names[0])
	case cont && isInteger(t):
		t = doubleType
		if a.args[0], err = b.convert(n, t); err != nil {
			return t, err
		}
	case cont && t.Kind != tables.Float64 && t.Kind != tables.Null, repOf(t) == repOther:
		return t, unsupported("%s of type %s", a.f.names[0], typeName(n))
	}
	if a.many {
		return tables.Type{Kind: tables.List, Elem: &t}, nil
	}
	return t, nil
}

// counts returns how many rows of each group count, and where none does.
func (in *aggregated) counts() (counts []int64, nulls []bool) {
	counts = make([]int64, in.groups())
	for _, r := range in.use {
		counts[in.g.of[r]]++
	}
	for id, c := range counts {
		if c == 0 {
			if nulls == nil {
				nulls = make([]bool, len(counts))
			}
			nulls[id] = true
		}
	}
	return counts, nulls
}

func countOf(_ *aggregate, in *aggregated) (*tables.Vector, error) {
	counts, _ := in.counts()
	return tables.NewInts(int64Type, counts, nil), nil
}

func countIf(_ *aggregate, in *aggregated) (*tables.Vector, error) {
	counts := make([]int64, in.groups())
	for _, r := range in.use {
		counts[in.g.of[r]] += in.args[0].Int(int(r))
	}
	_, nulls := in.counts()
	return tables.NewBigs(hugeType, counts, make([]int64, len(counts)), nulls), nil
}

// sums returns the sums of floats.
func (in *aggregated) sums() []float64 {
	sums := make([]float64, in.groups())
	x := in.args[0].Floats()
	for _, r := range in.use {
		sums[in.g.of[r]] += x[r]
	}
	return sums
}

func sumOf(a *aggregate, in *aggregated) (*tables.Vector, error) {
	_, nulls := in.counts()
	if a.typ.Kind == tables.Float64 {
		return tables.NewFloats(a.typ, in.sums(), nulls), nil
	}
	lo, hi := sumInts(in.g, in.args[0], in.use, in.groups())
	return tables.NewBigs(a.typ, lo, hi, nulls), nil
}

func avgOf(a *aggregate, in *aggregated) (*tables.Vector, error) {
	counts, nulls := in.counts()
	var mean []float64
	if x := in.args[0].Type(); repOf(x) == repFloat {
		mean = in.sums()
	} else {
		mean = make([]float64, len(counts))
		lo, hi := sumInts(in.g, in.args[0], in.use, len(counts))
		for id := range mean {
			mean[id] = decimalFloat(hi[id], lo[id], int(x.Scale))
		}
	}
	for id, c := range counts {
		mean[id] /= float64(max(c, 1))
	}
	return tables.NewFloats(doubleType, mean, nulls), nil
}

// picked returns values of the first argument: of each group that of a row, null where it is negative.
func (in *aggregated) picked(rows []int) (*tables.Vector, error) { return in.args[0].Take(rows) }

// none returns a row for each group: none.
func (in *aggregated) none() []int {
	rows := make([]int, in.groups())
	for id := range rows {
		rows[id] = -1
	}
	return rows
}

// extreme returns the least (sign 1) or the greatest value of each group.
func extreme(sign int) func(a *aggregate, in *aggregated) (*tables.Vector, error) {
	return func(_ *aggregate, in *aggregated) (*tables.Vector, error) {
		return in.picked(in.best(in.args[0], sign))
	}
}

// best returns the first row of each group with the least or the greatest value.
func (in *aggregated) best(by *tables.Vector, sign int) []int {
	best := in.none()
	order := comparator(by)
	for _, r := range in.use {
		id := in.g.of[r]
		if best[id] < 0 || sign*order(int(r), best[id]) < 0 {
			best[id] = int(r)
		}
	}
	return best
}

func bestOf(sign int) func(a *aggregate, in *aggregated) (*tables.Vector, error) {
	return func(_ *aggregate, in *aggregated) (*tables.Vector, error) {
		by := in.args[1]
		in.use = slices.DeleteFunc(in.use, func(r int32) bool { return by.Null(int(r)) })
		return in.picked(in.best(by, sign))
	}
}

func firstOf(last bool) func(a *aggregate, in *aggregated) (*tables.Vector, error) {
	return func(_ *aggregate, in *aggregated) (*tables.Vector, error) {
		rows := in.none()
		for _, r := range in.use {
			if id := in.g.of[r]; last || rows[id] < 0 {
				rows[id] = int(r)
			}
		}
		return in.picked(rows)
	}
}

// modeOf returns the most frequent value of each group, of several the one that came first.
func modeOf(_ *aggregate, in *aggregated) (*tables.Vector, error) {
	seen := newKeySet()
	var first []int32
	var counts []int
	var key []byte
	for _, r := range in.use {
		key = appendKey(binary.LittleEndian.AppendUint32(key[:0], uint32(in.g.of[r])), in.args[0], int(r))
		id, added := seen.add(key)
		if added {
			first, counts = append(first, r), append(counts, 0)
		}
		counts[id]++
	}
	rows, most := in.none(), make([]int, in.groups())
	for i, r := range first {
		if id := in.g.of[r]; counts[i] > most[id] {
			rows[id], most[id] = int(r), counts[i]
		}
	}
	return in.picked(rows)
}

func allOf(or bool) func(a *aggregate, in *aggregated) (*tables.Vector, error) {
	return func(_ *aggregate, in *aggregated) (*tables.Vector, error) {
		_, nulls := in.counts()
		out := make([]int64, in.groups())
		for id := range out {
			out[id] = bit(!or)
		}
		for _, r := range in.use {
			if (in.args[0].Int(int(r)) != 0) == or {
				out[in.g.of[r]] = bit(or)
			}
		}
		return tables.NewInts(boolType, out, nulls), nil
	}
}

// spreadOf computes variances by Welford's method, as DuckDB does. f returns the result of a count and the sum of squared
// differences, and whether there is one.
func spreadOf(f func(count, m2 float64) (float64, bool)) func(a *aggregate, in *aggregated) (*tables.Vector, error) {
	return func(a *aggregate, in *aggregated) (*tables.Vector, error) {
		n, mean, m2 := make([]float64, in.groups()), make([]float64, in.groups()), make([]float64, in.groups())
		x := in.args[0].Floats()
		for _, r := range in.use {
			id := in.g.of[r]
			n[id]++
			d := x[r] - mean[id]
			mean[id] += d / n[id]
			m2[id] += d * (x[r] - mean[id])
		}
		return a.floats(in, func(id int) (float64, bool) { return f(n[id], m2[id]) })
	}
}

// floats returns a float for each group; one that is not finite is out of range, as in DuckDB.
func (a *aggregate) floats(in *aggregated, f func(id int) (float64, bool)) (*tables.Vector, error) {
	out, nulls := make([]float64, in.groups()), make([]bool, in.groups())
	for id := range out {
		x, ok := f(id)
		if out[id], nulls[id] = x, !ok; !ok {
			out[id] = 0
			continue
		}
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("%s is out of range: its values are not all finite, or too large", a.f.names[0])
		}
	}
	return tables.NewFloats(doubleType, out, nulls), nil
}

// paired are the sums over pairs of values: of squared differences from the means, and of their products.
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

func pairsOf(f func(p *paired) (float64, bool)) func(a *aggregate, in *aggregated) (*tables.Vector, error) {
	return func(a *aggregate, in *aggregated) (*tables.Vector, error) {
		all := make([]paired, in.groups())
		y, x := in.args[0], in.args[1]
		for _, r := range in.use {
			if !x.Null(int(r)) {
				all[in.g.of[r]].add(x.Float(int(r)), y.Float(int(r)))
			}
		}
		if a.f.names[0] == "corr" { // of values that are all the same it is NaN
			out, nulls := make([]float64, len(all)), make([]bool, len(all))
			for id := range all {
				c, ok := f(&all[id])
				if out[id], nulls[id] = c, !ok; !ok {
					out[id] = 0
				}
			}
			return tables.NewFloats(doubleType, out, nulls), nil
		}
		return a.floats(in, func(id int) (float64, bool) { return f(&all[id]) })
	}
}

// sorted returns the rows of each group in the order of the first argument.
func (in *aggregated) sorted() [][]int32 {
	out := in.byGroup()
	order := comparator(in.args[0])
	for _, rows := range out {
		slices.SortFunc(rows, func(a, b int32) int { return order(int(a), int(b)) })
	}
	return out
}

// byGroup returns the rows of each group.
func (in *aggregated) byGroup() [][]int32 {
	counts, _ := in.counts()
	rows := make([]int32, len(in.use))
	out := make([][]int32, len(counts))
	at := 0
	for id, c := range counts {
		out[id] = rows[at : at : at+int(c)]
		at += int(c)
	}
	for _, r := range in.use {
		id := in.g.of[r]
		out[id] = append(out[id], r)
	}
	return out
}

// quantileDisc returns the values at the fractions: value ceil(fraction * count), the first for 0.
func quantileDisc(a *aggregate, in *aggregated) (*tables.Vector, error) {
	var rows []int
	for _, of := range in.sorted() {
		for _, q := range a.fraction {
			if len(of) == 0 {
				rows = append(rows, -1)
				continue
			}
			at := new(big.Int).Mul(q.Num(), big.NewInt(int64(len(of))))
			at.Add(at, q.Denom()).Sub(at, big.NewInt(1)).Quo(at, q.Denom())
			rows = append(rows, int(of[max(at.Int64(), 1)-1]))
		}
	}
	v, err := in.picked(rows)
	if err != nil {
		return nil, err
	}
	return a.listed(in, v), nil
}

// quantileCont returns the values at the fractions, interpolated between two.
func quantileCont(a *aggregate, in *aggregated) (*tables.Vector, error) {
	x := in.args[0].Floats()
	elem := a.typ
	if a.many {
		elem = *a.typ.Elem
	}
	if elem.Kind == tables.Null {
		return tables.NewNulls(a.typ, in.groups()), nil
	}
	var out []float64
	var nulls []bool
	for _, of := range in.sorted() {
		for _, q := range a.fraction {
			nulls = append(nulls, len(of) == 0)
			if len(of) == 0 {
				out = append(out, 0)
				continue
			}
			fraction, _ := q.Float64()
			at := float64(len(of)-1) * fraction
			lo, hi := x[of[int(math.Floor(at))]], x[of[int(math.Ceil(at))]]
			out = append(out, between(lo, hi, at-math.Floor(at), elem.Bits))
		}
	}
	return a.listed(in, tables.NewFloats(elem, out, nulls)), nil
}

// between interpolates as DuckDB does: its two formulas differ where a value is infinite.
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

// listed returns values as they are, or where several are of a group as lists.
func (a *aggregate) listed(in *aggregated, v *tables.Vector) *tables.Vector {
	if !a.many {
		return v
	}
	_, nulls := in.counts()
	offs := make([]uint32, in.groups()+1)
	for id := range in.groups() {
		offs[id+1] = offs[id] + uint32(len(a.fraction))
	}
	return tables.NewList(v, offs, nulls)
}

func joinedOf(a *aggregate, in *aggregated) (*tables.Vector, error) {
	_, nulls := in.counts()
	var data []byte
	offs := make([]uint32, 1, in.groups()+1)
	for _, rows := range in.byGroup() {
		for i, r := range rows {
			if i > 0 {
				data = append(data, a.text...)
			}
			data = append(data, in.args[0].Bytes(int(r))...)
			if len(data) > maxBatchText {
				return nil, fault.New(fault.Limit, "query", fault.NoOffset, "string_agg of more than %d MiB", maxBatchText>>20)
			}
		}
		offs = append(offs, uint32(len(data)))
	}
	return tables.NewBytes(textType, data, offs, nulls), nil
}

// listOf returns the values of each group; one without rows has no list.
func listOf(a *aggregate, in *aggregated) (*tables.Vector, error) {
	_, nulls := in.counts()
	var rows []int
	offs := make([]uint32, 1, in.groups()+1)
	for _, of := range in.byGroup() {
		rows = append(rows, ints(of)...)
		offs = append(offs, uint32(len(rows)))
	}
	v, err := in.picked(rows)
	if err != nil {
		return nil, err
	}
	return tables.NewList(v, offs, nulls), nil
}

// Package eval computes bound expressions over tables, a batch of rows at a time: filters, columns, joins.
package eval

import (
	"context"
	"runtime"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/format/tables/query/internal/vec"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/internal/num"
)

// Evaluator computes expressions over tables.
type Evaluator struct {
	Ctx      context.Context
	HoldRows func(rows int) error // counts the rows of joins against the query's budget; nil if there are no joins
	// Hold counts bytes of computed columns against the query's budget. It may be called from several goroutines.
	// nil: there is no bound.
	Hold        func(bytes int64) error
	Tables      []*tables.Table
	loaded      map[*Node]*tables.Vector // columns
	consts      map[*Node]*tables.Vector // literals, vec.BatchRows times each
	budget      vec.Budget               // of the strings of a batch
	stringBytes int64                    // bytes charged for them
	// verdicts caches judge: nil for conditions without a verdict.
	verdicts map[*Node]*codeVerdict
}

// New returns an evaluator over tables.
func New(ctx context.Context, from []*tables.Table) *Evaluator {
	ev := &Evaluator{Ctx: ctx, Tables: from, loaded: map[*Node]*tables.Vector{},
		consts: map[*Node]*tables.Vector{}, verdicts: map[*Node]*codeVerdict{}}
	ev.budget.Step = ev.step
	return ev
}

// chargedAtOnce is how many bytes are charged at once for the strings of a batch: few enough for a small budget, and
// for 4,096 rows whose strings have 128 bytes with growth.
const chargedAtOnce = 1 << 20

// step comes before the strings of a batch have more bytes, and between pieces of work. It charges the
// strings: the strings of one batch may take 256 MiB. It fails once the context has ended.
func (ev *Evaluator) step(bytes int) error {
	if err := ev.Ctx.Err(); err != nil {
		return err
	}
	extra := growth*int64(bytes) - ev.stringBytes
	if extra <= 0 {
		return nil
	}
	extra = max(extra, chargedAtOnce)
	if err := budget.Grow(ev.Ctx, extra); err != nil {
		return err
	}
	ev.stringBytes += extra
	return nil
}

// done gives back the charge for the strings of batches, which are garbage.
func (ev *Evaluator) done() {
	budget.Of(ev.Ctx).Shrink(ev.stringBytes)
	ev.stringBytes = 0
	ev.budget.Reset()
}

// columnOf returns the column of a node, or the field of it that the node names.
func columnOf(ctx context.Context, t *tables.Table, n *Node) (*tables.Vector, error) {
	values, err := t.At(ctx, n.Column)
	if err != nil {
		return nil, err
	}
	if n.Field > 0 {
		values = values.FieldOf(n.Field - 1)
	}
	if values.Kind() == tables.Decimal && n.Type.Kind == tables.Float64 {
		return doubles(values, n)
	}
	return values, nil
}

// doubles returns the decimals of a column as the nearest floats.
func doubles(v *tables.Vector, n *Node) (*tables.Vector, error) {
	out := make([]float64, v.Len())
	power := float64(sql.PowersOf10[v.Type().Scale]) // the binder has seen to it that there is one
	for i := range out {
		if v.Null(i) {
			continue
		}
		x := v.Big(i)
		// A float holds 53 bits exactly: a larger number would be rounded twice.
		if x.BitLen() > 53 {
			return nil, fault.New(fault.Corrupt, "column "+n.Name, "more digits than %s has", sql.Name(v.Type()))
		}
		// Both are exact, so the quotient is the nearest float.
		out[i] = float64(x.Int64()) / power
	}
	return tables.NewFloats(n.Type, out, v.Nulls()), nil
}

// load loads the columns of expressions.
func (ev *Evaluator) load(nodes ...*Node) error {
	for _, node := range nodes {
		if node.Op == ast.OpColumn && ev.loaded[node] == nil {
			values, err := columnOf(ev.Ctx, ev.Tables[node.Table], node)
			if err != nil {
				return err
			}
			ev.loaded[node] = values
		}
		if err := ev.load(node.Args...); err != nil {
			return err
		}
	}
	return nil
}

// filter returns the positions in the batch at which a condition holds. It computes each term of AND only for the rows
// that the terms before it left.
func (ev *Evaluator) filter(n *Node, b *vec.Batch) ([]int32, error) {
	if n.Op == ast.OpAnd {
		var sel []int32 // nil: all
		for _, node := range n.Args {
			rest := b
			if sel != nil {
				if len(sel) == 0 {
					return sel, nil
				}
				rest = b.Take(sel)
			}
			got, err := ev.filter(node, rest)
			if err != nil {
				return nil, err
			}
			if sel != nil {
				for k, s := range got {
					got[k] = sel[s]
				}
			}
			sel = got
		}
		return sel, nil
	}
	values, err := ev.Eval(n, b)
	if err != nil {
		return nil, err
	}
	if n.Type.Kind == tables.Null {
		return []int32{}, nil
	}
	sel, found := make([]int32, b.N), 0
	nulls := values.Nulls()
	for row, holds := range values.Bools() {
		sel[found] = int32(row)
		if holds && (nulls == nil || !nulls[row]) {
			found++
		}
	}
	return sel[:found], nil
}

// Where returns the first limit rows of a relation for which a condition holds, or all if limit is negative.
func (ev *Evaluator) Where(n *Node, r *vec.Rows, limit int) (*vec.Rows, error) {
	if err := ev.load(n); err != nil {
		return nil, err
	}
	parts := 1
	// With a limit, other goroutines would search rows that are not needed.
	if limit < 0 {
		parts = max(1, min(runtime.GOMAXPROCS(0), maxParts, r.N/FewRows))
	}
	found, errs := make([]*vec.Rows, parts), make([]error, parts)
	var group sync.WaitGroup
	for part := range parts {
		search := func() {
			lo, hi := r.N/vec.BatchRows*part/parts*vec.BatchRows, r.N
			if part+1 < parts {
				hi = r.N / vec.BatchRows * (part + 1) / parts * vec.BatchRows
			}
			errs[part] = crash.Call(func() (err error) {
				found[part], err = ev.beside().search(n, r, lo, hi, limit)
				return err
			})
		}
		if part+1 < parts {
			group.Go(search)
		} else {
			search()
		}
	}
	group.Wait()
	// The error of the first rows is returned, so it does not depend on timing.
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	out := found[0]
	for _, next := range found[1:] {
		out.N += next.N
		for t, l := range next.Tables {
			out.Tables[t] = append(out.Tables[t], l...)
		}
	}
	return out, nil
}

// Bounds of a parallel search.
const (
	maxParts = 4
	FewRows  = 1 << 15 // rows a goroutine: 8 batches, as a batch is too little work to start one for
)

// beside returns an evaluator of the same columns for another goroutine.
func (ev *Evaluator) beside() *Evaluator {
	out := New(ev.Ctx, ev.Tables)
	// The caller has loaded all columns of the condition, so the goroutines only read the shared map.
	out.loaded = ev.loaded
	return out
}

// search returns the first limit of the rows lo to hi of a relation for which a condition holds, or all if limit is
// negative.
func (ev *Evaluator) search(n *Node, r *vec.Rows, lo, hi, limit int) (*vec.Rows, error) {
	out := &vec.Rows{Tables: make([][]int32, len(r.Tables))}
	for t := range out.Tables {
		out.Tables[t] = []int32{}
	}
	size := sizeFor(n)
	defer ev.done()
	for ; lo < hi && (limit < 0 || out.N < limit); lo += size {
		if err := ev.Ctx.Err(); err != nil {
			return nil, err
		}
		ev.budget.Reset()
		batch := r.Batch(lo, min(size, hi-lo))
		sel, err := ev.filter(n, batch)
		if err != nil {
			return nil, err
		}
		for t, rows := range batch.Take(sel).Tables {
			out.Tables[t] = append(out.Tables[t], rows...)
		}
		out.N += len(sel)
	}
	return out, nil
}

// Column returns the values of an expression for all rows of a relation.
func (ev *Evaluator) Column(n *Node, r *vec.Rows) (*tables.Vector, error) {
	// Take decodes only some pages if the rows are few
	if n.Op == ast.OpColumn && ev.loaded[n] == nil && r.Tables[n.Table] != nil && r.N <= ev.Tables[n.Table].Len() {
		return columnOf(ev.Ctx, ev.Tables[n.Table].Take(num.As[int](r.Tables[n.Table])), n)
	}
	if err := ev.load(n); err != nil {
		return nil, err
	}
	if n.Op == ast.OpColumn {
		values := ev.loaded[n]
		rows := r.Tables[n.Table]
		if rows == nil && r.N == values.Len() {
			return values, nil
		}
		return ev.take(values, rows, r.N)
	}
	out := tables.NewAppender(n.Type)
	size, texts := sizeFor(n), int64(0)
	defer ev.done()
	for lo := 0; lo < r.N; lo += size {
		if err := ev.Ctx.Err(); err != nil {
			return nil, err
		}
		ev.budget.Reset()
		values, err := ev.Eval(n, r.Batch(lo, size))
		if err != nil {
			return nil, err
		}
		bytes, text := values.Size()
		if ev.Hold != nil {
			if err := ev.Hold(bytes); err != nil {
				return nil, err
			}
		}
		if err := budget.Grow(ev.Ctx, growth*bytes); err != nil {
			return nil, err
		}
		if texts += text; texts > 2<<30 {
			return nil, fault.New(fault.Limit, "query", "strings of more than 2 GiB")
		}
		if err := out.Add(values); err != nil {
			return nil, err
		}
	}
	return out.Vector(), nil
}

// growth is how many times its size a column takes while batches are appended to it, and the strings of a batch while
// they are made: the old memory, the new one, and the part of it that is not used yet.
const growth = 2

// take returns n values of a column: those at rows, or the first if rows is nil. A join may repeat a row many times, so
// the new column is charged before it is made.
func (ev *Evaluator) take(v *tables.Vector, rows []int32, n int) (*tables.Vector, error) {
	const number = 8 // bytes
	numbers := number * int64(n)
	if err := budget.Grow(ev.Ctx, numbers); err != nil {
		return nil, err
	}
	defer budget.Of(ev.Ctx).Shrink(numbers)
	places := make([]int, n)
	for k := range places {
		if places[k] = k; rows != nil {
			places[k] = int(rows[k])
		}
	}
	if err := budget.Grow(ev.Ctx, v.TakeBytes(places)); err != nil {
		return nil, err
	}
	return v.Take(places)
}

func (ev *Evaluator) args(n *Node, b *vec.Batch) ([]*tables.Vector, error) {
	out := make([]*tables.Vector, len(n.Args))
	for i, node := range n.Args {
		// Functions of lists read the column themselves, so it needs no vector.
		if sql.RepOf(node.Type) == sql.RepOther {
			continue
		}
		var err error
		if out[i], err = ev.Eval(node, b); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Eval computes an expression for a batch of rows.
func (ev *Evaluator) Eval(n *Node, b *vec.Batch) (*tables.Vector, error) {
	if verdict, err := ev.judge(n); err != nil {
		return nil, err
	} else if verdict != nil {
		return verdict.vec(b), nil
	}
	switch n.Op {
	case OpLiteral:
		return ev.constant(n, b.N), nil
	case ast.OpColumn:
		return ev.read(n, b), nil
	case ast.OpIsNull:
		return ev.isNull(n, b)
	case ast.OpIndex:
		return ev.index(n, b)
	// One term is computed at a time: all terms of thousands would be in memory together.
	case ast.OpAnd, ast.OpOr:
		return ev.logic(n, b)
	case ast.OpCase:
		return ev.evalCase(n, b)
	case OpCoalesce:
		return ev.evalCoalesce(n, b)
	// Only the first argument is computed, because the node has the set and the pattern.
	case ast.OpIn, ast.OpLike:
		values, err := ev.Eval(n.Args[0], b)
		if err != nil {
			return nil, err
		}
		if n.Op == ast.OpIn {
			return evalIn(n, values), nil
		}
		return ev.like(n, values)
	}
	args, err := ev.args(n, b)
	if err != nil {
		return nil, err
	}
	switch n.Op {
	case ast.OpNot:
		return evalNot(n.Args[0], args[0]), nil
	case ast.OpIsBool:
		return evalIsBool(n, args[0]), nil
	case ast.OpCompare:
		return evalCompare(n, args, b.N), nil
	case ast.OpArith:
		return evalArith(n, args[0], args[1], b.N)
	case ast.OpCast:
		return ev.cast(n, args[0])
	case ast.OpCall:
		return n.Call.Evaluate(ev, n, args, b)
	}
	return nil, sql.Unsupported("this expression")
}

// keptConstants is how many literals are kept as vectors of a batch, 8 MiB of 8-byte numbers: a query may have
// thousands.
const keptConstants = 256

// constant returns a literal size times.
func (ev *Evaluator) constant(n *Node, size int) *tables.Vector {
	values := ev.consts[n]
	if values == nil {
		if len(ev.consts) >= keptConstants {
			return constantVec(n, size)
		}
		values = constantVec(n, vec.BatchRows)
		ev.consts[n] = values
	}
	return values.Part(0, size)
}

func constantVec(n *Node, size int) *tables.Vector {
	if n.Literal.Null || n.Type.Kind == tables.Null {
		return tables.NewNulls(n.Type, size)
	}
	switch sql.RepOf(n.Type) {
	case sql.RepFloat:
		return tables.NewFloats(n.Type, vec.Fill(make([]float64, size), n.Literal.Float), nil)
	case sql.RepBytes:
		return tables.NewStrings([]string{n.Literal.String}, nil).Pick(make([]int32, size), nil)
	}
	x, nanos := n.Literal.Int, []int64(nil)
	if n.Literal.Rat != nil {
		x = sql.Word(n.Literal.Rat.Num())
	}
	if n.Literal.Nanos != 0 {
		nanos = vec.Fill(make([]int64, size), n.Literal.Nanos)
	}
	if n.Type.Kind == tables.Bool {
		return tables.NewBools(vec.Fill(make([]bool, size), x != 0), nil)
	}
	return tables.NewWide(n.Type, vec.Fill(make([]int64, size), x), nanos, nil)
}

// sizeFor returns how many rows are evaluated at a time. An expression of many nodes may hold a value of each, so its
// batches are smaller: 2^24 values of 8 bytes are 128 MiB.
func sizeFor(n *Node) int { return max(64, min(vec.BatchRows, 1<<24/max(n.Weight, 1))) }

// read returns a column's values for a batch, without a copy if the rows are consecutive.
func (ev *Evaluator) read(n *Node, b *vec.Batch) *tables.Vector {
	values := ev.loaded[n]
	if rows := b.List(n.Table); rows != nil {
		return inSQL(values.Pick(rows, nil))
	}
	return inSQL(values.Part(b.Lo, b.N))
}

// inSQL returns values as expressions have them: times of a day in microseconds.
func inSQL(v *tables.Vector) *tables.Vector {
	if v.Kind() == tables.Time && v.Nanos() != nil {
		return tables.NewInts(v.Type(), v.Ints(), v.Nulls())
	}
	return v
}

func (ev *Evaluator) isNull(n *Node, b *vec.Batch) (*tables.Vector, error) {
	node := n.Args[0]
	bools := make([]bool, b.N)
	if sql.RepOf(node.Type) == sql.RepOther {
		column := ev.loaded[node]
		for k := range bools {
			bools[k] = column.Null(b.Row(node.Table, k)) != n.Not
		}
		return tables.NewBools(bools, nil), nil
	}
	vector, err := ev.Eval(node, b)
	if err != nil {
		return nil, err
	}
	for k := range bools {
		bools[k] = vector.Null(k) != n.Not
	}
	return tables.NewBools(bools, nil), nil
}

// Columns returns the values of several expressions.
func (ev *Evaluator) Columns(nodes []*Node, r *vec.Rows) ([]*tables.Vector, error) {
	out := make([]*tables.Vector, len(nodes))
	for i, node := range nodes {
		var err error
		if out[i], err = ev.Column(node, r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Strings returns a writer of n strings, which count against the budget of the batch.
func (ev *Evaluator) Strings(n int) *vec.StringWriter { return vec.NewStrings(n, &ev.budget) }

// Read counts n bytes that a function reads: see vec.Budget.
func (ev *Evaluator) Read(n int) error { return ev.budget.Read(n) }

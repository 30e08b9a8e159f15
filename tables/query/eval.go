package query

import (
	"context"
	"runtime"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
)

// batchRows is how many rows are evaluated at a time.
const batchRows = 4096

// vec is the value of an expression for the rows of a batch, in the members that the rep of its type
// names. It is not changed once it was made.
type vec struct {
	n     int
	nulls []bool // nil: none
	t     []bool // truth values
	i     []int64
	h     []int64 // with i, of 128 bits; of timestamps the nanoseconds after i, nil: 0
	f     []float64
	data  []byte // value k is data[lo[k]:hi[k]]
	lo    []uint32
	hi    []uint32
}

func (v *vec) null(k int) bool    { return v.nulls != nil && v.nulls[k] }
func (v *vec) bytes(k int) []byte { return v.data[v.lo[k]:v.hi[k]] }

// rows are the rows of a relation: of each table, which row goes into it. A nil list stands for all
// rows of the table, in order.
type rows struct {
	n      int
	tables [][]int32 // -1: no row, in a left join
}

// batch is a part of a relation: rows lo to lo+n of its lists, or of the table itself.
type batch struct {
	n, lo  int
	tables [][]int32
}

// batch returns at most size rows from lo on.
func (r *rows) batch(lo, size int) *batch {
	return &batch{n: min(size, r.n-lo), lo: lo, tables: r.tables}
}

// list returns the batch's rows of a table; nil means from lo on.
func (b *batch) list(tab int) []int32 {
	if l := b.tables[tab]; l != nil {
		return l[b.lo : b.lo+b.n]
	}
	return nil
}

// take returns the rows of the batch at the given positions, as a batch.
func (b *batch) take(sel []int32) *batch {
	out := &batch{n: len(sel), tables: make([][]int32, len(b.tables))}
	for t := range b.tables {
		to := make([]int32, len(sel))
		if from := b.list(t); from != nil {
			for k, s := range sel {
				to[k] = from[s]
			}
		} else {
			for k, s := range sel {
				to[k] = int32(b.lo) + s
			}
		}
		out.tables[t] = to
	}
	return out
}

// evaluator computes expressions over tables.
type evaluator struct {
	ctx     context.Context
	session *session // nil: no join is computed
	tables  []*tables.Table
	loaded  map[*node]*tables.Vector // columns
	consts  map[*node]*vec           // literals, batchRows times
	// made is how many bytes of texts were made for the batch of rows, and full whether they are too many.
	made int
	full bool
	// verdicts are those of the conditions that were computed; nil where there is none.
	verdicts map[*node]*verdict
}

func newEvaluator(ctx context.Context, from []*tables.Table) *evaluator {
	return &evaluator{ctx: ctx, tables: from, loaded: map[*node]*tables.Vector{}, consts: map[*node]*vec{}, verdicts: map[*node]*verdict{}}
}

// load loads the columns of an expression.
func (ev *evaluator) load(nodes ...*node) error {
	for _, n := range nodes {
		if n.op == opColumn && ev.loaded[n] == nil {
			v, err := ev.tables[n.tab].At(ev.ctx, n.col)
			if err != nil {
				return err
			}
			ev.loaded[n] = v
		}
		if err := ev.load(n.args...); err != nil {
			return err
		}
	}
	return nil
}

// filter returns the positions in the batch where a condition holds.
func (ev *evaluator) filter(n *node, b *batch) ([]int32, error) {
	if n.op == opAnd {
		var sel []int32 // nil: all
		for _, a := range n.args {
			in := b
			if sel != nil {
				if len(sel) == 0 {
					return sel, nil
				}
				in = b.take(sel)
			}
			got, err := ev.filter(a, in)
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
	if d, err := ev.judge(n); err != nil || d != nil {
		if err != nil {
			return nil, err
		}
		return d.rows(b), nil
	}
	v, err := ev.eval(n, b)
	if err != nil {
		return nil, err
	}
	if n.typ.Kind == tables.Null {
		return []int32{}, nil
	}
	sel, found := make([]int32, b.n), 0
	for k, t := range v.t {
		sel[found] = int32(k)
		if t && (v.nulls == nil || !v.nulls[k]) {
			found++
		}
	}
	return sel[:found], nil
}

// where returns the rows of a relation for which a condition holds, the first most of them, or all
// if most is negative.
func (ev *evaluator) where(n *node, r *rows, most int) (*rows, error) {
	if err := ev.load(n); err != nil {
		return nil, err
	}
	parts := 1
	if most < 0 { // all rows are looked at
		parts = max(1, min(runtime.GOMAXPROCS(0), maxParts, r.n/fewRows))
	}
	found, errs := make([]*rows, parts), make([]error, parts)
	var g sync.WaitGroup
	for k := range parts {
		search := func() {
			lo, hi := r.n/batchRows*k/parts*batchRows, r.n
			if k+1 < parts {
				hi = r.n / batchRows * (k + 1) / parts * batchRows
			}
			found[k], errs[k] = ev.beside().search(n, r, lo, hi, most)
		}
		if k+1 < parts {
			g.Go(search)
		} else {
			search()
		}
	}
	g.Wait()
	for _, err := range errs { // the first one of the rows, whichever came first in time
		if err != nil {
			return nil, err
		}
	}
	out := found[0]
	for _, more := range found[1:] {
		out.n += more.n
		for t, l := range more.tables {
			out.tables[t] = append(out.tables[t], l...)
		}
	}
	return out, nil
}

// Bounds of what is searched at the same time.
const (
	maxParts = 4
	fewRows  = 1 << 15 // are searched sooner than another goroutine is told to
)

// beside returns an evaluator of the same columns for another goroutine.
func (ev *evaluator) beside() *evaluator {
	out := newEvaluator(ev.ctx, ev.tables)
	out.loaded = ev.loaded // all that the condition needs are there: it is only read
	return out
}

// search returns those of the rows lo to hi of a relation for which a condition holds, the first most of them, or all if
// most is negative.
func (ev *evaluator) search(n *node, r *rows, lo, hi, most int) (*rows, error) {
	out := &rows{tables: make([][]int32, len(r.tables))}
	for t := range out.tables {
		out.tables[t] = []int32{}
	}
	size := sizeFor(n)
	for ; lo < hi && (most < 0 || out.n < most); lo += size {
		if err := ev.ctx.Err(); err != nil {
			return nil, err
		}
		ev.begin()
		b := r.batch(lo, min(size, hi-lo))
		sel, err := ev.filter(n, b)
		if err != nil {
			return nil, err
		}
		for t := range out.tables {
			if from := b.list(t); from != nil {
				for _, s := range sel {
					out.tables[t] = append(out.tables[t], from[s])
				}
			} else {
				for _, s := range sel {
					out.tables[t] = append(out.tables[t], int32(lo)+s)
				}
			}
		}
		out.n += len(sel)
	}
	return out, nil
}

// column returns an expression's values for all rows of a relation.
func (ev *evaluator) column(n *node, r *rows) (*tables.Vector, error) {
	if n.op == opColumn && ev.loaded[n] == nil && r.tables[n.tab] != nil { // maybe of a few rows
		return ev.tables[n.tab].Take(ints(r.tables[n.tab])).At(ev.ctx, n.col)
	}
	if err := ev.load(n); err != nil {
		return nil, err
	}
	if n.op == opColumn {
		v := ev.loaded[n]
		l := r.tables[n.tab]
		if l == nil && r.n == v.Len() {
			return v, nil
		}
		at := make([]int, r.n)
		for k := range at {
			if at[k] = k; l != nil {
				at[k] = int(l[k])
			}
		}
		return v.Take(at)
	}
	out := collector{typ: n.typ}
	size := sizeFor(n)
	for lo := 0; lo < r.n; lo += size {
		if err := ev.ctx.Err(); err != nil {
			return nil, err
		}
		ev.begin()
		v, err := ev.eval(n, r.batch(lo, size))
		if err != nil {
			return nil, err
		}
		if err := out.add(v); err != nil {
			return nil, err
		}
	}
	return out.vector(), nil
}

// collector joins the vecs of batches.
type collector struct {
	typ   tables.Type
	n     int
	all   vec
	nulls bool
	offs  []uint32
}

func (c *collector) add(v *vec) error {
	c.all.nulls = append(c.all.nulls, make([]bool, v.n)...)
	if v.nulls != nil {
		c.nulls = true
		copy(c.all.nulls[c.n:], v.nulls)
	}
	c.n += v.n
	for _, t := range v.t {
		c.all.i = append(c.all.i, bit(t))
	}
	h := v.h
	if c.typ.Kind == tables.Timestamp && (h != nil) != (c.all.h != nil) { // not all batches have nanoseconds
		if h == nil {
			h = make([]int64, v.n)
		} else {
			c.all.h = make([]int64, c.n-v.n)
		}
	}
	c.all.i, c.all.h, c.all.f = append(c.all.i, v.i...), append(c.all.h, h...), append(c.all.f, v.f...)
	if repOf(c.typ) == repBytes {
		if c.offs == nil {
			c.offs = []uint32{0}
		}
		for k := range v.n {
			if !v.null(k) {
				c.all.data = append(c.all.data, v.bytes(k)...)
			}
			if len(c.all.data) > 2<<30 {
				return fault.New(fault.Limit, "query", fault.NoOffset, "texts of more than 2 GiB")
			}
			c.offs = append(c.offs, uint32(len(c.all.data)))
		}
	}
	return nil
}

func (c *collector) vector() *tables.Vector {
	nulls := c.all.nulls
	if !c.nulls {
		nulls = nil
	}
	switch repOf(c.typ) {
	case repNone:
		return tables.NewNulls(tables.Type{}, c.n)
	case repBig:
		return tables.NewBigs(c.typ, c.all.i, c.all.h, nulls)
	case repFloat:
		return tables.NewFloats(c.typ, c.all.f, nulls)
	case repBytes:
		if c.offs == nil {
			c.offs = []uint32{0}
		}
		return tables.NewBytes(c.typ, c.all.data, c.offs, nulls)
	}
	if c.all.h != nil {
		return tables.NewTimes(c.typ, c.all.i, c.all.h, nulls)
	}
	return tables.NewInts(c.typ, c.all.i, nulls)
}

// allNull is a vec of any type without a value.
func allNull(t tables.Type, n int) *vec {
	v := &vec{n: n, nulls: make([]bool, n)}
	for k := range v.nulls {
		v.nulls[k] = true
	}
	switch repOf(t) {
	case repInt, repUint:
		if t.Kind == tables.Bool {
			v.t = make([]bool, n)
		} else {
			v.i = make([]int64, n)
		}
	case repBig:
		v.i, v.h = make([]int64, n), make([]int64, n)
	case repFloat:
		v.f = make([]float64, n)
	case repBytes:
		v.lo, v.hi = make([]uint32, n), make([]uint32, n)
	}
	return v
}

func (ev *evaluator) args(n *node, b *batch) ([]*vec, error) {
	out := make([]*vec, len(n.args))
	for i, a := range n.args {
		if repOf(a.typ) == repOther { // read in the table
			continue
		}
		var err error
		if out[i], err = ev.eval(a, b); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (ev *evaluator) eval(n *node, b *batch) (*vec, error) {
	if v, err := ev.judge(n); err != nil {
		return nil, err
	} else if v != nil {
		return v.vec(b), nil
	}
	switch n.op {
	case opLiteral:
		return ev.constant(n, b.n), nil
	case opColumn:
		return ev.read(n, b), nil
	case opIsNull:
		return ev.isNull(n, b)
	case opIndex:
		return ev.index(n, b)
	case opAnd, opOr: // one at a time: there may be thousands
		return ev.logic(n, b)
	case opCase:
		return ev.evalCase(n, b)
	case opCoalesce:
		return ev.evalCoalesce(n, b)
	case opScalar:
		return n.results.vec(n.typ, b.n), nil
	case opIn, opLike: // the set and the pattern are the node's
		x, err := ev.eval(n.args[0], b)
		if err != nil {
			return nil, err
		}
		if n.op == opIn {
			return evalIn(n, x), nil
		}
		return evalLike(n, x), nil
	}
	args, err := ev.args(n, b)
	if err != nil {
		return nil, err
	}
	switch n.op {
	case opNot:
		return evalNot(n.args[0], args[0]), nil
	case opIsBool:
		return evalIsBool(n, args[0]), nil
	case opCompare, opDistinct:
		return evalCompare(n, args, b.n), nil
	case opArith:
		return evalArith(n, args[0], args[1], b.n)
	case opMinus:
		return evalMinus(n, args[0])
	case opCast:
		return ev.cast(n, args[0])
	case opConcat:
		return ev.concat(args, b.n)
	case opShift:
		return evalShift(n, args[0])
	case opInSet:
		return n.results.contain(n, args[0])
	case opCall:
		if n.fn.eval != nil {
			return n.fn.eval(ev, n, args, b)
		}
	}
	return nil, unsupported("this expression")
}

// keptConstants is how many literals are kept as vecs of a batch: a query may have thousands.
const keptConstants = 256

// constant returns a literal's value n times.
func (ev *evaluator) constant(n *node, size int) *vec {
	c := ev.consts[n]
	if c == nil {
		if len(ev.consts) >= keptConstants {
			return constantVec(n, size)
		}
		c = constantVec(n, batchRows)
		ev.consts[n] = c
	}
	v := *c
	v.n = size
	cut := func(s []int64) []int64 {
		if s == nil {
			return nil
		}
		return s[:size]
	}
	v.i, v.h = cut(v.i), cut(v.h)
	if v.nulls != nil {
		v.nulls = v.nulls[:size]
	}
	if v.t != nil {
		v.t = v.t[:size]
	}
	if v.f != nil {
		v.f = v.f[:size]
	}
	if v.lo != nil {
		v.lo, v.hi = v.lo[:size], v.hi[:size]
	}
	return &v
}

func constantVec(n *node, size int) *vec {
	if n.lit.null || n.typ.Kind == tables.Null {
		return allNull(n.typ, size)
	}
	v := &vec{n: size}
	switch repOf(n.typ) {
	case repInt, repUint:
		x := n.lit.i
		if n.lit.rat != nil {
			x = int64(lowBits(n.lit.rat.Num()))
		}
		if n.typ.Kind == tables.Bool {
			v.t = fill(make([]bool, size), x != 0)
		} else {
			v.i = fill(make([]int64, size), x)
		}
		if n.lit.ns != 0 {
			v.h = fill(make([]int64, size), n.lit.ns)
		}
	case repBig:
		x := roundRat(n.lit.rat, int(n.typ.Scale))
		v.i = fill(make([]int64, size), int64(lowBits(x)))
		v.h = fill(make([]int64, size), int64(lowBits(shifted(x))))
	case repFloat:
		v.f = fill(make([]float64, size), n.lit.f)
	case repBytes:
		v.data = []byte(n.lit.s)
		v.lo = make([]uint32, size)
		v.hi = fill(make([]uint32, size), uint32(len(v.data)))
	}
	return v
}

func fill[T any](s []T, x T) []T {
	for i := range s {
		s[i] = x
	}
	return s
}

// begin begins a batch of rows: the texts that were made for the one before are gone, or are the caller's.
func (ev *evaluator) begin() { ev.made, ev.full = 0, false }

// sizeFor returns how many rows are evaluated at a time: an expression of thousands of parts may hold a value of each.
func sizeFor(n *node) int { return max(64, min(batchRows, 1<<24/max(n.weight, 1))) }

// read takes a column's values for a batch: without a copy where the rows stand in order.
func (ev *evaluator) read(n *node, b *batch) *vec {
	c := ev.loaded[n]
	l := b.list(n.tab)
	v := &vec{n: b.n}
	switch repOf(n.typ) {
	case repNone:
		return allNull(n.typ, b.n)
	case repBytes:
		data, offs := c.Raw()
		v.data = data
		if l == nil {
			v.lo, v.hi = offs[b.lo:b.lo+b.n], offs[b.lo+1:b.lo+b.n+1]
		} else {
			v.lo, v.hi = make([]uint32, b.n), make([]uint32, b.n)
			for k, r := range l {
				if r >= 0 {
					v.lo[k], v.hi[k] = offs[r], offs[r+1]
				}
			}
		}
	case repFloat:
		v.f = part(c.Floats(), l, b)
	case repBig:
		v.i = part(c.Ints(), l, b)
		if h := c.High(); h != nil {
			v.h = part(h, l, b)
		} else {
			v.h = make([]int64, b.n)
			for k, x := range v.i {
				v.h[k] = x >> 63
			}
		}
	default:
		v.i = part(c.Ints(), l, b)
		if ns := c.Nanos(); ns != nil {
			v.h = part(ns, l, b)
		}
		if n.typ.Kind == tables.Bool {
			v.t = make([]bool, b.n)
			for k, x := range v.i {
				v.t[k] = x != 0
			}
			v.i = nil
		}
	}
	if nulls := c.Nulls(); nulls != nil {
		v.nulls = part(nulls, l, b)
	}
	for k, r := range l {
		if r < 0 {
			if v.nulls == nil {
				v.nulls = make([]bool, b.n)
			}
			v.nulls[k] = true
		}
	}
	return v
}

// part takes the batch's rows of a column: l, or those from b.lo on.
func part[T any](s []T, l []int32, b *batch) []T {
	if l == nil {
		return s[b.lo : b.lo+b.n]
	}
	out := make([]T, len(l))
	for k, r := range l {
		if r >= 0 {
			out[k] = s[r]
		}
	}
	return out
}

// row returns the row of a table that stands at position k of a batch; -1 if there is none.
func (b *batch) row(tab, k int) int {
	if l := b.list(tab); l != nil {
		return int(l[k])
	}
	return b.lo + k
}

func (ev *evaluator) isNull(n *node, b *batch) (*vec, error) {
	a := n.args[0]
	v := &vec{n: b.n, t: make([]bool, b.n)}
	if repOf(a.typ) == repOther {
		c := ev.loaded[a]
		for k := range v.t {
			r := b.row(a.tab, k)
			v.t[k] = (r < 0 || c.Null(r)) != n.not
		}
		return v, nil
	}
	x, err := ev.eval(a, b)
	if err != nil {
		return nil, err
	}
	for k := range v.t {
		v.t[k] = x.null(k) != n.not
	}
	return v, nil
}

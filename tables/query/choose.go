package query

import (
	"github.com/chaski-eo/chaski/tables"
)

// CASE, COALESCE, GREATEST and their like choose one of several values for each row.

// together brings values to the type in which they meet.
func (b *binder) together(what string, args []*node) ([]*node, tables.Type, error) {
	var t tables.Type
	var err error
	for _, a := range args {
		if a.typ.Kind == tables.Text && a.lit != nil {
			continue // a text in quotes takes the type of the others
		}
		if t, err = b.meet(what, t, a); err != nil {
			return nil, t, err
		}
	}
	if t.Kind == tables.Null {
		for _, a := range args {
			if a.typ.Kind == tables.Text {
				t = textType
			}
		}
	}
	if repOf(t) == repOther {
		return nil, t, unsupported("%s of type %s", what, sqlName(t))
	}
	out := make([]*node, len(args))
	for i, a := range args {
		switch {
		case a.lit != nil && a.lit.rat != nil && isInteger(t) && t.Kind != tables.Huge:
			out[i], err = b.integer(a, t)
		default:
			out[i], err = b.convert(a, t)
		}
		if err != nil {
			return nil, t, err
		}
	}
	return out, t, nil
}

// meet returns the type in which values of t and a node meet. A whole number takes the type of a column that holds it.
func (b *binder) meet(what string, t tables.Type, a *node) (tables.Type, error) {
	if a.lit != nil && a.lit.rat != nil && isInteger(a.typ) && isInteger(t) && t.Kind != tables.Huge {
		if lo, hi := limits(t); within(a.lit.rat.Num(), lo, hi) {
			return t, nil
		}
	}
	out, ok := meet(t, a.typ)
	if !ok {
		return t, unsupported("%s of type %s and type %s", what, sqlName(t), sqlName(a.typ))
	}
	return out, nil
}

// caseOf binds CASE: condition, value, …, value of ELSE.
func (b *binder) caseOf(args []*node) (*node, error) {
	var values []*node
	for i, a := range args {
		if i%2 == 1 || i == len(args)-1 {
			values = append(values, a)
			continue
		}
		var err error
		if args[i], err = b.truth(a); err != nil {
			return nil, err
		}
	}
	values, t, err := b.together("CASE", values)
	if err != nil {
		return nil, err
	}
	for i, v := range values {
		args[min(2*i+1, len(args)-1)] = v
	}
	return b.intern(&node{op: opCase, typ: t, args: args})
}

// choice is the value of each row of a batch: value at[k] of from[k], null where there is none.
type choice struct {
	typ  tables.Type
	from []*vec
	at   []int32
}

func newChoice(t tables.Type, n int) *choice {
	return &choice{typ: t, from: make([]*vec, n), at: make([]int32, n)}
}

// take chooses the values of v for some rows, nil: for all.
func (c *choice) take(v *vec, rows []int32) {
	for k := range v.n {
		row := k
		if rows != nil {
			row = int(rows[k])
		}
		if !v.null(k) {
			c.from[row], c.at[row] = v, int32(k)
		}
	}
}

// vec returns the values.
func (c *choice) vec(ev *evaluator) (*vec, error) {
	if repOf(c.typ) == repBytes {
		w := ev.texts(len(c.from))
		for k, from := range c.from {
			if from == nil {
				w.null(k)
				continue
			}
			w.add(from.bytes(int(c.at[k])))
			w.end(k)
		}
		return w.finish()
	}
	v := allNull(c.typ, len(c.from))
	for k, from := range c.from {
		if from != nil {
			v.nulls[k] = false
			v.set(k, from, int(c.at[k]), c.typ)
		}
	}
	return v, nil
}

// set takes value i of another vec of type t, which is not of bytes.
func (v *vec) set(k int, from *vec, i int, t tables.Type) {
	switch {
	case repOf(t) == repFloat:
		v.f[k] = from.f[i]
	case repOf(t) == repBig:
		v.i[k], v.h[k] = from.i[i], from.h[i]
	case t.Kind == tables.Bool:
		v.t[k] = from.t[i]
	default:
		v.i[k] = from.i[i]
		if from.h != nil {
			if v.h == nil {
				v.h = make([]int64, v.n)
			}
			v.h[k] = from.h[i]
		}
	}
}

// some is a part of a batch; rows are its positions, nil if it is all of it.
type some struct {
	b    *batch
	rows []int32
}

// keep returns the rows of a part for which f holds, and the others.
func (s some) split(f func(k int) bool) (yes, no some) {
	var in, out []int32
	for k := range s.b.n {
		if f(k) {
			in = append(in, int32(k))
		} else {
			out = append(out, int32(k))
		}
	}
	return s.only(in), s.only(out)
}

func (s some) only(at []int32) some {
	if len(at) == s.b.n {
		return s
	}
	out := some{b: s.b.take(at), rows: at}
	if s.rows != nil {
		out.rows = make([]int32, len(at))
		for i, k := range at {
			out.rows[i] = s.rows[k]
		}
	}
	return out
}

// evalCase computes each condition for the rows that no one before it chose, and each value for the rows that it has: a
// value that cannot be computed elsewhere is no error.
func (ev *evaluator) evalCase(n *node, b *batch) (*vec, error) {
	out := newChoice(n.typ, b.n)
	left := some{b: b}
	for i := 0; i < len(n.args) && left.b.n > 0; i += 2 {
		now := left
		if i+1 < len(n.args) {
			cond, err := ev.eval(n.args[i], left.b)
			if err != nil {
				return nil, err
			}
			now, left = left.split(func(k int) bool { return cond.t != nil && cond.t[k] && !cond.null(k) })
		}
		if value := n.args[min(i+1, len(n.args)-1)]; now.b.n > 0 && value.typ.Kind != tables.Null {
			v, err := ev.eval(value, now.b)
			if err != nil {
				return nil, err
			}
			out.take(v, now.rows)
		}
	}
	return out.vec(ev)
}

func bindCoalesce(b *binder, f *function, args []*node) (*node, error) {
	if len(args) == 0 {
		return nil, wrongArgs(f, args)
	}
	args, t, err := b.together(f.names[0], args)
	if err != nil {
		return nil, err
	}
	return b.intern(&node{op: opCoalesce, fn: f, typ: t, args: args})
}

// evalCoalesce computes each value for the rows where those before it are null.
func (ev *evaluator) evalCoalesce(n *node, b *batch) (*vec, error) {
	out := newChoice(n.typ, b.n)
	left := some{b: b}
	for _, a := range n.args {
		if left.b.n == 0 {
			break
		}
		if a.typ.Kind == tables.Null {
			continue
		}
		v, err := ev.eval(a, left.b)
		if err != nil {
			return nil, err
		}
		out.take(v, left.rows)
		_, left = left.split(func(k int) bool { return !v.null(k) })
	}
	return out.vec(ev)
}

func bindExtreme(b *binder, f *function, args []*node) (*node, error) {
	if len(args) == 0 {
		return nil, wrongArgs(f, args)
	}
	args, t, err := b.together(f.names[0], args)
	if err != nil {
		return nil, err
	}
	return b.fn(f, t, args...)
}

// extremeOf returns the evaluation of GREATEST (sign 1) or LEAST (-1), which leave out nulls.
func extremeOf(sign int) func(ev *evaluator, n *node, args []*vec, b *batch) (*vec, error) {
	return func(ev *evaluator, n *node, args []*vec, b *batch) (*vec, error) {
		out := newChoice(n.typ, b.n)
		for i, a := range args {
			if n.args[i].typ.Kind == tables.Null {
				continue
			}
			for k := range b.n {
				if !a.null(k) && (out.from[k] == nil || sign*orderAt(n.typ, a, k, out.from[k], k) > 0) {
					out.from[k], out.at[k] = a, int32(k)
				}
			}
		}
		return out.vec(ev)
	}
}

// orderAt orders two values of a type.
func orderAt(t tables.Type, a *vec, i int, b *vec, k int) int {
	switch repOf(t) {
	case repFloat:
		return orderFloat(a.f[i], b.f[k])
	case repBytes:
		s, t := a.bytes(i), b.bytes(k)
		return int(bit(string(s) > string(t)) - bit(string(s) < string(t)))
	case repUint:
		return order(uint64(a.i[i]), uint64(b.i[k]))
	case repBig:
		return orderBig(a.h[i], a.i[i], b.h[k], b.i[k])
	}
	if t.Kind == tables.Bool {
		return order(bit(a.t[i]), bit(b.t[k]))
	}
	if o := order(a.i[i], b.i[k]); o != 0 {
		return o
	}
	return order(a.nanos(i), b.nanos(k))
}

// bindNullIf binds NULLIF(x, y) as CASE WHEN x = y THEN NULL ELSE x END.
func bindNullIf(b *binder, f *function, args []*node) (*node, error) {
	if len(args) != 2 {
		return nil, wrongArgs(f, args)
	}
	same, err := b.compare("=", args[0], args[1])
	if err != nil {
		return nil, err
	}
	null, err := b.literal(tables.Type{}, literal{null: true})
	if err != nil {
		return nil, err
	}
	return b.caseOf([]*node{same, null, args[0]})
}

// bindIf binds IF(condition, x, y) as CASE.
func bindIf(b *binder, f *function, args []*node) (*node, error) {
	if len(args) != 3 {
		return nil, wrongArgs(f, args)
	}
	return b.caseOf(args)
}

func bindTypeOf(b *binder, f *function, args []*node) (*node, error) {
	if len(args) != 1 {
		return nil, wrongArgs(f, args)
	}
	return b.literal(textType, literal{s: sqlName(args[0].typ)})
}

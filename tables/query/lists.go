package query

import (
	"unicode/utf8"

	"github.com/chaski-eo/chaski/tables"
)

// bindLen binds the length of a list, or of a text in characters.
func bindLen(b *binder, f *function, args []*node) (*node, error) {
	switch {
	case len(args) == 1 && args[0].typ.Kind == tables.List && args[0].op == opColumn:
	case is(args, tables.Text):
	case len(args) == 1 && args[0].typ.Kind == tables.Binary:
		return nil, unsupported("%s of type BLOB", f.names[0])
	default:
		return nil, wrongArgs(f, args)
	}
	return b.fn(f, int64Type, args...)
}

func evalLen(ev *evaluator, n *node, args []*vec, b *batch) (*vec, error) {
	if a := n.args[0]; a.typ.Kind == tables.List {
		v := &vec{n: b.n, i: make([]int64, b.n)}
		ev.lists(a, b, v, func(k int, _ *tables.Vector, lo, hi int) bool {
			v.i[k] = int64(hi - lo)
			return true
		})
		return v, nil
	}
	x := args[0]
	if x.lo == nil {
		return allNull(int64Type, b.n), nil
	}
	v := &vec{n: b.n, nulls: x.nulls, i: make([]int64, b.n)}
	for k := range v.i {
		v.i[k] = int64(utf8.RuneCount(x.bytes(k)))
	}
	return v, nil
}

// lists calls f for each list of a column that is there; v is null where there is none or f says no.
func (ev *evaluator) lists(a *node, b *batch, v *vec, f func(k int, child *tables.Vector, lo, hi int) bool) {
	c := ev.loaded[a]
	for k := range b.n {
		r := b.row(a.tab, k)
		if r >= 0 && !c.Null(r) {
			child, lo, hi := c.List(r)
			if f(k, child, lo, hi) {
				continue
			}
		}
		if v.nulls == nil {
			v.nulls = make([]bool, b.n)
		}
		v.nulls[k] = true
	}
}

// bindContains binds list_contains(column, literal).
func bindContains(b *binder, f *function, args []*node) (*node, error) {
	if len(args) != 2 || args[0].typ.Kind != tables.List {
		return nil, wrongArgs(f, args)
	}
	if args[0].op != opColumn || args[1].lit == nil {
		return nil, unsupported("%s but of a column and a literal", f.names[0])
	}
	elem := *args[0].typ.Elem
	x := args[1]
	switch {
	case x.lit.null:
	case elem.Kind == tables.Text && x.typ.Kind == tables.Text:
	case isInteger(elem) && x.lit.rat != nil:
	case elem.Kind == tables.Float64 && (x.lit.rat != nil || x.typ.Kind == tables.Float64):
		var err error
		if x, err = b.convert(x, elem); err != nil {
			return nil, err
		}
	default:
		return nil, unsupported("%s of types %s and %s", f.names[0], typeName(args[0]), typeName(x))
	}
	return b.fn(f, boolType, args[0], x)
}

func evalListContains(ev *evaluator, n *node, _ []*vec, b *batch) (*vec, error) {
	a, x := n.args[0], n.args[1]
	if x.lit.null {
		return allNull(boolType, b.n), nil
	}
	lo, hi := limits(int64Type)
	var whole bool
	var i int64
	if x.lit.rat != nil {
		if a.typ.Elem.Kind == tables.Uint64 {
			lo, hi = limits(*a.typ.Elem)
		}
		whole = x.lit.rat.IsInt() && within(x.lit.rat.Num(), lo, hi)
		i = int64(lowBits(x.lit.rat.Num()))
	}
	v := &vec{n: b.n, t: make([]bool, b.n)}
	ev.lists(a, b, v, func(k int, child *tables.Vector, lo, hi int) bool {
		for e := lo; e < hi && !v.t[k]; e++ {
			switch {
			case child.Null(e):
			case child.Kind() == tables.Text:
				v.t[k] = string(child.Bytes(e)) == x.lit.s
			case child.Kind() == tables.Float64:
				v.t[k] = orderFloat(child.Float(e), x.lit.f) == 0
			default:
				v.t[k] = whole && child.Int(e) == i
			}
		}
		return true
	})
	return v, nil
}

// index evaluates list[i]: from 1, from the end below 0, null elsewhere.
func (ev *evaluator) index(n *node, b *batch) (*vec, error) {
	a := n.args[0]
	x, err := ev.eval(n.args[1], b)
	if err != nil {
		return nil, err
	}
	if x.i == nil {
		return allNull(n.typ, b.n), nil
	}
	v := allNull(n.typ, b.n)
	v.nulls = nil
	ev.lists(a, b, v, func(k int, child *tables.Vector, lo, hi int) bool {
		i := x.i[k]
		if i < 0 {
			i += int64(hi - lo)
		} else {
			i--
		}
		if x.null(k) || i < 0 || i >= int64(hi-lo) || child.Null(lo+int(i)) {
			return false
		}
		e := lo + int(i)
		switch repOf(n.typ) {
		case repFloat:
			v.f[k] = child.Float(e)
		case repBytes:
			v.data, _ = child.Raw()
			_, offs := child.Raw()
			v.lo[k], v.hi[k] = offs[e], offs[e+1]
		case repBig:
			v.i[k] = child.Ints()[e]
			v.h[k] = v.i[k] >> 63
			if h := child.High(); h != nil {
				v.h[k] = h[e]
			}
		default:
			if n.typ.Kind == tables.Bool {
				v.t[k] = child.Int(e) != 0
			} else {
				v.i[k] = child.Int(e)
			}
		}
		return true
	})
	return v, nil
}

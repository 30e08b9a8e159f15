package eval

import (
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/plan"
	"github.com/chaski-eo/chaski/tables/query/internal/sqltype"
	"github.com/chaski-eo/chaski/tables/query/internal/vec"
)

// EachList calls f for each list of a column that is not null. The result is null where the list is, or where f reports
// false.
func EachList(ev plan.Evaluator, a *plan.Node, b *vec.Batch, v *vec.Vec,
	f func(k int, child *tables.Vector, lo, hi int) bool) {
	c := ev.Vector(a)
	for k := range b.N {
		r := b.Row(a.Table, k)
		if r >= 0 && !c.Null(r) {
			child, lo, hi := c.List(r)
			if f(k, child, lo, hi) {
				continue
			}
		}
		if v.Nulls == nil {
			v.Nulls = make([]bool, b.N)
		}
		v.Nulls[k] = true
	}
}

// index computes list[i]. Lists count from 1, and from their end if i is negative; outside the list the result is null.
func (ev *Evaluator) index(n *plan.Node, b *vec.Batch) (*vec.Vec, error) {
	a := n.Args[0]
	x, err := ev.Eval(n.Args[1], b)
	if err != nil {
		return nil, err
	}
	if x.Ints == nil {
		return vec.AllNull(n.Type, b.N), nil
	}
	v := vec.AllNull(n.Type, b.N)
	v.Nulls = nil
	EachList(ev, a, b, v, func(k int, child *tables.Vector, lo, hi int) bool {
		i := x.Ints[k]
		if i < 0 {
			i += int64(hi - lo)
		} else {
			i--
		}
		if x.IsNull(k) || i < 0 || i >= int64(hi-lo) || child.Null(lo+int(i)) {
			return false
		}
		e := lo + int(i)
		switch sqltype.RepOf(n.Type) {
		case sqltype.RepFloat:
			v.Floats[k] = child.Float(e)
		case sqltype.RepBytes:
			v.Data, _ = child.Raw()
			_, offs := child.Raw()
			v.Lo[k], v.Hi[k] = offs[e], offs[e+1]
		case sqltype.RepBig:
			v.Ints[k] = child.Ints()[e]
			v.High[k] = v.Ints[k] >> 63
			if h := child.High(); h != nil {
				v.High[k] = h[e]
			}
		default:
			if n.Type.Kind == tables.Bool {
				v.Bools[k] = child.Int(e) != 0
			} else {
				v.Ints[k] = child.Int(e)
			}
		}
		return true
	})
	return v, nil
}

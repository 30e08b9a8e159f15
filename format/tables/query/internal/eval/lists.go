package eval

import (
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/format/tables/query/internal/vec"
)

// EachList calls f for each list of a column that is not null. The result is null where the list is, or where f reports
// false.
func EachList(ev *Evaluator, a *Node, b *vec.Batch, v *vec.Vec,
	f func(k int, child *tables.Vector, lo, hi int) bool) {
	values := ev.loaded[a]
	for row := range b.N {
		place := b.Row(a.Table, row)
		if !values.Null(place) {
			child, lo, hi := values.List(place)
			if f(row, child, lo, hi) {
				continue
			}
		}
		if v.Nulls == nil {
			v.Nulls = make([]bool, b.N)
		}
		v.Nulls[row] = true
	}
}

// index computes list[i]. Lists count from 1, and from their end if i is negative; outside the list the result is null.
func (ev *Evaluator) index(n *Node, b *vec.Batch) (*vec.Vec, error) {
	indexes, err := ev.Eval(n.Args[1], b)
	if err != nil {
		return nil, err
	}
	if indexes.Ints == nil {
		return vec.AllNull(n.Type, b.N), nil
	}
	out := vec.AllNull(n.Type, b.N)
	out.Nulls = nil
	EachList(ev, n.Args[0], b, out, func(row int, child *tables.Vector, lo, hi int) bool {
		i := indexes.Ints[row]
		if i < 0 {
			i += int64(hi - lo)
		} else {
			i--
		}
		if indexes.IsNull(row) || i < 0 || i >= int64(hi-lo) || child.Null(lo+int(i)) {
			return false
		}
		elem := lo + int(i)
		switch sql.RepOf(n.Type) {
		case sql.RepFloat:
			out.Floats[row] = child.Float(elem)
		case sql.RepBytes:
			out.Data, _ = child.Raw()
			_, offs := child.Raw()
			out.Lo[row], out.Hi[row] = offs[elem], offs[elem+1]
		default:
			if n.Type.Kind == tables.Bool {
				out.Bools[row] = child.Int(elem) != 0
			} else {
				out.Ints[row] = child.Int(elem)
			}
		}
		return true
	})
	return out, nil
}

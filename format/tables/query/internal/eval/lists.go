package eval

import (
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/vec"
)

// EachList calls f for each list of a column that is not null. It returns the nulls of the result: where the list is
// null, or f reports false.
func EachList(ev *Evaluator, a *Node, b *vec.Batch, f func(k int, child *tables.Vector, lo, hi int) bool) (
	nulls []bool) {
	values := ev.loaded[a]
	for row := range b.N {
		place := b.Row(a.Table, row)
		if !values.Null(place) {
			child, lo, hi := values.List(place)
			if f(row, child, lo, hi) {
				continue
			}
		}
		if nulls == nil {
			nulls = make([]bool, b.N)
		}
		nulls[row] = true
	}
	return nulls
}

// index computes list[i]. Lists count from 1, and from their end if i is negative; outside the list the result is null.
func (ev *Evaluator) index(n *Node, b *vec.Batch) (*tables.Vector, error) {
	indexes, err := ev.Eval(n.Args[1], b)
	if err != nil {
		return nil, err
	}
	at := indexes.Ints()
	if at == nil {
		return tables.NewNulls(n.Type, b.N), nil
	}
	rows, elements := make([]int32, b.N), (*tables.Vector)(nil)
	nulls := EachList(ev, n.Args[0], b, func(row int, child *tables.Vector, lo, hi int) bool {
		i := at[row]
		if i < 0 {
			i += int64(hi - lo)
		} else {
			i--
		}
		if indexes.Null(row) || i < 0 || i >= int64(hi-lo) || child.Null(lo+int(i)) {
			return false
		}
		rows[row], elements = int32(lo)+int32(i), child
		return true
	})
	if elements == nil {
		return tables.NewNulls(n.Type, b.N), nil
	}
	return inSQL(elements.Pick(rows, nulls)), nil
}

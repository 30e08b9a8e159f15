package eval

import (
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/vec"
	"github.com/chaski-eo/chaski/internal/num"
)

// subset is a part of a batch. rows are its positions in the batch, nil if it is the whole batch.
type subset struct {
	b    *vec.Batch
	rows []int32
}

// split returns the rows for which f holds, and the others.
func (s subset) split(f func(k int) bool) (yes, no subset) {
	var chosen, others []int32
	for row := range s.b.N {
		if f(row) {
			chosen = append(chosen, int32(row))
		} else {
			others = append(others, int32(row))
		}
	}
	return s.at(chosen), s.at(others)
}

// at returns the rows at some positions of the subset.
func (s subset) at(at []int32) subset {
	if len(at) == s.b.N {
		return s
	}
	out := subset{b: s.b.Take(at), rows: at}
	if s.rows != nil {
		out.rows = num.Pick(s.rows, at)
	}
	return out
}

// evalCase computes each condition only for the rows that no earlier condition chose, and each value only for the rows
// that its condition chose.
func (ev *Evaluator) evalCase(n *Node, b *vec.Batch) (*tables.Vector, error) {
	out := vec.NewChoice(n.Type, b.N)
	left := subset{b: b}
	for i := 0; i < len(n.Args) && left.b.N > 0; i += 2 {
		now := left
		// A value is computed for the rows of its condition alone, because CASE guards values that would be errors in
		// other rows.
		if i+1 < len(n.Args) {
			cond, err := ev.Eval(n.Args[i], left.b)
			if err != nil {
				return nil, err
			}
			now, left = left.split(func(k int) bool { return cond.Bools() != nil && cond.Bools()[k] && !cond.Null(k) })
		}
		if value := n.Args[min(i+1, len(n.Args)-1)]; now.b.N > 0 && value.Type.Kind != tables.Null {
			values, err := ev.Eval(value, now.b)
			if err != nil {
				return nil, err
			}
			out.Take(values, now.rows)
		}
	}
	return out.Build(ev.Strings)
}

// evalCoalesce computes each value only for the rows in which all values before it are null.
func (ev *Evaluator) evalCoalesce(n *Node, b *vec.Batch) (*tables.Vector, error) {
	out := vec.NewChoice(n.Type, b.N)
	left := subset{b: b}
	for _, node := range n.Args {
		if left.b.N == 0 {
			break
		}
		if node.Type.Kind == tables.Null {
			continue
		}
		values, err := ev.Eval(node, left.b)
		if err != nil {
			return nil, err
		}
		out.Take(values, left.rows)
		_, left = left.split(func(k int) bool { return !values.Null(k) })
	}
	return out.Build(ev.Strings)
}

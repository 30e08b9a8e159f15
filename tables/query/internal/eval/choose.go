package eval

import (
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/plan"
	"github.com/chaski-eo/chaski/tables/query/internal/vec"
)

// some is a part of a batch; rows are its positions, nil if it is all of it.
type some struct {
	b    *vec.Batch
	rows []int32
}

// keep returns the rows of a part for which f holds, and the others.
func (s some) split(f func(k int) bool) (yes, no some) {
	var in, out []int32
	for k := range s.b.N {
		if f(k) {
			in = append(in, int32(k))
		} else {
			out = append(out, int32(k))
		}
	}
	return s.only(in), s.only(out)
}

func (s some) only(at []int32) some {
	if len(at) == s.b.N {
		return s
	}
	out := some{b: s.b.Take(at), rows: at}
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
func (ev *Evaluator) evalCase(n *plan.Node, b *vec.Batch) (*vec.Vec, error) {
	out := vec.NewChoice(n.Type, b.N)
	left := some{b: b}
	for i := 0; i < len(n.Args) && left.b.N > 0; i += 2 {
		now := left
		if i+1 < len(n.Args) {
			cond, err := ev.Eval(n.Args[i], left.b)
			if err != nil {
				return nil, err
			}
			now, left = left.split(func(k int) bool { return cond.Bools != nil && cond.Bools[k] && !cond.IsNull(k) })
		}
		if value := n.Args[min(i+1, len(n.Args)-1)]; now.b.N > 0 && value.Type.Kind != tables.Null {
			v, err := ev.Eval(value, now.b)
			if err != nil {
				return nil, err
			}
			out.Take(v, now.rows)
		}
	}
	return out.Build(ev.Strings)
}

// evalCoalesce computes each value for the rows where those before it are null.
func (ev *Evaluator) evalCoalesce(n *plan.Node, b *vec.Batch) (*vec.Vec, error) {
	out := vec.NewChoice(n.Type, b.N)
	left := some{b: b}
	for _, a := range n.Args {
		if left.b.N == 0 {
			break
		}
		if a.Type.Kind == tables.Null {
			continue
		}
		v, err := ev.Eval(a, left.b)
		if err != nil {
			return nil, err
		}
		out.Take(v, left.rows)
		_, left = left.split(func(k int) bool { return !v.IsNull(k) })
	}
	return out.Build(ev.Strings)
}

package eval

import (
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/tables/query/internal/plan"
	"github.com/chaski-eo/chaski/tables/query/internal/vec"
)

// verdict is the result of a condition on one column of coded strings: its truth for each code.
type verdict struct {
	column *plan.Node
	codes  []uint8
	truth  [256]truth
}

// truth is a value of SQL's three-valued logic.
type truth uint8

const (
	isFalse truth = iota
	isTrue
	isNull
)

// judge computes a condition once for each distinct string, if its only column is of coded strings and it cannot fail.
// It returns nil for other conditions.
func (ev *Evaluator) judge(n *plan.Node) (*verdict, error) {
	v, ok := ev.verdicts[n]
	if ok {
		return v, nil
	}
	node := onlyColumn(n, nil)
	if node != nil && ev.loaded[node] != nil && n.Type.Kind == tables.Bool {
		codes, values := ev.loaded[node].Coded()
		if values != nil {
			inner := New(ev.Ctx, nil)
			inner.loaded[node] = values
			got, err := inner.Eval(n, &vec.Batch{N: values.Len(), Tables: make([][]int32, node.Table+1)})
			if err != nil {
				return nil, err
			}
			v = &verdict{column: node, codes: codes}
			for k := range v.truth {
				switch {
				case got.IsNull(k):
					v.truth[k] = isNull
				case got.Bools[k]:
					v.truth[k] = isTrue
				}
			}
		}
	}
	ev.verdicts[n] = v
	return v, nil
}

// onlyColumn returns the only column of a condition that cannot fail for any value; c is the column found so far. It
// returns nil if there are several columns, or none, or an operator that may fail: that must be computed only for rows
// that exist.
func onlyColumn(n *plan.Node, c *plan.Node) *plan.Node {
	switch n.Op {
	case ast.OpColumn:
		if c == nil || c == n {
			return n
		}
		return nil
	case ast.OpCompare, ast.OpIn, ast.OpLike, ast.OpIsNull, ast.OpNot, ast.OpIsBool,
		ast.OpAnd, ast.OpOr:
	default:
		return nil
	}
	for _, node := range n.Args {
		if node.Op == plan.OpLiteral {
			continue
		}
		if c = onlyColumn(node, c); c == nil {
			return nil
		}
	}
	return c
}

// vec returns the truth for each row of a batch.
func (v *verdict) vec(b *vec.Batch) *vec.Vec {
	out := &vec.Vec{N: b.N, Bools: make([]bool, b.N)}
	for k := range out.Bools {
		switch v.truth[v.codes[b.Row(v.column.Table, k)]] {
		case isTrue:
			out.Bools[k] = true
		case isNull:
			if out.Nulls == nil {
				out.Nulls = make([]bool, b.N)
			}
			out.Nulls[k] = true
		}
	}
	return out
}

// rows returns the positions in a batch at which the condition holds.
func (v *verdict) rows(b *vec.Batch) []int32 {
	sel, n := make([]int32, b.N), 0
	if l := b.List(v.column.Table); l != nil {
		for k, row := range l {
			sel[n] = int32(k)
			if v.truth[v.codes[row]] == isTrue {
				n++
			}
		}
		return sel[:n]
	}
	for k, code := range v.codes[b.Lo : b.Lo+b.N] {
		sel[n] = int32(k)
		if v.truth[code] == isTrue {
			n++
		}
	}
	return sel[:n]
}

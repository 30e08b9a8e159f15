package eval

import (
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/format/tables/query/internal/vec"
	"github.com/chaski-eo/chaski/internal/num"
)

// codeVerdict is the result of a condition on one column of coded strings.
type codeVerdict struct {
	column *Node
	codes  []uint8
	ofCode *tables.Vector
}

// judge computes a condition once for each distinct string, if its only column is of coded strings and it cannot fail.
// It returns nil for other conditions.
func (ev *Evaluator) judge(n *Node) (v *codeVerdict, err error) {
	v, ok := ev.verdicts[n]
	if ok {
		return v, nil
	}
	if node := onlyColumn(n, nil); node != nil && ev.loaded[node] != nil && n.Type.Kind == tables.Bool {
		if codes, values := ev.loaded[node].Coded(); values != nil {
			inner := New(ev.Ctx, nil)
			inner.loaded[node] = values
			v = &codeVerdict{column: node, codes: codes}
			batch := &vec.Batch{N: values.Len(), Tables: make([][]int32, node.Table+1)}
			if v.ofCode, err = inner.Eval(n, batch); err != nil {
				return nil, err
			}
		}
	}
	ev.verdicts[n] = v
	return v, nil
}

// onlyColumn returns the only column of a condition that cannot fail for any value; c is the column found so far. It
// returns nil if there are several columns, or none, or an operator that may fail: that must be computed only for rows
// that exist.
func onlyColumn(n *Node, c *Node) *Node {
	switch n.Op {
	case ast.OpColumn:
		if c == nil || c == n {
			return n
		}
		return nil
	case ast.OpCompare, ast.OpIn, ast.OpLike, ast.OpIsNull, ast.OpNot, ast.OpIsBool, ast.OpAnd, ast.OpOr:
	default:
		return nil
	}
	for _, node := range n.Args {
		if node.Op == OpLiteral {
			continue
		}
		if c = onlyColumn(node, c); c == nil {
			return nil
		}
	}
	return c
}

// vec returns the result for each row of a batch.
func (v *codeVerdict) vec(b *vec.Batch) *tables.Vector {
	codes := vec.Part(v.codes, b.List(v.column.Table), b)
	nulls := v.ofCode.Nulls()
	if nulls != nil {
		nulls = num.Pick(nulls, codes)
	}
	return tables.NewBools(num.Pick(v.ofCode.Bools(), codes), nulls)
}

package eval

import (
	"cmp"
	"context"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
)

// Prune leaves out rows of a table for which the file's statistics show that a condition does not hold. rows are the
// numbers of the rows that stay, nil if all do.
func Prune(ctx context.Context, t *tables.Table, n *Node) (out *tables.Table, rows []int, err error) {
	terms := []*Node{n}
	if n.Op == ast.OpAnd {
		terms = n.Args
	}
	var ranges []tables.Range
	for _, x := range terms {
		if r, ok := rangeOf(x); ok {
			ranges = append(ranges, r)
		}
	}
	return t.Prune(ctx, ranges)
}

// rangeOf returns the range in which a column must lie for a comparison with a literal to hold. An AND of two
// comparisons (BETWEEN) is one range.
func rangeOf(n *Node) (r tables.Range, ok bool) {
	if n.Op == ast.OpAnd {
		for i, a := range n.Args {
			other, pruned := rangeOf(a)
			twice := other.Lo != nil && r.Lo != nil || other.Hi != nil && r.Hi != nil
			if !pruned || twice || i > 0 && other.Column != r.Column {
				return r, false
			}
			r = tables.Range{Column: other.Column, Lo: cmp.Or(r.Lo, other.Lo), Hi: cmp.Or(r.Hi, other.Hi)}
		}
		return r, true
	}
	if n.Op != ast.OpCompare || n.Args[0].Op != ast.OpColumn || n.Args[0].Field > 0 || n.Args[1].Literal == nil ||
		n.Args[1].Literal.Null {
		return r, false
	}
	node, literal := n.Args[0], n.Args[1].Literal
	floats := node.Type.Kind == tables.Float64 && n.Args[1].Type.Kind == tables.Float64
	if !floats && !node.Type.Equal(n.Args[1].Type) {
		return r, false
	}
	var x any
	switch {
	case node.Type.Kind == tables.String:
		x = literal.String
	case node.Type.Kind == tables.Float64 && literal.Float == literal.Float:
		x = literal.Float
	case sql.RepOf(node.Type) == sql.RepInt && node.Type.Kind != tables.Bool:
		number := literal.Int
		if literal.Rat != nil {
			number = sql.Word(literal.Rat.Num())
		}
		x = number
	default:
		return r, false
	}
	r.Column = node.Column
	switch n.Name {
	case "=":
		r.Lo, r.Hi = x, x
	case "<", "<=":
		r.Hi = x
	case ">", ">=":
		// NaN is above every number, but writers leave it out of the bounds: by these, its rows would be lost.
		if node.Type.Kind == tables.Float64 {
			return r, false
		}
		r.Lo = x
	case ">" + Ieee, ">=" + Ieee:
		r.Lo = x
	default:
		return r, false
	}
	return r, true
}

package query

import (
	"context"

	"github.com/chaski-eo/chaski/tables"
)

// prune leaves out the rows of a table that a condition can be told not to hold for without reading
// them. rows are the numbers of those that stay, nil if all do.
func prune(ctx context.Context, t *tables.Table, tab int, n *node) (out *tables.Table, rows []int, err error) {
	terms := []*node{n}
	if n.op == opAnd {
		terms = n.args
	}
	var ranges []tables.Range
	for _, x := range terms {
		if r, ok := rangeOf(x, tab); ok {
			ranges = append(ranges, r)
		}
	}
	return t.Prune(ctx, ranges)
}

// rangeOf returns the range in which a column must lie for a comparison with a literal to hold. AND of
// two (BETWEEN) is one range.
func rangeOf(n *node, tab int) (r tables.Range, ok bool) {
	if n.op == opAnd {
		for i, a := range n.args {
			x, is := rangeOf(a, tab)
			if !is || i > 0 && x.Column != r.Column || x.Lo != nil && r.Lo != nil || x.Hi != nil && r.Hi != nil {
				return r, false
			}
			r.Column = x.Column
			if x.Lo != nil {
				r.Lo = x.Lo
			}
			if x.Hi != nil {
				r.Hi = x.Hi
			}
		}
		return r, true
	}
	if n.op != opCompare || n.args[0].op != opColumn || n.args[0].tab != tab || n.args[1].lit == nil || n.args[1].lit.null {
		return r, false
	}
	c, l := n.args[0], n.args[1].lit
	if !c.typ.Equal(n.args[1].typ) {
		if c.typ.Kind != tables.Float64 || n.args[1].typ.Kind != tables.Float64 {
			return r, false
		}
	}
	var x any
	switch {
	case c.typ.Kind == tables.Text:
		x = l.s
	case c.typ.Kind == tables.Float64 && l.f == l.f:
		x = l.f
	case repOf(c.typ) == repInt && c.typ.Kind != tables.Bool:
		v := l.i
		if l.rat != nil {
			v = int64(lowBits(l.rat.Num()))
		}
		x = v
	default:
		return r, false
	}
	r.Column = c.col
	switch n.name {
	case "=":
		r.Lo, r.Hi = x, x
	case "<", "<=":
		r.Hi = x
	case ">", ">=":
		if c.typ.Kind == tables.Float64 {
			return r, false // NaN is above, and in no bound
		}
		r.Lo = x
	case ">" + ieee, ">=" + ieee:
		r.Lo = x
	default:
		return r, false
	}
	return r, true
}

package bind

import (
	"math"
	"math/big"
	"slices"

	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/tables/query/internal/sql"
)

// Compare binds a comparison, after converting both sides to one type.
func (b *Binder) Compare(name string, l, r *eval.Node) *eval.Node {
	if l.Literal != nil && r.Literal == nil { // put the literal on the right, which compareNumber and pruning expect
		flip := map[string]string{"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
		return b.Compare(flip[name], r, l)
	}
	if r.Literal != nil && r.Literal.Rat != nil && sql.IsInteger(l.Type) && l.Literal == nil {
		return b.compareNumber(name, l, r.Literal.Rat)
	}
	l, r = b.unify(l, r)
	return b.comparison(name, l, r)
}

// comparison returns a comparison of two nodes of one type.
func (b *Binder) comparison(name string, l, r *eval.Node) *eval.Node {
	return b.Intern(&eval.Node{Op: ast.OpCompare, Name: name, Type: sql.Bool, Args: []*eval.Node{l, r}})
}

// AsScanned rewrites a condition to what DuckDB's scan of a file computes, so that answers are the same. In a
// comparison of a float column with a number that is the whole condition, or one term of its AND, NaN is not above the
// number. Everywhere else NaN is above every number. That includes 32-bit floats compared with a number with an
// exponent, which is a DOUBLE: the column is converted before it is compared, so that the scan does not see the
// comparison.
func (b *Binder) AsScanned(n *eval.Node) *eval.Node {
	switch {
	case n.Op == ast.OpAnd:
		node := *n
		node.Args = make([]*eval.Node, len(n.Args))
		for i, a := range n.Args {
			node.Args[i] = b.AsScanned(a)
		}
		return b.Intern(&node)
	case n.Op == ast.OpNot && n.Args[0].Op == ast.OpCompare:
		in := n.Args[0]
		if opposite := map[string]string{"<": ">=", "<=": ">"}[in.Name]; opposite != "" {
			c := *in
			c.Name = opposite
			if got := b.AsScanned(&c); got != &c {
				return got
			}
		}
	case n.Op == ast.OpCompare && (n.Name == ">" || n.Name == ">="):
		l, r := n.Args[0], n.Args[1]
		if l.Op == ast.OpColumn && r.Literal != nil && r.Type.Kind == tables.Float64 &&
			!math.IsNaN(r.Literal.Float) && (l.Type.Bits == 64 || r.Type.Bits < 64) {
			return b.comparison(n.Name+eval.Ieee, l, r)
		}
	}
	return n
}

// compareNumber compares integers with a number exactly: it may have a fraction, or be out of their range.
func (b *Binder) compareNumber(name string, l *eval.Node, r *big.Rat) *eval.Node {
	wide := sql.Int64 // which holds all integers but the unsigned ones of 64 bits
	if sql.RepOf(l.Type) == sql.RepUint {
		wide = l.Type
	}
	lo, hi := sql.Limits(wide)
	number := new(big.Int).Div(r.Num(), r.Denom()) // rounded down
	equals := name == "=" || name == "<>"
	switch {
	case number.Cmp(hi) > 0, !r.IsInt() && equals: // x <= hi is true of all, and x > hi of none
		number = hi
		name = map[string]string{"<": "<=", "<=": "<=", "<>": "<=", ">": ">", ">=": ">", "=": ">"}[name]
	case number.Cmp(lo) < 0: // x >= lo is true of all, and x < lo of none
		number = lo
		name = map[string]string{">": ">=", ">=": ">=", "<>": ">=", "<": "<", "<=": "<", "=": "<"}[name]
	case !r.IsInt(): // x < 1.5 is x <= 1, and x >= 1.5 is x > 1
		name = map[string]string{"<": "<=", "<=": "<=", ">": ">", ">=": ">"}[name]
	}
	literal := eval.Literal{Rat: new(big.Rat).SetInt(number), Int: sql.Word(number)}
	return b.comparison(name, l, b.Literal(l.Type, literal))
}

// asTheyAre are the kinds whose values are compared as they are, in any type of the kind.
var asTheyAre = []tables.Kind{tables.String, tables.Binary, tables.Bool, tables.Date}

// unify converts two nodes to a type in which they can be compared.
func (b *Binder) unify(l, r *eval.Node) (*eval.Node, *eval.Node) {
	lt, rt := l.Type, r.Type
	either := func(k tables.Kind) bool { return lt.Kind == k || rt.Kind == k }
	refuse := func() (*eval.Node, *eval.Node) {
		b.unsupported("a comparison of type %s and type %s", eval.TypeName(l), eval.TypeName(r))
		return l, r
	}
	switch {
	case either(tables.Null), lt.Kind == rt.Kind && slices.Contains(asTheyAre, lt.Kind):
		return l, r
	case r.Literal != nil && rt.Kind == tables.String:
		parsed := b.parseAs(r, lt)
		if parsed.Type.Equal(lt) {
			return l, parsed
		}
		return b.unify(l, parsed)
	case l.Literal != nil && lt.Kind == tables.String:
		r, l = b.unify(r, l)
		return l, r
	case sql.RepOf(lt) == sql.RepOther || sql.RepOf(rt) == sql.RepOther || either(tables.Time):
		return refuse()
	case sql.IsDay(lt) && sql.IsDay(rt):
		return b.both(l, r, tables.Type{Kind: tables.Timestamp})
	case lt.Kind == tables.Bool && sql.IsInteger(rt) || sql.IsInteger(lt) && rt.Kind == tables.Bool:
		return refuse()
	case !sql.IsNumber(lt) || !sql.IsNumber(rt):
		b.Fail(sql.Bind("cannot compare values of type %s and type %s", eval.TypeName(l), eval.TypeName(r)))
		return l, r
	}
	typ, ok := floatOf(l, r)
	if !ok {
		if sql.RepOf(lt) == sql.RepInt && sql.RepOf(rt) == sql.RepInt {
			return l, r
		}
		if typ, ok = sql.Common(lt, rt); !ok {
			return refuse()
		}
	}
	return b.both(l, r, typ)
}

// both converts two nodes to a type.
func (b *Binder) both(l, r *eval.Node, t tables.Type) (*eval.Node, *eval.Node) {
	return b.Convert(l, t), b.Convert(r, t)
}

// floatOf returns the common type of two numbers if one of them is a float. A number with a point, which DuckDB takes
// for a DECIMAL, does not widen a FLOAT.
func floatOf(l, r *eval.Node) (t tables.Type, ok bool) {
	single := false
	for _, n := range [...]*eval.Node{l, r} {
		if n.Type.Kind != tables.Float64 {
			continue
		}
		ok = true
		switch {
		case n.Type.Bits < 64:
			single = true
		case n.Literal == nil || n.Literal.Rat == nil:
			return sql.Double, true
		}
	}
	if single {
		return sql.Float, true
	}
	return sql.Double, ok
}

// equal compares for IN, in which DuckDB casts strings and numbers to each other.
func (b *Binder) equal(l, r *eval.Node) *eval.Node {
	before := b.Err
	node := b.Compare("=", l, r)
	if before == nil && b.Err != nil && (l.Type.Kind == tables.String) != (r.Type.Kind == tables.String) {
		b.Err = sql.Unsupported("a cast of type %s or %s", eval.TypeName(l), eval.TypeName(r))
	}
	return node
}

// negate joins terms by AND or OR and puts NOT before them if not is set.
func (b *Binder) negate(not bool, op ast.Op, terms ...*eval.Node) *eval.Node {
	node := terms[0]
	if len(terms) > 1 {
		node = b.Intern(&eval.Node{Op: op, Type: sql.Bool, Args: terms})
	}
	if not {
		node = b.Intern(&eval.Node{Op: ast.OpNot, Type: sql.Bool, Args: []*eval.Node{node}})
	}
	return node
}

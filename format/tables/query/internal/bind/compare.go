package bind

import (
	"math"
	"math/big"
	"slices"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/format/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
)

// Compare binds a comparison, after converting both sides to one type.
func (b *Binder) Compare(name string, l, r *eval.Node) *eval.Node {
	// The literal needs to be on the right, where compareNumber and pruning expect it.
	if l.Literal != nil && r.Literal == nil {
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

// AsScanned rewrites a condition to what DuckDB's scan of a file computes, so answers are the same. In a
// comparison of a float column with a number that is the whole condition, or one term of its AND, NaN is not above the
// number. Everywhere else NaN is above every number. That includes 32-bit floats compared with a number with an
// exponent, which is a DOUBLE: the column is converted before it is compared, so the scan does not see the
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
		compared := n.Args[0]
		if opposite := map[string]string{"<": ">=", "<=": ">"}[compared.Name]; opposite != "" {
			negated := *compared
			negated.Name = opposite
			if got := b.AsScanned(&negated); got != &negated {
				return got
			}
		}
	case n.Op == ast.OpCompare && (n.Name == ">" || n.Name == ">="):
		left, right := n.Args[0], n.Args[1]
		if left.Op == ast.OpColumn && right.Literal != nil && right.Type.Kind == tables.Float64 &&
			!math.IsNaN(right.Literal.Float) && (left.Type.Bits == 64 || right.Type.Bits < 64) {
			return b.comparison(n.Name+eval.Ieee, left, right)
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
	leftType, rightType := l.Type, r.Type
	either := func(k tables.Kind) bool { return leftType.Kind == k || rightType.Kind == k }
	refuse := func() (*eval.Node, *eval.Node) {
		b.unsupported("a comparison of type %s and type %s", eval.TypeName(l), eval.TypeName(r))
		return l, r
	}
	switch {
	case either(tables.Null), leftType.Kind == rightType.Kind && slices.Contains(asTheyAre, leftType.Kind):
		return l, r
	case r.Literal != nil && rightType.Kind == tables.String:
		parsed := b.parseAs(r, leftType)
		if parsed.Type.Equal(leftType) {
			return l, parsed
		}
		return b.unify(l, parsed)
	case l.Literal != nil && leftType.Kind == tables.String:
		r, l = b.unify(r, l)
		return l, r
	case sql.RepOf(leftType) == sql.RepOther || sql.RepOf(rightType) == sql.RepOther || either(tables.Time):
		return refuse()
	case sql.IsDay(leftType) && sql.IsDay(rightType):
		return b.both(l, r, tables.Type{Kind: tables.Timestamp})
	case leftType.Kind == tables.Bool && sql.IsInteger(rightType),
		sql.IsInteger(leftType) && rightType.Kind == tables.Bool:
		return refuse()
	case !sql.IsNumber(leftType) || !sql.IsNumber(rightType):
		b.Fail(sql.Bind("cannot compare values of type %s and type %s", eval.TypeName(l), eval.TypeName(r)))
		return l, r
	}
	typ, ok := floatOf(l, r)
	if !ok {
		if sql.RepOf(leftType) == sql.RepInt && sql.RepOf(rightType) == sql.RepInt {
			return l, r
		}
		if typ, ok = sql.Common(leftType, rightType); !ok {
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
	for _, node := range [...]*eval.Node{l, r} {
		if node.Type.Kind != tables.Float64 {
			continue
		}
		ok = true
		switch {
		case node.Type.Bits < 64:
			single = true
		case node.Literal == nil || node.Literal.Rat == nil:
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
		// DuckDB casts strings and numbers of IN to each other, so it would run what Compare refuses.
		b.Err = sql.Unsupported("a cast of type %s or %s", eval.TypeName(l), eval.TypeName(r))
	}
	return node
}

// negate joins terms by AND or OR, and negates the result if not is set.
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

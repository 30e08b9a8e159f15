package bind

import (
	"math"
	"math/big"
	"slices"

	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/tables/query/internal/plan"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
	"github.com/chaski-eo/chaski/tables/query/internal/sqltype"
)

// Compare binds a comparison, after converting both sides to one type.
func (b *Binder) Compare(name string, l, r *plan.Node) (*plan.Node, error) {
	if l.Literal != nil && r.Literal == nil { // put the literal on the right, which compareNumber and pruning expect
		flip := map[string]string{"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
		return b.Compare(flip[name], r, l)
	}
	if r.Literal != nil && r.Literal.Rat != nil && sqltype.IsInteger(l.Type) && l.Literal == nil {
		return b.compareNumber(name, l, r.Literal.Rat)
	}
	l, r, err := b.unify(l, r)
	if err != nil {
		return nil, err
	}
	return b.Intern(&plan.Node{Op: ast.OpCompare, Name: name, Type: sqltype.Bool, Args: []*plan.Node{l, r}})
}

// AsScanned rewrites a condition to what DuckDB's scan of a file computes, so that answers are the same. In a
// comparison of a float column with a number that is the whole condition, or one term of its AND, NaN is not above the
// number. Everywhere else NaN is above every number. That includes 32-bit floats compared with a number with an
// exponent, which is a DOUBLE: the column is converted before it is compared, so that the scan does not see the
// comparison.
func (b *Binder) AsScanned(n *plan.Node) (*plan.Node, error) {
	switch {
	case n.Op == ast.OpAnd:
		node := *n
		node.Args = make([]*plan.Node, len(n.Args))
		for i, a := range n.Args {
			var err error
			if node.Args[i], err = b.AsScanned(a); err != nil {
				return nil, err
			}
		}
		return b.Intern(&node)
	case n.Op == ast.OpNot && n.Args[0].Op == ast.OpCompare:
		in := n.Args[0]
		if opposite := map[string]string{"<": ">=", "<=": ">"}[in.Name]; opposite != "" {
			c := *in
			c.Name = opposite
			if got, err := b.AsScanned(&c); err != nil || got != &c {
				return got, err
			}
		}
	case n.Op == ast.OpCompare && (n.Name == ">" || n.Name == ">="):
		l, r := n.Args[0], n.Args[1]
		if l.Op == ast.OpColumn && r.Literal != nil && r.Type.Kind == tables.Float64 &&
			!math.IsNaN(r.Literal.Float) && (l.Type.Bits == 64 || r.Type.Bits < 64) {
			c := *n
			c.Name += plan.Ieee
			return b.Intern(&c)
		}
	}
	return n, nil
}

// compareNumber compares integers with a number exactly: it may have a fraction, or be out of their range.
func (b *Binder) compareNumber(name string, l *plan.Node, r *big.Rat) (*plan.Node, error) {
	wide := sqltype.Int64 // which holds all integers but those of 64 bits without a sign
	if sqltype.RepOf(l.Type) == sqltype.RepUint {
		wide = l.Type
	}
	lo, hi := sqltype.Limits(wide)
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
	literal, err := b.Literal(l.Type, plan.Literal{Rat: new(big.Rat).SetInt(number), Int: sqltype.Word(number)})
	if err != nil {
		return nil, err
	}
	return b.Intern(&plan.Node{Op: ast.OpCompare, Name: name, Type: sqltype.Bool, Args: []*plan.Node{l, literal}})
}

// asTheyAre are the kinds whose values are compared as they are, in any type of the kind.
var asTheyAre = []tables.Kind{tables.String, tables.Binary, tables.Bool, tables.Date}

// unify converts two nodes to a type in which they can be compared.
func (b *Binder) unify(l, r *plan.Node) (*plan.Node, *plan.Node, error) {
	lt, rt := l.Type, r.Type
	either := func(k tables.Kind) bool { return lt.Kind == k || rt.Kind == k }
	switch {
	case either(tables.Null):
		return l, r, nil
	case lt.Kind == rt.Kind && slices.Contains(asTheyAre, lt.Kind):
		return l, r, nil
	case r.Literal != nil && rt.Kind == tables.String:
		r2, err := b.parseAs(r, lt)
		if err != nil {
			return nil, nil, err
		}
		if r2.Type.Equal(lt) {
			return l, r2, nil
		}
		return b.unify(l, r2)
	case l.Literal != nil && lt.Kind == tables.String:
		r2, l2, err := b.unify(r, l)
		return l2, r2, err
	case sqltype.RepOf(lt) == sqltype.RepOther || sqltype.RepOf(rt) == sqltype.RepOther || either(tables.Time):
		return nil, nil, sqlerr.Unsupported("a comparison of type %s and type %s", plan.TypeName(l), plan.TypeName(r))
	case either(tables.String) || either(tables.Binary):
		return nil, nil, cannotCompare(l, r)
	case sqltype.IsDay(lt) && sqltype.IsDay(rt):
		return b.both(l, r, tables.Type{Kind: tables.Timestamp})
	case lt.Kind == tables.Bool && sqltype.IsInteger(rt) || sqltype.IsInteger(lt) && rt.Kind == tables.Bool:
		return nil, nil, sqlerr.Unsupported("a comparison of type %s and type %s", plan.TypeName(l), plan.TypeName(r))
	case !sqltype.IsNumber(lt) || !sqltype.IsNumber(rt):
		return nil, nil, cannotCompare(l, r)
	}
	return b.unifyNumbers(l, r)
}

func cannotCompare(l, r *plan.Node) error {
	return sqlerr.Bind("cannot compare values of type %s and type %s", plan.TypeName(l), plan.TypeName(r))
}

// both converts two nodes to a type.
func (b *Binder) both(l, r *plan.Node, t tables.Type) (*plan.Node, *plan.Node, error) {
	l2, err := b.Convert(l, t)
	if err != nil {
		return nil, nil, err
	}
	r2, err := b.Convert(r, t)
	return l2, r2, err
}

// unifyNumbers implements unify for numbers.
func (b *Binder) unifyNumbers(l, r *plan.Node) (*plan.Node, *plan.Node, error) {
	if t, ok := floatOf(l, r); ok {
		return b.both(l, r, t)
	}
	if sqltype.RepOf(l.Type) == sqltype.RepInt && sqltype.RepOf(r.Type) == sqltype.RepInt {
		return l, r, nil
	}
	typ, ok := sqltype.Common(l.Type, r.Type)
	if !ok {
		return nil, nil, sqlerr.Unsupported("a comparison of type %s and type %s", plan.TypeName(l), plan.TypeName(r))
	}
	return b.both(l, r, typ)
}

// floatOf returns the common type of two numbers if one of them is a float. A number with a point, which DuckDB takes
// for a DECIMAL, does not widen a FLOAT.
func floatOf(l, r *plan.Node) (t tables.Type, ok bool) {
	single := false
	for _, n := range [...]*plan.Node{l, r} {
		if n.Type.Kind != tables.Float64 {
			continue
		}
		ok = true
		switch {
		case n.Type.Bits < 64:
			single = true
		case n.Literal == nil || n.Literal.Rat == nil:
			return sqltype.Double, true
		}
	}
	if single {
		return sqltype.Float, true
	}
	return sqltype.Double, ok
}

// equal compares for IN, in which DuckDB casts strings and numbers to each other.
func (b *Binder) equal(l, r *plan.Node) (*plan.Node, error) {
	node, err := b.Compare("=", l, r)
	if err != nil && (l.Type.Kind == tables.String) != (r.Type.Kind == tables.String) {
		return nil, sqlerr.Unsupported("a cast of type %s or %s", plan.TypeName(l), plan.TypeName(r))
	}
	return node, err
}

// negate joins terms by AND or OR and puts NOT before them if not is set.
func (b *Binder) negate(not bool, o ast.Op, terms ...*plan.Node) (*plan.Node, error) {
	node := terms[0]
	if len(terms) > 1 {
		var err error
		if node, err = b.Intern(&plan.Node{Op: o, Type: sqltype.Bool, Args: terms}); err != nil {
			return nil, err
		}
	}
	if !not {
		return node, nil
	}
	return b.Intern(&plan.Node{Op: ast.OpNot, Type: sqltype.Bool, Args: []*plan.Node{node}})
}

func (b *Binder) between(args []*plan.Node, not bool) (*plan.Node, error) {
	lo, err := b.Compare(">=", args[0], args[1])
	if err != nil {
		return nil, err
	}
	hi, err := b.Compare("<=", args[0], args[2])
	if err != nil {
		return nil, err
	}
	return b.negate(not, ast.OpAnd, lo, hi)
}

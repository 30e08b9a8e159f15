package bind

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/tables/query/internal/plan"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
	"github.com/chaski-eo/chaski/tables/query/internal/sqltype"
)

// Condition binds an expression that must be a truth value.
func (b *Binder) Condition(e *ast.Expr) (*plan.Node, error) {
	node, err := b.Bind(e)
	if err != nil {
		return nil, err
	}
	return b.Truth(node)
}

// Truth converts a node to a truth value: a number is true unless it is 0.
func (b *Binder) Truth(n *plan.Node) (*plan.Node, error) {
	switch {
	case n.Type.Kind == tables.Bool || n.Type.Kind == tables.Null:
		return n, nil
	case sqltype.IsInteger(n.Type) && n.Literal == nil:
		zero, err := b.number(new(big.Rat))
		if err != nil {
			return nil, err
		}
		return b.Compare("<>", n, zero)
	case sqltype.IsInteger(n.Type):
		return b.Literal(sqltype.Bool, plan.Literal{Int: sqltype.Bit(n.Literal.Rat.Sign() != 0)})
	}
	return nil, sqlerr.Unsupported("a condition of type %s", plan.TypeName(n))
}

// Bind binds an expression.
func (b *Binder) Bind(e *ast.Expr) (*plan.Node, error) {
	switch e.Op {
	case ast.OpColumn:
		return b.column(e)
	case ast.OpStar:
		return nil, sqlerr.Unsupported("a star inside an expression")
	case ast.OpNumber:
		return b.bindNumber(e)
	case ast.OpString:
		return b.Literal(sqltype.String, plan.Literal{String: e.Name})
	case ast.OpNull:
		return b.Literal(tables.Type{}, plan.Literal{Null: true})
	case ast.OpTrue, ast.OpFalse:
		return b.Literal(sqltype.Bool, plan.Literal{Int: sqltype.Bit(e.Op == ast.OpTrue)})
	case ast.OpDate, ast.OpTimestamp:
		return b.timeLiteral(e.Op, e.Name)
	case ast.OpCall:
		return b.call(e)
	}
	args, err := b.bindAll(e.Args)
	if err != nil {
		return nil, err
	}
	return b.operator(e, args)
}

// operator binds an operator over bound operands.
func (b *Binder) operator(e *ast.Expr, args []*plan.Node) (*plan.Node, error) {
	switch e.Op {
	case ast.OpNot, ast.OpAnd, ast.OpOr:
		return b.truths(&plan.Node{Op: e.Op, Args: args})
	case ast.OpMinus:
		return b.minus(args[0])
	case ast.OpCompare:
		return b.Compare(e.Name, args[0], args[1])
	case ast.OpArith:
		return b.Arith(e.Name, args[0], args[1])
	case ast.OpConcat:
		for i, a := range args {
			var err error
			if args[i], err = b.AsString(a); err != nil {
				return nil, err
			}
		}
		return b.Intern(&plan.Node{Op: ast.OpConcat, Type: sqltype.String, Args: args})
	case ast.OpCast:
		return b.cast(args[0], e.Type, e.Flag)
	case ast.OpCase:
		return b.Case(args)
	case ast.OpIn:
		return b.in(args, e.Not)
	case ast.OpBetween:
		return b.between(args, e.Not)
	case ast.OpLike:
		return b.like(e.Name, args, e.Not)
	case ast.OpIsNull:
		if a := args[0]; sqltype.RepOf(a.Type) == sqltype.RepOther && a.Op != ast.OpColumn && a.Op != plan.OpAggregate {
			return nil, sqlerr.Unsupported("IS NULL of type %s", plan.TypeName(a))
		}
		return b.Intern(&plan.Node{Op: ast.OpIsNull, Type: sqltype.Bool, Args: args, Not: e.Not})
	case ast.OpIsBool:
		return b.truths(&plan.Node{Op: ast.OpIsBool, Name: e.Name, Args: args, Not: e.Not})
	case ast.OpIndex:
		return b.index(args[0], args[1])
	}
	return nil, sqlerr.Unsupported("this expression")
}

// truths binds an operator whose operands and result are truth values.
func (b *Binder) truths(n *plan.Node) (*plan.Node, error) {
	for i := range n.Args {
		var err error
		if n.Args[i], err = b.Truth(n.Args[i]); err != nil {
			return nil, err
		}
	}
	n.Type = sqltype.Bool
	return b.Intern(n)
}

func (b *Binder) bindNumber(e *ast.Expr) (*plan.Node, error) {
	if strings.ContainsAny(e.Name, "eE") {
		f, err := strconv.ParseFloat(e.Name, 64)
		if err != nil {
			return nil, sqlerr.Bind("%s is out of range", e.Name)
		}
		return b.Literal(sqltype.Double, plan.Literal{Float: f})
	}
	if len(e.Name) > 64 {
		return nil, sqlerr.Unsupported("a number of %d digits", len(e.Name))
	}
	ratio, ok := new(big.Rat).SetString(e.Name)
	if !ok {
		return nil, sqlerr.Bind("%q is not a number", e.Name)
	}
	if strings.Contains(e.Name, ".") {
		return b.point(ratio)
	}
	return b.number(ratio)
}

// in binds x IN (a, b, …): as a set if all are literals of x's own type, else as equality with each.
func (b *Binder) in(args []*plan.Node, not bool) (*plan.Node, error) {
	node := args[0]
	if set := plan.NewSet(node, args[1:]); set != nil {
		n, err := b.Intern(&plan.Node{Op: ast.OpIn, Type: sqltype.Bool, Args: args, Not: not})
		if err == nil && n.Set == nil {
			n.Set = set
		}
		return n, err
	}
	terms := make([]*plan.Node, 0, len(args)-1)
	for _, a := range args[1:] {
		t, err := b.equal(node, a)
		if err != nil {
			return nil, err
		}
		terms = append(terms, t)
	}
	return b.negate(not, ast.OpOr, terms...)
}

func (b *Binder) like(name string, args []*plan.Node, not bool) (*plan.Node, error) {
	for _, a := range args {
		if a.Type.Kind != tables.String && a.Type.Kind != tables.Null {
			return nil, sqlerr.Bind("no function matches %s of type %s", name, plan.TypeName(a))
		}
	}
	var escape string
	if len(args) == 3 {
		if args[2].Literal == nil || args[2].Literal.Null || len([]rune(args[2].Literal.String)) != 1 {
			return nil, sqlerr.Unsupported("an ESCAPE that is not one character")
		}
		escape = args[2].Literal.String
	}
	node, err := b.Intern(&plan.Node{Op: ast.OpLike, Name: name, Type: sqltype.Bool, Args: args, Not: not})
	if err != nil || node.Like != nil {
		return node, err
	}
	if p := args[1]; p.Literal != nil && !p.Literal.Null {
		if node.Like, err = plan.NewLike(p.Literal.String, escape, name == "ILIKE"); err != nil {
			return nil, err
		}
		return node, nil
	}
	if p := args[1]; p.Literal == nil && p.Type.Kind != tables.Null {
		return nil, sqlerr.Unsupported("%s with a pattern that is not a literal", name)
	}
	return node, nil
}

// index binds list[i].
func (b *Binder) index(x, i *plan.Node) (*plan.Node, error) {
	if x.Type.Kind != tables.List || x.Op != ast.OpColumn {
		return nil, sqlerr.Unsupported("[ ] of type %s", plan.TypeName(x))
	}
	if sqltype.RepOf(*x.Type.Elem) == sqltype.RepOther {
		return nil, sqlerr.Unsupported("[ ] of type %s", plan.TypeName(x))
	}
	if !sqltype.IsInteger(i.Type) {
		return nil, sqlerr.Unsupported("[ ] with an index of type %s", plan.TypeName(i))
	}
	i, err := b.integer(i, sqltype.Int64)
	if err != nil {
		return nil, err
	}
	return b.Intern(&plan.Node{Op: ast.OpIndex, Type: *x.Type.Elem, Args: []*plan.Node{x, i}})
}

// call binds a function or an aggregate.
func (b *Binder) call(e *ast.Expr) (*plan.Node, error) {
	if b.Library.Aggregates[e.Name] != nil {
		return b.aggregate(e)
	}
	function := b.Library.Functions[e.Name]
	switch {
	case function == nil:
		return nil, sqlerr.Unsupported("the function %s", e.Name)
	case e.Flag:
		return nil, sqlerr.Bind("DISTINCT is for aggregates, and %s is not one", e.Name)
	case len(e.Args) > maxArgs:
		return nil, fault.New(fault.Limit, "query", fault.NoOffset, "%s of %d values, at most %d", e.Name,
			len(e.Args), maxArgs)
	}
	args, err := b.bindAll(e.Args)
	if err != nil {
		return nil, err
	}
	return b.invoke(function, args)
}

// invoke binds a function over bound arguments.
func (b *Binder) invoke(f *Function, args []*plan.Node) (*plan.Node, error) {
	if f.Bind != nil {
		return f.Bind(b, f, args)
	}
	return b.ByParams(f, args)
}

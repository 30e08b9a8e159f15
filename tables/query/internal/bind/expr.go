package bind

import (
	"cmp"
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
func (b *Binder) Condition(e *ast.Expr) *plan.Node { return b.Truth(b.Bind(e)) }

// Truth converts a node to a truth value: a number is true unless it is 0.
func (b *Binder) Truth(n *plan.Node) *plan.Node {
	switch {
	case n.Type.Kind == tables.Bool || n.Type.Kind == tables.Null:
		return n
	case sqltype.IsInteger(n.Type) && n.Literal == nil:
		return b.Compare("<>", n, b.numeral(new(big.Rat), false))
	case sqltype.IsInteger(n.Type):
		return b.Literal(sqltype.Bool, plan.Literal{Int: sqltype.Bit(n.Literal.Rat.Sign() != 0)})
	}
	return b.unsupported("a condition of type %s", plan.TypeName(n))
}

// Bind binds an expression.
func (b *Binder) Bind(e *ast.Expr) *plan.Node {
	switch {
	case b.Err != nil:
		return b.Fail(b.Err)
	case e.Op == ast.OpColumn:
		node, err := b.column(e.Table, e.Name)
		if err != nil {
			return b.Fail(err)
		}
		return node
	}
	switch e.Op {
	case ast.OpStar:
		return b.unsupported("a star inside an expression")
	case ast.OpNumber:
		return b.bindNumber(e.Name)
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
	return b.operator(e, b.bindAll(e.Args))
}

// operator binds an operator over bound operands.
func (b *Binder) operator(e *ast.Expr, args []*plan.Node) *plan.Node {
	switch e.Op {
	case ast.OpNot, ast.OpAnd, ast.OpOr, ast.OpIsBool: // of truth values, as their operands are
		for i := range args {
			args[i] = b.Truth(args[i])
		}
		name := ""
		if e.Op == ast.OpIsBool {
			name = e.Name
		}
		return b.Intern(&plan.Node{Op: e.Op, Name: name, Type: sqltype.Bool, Args: args, Not: e.Not})
	case ast.OpMinus:
		return b.minus(args[0])
	case ast.OpCompare:
		return b.Compare(e.Name, args[0], args[1])
	case ast.OpArith:
		return b.Arith(e.Name, args[0], args[1])
	case ast.OpConcat:
		return b.Intern(&plan.Node{Op: e.Op, Type: sqltype.String,
			Args: []*plan.Node{b.AsString(args[0]), b.AsString(args[1])}})
	case ast.OpCast:
		return b.cast(args[0], e.Type, e.Flag)
	case ast.OpCase:
		return b.Case(args)
	case ast.OpIn:
		return b.in(args, e.Not)
	case ast.OpBetween:
		return b.negate(e.Not, ast.OpAnd, b.Compare(">=", args[0], args[1]), b.Compare("<=", args[0], args[2]))
	case ast.OpLike:
		return b.like(e.Name, args, e.Not)
	case ast.OpIsNull:
		if x := args[0]; sqltype.RepOf(x.Type) == sqltype.RepOther && x.Op != ast.OpColumn && x.Op != plan.OpAggregate {
			return b.unsupported("IS NULL of type %s", plan.TypeName(x))
		}
		return b.Intern(&plan.Node{Op: ast.OpIsNull, Type: sqltype.Bool, Args: args, Not: e.Not})
	case ast.OpIndex:
		return b.index(args[0], args[1])
	}
	return b.unsupported("this expression")
}

func (b *Binder) bindNumber(text string) *plan.Node {
	if strings.ContainsAny(text, "eE") {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return b.Fail(sqlerr.Bind("%s is out of range", text))
		}
		return b.Literal(sqltype.Double, plan.Literal{Float: f})
	}
	if len(text) > 64 {
		return b.unsupported("a number of %d digits", len(text))
	}
	ratio, ok := new(big.Rat).SetString(text)
	if !ok {
		return b.Fail(sqlerr.Bind("%q is not a number", text))
	}
	return b.numeral(ratio, strings.Contains(text, "."))
}

// in binds x IN (a, b, …): as a set if all are literals of x's own type, else as equality with each.
func (b *Binder) in(args []*plan.Node, not bool) *plan.Node {
	x := args[0]
	if set := plan.NewSet(x, args[1:]); set != nil {
		node := b.Intern(&plan.Node{Op: ast.OpIn, Type: sqltype.Bool, Args: args, Not: not})
		node.Set = cmp.Or(node.Set, set)
		return node
	}
	terms := make([]*plan.Node, 0, len(args)-1)
	for _, arg := range args[1:] {
		terms = append(terms, b.equal(x, arg))
	}
	return b.negate(not, ast.OpOr, terms...)
}

func (b *Binder) like(name string, args []*plan.Node, not bool) *plan.Node {
	for _, arg := range args {
		if arg.Type.Kind != tables.String && arg.Type.Kind != tables.Null {
			return b.Fail(sqlerr.Bind("no function matches %s of type %s", name, plan.TypeName(arg)))
		}
	}
	var escape string
	if len(args) == 3 {
		if args[2].Literal == nil || args[2].Literal.Null || len([]rune(args[2].Literal.String)) != 1 {
			return b.unsupported("an ESCAPE that is not one character")
		}
		escape = args[2].Literal.String
	}
	node := b.Intern(&plan.Node{Op: ast.OpLike, Name: name, Type: sqltype.Bool, Args: args, Not: not})
	switch pattern := args[1]; {
	case node.Like != nil || pattern.Type.Kind == tables.Null || pattern.Literal != nil && pattern.Literal.Null:
	case pattern.Literal == nil:
		return b.unsupported("%s with a pattern that is not a literal", name)
	default:
		var err error
		if node.Like, err = plan.NewLike(pattern.Literal.String, escape, name == "ILIKE"); err != nil {
			return b.Fail(err)
		}
	}
	return node
}

// index binds list[i].
func (b *Binder) index(x, i *plan.Node) *plan.Node {
	if x.Type.Kind != tables.List || x.Op != ast.OpColumn || sqltype.RepOf(*x.Type.Elem) == sqltype.RepOther {
		return b.unsupported("[ ] of type %s", plan.TypeName(x))
	}
	if !sqltype.IsInteger(i.Type) {
		return b.unsupported("[ ] with an index of type %s", plan.TypeName(i))
	}
	return b.Intern(&plan.Node{Op: ast.OpIndex, Type: *x.Type.Elem, Args: []*plan.Node{x, b.integer(i, sqltype.Int64)}})
}

// call binds a function or an aggregate.
func (b *Binder) call(e *ast.Expr) *plan.Node {
	if b.Library.Aggregates[e.Name] != nil {
		return b.aggregate(e)
	}
	function := b.Library.Functions[e.Name]
	switch {
	case function == nil:
		return b.unsupported("the function %s", e.Name)
	case e.Flag:
		return b.Fail(sqlerr.Bind("DISTINCT is for aggregates, and %s is not one", e.Name))
	case len(e.Args) > maxArgs:
		return b.Fail(fault.New(fault.Limit, "query", fault.NoOffset, "%s of %d values, at most %d", e.Name,
			len(e.Args), maxArgs))
	}
	return b.invoke(function, b.bindAll(e.Args))
}

// invoke binds a function over bound arguments.
func (b *Binder) invoke(f *Function, args []*plan.Node) *plan.Node {
	if f.bind != nil {
		return f.bind(b, f, args)
	}
	return b.ByParams(f, args)
}

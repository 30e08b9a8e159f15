package bind

import (
	"cmp"
	"math/big"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/format/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
)

// Condition binds an expression that must be a truth value.
func (b *Binder) Condition(e *ast.Expr) *eval.Node { return b.Truth(b.Bind(e)) }

// Truth converts a node to a truth value: a number is true unless it is 0.
func (b *Binder) Truth(n *eval.Node) *eval.Node {
	switch {
	case n.Type.Kind == tables.Bool || n.Type.Kind == tables.Null:
		return n
	case sql.IsInteger(n.Type) && n.Literal == nil:
		return b.Compare("<>", n, b.numeral(new(big.Rat), false))
	case sql.IsInteger(n.Type):
		return b.Literal(sql.Bool, eval.Literal{Int: sql.Bit(n.Literal.Rat.Sign() != 0)})
	}
	return b.unsupported("a condition of type %s", eval.TypeName(n))
}

// Bind binds an expression.
func (b *Binder) Bind(e *ast.Expr) *eval.Node {
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
		return b.Literal(sql.String, eval.Literal{String: e.Name})
	case ast.OpNull:
		return b.Literal(tables.Type{}, eval.Literal{Null: true})
	case ast.OpTrue, ast.OpFalse:
		return b.Literal(sql.Bool, eval.Literal{Int: sql.Bit(e.Op == ast.OpTrue)})
	case ast.OpDate, ast.OpTimestamp:
		return b.timeLiteral(e.Op, e.Name)
	case ast.OpCall:
		return b.call(e)
	}
	return b.operator(e, b.bindAll(e.Args))
}

// operator binds an operator over bound operands.
func (b *Binder) operator(e *ast.Expr, args []*eval.Node) *eval.Node {
	switch e.Op {
	case ast.OpNot, ast.OpAnd, ast.OpOr, ast.OpIsBool: // of truth values, as their operands are
		for i := range args {
			args[i] = b.Truth(args[i])
		}
		name := ""
		if e.Op == ast.OpIsBool {
			name = e.Name
		}
		return b.Intern(&eval.Node{Op: e.Op, Name: name, Type: sql.Bool, Args: args, Not: e.Not})
	case ast.OpMinus:
		return b.minus(args[0])
	case ast.OpCompare:
		return b.Compare(e.Name, args[0], args[1])
	case ast.OpArith:
		return b.Arith(e.Name, args[0], args[1])
	case ast.OpConcat:
		return b.Call(concatenation, sql.String, b.AsString(args[0]), b.AsString(args[1]))
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
		if x := args[0]; sql.RepOf(x.Type) == sql.RepOther && x.Op != ast.OpColumn && x.Op != eval.OpAggregate {
			return b.unsupported("IS NULL of type %s", eval.TypeName(x))
		}
		return b.Intern(&eval.Node{Op: ast.OpIsNull, Type: sql.Bool, Args: args, Not: e.Not})
	case ast.OpIndex:
		return b.index(args[0], args[1])
	}
	return b.unsupported("this expression")
}

func (b *Binder) bindNumber(text string) *eval.Node {
	if strings.ContainsAny(text, "eE") {
		number, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return b.Fail(sql.Bind("%s is out of range", text))
		}
		return b.Literal(sql.Double, eval.Literal{Float: number})
	}
	if len(text) > 64 {
		return b.unsupported("a number of %d digits", len(text))
	}
	ratio, ok := new(big.Rat).SetString(text)
	if !ok {
		return b.Fail(sql.Bind("%q is not a number", text))
	}
	return b.numeral(ratio, strings.Contains(text, "."))
}

// in binds x IN (a, b, …): as a set if all are literals of x's own type, else as equality with each.
func (b *Binder) in(args []*eval.Node, not bool) *eval.Node {
	x := args[0]
	if set := eval.NewSet(x, args[1:]); set != nil {
		node := b.Intern(&eval.Node{Op: ast.OpIn, Type: sql.Bool, Args: args, Not: not})
		node.Set = cmp.Or(node.Set, set)
		return node
	}
	terms := make([]*eval.Node, 0, len(args)-1)
	for _, arg := range args[1:] {
		terms = append(terms, b.equal(x, arg))
	}
	return b.negate(not, ast.OpOr, terms...)
}

func (b *Binder) like(name string, args []*eval.Node, not bool) *eval.Node {
	for _, arg := range args {
		if arg.Type.Kind != tables.String && arg.Type.Kind != tables.Null {
			return b.Fail(sql.Bind("no function matches %s of type %s", name, eval.TypeName(arg)))
		}
	}
	var escape string
	if len(args) == 3 {
		if args[2].Literal == nil || args[2].Literal.Null || len([]rune(args[2].Literal.String)) != 1 {
			return b.unsupported("an ESCAPE that is not one character")
		}
		escape = args[2].Literal.String
	}
	node := b.Intern(&eval.Node{Op: ast.OpLike, Name: name, Type: sql.Bool, Args: args, Not: not})
	switch pattern := args[1]; {
	case node.Like != nil || pattern.Type.Kind == tables.Null || pattern.Literal != nil && pattern.Literal.Null:
	case pattern.Literal == nil:
		return b.unsupported("%s with a pattern that is not a literal", name)
	default:
		var err error
		if node.Like, err = eval.NewLike(pattern.Literal.String, escape, name == "ILIKE"); err != nil {
			return b.Fail(err)
		}
	}
	return node
}

// index binds list[i].
func (b *Binder) index(x, i *eval.Node) *eval.Node {
	if x.Type.Kind != tables.List || x.Op != ast.OpColumn || sql.RepOf(*x.Type.Elem) == sql.RepOther {
		return b.unsupported("[ ] of type %s", eval.TypeName(x))
	}
	if !sql.IsInteger(i.Type) {
		return b.unsupported("[ ] with an index of type %s", eval.TypeName(i))
	}
	return b.Intern(&eval.Node{Op: ast.OpIndex, Type: *x.Type.Elem, Args: []*eval.Node{x, b.integer(i, sql.Int64)}})
}

// call binds a function or an aggregate.
func (b *Binder) call(e *ast.Expr) *eval.Node {
	if b.Library.Aggregates[e.Name] != nil {
		return b.aggregate(e)
	}
	function := b.Library.Functions[e.Name]
	switch {
	case function == nil:
		return b.unsupported("the function %s", e.Name)
	case e.Flag:
		return b.Fail(sql.Bind("DISTINCT is for aggregates, and %s is not one", e.Name))
	case len(e.Args) > maxArgs:
		return b.Fail(fault.New(fault.Limit, "query", "%s of %d values, at most %d", e.Name, len(e.Args), maxArgs))
	}
	return b.invoke(function, b.bindAll(e.Args))
}

// invoke binds a function over bound arguments.
func (b *Binder) invoke(f *Function, args []*eval.Node) *eval.Node {
	if f.bind != nil {
		return f.bind(b, f, args)
	}
	return b.ByParams(f, args)
}

package bind

import (
	"math/big"

	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/tables/query/internal/clock"
	"github.com/chaski-eo/chaski/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/tables/query/internal/plan"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
	"github.com/chaski-eo/chaski/tables/query/internal/sqltype"
	"github.com/chaski-eo/chaski/tables/query/internal/vec"
)

// Convert casts a node to another type that holds its values, or the nearest ones.
func (b *Binder) Convert(n *plan.Node, t tables.Type) *plan.Node {
	switch {
	case n.Type.Equal(t), n.Type.Kind == tables.Null, n.Type.Kind == tables.Timestamp && t.Kind == tables.Timestamp,
		n.Type.Kind == tables.Float64 && t.Kind == tables.Float64 && t.Bits == 64:
		return n
	case n.Literal != nil && n.Literal.Rat != nil && t.Kind == tables.Float64:
		f, _ := n.Literal.Rat.Float64()
		if t.Bits < 64 {
			g, _ := n.Literal.Rat.Float32()
			f = float64(g)
		}
		return b.Literal(t, plan.Literal{Float: f})
	case n.Literal != nil && n.Literal.Rat != nil && sqltype.IsInteger(n.Type) &&
		(t.Kind == tables.Int64 || t.Kind == tables.Uint64):
		if lo, hi := sqltype.Limits(t); sqltype.Within(n.Literal.Rat.Num(), lo, hi) {
			return b.integer(n, t)
		}
	case n.Literal != nil && n.Type.Kind == tables.String && t.Kind != tables.String:
		return b.parseAs(n, t)
	}
	return b.Intern(&plan.Node{Op: ast.OpCast, Type: t, Args: []*plan.Node{n}})
}

// parseAs parses a string literal as a value of a type.
func (b *Binder) parseAs(text *plan.Node, t tables.Type) *plan.Node {
	s := text.Literal.String
	switch t.Kind {
	case tables.Date:
		if _, _, ok := clock.ParseDate(s); ok {
			return b.timeLiteral(ast.OpDate, s)
		}
	case tables.Timestamp:
		if d, rest, ok := clock.ParseDate(s); ok && t.Nano {
			return b.clockLiteral(s, d, rest, true)
		}
		return b.timeLiteral(ast.OpTimestamp, s)
	case tables.Int64, tables.Uint64, tables.Float64, tables.Bool:
		node := b.fold(b.Intern(&plan.Node{Op: ast.OpCast, Type: t, Args: []*plan.Node{text}}))
		if node.Literal != nil {
			return node
		}
	default:
		return b.unsupported("the string %q as a value of type %s", s, plan.TypeName(&plan.Node{Type: t}))
	}
	return b.Fail(sqlerr.Bind("could not convert string %q to %s", s, plan.TypeName(&plan.Node{Type: t})))
}

// cast binds CAST, or TRY_CAST if try is set.
func (b *Binder) cast(n *plan.Node, t tables.Type, try bool) *plan.Node {
	if n.Type.Kind != t.Kind && !Castable(n.Type.Kind, t.Kind) || sqltype.RepOf(n.Type) == sqltype.RepOther {
		return b.unsupported("a cast of type %s to type %s", plan.TypeName(n), sqltype.Name(t))
	}
	if n.Type.Equal(t) && n.Type.Nano == t.Nano && (n.Literal == nil || n.Literal.Rat == nil) {
		return n
	}
	out := b.Intern(&plan.Node{Op: ast.OpCast, Type: t, Args: []*plan.Node{n}, Try: try})
	if n.Literal == nil || !sqltype.IsDay(t) {
		return out
	}
	return b.fold(out)
}

// fold computes an expression of literals, so that Prune can leave out rows by it. If the computation fails the node
// stays: it is an error only if there is a row to compute it for.
func (b *Binder) fold(n *plan.Node) *plan.Node {
	if b.Err != nil {
		return n
	}
	values, err := eval.New(b.ctx, nil).Eval(n, &vec.Batch{N: 1})
	switch {
	case err != nil:
		return n
	case values.IsNull(0):
		return b.Literal(n.Type, plan.Literal{Null: true})
	}
	literal := plan.Literal{Nanos: values.Nanos(0)}
	switch {
	case values.Bools != nil:
		literal.Int = sqltype.Bit(values.Bools[0])
	case values.Floats != nil:
		literal.Float = values.Floats[0]
	case values.Ints != nil:
		literal.Int = values.Ints[0]
	}
	switch n.Type.Kind {
	case tables.Uint64:
		literal.Rat = new(big.Rat).SetUint64(uint64(literal.Int))
	case tables.Int64:
		literal.Rat = new(big.Rat).SetInt64(literal.Int)
	}
	return b.Literal(n.Type, literal)
}

// AsString binds a cast to VARCHAR, unless the node is one.
func (b *Binder) AsString(n *plan.Node) *plan.Node {
	if n.Type.Kind == tables.String || n.Type.Kind == tables.Null {
		return n
	}
	return b.cast(n, sqltype.String, false)
}

// Castable reports whether this package casts values of one kind to another.
func Castable(from, to tables.Kind) bool {
	number := func(k tables.Kind) bool {
		return sqltype.IsNumber(tables.Type{Kind: k})
	}
	switch {
	case from == tables.Null:
		return true
	case from == tables.String || number(from) || from == tables.Bool:
		if from == tables.String && (to == tables.Date || to == tables.Time || to == tables.Timestamp) {
			return true
		}
		return number(to) || to == tables.Bool || to == tables.String
	case from == tables.Date:
		return to == tables.Timestamp || to == tables.String
	case from == tables.Timestamp:
		return to == tables.Date || to == tables.Time || to == tables.String
	case from == tables.Time:
		return to == tables.String
	}
	return false
}

// timeLiteral binds DATE '…' and TIMESTAMP '…'.
func (b *Binder) timeLiteral(op ast.Op, s string) *plan.Node {
	days, rest, ok := clock.ParseDate(s)
	switch {
	case !ok && op == ast.OpDate:
		return b.Fail(sqlerr.Bind("%q is not a date of the form 2006-01-02", s))
	case !ok:
		return b.Fail(sqlerr.Bind("%q is not a timestamp of the form 2006-01-02 15:04:05", s))
	case op == ast.OpTimestamp:
		return b.clockLiteral(s, days, rest, false)
	case rest != "":
		return b.unsupported("a date that reads %q", s)
	}
	return b.Literal(sqltype.Date, plan.Literal{Int: days})
}

// clockLiteral makes a timestamp of days and of rest, a time of day; with nano, one that counts nanoseconds.
func (b *Binder) clockLiteral(s string, days int64, rest string, nano bool) *plan.Node {
	ns, digits, ok := clock.ParseTimeOfDay(rest)
	if !ok || !nano && digits > 6 {
		return b.unsupported("a timestamp that reads %q", s)
	}
	return b.Literal(tables.Type{Kind: tables.Timestamp, Nano: nano},
		plan.Literal{Int: days*clock.DayMicros + ns/1000, Nanos: ns % 1000})
}

package bind

import (
	"math/big"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/format/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/format/tables/query/internal/vec"
)

// Convert casts a node to another type that holds its values, or the nearest ones.
func (b *Binder) Convert(n *eval.Node, t tables.Type) *eval.Node {
	switch {
	case n.Type.Equal(t), n.Type.Kind == tables.Null, n.Type.Kind == tables.Timestamp && t.Kind == tables.Timestamp,
		n.Type.Kind == tables.Float64 && t.Kind == tables.Float64 && t.Bits == 64:
		return n
	case n.Literal != nil && n.Literal.Rat != nil && t.Kind == tables.Float64:
		number, _ := n.Literal.Rat.Float64()
		if t.Bits < 64 {
			g, _ := n.Literal.Rat.Float32()
			number = float64(g)
		}
		return b.Literal(t, eval.Literal{Float: number})
	case n.Literal != nil && n.Literal.Rat != nil && sql.IsInteger(n.Type) &&
		(t.Kind == tables.Int64 || t.Kind == tables.Uint64):
		if lo, hi := sql.Limits(t); sql.Within(n.Literal.Rat.Num(), lo, hi) {
			return b.integer(n, t)
		}
	case n.Literal != nil && n.Type.Kind == tables.String && t.Kind != tables.String:
		return b.parseAs(n, t)
	}
	return b.Intern(&eval.Node{Op: ast.OpCast, Type: t, Args: []*eval.Node{n}})
}

// parseAs parses a string literal as a value of a type.
func (b *Binder) parseAs(text *eval.Node, t tables.Type) *eval.Node {
	value := text.Literal.String
	switch t.Kind {
	case tables.Date:
		if _, _, ok := sql.ParseDate(value); ok {
			return b.timeLiteral(ast.OpDate, value)
		}
	case tables.Timestamp:
		if d, rest, ok := sql.ParseDate(value); ok && t.Nano {
			return b.clockLiteral(value, d, rest, true)
		}
		return b.timeLiteral(ast.OpTimestamp, value)
	case tables.Int64, tables.Uint64, tables.Float64, tables.Bool:
		node := b.fold(b.Intern(&eval.Node{Op: ast.OpCast, Type: t, Args: []*eval.Node{text}}))
		if node.Literal != nil {
			return node
		}
	default:
		return b.unsupported("the string %q as a value of type %s", value, eval.TypeName(&eval.Node{Type: t}))
	}
	return b.Fail(sql.Bind("could not convert string %q to %s", value, eval.TypeName(&eval.Node{Type: t})))
}

// cast binds CAST, or TRY_CAST if try is set.
func (b *Binder) cast(n *eval.Node, t tables.Type, try bool) *eval.Node {
	if n.Type.Kind != t.Kind && !Castable(n.Type.Kind, t.Kind) || sql.RepOf(n.Type) == sql.RepOther {
		return b.unsupported("a cast of type %s to type %s", eval.TypeName(n), sql.Name(t))
	}
	if n.Type.Equal(t) && n.Type.Nano == t.Nano && (n.Literal == nil || n.Literal.Rat == nil) {
		return n
	}
	out := b.Intern(&eval.Node{Op: ast.OpCast, Type: t, Args: []*eval.Node{n}, Try: try})
	if n.Literal == nil || !sql.IsDay(t) {
		return out
	}
	return b.fold(out)
}

// fold computes an expression of literals. Prune can then leave out rows by it.
func (b *Binder) fold(n *eval.Node) *eval.Node {
	if b.Err != nil {
		return n
	}
	// If this fails the node stays, because it is an error only if there is a row to compute it for.
	values, err := eval.New(b.ctx, nil).Eval(n, &vec.Batch{N: 1})
	switch {
	case err != nil:
		return n
	case values.Null(0):
		return b.Literal(n.Type, eval.Literal{Null: true})
	}
	literal := eval.Literal{Nanos: values.Nano(0)}
	switch sql.RepOf(values.Type()) {
	case sql.RepFloat:
		literal.Float = values.Float(0)
	case sql.RepInt, sql.RepUint:
		literal.Int = values.Int(0)
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
func (b *Binder) AsString(n *eval.Node) *eval.Node {
	if n.Type.Kind == tables.String || n.Type.Kind == tables.Null {
		return n
	}
	return b.cast(n, sql.String, false)
}

// Castable reports whether this package casts values of one kind to another.
func Castable(from, to tables.Kind) bool {
	number := func(k tables.Kind) bool {
		return sql.IsNumber(tables.Type{Kind: k})
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
func (b *Binder) timeLiteral(op ast.Op, s string) *eval.Node {
	days, rest, ok := sql.ParseDate(s)
	switch {
	case !ok && op == ast.OpDate:
		return b.Fail(sql.Bind("%q is not a date of the form 2006-01-02", s))
	case !ok:
		return b.Fail(sql.Bind("%q is not a timestamp of the form 2006-01-02 15:04:05", s))
	case op == ast.OpTimestamp:
		return b.clockLiteral(s, days, rest, false)
	case rest != "":
		return b.unsupported("a date that reads %q", s)
	}
	return b.Literal(sql.Date, eval.Literal{Int: days})
}

// clockLiteral makes a timestamp of days and of rest, a time of day; with nano, one that counts nanoseconds.
func (b *Binder) clockLiteral(s string, days int64, rest string, nano bool) *eval.Node {
	nanos, digits, ok := sql.ParseTimeOfDay(rest)
	if !ok || !nano && digits > 6 {
		return b.unsupported("a timestamp that reads %q", s)
	}
	return b.Literal(tables.Type{Kind: tables.Timestamp, Nano: nano},
		eval.Literal{Int: days*sql.DayMicros + nanos/1000, Nanos: nanos % 1000})
}

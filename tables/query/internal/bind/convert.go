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
func (b *Binder) Convert(n *plan.Node, t tables.Type) (*plan.Node, error) {
	switch {
	case n.Type.Equal(t) || n.Type.Kind == tables.Null:
		return n, nil
	case n.Type.Kind == tables.Timestamp && t.Kind == tables.Timestamp:
		return n, nil
	case n.Type.Kind == tables.Float64 && t.Kind == tables.Float64 && t.Bits == 64:
		return n, nil
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
func (b *Binder) parseAs(text *plan.Node, t tables.Type) (*plan.Node, error) {
	s := text.Literal.String
	bad := func() (*plan.Node, error) {
		return nil, sqlerr.Bind("could not convert string %q to %s", s, plan.TypeName(&plan.Node{Type: t}))
	}
	switch t.Kind {
	case tables.Date:
		d, rest, ok := clock.ParseDate(s)
		if !ok {
			return bad()
		}
		if rest != "" {
			return nil, sqlerr.Unsupported("a date that reads %q", s)
		}
		return b.Literal(t, plan.Literal{Int: d})
	case tables.Timestamp:
		if d, rest, ok := clock.ParseDate(s); ok && t.Nano {
			return b.clockLiteral(s, d, rest, true)
		}
		return b.timeLiteral(ast.OpTimestamp, s)
	case tables.Int64, tables.Uint64, tables.Float64, tables.Bool:
		node, err := b.Intern(&plan.Node{Op: ast.OpCast, Type: t, Args: []*plan.Node{text}})
		if err == nil {
			node, err = b.fold(node)
		}
		if err != nil {
			return nil, err
		}
		if node.Literal == nil {
			return bad()
		}
		return node, nil
	}
	return nil, sqlerr.Unsupported("the string %q as a value of type %s", s, plan.TypeName(&plan.Node{Type: t}))
}

// cast binds CAST, or TRY_CAST if try is set.
func (b *Binder) cast(n *plan.Node, t tables.Type, try bool) (*plan.Node, error) {
	if n.Type.Kind != t.Kind && !Castable(n.Type.Kind, t.Kind) || sqltype.RepOf(n.Type) == sqltype.RepOther {
		return nil, sqlerr.Unsupported("a cast of type %s to type %s", plan.TypeName(n), sqltype.Name(t))
	}
	if n.Type.Equal(t) && n.Type.Nano == t.Nano && (n.Literal == nil || n.Literal.Rat == nil) {
		return n, nil
	}
	out, err := b.Intern(&plan.Node{Op: ast.OpCast, Type: t, Args: []*plan.Node{n}, Try: try})
	if err != nil || n.Literal == nil || !sqltype.IsDay(t) {
		return out, err
	}
	return b.fold(out)
}

// fold computes an expression of literals, so that Prune can leave out rows by it. If the computation fails the node
// stays: it is an error only if there is a row to compute it for.
func (b *Binder) fold(n *plan.Node) (*plan.Node, error) {
	values, err := eval.New(b.ctx, nil).Eval(n, &vec.Batch{N: 1})
	if err != nil {
		return n, nil //nolint:nilerr // see above
	}
	if values.IsNull(0) {
		return b.Literal(n.Type, plan.Literal{Null: true})
	}
	literal := plan.Literal{Nanos: values.Nanos(0)}
	switch {
	case values.Bools != nil:
		literal.Int = sqltype.Bit(values.Bools[0])
	case values.Floats != nil:
		literal.Float = values.Floats[0]
	case n.Type.Kind == tables.Uint64:
		literal.Rat = new(big.Rat).SetUint64(uint64(values.Ints[0]))
	case n.Type.Kind == tables.Int64:
		literal.Rat = new(big.Rat).SetInt64(values.Ints[0])
	}
	if values.Ints != nil {
		literal.Int = values.Ints[0]
	}
	return b.Literal(n.Type, literal)
}

// AsString binds a cast to VARCHAR, unless the node is one.
func (b *Binder) AsString(n *plan.Node) (*plan.Node, error) {
	if n.Type.Kind == tables.String || n.Type.Kind == tables.Null {
		return n, nil
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
func (b *Binder) timeLiteral(o ast.Op, s string) (*plan.Node, error) {
	d, rest, ok := clock.ParseDate(s)
	if o == ast.OpDate {
		switch {
		case !ok:
			return nil, sqlerr.Bind("%q is not a date of the form 2006-01-02", s)
		case rest != "":
			return nil, sqlerr.Unsupported("a date that reads %q", s)
		}
		return b.Literal(tables.Type{Kind: tables.Date}, plan.Literal{Int: d})
	}
	if !ok {
		return nil, sqlerr.Bind("%q is not a timestamp of the form 2006-01-02 15:04:05", s)
	}
	return b.clockLiteral(s, d, rest, false)
}

// clockLiteral makes a timestamp of days and of rest, a time of day; with nano, one that counts nanoseconds.
func (b *Binder) clockLiteral(s string, days int64, rest string, nano bool) (*plan.Node, error) {
	ns, digits, ok := clock.ParseTimeOfDay(rest)
	if !ok || !nano && digits > 6 {
		return nil, sqlerr.Unsupported("a timestamp that reads %q", s)
	}
	return b.Literal(tables.Type{Kind: tables.Timestamp, Nano: nano},
		plan.Literal{Int: days*86400e6 + ns/1000, Nanos: ns % 1000})
}

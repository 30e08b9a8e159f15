package bind

import (
	"math/big"

	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/tables/query/internal/clock"
	"github.com/chaski-eo/chaski/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/tables/query/internal/plan"
	"github.com/chaski-eo/chaski/tables/query/internal/sqltype"
)

func (b *Binder) minus(n *plan.Node) *plan.Node {
	typ := n.Type
	switch {
	case n.Literal != nil && n.Literal.Rat != nil:
		return b.numeral(new(big.Rat).Neg(n.Literal.Rat), typ.Kind == tables.Float64)
	case typ.Kind == tables.Int64:
		typ = sqltype.Int64
	case typ.Kind != tables.Float64 && typ.Kind != tables.Null:
		return b.unsupported("- of type %s", plan.TypeName(n))
	}
	return b.Intern(&plan.Node{Op: ast.OpMinus, Type: typ, Args: []*plan.Node{n}})
}

// Arith binds + - * / // % ^.
func (b *Binder) Arith(name string, l, r *plan.Node) *plan.Node {
	if name == "^" || name == "**" {
		return b.invoke(b.Library.Functions["pow"], []*plan.Node{l, r})
	}
	if sqltype.IsDay(l.Type) || sqltype.IsDay(r.Type) {
		return b.dayArith(name, l, r)
	}
	for _, n := range [...]*plan.Node{l, r} {
		if !sqltype.IsNumber(n.Type) && n.Type.Kind != tables.Null || n.Type.Kind == tables.Null &&
			l.Type.Kind == r.Type.Kind {
			return b.noArith(name, l, r)
		}
	}
	typ, isFloat := floatOf(l, r)
	if isFloat && name == "//" {
		return b.noArith(name, l, r)
	}
	if isFloat || name == "/" { // which divides integers as DOUBLE
		l, r = b.both(l, r, typ)
	} else {
		var ok bool
		if typ, ok = integerType(l, r); !ok {
			return b.noArith(name, l, r)
		}
		l, r = b.integer(l, typ), b.integer(r, typ)
	}
	return b.Intern(&plan.Node{Op: ast.OpArith, Name: name, Type: typ, Args: []*plan.Node{l, r}})
}

func (b *Binder) noArith(name string, l, r *plan.Node) *plan.Node {
	return b.unsupported("%s of type %s and type %s", name, plan.TypeName(l), plan.TypeName(r))
}

// integerType returns the type of a sum or product of integers, or false if DuckDB must compute it. Everything that
// fits is computed in signed 64 bits. DuckDB uses narrower types, whose overflow is an error only if no rule rewrote
// the expression first; here the result is right instead.
func integerType(l, r *plan.Node) (tables.Type, bool) {
	wide := tables.Type{Kind: tables.Uint64, Bits: 64}
	lo, hi := sqltype.Limits(wide)
	fits := func(n *plan.Node) bool {
		if n.Literal != nil && n.Literal.Rat != nil && sqltype.Within(n.Literal.Rat.Num(), lo, hi) {
			return true
		}
		return n.Type.Equal(wide) || n.Type.Kind == tables.Null
	}
	if l.Type.Equal(wide) || r.Type.Equal(wide) {
		return wide, fits(l) && fits(r)
	}
	return sqltype.Int64, true
}

// integer gives an integer literal the type t. Other integers stay, because they have the same form in memory.
func (b *Binder) integer(n *plan.Node, t tables.Type) *plan.Node {
	if n.Literal == nil || n.Literal.Null {
		return n
	}
	return b.Literal(t, plan.Literal{Rat: n.Literal.Rat, Int: sqltype.Word(n.Literal.Rat.Num())})
}

// dayArith binds what DuckDB computes with dates: a date plus or minus a number of days, and the days between two
// dates.
func (b *Binder) dayArith(name string, l, r *plan.Node) *plan.Node {
	if name == "+" && sqltype.IsInteger(l.Type) {
		l, r = r, l
	}
	switch {
	case l.Type.Kind != tables.Date || name != "+" && name != "-":
		return b.noArith(name, l, r)
	case r.Type.Kind == tables.Date && name == "-":
		return b.Call(daysBetween, sqltype.Int64, l, r)
	case !sqltype.IsInteger(r.Type):
		return b.noArith(name, l, r)
	}
	days := b.Convert(r, sqltype.Int64)
	if name == "-" {
		days = b.minus(days)
	}
	if days.Literal != nil {
		days = b.integer(days, sqltype.Int64)
	}
	out := b.Call(daysAfter, sqltype.Date, l, days)
	if l.Literal == nil || days.Literal == nil {
		return out
	}
	return b.fold(out)
}

// daysBetween and daysAfter are the operators on dates in the form of functions.
var (
	daysBetween = &Function{Names: []string{"-"}, eval: eval.Ints(func(_ *plan.Node, r eval.Row) (int64, error) {
		return r.Int(0) - r.Int(1), nil
	})}
	daysAfter = &Function{Names: []string{"+"}, eval: eval.Ints(func(_ *plan.Node, r eval.Row) (int64, error) {
		if days := r.Int(1); days > clock.MaxDays || days < -clock.MaxDays {
			return 0, clock.ErrRange
		}
		return r.Int(0) + r.Int(1), nil
	})}
)

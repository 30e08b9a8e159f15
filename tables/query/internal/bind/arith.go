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
)

func (b *Binder) minus(n *plan.Node) (*plan.Node, error) {
	switch {
	case n.Literal != nil && n.Literal.Rat != nil && n.Type.Kind == tables.Float64:
		return b.point(new(big.Rat).Neg(n.Literal.Rat))
	case n.Literal != nil && n.Literal.Rat != nil:
		return b.number(new(big.Rat).Neg(n.Literal.Rat))
	case n.Type.Kind == tables.Int64:
		return b.Intern(&plan.Node{Op: ast.OpMinus, Type: sqltype.Int64, Args: []*plan.Node{n}})
	case n.Type.Kind == tables.Float64, n.Type.Kind == tables.Null:
		return b.Intern(&plan.Node{Op: ast.OpMinus, Type: n.Type, Args: []*plan.Node{n}})
	}
	return nil, sqlerr.Unsupported("- of type %s", plan.TypeName(n))
}

// Arith binds + - * / // % ^.
func (b *Binder) Arith(name string, l, r *plan.Node) (*plan.Node, error) {
	if name == "^" || name == "**" {
		f := b.Library.Functions["pow"]
		return b.invoke(f, []*plan.Node{l, r})
	}
	if sqltype.IsDay(l.Type) || sqltype.IsDay(r.Type) {
		return b.dayArith(name, l, r)
	}
	for _, n := range [...]*plan.Node{l, r} {
		if !sqltype.IsNumber(n.Type) && n.Type.Kind != tables.Null || n.Type.Kind == tables.Null &&
			l.Type.Kind == r.Type.Kind {
			return nil, sqlerr.Unsupported("%s of type %s and type %s", name, plan.TypeName(l), plan.TypeName(r))
		}
	}
	float, isFloat := floatOf(l, r)
	switch {
	case isFloat && name == "//":
		return nil, sqlerr.Unsupported("// of type %s and type %s", plan.TypeName(l), plan.TypeName(r))
	case isFloat:
		return b.arithAs(name, l, r, float)
	case name == "/":
		return b.arithAs(name, l, r, sqltype.Double)
	}
	typ, ok := b.integerType(l, r)
	if !ok {
		return nil, sqlerr.Unsupported("%s of type %s and type %s", name, plan.TypeName(l), plan.TypeName(r))
	}
	l, err := b.integer(l, typ)
	if err != nil {
		return nil, err
	}
	if r, err = b.integer(r, typ); err != nil {
		return nil, err
	}
	return b.Intern(&plan.Node{Op: ast.OpArith, Name: name, Type: typ, Args: []*plan.Node{l, r}})
}

// arithAs converts both sides to type t and binds the operator.
func (b *Binder) arithAs(name string, l, r *plan.Node, t tables.Type) (*plan.Node, error) {
	l, r, err := b.both(l, r, t)
	if err != nil {
		return nil, err
	}
	return b.Intern(&plan.Node{Op: ast.OpArith, Name: name, Type: t, Args: []*plan.Node{l, r}})
}

// integerType returns the type of a sum or product of integers, or false if DuckDB must compute it. Everything that
// fits is computed in signed 64 bits. DuckDB uses narrower types, whose overflow is an error only if no rule rewrote
// the expression first; here the result is right instead.
func (b *Binder) integerType(l, r *plan.Node) (tables.Type, bool) {
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
func (b *Binder) integer(n *plan.Node, t tables.Type) (*plan.Node, error) {
	if n.Literal == nil || n.Literal.Null {
		return n, nil
	}
	return b.Literal(t, plan.Literal{Rat: n.Literal.Rat, Int: sqltype.Word(n.Literal.Rat.Num())})
}

// dayArith binds what DuckDB computes with dates: a date plus or minus a number of days, and the days between two
// dates.
func (b *Binder) dayArith(name string, l, r *plan.Node) (*plan.Node, error) {
	if name == "+" && sqltype.IsInteger(l.Type) {
		l, r = r, l
	}
	refused := sqlerr.Unsupported("%s of type %s and type %s", name, plan.TypeName(l), plan.TypeName(r))
	switch {
	case l.Type.Kind != tables.Date || name != "+" && name != "-":
		return nil, refused
	case r.Type.Kind == tables.Date && name == "-":
		return b.Call(daysBetween, sqltype.Int64, l, r)
	case !sqltype.IsInteger(r.Type):
		return nil, refused
	}
	days, err := b.Convert(r, sqltype.Int64)
	if err == nil && name == "-" {
		days, err = b.minus(days)
	}
	if err == nil && days.Literal != nil {
		days, err = b.integer(days, sqltype.Int64)
	}
	if err != nil {
		return nil, err
	}
	out, err := b.Call(daysAfter, sqltype.Date, l, days)
	if err != nil || l.Literal == nil || days.Literal == nil {
		return out, err
	}
	return b.fold(out)
}

// daysBetween and daysAfter are the operators on dates in the form of functions.
var (
	daysBetween = &Function{Names: []string{"-"}, Eval: eval.Ints(func(_ *plan.Node, r eval.Row) (int64, error) {
		return r.Int(0) - r.Int(1), nil
	})}
	daysAfter = &Function{Names: []string{"+"}, Eval: eval.Ints(func(_ *plan.Node, r eval.Row) (int64, error) {
		if days := r.Int(1); days > clock.MaxDays || days < -clock.MaxDays {
			return 0, clock.ErrRange
		}
		return r.Int(0) + r.Int(1), nil
	})}
)

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
	case n.Literal != nil && n.Literal.Rat != nil && n.Type.Kind == tables.Decimal:
		return b.Literal(n.Type, plan.Literal{Rat: new(big.Rat).Neg(n.Literal.Rat)})
	case n.Literal != nil && n.Literal.Rat != nil:
		return b.number(new(big.Rat).Neg(n.Literal.Rat)), nil
	case n.Type.Kind == tables.Int64:
		return b.Intern(&plan.Node{Op: ast.OpMinus, Type: sqltype.Int64, Args: []*plan.Node{n}})
	case n.Type.Kind == tables.Float64, n.Type.Kind == tables.Null, n.Type.Kind == tables.Huge,
		n.Type.Kind == tables.Decimal:
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
		if !sqltype.IsNumeric(n.Type) && n.Type.Kind != tables.Null || n.Type.Kind == tables.Null &&
			l.Type.Kind == r.Type.Kind {
			return nil, sqlerr.Unsupported("%s of type %s and type %s", name, plan.TypeName(l), plan.TypeName(r))
		}
	}
	float, isFloat := floatOf(l, r)
	decimal := l.Type.Kind == tables.Decimal || r.Type.Kind == tables.Decimal
	huge := l.Type.Kind == tables.Huge || r.Type.Kind == tables.Huge
	switch {
	case (isFloat || decimal) && name == "//":
		return nil, sqlerr.Unsupported("// of type %s and type %s", plan.TypeName(l), plan.TypeName(r))
	case isFloat:
		return b.arithAs(name, l, r, float)
	case name == "/":
		return b.arithAs(name, l, r, sqltype.Double)
	case decimal:
		return b.decimals(name, l, r)
	case huge:
		return b.arithAs(name, l, r, sqltype.Huge)
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

// decimals binds arithmetic of decimals, and of decimals with integers. The result has the precision that DuckDB gives
// it: at most 18 digits if 64 bits hold both operands, because it then computes in 64 bits, otherwise at most 38.
func (b *Binder) decimals(name string, l, r *plan.Node) (*plan.Node, error) {
	typ, y := sqltype.AsDecimal(l.Type), sqltype.AsDecimal(r.Type)
	limit := uint8(sqltype.MaxDigits)
	if max(typ.Precision, y.Precision) <= 18 {
		limit = 18
	}
	if name == "*" {
		t := tables.Type{Kind: tables.Decimal, Scale: typ.Scale + y.Scale}
		if t.Scale > sqltype.MaxDigits {
			return nil, sqlerr.Bind("a product has %d digits after the point: at most %d are possible",
				t.Scale, sqltype.MaxDigits)
		}
		if limit == 18 && t.Scale >= 18 {
			limit = sqltype.MaxDigits
		}
		t.Precision = max(min(typ.Precision+y.Precision, limit), t.Scale)
		node, err := b.Convert(l, typ)
		if err != nil {
			return nil, err
		}
		if r, err = b.Convert(r, y); err != nil {
			return nil, err
		}
		return b.Intern(&plan.Node{Op: ast.OpArith, Name: name, Type: t, Args: []*plan.Node{node, r}})
	}
	t := sqltype.CommonNumber(typ, y)
	if name != "%" && (t.Precision < limit || t.Precision < sqltype.MaxDigits && limit > 18) {
		t.Precision++
	}
	return b.arithAs(name, l, r, t)
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
	return sqltype.Int64, l.Type.Kind != tables.Huge && r.Type.Kind != tables.Huge
}

// integer gives an integer literal the type t. Other integers stay, because they have the same form in memory.
func (b *Binder) integer(n *plan.Node, t tables.Type) (*plan.Node, error) {
	if n.Literal == nil || n.Literal.Null {
		return n, nil
	}
	return b.Literal(t, plan.Literal{Rat: n.Literal.Rat, Int: int64(sqltype.LowBits(n.Literal.Rat.Num()))})
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
	case !sqltype.IsInteger(r.Type) || r.Type.Kind == tables.Huge:
		return nil, refused
	}
	days, err := b.Convert(r, sqltype.Int64)
	if err == nil && name == "-" {
		days, err = b.minus(days)
	}
	if err == nil && days.Literal != nil {
		days, err = b.Literal(sqltype.Int64,
			plan.Literal{Rat: days.Literal.Rat, Int: int64(sqltype.LowBits(days.Literal.Rat.Num()))})
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

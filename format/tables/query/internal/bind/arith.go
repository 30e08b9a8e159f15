package bind

import (
	"math"
	"math/big"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/format/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/format/tables/query/internal/vec"
)

func (b *Binder) minus(n *eval.Node) *eval.Node {
	typ := n.Type
	switch {
	case n.Literal != nil && n.Literal.Rat != nil:
		return b.numeral(new(big.Rat).Neg(n.Literal.Rat), typ.Kind == tables.Float64)
	case typ.Kind == tables.Int64:
		typ = sql.Int64
	case typ.Kind != tables.Float64 && typ.Kind != tables.Null:
		return b.unsupported("- of type %s", eval.TypeName(n))
	}
	if typ.Kind == tables.Float64 {
		return b.Call(negativeFloat, typ, n)
	}
	return b.Call(negativeInt, typ, n)
}

// Arith binds + - * / // % ^.
func (b *Binder) Arith(name string, l, r *eval.Node) *eval.Node {
	if name == "^" || name == "**" {
		return b.invoke(b.Library.Functions["pow"], []*eval.Node{l, r})
	}
	if sql.IsDay(l.Type) || sql.IsDay(r.Type) {
		return b.dayArith(name, l, r)
	}
	for _, n := range [...]*eval.Node{l, r} {
		if !sql.IsNumber(n.Type) && n.Type.Kind != tables.Null || n.Type.Kind == tables.Null &&
			l.Type.Kind == r.Type.Kind {
			return b.noArith(name, l, r)
		}
	}
	typ, isFloat := floatOf(l, r)
	if isFloat && name == "//" {
		return b.noArith(name, l, r)
	}
	// "/" divides integers as DOUBLE, as in DuckDB, so both must be floats.
	if isFloat || name == "/" {
		l, r = b.both(l, r, typ)
	} else {
		var ok bool
		if typ, ok = integerType(l, r); !ok {
			return b.noArith(name, l, r)
		}
		l, r = b.integer(l, typ), b.integer(r, typ)
	}
	return b.Intern(&eval.Node{Op: ast.OpArith, Name: name, Type: typ, Args: []*eval.Node{l, r}})
}

func (b *Binder) noArith(name string, l, r *eval.Node) *eval.Node {
	return b.unsupported("%s of type %s and type %s", name, eval.TypeName(l), eval.TypeName(r))
}

// integerType returns the type of a sum or product of integers, or false if DuckDB must compute it. Everything that
// fits is computed in signed 64 bits. DuckDB uses narrower types, whose overflow is an error only if no rule rewrote
// the expression first; here the result is right instead.
func integerType(l, r *eval.Node) (tables.Type, bool) {
	wide := tables.Type{Kind: tables.Uint64, Bits: 64}
	lo, hi := sql.Limits(wide)
	fits := func(n *eval.Node) bool {
		if n.Literal != nil && n.Literal.Rat != nil && sql.Within(n.Literal.Rat.Num(), lo, hi) {
			return true
		}
		return n.Type.Equal(wide) || n.Type.Kind == tables.Null
	}
	if l.Type.Equal(wide) || r.Type.Equal(wide) {
		return wide, fits(l) && fits(r)
	}
	return sql.Int64, true
}

// integer gives an integer literal the type t. Other integers stay, because they have the same form in memory.
func (b *Binder) integer(n *eval.Node, t tables.Type) *eval.Node {
	if n.Literal == nil || n.Literal.Null {
		return n
	}
	return b.Literal(t, eval.Literal{Rat: n.Literal.Rat, Int: sql.Word(n.Literal.Rat.Num())})
}

// dayArith binds what DuckDB computes with dates: a date plus or minus a number of days, and the days between two
// dates.
func (b *Binder) dayArith(name string, l, r *eval.Node) *eval.Node {
	if name == "+" && sql.IsInteger(l.Type) {
		l, r = r, l
	}
	switch {
	case l.Type.Kind != tables.Date || name != "+" && name != "-":
		return b.noArith(name, l, r)
	case r.Type.Kind == tables.Date && name == "-":
		return b.Call(daysBetween, sql.Int64, l, r)
	case !sql.IsInteger(r.Type):
		return b.noArith(name, l, r)
	}
	days := b.Convert(r, sql.Int64)
	if name == "-" {
		days = b.minus(days)
	}
	if days.Literal != nil {
		days = b.integer(days, sql.Int64)
	}
	out := b.Call(daysAfter, sql.Date, l, days)
	if l.Literal == nil || days.Literal == nil {
		return out
	}
	return b.fold(out)
}

// Operators in the form of functions.
var (
	daysBetween = operator("-", eval.Ints(func(_ *eval.Node, r eval.Row) (int64, error) {
		return r.Int(0) - r.Int(1), nil
	}))
	daysAfter = operator("+", eval.Ints(func(_ *eval.Node, r eval.Row) (int64, error) {
		if days := r.Int(1); days > sql.MaxDays || days < -sql.MaxDays {
			return 0, sql.ErrRange
		}
		return r.Int(0) + r.Int(1), nil
	}))
	negativeFloat = operator("-", eval.Floats(func(_ *eval.Node, r eval.Row) (float64, error) {
		return -r.Float(0), nil
	}))
	negativeInt = operator("-", eval.Ints(func(_ *eval.Node, r eval.Row) (int64, error) {
		if r.Int(0) == math.MinInt64 {
			return 0, eval.ErrOverflow
		}
		return -r.Int(0), nil
	}))
	concatenation = operator("||", eval.Strings(func(w *vec.StringWriter, _ *eval.Node, r eval.Row) error {
		w.Add(r.Bytes(0), r.Bytes(1))
		return nil
	}))
)

func operator(sign string, evaluation eval.Evaluation) *Function {
	return &Function{Call: eval.Call{Name: sign, Evaluate: evaluation}}
}

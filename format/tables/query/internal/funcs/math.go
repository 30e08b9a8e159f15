package funcs

import (
	"errors"
	"math"
	"math/big"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/bind"
	"github.com/chaski-eo/chaski/format/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/format/tables/query/internal/vec"
)

// Numbers returns the functions of numbers.
func Numbers() []*bind.Function {
	tinyInt := tables.Type{Kind: tables.Int64, Bits: 8}
	return []*bind.Function{
		bind.Define("round(x[, digits])",
			"rounded to a number of digits after the point (default: 0), halves away from 0; digits is a literal",
			sql.Double, either(roundFloats, roundInts)).Bound(bindRound),
		bind.Define("floor(x)", "the greatest whole number that is not above x", sql.Double, float(math.Floor)).
			Bound(bindWhole),
		bind.Define("ceil(x) ceiling", "the least whole number that is not below x", sql.Double, float(math.Ceil)).
			Bound(bindWhole),
		bind.Define("trunc(x)", "x without its fraction", sql.Double, float(math.Trunc)).Bound(bindWhole),
		bind.Define("abs(x)", "x without its sign", sql.Double, either(float(math.Abs), absInts)).Bound(bindAbs),
		bind.Define("sign(x)", "-1, 0 or 1", tinyInt, eval.Ints(func(_ *eval.Node, r eval.Row) (int64, error) {
			return sql.Bit(r.Float(0) > 0) - sql.Bit(r.Float(0) < 0), nil
		})),
		bind.Define("sqrt(x)", "the square root; an error if x is negative", sql.Double, root),
		bind.Define("pow(x, y) power", "x ^ y, which is also written x ** y", sql.Double,
			eval.Floats(func(_ *eval.Node, r eval.Row) (float64, error) {
				return math.Pow(r.Float(0), r.Float(1)), nil
			})),
		bind.Define("exp(x)", "e to the power of x", sql.Double, float(math.Exp)),
		bind.Define("ln(x)", "the natural logarithm; an error unless x is positive", sql.Double,
			logarithm(math.Log)),
		bind.Define("log10(x) log", "the logarithm to base 10; an error unless x is positive", sql.Double,
			logarithm(math.Log10)),
		bind.Define("radians(x)", "degrees as radians", sql.Double,
			float(func(x float64) float64 { return x * (math.Pi / 180) })),
		bind.Define("degrees(x)", "radians as degrees", sql.Double,
			float(func(x float64) float64 { return x * (180 / math.Pi) })),
		bind.Define("sin(x)", "the sine of x radians", sql.Double, float(math.Sin)),
		bind.Define("cos(x)", "the cosine of x radians", sql.Double, float(math.Cos)),
		bind.Define("tan(x)", "the tangent of x radians", sql.Double, float(math.Tan)),
		bind.Define("asin(x)", "the arc sine", sql.Double, float(math.Asin)),
		bind.Define("acos(x)", "the arc cosine", sql.Double, float(math.Acos)),
		bind.Define("atan(x)", "the arc tangent", sql.Double, float(math.Atan)),
		bind.Define("pi()", "3.14159…", sql.Double,
			eval.Floats(func(*eval.Node, eval.Row) (float64, error) { return math.Pi, nil })),
		bind.Define("isnan(x)", "whether x is NaN", sql.Bool, is(math.IsNaN)),
		bind.Define("isinf(x)", "whether x is infinite", sql.Bool,
			is(func(x float64) bool { return math.IsInf(x, 0) })),
		bind.Define("isfinite(x)", "whether x is neither infinite nor NaN", sql.Bool,
			is(func(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) })),
	}
}

// float returns the evaluation of a function of one number.
func float(f func(x float64) float64) eval.Evaluation {
	return eval.Floats(func(_ *eval.Node, r eval.Row) (float64, error) { return f(r.Float(0)), nil })
}

// logarithm returns the evaluation of a function of a number above 0.
func logarithm(f func(x float64) float64) eval.Evaluation {
	return eval.Floats(func(_ *eval.Node, r eval.Row) (float64, error) { return f(r.Float(0)), positive(r.Float(0)) })
}

// is returns the evaluation of a condition on a number.
func is(f func(x float64) bool) eval.Evaluation {
	return eval.Bools(func(_ *eval.Node, r eval.Row) bool { return f(r.Float(0)) })
}

// root is the evaluation of SQRT.
var root = eval.Floats(func(_ *eval.Node, r eval.Row) (float64, error) {
	if r.Float(0) < 0 {
		return 0, errors.New("cannot take the square root of a negative number")
	}
	return math.Sqrt(r.Float(0)), nil
})

func positive(x float64) error {
	switch {
	case x == 0:
		return errors.New("cannot take the logarithm of zero")
	case x < 0:
		return errors.New("cannot take the logarithm of a negative number")
	}
	return nil
}

// bindRound binds ROUND, whose number of digits must be a literal.
func bindRound(b *bind.Binder, f *bind.Function, args []*eval.Node) *eval.Node {
	if len(args) == 0 || len(args) > 2 || !numeric(args[0]) {
		return b.WrongArguments(f, args)
	}
	digits := int64(0)
	if len(args) == 2 {
		lit := args[1].Literal
		if lit == nil || lit.Rat == nil || !sql.IsInteger(args[1].Type) {
			return b.Fail(sql.Unsupported("round to a number of digits that is not a whole literal"))
		}
		x := lit.Rat.Num()
		if !x.IsInt64() || x.Int64() < -400 || x.Int64() > 400 {
			return b.Fail(sql.Unsupported("round to %s digits", x))
		}
		digits = x.Int64()
	}
	node, typ := args[0], args[0].Type
	switch {
	case sql.IsInteger(typ) && (sql.RepOf(typ) != sql.RepInt || node.Literal != nil && digits < 0):
		return b.Fail(sql.Unsupported("round of type %s", eval.TypeName(node)))
	case sql.IsInteger(typ) && digits >= 0:
		return node
	}
	number := b.Literal(sql.Int64, eval.Literal{Int: digits, Rat: big.NewRat(digits, 1)})
	return b.Call(f, typ, node, number)
}

// numeric reports whether a node is a number, or NULL.
func numeric(n *eval.Node) bool { return sql.IsNumber(n.Type) || n.Type.Kind == tables.Null }

var (
	roundFloats = eval.Floats(func(n *eval.Node, r eval.Row) (float64, error) {
		x := roundFloat(r.Float(0), int(n.Args[1].Literal.Int))
		if n.Type.Bits < 64 {
			x = float64(float32(x))
		}
		return x, nil
	})
	roundInts = eval.Ints(func(n *eval.Node, r eval.Row) (int64, error) {
		return roundInt(r.Int(0), -int(n.Args[1].Literal.Int)), nil
	})
	absInts = eval.Ints(func(_ *eval.Node, r eval.Row) (int64, error) {
		if r.Int(0) == math.MinInt64 {
			return 0, eval.ErrOverflow
		}
		return max(r.Int(0), -r.Int(0)), nil
	})
)

// either returns the evaluation of a function that has the type of its argument: floats or integers.
func either(floats, ints eval.Evaluation) eval.Evaluation {
	return func(ev *eval.Evaluator, n *eval.Node, args []*tables.Vector, b *vec.Batch) (*tables.Vector, error) {
		if sql.RepOf(n.Type) == sql.RepFloat {
			return floats(ev, n, args, b)
		}
		return ints(ev, n, args, b)
	}
}

// roundFloat rounds by multiplication, as DuckDB does: 1.005, which is less in binary, rounds to 1.0.
func roundFloat(x float64, by int) float64 {
	if by == 0 {
		return math.Round(x)
	}
	if by < 0 {
		p := math.Pow10(-by)
		if y := math.Round(x/p) * p; !math.IsNaN(y) && !math.IsInf(y, 0) {
			return y
		}
		return 0
	}
	p := math.Pow10(by)
	if y := math.Round(x*p) / p; !math.IsNaN(y) && !math.IsInf(y, 0) {
		return y
	}
	return x
}

// roundInt rounds to a multiple of 10^zeros.
func roundInt(x int64, zeros int) int64 {
	if zeros >= len(sql.PowersOf10) {
		return 0
	}
	power := int64(sql.PowersOf10[zeros])
	quotient := x / power
	if r := x % power; 2*sql.Abs(r) >= uint64(power) {
		// Halves round away from 0, so a negative number goes down.
		if x < 0 {
			quotient--
		} else {
			quotient++
		}
	}
	return quotient * power
}

// bindWhole binds FLOOR, CEIL and TRUNC. For integers FLOOR and CEIL return DOUBLE.
func bindWhole(b *bind.Binder, f *bind.Function, args []*eval.Node) *eval.Node {
	switch {
	case len(args) == 2:
		return b.Fail(sql.Unsupported("%s with a number of digits", f.Names[0]))
	case len(args) != 1 || !numeric(args[0]):
		return b.WrongArguments(f, args)
	}
	node := args[0]
	if sql.IsInteger(node.Type) {
		if f.Names[0] == "trunc" {
			return node
		}
		node = b.Convert(node, sql.Double)
	}
	return b.Call(f, node.Type, node)
}

func bindAbs(b *bind.Binder, f *bind.Function, args []*eval.Node) *eval.Node {
	if len(args) != 1 || !numeric(args[0]) {
		return b.WrongArguments(f, args)
	}
	typ := args[0].Type
	switch typ.Kind {
	case tables.Int64:
		typ = sql.Int64
	case tables.Uint64:
		return args[0]
	}
	return b.Call(f, typ, args...)
}

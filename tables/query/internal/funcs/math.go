package funcs

import (
	"errors"
	"math"
	"math/big"
	"slices"

	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/bind"
	"github.com/chaski-eo/chaski/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/tables/query/internal/plan"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
	"github.com/chaski-eo/chaski/tables/query/internal/sqltype"
	"github.com/chaski-eo/chaski/tables/query/internal/vec"
)

// Numbers returns the functions of numbers.
func Numbers() []*bind.Function {
	return slices.Concat(wholes(), powers(), angles(), tests())
}

// wholes returns the functions of rounding, signs and remainders.
func wholes() []*bind.Function {
	return []*bind.Function{
		{Names: []string{"round"}, Signature: "round(x[, digits])",
			Doc: "rounded to a number of digits after the point (default: 0), halves away from 0; digits " +
				"is a literal", Bind: bindRound, Eval: either(roundFloats, roundInts)},
		{Names: []string{"floor"}, Signature: "floor(x)", Doc: "the greatest whole number that is not above x",
			Bind: bindWhole, Eval: evalWhole(math.Floor)},
		{Names: []string{"ceil", "ceiling"}, Signature: "ceil(x)",
			Doc: "the least whole number that is not below x", Bind: bindWhole, Eval: evalWhole(math.Ceil)},
		{Names: []string{"trunc"}, Signature: "trunc(x)", Doc: "x without its fraction", Bind: bindWhole,
			Eval: evalWhole(math.Trunc)},
		{Names: []string{"abs"}, Signature: "abs(x)", Doc: "x without its sign", Bind: bindAbs,
			Eval: either(absFloats, absInts)},
		{Names: []string{"sign"}, Signature: "sign(x)", Doc: "-1, 0 or 1", Params: []bind.Param{bind.FloatParam},
			Type: tables.Type{Kind: tables.Int64, Bits: 8},
			Eval: eval.Ints(func(_ *plan.Node, r eval.Row) (int64, error) {
				return sqltype.Bit(r.Float(0) > 0) - sqltype.Bit(r.Float(0) < 0), nil
			})},
	}
}

// float returns a function of one number.
func float(name, sig, doc string, f func(x float64) float64, more ...string) *bind.Function {
	return &bind.Function{Names: append([]string{name}, more...), Signature: sig, Doc: doc,
		Params: []bind.Param{bind.FloatParam}, Type: sqltype.Double,
		Eval: eval.Floats(func(_ *plan.Node, r eval.Row) (float64, error) { return f(r.Float(0)), nil })}
}

// powers returns the functions of roots, powers and logarithms.
func powers() []*bind.Function {
	unary, two := []bind.Param{bind.FloatParam}, []bind.Param{bind.FloatParam, bind.FloatParam}
	logarithm := func(name, doc string, f func(x float64) float64, more ...string) *bind.Function {
		return &bind.Function{Names: append([]string{name}, more...), Signature: name + "(x)",
			Doc: doc + "; an error unless x is positive", Params: unary, Type: sqltype.Double,
			Eval: eval.Floats(func(_ *plan.Node, r eval.Row) (float64, error) {
				return f(r.Float(0)), positive(r.Float(0))
			})}
	}
	return []*bind.Function{
		{Names: []string{"sqrt"}, Signature: "sqrt(x)", Doc: "the square root; an error if x is negative",
			Params: unary, Type: sqltype.Double,
			Eval: eval.Floats(func(_ *plan.Node, r eval.Row) (float64, error) {
				if r.Float(0) < 0 {
					return 0, errors.New("cannot take the square root of a negative number")
				}
				return math.Sqrt(r.Float(0)), nil
			})},
		{Names: []string{"pow", "power"}, Signature: "pow(x, y)", Doc: "x ^ y, which is also written x ** y",
			Params: two, Type: sqltype.Double,
			Eval: eval.Floats(func(_ *plan.Node, r eval.Row) (float64, error) {
				return math.Pow(r.Float(0), r.Float(1)), nil
			})},
		float("exp", "exp(x)", "e to the power of x", math.Exp),
		logarithm("ln", "the natural logarithm", math.Log),
		logarithm("log10", "the logarithm to base 10", math.Log10, "log"),
	}
}

// angles returns the functions of trigonometry.
func angles() []*bind.Function {
	return []*bind.Function{
		float("radians", "radians(x)", "degrees as radians", func(x float64) float64 { return x * (math.Pi / 180) }),
		float("degrees", "degrees(x)", "radians as degrees", func(x float64) float64 { return x * (180 / math.Pi) }),
		float("sin", "sin(x)", "the sine of x radians", math.Sin),
		float("cos", "cos(x)", "the cosine of x radians", math.Cos),
		float("tan", "tan(x)", "the tangent of x radians", math.Tan),
		float("asin", "asin(x)", "the arc sine", math.Asin),
		float("acos", "acos(x)", "the arc cosine", math.Acos),
		float("atan", "atan(x)", "the arc tangent", math.Atan),
		{Names: []string{"pi"}, Signature: "pi()", Doc: "3.14159…", Type: sqltype.Double,
			Eval: eval.Floats(func(*plan.Node, eval.Row) (float64, error) {
				return math.Pi, nil
			})},
	}
}

// tests returns the functions of NaN and infinity.
func tests() []*bind.Function {
	test := func(name, doc string, f func(x float64) bool) *bind.Function {
		return &bind.Function{Names: []string{name}, Signature: name + "(x)", Doc: doc,
			Params: []bind.Param{bind.FloatParam},
			Type:   sqltype.Bool, Eval: eval.Bools(func(_ *plan.Node, r eval.Row) bool {
				return f(r.Float(0))
			})}
	}
	return []*bind.Function{
		test("isnan", "whether x is NaN", math.IsNaN),
		test("isinf", "whether x is infinite", func(x float64) bool { return math.IsInf(x, 0) }),
		test("isfinite", "whether x is neither infinite nor NaN", func(x float64) bool {
			return !math.IsInf(x, 0) && !math.IsNaN(x)
		}),
	}
}

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
func bindRound(b *bind.Binder, f *bind.Function, args []*plan.Node) *plan.Node {
	if len(args) == 0 || len(args) > 2 || !numeric(args[0]) {
		return b.WrongArguments(f, args)
	}
	digits := int64(0)
	if len(args) == 2 {
		lit := args[1].Literal
		if lit == nil || lit.Rat == nil || !sqltype.IsInteger(args[1].Type) {
			return b.Fail(sqlerr.Unsupported("round to a number of digits that is not a whole literal"))
		}
		x := lit.Rat.Num()
		if !x.IsInt64() || x.Int64() < -400 || x.Int64() > 400 {
			return b.Fail(sqlerr.Unsupported("round to %s digits", x))
		}
		digits = x.Int64()
	}
	node, typ := args[0], args[0].Type
	switch {
	case sqltype.IsInteger(typ) && (sqltype.RepOf(typ) != sqltype.RepInt || node.Literal != nil && digits < 0):
		return b.Fail(sqlerr.Unsupported("round of type %s", plan.TypeName(node)))
	case sqltype.IsInteger(typ) && digits >= 0:
		return node
	}
	number := b.Literal(sqltype.Int64, plan.Literal{Int: digits, Rat: big.NewRat(digits, 1)})
	return b.Call(f, typ, node, number)
}

// numeric reports whether a node is a number, or NULL.
func numeric(n *plan.Node) bool { return sqltype.IsNumber(n.Type) || n.Type.Kind == tables.Null }

var (
	roundFloats = eval.Floats(func(n *plan.Node, r eval.Row) (float64, error) {
		x := roundFloat(r.Float(0), int(n.Args[1].Literal.Int))
		if n.Type.Bits < 64 {
			x = float64(float32(x))
		}
		return x, nil
	})
	roundInts = eval.Ints(func(n *plan.Node, r eval.Row) (int64, error) {
		return roundInt(r.Int(0), -int(n.Args[1].Literal.Int)), nil
	})
	absFloats = eval.Floats(func(_ *plan.Node, r eval.Row) (float64, error) { return math.Abs(r.Float(0)), nil })
	absInts   = eval.Ints(func(_ *plan.Node, r eval.Row) (int64, error) {
		if r.Int(0) == math.MinInt64 {
			return 0, eval.ErrOverflow
		}
		return max(r.Int(0), -r.Int(0)), nil
	})
)

// either returns the evaluation of a function that has the type of its argument: floats or integers.
func either(floats, ints plan.Evaluation) plan.Evaluation {
	return func(ev plan.Evaluator, n *plan.Node, args []*vec.Vec, b *vec.Batch) (*vec.Vec, error) {
		if sqltype.RepOf(n.Type) == sqltype.RepFloat {
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
	if zeros >= len(sqltype.PowersOf10) {
		return 0
	}
	p := int64(sqltype.PowersOf10[zeros])
	q := x / p
	if r := x % p; 2*sqltype.Abs(r) >= uint64(p) {
		if x < 0 {
			q--
		} else {
			q++
		}
	}
	return q * p
}

// bindWhole binds FLOOR, CEIL and TRUNC. For integers FLOOR and CEIL return DOUBLE.
func bindWhole(b *bind.Binder, f *bind.Function, args []*plan.Node) *plan.Node {
	switch {
	case len(args) == 2:
		return b.Fail(sqlerr.Unsupported("%s with a number of digits", f.Names[0]))
	case len(args) != 1 || !numeric(args[0]):
		return b.WrongArguments(f, args)
	}
	node := args[0]
	if sqltype.IsInteger(node.Type) {
		if f.Names[0] == "trunc" {
			return node
		}
		node = b.Convert(node, sqltype.Double)
	}
	return b.Call(f, node.Type, node)
}

func evalWhole(f func(x float64) float64) plan.Evaluation {
	return eval.Floats(func(_ *plan.Node, r eval.Row) (float64, error) { return f(r.Float(0)), nil })
}

func bindAbs(b *bind.Binder, f *bind.Function, args []*plan.Node) *plan.Node {
	if len(args) != 1 || !numeric(args[0]) {
		return b.WrongArguments(f, args)
	}
	typ := args[0].Type
	switch typ.Kind {
	case tables.Int64:
		typ = sqltype.Int64
	case tables.Uint64:
		return args[0]
	}
	return b.Call(f, typ, args...)
}

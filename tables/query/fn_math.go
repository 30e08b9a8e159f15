package query

import (
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/chaski-eo/chaski/tables"
)

func mathFunctions() []*function {
	one, two := []param{realParam}, []param{realParam, realParam}
	float := func(name, sig, doc string, f func(x float64) float64, more ...string) *function {
		return &function{names: append([]string{name}, more...), sig: sig, doc: doc, params: one, typ: doubleType,
			eval: ofFloats(func(_ *node, r row) (float64, error) { return f(r.real(0)), nil })}
	}
	test := func(name, doc string, f func(x float64) bool) *function {
		return &function{names: []string{name}, sig: name + "(x)", doc: doc, params: one, typ: boolType, eval: ofBools(func(_ *node, r row) bool { return f(r.real(0)) })}
	}
	logarithm := func(name, doc string, f func(x float64) float64, more ...string) *function {
		return &function{names: append([]string{name}, more...), sig: name + "(x)", doc: doc + "; an error unless x is above 0", params: one, typ: doubleType,
			eval: ofFloats(func(_ *node, r row) (float64, error) { return f(r.real(0)), positive(r.real(0)) })}
	}
	return []*function{
		{names: []string{"round"}, sig: "round(x[, digits])", doc: "the nearest number with so many digits behind the point, halves away from 0; digits is a literal", bind: bindRound, eval: evalRound},
		{names: []string{"floor"}, sig: "floor(x)", doc: "the next whole number below", bind: bindWhole, eval: evalWhole(math.Floor)},
		{names: []string{"ceil", "ceiling"}, sig: "ceil(x)", doc: "the next whole number above", bind: bindWhole, eval: evalWhole(math.Ceil)},
		{names: []string{"trunc"}, sig: "trunc(x)", doc: "without what is behind the point", bind: bindWhole, eval: evalWhole(math.Trunc)},
		{names: []string{"abs"}, sig: "abs(x)", doc: "without its sign", bind: bindAbs, eval: evalAbs},
		{names: []string{"sign"}, sig: "sign(x)", doc: "-1, 0 or 1", params: one, typ: tables.Type{Kind: tables.Int64, Bits: 8},
			eval: ofInts(func(_ *node, r row) (int64, error) { return bit(r.real(0) > 0) - bit(r.real(0) < 0), nil })},
		{names: []string{"mod"}, sig: "mod(x, y)", doc: "x % y", bind: func(b *binder, f *function, args []*node) (*node, error) {
			if len(args) != 2 {
				return nil, wrongArgs(f, args)
			}
			return b.arith("%", args[0], args[1])
		}},
		{names: []string{"sqrt"}, sig: "sqrt(x)", doc: "the square root; an error below 0", params: one, typ: doubleType,
			eval: ofFloats(func(_ *node, r row) (float64, error) {
				if r.real(0) < 0 {
					return 0, errors.New("cannot take the square root of a negative number")
				}
				return math.Sqrt(r.real(0)), nil
			})},
		float("cbrt", "cbrt(x)", "the cube root", math.Cbrt),
		{names: []string{"pow", "power"}, sig: "pow(x, y)", doc: "x ^ y, which is also written x ** y", params: two, typ: doubleType,
			eval: ofFloats(func(_ *node, r row) (float64, error) { return math.Pow(r.real(0), r.real(1)), nil })},
		float("exp", "exp(x)", "e to the power of x", math.Exp),
		logarithm("ln", "the natural logarithm", math.Log),
		{names: []string{"log"}, sig: "log([base, ]x)", doc: "the logarithm to base 10, or another; an error unless x is above 0", params: two, optional: 1, typ: doubleType, eval: ofFloats(logOf)},
		logarithm("log10", "the logarithm to base 10", math.Log10),
		logarithm("log2", "the logarithm to base 2", math.Log2),
		float("radians", "radians(x)", "degrees as radians", func(x float64) float64 { return x * (math.Pi / 180) }),
		float("degrees", "degrees(x)", "radians as degrees", func(x float64) float64 { return x * (180 / math.Pi) }),
		float("sin", "sin(x)", "the sine of radians", math.Sin),
		float("cos", "cos(x)", "the cosine of radians", math.Cos),
		float("tan", "tan(x)", "the tangent of radians", math.Tan),
		float("asin", "asin(x)", "the arc sine", math.Asin),
		float("acos", "acos(x)", "the arc cosine", math.Acos),
		float("atan", "atan(x)", "the arc tangent", math.Atan),
		{names: []string{"atan2"}, sig: "atan2(y, x)", doc: "the angle of a point", params: two, typ: doubleType,
			eval: ofFloats(func(_ *node, r row) (float64, error) { return math.Atan2(r.real(0), r.real(1)), nil })},
		{names: []string{"pi"}, sig: "pi()", doc: "3.14159…", typ: doubleType, eval: ofFloats(func(*node, row) (float64, error) { return math.Pi, nil })},
		test("isnan", "whether x is NaN", math.IsNaN),
		test("isinf", "whether x is infinite", func(x float64) bool { return math.IsInf(x, 0) }),
		test("isfinite", "whether x is neither infinite nor NaN", func(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }),
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

func logOf(_ *node, r row) (float64, error) {
	x := r.real(0)
	if !r.has(1) {
		return math.Log10(x), positive(x)
	}
	if err := positive(x); err != nil {
		return 0, err
	}
	if x == 1 {
		return 0, errors.New("the base of a logarithm cannot be 1")
	}
	return math.Log10(r.real(1)) / math.Log10(x), positive(r.real(1))
}

// digits is how many digits ROUND leaves behind the point.
type digits int

// bindRound binds ROUND, whose number of digits is a literal: the type of a decimal goes by it.
func bindRound(b *binder, f *function, args []*node) (*node, error) {
	if len(args) == 0 || len(args) > 2 || !isNumeric(args[0].typ) && args[0].typ.Kind != tables.Null {
		return nil, wrongArgs(f, args)
	}
	by := digits(0)
	if len(args) == 2 {
		lit := args[1].lit
		if lit == nil || lit.rat == nil || !isInteger(args[1].typ) {
			return nil, unsupported("round to a number of digits that is no whole literal")
		}
		x := lit.rat.Num()
		if !x.IsInt64() || x.Int64() < -400 || x.Int64() > 400 {
			return nil, unsupported("round to %s digits", x)
		}
		by = digits(x.Int64())
	}
	x, t := args[0], args[0].typ
	switch {
	case t.Kind == tables.Decimal:
		t.Scale = uint8(min(max(int(by), 0), int(t.Scale)))
	case isInteger(t) && (repOf(t) != repInt || x.lit != nil && by < 0):
		return nil, unsupported("round of type %s", typeName(x))
	case isInteger(t) && by >= 0:
		return x, nil
	}
	number, err := b.literal(int64Type, literal{i: int64(by), rat: big.NewRat(int64(by), 1)})
	if err != nil {
		return nil, err
	}
	return b.fn(f, t, x, number)
}

func evalRound(_ *evaluator, n *node, args []*vec, b *batch) (*vec, error) {
	by := int(n.args[1].lit.i)
	x := args[0]
	v := &vec{n: b.n, nulls: x.nulls}
	switch repOf(n.typ) {
	case repFloat:
		v.f = make([]float64, b.n)
		for k, f := range x.f {
			v.f[k] = roundFloat(f, by)
			if n.typ.Bits < 64 {
				v.f[k] = float64(float32(v.f[k]))
			}
		}
		return v, nil
	case repBig:
		return v, roundDecimals(v, x, int(n.args[0].typ.Scale), by)
	case repInt:
		v.i = make([]int64, b.n)
		for k, i := range x.i {
			v.i[k] = roundInt(i, -by)
		}
		return v, nil
	}
	return allNull(n.typ, b.n), nil
}

// roundFloat is DuckDB's: by multiplication, so that what 1.005 is in binary counts.
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

// roundInt rounds to a multiple of a power of ten.
func roundInt(x int64, zeros int) int64 {
	if zeros >= len(powers) {
		return 0
	}
	p := int64(powers[zeros])
	q := x / p
	if r := x % p; 2*abs(r) >= uint64(p) {
		if x < 0 {
			q--
		} else {
			q++
		}
	}
	return q * p
}

func roundDecimals(v, x *vec, scale, by int) error {
	v.i, v.h = make([]int64, x.n), make([]int64, x.n)
	if by >= scale {
		copy(v.i, x.i)
		copy(v.h, x.h)
		return nil
	}
	zeros := max(0, -by)
	for k := range x.n {
		if x.null(k) || scale+zeros >= len(bigPowers) {
			continue
		}
		y := rounded(bigInt(x.h[k], x.i[k]), scale-max(by, 0)+zeros)
		y.Mul(y, bigPowers[min(zeros, maxDigits)])
		v.i[k], v.h[k] = int64(lowBits(y)), int64(lowBits(shifted(y)))
	}
	return nil
}

// bindWhole binds FLOOR, CEIL and TRUNC: of integers they are DOUBLE, but for TRUNC.
func bindWhole(b *binder, f *function, args []*node) (*node, error) {
	if len(args) != 1 || !isNumeric(args[0].typ) && args[0].typ.Kind != tables.Null {
		if len(args) == 2 {
			return nil, unsupported("%s with a number of digits", f.names[0])
		}
		return nil, wrongArgs(f, args)
	}
	x, t := args[0], args[0].typ
	switch {
	case t.Kind == tables.Decimal:
		t.Scale = 0
	case isInteger(t) && f.names[0] == "trunc":
		return x, nil
	case isInteger(t):
		var err error
		if x, err = b.convert(x, doubleType); err != nil {
			return nil, err
		}
		t = doubleType
	}
	return b.fn(f, t, x)
}

func evalWhole(f func(x float64) float64) evaluation {
	return func(_ *evaluator, n *node, args []*vec, b *batch) (*vec, error) {
		x := args[0]
		v := &vec{n: b.n, nulls: x.nulls}
		switch repOf(n.typ) {
		case repFloat:
			v.f = make([]float64, b.n)
			for k, y := range x.f {
				v.f[k] = f(y)
			}
			return v, nil
		case repBig:
			v.i, v.h = make([]int64, b.n), make([]int64, b.n)
			by := bigPowers[n.args[0].typ.Scale]
			up, down := f(0.5) > 0.5, f(-0.5) < -0.5
			for k := range b.n {
				y, rest := new(big.Int).QuoRem(bigInt(x.h[k], x.i[k]), by, new(big.Int))
				switch {
				case rest.Sign() > 0 && up:
					y.Add(y, big.NewInt(1))
				case rest.Sign() < 0 && down:
					y.Sub(y, big.NewInt(1))
				}
				v.i[k], v.h[k] = int64(lowBits(y)), int64(lowBits(shifted(y)))
			}
			return v, nil
		}
		return allNull(n.typ, b.n), nil
	}
}

func bindAbs(b *binder, f *function, args []*node) (*node, error) {
	if len(args) != 1 || !isNumeric(args[0].typ) && args[0].typ.Kind != tables.Null {
		return nil, wrongArgs(f, args)
	}
	t := args[0].typ
	switch t.Kind {
	case tables.Int64:
		t = int64Type
	case tables.Uint64:
		return args[0], nil
	}
	return b.fn(f, t, args...)
}

func evalAbs(_ *evaluator, n *node, args []*vec, b *batch) (*vec, error) {
	x := args[0]
	v := &vec{n: x.n, nulls: x.nulls}
	switch repOf(n.typ) {
	case repFloat:
		v.f = make([]float64, x.n)
		for k, y := range x.f {
			v.f[k] = math.Abs(y)
		}
		return v, nil
	case repBig:
		v.i, v.h = make([]int64, x.n), make([]int64, x.n)
		for k := range x.n {
			if v.i[k], v.h[k] = x.i[k], x.h[k]; x.h[k] < 0 {
				v.i[k], v.h[k] = negated(x.i[k], x.h[k])
			}
		}
		return v, nil
	case repInt:
		v.i = make([]int64, x.n)
		for k, y := range x.i {
			if y == math.MinInt64 && !x.null(k) {
				return nil, errOverflow
			}
			v.i[k] = max(y, -y)
		}
		return v, nil
	}
	return allNull(n.typ, b.n), nil
}

// negated returns minus an integer of 128 bits.
func negated(l, h int64) (low, high int64) {
	low = -l
	high = ^h
	if l == 0 {
		high++
	}
	return low, high
}

var errWide = fmt.Errorf("a number is out of the range of %d digits or 128 bits", maxDigits)

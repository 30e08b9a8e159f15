package eval

import (
	"errors"
	"math"
	"math/big"
	"math/bits"

	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/tables/query/internal/plan"
	"github.com/chaski-eo/chaski/tables/query/internal/sqltype"
	"github.com/chaski-eo/chaski/tables/query/internal/vec"
)

func evalNot(a *plan.Node, x *vec.Vec) *vec.Vec {
	if a.Type.Kind == tables.Null {
		return vec.AllNull(sqltype.Bool, x.N)
	}
	v := &vec.Vec{N: x.N, Nulls: x.Nulls, Bools: make([]bool, x.N)}
	for k, t := range x.Bools {
		v.Bools[k] = !t
	}
	return v
}

// logic computes AND and OR: a false term (a true one for OR) decides, otherwise a null term makes the result null.
func (ev *Evaluator) logic(n *plan.Node, b *vec.Batch) (*vec.Vec, error) {
	v := &vec.Vec{N: b.N, Bools: make([]bool, b.N)}
	decides := n.Op == ast.OpOr
	for k := range v.Bools {
		v.Bools[k] = !decides
	}
	for _, arg := range n.Args {
		a, err := ev.Eval(arg, b)
		if err != nil {
			return nil, err
		}
		if v.Nulls == nil && (arg.Type.Kind == tables.Null || a.Nulls != nil) {
			v.Nulls = make([]bool, b.N)
		}
		switch {
		case arg.Type.Kind == tables.Null:
			for k := range v.Nulls {
				v.Nulls[k] = true
			}
		case a.Nulls == nil:
			for k, t := range a.Bools {
				if t == decides {
					v.Bools[k] = decides
				}
			}
		default:
			for k, t := range a.Bools {
				if a.Nulls[k] {
					v.Nulls[k] = true
				} else if t == decides {
					v.Bools[k] = decides
				}
			}
		}
	}
	for k := range v.Nulls {
		v.Nulls[k] = v.Nulls[k] && v.Bools[k] != decides
	}
	return v, nil
}

func evalIsBool(n *plan.Node, x *vec.Vec) *vec.Vec {
	v := &vec.Vec{N: x.N, Bools: make([]bool, x.N)}
	want := n.Name == "TRUE"
	for k := range v.Bools {
		is := !x.IsNull(k) && x.Bools[k] == want
		v.Bools[k] = is != n.Not
	}
	return v
}

func evalCompare(n *plan.Node, args []*vec.Vec, size int) *vec.Vec {
	a, b := args[0], args[1]
	l, r := n.Args[0].Type, n.Args[1].Type
	none := l.Kind == tables.Null || r.Kind == tables.Null
	if none && n.Op == ast.OpCompare {
		return vec.AllNull(sqltype.Bool, size)
	}
	v := &vec.Vec{N: size, Bools: make([]bool, size)}
	name := n.Name
	if n.Op == ast.OpDistinct {
		name = "="
	}
	switch {
	case none:
	case l.Kind == tables.Bool:
		compareInts(name, truths(a), truths(b), v.Bools)
	case sqltype.RepOf(l) == sqltype.RepFloat:
		compareFloats(name, a.Floats, b.Floats, v.Bools)
	case sqltype.RepOf(l) == sqltype.RepBytes:
		compareBytes(name, a, b, v.Bools)
	case sqltype.RepOf(l) == sqltype.RepBig:
		compareBigs(name, a, b, v.Bools)
	case sqltype.RepOf(l) == sqltype.RepUint:
		compareUints(name, a.Ints, b.Ints, v.Bools)
	case a.High != nil || b.High != nil:
		compareTimes(name, a, b, v.Bools)
	default:
		compareInts(name, a.Ints, b.Ints, v.Bools)
	}
	if n.Op == ast.OpCompare {
		v.Nulls = vec.EitherNull(a, b)
		return v
	}
	for k := range v.Bools {
		an, bn := a.IsNull(k), b.IsNull(k)
		same := an && bn || !an && !bn && v.Bools[k]
		v.Bools[k] = same == n.Not
	}
	return v
}

func truths(v *vec.Vec) []int64 {
	out := make([]int64, v.N)
	for k, t := range v.Bools {
		out[k] = sqltype.Bit(t)
	}
	return out
}

// The kernels below need slices of equal length: reslicing to the length of the first lets the
// compiler drop bounds checks.

func compareInts(name string, a, b []int64, out []bool) {
	b, out = b[:len(a)], out[:len(a)]
	switch name {
	case "=":
		for k := range a {
			out[k] = a[k] == b[k]
		}
	case "<>":
		for k := range a {
			out[k] = a[k] != b[k]
		}
	case "<":
		for k := range a {
			out[k] = a[k] < b[k]
		}
	case "<=":
		for k := range a {
			out[k] = a[k] <= b[k]
		}
	case ">":
		for k := range a {
			out[k] = a[k] > b[k]
		}
	default:
		for k := range a {
			out[k] = a[k] >= b[k]
		}
	}
}

func compareUints(name string, a, b []int64, out []bool) {
	switch name {
	case "=", "<>":
		compareInts(name, a, b, out)
	case "<", ">=":
		for k := range a {
			out[k] = (uint64(a[k]) < uint64(b[k])) == (name == "<")
		}
	default:
		for k := range a {
			out[k] = (uint64(a[k]) > uint64(b[k])) == (name == ">")
		}
	}
}

// compareFloats treats NaN as equal to itself and above all numbers, except in comparisons marked Ieee.
func compareFloats(name string, a, b []float64, out []bool) {
	b, out = b[:len(a)], out[:len(a)]
	switch name {
	case "=", "<>":
		eq := name == "="
		for k, x := range a {
			y := b[k]
			out[k] = (x == y || x != x && y != y) == eq
		}
	case "<", ">=":
		lt := name == "<"
		for k, x := range a {
			y := b[k]
			out[k] = (x < y || y != y && x == x) == lt
		}
	case ">" + plan.Ieee:
		for k, x := range a {
			out[k] = x > b[k]
		}
	case ">=" + plan.Ieee:
		for k, x := range a {
			out[k] = x >= b[k]
		}
	default:
		gt := name == ">"
		for k, x := range a {
			y := b[k]
			out[k] = (x > y || x != x && y == y) == gt
		}
	}
}

func compareBytes(name string, a, b *vec.Vec, out []bool) {
	switch name {
	case "=", "<>":
		eq := name == "="
		for k := range out {
			out[k] = (string(a.Bytes(k)) == string(b.Bytes(k))) == eq
		}
	case "<", ">=":
		lt := name == "<"
		for k := range out {
			out[k] = (string(a.Bytes(k)) < string(b.Bytes(k))) == lt
		}
	default:
		gt := name == ">"
		for k := range out {
			out[k] = (string(a.Bytes(k)) > string(b.Bytes(k))) == gt
		}
	}
}

func compareBigs(name string, a, b *vec.Vec, out []bool) {
	for k := range out {
		out[k] = holds(name, vec.OrderBig(a.High[k], a.Ints[k], b.High[k], b.Ints[k]))
	}
}

// compareTimes compares timestamps with nanoseconds.
func compareTimes(name string, a, b *vec.Vec, out []bool) {
	for k := range out {
		o := vec.Order(a.Ints[k], b.Ints[k])
		if o == 0 {
			o = vec.Order(a.Nanos(k), b.Nanos(k))
		}
		out[k] = holds(name, o)
	}
}

func holds(name string, order int) bool {
	switch name {
	case "=":
		return order == 0
	case "<>":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

// ErrOverflow is the error for integers out of the range of their type.
var ErrOverflow = errors.New("an integer is out of the range of its type")

func evalArith(n *plan.Node, a, b *vec.Vec, size int) (*vec.Vec, error) {
	if n.Args[0].Type.Kind == tables.Null || n.Args[1].Type.Kind == tables.Null {
		return vec.AllNull(n.Type, size), nil
	}
	v := &vec.Vec{N: size, Nulls: vec.EitherNull(a, b)}
	switch sqltype.RepOf(n.Type) {
	case sqltype.RepFloat:
		v.Floats = make([]float64, size)
		arithFloats(n.Name, a.Floats, b.Floats, v.Floats)
		if n.Type.Bits < 64 {
			for k, x := range v.Floats {
				v.Floats[k] = float64(float32(x))
			}
		}
		return v, nil
	case sqltype.RepBig:
		return v, arithBigs(n, a, b, v)
	case sqltype.RepUint:
		return v, arithInts(n.Name, a.Ints, b.Ints, v, uintOp)
	}
	return v, arithInts(n.Name, a.Ints, b.Ints, v, intOp)
}

func arithFloats(name string, a, b, out []float64) {
	for k := range out {
		switch name {
		case "+":
			out[k] = a[k] + b[k]
		case "-":
			out[k] = a[k] - b[k]
		case "*":
			out[k] = a[k] * b[k]
		case "/":
			out[k] = a[k] / b[k]
		default:
			out[k] = math.Mod(a[k], b[k])
		}
	}
}

// arithBigs computes with integers of 128 bits, or with decimals of one scale.
func arithBigs(n *plan.Node, a, b, v *vec.Vec) error {
	v.Ints, v.High = make([]int64, v.N), make([]int64, v.N)
	lo, hi := sqltype.Limits(sqltype.Huge)
	if n.Type.Kind == tables.Decimal {
		hi = new(big.Int).Sub(sqltype.BigPowersOf10[n.Type.Precision], big.NewInt(1))
		lo = new(big.Int).Neg(hi)
	}
	owned := false
	for k := range v.N {
		if v.IsNull(k) {
			continue
		}
		x, y := sqltype.ToBig(a.High[k], a.Ints[k]), sqltype.ToBig(b.High[k], b.Ints[k])
		switch {
		case n.Name == "+":
			x.Add(x, y)
		case n.Name == "-":
			x.Sub(x, y)
		case n.Name == "*":
			x.Mul(x, y)
		case y.Sign() == 0: // a division by 0 is null
			if !owned {
				v.Nulls, owned = append(make([]bool, 0, v.N), v.Nulls...)[:v.N], true
			}
			v.Nulls[k] = true
			continue
		case n.Name == "//":
			x.Quo(x, y)
		default:
			x.Rem(x, y)
		}
		if !sqltype.Within(x, lo, hi) {
			return sqltype.ErrWide
		}
		v.Ints[k], v.High[k] = int64(sqltype.LowBits(x)), int64(sqltype.LowBits(sqltype.HighBits(x)))
	}
	return nil
}

// arithInts computes with 64-bit integers. Division by 0 gives null.
func arithInts(name string, a, b []int64, v *vec.Vec, f func(name string, x, y int64) (int64, bool)) error {
	v.Ints = make([]int64, len(a))
	divides := name == "//" || name == "%"
	var nulls []bool
	for k := range a {
		if v.IsNull(k) {
			continue
		}
		if divides && b[k] == 0 {
			if nulls == nil {
				nulls = append(make([]bool, 0, len(a)), v.Nulls...)
				nulls = nulls[:len(a)]
				v.Nulls = nulls
			}
			nulls[k] = true
			continue
		}
		z, ok := f(name, a[k], b[k])
		if !ok {
			return ErrOverflow
		}
		v.Ints[k] = z
	}
	return nil
}

func intOp(name string, x, y int64) (int64, bool) {
	switch name {
	case "+":
		z := x + y
		return z, (z > x) == (y > 0)
	case "-":
		z := x - y
		return z, (z < x) == (y > 0)
	case "*":
		hi, lo := bits.Mul64(sqltype.Abs(x), sqltype.Abs(y))
		neg := (x < 0) != (y < 0)
		if hi != 0 || lo > 1<<63 || lo == 1<<63 && !neg {
			return 0, false
		}
		return x * y, true
	case "//":
		if x == math.MinInt64 && y == -1 {
			return 0, false
		}
		return x / y, true
	}
	if y == -1 {
		return 0, true
	}
	return x % y, true
}

func uintOp(name string, a, b int64) (int64, bool) {
	x, y := uint64(a), uint64(b)
	switch name {
	case "+":
		z, carry := bits.Add64(x, y, 0)
		return int64(z), carry == 0
	case "-":
		return int64(x - y), x >= y
	case "*":
		hi, lo := bits.Mul64(x, y)
		return int64(lo), hi == 0
	case "//":
		return int64(x / y), true
	}
	return int64(x % y), true
}

func evalMinus(n *plan.Node, x *vec.Vec) (*vec.Vec, error) {
	v := &vec.Vec{N: x.N, Nulls: x.Nulls}
	switch sqltype.RepOf(n.Type) {
	case sqltype.RepNone:
		return x, nil
	case sqltype.RepFloat:
		v.Floats = make([]float64, x.N)
		for k, f := range x.Floats {
			v.Floats[k] = -f
		}
		return v, nil
	case sqltype.RepBig:
		v.Ints, v.High = make([]int64, x.N), make([]int64, x.N)
		for k := range x.N {
			v.Ints[k], v.High[k] = sqltype.Negate(x.Ints[k], x.High[k])
			if v.High[k] == math.MinInt64 && x.High[k] == math.MinInt64 && !x.IsNull(k) {
				return nil, sqltype.ErrWide
			}
		}
		return v, nil
	}
	v.Ints = make([]int64, x.N)
	for k, i := range x.Ints {
		if i == math.MinInt64 && !x.IsNull(k) {
			return nil, ErrOverflow
		}
		v.Ints[k] = -i
	}
	return v, nil
}

func (ev *Evaluator) concat(args []*vec.Vec, size int) (*vec.Vec, error) {
	a, b := args[0], args[1]
	if a.Lo == nil || b.Lo == nil {
		return vec.AllNull(sqltype.String, size), nil
	}
	w := ev.Strings(size)
	w.Vec.Nulls = vec.EitherNull(a, b)
	for k := range size {
		if !w.Vec.IsNull(k) {
			w.Add(a.Bytes(k), b.Bytes(k))
		}
		w.End(k)
	}
	return w.Finish()
}

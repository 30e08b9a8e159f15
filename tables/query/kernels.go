package query

import (
	"errors"
	"math"
	"math/big"
	"math/bits"

	"github.com/chaski-eo/chaski/tables"
)

func evalNot(a *node, x *vec) *vec {
	if a.typ.Kind == tables.Null {
		return allNull(boolType, x.n)
	}
	v := &vec{n: x.n, nulls: x.nulls, t: make([]bool, x.n)}
	for k, t := range x.t {
		v.t[k] = !t
	}
	return v
}

// logic computes AND and OR: a false (true) term decides, else a null one.
func (ev *evaluator) logic(n *node, b *batch) (*vec, error) {
	v := &vec{n: b.n, t: make([]bool, b.n)}
	decides := n.op == opOr
	for k := range v.t {
		v.t[k] = !decides
	}
	for _, arg := range n.args {
		a, err := ev.eval(arg, b)
		if err != nil {
			return nil, err
		}
		if v.nulls == nil && (arg.typ.Kind == tables.Null || a.nulls != nil) {
			v.nulls = make([]bool, b.n)
		}
		switch {
		case arg.typ.Kind == tables.Null:
			for k := range v.nulls {
				v.nulls[k] = true
			}
		case a.nulls == nil:
			for k, t := range a.t {
				if t == decides {
					v.t[k] = decides
				}
			}
		default:
			for k, t := range a.t {
				if a.nulls[k] {
					v.nulls[k] = true
				} else if t == decides {
					v.t[k] = decides
				}
			}
		}
	}
	for k := range v.nulls {
		v.nulls[k] = v.nulls[k] && v.t[k] != decides
	}
	return v, nil
}

func evalIsBool(n *node, x *vec) *vec {
	v := &vec{n: x.n, t: make([]bool, x.n)}
	want := n.name == "TRUE"
	for k := range v.t {
		is := !x.null(k) && x.t[k] == want
		v.t[k] = is != n.not
	}
	return v
}

// anyNull joins the nulls of two.
func anyNull(a, b *vec) []bool {
	switch {
	case a.nulls == nil:
		return b.nulls
	case b.nulls == nil:
		return a.nulls
	}
	out := make([]bool, a.n)
	for k := range out {
		out[k] = a.nulls[k] || b.nulls[k]
	}
	return out
}

func evalCompare(n *node, args []*vec, size int) *vec {
	a, b := args[0], args[1]
	l, r := n.args[0].typ, n.args[1].typ
	none := l.Kind == tables.Null || r.Kind == tables.Null
	if none && n.op == opCompare {
		return allNull(boolType, size)
	}
	v := &vec{n: size, t: make([]bool, size)}
	name := n.name
	if n.op == opDistinct {
		name = "="
	}
	switch {
	case none:
	case l.Kind == tables.Bool:
		compareInts(name, truths(a), truths(b), v.t)
	case repOf(l) == repFloat:
		compareFloats(name, a.f, b.f, v.t)
	case repOf(l) == repBytes:
		compareBytes(name, a, b, v.t)
	case repOf(l) == repBig:
		compareBigs(name, a, b, v.t)
	case repOf(l) == repUint:
		compareUints(name, a.i, b.i, v.t)
	case a.h != nil || b.h != nil:
		compareTimes(name, a, b, v.t)
	default:
		compareInts(name, a.i, b.i, v.t)
	}
	if n.op == opCompare {
		v.nulls = anyNull(a, b)
		return v
	}
	for k := range v.t {
		an, bn := a.null(k), b.null(k)
		same := an && bn || !an && !bn && v.t[k]
		v.t[k] = same == n.not
	}
	return v
}

func truths(v *vec) []int64 {
	out := make([]int64, v.n)
	for k, t := range v.t {
		out[k] = bit(t)
	}
	return out
}

// The kernels below need slices of equal length.

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

// compareFloats has NaN equal to itself and above all else, but for the comparisons marked ieee.
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
	case ">" + ieee:
		for k, x := range a {
			out[k] = x > b[k]
		}
	case ">=" + ieee:
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

func compareBytes(name string, a, b *vec, out []bool) {
	switch name {
	case "=", "<>":
		eq := name == "="
		for k := range out {
			out[k] = (string(a.bytes(k)) == string(b.bytes(k))) == eq
		}
	case "<", ">=":
		lt := name == "<"
		for k := range out {
			out[k] = (string(a.bytes(k)) < string(b.bytes(k))) == lt
		}
	default:
		gt := name == ">"
		for k := range out {
			out[k] = (string(a.bytes(k)) > string(b.bytes(k))) == gt
		}
	}
}

func compareBigs(name string, a, b *vec, out []bool) {
	for k := range out {
		out[k] = holds(name, orderBig(a.h[k], a.i[k], b.h[k], b.i[k]))
	}
}

// compareTimes compares microseconds, and nanoseconds after them.
func compareTimes(name string, a, b *vec, out []bool) {
	for k := range out {
		o := order(a.i[k], b.i[k])
		if o == 0 {
			o = order(a.nanos(k), b.nanos(k))
		}
		out[k] = holds(name, o)
	}
}

// nanos returns the nanoseconds of a timestamp after its microseconds.
func (v *vec) nanos(k int) int64 {
	if v.h == nil {
		return 0
	}
	return v.h[k]
}

func orderBig(ah, al, bh, bl int64) int {
	switch {
	case ah != bh:
		return order(ah, bh)
	}
	return order(uint64(al), uint64(bl))
}

func order[T int64 | uint64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func orderFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	}
	return int(bit(a != a)) - int(bit(b != b))
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

var errOverflow = errors.New("an integer is out of the range of its type")

func evalArith(n *node, a, b *vec, size int) (*vec, error) {
	if n.args[0].typ.Kind == tables.Null || n.args[1].typ.Kind == tables.Null {
		return allNull(n.typ, size), nil
	}
	v := &vec{n: size, nulls: anyNull(a, b)}
	switch repOf(n.typ) {
	case repFloat:
		v.f = make([]float64, size)
		arithFloats(n.name, a.f, b.f, v.f)
		if n.typ.Bits < 64 {
			for k, x := range v.f {
				v.f[k] = float64(float32(x))
			}
		}
		return v, nil
	case repBig:
		return v, arithBigs(n, a, b, v)
	case repUint:
		return v, arithInts(n.name, a.i, b.i, v, uintOp)
	}
	return v, arithInts(n.name, a.i, b.i, v, intOp)
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

// arithBigs computes integers of 128 bits, or decimals of one scale.
func arithBigs(n *node, a, b, v *vec) error {
	v.i, v.h = make([]int64, v.n), make([]int64, v.n)
	lo, hi := limits(hugeType)
	if n.typ.Kind == tables.Decimal {
		hi = new(big.Int).Sub(bigPowers[n.typ.Precision], big.NewInt(1))
		lo = new(big.Int).Neg(hi)
	}
	owned := false
	for k := range v.n {
		if v.null(k) {
			continue
		}
		x, y := bigInt(a.h[k], a.i[k]), bigInt(b.h[k], b.i[k])
		switch {
		case n.name == "+":
			x.Add(x, y)
		case n.name == "-":
			x.Sub(x, y)
		case n.name == "*":
			x.Mul(x, y)
		case y.Sign() == 0: // a division by 0 is null
			if !owned {
				v.nulls, owned = append(make([]bool, 0, v.n), v.nulls...)[:v.n], true
			}
			v.nulls[k] = true
			continue
		case n.name == "//":
			x.Quo(x, y)
		default:
			x.Rem(x, y)
		}
		if !within(x, lo, hi) {
			return errWide
		}
		v.i[k], v.h[k] = int64(lowBits(x)), int64(lowBits(shifted(x)))
	}
	return nil
}

// arithInts computes each value that is there; a division by 0 is null.
func arithInts(name string, a, b []int64, v *vec, f func(name string, x, y int64) (int64, bool)) error {
	v.i = make([]int64, len(a))
	divides := name == "//" || name == "%"
	var nulls []bool
	for k := range a {
		if v.null(k) {
			continue
		}
		if divides && b[k] == 0 {
			if nulls == nil {
				nulls = append(make([]bool, 0, len(a)), v.nulls...)
				nulls = nulls[:len(a)]
				v.nulls = nulls
			}
			nulls[k] = true
			continue
		}
		z, ok := f(name, a[k], b[k])
		if !ok {
			return errOverflow
		}
		v.i[k] = z
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
		hi, lo := bits.Mul64(abs(x), abs(y))
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

func abs(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
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

func evalMinus(n *node, x *vec) (*vec, error) {
	v := &vec{n: x.n, nulls: x.nulls}
	switch repOf(n.typ) {
	case repNone:
		return x, nil
	case repFloat:
		v.f = make([]float64, x.n)
		for k, f := range x.f {
			v.f[k] = -f
		}
		return v, nil
	case repBig:
		v.i, v.h = make([]int64, x.n), make([]int64, x.n)
		for k := range x.n {
			v.i[k], v.h[k] = negated(x.i[k], x.h[k])
			if v.h[k] == math.MinInt64 && x.h[k] == math.MinInt64 && !x.null(k) {
				return nil, errWide
			}
		}
		return v, nil
	}
	v.i = make([]int64, x.n)
	for k, i := range x.i {
		if i == math.MinInt64 && !x.null(k) {
			return nil, errOverflow
		}
		v.i[k] = -i
	}
	return v, nil
}

// bigFloat returns an integer of 128 bits as the nearest float.
func bigFloat(h, l int64) float64 {
	if h == l>>63 {
		return float64(l)
	}
	f, _ := new(big.Float).SetInt(bigInt(h, l)).Float64()
	return f
}

func bigInt(h, l int64) *big.Int {
	x := new(big.Int).Lsh(big.NewInt(h), 64)
	return x.Add(x, new(big.Int).SetUint64(uint64(l)))
}

// shifted returns the bits of x above the 64th.
func shifted(x *big.Int) *big.Int { return new(big.Int).Rsh(x, 64) }

func (ev *evaluator) concat(args []*vec, size int) (*vec, error) {
	a, b := args[0], args[1]
	if a.lo == nil || b.lo == nil {
		return allNull(textType, size), nil
	}
	w := ev.texts(size)
	w.v.nulls = anyNull(a, b)
	for k := range size {
		if !w.v.null(k) {
			w.add(a.bytes(k), b.bytes(k))
		}
		w.end(k)
	}
	return w.finish()
}

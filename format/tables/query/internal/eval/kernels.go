package eval

import (
	"errors"
	"math"
	"math/bits"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/format/tables/query/internal/vec"
)

func evalNot(a *Node, x *vec.Vec) *vec.Vec {
	if a.Type.Kind == tables.Null {
		return vec.AllNull(sql.Bool, x.N)
	}
	values := &vec.Vec{N: x.N, Nulls: x.Nulls, Bools: make([]bool, x.N)}
	for k, t := range x.Bools {
		values.Bools[k] = !t
	}
	return values
}

// logic computes AND and OR: a false term (a true one for OR) decides, otherwise a null term makes the result null.
func (ev *Evaluator) logic(n *Node, b *vec.Batch) (*vec.Vec, error) {
	values := &vec.Vec{N: b.N, Bools: make([]bool, b.N)}
	decides := n.Op == ast.OpOr
	vec.Fill(values.Bools, !decides)
	for _, arg := range n.Args {
		term, err := ev.Eval(arg, b)
		if err != nil {
			return nil, err
		}
		if values.Nulls == nil && (arg.Type.Kind == tables.Null || term.Nulls != nil) {
			values.Nulls = make([]bool, b.N)
		}
		if arg.Type.Kind == tables.Null {
			vec.Fill(values.Nulls, true)
			continue
		}
		for row, truth := range term.Bools {
			if term.Nulls != nil && term.Nulls[row] {
				values.Nulls[row] = true
			} else if truth == decides {
				values.Bools[row] = decides
			}
		}
	}
	for k := range values.Nulls {
		values.Nulls[k] = values.Nulls[k] && values.Bools[k] != decides
	}
	return values, nil
}

func evalIsBool(n *Node, x *vec.Vec) *vec.Vec {
	values := &vec.Vec{N: x.N, Bools: make([]bool, x.N)}
	want := n.Name == "TRUE"
	for k := range values.Bools {
		is := !x.IsNull(k) && x.Bools[k] == want
		values.Bools[k] = is != n.Not
	}
	return values
}

func evalCompare(n *Node, args []*vec.Vec, size int) *vec.Vec {
	left, right := args[0], args[1]
	typ := n.Args[0].Type
	if typ.Kind == tables.Null || n.Args[1].Type.Kind == tables.Null {
		return vec.AllNull(sql.Bool, size)
	}
	values := &vec.Vec{N: size, Nulls: vec.EitherNull(left.Nulls, right.Nulls), Bools: make([]bool, size)}
	switch rep := sql.RepOf(typ); {
	case rep == sql.RepFloat:
		compareFloats(n.Name, left.Floats, right.Floats, values.Bools)
	case rep == sql.RepInt && typ.Kind != tables.Bool && left.After == nil && right.After == nil:
		compareInts(n.Name, left.Ints, right.Ints, values.Bools)
	// Equality is apart from order, because it needs no look at the bytes of strings of different lengths.
	case rep == sql.RepBytes && (n.Name == "=" || n.Name == "<>"):
		equal := n.Name == "="
		for k := range values.Bools {
			values.Bools[k] = (string(left.Bytes(k)) == string(right.Bytes(k))) == equal
		}
	default:
		for k := range values.Bools {
			values.Bools[k] = holds(n.Name, vec.OrderAt(typ, left, k, right, k))
		}
	}
	return values
}

// The kernels below need slices of equal length: reslicing to the length of the first lets the
// compiler drop bounds checks.

func compareInts(name string, a, b []int64, out []bool) {
	b, out = b[:len(a)], out[:len(a)]
	switch name {
	case "=", "<>":
		equal := name == "="
		for k := range a {
			out[k] = (a[k] == b[k]) == equal
		}
	case "<", ">=":
		less := name == "<"
		for k := range a {
			out[k] = (a[k] < b[k]) == less
		}
	default:
		more := name == ">"
		for k := range a {
			out[k] = (a[k] > b[k]) == more
		}
	}
}

// compareFloats treats NaN as equal to itself and above all numbers, except in comparisons marked Ieee.
func compareFloats(name string, a, b []float64, out []bool) {
	b, out = b[:len(a)], out[:len(a)]
	switch name {
	case "=", "<>":
		equal := name == "="
		for k, x := range a {
			y := b[k]
			out[k] = (x == y || x != x && y != y) == equal
		}
	case "<", ">=":
		less := name == "<"
		for k, x := range a {
			y := b[k]
			out[k] = (x < y || y != y && x == x) == less
		}
	case ">" + Ieee:
		for k, x := range a {
			out[k] = x > b[k]
		}
	case ">=" + Ieee:
		for k, x := range a {
			out[k] = x >= b[k]
		}
	default:
		more := name == ">"
		for k, x := range a {
			y := b[k]
			out[k] = (x > y || x != x && y == y) == more
		}
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

func evalArith(n *Node, a, b *vec.Vec, size int) (*vec.Vec, error) {
	if n.Args[0].Type.Kind == tables.Null || n.Args[1].Type.Kind == tables.Null {
		return vec.AllNull(n.Type, size), nil
	}
	values := &vec.Vec{N: size, Nulls: vec.EitherNull(a.Nulls, b.Nulls)}
	switch sql.RepOf(n.Type) {
	case sql.RepFloat:
		values.Floats = make([]float64, size)
		arithFloats(n.Name, a.Floats, b.Floats, values.Floats)
		if n.Type.Bits < 64 {
			for k, x := range values.Floats {
				values.Floats[k] = float64(float32(x))
			}
		}
		return values, nil
	case sql.RepUint:
		return values, arithInts(n.Name, a.Ints, b.Ints, values, uintOp)
	}
	return values, arithInts(n.Name, a.Ints, b.Ints, values, intOp)
}

func arithFloats(name string, a, b, out []float64) {
	for row := range out {
		switch name {
		case "+":
			out[row] = a[row] + b[row]
		case "-":
			out[row] = a[row] - b[row]
		case "*":
			out[row] = a[row] * b[row]
		case "/":
			out[row] = a[row] / b[row]
		default:
			out[row] = math.Mod(a[row], b[row])
		}
	}
}

// arithInts computes with 64-bit integers. Division by 0 gives null.
func arithInts(name string, a, b []int64, v *vec.Vec, f func(name string, x, y int64) (int64, bool)) error {
	v.Ints = make([]int64, len(a))
	divides := name == "//" || name == "%"
	owned := false
	for row := range a {
		if v.IsNull(row) {
			continue
		}
		if divides && b[row] == 0 {
			if !owned {
				v.Nulls, owned = v.OwnNulls(), true
			}
			v.Nulls[row] = true
			continue
		}
		result, ok := f(name, a[row], b[row])
		if !ok {
			return ErrOverflow
		}
		v.Ints[row] = result
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
		hi, lo := bits.Mul64(sql.Abs(x), sql.Abs(y))
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

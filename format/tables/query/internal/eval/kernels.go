package eval

import (
	"errors"
	"math"
	"math/bits"
	"slices"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/format/tables/query/internal/vec"
)

func evalNot(a *Node, x *tables.Vector) *tables.Vector {
	if a.Type.Kind == tables.Null {
		return tables.NewNulls(sql.Bool, x.Len())
	}
	bools := slices.Clone(x.Bools())
	for k, t := range bools {
		bools[k] = !t
	}
	return tables.NewBools(bools, x.Nulls())
}

// logic computes AND and OR: a false term (a true one for OR) decides, otherwise a null term makes the result null.
func (ev *Evaluator) logic(n *Node, b *vec.Batch) (*tables.Vector, error) {
	decides := n.Op == ast.OpOr
	bools, nulls := vec.Fill(make([]bool, b.N), !decides), []bool(nil)
	for _, arg := range n.Args {
		term, err := ev.Eval(arg, b)
		if err != nil {
			return nil, err
		}
		absent := term.Nulls()
		if nulls == nil && (arg.Type.Kind == tables.Null || absent != nil) {
			nulls = make([]bool, b.N)
		}
		if arg.Type.Kind == tables.Null {
			vec.Fill(nulls, true)
			continue
		}
		for row, truth := range term.Bools() {
			if absent != nil && absent[row] {
				nulls[row] = true
			} else if truth == decides {
				bools[row] = decides
			}
		}
	}
	for k := range nulls {
		nulls[k] = nulls[k] && bools[k] != decides
	}
	return tables.NewBools(bools, nulls), nil
}

func evalIsBool(n *Node, x *tables.Vector) *tables.Vector {
	out, values := make([]bool, x.Len()), x.Bools()
	want := n.Name == "TRUE"
	for k := range out {
		is := !x.Null(k) && values[k] == want
		out[k] = is != n.Not
	}
	return tables.NewBools(out, nil)
}

func evalCompare(n *Node, args []*tables.Vector, size int) *tables.Vector {
	left, right := args[0], args[1]
	typ := n.Args[0].Type
	if typ.Kind == tables.Null || n.Args[1].Type.Kind == tables.Null {
		return tables.NewNulls(sql.Bool, size)
	}
	out := make([]bool, size)
	switch rep := sql.RepOf(typ); {
	case rep == sql.RepFloat:
		compareFloats(n.Name, left.Floats(), right.Floats(), out)
	case rep == sql.RepInt && typ.Kind != tables.Bool && left.Nanos() == nil && right.Nanos() == nil:
		compareInts(n.Name, left.Ints(), right.Ints(), out)
	// Equality is apart from order, because it needs no look at the bytes of strings of different lengths.
	case rep == sql.RepBytes && (n.Name == "=" || n.Name == "<>"):
		equal := n.Name == "="
		a, aLo, aHi := left.Spans()
		b, bLo, bHi := right.Spans()
		for k := range out {
			out[k] = (string(a[aLo[k]:aHi[k]]) == string(b[bLo[k]:bHi[k]])) == equal
		}
	default:
		order := vec.Comparator(left, right)
		for k := range out {
			out[k] = holds(n.Name, order(k, k))
		}
	}
	return tables.NewBools(out, vec.EitherNull(left.Nulls(), right.Nulls()))
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

func evalArith(n *Node, a, b *tables.Vector, size int) (*tables.Vector, error) {
	if n.Args[0].Type.Kind == tables.Null || n.Args[1].Type.Kind == tables.Null {
		return tables.NewNulls(n.Type, size), nil
	}
	nulls := vec.EitherNull(a.Nulls(), b.Nulls())
	switch sql.RepOf(n.Type) {
	case sql.RepFloat:
		floats := make([]float64, size)
		arithFloats(n.Name, a.Floats(), b.Floats(), floats)
		if n.Type.Bits < 64 {
			for k, x := range floats {
				floats[k] = float64(float32(x))
			}
		}
		return tables.NewFloats(n.Type, floats, nulls), nil
	case sql.RepUint:
		return arithInts(n, a.Ints(), b.Ints(), nulls, uintOp)
	}
	return arithInts(n, a.Ints(), b.Ints(), nulls, intOp)
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
func arithInts(n *Node, a, b []int64, nulls []bool, f func(name string, x, y int64) (int64, bool)) (
	*tables.Vector, error) {
	out := make([]int64, len(a))
	divides := n.Name == "//" || n.Name == "%"
	owned := false
	for row := range a {
		if nulls != nil && nulls[row] {
			continue
		}
		if divides && b[row] == 0 {
			if !owned {
				nulls, owned = ownNulls(nulls, len(a)), true
			}
			nulls[row] = true
			continue
		}
		result, ok := f(n.Name, a[row], b[row])
		if !ok {
			return nil, ErrOverflow
		}
		out[row] = result
	}
	return tables.NewInts(n.Type, out, nulls), nil
}

// ownNulls returns a copy of the nulls of n values that may be changed, with a member for each.
func ownNulls(nulls []bool, n int) []bool { return append(make([]bool, 0, n), nulls...)[:n] }

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

package query

import (
	"bytes"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/taco/table"
)

// function is a function of scalars.
type function struct {
	name string
	bind func(b *binder, f *function, args []*node) (*node, error)
	eval func(ev *evaluator, n *node, args []*vec, b *batch) (*vec, error)
}

// functions are those that a query may call, by lower-case name.
var functions = map[string]*function{}

func init() {
	add := func(f *function, names ...string) {
		f.name = names[0]
		for _, n := range names {
			functions[n] = f
		}
	}
	text := func(f func(s, x []byte) bool) *function {
		return &function{bind: bindTexts, eval: func(_ *evaluator, _ *node, a []*vec, b *batch) (*vec, error) { return textPredicate(a, b.n, f), nil }}
	}
	float := func(f func(x float64) bool) *function {
		return &function{bind: bindFloat, eval: func(_ *evaluator, _ *node, a []*vec, b *batch) (*vec, error) { return floatPredicate(a[0], f), nil }}
	}
	cased := func(f func(rune) rune) *function {
		return &function{bind: bindCase, eval: func(_ *evaluator, _ *node, a []*vec, b *batch) (*vec, error) { return mapRunes(a[0], f), nil }}
	}
	date := func(f func(t time.Time) int64) *function {
		return &function{bind: bindDatePart, eval: func(_ *evaluator, n *node, a []*vec, b *batch) (*vec, error) { return datePart(n, a[0], f), nil }}
	}
	add(&function{bind: bindLen, eval: evalLen}, "len", "length", "array_length", "list_length")
	add(&function{bind: bindContains, eval: evalListContains}, "list_contains", "array_contains", "list_has", "array_has")
	add(text(bytes.HasPrefix), "starts_with", "prefix")
	add(text(bytes.HasSuffix), "ends_with", "suffix")
	add(text(bytes.Contains), "contains")
	add(float(math.IsNaN), "isnan")
	add(float(func(x float64) bool { return math.IsInf(x, 0) }), "isinf")
	add(float(func(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }), "isfinite")
	add(cased(unicode.ToLower), "lower", "lcase")
	add(cased(toUpper), "upper", "ucase")
	add(date(func(t time.Time) int64 { return int64(t.Year()) }), "year")
	add(date(func(t time.Time) int64 { return int64(t.Month()) }), "month")
	add(date(func(t time.Time) int64 { return int64(t.Day()) }), "day", "dayofmonth")
	add(&function{bind: bindAbs, eval: evalAbs}, "abs")
	add(&function{bind: bindCoalesce, eval: evalCoalesce}, "coalesce", "ifnull")
}

func wrongArgs(f *function, args []*node) error {
	var s []string
	for _, a := range args {
		s = append(s, typeName(a))
	}
	return binderError("no function matches %s(%s)", f.name, strings.Join(s, ", "))
}

// is reports whether there are args of these kinds, or nulls.
func is(args []*node, kinds ...table.Kind) bool {
	if len(args) != len(kinds) {
		return false
	}
	for i, k := range kinds {
		if args[i].typ.Kind != k && args[i].typ.Kind != table.Null {
			return false
		}
	}
	return true
}

func (b *binder) fn(f *function, t table.Type, args ...*node) (*node, error) {
	return b.intern(&node{op: opCall, fn: f, typ: t, args: args})
}

func bindTexts(b *binder, f *function, args []*node) (*node, error) {
	if !is(args, table.Text, table.Text) {
		if len(args) == 2 && args[0].typ.Kind == table.List {
			return bindContains(b, functions["list_contains"], args)
		}
		return nil, wrongArgs(f, args)
	}
	return b.fn(f, boolType, args...)
}

func textPredicate(a []*vec, n int, f func(s, x []byte) bool) *vec {
	if a[0].lo == nil || a[1].lo == nil {
		return allNull(boolType, n)
	}
	v := &vec{n: n, nulls: anyNull(a[0], a[1]), t: make([]bool, n)}
	for k := range v.t {
		v.t[k] = f(a[0].bytes(k), a[1].bytes(k))
	}
	return v
}

func bindFloat(b *binder, f *function, args []*node) (*node, error) {
	if len(args) != 1 || !isNumber(args[0].typ) && args[0].typ.Kind != table.Null && args[0].typ.Kind != table.Decimal {
		return nil, wrongArgs(f, args)
	}
	if args[0].typ.Kind == table.Decimal && args[0].lit == nil {
		return nil, unsupported("%s of decimals", f.name)
	}
	x, err := b.convert(args[0], doubleType)
	if err != nil {
		return nil, err
	}
	return b.fn(f, boolType, x)
}

func floatPredicate(x *vec, f func(float64) bool) *vec {
	if x.f == nil {
		return allNull(boolType, x.n)
	}
	v := &vec{n: x.n, nulls: x.nulls, t: make([]bool, x.n)}
	for k, y := range x.f {
		v.t[k] = f(y)
	}
	return v
}

func bindCase(b *binder, f *function, args []*node) (*node, error) {
	if !is(args, table.Text) {
		return nil, wrongArgs(f, args)
	}
	return b.fn(f, textType, args...)
}

func mapRunes(x *vec, f func(rune) rune) *vec {
	if x.lo == nil {
		return allNull(textType, x.n)
	}
	v := &vec{n: x.n, nulls: x.nulls, lo: make([]uint32, x.n), hi: make([]uint32, x.n)}
	for k := range x.n {
		v.lo[k] = uint32(len(v.data))
		if !x.null(k) {
			for s := x.bytes(k); len(s) > 0; {
				r, n := utf8.DecodeRune(s)
				v.data = utf8.AppendRune(v.data, f(r))
				s = s[n:]
			}
		}
		v.hi[k] = uint32(len(v.data))
	}
	return v
}

func bindDatePart(b *binder, f *function, args []*node) (*node, error) {
	if !is(args, table.Date) && !is(args, table.Timestamp) {
		return nil, wrongArgs(f, args)
	}
	return b.fn(f, int64Type, args...)
}

func datePart(n *node, x *vec, f func(time.Time) int64) *vec {
	if x.i == nil {
		return allNull(int64Type, x.n)
	}
	v := &vec{n: x.n, nulls: x.nulls, i: make([]int64, x.n)}
	for k, t := range x.i {
		if n.args[0].typ.Kind == table.Date {
			v.i[k] = f(time.Unix(t*86400, 0).UTC())
		} else {
			v.i[k] = f(time.UnixMicro(t).UTC())
		}
	}
	return v
}

// bindLen binds the length of a list, or of a text in characters.
func bindLen(b *binder, f *function, args []*node) (*node, error) {
	switch {
	case len(args) == 1 && args[0].typ.Kind == table.List && args[0].op == opColumn:
	case is(args, table.Text):
	case len(args) == 1 && args[0].typ.Kind == table.Binary:
		return nil, unsupported("%s of type BLOB", f.name)
	default:
		return nil, wrongArgs(f, args)
	}
	return b.fn(f, int64Type, args...)
}

func evalLen(ev *evaluator, n *node, args []*vec, b *batch) (*vec, error) {
	if a := n.args[0]; a.typ.Kind == table.List {
		v := &vec{n: b.n, i: make([]int64, b.n)}
		ev.lists(a, b, v, func(k int, _ *table.Vector, lo, hi int) bool {
			v.i[k] = int64(hi - lo)
			return true
		})
		return v, nil
	}
	x := args[0]
	if x.lo == nil {
		return allNull(int64Type, b.n), nil
	}
	v := &vec{n: b.n, nulls: x.nulls, i: make([]int64, b.n)}
	for k := range v.i {
		v.i[k] = int64(utf8.RuneCount(x.bytes(k)))
	}
	return v, nil
}

// lists calls f for each list of a column that is there; v is null where there is none or f says no.
func (ev *evaluator) lists(a *node, b *batch, v *vec, f func(k int, child *table.Vector, lo, hi int) bool) {
	c := ev.loaded[a]
	for k := range b.n {
		r := b.row(a.tab, k)
		if r >= 0 && !c.Null(r) {
			child, lo, hi := c.List(r)
			if f(k, child, lo, hi) {
				continue
			}
		}
		if v.nulls == nil {
			v.nulls = make([]bool, b.n)
		}
		v.nulls[k] = true
	}
}

// bindContains binds list_contains(column, literal).
func bindContains(b *binder, f *function, args []*node) (*node, error) {
	if len(args) != 2 || args[0].typ.Kind != table.List {
		return nil, wrongArgs(f, args)
	}
	if args[0].op != opColumn || args[1].lit == nil {
		return nil, unsupported("%s but of a column and a literal", f.name)
	}
	elem := *args[0].typ.Elem
	x := args[1]
	switch {
	case x.lit.null:
	case elem.Kind == table.Text && x.typ.Kind == table.Text:
	case isInteger(elem) && x.lit.rat != nil:
	case elem.Kind == table.Float64 && (x.lit.rat != nil || x.typ.Kind == table.Float64):
		var err error
		if x, err = b.convert(x, elem); err != nil {
			return nil, err
		}
	default:
		return nil, unsupported("%s of types %s and %s", f.name, typeName(args[0]), typeName(x))
	}
	return b.fn(f, boolType, args[0], x)
}

func evalListContains(ev *evaluator, n *node, _ []*vec, b *batch) (*vec, error) {
	a, x := n.args[0], n.args[1]
	if x.lit.null {
		return allNull(boolType, b.n), nil
	}
	lo, hi := limits(int64Type)
	var whole bool
	var i int64
	if x.lit.rat != nil {
		if a.typ.Elem.Kind == table.Uint64 {
			lo, hi = limits(*a.typ.Elem)
		}
		whole = x.lit.rat.IsInt() && within(x.lit.rat.Num(), lo, hi)
		i = int64(lowBits(x.lit.rat.Num()))
	}
	v := &vec{n: b.n, t: make([]bool, b.n)}
	ev.lists(a, b, v, func(k int, child *table.Vector, lo, hi int) bool {
		for e := lo; e < hi && !v.t[k]; e++ {
			switch {
			case child.Null(e):
			case child.Kind() == table.Text:
				v.t[k] = string(child.Bytes(e)) == x.lit.s
			case child.Kind() == table.Float64:
				v.t[k] = orderFloat(child.Float(e), x.lit.f) == 0
			default:
				v.t[k] = whole && child.Int(e) == i
			}
		}
		return true
	})
	return v, nil
}

// index evaluates list[i]: from 1, from the end below 0, null elsewhere.
func (ev *evaluator) index(n *node, b *batch) (*vec, error) {
	a := n.args[0]
	x, err := ev.eval(n.args[1], b)
	if err != nil {
		return nil, err
	}
	if x.i == nil {
		return allNull(n.typ, b.n), nil
	}
	v := allNull(n.typ, b.n)
	v.nulls = nil
	ev.lists(a, b, v, func(k int, child *table.Vector, lo, hi int) bool {
		i := x.i[k]
		if i < 0 {
			i += int64(hi - lo)
		} else {
			i--
		}
		if x.null(k) || i < 0 || i >= int64(hi-lo) || child.Null(lo+int(i)) {
			return false
		}
		e := lo + int(i)
		switch repOf(n.typ) {
		case repFloat:
			v.f[k] = child.Float(e)
		case repBytes:
			v.data, _ = child.Raw()
			_, offs := child.Raw()
			v.lo[k], v.hi[k] = offs[e], offs[e+1]
		case repBig:
			v.i[k] = child.Ints()[e]
			v.h[k] = v.i[k] >> 63
			if h := child.High(); h != nil {
				v.h[k] = h[e]
			}
		default:
			if n.typ.Kind == table.Bool {
				v.t[k] = child.Int(e) != 0
			} else {
				v.i[k] = child.Int(e)
			}
		}
		return true
	})
	return v, nil
}

func bindAbs(b *binder, f *function, args []*node) (*node, error) {
	if len(args) != 1 || args[0].typ.Kind != table.Int64 && args[0].typ.Kind != table.Float64 && args[0].typ.Kind != table.Null {
		if len(args) == 1 && (isNumber(args[0].typ) || args[0].typ.Kind == table.Decimal) {
			return nil, unsupported("abs of type %s", typeName(args[0]))
		}
		return nil, wrongArgs(f, args)
	}
	t := args[0].typ
	if t.Kind == table.Int64 {
		t = int64Type
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

// bindCoalesce binds COALESCE of values of one type.
func bindCoalesce(b *binder, f *function, args []*node) (*node, error) {
	if len(args) == 0 {
		return nil, wrongArgs(f, args)
	}
	var t table.Type
	for _, a := range args {
		if a.lit == nil && a.typ.Kind != table.Null {
			t = a.typ
			break
		}
	}
	for i, a := range args {
		switch {
		case a.typ.Kind == table.Null:
		case a.typ.Equal(t):
			t.Nano = t.Nano || a.typ.Nano
		case t.Kind == table.Float64 && a.lit != nil && a.lit.rat != nil:
			var err error
			if args[i], err = b.convert(a, t); err != nil {
				return nil, err
			}
		case isInteger(t) && t.Kind != table.Huge && a.lit != nil && a.lit.rat != nil && a.typ.Kind != table.Decimal:
			if lo, hi := limits(t); within(a.lit.rat.Num(), lo, hi) {
				args[i], _ = b.integer(a, t)
				continue
			}
			fallthrough
		default:
			return nil, unsupported("COALESCE of several types")
		}
	}
	if repOf(t) == repOther || repOf(t) == repNone {
		return nil, unsupported("COALESCE of such values")
	}
	return b.fn(f, t, args...)
}

func evalCoalesce(_ *evaluator, n *node, args []*vec, b *batch) (*vec, error) {
	v := allNull(n.typ, b.n)
	from := make([]*vec, b.n) // of each row, nil: none has a value
	size := 0
	for k := range b.n {
		for i, a := range args {
			if n.args[i].typ.Kind == table.Null || a.null(k) {
				continue
			}
			v.nulls[k], from[k] = false, a
			if a.lo != nil {
				size += len(a.bytes(k))
			}
			break
		}
	}
	if size > maxBatchText {
		return nil, longTexts()
	}
	v.data = make([]byte, 0, size)
	for k, a := range from {
		if a != nil {
			v.set(k, a, n.typ)
		}
	}
	return v, nil
}

// set takes value k of another vec of type t. Texts are appended to data.
func (v *vec) set(k int, from *vec, t table.Type) {
	switch repOf(t) {
	case repFloat:
		v.f[k] = from.f[k]
	case repBytes:
		v.lo[k] = uint32(len(v.data))
		v.data = append(v.data, from.bytes(k)...)
		v.hi[k] = uint32(len(v.data))
	case repBig:
		v.i[k], v.h[k] = from.i[k], from.h[k]
	default:
		if t.Kind == table.Bool {
			v.t[k] = from.t[k]
		} else {
			v.i[k] = from.i[k]
		}
		if from.h != nil {
			if v.h == nil {
				v.h = make([]int64, v.n)
			}
			v.h[k] = from.h[k]
		}
	}
}

// toUpper is DuckDB's: it has a capital of ß, which Go's table has not.
func toUpper(r rune) rune {
	if r == 'ß' {
		return 'ẞ'
	}
	return unicode.ToUpper(r)
}

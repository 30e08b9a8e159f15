package query

import (
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/tables"
)

// maxArgs bounds the arguments of a function: all are in memory for a batch of rows.
const maxArgs = 256

// param is what an argument of a function has to be.
type param uint8

const (
	textParam  param = iota // VARCHAR
	wholeParam              // an integer, given as BIGINT
	realParam               // a number, given as DOUBLE
	dayParam                // DATE or TIMESTAMP
	clockParam              // DATE or TIMESTAMP, given as TIMESTAMP
)

// function is a function of the values of a row.
type function struct {
	names []string // the first is its name, the others mean the same
	sig   string   // how it is called, for the documentation
	doc   string
	// A function has params, of which the last ones may be missing, and the type of its result; or it binds itself.
	params   []param
	optional int
	typ      tables.Type
	bind     func(b *binder, f *function, args []*node) (*node, error)
	// prepare makes the state of a node from literal arguments, once.
	prepare func(n *node) (any, error)
	eval    func(ev *evaluator, n *node, args []*vec, b *batch) (*vec, error)
}

// functions are those that a query may call, by each of their names.
var functions = map[string]*function{}

// functionGroups are all functions, as the documentation lists them.
var functionGroups []functionGroup

type functionGroup struct {
	title string
	list  []*function
}

func init() {
	functionGroups = []functionGroup{
		{"Text", textFunctions()}, {"Numbers", mathFunctions()}, {"Dates and times", timeFunctions()},
		{"Choices and lists", otherFunctions()},
	}
	for _, g := range functionGroups {
		for _, f := range g.list {
			for _, name := range f.names {
				functions[name] = f
			}
		}
	}
}

// Function is a function or an aggregate of the queries, for documentation.
type Function struct {
	Group     string
	Signature string // left(text, count)
	Aliases   []string
	Doc       string
}

// Functions returns all functions and aggregates.
func Functions() []Function {
	var out []Function
	for _, g := range functionGroups {
		for _, f := range g.list {
			out = append(out, Function{g.title, f.sig, f.names[1:], f.doc})
		}
	}
	for _, a := range aggregateList {
		out = append(out, Function{"Aggregates", a.sig, a.names[1:], a.doc})
	}
	return out
}

func otherFunctions() []*function {
	return []*function{
		{names: []string{"coalesce", "ifnull"}, sig: "coalesce(x, …)", doc: "the first value that is not NULL", bind: bindCoalesce},
		{names: []string{"nullif"}, sig: "nullif(x, y)", doc: "NULL if x = y, otherwise x", bind: bindNullIf},
		{names: []string{"if"}, sig: "if(condition, x, y)", doc: "x if the condition holds, otherwise y", bind: bindIf},
		{names: []string{"greatest"}, sig: "greatest(x, …)", doc: "the greatest value; NULLs are left out", bind: bindExtreme, eval: extremeOf(1)},
		{names: []string{"least"}, sig: "least(x, …)", doc: "the least value; NULLs are left out", bind: bindExtreme, eval: extremeOf(-1)},
		{names: []string{"typeof"}, sig: "typeof(x)", doc: "the type of x", bind: bindTypeOf},
		{names: []string{"len", "length", "array_length", "list_length"}, sig: "len(x)", doc: "the characters of a text, or the elements of a list", bind: bindLen, eval: evalLen},
		{names: []string{"list_contains", "array_contains", "list_has", "array_has"}, sig: "list_contains(list, x)", doc: "whether a column of lists holds a literal; also `x IN list`",
			bind: bindContains, eval: evalListContains},
	}
}

// wrongArgs is the error for arguments that a function does not take.
func wrongArgs(f *function, args []*node) error {
	var s []string
	for _, a := range args {
		s = append(s, typeName(a))
	}
	return binderError("no function matches %s(%s): it is %s", f.names[0], strings.Join(s, ", "), f.sig)
}

// byParams binds a function by what its arguments have to be.
func (b *binder) byParams(f *function, args []*node) (*node, error) {
	if len(args) > len(f.params) || len(args) < len(f.params)-f.optional {
		return nil, wrongArgs(f, args)
	}
	args = slices.Clone(args)
	for i, a := range args {
		t, ok := f.params[i].wants(a)
		if !ok {
			return nil, wrongArgs(f, args)
		}
		var err error
		if args[i], err = b.convert(a, t); err != nil {
			return nil, err
		}
	}
	return b.fn(f, f.typ, args...)
}

// wants returns the type that an argument is converted to.
func (p param) wants(a *node) (t tables.Type, ok bool) {
	switch t := a.typ; {
	case t.Kind == tables.Null:
		return t, true
	case p == textParam:
		return t, t.Kind == tables.Text
	case p == wholeParam:
		return int64Type, isInteger(t)
	case p == realParam:
		return doubleType, isNumeric(t)
	case p == dayParam:
		return t, isDay(t)
	case t.Kind == tables.Date:
		return timestampType, true
	default:
		return t, t.Kind == tables.Timestamp
	}
}

// fn makes the call of a function.
func (b *binder) fn(f *function, t tables.Type, args ...*node) (*node, error) {
	n, err := b.intern(&node{op: opCall, fn: f, typ: t, args: args})
	if err == nil && n.state == nil && f.prepare != nil {
		n.state, err = f.prepare(n)
	}
	return n, err
}

// is reports whether there are args of these kinds, or nulls.
func is(args []*node, kinds ...tables.Kind) bool {
	if len(args) != len(kinds) {
		return false
	}
	for i, k := range kinds {
		if args[i].typ.Kind != k && args[i].typ.Kind != tables.Null {
			return false
		}
	}
	return true
}

// literalText returns the text of an argument, which has to be a literal.
func literalText(n *node, i int) (string, error) {
	if a := n.args[i]; a.lit != nil && (a.typ.Kind == tables.Text || a.lit.null) {
		return a.lit.s, nil
	}
	return "", unsupported("%s with an argument %d that is no literal", n.fn.names[0], i+1)
}

// row is a row of a batch as the functions below see it.
type row struct {
	args []*vec
	k    int
}

func (r row) text(i int) []byte  { return r.args[i].bytes(r.k) }
func (r row) whole(i int) int64  { return r.args[i].i[r.k] }
func (r row) real(i int) float64 { return r.args[i].f[r.k] }
func (r row) has(i int) bool     { return i < len(r.args) }

// anyNulls returns where one of the arguments is null; all reports that one of them is NULL itself.
func anyNulls(n *node, args []*vec) (nulls []bool, all bool) {
	for i, a := range args {
		if n.args[i].typ.Kind == tables.Null {
			return nil, true
		}
		switch {
		case a.nulls == nil:
		case nulls == nil:
			nulls = a.nulls
		default:
			nulls = anyNull(&vec{n: a.n, nulls: nulls}, a)
		}
	}
	return nulls, false
}

// rows evaluates a function by rows: null where an argument is.
func eachRow[T any](n *node, args []*vec, b *batch, out func(v *vec) *[]T, f func(r row) (T, error)) (*vec, error) {
	nulls, all := anyNulls(n, args)
	if all {
		return allNull(n.typ, b.n), nil
	}
	v := &vec{n: b.n, nulls: nulls}
	values := make([]T, b.n)
	*out(v) = values
	for k := range values {
		if v.null(k) {
			continue
		}
		var err error
		if values[k], err = f(row{args, k}); err != nil {
			return nil, err
		}
	}
	return v, nil
}

type evaluation = func(ev *evaluator, n *node, args []*vec, b *batch) (*vec, error)

// ofInts, ofFloats and ofBools are evaluations of functions of a row.
func ofInts(f func(n *node, r row) (int64, error)) evaluation {
	return func(_ *evaluator, n *node, args []*vec, b *batch) (*vec, error) {
		return eachRow(n, args, b, func(v *vec) *[]int64 { return &v.i }, func(r row) (int64, error) { return f(n, r) })
	}
}

func ofFloats(f func(n *node, r row) (float64, error)) evaluation {
	return func(_ *evaluator, n *node, args []*vec, b *batch) (*vec, error) {
		return eachRow(n, args, b, func(v *vec) *[]float64 { return &v.f }, func(r row) (float64, error) { return f(n, r) })
	}
}

func ofBools(f func(n *node, r row) bool) evaluation {
	return func(_ *evaluator, n *node, args []*vec, b *batch) (*vec, error) {
		return eachRow(n, args, b, func(v *vec) *[]bool { return &v.t }, func(r row) (bool, error) { return f(n, r), nil })
	}
}

// ofTexts is an evaluation of a function that writes a text.
func ofTexts(f func(w *textWriter, n *node, r row) error) evaluation {
	return func(ev *evaluator, n *node, args []*vec, b *batch) (*vec, error) {
		nulls, all := anyNulls(n, args)
		if all {
			return allNull(n.typ, b.n), nil
		}
		w := ev.texts(b.n)
		w.v.nulls = nulls
		for k := range b.n {
			if nulls == nil || !nulls[k] {
				if err := f(w, n, row{args, k}); err != nil {
					return nil, err
				}
			}
			w.end(k)
		}
		return w.finish()
	}
}

package bind

import (
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/format/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/format/tables/query/internal/vec"
)

// AggregateFunction is a function of the values of a group.
type AggregateFunction struct {
	Names     []string // the first is its name, the others mean the same
	Signature string
	Doc       string
	// Bind checks the arguments and returns the type of the result.
	Bind    func(b *Binder, a *Aggregate) tables.Type
	Compute Computation
}

// Computation returns a value for each group, of the rows in.Rows: those whose first argument is not null.
type Computation = func(a *Aggregate, in *vec.Grouped) (*tables.Vector, error)

// DefineAggregate returns an aggregate function. usage is its signature, and behind it its other names.
func DefineAggregate(usage, doc string, bind func(b *Binder, a *Aggregate) tables.Type,
	compute Computation) *AggregateFunction {
	names, signature := namesOf(usage)
	return &AggregateFunction{Names: names, Signature: signature, Doc: doc, Bind: bind, Compute: compute}
}

// namesOf returns the names and the signature in a usage.
func namesOf(usage string) (names []string, signature string) {
	signature, aliases, _ := strings.Cut(usage, ")")
	name, _, _ := strings.Cut(signature, "(")
	return append([]string{name}, strings.Fields(aliases)...), signature + ")"
}

// Aggregate is a call of an aggregate function.
type Aggregate struct {
	Function *AggregateFunction
	Args     []*eval.Node
	Distinct bool
	Fraction float64 // of quantiles
	Type     tables.Type
}

// Library holds the functions that a query may call, by each of their names.
type Library struct {
	Functions  map[string]*Function
	Aggregates map[string]*AggregateFunction
}

// maxAggregates bounds the aggregates of a query: each is a column of 8 bytes or more a group.
const maxAggregates = 1000

// aggregate binds a call of an aggregate function.
func (b *Binder) aggregate(e *ast.Expr) *eval.Node {
	switch {
	case b.inAgg:
		return b.Fail(sql.Bind("aggregate function calls cannot be nested"))
	case !b.AllowAggregates:
		return b.Fail(sql.Bind("%s cannot contain aggregates", b.Clause))
	}
	aggregate := Aggregate{Function: b.Library.Aggregates[e.Name], Distinct: e.Flag}
	if e.Name == "count" && len(e.Args) == 0 && !e.Flag {
		aggregate.Function = b.Library.Aggregates["count_star"]
	}
	b.inAgg = true
	aggregate.Args = b.bindAll(e.Args)
	b.inAgg = false
	aggregate.Type = aggregate.Function.Bind(b, &aggregate)
	i := slices.IndexFunc(b.Aggregates, func(o Aggregate) bool { return aggregate.same(&o) })
	if i < 0 {
		if len(b.Aggregates) >= maxAggregates {
			return b.Fail(fault.New(fault.Limit, "query", "more than %d aggregates", maxAggregates))
		}
		i = len(b.Aggregates)
		b.Aggregates = append(b.Aggregates, aggregate)
	}
	return b.Intern(&eval.Node{Op: eval.OpAggregate, Aggregate: i, Type: aggregate.Type})
}

// same reports whether two calls have the same results and can be computed once.
func (a *Aggregate) same(o *Aggregate) bool {
	return a.Function == o.Function && a.Distinct == o.Distinct && a.Fraction == o.Fraction &&
		slices.Equal(a.Args, o.Args)
}

// OneArgument returns the only argument, and fails if there is not exactly one.
func (a *Aggregate) OneArgument(b *Binder) *eval.Node {
	if len(a.Args) != 1 {
		a.Args = []*eval.Node{b.Fail(sql.Bind("%s of %d values", a.Function.Names[0], len(a.Args)))}
	}
	return a.Args[0]
}

// Refuse fails because an aggregate of a type is not computed. It returns the type.
func (a *Aggregate) Refuse(b *Binder, n *eval.Node) tables.Type {
	b.unsupported("%s of type %s", a.Function.Names[0], eval.TypeName(n))
	return n.Type
}

// WrongArgument fails because an argument has the wrong type. It returns the type.
func (a *Aggregate) WrongArgument(b *Binder, n *eval.Node) tables.Type {
	b.Fail(sql.Bind("no function matches %s(%s)", a.Function.Names[0], eval.TypeName(n)))
	return n.Type
}

// maxArgs bounds the arguments of a function: all are in memory for a batch of 4,096 rows, 8 MiB for 256 of 8 bytes.
const maxArgs = 256

// Param is the type that an argument of a function must have.
type Param uint8

const (
	StringParam    Param = iota // VARCHAR
	IntParam                    // an integer, given as BIGINT
	FloatParam                  // a number, given as DOUBLE
	TimestampParam              // DATE or TIMESTAMP, given as TIMESTAMP
)

// paramWords are the words by which a signature says the type of an argument.
var paramWords = map[string]Param{"string": StringParam, "part": StringParam, "old": StringParam, "new": StringParam,
	"separator": StringParam, "pattern": StringParam, "options": StringParam, "count": IntParam, "from": IntParam,
	"number": IntParam, "group": IntParam, "x": FloatParam, "y": FloatParam, "t": TimestampParam}

// Function is a function of the values of a row.
type Function struct {
	eval.Call
	Names     []string // the first is its name, the others mean the same
	Signature string   // how it is called, for the documentation
	Doc       string
	// A function has either params, whose last optional ones may be missing, and the type of its result; or bind.
	params   []Param
	optional int
	result   tables.Type
	bind     Binding
	prepare  func(n *eval.Node) (any, error)
	unknown  string // a word of the signature that says no type
}

// Binding binds a call of a function.
type Binding = func(b *Binder, f *Function, args []*eval.Node) *eval.Node

// Define returns a function. usage is its signature, whose words say the types of its arguments (paramWords), and
// behind it its other names: "substring(string, from[, count]) substr". result is the type of its result. With other
// words it needs a binding of its own (Bound), else Library.Add panics.
func Define(usage, doc string, result tables.Type, evaluation eval.Evaluation) *Function {
	names, signature := namesOf(usage)
	function := &Function{Call: eval.Call{Name: names[0], Evaluate: evaluation}, Names: names, Signature: signature,
		Doc: doc, result: result, optional: strings.Count(signature, "[")}
	_, words, _ := strings.Cut(signature, "(")
	for _, word := range strings.FieldsFunc(words, func(r rune) bool { return strings.ContainsRune("[], )", r) }) {
		param, ok := paramWords[word]
		if !ok {
			function.unknown = word
		}
		function.params = append(function.params, param)
	}
	return function
}

// Add adds a function by each of its names.
func (l *Library) Add(f *Function) {
	if f.unknown != "" && f.bind == nil {
		panic("bind: " + f.Signature + " has a word without a type: " + f.unknown)
	}
	for _, name := range f.Names {
		l.Functions[name] = f
	}
}

// Bound returns the function with a binding of its own, in place of the types of its arguments and of its result.
func (f *Function) Bound(bind Binding) *Function {
	f.bind = bind
	return f
}

// Prepared returns the function with what computes Node.State from literal arguments, once for all rows.
func (f *Function) Prepared(prepare func(n *eval.Node) (any, error)) *Function {
	f.prepare = prepare
	return f
}

// WrongArguments fails because a function does not take the arguments.
func (b *Binder) WrongArguments(f *Function, args []*eval.Node) *eval.Node {
	var types []string
	for _, arg := range args {
		types = append(types, eval.TypeName(arg))
	}
	return b.Fail(sql.Bind("no function matches %s(%s): it is %s", f.Names[0], strings.Join(types, ", "),
		f.Signature))
}

// ByParams binds a function by the types of its arguments.
func (b *Binder) ByParams(f *Function, args []*eval.Node) *eval.Node {
	if len(args) > len(f.params) || len(args) < len(f.params)-f.optional {
		return b.WrongArguments(f, args)
	}
	converted := make([]*eval.Node, len(args))
	for i, arg := range args {
		typ, ok := f.params[i].wants(arg)
		if !ok {
			return b.WrongArguments(f, args)
		}
		converted[i] = b.Convert(arg, typ)
	}
	return b.Call(f, f.result, converted...)
}

// wants returns the type to which an argument is converted, or false if the function does not take it.
func (p Param) wants(a *eval.Node) (t tables.Type, ok bool) {
	switch typ := a.Type; {
	case typ.Kind == tables.Null:
		return typ, true
	case p == StringParam:
		return typ, typ.Kind == tables.String
	case p == IntParam:
		return sql.Int64, sql.IsInteger(typ)
	case p == FloatParam:
		return sql.Double, sql.IsNumber(typ)
	case typ.Kind == tables.Date:
		return sql.Timestamp, true
	default:
		return typ, typ.Kind == tables.Timestamp
	}
}

// Call makes the call of a function.
func (b *Binder) Call(f *Function, t tables.Type, args ...*eval.Node) *eval.Node {
	node := b.Intern(&eval.Node{Op: ast.OpCall, Call: &f.Call, Type: t, Args: args})
	if b.Err == nil && node.State == nil && f.prepare != nil {
		var err error
		if node.State, err = f.prepare(node); err != nil {
			return b.Fail(err)
		}
	}
	return node
}

// LiteralString returns the string of argument i, which must be a literal.
func LiteralString(n *eval.Node, i int) (string, error) {
	if a := n.Args[i]; a.Literal != nil && (a.Type.Kind == tables.String || a.Literal.Null) {
		return a.Literal.String, nil
	}
	return "", sql.Unsupported("%s with an argument %d that is not a literal", n.Call.Name, i+1)
}

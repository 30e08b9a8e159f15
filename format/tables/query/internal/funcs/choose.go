package funcs

import (
	"unicode/utf8"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/format/tables/query/internal/bind"
	"github.com/chaski-eo/chaski/format/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/format/tables/query/internal/vec"
)

// bindCommon returns the binding of a function whose arguments are converted to one type, the type of its result.
func bindCommon(op ast.Op) bind.Binding {
	return func(b *bind.Binder, f *bind.Function, args []*eval.Node) *eval.Node {
		if len(args) == 0 {
			return b.WrongArguments(f, args)
		}
		args, typ := b.ToCommonType(f.Names[0], args)
		return b.Intern(&eval.Node{Op: op, Call: &f.Call, Type: typ, Args: args})
	}
}

// extremeOf returns the evaluation of GREATEST (sign 1) or LEAST (sign -1), which ignore nulls.
func extremeOf(sign int) eval.Evaluation {
	return func(ev *eval.Evaluator, n *eval.Node, args []*tables.Vector, b *vec.Batch) (*tables.Vector, error) {
		out := vec.NewChoice(n.Type, b.N)
		for i, values := range args {
			if n.Args[i].Type.Kind == tables.Null {
				continue
			}
			orders := map[*tables.Vector]func(i, k int) int{}
			for row, best := range out.From {
				if values.Null(row) {
					continue
				}
				if best != nil && orders[best] == nil {
					orders[best] = vec.Comparator(values, best)
				}
				if best == nil || sign*orders[best](row, row) > 0 {
					out.From[row], out.At[row] = values, int32(row)
				}
			}
		}
		return out.Build(ev.Strings)
	}
}

// bindNullIf binds NULLIF(x, y) as CASE WHEN x = y THEN NULL ELSE x END.
func bindNullIf(b *bind.Binder, f *bind.Function, args []*eval.Node) *eval.Node {
	if len(args) != 2 {
		return b.WrongArguments(f, args)
	}
	null := b.Literal(tables.Type{}, eval.Literal{Null: true})
	return b.Case([]*eval.Node{b.Compare("=", args[0], args[1]), null, args[0]})
}

// bindIf binds IF(condition, x, y) as CASE.
func bindIf(b *bind.Binder, f *bind.Function, args []*eval.Node) *eval.Node {
	if len(args) != 3 {
		return b.WrongArguments(f, args)
	}
	return b.Case(args)
}

// Others returns the functions that choose among values, and the functions of lists.
func Others() []*bind.Function {
	var ofArgs tables.Type // the type of the result follows from the arguments
	return []*bind.Function{
		bind.Define("coalesce(x, …) ifnull", "the first value that is not NULL", ofArgs, nil).
			Bound(bindCommon(eval.OpCoalesce)),
		bind.Define("nullif(x, y)", "NULL if x = y, otherwise x", ofArgs, nil).Bound(bindNullIf),
		bind.Define("if(condition, x, y)", "x if the condition holds, otherwise y", ofArgs, nil).Bound(bindIf),
		bind.Define("greatest(x, …)", "the greatest value; ignores NULLs", ofArgs, extremeOf(1)).
			Bound(bindCommon(ast.OpCall)),
		bind.Define("least(x, …)", "the least value; ignores NULLs", ofArgs, extremeOf(-1)).
			Bound(bindCommon(ast.OpCall)),
		bind.Define("len(x) length array_length list_length",
			"the number of characters of a string, or of elements of a list", sql.Int64, evalLen).Bound(bindLen),
		bind.Define("list_contains(list, x) array_contains list_has array_has",
			"whether a column of lists contains a literal; also `x IN list`", sql.Bool, evalListContains).
			Bound(bindContains),
	}
}

// bindLen binds the length of a list, or of a string in characters.
func bindLen(b *bind.Binder, f *bind.Function, args []*eval.Node) *eval.Node {
	if len(args) != 1 {
		return b.WrongArguments(f, args)
	}
	switch kind := args[0].Type.Kind; {
	case kind == tables.List && args[0].Op == ast.OpColumn, kind == tables.String, kind == tables.Null:
	case kind == tables.Binary:
		return b.Fail(sql.Unsupported("%s of type BLOB", f.Names[0]))
	default:
		return b.WrongArguments(f, args)
	}
	return b.Call(f, sql.Int64, args...)
}

func evalLen(ev *eval.Evaluator, n *eval.Node, args []*tables.Vector, b *vec.Batch) (*tables.Vector, error) {
	lengths := make([]int64, b.N)
	if list := n.Args[0]; list.Type.Kind == tables.List {
		nulls := eval.EachList(ev, list, b, func(k int, _ *tables.Vector, lo, hi int) bool {
			lengths[k] = int64(hi - lo)
			return true
		})
		return tables.NewInts(sql.Int64, lengths, nulls), nil
	}
	text := args[0]
	if text.Kind() == tables.Null {
		return tables.NewNulls(sql.Int64, b.N), nil
	}
	for k := range lengths {
		lengths[k] = int64(utf8.RuneCount(text.Bytes(k)))
	}
	return tables.NewInts(sql.Int64, lengths, text.Nulls()), nil
}

// bindContains binds list_contains(column, literal).
func bindContains(b *bind.Binder, f *bind.Function, args []*eval.Node) *eval.Node {
	if len(args) != 2 || args[0].Type.Kind != tables.List {
		return b.WrongArguments(f, args)
	}
	if args[0].Op != ast.OpColumn || args[1].Literal == nil {
		return b.Fail(sql.Unsupported("%s of other than a column and a literal", f.Names[0]))
	}
	elem := *args[0].Type.Elem
	node := args[1]
	switch {
	case node.Literal.Null:
	case elem.Kind == tables.String && node.Type.Kind == tables.String:
	case sql.IsInteger(elem) && node.Literal.Rat != nil:
	case elem.Kind == tables.Float64 && (node.Literal.Rat != nil || node.Type.Kind == tables.Float64):
		node = b.Convert(node, elem)
	default:
		return b.Fail(sql.Unsupported("%s of types %s and %s", f.Names[0], eval.TypeName(args[0]),
			eval.TypeName(node)))
	}
	return b.Call(f, sql.Bool, args[0], node)
}

func evalListContains(ev *eval.Evaluator, n *eval.Node, _ []*tables.Vector, b *vec.Batch) (*tables.Vector, error) {
	node, x := n.Args[0], n.Args[1]
	if x.Literal.Null {
		return tables.NewNulls(sql.Bool, b.N), nil
	}
	lo, hi := sql.Limits(sql.Int64)
	var whole bool
	var i int64
	if x.Literal.Rat != nil {
		if node.Type.Elem.Kind == tables.Uint64 {
			lo, hi = sql.Limits(*node.Type.Elem)
		}
		whole = x.Literal.Rat.IsInt() && sql.Within(x.Literal.Rat.Num(), lo, hi)
		i = sql.Word(x.Literal.Rat.Num())
	}
	bools := make([]bool, b.N)
	nulls := eval.EachList(ev, node, b, func(row int, child *tables.Vector, lo, hi int) bool {
		for elem := lo; elem < hi && !bools[row]; elem++ {
			switch {
			case child.Null(elem):
			case child.Kind() == tables.String:
				bools[row] = string(child.Bytes(elem)) == x.Literal.String
			case child.Kind() == tables.Float64:
				bools[row] = vec.OrderFloat(child.Float(elem), x.Literal.Float) == 0
			default:
				bools[row] = whole && child.Int(elem) == i
			}
		}
		return true
	})
	return tables.NewBools(bools, nulls), nil
}

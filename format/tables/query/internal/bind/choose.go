package bind

import (
	"slices"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/format/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
)

// CASE, COALESCE, GREATEST and their like choose one of several values for each row.

// ToCommonType converts the arguments of what to their common type.
func (b *Binder) ToCommonType(what string, args []*eval.Node) ([]*eval.Node, tables.Type) {
	var common tables.Type
	for _, node := range args {
		// A string literal takes the type of the others, so it does not count here.
		if node.Type.Kind == tables.String && node.Literal != nil {
			continue // a string literal takes the type of the others
		}
		common = b.meet(what, common, node)
	}
	isString := func(n *eval.Node) bool { return n.Type.Kind == tables.String }
	if common.Kind == tables.Null && slices.ContainsFunc(args, isString) {
		common = sql.String
	}
	if sql.RepOf(common) == sql.RepOther {
		b.unsupported("%s of type %s", what, sql.Name(common))
		return args, common
	}
	out := make([]*eval.Node, len(args))
	for i, node := range args {
		if node.Literal != nil && node.Literal.Rat != nil && sql.IsInteger(common) && sql.IsInteger(node.Type) {
			out[i] = b.integer(node, common)
		} else {
			out[i] = b.Convert(node, common)
		}
	}
	return out, common
}

// meet returns the common type of t and a node. A whole number takes the type of an integer column that can hold it.
func (b *Binder) meet(what string, t tables.Type, a *eval.Node) tables.Type {
	number := a.Literal != nil && a.Literal.Rat != nil
	if number && sql.IsInteger(a.Type) && sql.IsInteger(t) {
		if lo, hi := sql.Limits(t); sql.Within(a.Literal.Rat.Num(), lo, hi) {
			return t
		}
	}
	if number && t.Kind == tables.Float64 {
		return t
	}
	out, ok := sql.Common(t, a.Type)
	if !ok {
		b.unsupported("%s of type %s and type %s", what, sql.Name(t), sql.Name(a.Type))
		return t
	}
	return out
}

// Case binds CASE. args are condition, value, …, value of ELSE.
func (b *Binder) Case(args []*eval.Node) *eval.Node {
	var values []*eval.Node
	for i, node := range args {
		if i%2 == 1 || i == len(args)-1 {
			values = append(values, node)
		} else {
			args[i] = b.Truth(node)
		}
	}
	values, typ := b.ToCommonType("CASE", values)
	for i, v := range values {
		args[min(2*i+1, len(args)-1)] = v
	}
	return b.Intern(&eval.Node{Op: ast.OpCase, Type: typ, Args: args})
}

package bind

import (
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/tables/query/internal/plan"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
	"github.com/chaski-eo/chaski/tables/query/internal/sqltype"
)

// CASE, COALESCE, GREATEST and their like choose one of several values for each row.

// ToCommonType converts the arguments of what to their common type.
func (b *Binder) ToCommonType(what string, args []*plan.Node) ([]*plan.Node, tables.Type, error) {
	var t tables.Type
	var err error
	for _, node := range args {
		if node.Type.Kind == tables.String && node.Literal != nil {
			continue // a string literal takes the type of the others
		}
		if t, err = b.meet(what, t, node); err != nil {
			return nil, t, err
		}
	}
	if t.Kind == tables.Null {
		for _, a := range args {
			if a.Type.Kind == tables.String {
				t = sqltype.String
			}
		}
	}
	if sqltype.RepOf(t) == sqltype.RepOther {
		return nil, t, sqlerr.Unsupported("%s of type %s", what, sqltype.Name(t))
	}
	out := make([]*plan.Node, len(args))
	for i, node := range args {
		switch {
		case node.Literal != nil && node.Literal.Rat != nil && sqltype.IsInteger(t) && sqltype.IsInteger(node.Type):
			out[i], err = b.integer(node, t)
		default:
			out[i], err = b.Convert(node, t)
		}
		if err != nil {
			return nil, t, err
		}
	}
	return out, t, nil
}

// meet returns the common type of t and a node. A whole number takes the type of an integer column that can hold it.
func (b *Binder) meet(what string, t tables.Type, a *plan.Node) (tables.Type, error) {
	number := a.Literal != nil && a.Literal.Rat != nil
	if number && sqltype.IsInteger(a.Type) && sqltype.IsInteger(t) {
		if lo, hi := sqltype.Limits(t); sqltype.Within(a.Literal.Rat.Num(), lo, hi) {
			return t, nil
		}
	}
	if number && t.Kind == tables.Float64 {
		return t, nil
	}
	out, ok := sqltype.Common(t, a.Type)
	if !ok {
		return t, sqlerr.Unsupported("%s of type %s and type %s", what, sqltype.Name(t), sqltype.Name(a.Type))
	}
	return out, nil
}

// Case binds CASE. args are condition, value, …, value of ELSE.
func (b *Binder) Case(args []*plan.Node) (*plan.Node, error) {
	var values []*plan.Node
	for i, node := range args {
		if i%2 == 1 || i == len(args)-1 {
			values = append(values, node)
			continue
		}
		var err error
		if args[i], err = b.Truth(node); err != nil {
			return nil, err
		}
	}
	values, typ, err := b.ToCommonType("CASE", values)
	if err != nil {
		return nil, err
	}
	for i, v := range values {
		args[min(2*i+1, len(args)-1)] = v
	}
	return b.Intern(&plan.Node{Op: ast.OpCase, Type: typ, Args: args})
}

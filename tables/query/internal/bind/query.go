package bind

import (
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/tables/query/internal/plan"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
	"github.com/chaski-eo/chaski/tables/query/internal/sqltype"
	"github.com/chaski-eo/chaski/tables/query/internal/vec"
)

// scalar runs a query that gives one value: NULL if it has no row.
func (b *Binder) scalar(sel *ast.Select) (*plan.Node, error) {
	table, err := b.queries.RunQuery(sel, b)
	if err != nil {
		return nil, err
	}
	switch {
	case len(table.Columns()) != 1:
		return nil, sqlerr.Bind("a query in an expression returns %d columns: it must return one", len(table.Columns()))
	case table.Len() > 1:
		return nil, sqlerr.Bind("a query in an expression returns %d rows: it must return at most one", table.Len())
	case sqltype.RepOf(table.Columns()[0].Type) == sqltype.RepOther:
		return nil, sqlerr.Unsupported("a query in an expression that returns type %s",
			sqltype.Name(table.Columns()[0].Type))
	}
	values := tables.NewNulls(table.Columns()[0].Type, 1)
	if table.Len() == 1 {
		if values, err = table.At(b.ctx, 0); err != nil {
			return nil, err
		}
	}
	return b.Intern(&plan.Node{Op: plan.OpScalar, Type: table.Columns()[0].Type,
		Results: &plan.Results{Value: values, N: table.Len()}})
}

// inQuery binds x IN (SELECT …).
func (b *Binder) inQuery(x *plan.Node, sel *ast.Select, not bool) (*plan.Node, error) {
	table, err := b.queries.RunQuery(sel, b)
	if err != nil {
		return nil, err
	}
	if len(table.Columns()) != 1 {
		return nil, sqlerr.Bind("the query of IN returns %d columns: it must return one", len(table.Columns()))
	}
	c := &plan.Node{Op: ast.OpColumn, Type: table.Columns()[0].Type}
	node, r, err := b.unify(x, c)
	if err != nil {
		return nil, err
	}
	if sqltype.RepOf(node.Type) == sqltype.RepOther {
		return nil, sqlerr.Unsupported("IN of type %s", plan.TypeName(node))
	}
	values, err := eval.CastColumn(b.ctx, table, 0, r.Type)
	if err != nil {
		return nil, err
	}
	in := &plan.Results{Keys: vec.NewKeySet(), N: table.Len()}
	var key []byte
	for k := range table.Len() {
		if values.Null(k) {
			in.HasNull = true
			continue
		}
		key = vec.AppendKey(key[:0], values, k)
		in.Keys.Add(key)
	}
	return b.Intern(&plan.Node{Op: plan.OpInSet, Type: sqltype.Bool, Args: []*plan.Node{node}, Not: not, Results: in})
}

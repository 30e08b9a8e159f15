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
	t, err := b.queries.RunQuery(sel, b)
	if err != nil {
		return nil, err
	}
	switch {
	case len(t.Columns()) != 1:
		return nil, sqlerr.Bind("a query in an expression returns %d columns: it must return one", len(t.Columns()))
	case t.Len() > 1:
		return nil, sqlerr.Bind("a query in an expression returns %d rows: it must return at most one", t.Len())
	case sqltype.RepOf(t.Columns()[0].Type) == sqltype.RepOther:
		return nil, sqlerr.Unsupported("a query in an expression that returns type %s",
			sqltype.Name(t.Columns()[0].Type))
	}
	v := tables.NewNulls(t.Columns()[0].Type, 1)
	if t.Len() == 1 {
		if v, err = t.At(b.ctx, 0); err != nil {
			return nil, err
		}
	}
	return b.Intern(&plan.Node{Op: plan.OpScalar, Type: t.Columns()[0].Type,
		Results: &plan.Results{Value: v, N: t.Len()}})
}

// inQuery binds x IN (SELECT …).
func (b *Binder) inQuery(x *plan.Node, sel *ast.Select, not bool) (*plan.Node, error) {
	t, err := b.queries.RunQuery(sel, b)
	if err != nil {
		return nil, err
	}
	if len(t.Columns()) != 1 {
		return nil, sqlerr.Bind("the query of IN returns %d columns: it must return one", len(t.Columns()))
	}
	c := &plan.Node{Op: ast.OpColumn, Type: t.Columns()[0].Type}
	l, r, err := b.unify(x, c)
	if err != nil {
		return nil, err
	}
	if sqltype.RepOf(l.Type) == sqltype.RepOther {
		return nil, sqlerr.Unsupported("IN of type %s", plan.TypeName(l))
	}
	v, err := eval.CastColumn(b.ctx, t, 0, r.Type)
	if err != nil {
		return nil, err
	}
	in := &plan.Results{Keys: vec.NewKeySet(), N: t.Len()}
	var key []byte
	for k := range t.Len() {
		if v.Null(k) {
			in.HasNull = true
			continue
		}
		key = vec.AppendKey(key[:0], v, k)
		in.Keys.Add(key)
	}
	return b.Intern(&plan.Node{Op: plan.OpInSet, Type: sqltype.Bool, Args: []*plan.Node{l}, Not: not, Results: in})
}

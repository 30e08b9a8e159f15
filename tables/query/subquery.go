package query

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/tables/query/internal/bind"
	"github.com/chaski-eo/chaski/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
	"github.com/chaski-eo/chaski/tables/query/internal/sqltype"
	"github.com/chaski-eo/chaski/tables/query/internal/vec"
)

// session is the state that the queries of one SQL string share. A query with WITH runs in a session of its own inside
// the outer one, which keeps its names from being seen outside.
type session struct {
	ctx    context.Context
	tables Tables
	named  map[string]*tables.Table // of WITH, by lower-case name
	outer  *session
	// cells counts the row numbers that the joins and unions of all queries hold: see eval.MaxRowNumbers.
	cells *int
	held  *held
}

// held counts the bytes of the columns that all queries computed.
type held struct {
	bytes  atomic.Int64
	limit  int64
	limits Limits
}

func newSession(ctx context.Context, tables Tables, l Limits) *session {
	h := &held{limit: l.Memory, limits: l}
	if h.limit <= 0 {
		h.limit = DefaultMemory()
	}
	return &session{ctx: ctx, tables: tables, cells: new(int), held: h}
}

func (h *held) hold(n int64) error {
	if h.bytes.Add(n) > h.limit {
		return tooLarge(h.limit)
	}
	return nil
}

// find returns the table with a name: of the innermost WITH that has it, else one of the user's.
func (s *session) find(name string) (*tables.Table, error) {
	low := strings.ToLower(name)
	for in := s; in != nil; in = in.outer {
		if t := in.named[low]; t != nil {
			return t, nil
		}
	}
	return s.tables(s.ctx, name)
}

// RunQuery runs a query. around is the binder of the expression that contains the query, nil if none does.
func (s *session) RunQuery(sel *ast.Select, around *bind.Binder) (*tables.Table, error) {
	if len(sel.With) > 0 {
		s = &session{ctx: s.ctx, tables: s.tables, named: map[string]*tables.Table{}, outer: s, cells: s.cells,
			held: s.held}
		for _, namedQuery := range sel.With {
			low := strings.ToLower(namedQuery.Name)
			if s.named[low] != nil {
				return nil, sqlerr.Bind("two queries of WITH are named %q", namedQuery.Name)
			}
			table, err := s.RunQuery(namedQuery.Query, nil)
			if err != nil {
				return nil, err
			}
			s.named[low] = table
		}
	}
	r := &run{s: sel, b: bind.New(s.ctx, functionLibrary, s, around), session: s}
	if err := r.from(); err != nil {
		return nil, err
	}
	if err := r.bind(); err != nil {
		return nil, err
	}
	return r.result(s.ctx)
}

// source returns the table of a term of FROM.
func (s *session) source(f *ast.From) (t *tables.Table, err error) {
	switch {
	case f.Query != nil:
		t, err = s.RunQuery(f.Query, nil)
	case f.Union != nil:
		t, err = s.union(f.Union)
	default:
		t, err = s.find(f.Table)
	}
	if err != nil || f.Sample == nil {
		return t, err
	}
	return t.Take(vec.ToInts(f.Sample.Rows(t.Len()))), nil
}

// union runs queries and puts their rows one after the other. It applies UNIONs from left to right, because one without
// ALL removes duplicates among all rows before it.
func (s *session) union(u *ast.Union) (*tables.Table, error) {
	var parts []*tables.Table
	for i, sel := range u.Parts {
		table, err := s.RunQuery(sel, nil)
		if err != nil {
			return nil, err
		}
		if parts = append(parts, table); i == 0 || u.All[i-1] {
			continue
		}
		if table, err = s.join(parts); err != nil {
			return nil, err
		}
		if table, err = s.distinct(table); err != nil {
			return nil, err
		}
		parts = []*tables.Table{table}
	}
	return s.join(parts)
}

// join puts the rows of tables one after the other, in the common types of their columns.
func (s *session) join(parts []*tables.Table) (*tables.Table, error) {
	first := parts[0]
	if len(parts) == 1 {
		return first, nil
	}
	cols := make([]tables.Column, len(first.Columns()))
	n := 0
	for _, table := range parts {
		if len(table.Columns()) != len(cols) {
			return nil, sqlerr.Bind("UNION of %d and of %d columns", len(cols), len(table.Columns()))
		}
		n += table.Len()
	}
	for i := range cols {
		cols[i] = first.Columns()[i]
		for _, table := range parts[1:] {
			a, b := cols[i].Type, table.Columns()[i].Type
			if a.Kind != tables.Null && b.Kind != tables.Null && !tables.SameForms(a, b) {
				a, b = a.SQL(), b.SQL()
			}
			var ok bool
			if cols[i].Type, ok = commonOrString(a, b); !ok {
				return nil, sqlerr.Unsupported("UNION of type %s and type %s",
					sqltype.Name(first.Columns()[i].Type), sqltype.Name(table.Columns()[i].Type))
			}
		}
	}
	if err := s.hold(n); err != nil {
		return nil, err
	}
	return tables.New(n, cols, func(ctx context.Context, i int) (*tables.Vector, error) {
		vectors := make([]*tables.Vector, len(parts))
		for k, p := range parts {
			var err error
			if vectors[k], err = eval.CastColumn(ctx, p, i, cols[i].Type); err != nil {
				return nil, err
			}
		}
		return tables.Append(cols[i].Type, vectors...)
	}), nil
}

// commonOrString returns the type that UNION gives two columns: their common type, or strings if one of them is strings
// and the other can be cast.
func commonOrString(a, b tables.Type) (tables.Type, bool) {
	if t, ok := sqltype.Common(a, b); ok {
		return t, true
	}
	return sqltype.String, a.Kind == tables.String && bind.Castable(b.Kind, tables.String) ||
		b.Kind == tables.String && bind.Castable(a.Kind, tables.String)
}

// distinct keeps the first of equal rows.
func (s *session) distinct(t *tables.Table) (*tables.Table, error) {
	cols := make([]*tables.Vector, len(t.Columns()))
	for i := range cols {
		var err error
		if cols[i], err = t.At(s.ctx, i); err != nil {
			return nil, err
		}
	}
	return t.Take(vec.ToInts(vec.GroupRows(t.Len(), cols).First)), nil
}

// rowNumberBytes is charged for each row number of a join: an int32 in the relation, and as many in the two lists that
// grow while the join collects its pairs, with their old memory.
const rowNumberBytes = 16

// hold counts and charges n row numbers, and refuses more than eval.MaxRowNumbers.
func (s *session) hold(n int) error {
	if *s.cells += n; *s.cells > eval.MaxRowNumbers {
		return fault.New(fault.Limit, "query", fault.NoOffset,
			"joins and unions of more than %d rows", eval.MaxRowNumbers)
	}
	return budget.Grow(s.ctx, rowNumberBytes*int64(n))
}

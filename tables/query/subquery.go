package query

import (
	"context"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
)

// session is what the queries of one text see and share. One with WITH has a session of its own inside of the others.
type session struct {
	ctx    context.Context
	tables Tables
	named  map[string]*tables.Table // of WITH, by lower-case name
	outer  *session
	// cells counts the row numbers that joins and unions hold, of all queries: see maxCells.
	cells *int
}

func newSession(ctx context.Context, tables Tables) *session {
	return &session{ctx: ctx, tables: tables, cells: new(int)}
}

// find returns the table of a name of FROM.
func (s *session) find(name string) (*tables.Table, error) {
	low := strings.ToLower(name)
	for in := s; in != nil; in = in.outer {
		if t := in.named[low]; t != nil {
			return t, nil
		}
	}
	return s.tables(s.ctx, name)
}

// run runs a query. around is the binder of the expression that it stands in, nil elsewhere.
func (s *session) run(sel *selection, around *binder) (*tables.Table, error) {
	if len(sel.with) > 0 {
		s = &session{ctx: s.ctx, tables: s.tables, named: map[string]*tables.Table{}, outer: s, cells: s.cells}
		for _, w := range sel.with {
			low := strings.ToLower(w.name)
			if s.named[low] != nil {
				return nil, binderError("two queries of WITH are named %q", w.name)
			}
			t, err := s.run(w.s, nil)
			if err != nil {
				return nil, err
			}
			s.named[low] = t
		}
	}
	r := &run{s: sel, b: newBinder(s), session: s}
	r.b.around = around
	if err := r.from(); err != nil {
		return nil, err
	}
	if err := r.bind(); err != nil {
		return nil, err
	}
	return r.result(s.ctx)
}

// source returns the table of a term of FROM.
func (s *session) source(f *from) (t *tables.Table, err error) {
	switch {
	case f.sub != nil:
		t, err = s.run(f.sub, nil)
	case f.union != nil:
		t, err = s.union(f.union)
	default:
		t, err = s.find(f.table)
	}
	if err != nil || f.sample == nil {
		return t, err
	}
	return t.Take(ints(f.sample.of(t.Len()))), nil
}

// union runs queries and puts their rows one after the other.
func (s *session) union(u *union) (*tables.Table, error) {
	var parts []*tables.Table
	for i, sel := range u.parts {
		t, err := s.run(sel, nil)
		if err != nil {
			return nil, err
		}
		if parts = append(parts, t); i == 0 || u.all[i-1] {
			continue
		}
		if t, err = s.join(parts); err != nil {
			return nil, err
		}
		if t, err = s.distinct(t); err != nil {
			return nil, err
		}
		parts = []*tables.Table{t}
	}
	return s.join(parts)
}

// join puts the rows of tables one after the other, in the types in which their columns meet.
func (s *session) join(parts []*tables.Table) (*tables.Table, error) {
	first := parts[0]
	if len(parts) == 1 {
		return first, nil
	}
	cols := make([]tables.Column, len(first.Columns()))
	n := 0
	for _, p := range parts {
		if len(p.Columns()) != len(cols) {
			return nil, binderError("UNION of %d and of %d columns", len(cols), len(p.Columns()))
		}
		n += p.Len()
	}
	for i := range cols {
		cols[i] = first.Columns()[i]
		for _, p := range parts[1:] {
			var ok bool
			if cols[i].Type, ok = meetOrText(cols[i].Type, p.Columns()[i].Type); !ok {
				return nil, unsupported("UNION of type %s and type %s", sqlName(first.Columns()[i].Type), sqlName(p.Columns()[i].Type))
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
			if vectors[k], err = castColumn(ctx, p, i, cols[i].Type); err != nil {
				return nil, err
			}
		}
		return tables.Append(cols[i].Type, vectors...)
	}), nil
}

// meetOrText is meet for UNION, where other values become texts beside texts.
func meetOrText(a, b tables.Type) (tables.Type, bool) {
	if t, ok := meet(a, b); ok {
		return t, true
	}
	return textType, a.Kind == tables.Text && castable(b.Kind, tables.Text) || b.Kind == tables.Text && castable(a.Kind, tables.Text)
}

// castColumn returns a column as values of a type.
func castColumn(ctx context.Context, t *tables.Table, i int, to tables.Type) (*tables.Vector, error) {
	n := &node{op: opColumn, col: i, typ: t.Columns()[i].Type}
	if !n.typ.Equal(to) && n.typ.Kind != tables.Null {
		n = &node{op: opCast, typ: to, args: []*node{n}}
	}
	return newEvaluator(ctx, []*tables.Table{t}).column(n, &rows{n: t.Len(), tables: [][]int32{nil}})
}

// distinct returns the first of equal rows.
func (s *session) distinct(t *tables.Table) (*tables.Table, error) {
	cols := make([]*tables.Vector, len(t.Columns()))
	for i := range cols {
		var err error
		if cols[i], err = t.At(s.ctx, i); err != nil {
			return nil, err
		}
	}
	return t.Take(ints(groupRows(t.Len(), cols).first)), nil
}

// hold counts row numbers.
func (s *session) hold(n int) error {
	if *s.cells += n; *s.cells > maxCells {
		return fault.New(fault.Limit, "query", fault.NoOffset, "joins and unions of more than %d rows", maxCells)
	}
	return nil
}

// results are those of a query inside of an expression.
type results struct {
	one  *tables.Vector // of opScalar: one value
	set  *keySet        // of opInSet
	null bool           // NULL is among them
	n    int
}

// scalar runs a query that gives one value: NULL if it has no row.
func (b *binder) scalar(sel *selection) (*node, error) {
	t, err := b.session.run(sel, b)
	if err != nil {
		return nil, err
	}
	switch {
	case len(t.Columns()) != 1:
		return nil, binderError("a query in an expression returns %d columns: it has to be one", len(t.Columns()))
	case t.Len() > 1:
		return nil, binderError("a query in an expression returns %d rows: it has to be one at most", t.Len())
	case repOf(t.Columns()[0].Type) == repOther:
		return nil, unsupported("a query in an expression that returns type %s", sqlName(t.Columns()[0].Type))
	}
	v := tables.NewNulls(t.Columns()[0].Type, 1)
	if t.Len() == 1 {
		if v, err = t.At(b.ctx, 0); err != nil {
			return nil, err
		}
	}
	return b.intern(&node{op: opScalar, typ: t.Columns()[0].Type, results: &results{one: v, n: t.Len()}})
}

// vec returns the value n times.
func (v *results) vec(t tables.Type, n int) *vec {
	c := &node{op: opColumn, typ: t}
	ev := &evaluator{loaded: map[*node]*tables.Vector{c: v.one}}
	return ev.read(c, &batch{n: n, tables: [][]int32{make([]int32, n)}})
}

// inQuery binds x IN (SELECT …).
func (b *binder) inQuery(x *node, sel *selection, not bool) (*node, error) {
	t, err := b.session.run(sel, b)
	if err != nil {
		return nil, err
	}
	if len(t.Columns()) != 1 {
		return nil, binderError("the query of IN returns %d columns: it has to be one", len(t.Columns()))
	}
	c := &node{op: opColumn, typ: t.Columns()[0].Type}
	l, r, err := b.unify(x, c)
	if err != nil {
		return nil, err
	}
	if repOf(l.typ) == repOther {
		return nil, unsupported("IN of type %s", typeName(l))
	}
	v, err := castColumn(b.ctx, t, 0, r.typ)
	if err != nil {
		return nil, err
	}
	in := &results{set: newKeySet(), n: t.Len()}
	var key []byte
	for k := range t.Len() {
		if v.Null(k) {
			in.null = true
			continue
		}
		key = appendKey(key[:0], v, k)
		in.set.add(key)
	}
	return b.intern(&node{op: opInSet, typ: boolType, args: []*node{l}, not: not, results: in})
}

// contain reports for each value whether it is among those of the query: null if it is not found and NULL is.
func (v *results) contain(n *node, x *vec) (*vec, error) {
	out := &vec{n: x.n, t: make([]bool, x.n), nulls: make([]bool, x.n)}
	c := collector{typ: n.args[0].typ}
	if err := c.add(x); err != nil {
		return nil, err
	}
	all := c.vector()
	var key []byte
	for k := range x.n {
		if all.Null(k) {
			out.nulls[k] = v.n > 0 // among none there is not even an unknown value
			out.t[k] = n.not
			continue
		}
		key = appendKey(key[:0], all, k)
		found := v.set.find(key) >= 0
		out.t[k], out.nulls[k] = found != n.not, !found && v.null
	}
	return out, nil
}

// columnAround reports whether a query around this one has a column, of a table if one is named.
func (b *binder) columnAround(alias, name string) bool {
	for in := b.around; in != nil; in = in.around {
		for _, t := range in.tables {
			if (alias == "" || strings.EqualFold(alias, t.alias)) && len(t.names[strings.ToLower(name)]) > 0 {
				return true
			}
		}
	}
	return false
}

func correlated(name string) error {
	return unsupported("a query inside of a query that uses its column %q", name)
}

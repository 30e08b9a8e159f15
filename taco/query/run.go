package query

import (
	"context"
	"math/big"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/taco/table"
)

// Tables finds the tables of a FROM clause by name, without regard to case. One that does not exist is
// fault.NotFound, and the error lists those that do.
type Tables func(ctx context.Context, name string) (*table.Table, error)

// Map returns the tables of a map, whose keys are in lower case.
func Map(m map[string]*table.Table) Tables {
	return func(_ context.Context, name string) (*table.Table, error) {
		if t := m[strings.ToLower(name)]; t != nil {
			return t, nil
		}
		var names []string
		for n := range m {
			names = append(names, n)
		}
		slices.Sort(names)
		return nil, NoTable(name, names)
	}
}

// NoTable returns the error for a table that does not exist.
func NoTable(name string, names []string) error {
	return fault.New(fault.NotFound, "query", fault.NoOffset, "no table %q; there are %s", name, strings.Join(names, ", "))
}

// Run runs one SELECT. Columns of the result are computed when they are first used, so that the
// tables must stay open as long as it is. Rows without ORDER BY stand in the order of the tables:
// of a join in that of the left one, of GROUP BY and DISTINCT in that of their first rows.
func Run(ctx context.Context, sql string, tables Tables) (*table.Table, error) {
	s, err := parse(sql)
	if err != nil {
		return nil, err
	}
	r := &run{s: s, b: newBinder()}
	if err := r.from(ctx, tables); err != nil {
		return nil, err
	}
	if err := r.bind(); err != nil {
		return nil, err
	}
	return r.result(ctx)
}

// Where returns the numbers of the rows of a table for which a condition (what stands behind WHERE)
// holds, in order.
func Where(ctx context.Context, t *table.Table, condition string) ([]int, error) {
	e, err := parseCondition(condition)
	if err != nil {
		return nil, err
	}
	b := newBinder()
	b.add("data", t)
	b.where = "a condition"
	n, err := b.condition(e)
	if err == nil {
		n, err = b.asScanned(n)
	}
	if err != nil {
		return nil, err
	}
	t, numbers, err := prune(ctx, t, 0, n)
	if err != nil {
		return nil, err
	}
	ev := newEvaluator(ctx, []*table.Table{t})
	got, err := ev.where(n, &rows{n: t.Len(), tables: [][]int32{nil}}, -1)
	if err != nil {
		return nil, err
	}
	out := ints(got.tables[0])
	if numbers != nil {
		for i, r := range out {
			out[i] = numbers[r]
		}
	}
	return out, nil
}

// Sort returns the numbers of a table's rows in the order of a column, NULLs last, equal ones in the
// order in which they stand.
func Sort(ctx context.Context, t *table.Table, column string, desc bool) ([]int, error) {
	v, err := t.Column(ctx, column)
	if err != nil {
		return nil, err
	}
	k := sortKey{v: v, desc: desc}
	if err := k.check(); err != nil {
		return nil, err
	}
	return ints(permutation([]sortKey{k}, t.Len(), -1)), nil
}

func ints(s []int32) []int {
	out := make([]int, len(s))
	for i, x := range s {
		out[i] = int(x)
	}
	return out
}

func newBinder() *binder {
	return &binder{aliases: map[string]*expr{}, busy: map[string]bool{}, meant: map[aliasUse]*node{}, nodes: map[string]*node{}}
}

func (b *binder) add(alias string, t *table.Table) {
	names := map[string][]int{}
	for i, c := range t.Columns() {
		n := strings.ToLower(c.Name)
		names[n] = append(names[n], i)
	}
	b.tables = append(b.tables, bound{alias: alias, t: t, names: names})
}

// run is a SELECT on its way.
type run struct {
	s      *selection
	b      *binder
	tables []*table.Table

	items   []*node
	names   []string
	on      []*node // of each table of FROM, nil without
	where   *node
	grouped bool
	keys    []*node // of GROUP BY
	having  *node
	order   []*node
	limit   int // -1: none
	offset  int
}

func (r *run) from(ctx context.Context, tables Tables) error {
	for _, f := range r.s.from {
		if slices.ContainsFunc(r.b.tables, func(t bound) bool { return strings.EqualFold(t.alias, f.alias) }) {
			return binderError("two tables of FROM are named %q", f.alias)
		}
		t, err := tables(ctx, f.table)
		if err != nil {
			return err
		}
		r.tables = append(r.tables, t)
		r.b.add(f.alias, t)
		var on *node
		if f.on != nil { // names of the tables up to this one
			r.b.where = "a JOIN condition"
			if on, err = r.b.condition(f.on); err != nil {
				return err
			}
		}
		r.on = append(r.on, on)
	}
	return nil
}

// bind finds what all expressions mean.
func (r *run) bind() (err error) {
	b, s := r.b, r.s
	for _, it := range s.items {
		if name := strings.ToLower(it.alias); name != "" && b.aliases[name] == nil {
			b.aliases[name] = it.e
		}
	}
	if s.where != nil {
		b.where = "a WHERE clause"
		if r.where, err = b.condition(s.where); err != nil {
			return err
		}
		if r.where, err = b.asScanned(r.where); err != nil {
			return err
		}
	}
	b.allow = true
	if err = r.bindItems(); err != nil {
		return err
	}
	if err = r.bindGroups(); err != nil {
		return err
	}
	if s.having != nil {
		if r.having, err = b.condition(s.having); err != nil {
			return err
		}
	}
	if err = r.bindOrder(); err != nil {
		return err
	}
	if r.limit, err = count(s.limit, -1); err != nil {
		return err
	}
	if r.offset, err = count(s.offset, 0); err != nil {
		return err
	}
	r.grouped = s.groupAll || len(r.keys) > 0 || r.having != nil || len(b.aggs) > 0
	if r.grouped {
		return r.behindGroups()
	}
	return nil
}

func (r *run) bindItems() error {
	for _, it := range r.s.items {
		if it.e.op == opStar {
			if err := r.star(it.e); err != nil {
				return err
			}
			continue
		}
		n, err := r.b.bind(it.e)
		if err != nil {
			return err
		}
		if n.lit != nil && n.typ.Kind == table.Decimal {
			return unsupported("a decimal as a column")
		}
		name := it.alias
		switch {
		case name != "":
		case n.op == opColumn && it.e.op == opColumn:
			name = n.name
		default:
			name = title(it.e)
		}
		r.items, r.names = append(r.items, n), append(r.names, name)
	}
	return nil
}

func (r *run) star(e *expr) error {
	found := false
	for i, t := range r.b.tables {
		if e.table != "" && !strings.EqualFold(e.table, t.alias) {
			continue
		}
		found = true
		for c, col := range t.t.Columns() {
			n, err := r.b.intern(&node{op: opColumn, name: col.Name, tab: i, col: c, typ: col.Type})
			if err != nil {
				return err
			}
			r.items, r.names = append(r.items, n), append(r.names, col.Name)
		}
	}
	switch {
	case found:
		return nil
	case len(r.tables) == 0:
		return binderError("* without FROM")
	}
	return fault.New(fault.NotFound, "query", fault.NoOffset, "no table %q in FROM; there are %s", e.table, r.b.tableNames())
}

// position returns the item that a whole number stands for, in GROUP BY and ORDER BY; -1 if e is none.
func (r *run) position(e *expr, clause string) (int, error) {
	if e.op != opNumber || strings.ContainsAny(e.name, ".eE") {
		return -1, nil
	}
	x, ok := new(big.Int).SetString(e.name, 10)
	if !ok || !x.IsInt64() || x.Int64() < 1 || x.Int64() > int64(len(r.items)) {
		return 0, binderError("%s term %s is out of range: it should be between 1 and %d", clause, e.name, len(r.items))
	}
	return int(x.Int64()) - 1, nil
}

func (r *run) bindGroups() error {
	if r.s.groupAll {
		for _, n := range r.items {
			if !n.aggregates && n.op != opLiteral {
				r.keys = append(r.keys, n)
			}
		}
		return nil
	}
	r.b.allow, r.b.where = false, "a GROUP BY clause"
	defer func() { r.b.allow = true }()
	for _, e := range r.s.group {
		i, err := r.position(e, "GROUP BY")
		if err != nil {
			return err
		}
		var n *node
		if i >= 0 {
			n = r.items[i]
		} else if n, err = r.b.bind(e); err != nil {
			return err
		}
		if n.aggregates {
			return binderError("a GROUP BY clause cannot contain aggregates")
		}
		if repOf(n.typ) == repOther && n.op != opColumn {
			return unsupported("GROUP BY of type %s", typeName(n))
		}
		r.keys = append(r.keys, n)
	}
	return nil
}

func (r *run) bindOrder() error {
	for _, o := range r.s.order {
		i, err := r.position(o.e, "ORDER BY")
		if err != nil {
			return err
		}
		if o.e.op == opColumn && o.e.table == "" { // an alias comes before a column
			if k := slices.IndexFunc(r.s.items, func(it item) bool { return it.alias != "" && strings.EqualFold(it.alias, o.e.name) }); k >= 0 {
				n, err := r.b.bind(r.s.items[k].e)
				if err != nil {
					return err
				}
				if err := r.addOrder(n); err != nil {
					return err
				}
				continue
			}
		}
		var n *node
		if i >= 0 {
			n = r.items[i]
		} else if n, err = r.b.bind(o.e); err != nil {
			return err
		} else if n.op == opLiteral {
			return binderError("ORDER BY a literal that is no position has no effect")
		}
		if err := r.addOrder(n); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) addOrder(n *node) error {
	if repOf(n.typ) == repOther {
		return unsupported("ORDER BY of type %s", typeName(n))
	}
	if r.s.distinct && !slices.Contains(r.items, n) {
		return unsupported("DISTINCT and ORDER BY of what is not selected")
	}
	r.order = append(r.order, n)
	return nil
}

// count reads the number of LIMIT or OFFSET.
func count(e *expr, none int) (int, error) {
	switch {
	case e == nil || e.op == opNull:
		return none, nil
	case e.op != opNumber || strings.ContainsAny(e.name, ".eE"):
		return 0, unsupported("LIMIT or OFFSET of what is no whole number")
	}
	x, ok := new(big.Int).SetString(e.name, 10)
	switch {
	case !ok || x.Sign() < 0:
		return 0, binderError("LIMIT and OFFSET cannot be negative")
	case !x.IsInt64() || x.Int64() > 1<<40:
		return 1 << 40, nil
	}
	return int(x.Int64()), nil
}

// behindGroups rewrites the expressions behind GROUP BY to columns of the table of groups: the keys,
// then the aggregates.
func (r *run) behindGroups() (err error) {
	at := map[*node]int{}
	for i, k := range r.keys {
		if _, ok := at[k]; !ok {
			at[k] = i
		}
	}
	all := func(nodes []*node) []*node {
		for i := range nodes {
			if err == nil {
				nodes[i], err = r.behind(nodes[i], at)
			}
		}
		return nodes
	}
	r.items = all(slices.Clone(r.items))
	r.order = all(r.order)
	if r.having != nil {
		r.having = all([]*node{r.having})[0]
	}
	return err
}

func (r *run) behind(n *node, at map[*node]int) (*node, error) {
	if n.rewritten != nil {
		return n.rewritten, nil
	}
	out := &node{op: opColumn, name: n.name, tab: groupTable, typ: n.typ}
	if i, ok := at[n]; ok {
		out.col = i
	} else {
		switch n.op {
		case opAggregate:
			out.col = len(r.keys) + n.agg
		case opColumn:
			return nil, binderError("column %q must appear in the GROUP BY clause or be used in an aggregate function", n.name)
		default:
			c := *n
			out = &c
			out.args = make([]*node, len(n.args))
			for i, a := range n.args {
				var err error
				if out.args[i], err = r.behind(a, at); err != nil {
					return nil, err
				}
			}
		}
	}
	out, err := r.b.intern(out)
	if err != nil {
		return nil, err
	}
	n.rewritten = out
	return out, nil
}

// groupTable is the number of the table of groups among the columns' tables, until it is the only one.
const groupTable = 1 << 20

// result runs what was bound.
func (r *run) result(ctx context.Context) (*table.Table, error) {
	if r.where != nil && len(r.tables) == 1 {
		t, _, err := prune(ctx, r.tables[0], 0, r.where)
		if err != nil {
			return nil, err
		}
		r.tables[0] = t
	}
	ev := newEvaluator(ctx, r.tables)
	rel, err := r.relation(ev)
	if err != nil {
		return nil, err
	}
	if r.grouped {
		if ev, rel, err = r.group(ev, rel); err != nil {
			return nil, err
		}
		if r.having != nil {
			if rel, err = ev.where(r.having, rel, -1); err != nil {
				return nil, err
			}
		}
	}
	if r.s.distinct {
		if rel, err = r.distinct(ev, rel); err != nil {
			return nil, err
		}
	}
	if rel, err = r.sorted(ev, rel); err != nil {
		return nil, err
	}
	cols := make([]table.Column, len(r.items))
	for i, n := range r.items {
		cols[i] = table.Column{Name: r.names[i], Type: n.typ}
		if n.op == opLiteral && n.lit.null {
			cols[i].Type = table.Type{}
		}
	}
	tables := ev.tables
	return table.New(rel.n, cols, func(ctx context.Context, i int) (*table.Vector, error) {
		return newEvaluator(ctx, tables).column(r.items[i], rel)
	}), nil
}

// relation is FROM and WHERE.
func (r *run) relation(ev *evaluator) (*rows, error) {
	rel := &rows{n: 1}
	if len(r.tables) > 0 {
		rel = &rows{n: r.tables[0].Len(), tables: [][]int32{nil}}
	}
	where := r.where
	for i := 1; i < len(r.tables); i++ {
		on := r.on[i]
		if on == nil && where != nil && i == len(r.tables)-1 && !r.s.from[i].left { // FROM a, b WHERE a.x = b.x
			on, where = where, nil
		}
		var err error
		if rel, err = ev.join(rel, i, on, r.s.from[i].left); err != nil {
			return nil, err
		}
	}
	if where == nil {
		return rel, nil
	}
	most := -1
	if r.limit >= 0 && len(r.order) == 0 && !r.grouped && !r.s.distinct {
		most = r.limit + r.offset
	}
	return ev.where(where, rel, most)
}

// group computes the table of groups.
func (r *run) group(ev *evaluator, rel *rows) (*evaluator, *rows, error) {
	keys, err := ev.columns(r.keys, rel)
	if err != nil {
		return nil, nil, err
	}
	g := groupRows(rel.n, keys)
	first := ints(g.first)
	var names []string
	var cols []*table.Vector
	for i, k := range keys {
		v, err := k.Take(first)
		if err != nil {
			return nil, nil, err
		}
		names, cols = append(names, r.keys[i].name), append(cols, v)
	}
	if len(r.keys) == 0 && rel.n == 0 {
		g.of = nil // one group without rows
	}
	for i := range r.b.aggs {
		a := &r.b.aggs[i]
		var arg *table.Vector
		if a.arg != nil {
			if arg, err = ev.column(a.arg, rel); err != nil {
				return nil, nil, err
			}
		}
		v, err := a.compute(g, arg)
		if err != nil {
			return nil, nil, err
		}
		names, cols = append(names, a.name), append(cols, v)
	}
	if len(cols) == 0 { // HAVING alone
		cols, names = append(cols, table.NewInts(int64Type, make([]int64, len(g.first)), nil)), append(names, "")
	}
	for _, n := range r.b.nodes {
		if n.op == opColumn && n.tab == groupTable {
			n.tab = 0
		}
	}
	t := table.FromVectors(names, cols)
	return newEvaluator(ev.ctx, []*table.Table{t}), &rows{n: t.Len(), tables: [][]int32{nil}}, nil
}

// distinct keeps the first of equal rows.
func (r *run) distinct(ev *evaluator, rel *rows) (*rows, error) {
	cols, err := ev.columns(r.items, rel)
	if err != nil {
		return nil, err
	}
	return rel.take(groupRows(rel.n, cols).first), nil
}

// take returns the rows at the given positions.
func (r *rows) take(at []int32) *rows {
	out := &rows{n: len(at), tables: make([][]int32, len(r.tables))}
	for t, from := range r.tables {
		to := make([]int32, len(at))
		for i, x := range at {
			if to[i] = x; from != nil {
				to[i] = from[x]
			}
		}
		out.tables[t] = to
	}
	return out
}

// sorted is ORDER BY, LIMIT and OFFSET.
func (r *run) sorted(ev *evaluator, rel *rows) (*rows, error) {
	end := rel.n
	if r.limit >= 0 {
		end = min(end, r.offset+r.limit)
	}
	start := min(r.offset, end)
	if len(r.order) == 0 {
		if start == 0 && end == rel.n {
			return rel, nil
		}
		at := make([]int32, end-start)
		for i := range at {
			at[i] = int32(start + i)
		}
		return rel.take(at), nil
	}
	keys := make([]sortKey, len(r.order))
	for i, n := range r.order {
		v, err := ev.column(n, rel)
		if err != nil {
			return nil, err
		}
		keys[i] = sortKey{v: v, desc: r.s.order[i].desc, nullsFirst: r.s.order[i].first}
	}
	return rel.take(permutation(keys, rel.n, end)[start:end]), nil
}

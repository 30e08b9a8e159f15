package query

import (
	"context"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
)

// Tables finds the tables of a FROM clause by name, without regard to case. One that does not exist is
// fault.NotFound, and the error lists those that do.
type Tables func(ctx context.Context, name string) (*tables.Table, error)

// Map returns the tables of a map, whose keys are in lower case.
func Map(m map[string]*tables.Table) Tables {
	return func(_ context.Context, name string) (*tables.Table, error) {
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
func Run(ctx context.Context, sql string, tables Tables) (*tables.Table, error) {
	s, err := parse(sql)
	if err != nil {
		return nil, err
	}
	return newSession(ctx, tables).run(s, nil)
}

// Where returns the numbers of the rows of a table for which a condition (what stands behind WHERE)
// holds, in order.
func Where(ctx context.Context, t *tables.Table, condition string) ([]int, error) {
	e, err := parseCondition(condition)
	if err != nil {
		return nil, err
	}
	b := newBinder(newSession(ctx, Map(map[string]*tables.Table{"data": t})))
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
	ev := newEvaluator(ctx, []*tables.Table{t})
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
func Sort(ctx context.Context, t *tables.Table, column string, desc bool) ([]int, error) {
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

func newBinder(s *session) *binder {
	return &binder{session: s, ctx: s.ctx, aliases: map[string]*expr{}, busy: map[string]bool{}, meant: map[aliasUse]*node{}, nodes: map[string]*node{}}
}

func (b *binder) add(alias string, t *tables.Table) {
	names := map[string][]int{}
	for i, c := range t.Columns() {
		n := strings.ToLower(c.Name)
		names[n] = append(names[n], i)
	}
	b.tables = append(b.tables, bound{alias: alias, t: t, names: names})
}

// run is a SELECT on its way.
type run struct {
	s       *selection
	b       *binder
	session *session
	tables  []*tables.Table

	items   []*node
	names   []string
	on      []*node // of each table of FROM, nil without
	where   *node
	grouped bool
	keys    []*node // of GROUP BY
	having  *node
	on1     []*node // of DISTINCT ON
	order   []*node
	by      []orderItem // of order
	limit   int         // -1: none
	offset  int
}

func (r *run) from() error {
	for i := range r.s.from {
		f := &r.s.from[i]
		if slices.ContainsFunc(r.b.tables, func(t bound) bool { return strings.EqualFold(t.alias, f.alias) }) {
			return binderError("two tables of FROM are named %q", f.alias)
		}
		t, err := r.session.source(f)
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

// star adds the columns that a star stands for.
func (r *run) star(e *expr) error {
	pick, err := newStarPick(e.star)
	if err != nil {
		return err
	}
	found := false
	for i, t := range r.b.tables {
		if e.table != "" && !strings.EqualFold(e.table, t.alias) {
			continue
		}
		found = true
		for c, col := range t.t.Columns() {
			if !pick.keeps(col.Name) {
				continue
			}
			n, err := r.b.intern(&node{op: opColumn, name: col.Name, tab: i, col: c, typ: col.Type})
			if with := pick.with(col.Name); err == nil && with != nil {
				n, err = r.b.bind(with)
			}
			if err != nil {
				return err
			}
			r.items, r.names = append(r.items, n), append(r.names, col.Name)
		}
	}
	switch {
	case found:
		return pick.unused(r.b)
	case len(r.tables) == 0:
		return binderError("* without FROM")
	}
	return fault.New(fault.NotFound, "query", fault.NoOffset, "no table %q in FROM; there are %s", e.table, r.b.tableNames())
}

// starPick says which columns a star keeps, and by what it replaces them.
type starPick struct {
	excluded map[string]bool // by lower-case name: whether there was one
	replaced map[string]*expr
	pattern  *regexp.Regexp
}

func newStarPick(s *starred) (*starPick, error) {
	p := &starPick{excluded: map[string]bool{}, replaced: map[string]*expr{}}
	if s == nil {
		return p, nil
	}
	for _, name := range s.exclude {
		p.excluded[strings.ToLower(name)] = false
	}
	for _, it := range s.replace {
		p.replaced[strings.ToLower(it.alias)] = it.e
	}
	var err error
	if s.columns != "" {
		if len(s.columns) > maxPattern {
			return nil, unsupported("a regular expression of %d bytes", len(s.columns))
		}
		if p.pattern, err = regexp.Compile(s.columns); err != nil {
			return nil, binderError("%v", err)
		}
	}
	return p, nil
}

func (p *starPick) keeps(name string) bool {
	low := strings.ToLower(name)
	if _, ok := p.excluded[low]; ok {
		p.excluded[low] = true
		return false
	}
	return p.pattern == nil || p.pattern.MatchString(name)
}

// with returns what a column is replaced by, nil: it stays.
func (p *starPick) with(name string) *expr {
	low := strings.ToLower(name)
	e, ok := p.replaced[low]
	if ok {
		p.excluded[low] = true
	}
	return e
}

// unused returns the error for a name of EXCLUDE or REPLACE that no column has.
func (p *starPick) unused(b *binder) error {
	for name, was := range p.excluded {
		if !was {
			return b.noColumn(name)
		}
	}
	for name := range p.replaced {
		if !p.excluded[name] {
			return b.noColumn(name)
		}
	}
	return nil
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
	for _, e := range r.s.on {
		n, err := r.ordered(e, "DISTINCT ON")
		if err != nil {
			return err
		}
		r.on1 = append(r.on1, n)
	}
	for _, o := range r.s.order {
		if o.e == nil { // ALL
			for _, n := range r.items {
				if err := r.addOrder(n, o); err != nil {
					return err
				}
			}
			continue
		}
		n, err := r.ordered(o.e, "ORDER BY")
		if err != nil {
			return err
		}
		if err := r.addOrder(n, o); err != nil {
			return err
		}
	}
	return nil
}

// ordered binds a term of ORDER BY: a position, an alias, which comes before a column, or an expression.
func (r *run) ordered(e *expr, clause string) (*node, error) {
	i, err := r.position(e, clause)
	if err != nil {
		return nil, err
	}
	if i >= 0 {
		return r.items[i], nil
	}
	if e.op == opColumn && e.table == "" {
		if k := slices.IndexFunc(r.s.items, func(it item) bool { return it.alias != "" && strings.EqualFold(it.alias, e.name) }); k >= 0 {
			return r.b.bind(r.s.items[k].e)
		}
	}
	n, err := r.b.bind(e)
	if err == nil && n.op == opLiteral {
		return nil, binderError("%s a literal that is no position has no effect", clause)
	}
	return n, err
}

func (r *run) addOrder(n *node, o orderItem) error {
	if repOf(n.typ) == repOther {
		return unsupported("ORDER BY of type %s", typeName(n))
	}
	if r.s.distinct && r.s.on == nil && !slices.Contains(r.items, n) {
		return unsupported("DISTINCT and ORDER BY of what is not selected")
	}
	r.order, r.by = append(r.order, n), append(r.by, o)
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
	r.on1 = all(r.on1)
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
func (r *run) result(ctx context.Context) (*tables.Table, error) {
	if r.where != nil && len(r.tables) == 1 && r.s.sample == nil { // a sample is of all rows
		t, _, err := prune(ctx, r.tables[0], 0, r.where)
		if err != nil {
			return nil, err
		}
		r.tables[0] = t
	}
	ev := newEvaluator(ctx, r.tables)
	ev.session = r.session
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
	if r.s.distinct && r.s.on == nil {
		if rel, err = firstOfEach(ev, r.items, rel); err != nil {
			return nil, err
		}
	}
	if r.s.on != nil { // the first in the order that is asked for
		if rel, err = r.sorted(ev, rel, 0, rel.n); err == nil {
			rel, err = firstOfEach(ev, r.on1, rel)
		}
		if err != nil {
			return nil, err
		}
		r.order = nil
	}
	end := rel.n
	if r.limit >= 0 {
		end = min(end, r.offset+r.limit)
	}
	if rel, err = r.sorted(ev, rel, min(r.offset, end), end); err != nil {
		return nil, err
	}
	cols := make([]tables.Column, len(r.items))
	for i, n := range r.items {
		cols[i] = tables.Column{Name: r.names[i], Type: n.typ}
		if n.op == opLiteral && n.lit.null {
			cols[i].Type = tables.Type{}
		}
	}
	all := ev.tables
	return tables.New(rel.n, cols, func(ctx context.Context, i int) (*tables.Vector, error) {
		return newEvaluator(ctx, all).column(r.items[i], rel)
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
		if on == nil && where != nil && r.s.sample == nil && i == len(r.tables)-1 && !r.s.from[i].left { // FROM a, b WHERE a.x = b.x
			on, where = where, nil
		}
		var err error
		if rel, err = ev.join(rel, i, on, r.s.from[i].left); err != nil {
			return nil, err
		}
	}
	if r.s.sample != nil {
		rel = rel.take(r.s.sample.of(rel.n))
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
	var cols []*tables.Vector
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
		v, err := a.compute(ev, g, rel)
		if err != nil {
			return nil, nil, err
		}
		names, cols = append(names, a.f.names[0]), append(cols, v)
	}
	if len(cols) == 0 { // HAVING alone
		cols, names = append(cols, tables.NewInts(int64Type, make([]int64, len(g.first)), nil)), append(names, "")
	}
	for _, n := range r.b.nodes {
		if n.op == opColumn && n.tab == groupTable {
			n.tab = 0
		}
	}
	t := tables.FromVectors(names, cols)
	return newEvaluator(ev.ctx, []*tables.Table{t}), &rows{n: t.Len(), tables: [][]int32{nil}}, nil
}

// firstOfEach keeps the first of rows in which some expressions are equal.
func firstOfEach(ev *evaluator, by []*node, rel *rows) (*rows, error) {
	cols, err := ev.columns(by, rel)
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

// sorted returns the rows from start to end in the order of ORDER BY.
func (r *run) sorted(ev *evaluator, rel *rows, start, end int) (*rows, error) {
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
	keys, err := ev.sortKeys(r.order, r.by, rel)
	if err != nil {
		return nil, err
	}
	return rel.take(permutation(keys, rel.n, end)[start:end]), nil
}

// sortKeys computes the terms of ORDER BY.
func (ev *evaluator) sortKeys(nodes []*node, by []orderItem, rel *rows) ([]sortKey, error) {
	keys := make([]sortKey, len(nodes))
	for i, n := range nodes {
		v, err := ev.column(n, rel)
		if err != nil {
			return nil, err
		}
		keys[i] = sortKey{v: v, desc: by[i].desc, nullsFirst: by[i].first}
	}
	return keys, nil
}

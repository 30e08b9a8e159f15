package query

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/format/tables/query/internal/bind"
	"github.com/chaski-eo/chaski/format/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/format/tables/query/internal/funcs"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/format/tables/query/internal/vec"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/num"
)

// Tables finds a table of a FROM clause by name, without regard to case. If it does not exist the error is
// fault.NotFound, and lists the tables.
type Tables func(ctx context.Context, name string) (*tables.Table, error)

// unlimitedTime is for callers that bound the time by their context.
var unlimitedTime = tables.QueryLimits{Time: math.MaxInt64}

// Run runs one SELECT. It computes a column of the result when it is first used, so the tables must stay open as long
// as the result. Without ORDER BY, rows keep the order of the tables: joins keep the order of the left table, GROUP BY
// and DISTINCT the order of the first row of each group.
func Run(ctx context.Context, text string, tables Tables) (*tables.Table, error) {
	return start(ctx, text, tables, unlimitedTime)
}

// Where returns the numbers of the rows of a table for which a condition holds, in order. The condition is the text
// after WHERE.
func Where(ctx context.Context, t *tables.Table, condition string) ([]int, error) {
	expr, err := ast.ParseCondition(condition)
	if err != nil {
		return nil, err
	}
	binder := bind.New(ctx, functionLibrary)
	binder.AddTable("data", t)
	binder.Clause = "a condition"
	node := binder.AsScanned(binder.Condition(expr))
	if binder.Err != nil {
		return nil, binder.Err
	}
	t, numbers, err := eval.Prune(ctx, t, node)
	if err != nil {
		return nil, err
	}
	ev := eval.New(ctx, []*tables.Table{t})
	got, err := ev.Where(node, &vec.Rows{N: t.Len(), Tables: [][]int32{nil}}, -1)
	if err != nil {
		return nil, err
	}
	if numbers != nil {
		return num.Pick(numbers, got.Tables[0]), nil
	}
	return num.As[int](got.Tables[0]), nil
}

// Sort returns the numbers of a table's rows in the order of a column. NULLs come last, equal rows keep their order.
func Sort(ctx context.Context, t *tables.Table, column string, desc bool) ([]int, error) {
	values, err := t.Column(ctx, column)
	if err != nil {
		return nil, err
	}
	if !vec.Ordered(values.Type()) {
		return nil, sql.Unsupported("ORDER BY of type %s", values.Type())
	}
	keys := []vec.SortKey{{Values: values, Desc: desc}}
	return num.As[int](vec.SortRows(keys, t.Len(), -1)), nil
}

// run is the execution of one SELECT.
type run struct {
	s          *ast.Select
	b          *bind.Binder
	memory     *held
	rowNumbers int // that its joins hold
	tables     []*tables.Table

	items   []*eval.Node
	names   []string
	on      []*eval.Node // the join condition of each table of FROM, nil if it has none
	where   *eval.Node
	grouped bool
	keys    []*eval.Node // of GROUP BY
	having  *eval.Node
	order   []*eval.Node
	by      []ast.OrderTerm // of order
	limit   int             // -1: none
	offset  int
}

// from finds the tables of FROM and binds their join conditions.
func (r *run) from(ctx context.Context, find Tables) error {
	for i := range r.s.From {
		from := &r.s.From[i]
		if slices.ContainsFunc(r.b.Tables, func(t bind.Source) bool { return strings.EqualFold(t.Alias, from.Alias) }) {
			return sql.Bind("two tables of FROM are named %q", from.Alias)
		}
		table, err := find(ctx, from.Table)
		if err != nil {
			return err
		}
		r.tables = append(r.tables, table)
		r.b.AddTable(from.Alias, table)
		var on *eval.Node
		// The condition is bound here, because it sees only the tables up to this one.
		if from.On != nil {
			r.b.Clause = "a JOIN condition"
			on = r.b.Condition(from.On)
		}
		r.on = append(r.on, on)
	}
	return r.b.Err
}

// bind binds all expressions.
func (r *run) bind() error {
	binder, sel := r.b, r.s
	for _, item := range sel.Items {
		if name := strings.ToLower(item.Alias); name != "" && binder.Aliases[name] == nil {
			binder.Aliases[name] = item.Expr
		}
	}
	// WHERE is bound before the select list, because it may use aliases but no aggregates.
	if sel.Where != nil {
		binder.Clause = "a WHERE clause"
		r.where = binder.AsScanned(binder.Condition(sel.Where))
	}
	binder.AllowAggregates = true
	r.bindItems()
	r.bindGroups()
	if sel.Having != nil {
		r.having = binder.Condition(sel.Having)
	}
	for _, term := range sel.OrderBy {
		r.addOrder(r.ordered(term.Expr), term)
	}
	r.limit, r.offset = r.count(sel.Limit, -1), r.count(sel.Offset, 0)
	r.grouped = len(r.keys) > 0 || r.having != nil || len(binder.Aggregates) > 0
	if r.grouped && binder.Err == nil {
		r.rewriteOverGroups()
	}
	return binder.Err
}

func (r *run) bindItems() {
	for _, item := range r.s.Items {
		if item.Expr.Op == ast.OpStar {
			r.star(item.Expr)
			continue
		}
		node, name := r.b.Bind(item.Expr), item.Alias
		switch {
		case name != "":
		case node.Op == ast.OpColumn && item.Expr.Op == ast.OpColumn:
			name = node.Name
		default:
			name = item.Text
		}
		r.items, r.names = append(r.items, node), append(r.names, name)
	}
}

// star adds the columns that a star selects.
func (r *run) star(e *ast.Expr) {
	excluded := map[string]bool{} // by lower-case name: whether a column has it
	for _, name := range e.Exclude {
		excluded[strings.ToLower(name)] = false
	}
	found := false
	for i, source := range r.b.Tables {
		if e.Table != "" && !strings.EqualFold(e.Table, source.Alias) {
			continue
		}
		found = true
		for number, col := range source.Table.Columns() {
			if _, leave := excluded[strings.ToLower(col.Name)]; leave {
				excluded[strings.ToLower(col.Name)] = true
				continue
			}
			node := r.b.Intern(&eval.Node{Op: ast.OpColumn, Name: col.Name, Table: i, Column: number, Type: col.Type})
			r.items, r.names = append(r.items, node), append(r.names, col.Name)
		}
	}
	switch {
	case found:
		for _, name := range e.Exclude {
			if !excluded[strings.ToLower(name)] {
				r.b.Fail(r.b.NoColumn(name))
			}
		}
	case len(r.tables) == 0:
		r.b.Fail(sql.Bind("* without FROM"))
	default:
		r.b.Fail(fault.New(fault.NotFound, "query", "no table %q in FROM; there are %s", e.Table, r.b.TableNames()))
	}
}

// selected returns the select item whose number an expression is, in GROUP BY and ORDER BY; nil if the expression is
// not a whole number.
func (r *run) selected(e *ast.Expr, clause string) *eval.Node {
	if e.Op != ast.OpNumber || strings.ContainsAny(e.Name, ".eE") {
		return nil
	}
	number, err := strconv.Atoi(e.Name)
	if err != nil || number < 1 || number > len(r.items) {
		return r.b.Fail(sql.Bind("%s term %s is out of range: it should be between 1 and %d", clause, e.Name,
			len(r.items)))
	}
	return r.items[number-1]
}

func (r *run) bindGroups() {
	r.b.AllowAggregates, r.b.Clause = false, "a GROUP BY clause"
	defer func() { r.b.AllowAggregates = true }()
	for _, expr := range r.s.GroupBy {
		key := r.selected(expr, "GROUP BY")
		if key == nil {
			key = r.b.Bind(expr)
		}
		if key.HasAggregate {
			r.b.Fail(sql.Bind("a GROUP BY clause cannot contain aggregates"))
		}
		if sql.RepOf(key.Type) == sql.RepOther && key.Op != ast.OpColumn {
			r.b.Fail(sql.Unsupported("GROUP BY of type %s", eval.TypeName(key)))
		}
		r.keys = append(r.keys, key)
	}
}

// ordered binds a term of ORDER BY: a position, an alias (which wins over a column), or an expression.
func (r *run) ordered(e *ast.Expr) *eval.Node {
	if item := r.selected(e, "ORDER BY"); item != nil {
		return item
	}
	if e.Op == ast.OpColumn && e.Table == "" {
		if k := slices.IndexFunc(r.s.Items, func(it ast.SelectItem) bool {
			return it.Alias != "" && strings.EqualFold(it.Alias, e.Name)
		}); k >= 0 {
			return r.b.Bind(r.s.Items[k].Expr)
		}
	}
	node := r.b.Bind(e)
	if node.Op == eval.OpLiteral {
		r.b.Fail(sql.Bind("ORDER BY of a literal that is not a position has no effect"))
	}
	return node
}

func (r *run) addOrder(n *eval.Node, term ast.OrderTerm) {
	if !vec.Ordered(n.Type) {
		r.b.Fail(sql.Unsupported("ORDER BY of type %s", eval.TypeName(n)))
	}
	if r.s.Distinct && !slices.Contains(r.items, n) {
		r.b.Fail(sql.Unsupported("DISTINCT with ORDER BY of an expression that is not selected"))
	}
	r.order, r.by = append(r.order, n), append(r.by, term)
}

// maxCount is more than any table has rows, and the sum of LIMIT and OFFSET does not overflow.
const maxCount = 1 << 40

// count evaluates LIMIT or OFFSET; none is the value if it is missing.
func (r *run) count(e *ast.Expr, none int) int {
	switch {
	case e == nil || e.Op == ast.OpNull:
		return none
	case e.Op != ast.OpNumber || strings.ContainsAny(e.Name, ".eE"):
		r.b.Fail(sql.Unsupported("LIMIT or OFFSET that is not a whole number"))
	}
	number, _ := strconv.Atoi(e.Name) // the largest number, if it is out of range
	if number < 0 {
		r.b.Fail(sql.Bind("LIMIT and OFFSET cannot be negative"))
	}
	return min(number, maxCount)
}

// rewriteOverGroups rewrites the expressions that are computed after GROUP BY to read the table of groups, whose
// columns are the keys and then the aggregates.
func (r *run) rewriteOverGroups() {
	columns := map[*eval.Node]int{}
	// From last to first, so a key that stands twice leads to its first column.
	for i, key := range slices.Backward(r.keys) {
		columns[key] = i
	}
	over := func(nodes []*eval.Node) []*eval.Node {
		out := make([]*eval.Node, len(nodes))
		for i := range nodes {
			out[i] = r.overGroups(nodes[i], columns)
		}
		return out
	}
	r.items, r.order = over(r.items), over(r.order)
	if r.having != nil {
		r.having = r.overGroups(r.having, columns)
	}
}

// overGroups rewrites one expression. columns gives the column of each key.
func (r *run) overGroups(n *eval.Node, columns map[*eval.Node]int) *eval.Node {
	// The result is kept in the node, because expressions share nodes: otherwise a chain of aliases would take
	// exponential time.
	if n.Rewritten != nil {
		return n.Rewritten
	}
	out := &eval.Node{Op: ast.OpColumn, Name: n.Name, Table: groupTable, Type: n.Type}
	if i, ok := columns[n]; ok {
		out.Column = i
	} else {
		switch n.Op {
		case eval.OpAggregate:
			out.Column = len(r.keys) + n.Aggregate
		case ast.OpColumn:
			return r.b.Fail(sql.Bind("column %q must appear in the GROUP BY clause or be used in an "+
				"aggregate function", n.Name))
		default:
			rewritten := *n
			out = &rewritten
			out.Args = make([]*eval.Node, len(n.Args))
			for i, arg := range n.Args {
				out.Args[i] = r.overGroups(arg, columns)
			}
		}
	}
	n.Rewritten = r.b.Intern(out)
	return n.Rewritten
}

// groupTable is the table number of group columns while the nodes of the tables of FROM still exist; run.group sets it
// to 0. FROM has at most 16 tables, so no table has this number.
const groupTable = 1 << 20

// result runs the bound query.
func (r *run) result(ctx context.Context) (*tables.Table, error) {
	if r.where != nil && len(r.tables) == 1 {
		table, _, err := eval.Prune(ctx, r.tables[0], r.where)
		if err != nil {
			return nil, err
		}
		r.tables[0] = table
	}
	evaluator := eval.New(ctx, r.tables)
	evaluator.HoldRows = func(n int) error { return r.holdRows(ctx, n) }
	evaluator.Hold = r.memory.hold
	rel, err := r.relation(evaluator)
	if err != nil {
		return nil, err
	}
	if r.grouped {
		if evaluator, rel, err = r.group(evaluator, rel); err != nil {
			return nil, err
		}
		if r.having != nil {
			if rel, err = evaluator.Where(r.having, rel, -1); err != nil {
				return nil, err
			}
		}
	}
	if r.s.Distinct {
		cols, err := evaluator.Columns(r.items, rel)
		if err != nil {
			return nil, err
		}
		rel = rel.Take(vec.GroupRows(rel.N, cols).First)
	}
	end := rel.N
	if r.limit >= 0 {
		end = min(end, r.offset+r.limit)
	}
	if rel, err = r.sorted(evaluator, rel, min(r.offset, end), end); err != nil {
		return nil, err
	}
	cols := make([]tables.Column, len(r.items))
	for i, node := range r.items {
		cols[i] = tables.Column{Name: r.names[i], Type: node.Type}
		switch {
		case node.Op == eval.OpLiteral && node.Literal.Null:
			cols[i].Type = tables.Type{} // DuckDB gives a bare NULL no type
		case node.Op == ast.OpColumn && node.Field == 0: // in the form of its table, which expressions do not see
			cols[i].Type = evaluator.Tables[node.Table].Columns()[node.Column].Type
		}
	}
	kept := evaluator.Tables
	return tables.New(rel.N, cols, func(ctx context.Context, i int) (v *tables.Vector, err error) {
		err = r.memory.limits.Within(ctx, func(ctx context.Context) (err error) {
			ev := eval.New(ctx, kept)
			ev.Hold = r.memory.hold
			v, err = ev.Column(r.items[i], rel)
			return err
		})
		return v, err
	}), nil
}

// rowNumberBytes is charged for each row number of a join: an int32 in the relation, and as many in the two lists that
// grow while the join collects its pairs, with their old memory.
const rowNumberBytes = 16

// holdRows counts and charges n row numbers, and refuses more than eval.MaxRowNumbers.
func (r *run) holdRows(ctx context.Context, n int) error {
	if r.rowNumbers += n; r.rowNumbers > eval.MaxRowNumbers {
		return fault.New(fault.Limit, "query", "joins of more than %d rows", eval.MaxRowNumbers)
	}
	return budget.Grow(ctx, rowNumberBytes*int64(n))
}

// relation computes FROM and WHERE.
func (r *run) relation(ev *eval.Evaluator) (*vec.Rows, error) {
	rel := &vec.Rows{N: 1}
	if len(r.tables) > 0 {
		rel = &vec.Rows{N: r.tables[0].Len(), Tables: [][]int32{nil}}
	}
	where := r.where
	for i := 1; i < len(r.tables); i++ {
		on := r.on[i]
		// FROM a, b WHERE a.x = b.x needs to be a join by hash, because a filter of all pairs would take too long.
		if on == nil && where != nil && i == len(r.tables)-1 {
			on, where = where, nil
		}
		var err error
		if rel, err = ev.Join(rel, i, on); err != nil {
			return nil, err
		}
	}
	if where == nil {
		return rel, nil
	}
	// Without sorting or grouping the search can end at the last row that LIMIT needs; otherwise any row may count.
	limit := -1
	if r.limit >= 0 && len(r.order) == 0 && !r.grouped && !r.s.Distinct {
		limit = r.limit + r.offset
	}
	return ev.Where(where, rel, limit)
}

// group computes the table of groups.
func (r *run) group(ev *eval.Evaluator, rel *vec.Rows) (*eval.Evaluator, *vec.Rows, error) {
	keys, err := ev.Columns(r.keys, rel)
	if err != nil {
		return nil, nil, err
	}
	groups := vec.GroupRows(rel.N, keys)
	first := num.As[int](groups.First)
	var names []string
	var cols []*tables.Vector
	for i, k := range keys {
		values, err := k.Take(first)
		if err != nil {
			return nil, nil, err
		}
		names, cols = append(names, r.keys[i].Name), append(cols, values)
	}
	if len(r.keys) == 0 && rel.N == 0 {
		// SELECT count(*) of an empty table gives one group of no rows, so that the count is 0.
		groups.Of = nil
	}
	for i := range r.b.Aggregates {
		aggregate := &r.b.Aggregates[i]
		values, err := funcs.Compute(aggregate, ev, groups, rel)
		if err != nil {
			return nil, nil, err
		}
		names, cols = append(names, aggregate.Function.Names[0]), append(cols, values)
	}
	// HAVING with neither keys nor aggregates has no column, but the table needs one: columns say how many rows it has.
	if len(cols) == 0 {
		cols, names = append(cols, tables.NewInts(sql.Int64, make([]int64, len(groups.First)), nil)), append(names,
			"")
	}
	for _, node := range r.b.Nodes {
		// The table of groups is the only one from here on, so its number is 0.
		if node.Op == ast.OpColumn && node.Table == groupTable {
			node.Table = 0
		}
	}
	table := tables.FromVectors(names, cols)
	inner := eval.New(ev.Ctx, []*tables.Table{table})
	inner.Hold = ev.Hold
	return inner, &vec.Rows{N: table.Len(), Tables: [][]int32{nil}}, nil
}

// sorted returns the rows from start to end in the order of ORDER BY.
func (r *run) sorted(ev *eval.Evaluator, rel *vec.Rows, start, end int) (*vec.Rows, error) {
	if len(r.order) == 0 {
		if start == 0 && end == rel.N {
			return rel, nil
		}
		return rel.Take(num.Range[int32](start, end)), nil
	}
	columns, err := ev.Columns(r.order, rel)
	if err != nil {
		return nil, err
	}
	keys := make([]vec.SortKey, len(columns))
	for i, values := range columns {
		keys[i] = vec.SortKey{Values: values, Desc: r.by[i].Desc, NullsFirst: r.by[i].NullsFirst}
	}
	return rel.Take(vec.SortRows(keys, rel.N, end)[start:end]), nil
}

// Package bind finds what a parsed expression means: its columns, types and functions. The functions themselves are in a
// Library, because many of them bind other expressions.
package bind

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/tables/query/internal/plan"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
	"github.com/chaski-eo/chaski/tables/query/internal/sqltype"
)

func (b *Binder) Literal(t tables.Type, l plan.Literal) (*plan.Node, error) {
	return b.Intern(&plan.Node{Op: plan.OpLiteral, Type: t, Literal: &l})
}

// number returns a whole number as a literal of the narrowest type: INTEGER, BIGINT or HUGEINT.
func (b *Binder) number(r *big.Rat) *plan.Node {
	t := sqltype.Huge
	if x := r.Num(); x.IsInt64() {
		t = sqltype.Int64
		if v := x.Int64(); v == int64(int32(v)) {
			t.Bits = 32
		}
	}
	n, _ := b.Intern(&plan.Node{Op: plan.OpLiteral, Type: t, Literal: &plan.Literal{Rat: r}}) // one node is never too many
	return n
}

func (b *Binder) bindAll(es []*ast.Expr) ([]*plan.Node, error) {
	out := make([]*plan.Node, len(es))
	for i, e := range es {
		var err error
		if out[i], err = b.Bind(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// column finds a column, or an alias of the select list where there is none.
func (b *Binder) column(e *ast.Expr) (*plan.Node, error) {
	found := []*plan.Node{}
	tableThere := false
	for i := range b.Tables {
		t := &b.Tables[i]
		if e.Table != "" && !strings.EqualFold(e.Table, t.Alias) {
			continue
		}
		tableThere = true
		for _, c := range t.names[strings.ToLower(e.Name)] {
			found = append(found, &plan.Node{Op: ast.OpColumn, Name: t.Table.Columns()[c].Name, Table: i, Column: c, Type: t.Table.Columns()[c].Type})
		}
	}
	switch {
	case len(found) == 1:
		return b.Intern(found[0])
	case len(found) > 1:
		return nil, sqlerr.Bind("ambiguous reference to column name %q", e.Name)
	case b.columnAround(e.Table, e.Name) && (e.Table == "" && b.Aliases[strings.ToLower(e.Name)] == nil || e.Table != "" && !tableThere):
		return nil, correlated(e.Name)
	case e.Table != "" && !tableThere:
		if b.columnNamed(e.Table) {
			return nil, sqlerr.Unsupported("a field of a struct")
		}
		return nil, fault.New(fault.NotFound, "query", fault.NoOffset, "no table %q in FROM; there are %s", e.Table, b.TableNames())
	case e.Table == "":
		if n, err := b.alias(e.Name); n != nil || err != nil {
			return n, err
		}
		if slices.ContainsFunc(b.Tables, func(t Source) bool { return strings.EqualFold(t.Alias, e.Name) }) {
			return nil, sqlerr.Unsupported("a table as a value")
		}
		switch strings.ToLower(e.Name) {
		case "rowid", "current_date", "current_timestamp", "current_time", "localtime", "localtimestamp":
			return nil, sqlerr.Unsupported("%s", e.Name)
		}
	}
	return nil, b.NoColumn(e.Name)
}

func (b *Binder) columnNamed(name string) bool {
	return slices.ContainsFunc(b.Tables, func(t Source) bool { return len(t.names[strings.ToLower(name)]) > 0 })
}

func (b *Binder) TableNames() string {
	var s []string
	for _, t := range b.Tables {
		s = append(s, t.Alias)
	}
	return strings.Join(s, ", ")
}

func (b *Binder) NoColumn(name string) error {
	if len(b.Tables) == 0 {
		return fault.New(fault.NotFound, "query", fault.NoOffset, "no column %q; there is no FROM", name)
	}
	var s []string
	for _, t := range b.Tables {
		s = append(s, tables.Names(t.Table.Columns()))
	}
	return fault.New(fault.NotFound, "query", fault.NoOffset, "no column %q; there are %s", name, strings.Join(s, ", "))
}

// alias binds what an alias of the select list stands for; nil if there is none.
func (b *Binder) alias(name string) (*plan.Node, error) {
	name = strings.ToLower(name)
	e := b.Aliases[name]
	if e == nil || b.busy[name] {
		return nil, nil
	}
	key := aliasUse{name, b.AllowAggregates, b.inAgg}
	if n := b.meant[key]; n != nil {
		return n, nil
	}
	b.busy[name] = true
	defer delete(b.busy, name)
	n, err := b.Bind(e)
	if err == nil {
		b.meant[key] = n
	}
	return n, err
}

// queryRunner runs the queries that stand inside of expressions.
type queryRunner interface {
	RunQuery(s *ast.Select, around *Binder) (*tables.Table, error)
}

// Binder finds the columns of one SELECT.
type Binder struct {
	ctx     context.Context
	Library *Library
	queries queryRunner
	around  *Binder // of the expression that the SELECT stands in, nil: none
	Tables  []Source
	// Aliases are the select list's, in lower case; meant is what they are once they were bound, so
	// that aliases of aliases do not cost a power of two.
	Aliases    map[string]*ast.Expr
	busy       map[string]bool // aliases that are being put in
	meant      map[aliasUse]*plan.Node
	Nodes      map[string]*plan.Node
	Aggregates []Aggregate
	// AllowAggregates says whether aggregates may stand here; inAgg that this is the argument of one.
	AllowAggregates, inAgg bool
	Clause                 string
}

// aliasUse is an alias in a place of the query where aggregates may stand or not.
type aliasUse struct {
	name         string
	allow, inAgg bool
}

type Source struct {
	Alias string
	Table *tables.Table
	names map[string][]int // columns by lower-case name
}

// Intern returns the node that says the same as n, which may be n.
func (b *Binder) Intern(n *plan.Node) (*plan.Node, error) {
	n.Weight = 1
	key := fmt.Appendf(nil, "%d %s %d %d %t %v %p %d %t %v %p", n.Op, n.Name, n.Table, n.Column, n.Not, n.Type, n.Call, n.Aggregate, n.Try, n.Interval, n.Results)
	if n.Literal != nil {
		key = fmt.Appendf(key, " %t %v %d %d %x %q", n.Literal.Null, n.Literal.Rat, n.Literal.Int, n.Literal.Nanos, n.Literal.Float, n.Literal.String)
	}
	for _, a := range n.Args {
		n.Weight += a.Weight
		n.HasAggregate = n.HasAggregate || a.HasAggregate
		key = fmt.Appendf(key, " %p", a)
	}
	if n.Op == plan.OpAggregate {
		n.HasAggregate = true
	}
	if n.Weight > plan.MaxWeight {
		return nil, fault.New(fault.Limit, "query", fault.NoOffset, "an expression of more than %d parts", plan.MaxWeight)
	}
	if old := b.Nodes[string(key)]; old != nil {
		return old, nil
	}
	b.Nodes[string(key)] = n
	return n, nil
}

func New(ctx context.Context, l *Library, queries queryRunner, around *Binder) *Binder {
	return &Binder{Library: l, queries: queries, ctx: ctx, around: around, Aliases: map[string]*ast.Expr{}, busy: map[string]bool{}, meant: map[aliasUse]*plan.Node{}, Nodes: map[string]*plan.Node{}}
}

func (b *Binder) AddTable(alias string, t *tables.Table) {
	names := map[string][]int{}
	for i, c := range t.Columns() {
		n := strings.ToLower(c.Name)
		names[n] = append(names[n], i)
	}
	b.Tables = append(b.Tables, Source{Alias: alias, Table: t, names: names})
}

// columnAround reports whether a query around this one has a column, of a table if one is named.
func (b *Binder) columnAround(alias, name string) bool {
	for in := b.around; in != nil; in = in.around {
		for _, t := range in.Tables {
			if (alias == "" || strings.EqualFold(alias, t.Alias)) && len(t.names[strings.ToLower(name)]) > 0 {
				return true
			}
		}
	}
	return false
}

func correlated(name string) error {
	return sqlerr.Unsupported("a query inside of a query that uses its column %q", name)
}

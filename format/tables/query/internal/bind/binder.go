// Package bind resolves a parsed expression: it finds its columns, types and functions. The caller passes the functions
// in a Library: many of them bind other expressions, so their package imports this one.
package bind

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/format/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
)

// Fail keeps the first error of a query. It returns a node to go on with.
func (b *Binder) Fail(err error) *eval.Node {
	b.Err = cmp.Or(b.Err, err)
	return &eval.Node{Op: eval.OpLiteral, Literal: &eval.Literal{Null: true}}
}

// unsupported fails because DuckDB may run what this package does not.
func (b *Binder) unsupported(format string, args ...any) *eval.Node {
	return b.Fail(sql.Unsupported(format, args...))
}

// Literal returns the node of a literal.
func (b *Binder) Literal(t tables.Type, l eval.Literal) *eval.Node {
	return b.Intern(&eval.Node{Op: eval.OpLiteral, Type: t, Literal: &l})
}

// numeral returns a number as a literal: with a point as a DOUBLE, unless it meets a FLOAT, and without one of the
// narrowest type, which is INTEGER, BIGINT or UBIGINT.
func (b *Binder) numeral(r *big.Rat, point bool) *eval.Node {
	if point {
		f, _ := r.Float64()
		return b.Literal(sql.Double, eval.Literal{Rat: r, Float: f})
	}
	typ := sql.Int64
	switch x := r.Num(); {
	case x.IsInt64():
		if v := x.Int64(); v == int64(int32(v)) {
			typ.Bits = 32
		}
	case x.IsUint64():
		typ.Kind = tables.Uint64
	default:
		return b.unsupported("the number %s", x)
	}
	return b.Literal(typ, eval.Literal{Rat: r})
}

// bindAll binds the operands of an expression. Columns of decimals are read as DOUBLE.
func (b *Binder) bindAll(operands []*ast.Expr) []*eval.Node {
	out := make([]*eval.Node, len(operands))
	for i, e := range operands {
		if out[i] = b.Bind(e); out[i].Type.Kind != tables.Decimal {
			continue
		}
		if out[i].Op != ast.OpColumn || out[i].Type.Precision > exactDigits {
			b.unsupported("a computation with type %s", eval.TypeName(out[i]))
		}
		column := *out[i]
		column.Type = sql.Double
		out[i] = b.Intern(&column)
	}
	return out
}

// exactDigits is how many digits of a decimal a DOUBLE always tells apart.
const exactDigits = 15

// column finds a column with a name or, failing that, an alias of the select list.
func (b *Binder) column(table, name string) (*eval.Node, error) {
	found := []*eval.Node{}
	tableThere := false
	for i := range b.Tables {
		source := &b.Tables[i]
		if table != "" && !strings.EqualFold(table, source.Alias) {
			continue
		}
		tableThere = true
		for _, c := range source.names[strings.ToLower(name)] {
			column := source.Table.Columns()[c]
			found = append(found, &eval.Node{Op: ast.OpColumn, Name: column.Name, Table: i, Column: c,
				Type: column.Type.SQL()})
		}
	}
	switch {
	case len(found) == 1:
		return b.Intern(found[0]), nil
	case len(found) > 1:
		return nil, sql.Bind("ambiguous reference to column name %q", name)
	case table != "" && !tableThere:
		return b.field(table, name)
	case table == "":
		if n := b.alias(name); n != nil {
			return n, nil
		}
		if slices.ContainsFunc(b.Tables, func(t Source) bool { return strings.EqualFold(t.Alias, name) }) {
			return nil, sql.Unsupported("a table as a value")
		}
		switch strings.ToLower(name) {
		case "rowid", "current_date", "current_timestamp", "current_time", "localtime", "localtimestamp":
			return nil, sql.Unsupported("%s", name)
		}
	}
	return nil, b.NoColumn(name)
}

// field finds COLUMN.NAME, a field of a column of structs.
func (b *Binder) field(of, name string) (*eval.Node, error) {
	column, err := b.column("", of)
	switch {
	case fault.KindOf(err) == fault.NotFound:
		return nil, fault.New(fault.NotFound, "query", "no table %q in FROM; there are %s", of, b.TableNames())
	case err != nil:
		return nil, err
	case column.Op != ast.OpColumn || column.Type.Kind != tables.Struct || column.Field > 0:
		return nil, sql.Unsupported("a field of a value of type %s", eval.TypeName(column))
	}
	for number, field := range column.Type.Fields {
		if strings.EqualFold(field.Name, name) {
			return b.Intern(&eval.Node{Op: ast.OpColumn, Name: field.Name, Table: column.Table, Column: column.Column,
				Field: number + 1, Type: field.Type}), nil
		}
	}
	return nil, fault.New(fault.NotFound, "query", "%q has no field %q; there are %s", of, name,
		tables.Names(column.Type.Fields))
}

// TableNames lists the tables of FROM for a message.
func (b *Binder) TableNames() string {
	var names []string
	for _, t := range b.Tables {
		names = append(names, t.Alias)
	}
	return strings.Join(names, ", ")
}

// NoColumn returns the error for a column that does not exist.
func (b *Binder) NoColumn(name string) error {
	if len(b.Tables) == 0 {
		return fault.New(fault.NotFound, "query", "no column %q; there is no FROM", name)
	}
	var names []string
	for _, t := range b.Tables {
		names = append(names, tables.Near(name, t.Table.Columns()))
	}
	return fault.New(fault.NotFound, "query", "no column %q; there are %s", name, strings.Join(names, ", "))
}

// alias binds the expression of an alias of the select list; nil if the alias does not exist.
func (b *Binder) alias(name string) *eval.Node {
	name = strings.ToLower(name)
	expr := b.Aliases[name]
	if expr == nil || b.busy[name] {
		return nil
	}
	key := aliasUse{name, b.AllowAggregates, b.inAgg}
	// Without meant, a chain of aliases that each use the one before twice would be bound 2^n times.
	if b.meant[key] == nil {
		// Inside itself an alias must not be visible: the name then means a column.
		b.busy[name] = true
		b.meant[key] = b.Bind(expr)
		delete(b.busy, name)
	}
	return b.meant[key]
}

// Binder binds the expressions of one SELECT. After the first error its methods still return nodes, so only its
// callers look at Err.
type Binder struct {
	Err     error
	ctx     context.Context
	Library *Library
	Tables  []Source
	// Aliases has the aliases of the select list, in lower case. meant holds their nodes once they are bound.
	Aliases    map[string]*ast.Expr
	busy       map[string]bool // aliases that are being bound: inside itself, an alias is not visible
	meant      map[aliasUse]*eval.Node
	Nodes      map[nodeKey]*eval.Node
	Aggregates []Aggregate
	// AllowAggregates says that aggregates are allowed here, inAgg that an aggregate's argument is being bound.
	AllowAggregates, inAgg bool
	Clause                 string // the clause that is being bound, for errors
}

// aliasUse is an alias where aggregates are allowed or not: the same alias may be an error in one place and not in the
// other.
type aliasUse struct {
	name         string
	allow, inAgg bool
}

// Source is a table of FROM.
type Source struct {
	Alias string
	Table *tables.Table
	names map[string][]int // columns by lower-case name
}

// nodeKey is what makes two nodes the same expression. It is a struct because Go hashes a struct without formatting:
// formatting string keys took half of the time to run a query of 300 products.
type nodeKey struct {
	op                       ast.Op
	not, try                 bool
	aggregate, table, column int
	field                    int
	name, nested             string
	call                     any // the function
	literal                  literalKey
	kind                     tables.Kind
	bits                     uint8
	args                     string // the IDs of the arguments
}

// literalKey is the part of a nodeKey that a literal has.
type literalKey struct {
	is, null   bool
	rat        string
	int, nanos int64
	float      uint64
	string     string
}

func keyOf(n *eval.Node) nodeKey {
	key := nodeKey{op: n.Op, not: n.Not, try: n.Try, aggregate: n.Aggregate, table: n.Table,
		column: n.Column, field: n.Field, name: n.Name, kind: n.Type.Kind, call: n.Call}
	switch n.Type.Kind {
	case tables.Int64, tables.Uint64, tables.Float64:
		key.bits = n.Type.Bits
	case tables.List, tables.Struct:
		key.nested = n.Type.String()
	}
	if literal := n.Literal; literal != nil {
		key.literal = literalKey{is: true, null: literal.Null, int: literal.Int, nanos: literal.Nanos,
			float: math.Float64bits(literal.Float), string: literal.String}
		if literal.Rat != nil {
			key.literal.rat = literal.Rat.RatString()
		}
	}
	return key
}

// Intern returns the node that is the same expression as n: n itself, or one that was interned before.
func (b *Binder) Intern(n *eval.Node) *eval.Node {
	n.Weight = 1
	key := keyOf(n)
	var args []byte
	for _, node := range n.Args {
		n.Weight += node.Weight
		n.HasAggregate = n.HasAggregate || node.HasAggregate
		args = binary.AppendUvarint(args, uint64(node.ID))
	}
	key.args = string(args)
	if n.Op == eval.OpAggregate {
		n.HasAggregate = true
	}
	if n.Weight > eval.MaxWeight {
		return b.Fail(fault.New(fault.Limit, "query", "an expression of more than %d parts", eval.MaxWeight))
	}
	if old := b.Nodes[key]; old != nil {
		return old
	}
	n.ID = len(b.Nodes) + 1
	b.Nodes[key] = n
	return n
}

// New returns a binder.
func New(ctx context.Context, l *Library) *Binder {
	return &Binder{Library: l, ctx: ctx, Aliases: map[string]*ast.Expr{},
		busy: map[string]bool{}, meant: map[aliasUse]*eval.Node{}, Nodes: map[nodeKey]*eval.Node{}}
}

// AddTable adds a table of FROM.
func (b *Binder) AddTable(alias string, t *tables.Table) {
	names := map[string][]int{}
	for i, c := range t.Columns() {
		n := strings.ToLower(c.Name)
		names[n] = append(names[n], i)
	}
	b.Tables = append(b.Tables, Source{Alias: alias, Table: t, names: names})
}

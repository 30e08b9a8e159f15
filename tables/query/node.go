package query

import (
	"context"
	"fmt"
	"math/big"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
)

// node is a bound expression: its columns are found and its types known. A node is shared where the
// same expression stands twice, so that equal expressions have the same pointer.
type node struct {
	op      op
	fn      *function // of opCall
	agg     int       // of opAggregate
	name    string    // of operators; of columns for messages
	typ     tables.Type
	args    []*node
	not     bool
	lit     *literal
	tab     int // of opColumn
	col     int
	set     *set     // of opIn over literals
	like    *like    // of opLike with a literal pattern
	try     bool     // of opCast: what cannot be cast is null
	span    span     // of opShift
	results *results // of opScalar and opInSet
	state   any      // of opCall: what its function made of literal arguments
	weight  int
	// aggregates tells that one is inside.
	aggregates bool
	// rewritten is what the node became behind GROUP BY.
	rewritten *node
}

// Operators that only bound nodes have.
const (
	opLiteral op = iota + 64
	opAggregate
	opScalar // the only value of a query
	opInSet  // args[0] in the values of a query
	opShift  // a date or timestamp, moved by a span
	opCoalesce
)

// literal is a constant. A number keeps its digits until it meets the type that it is compared with.
type literal struct {
	null bool
	rat  *big.Rat // of integers and decimals
	i    int64
	ns   int64 // of timestamps: nanoseconds after the microseconds in i
	f    float64
	s    string
}

// rep is how the values of a type lie in memory.
type rep uint8

const (
	repNone rep = iota // all null
	repInt             // bool, integers, dates, times
	repUint            // 64 bits without sign
	repBig             // 128 bits
	repFloat
	repBytes
	repOther // lists, structs: only in tables
)

func repOf(t tables.Type) rep {
	switch t.Kind {
	case tables.Null:
		return repNone
	case tables.Uint64:
		if t.Bits == 64 {
			return repUint
		}
		return repInt
	case tables.Huge, tables.Decimal:
		return repBig
	case tables.Float64:
		return repFloat
	case tables.Text, tables.Binary:
		return repBytes
	case tables.List, tables.Struct:
		return repOther
	}
	return repInt
}

func isInteger(t tables.Type) bool {
	return t.Kind == tables.Int64 || t.Kind == tables.Uint64 || t.Kind == tables.Huge
}

func isNumber(t tables.Type) bool { return isInteger(t) || t.Kind == tables.Float64 }

var (
	boolType   = tables.Type{Kind: tables.Bool}
	int64Type  = tables.Type{Kind: tables.Int64, Bits: 64}
	doubleType = tables.Type{Kind: tables.Float64, Bits: 64}
	hugeType   = tables.Type{Kind: tables.Huge}
	textType   = tables.Type{Kind: tables.Text}
	floatType  = tables.Type{Kind: tables.Float64, Bits: 32}
	dateType   = tables.Type{Kind: tables.Date}
	// timestampType counts microseconds.
	timestampType = tables.Type{Kind: tables.Timestamp}
)

// typeName is a type's name as DuckDB has it, for messages.
func typeName(n *node) string {
	t := n.typ
	if n.lit != nil && !n.lit.null {
		switch {
		case t.Kind == tables.Decimal:
			return "DECIMAL"
		case t.Kind == tables.Text:
			return "STRING_LITERAL"
		case isInteger(t):
			return "INTEGER_LITERAL"
		}
	}
	return sqlName(t)
}

// binder finds the columns of one SELECT.
type binder struct {
	ctx     context.Context
	session *session
	around  *binder // of the expression that the SELECT stands in, nil: none
	tables  []bound
	// aliases are the select list's, in lower case; meant is what they are once they were bound, so
	// that aliases of aliases do not cost a power of two.
	aliases map[string]*expr
	busy    map[string]bool // aliases that are being put in
	meant   map[aliasUse]*node
	nodes   map[string]*node
	aggs    []aggregate
	// allow says whether aggregates may stand here; inAgg that this is the argument of one.
	allow, inAgg bool
	where        string
}

// aliasUse is an alias in a place of the query where aggregates may stand or not.
type aliasUse struct {
	name         string
	allow, inAgg bool
}

type bound struct {
	alias string
	t     *tables.Table
	names map[string][]int // columns by lower-case name
}

// intern returns the node that says the same as n, which may be n.
func (b *binder) intern(n *node) (*node, error) {
	n.weight = 1
	key := fmt.Appendf(nil, "%d %s %d %d %t %v %p %d %t %v %p", n.op, n.name, n.tab, n.col, n.not, n.typ, n.fn, n.agg, n.try, n.span, n.results)
	if n.lit != nil {
		key = fmt.Appendf(key, " %t %v %d %d %x %q", n.lit.null, n.lit.rat, n.lit.i, n.lit.ns, n.lit.f, n.lit.s)
	}
	for _, a := range n.args {
		n.weight += a.weight
		n.aggregates = n.aggregates || a.aggregates
		key = fmt.Appendf(key, " %p", a)
	}
	if n.op == opAggregate {
		n.aggregates = true
	}
	if n.weight > maxWeight {
		return nil, fault.New(fault.Limit, "query", fault.NoOffset, "an expression of more than %d parts", maxWeight)
	}
	if old := b.nodes[string(key)]; old != nil {
		return old, nil
	}
	b.nodes[string(key)] = n
	return n, nil
}

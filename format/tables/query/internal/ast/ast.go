// Package ast parses SQL into a tree.
package ast

import (
	"github.com/chaski-eo/chaski/format/tables"
)

// Expr is a parsed expression.
type Expr struct {
	Op    Op
	Name  string // of columns and functions; the source text of literals; the sign of operators
	Table string // of columns and stars, "" if none
	Args  []*Expr
	Not   bool // of IN, BETWEEN, LIKE, IS
	Flag  bool // DISTINCT of an aggregate; TRY_CAST
	depth int

	Type    tables.Type // of OpCast
	Exclude []string    // of OpStar
}

// Op is the operator of an expression, or the kind of a leaf.
type Op uint8

const (
	// Operators. A comment says what else an expression has beside its Args.
	OpColumn Op = iota
	OpStar
	OpNumber
	OpString
	OpNull
	OpTrue
	OpFalse
	OpDate
	OpTimestamp
	OpCall
	OpNot
	OpMinus
	OpAnd // of any number of terms
	OpOr
	OpCompare // Name: = <> < <= > >=
	OpArith   // Name: + - * / // % ^ **
	OpConcat
	OpIn      // Args[0] in the others
	OpBetween // three arguments: value, low, high
	OpLike    // two arguments, three with ESCAPE; Name: LIKE or ILIKE
	OpIsNull
	OpIsBool // Name: TRUE or FALSE
	OpIndex
	OpCast // to Type
	OpCase // condition, value, condition, value, …, value of ELSE
)

// Select is a parsed query: a SELECT with its ORDER BY and LIMIT.
type Select struct {
	Distinct bool
	Items    []SelectItem
	From     []From
	Where    *Expr
	GroupBy  []*Expr
	Having   *Expr
	OrderBy  []OrderTerm
	Limit    *Expr
	Offset   *Expr
}

// SelectItem is an expression of the select list.
type SelectItem struct {
	Expr  *Expr
	Text  string // as it was written
	Alias string
}

// From is a term of FROM.
type From struct {
	Table, Alias string
	On           *Expr // nil: all pairs of rows
}

// OrderTerm is a term of ORDER BY.
type OrderTerm struct {
	Expr             *Expr
	Desc, NullsFirst bool
}

// Package ast parses SQL into a tree. It also writes an expression as DuckDB does, to name a column of the result.
package ast

import (
	"math"
	"math/rand/v2"

	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/clock"
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
	pos   int

	Type     tables.Type    // of OpCast
	Query    *Select        // of OpQuery and OpInQuery
	Filter   *Expr          // FILTER of an aggregate, nil: none
	Order    []OrderTerm    // ORDER BY of an aggregate
	Star     *Star          // of OpStar, nil: all columns
	Interval clock.Interval // of OpInterval
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
	OpIsBool   // Name: TRUE or FALSE
	OpDistinct // IS [NOT] DISTINCT FROM
	OpIndex
	OpCast     // to Type
	OpCase     // condition, value, condition, value, …, value of ELSE
	OpList     // [a, b]
	OpInterval // Interval
	OpQuery    // a query in brackets that gives one value
	OpInQuery  // Args[0] in the only column of Query
)

// Select is a parsed query: a SELECT with its WITH, ORDER BY and LIMIT.
type Select struct {
	With       []NamedQuery
	Distinct   bool
	DistinctOn []*Expr // of DISTINCT ON
	Items      []SelectItem
	From       []From
	Where      *Expr
	GroupBy    []*Expr
	GroupAll   bool
	Having     *Expr
	Sample     *sample // nil: all rows of FROM
	OrderBy    []OrderTerm
	Limit      *Expr
	Offset     *Expr
}

// NamedQuery is a query of WITH.
type NamedQuery struct {
	Name  string
	Query *Select
}

// SelectItem is an expression of the select list, or of REPLACE.
type SelectItem struct {
	Expr  *Expr
	Alias string
}

// Star holds the clauses after a star.
type Star struct {
	Exclude []string
	Replace []SelectItem
	Columns string // the regular expression of COLUMNS('…')
}

// From is a term of FROM: a table, a query in brackets or several joined by UNION.
type From struct {
	Table, Alias string
	Query        *Select
	Union        *Union
	Sample       *sample // of TABLESAMPLE
	On           *Expr   // nil: all pairs of rows
	Left         bool
}

// Union holds queries whose rows are put one after the other.
type Union struct {
	Parts []*Select
	All   []bool // All[k]: UNION ALL and not UNION comes before part k+1
}

// OrderTerm is a term of ORDER BY. Expr is nil for ALL.
type OrderTerm struct {
	Expr             *Expr
	Desc, NullsFirst bool
}

// sample is a random choice of rows.
type sample struct {
	rows    int64   // their number, if share is false
	percent float64 // their share, if share is true
	share   bool
	exact   bool // exactly that share, which reservoir sampling draws
	seed    uint64
}

// Rows returns which of n rows are drawn, in order. The same seed and n draw the same rows on every machine: the random
// numbers come from math/rand/v2.PCG seeded with (seed, 0), which Go promises to keep.
func (s *sample) Rows(n int) []int32 {
	rng := rand.New(rand.NewPCG(s.seed, 0))
	out := []int32{}
	if s.share && !s.exact {
		for r := range n {
			if rng.Float64()*100 < s.percent {
				out = append(out, int32(r))
			}
		}
		return out
	}
	want := s.rows
	if s.share {
		want = int64(math.Round(float64(n) * s.percent / 100))
	}
	want = min(want, int64(n))
	for r := 0; want > 0; r++ { // selection sampling: keep row r with the chance want / rows left
		if rng.Int64N(int64(n-r)) < want {
			out = append(out, int32(r))
			want--
		}
	}
	return out
}

// Package ast parses SQL into a tree. It also writes an expression as DuckDB does, for the name of a result's column.
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
	Name  string // of columns, functions; the text of literals; the sign of operators
	Table string // of columns and stars, "" if none
	Args  []*Expr
	Not   bool // of IN, BETWEEN, LIKE, IS
	Flag  bool // DISTINCT of an aggregate; TRY_CAST
	depth int
	pos   int

	Type     tables.Type    // of opCast
	Query    *Select        // of opQuery and opInQuery
	Filter   *Expr          // FILTER of an aggregate, nil: none
	Order    []OrderTerm    // ORDER BY of an aggregate
	Star     *Star          // of opStar, nil: all columns
	Interval clock.Interval // of opInterval
}

type Op uint8

const (
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
	OpCompare // name: = <> < <= > >=
	OpArith   // name: + - * / // % ^ **
	OpConcat
	OpIn      // args[0] in the others
	OpBetween // three
	OpLike    // two or, with ESCAPE, three; name: LIKE or ILIKE
	OpIsNull
	OpIsBool   // name: TRUE or FALSE
	OpDistinct // IS [NOT] DISTINCT FROM
	OpIndex
	OpCast     // to typ
	OpCase     // condition, value, condition, value, …, value of ELSE
	OpList     // [a, b]
	OpInterval // span
	OpQuery    // a query in brackets that gives one value
	OpInQuery  // args[0] in the only column of sub
)

// Select is a parsed query: a SELECT, with what stands in front of it and behind it.
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

type SelectItem struct {
	Expr  *Expr
	Alias string
}

// Star is what stands behind a star.
type Star struct {
	Exclude []string
	Replace []SelectItem
	Columns string // COLUMNS('…'): a regular expression of names
}

// From is a term of FROM: a table, a query in brackets or several joined by UNION.
type From struct {
	Table, Alias string
	Query        *Select
	Union        *Union
	Sample       *sample // of TABLESAMPLE
	On           *Expr   // nil: all pairs
	Left         bool
}

// Union are queries whose rows follow each other.
type Union struct {
	Parts []*Select
	All   []bool // whether UNION ALL stands before part k+1, or UNION
}

// OrderTerm is a term of ORDER BY; e is nil for ALL.
type OrderTerm struct {
	Expr             *Expr
	Desc, NullsFirst bool // first: NULLS FIRST
}

// sample is a random choice of rows.
type sample struct {
	rows    int64   // so many of them
	percent float64 // or a share
	share   bool
	exact   bool // exactly the share: reservoir
	seed    uint64
}

// Rows returns which of n rows are chosen, in their order. The same seed and n choose the same rows, on every machine: the
// numbers are those of Go's math/rand/v2.PCG with the seeds (seed, 0).
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
	for r := 0; want > 0; r++ { // of those that are left, each is as likely
		if rng.Int64N(int64(n-r)) < want {
			out = append(out, int32(r))
			want--
		}
	}
	return out
}

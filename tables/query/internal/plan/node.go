// Package plan has the nodes of a bound expression: columns are found and types known. The binder makes nodes, the
// evaluator computes them.
package plan

import (
	"bytes"
	"math/big"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/tables/query/internal/clock"
	"github.com/chaski-eo/chaski/tables/query/internal/sqlerr"
	"github.com/chaski-eo/chaski/tables/query/internal/sqltype"
	"github.com/chaski-eo/chaski/tables/query/internal/vec"
)

// Node is a bound expression: its columns are found and its types known. A node is shared where the
// same expression stands twice, so that equal expressions have the same pointer.
type Node struct {
	Op        ast.Op
	Call      call   // of opCall
	Aggregate int    // of opAggregate
	Name      string // of operators; of columns for messages
	Type      tables.Type
	Args      []*Node
	Not       bool
	Literal   *Literal
	Table     int // of opColumn
	Column    int
	Set       *set           // of opIn over literals
	Like      *like          // of opLike with a literal pattern
	Try       bool           // of opCast: what cannot be cast is null
	Interval  clock.Interval // of opShift
	Results   *Results       // of opScalar and opInSet
	State     any            // of opCall: what its function made of literal arguments
	Weight    int
	// HasAggregate tells that one is inside.
	HasAggregate bool
	// Rewritten is what the node became behind GROUP BY.
	Rewritten *Node
}

// Operators that only bound nodes have.
const (
	OpLiteral ast.Op = iota + 64
	OpAggregate
	OpScalar // the only value of a query
	OpInSet  // args[0] in the values of a query
	OpShift  // a date or timestamp, moved by a span
	OpCoalesce
)

// MaxWeight bounds the nodes of an expression, after aliases are put in.
const MaxWeight = 1 << 18

// call is a function that a node calls.
type call interface {
	Name() string
	Evaluate(ev Evaluator, n *Node, args []*vec.Vec, b *vec.Batch) (*vec.Vec, error)
}

// Evaluator is what the evaluation of a function may use of the evaluator that calls it.
type Evaluator interface {
	// Strings returns a writer of n strings, which count against the budget of the batch.
	Strings(n int) *vec.StringWriter
	// Vector returns the values of a column for all rows of its table.
	Vector(n *Node) *tables.Vector
}

// Evaluation computes a function for a batch of rows.
type Evaluation = func(ev Evaluator, n *Node, args []*vec.Vec, b *vec.Batch) (*vec.Vec, error)

// Literal is a constant. A number keeps its digits until it meets the type that it is compared with.
type Literal struct {
	Null   bool
	Rat    *big.Rat // of integers and decimals
	Int    int64
	Nanos  int64 // of timestamps: nanoseconds after the microseconds in i
	Float  float64
	String string
}

// TypeName is a type's name as DuckDB has it, for messages.
func TypeName(n *Node) string {
	t := n.Type
	if n.Literal != nil && !n.Literal.Null {
		switch {
		case t.Kind == tables.Decimal:
			return "DECIMAL"
		case t.Kind == tables.Text:
			return "STRING_LITERAL"
		case sqltype.IsInteger(t):
			return "INTEGER_LITERAL"
		}
	}
	return sqltype.Name(t)
}

// set is the literals of x IN (…).
type set struct {
	Ints    map[int64]bool
	Strings map[string]bool
	Null    bool // NULL is among them
}

// NewSet returns the set of literals that are of x's own type, or nil if they are not all.
func NewSet(x *Node, args []*Node) *set {
	s := &set{}
	integers := sqltype.IsInteger(x.Type) && x.Type.Kind != tables.Huge
	switch {
	case integers:
		s.Ints = map[int64]bool{}
	case x.Type.Kind == tables.Text:
		s.Strings = map[string]bool{}
	default:
		return nil
	}
	for _, a := range args {
		switch {
		case a.Literal == nil:
			return nil
		case a.Literal.Null:
			s.Null = true
		case integers && a.Literal.Rat != nil:
			lo, hi := sqltype.Limits(x.Type)
			if r := a.Literal.Rat; r.IsInt() && sqltype.Within(r.Num(), lo, hi) { // others are never equal
				s.Ints[int64(sqltype.LowBits(r.Num()))] = true
			}
		case s.Strings != nil && a.Type.Kind == tables.Text:
			s.Strings[a.Literal.String] = true
		default:
			return nil
		}
	}
	return s
}

// like is a pattern of LIKE: pieces between the percent signs.
type like struct {
	pieces []piece
	Fold   bool // ILIKE
}

// piece is text in which some characters may be any one.
type piece struct {
	text  []byte
	runes []rune // where any is not empty: the characters, -1 for any
}

const anyRune = -1

func NewLike(pattern, escape string, fold bool) (*like, error) {
	l := &like{Fold: fold}
	if fold {
		pattern = strings.Map(unicode.ToLower, pattern)
	}
	esc, _ := utf8.DecodeRuneInString(escape)
	var p piece
	wild := false
	end := func() {
		if !wild {
			p.text, p.runes = []byte(string(p.runes)), nil
		}
		l.pieces = append(l.pieces, p)
		p, wild = piece{}, false
	}
	for rest := pattern; rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		rest = rest[n:]
		switch {
		case escape != "" && r == esc:
			if rest == "" {
				return nil, sqlerr.Bind("the LIKE pattern %q ends in its escape character", pattern)
			}
			r, n = utf8.DecodeRuneInString(rest)
			rest = rest[n:]
			p.runes = append(p.runes, r)
		case r == '%':
			end()
		case r == '_':
			p.runes, wild = append(p.runes, anyRune), true
		default:
			p.runes = append(p.runes, r)
		}
	}
	end()
	return l, nil
}

// prefix returns the length of the text that the piece takes in front of s, or -1.
func (p *piece) prefix(s []byte) int {
	if p.runes == nil {
		if bytes.HasPrefix(s, p.text) {
			return len(p.text)
		}
		return -1
	}
	at := 0
	for _, want := range p.runes {
		r, n := utf8.DecodeRune(s[at:])
		if n == 0 || want != anyRune && want != r {
			return -1
		}
		at += n
	}
	return at
}

// find returns where the piece first stands in s, from and to; from is -1 if it does not.
func (p *piece) find(s []byte) (from, to int) {
	if p.runes == nil {
		from = bytes.Index(s, p.text)
		return from, from + len(p.text)
	}
	for from <= len(s) {
		if n := p.prefix(s[from:]); n >= 0 {
			return from, from + n
		}
		_, n := utf8.DecodeRune(s[from:])
		if n == 0 {
			break
		}
		from += n
	}
	return -1, 0
}

// Match reports whether the whole of s fits the pattern: the first piece stands in front, the last
// at the end, the others between, each as early as it can.
func (l *like) Match(s []byte) bool {
	first := &l.pieces[0]
	n := first.prefix(s)
	if n < 0 {
		return false
	}
	s = s[n:]
	if len(l.pieces) == 1 {
		return len(s) == 0
	}
	for i := 1; i < len(l.pieces)-1; i++ {
		from, to := l.pieces[i].find(s)
		if from < 0 {
			return false
		}
		s = s[to:]
	}
	last := &l.pieces[len(l.pieces)-1]
	if last.runes == nil {
		return bytes.HasSuffix(s, last.text)
	}
	at := len(s)
	for range last.runes {
		_, n := utf8.DecodeLastRune(s[:at])
		if n == 0 {
			return false
		}
		at -= n
	}
	return last.prefix(s[at:]) == len(s)-at
}

// Results are those of a query inside of an expression.
type Results struct {
	Value   *tables.Vector // of opScalar: one value
	Keys    *vec.KeySet    // of opInSet
	HasNull bool           // NULL is among them
	N       int
}

// Ieee is behind the name of a comparison that NaN never satisfies.
const Ieee = "!"

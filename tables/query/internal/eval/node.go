package eval

import (
	"bytes"
	"math/big"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/tables/query/internal/vec"
)

// Node is a bound expression, whose columns are found and types known. Equal expressions are one node, so that pointers
// compare them and each is computed once.
type Node struct {
	ID        int // its number in the binder, from 1; 0 until it is interned
	Op        ast.Op
	Call      *Call  // of OpCall
	Aggregate int    // of OpAggregate: its number
	Name      string // of operators; of columns, for messages
	Type      tables.Type
	Args      []*Node
	Not       bool
	Literal   *Literal
	Table     int // of OpColumn
	Column    int
	Field     int   // of OpColumn: a field of its struct, counted from 1; 0 for the column itself
	Set       *set  // of OpIn over literals
	Like      *like // of OpLike with a literal pattern
	Try       bool  // of OpCast: values that cannot be cast become null
	State     any   // of OpCall: what Prepare of its function returned
	Weight    int   // the nodes of the expression, counted as if none were shared
	// HasAggregate says that the expression contains an aggregate.
	HasAggregate bool
	// Rewritten is the node that replaces this one after GROUP BY.
	Rewritten *Node
}

// Operators that only bound nodes have.
const (
	OpLiteral ast.Op = iota + 64
	OpAggregate
	OpCoalesce
)

// MaxWeight bounds the weight of an expression after aliases are replaced: a chain of aliases grows exponentially. 2^18
// nodes are more than a query of 2 MiB needs without such a chain.
const MaxWeight = 1 << 18

// Call is a function that nodes call.
type Call struct {
	Name     string // for errors
	Evaluate Evaluation
}

// Evaluation computes a function for a batch of rows.
type Evaluation = func(ev *Evaluator, n *Node, args []*vec.Vec, b *vec.Batch) (*vec.Vec, error)

// Literal is a constant. A number keeps its digits until the type that it is compared with is known.
type Literal struct {
	Null   bool
	Rat    *big.Rat // of integers, and of numbers that are written with a point
	Int    int64
	Nanos  int64 // of timestamps: nanoseconds to add to the microseconds in Int
	Float  float64
	String string
}

// TypeName is a type's name in DuckDB's messages.
func TypeName(n *Node) string {
	typ := n.Type
	if n.Literal != nil && !n.Literal.Null {
		switch {
		case typ.Kind == tables.String:
			return "STRING_LITERAL"
		case sql.IsInteger(typ):
			return "INTEGER_LITERAL"
		}
	}
	return sql.Name(typ)
}

// set holds the literals of x IN (…).
type set struct {
	Ints    map[int64]bool
	Strings map[string]bool
	Null    bool // NULL is among them
}

// NewSet returns the set of the literals args if all are of x's own type, else nil.
func NewSet(x *Node, args []*Node) *set {
	s := &set{}
	integers := sql.IsInteger(x.Type)
	switch {
	case integers:
		s.Ints = map[int64]bool{}
	case x.Type.Kind == tables.String:
		s.Strings = map[string]bool{}
	default:
		return nil
	}
	for _, node := range args {
		switch {
		case node.Literal == nil:
			return nil
		case node.Literal.Null:
			s.Null = true
		case integers && node.Literal.Rat != nil:
			lo, hi := sql.Limits(x.Type)
			if r := node.Literal.Rat; r.IsInt() && sql.Within(r.Num(), lo, hi) { // others are never equal
				s.Ints[sql.Word(r.Num())] = true
			}
		case s.Strings != nil && node.Type.Kind == tables.String:
			s.Strings[node.Literal.String] = true
		default:
			return nil
		}
	}
	return s
}

// like is a pattern of LIKE: the pieces between its percent signs.
type like struct {
	pieces []piece
	Fold   bool // ILIKE
}

// piece is a part of a pattern without percent signs.
type piece struct {
	text  []byte // the piece, if it has no underscore
	runes []rune // else its characters, anyRune for each underscore
}

const anyRune = -1

// NewLike compiles a pattern. fold makes it ILIKE.
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
				return nil, sql.Bind("the LIKE pattern %q ends in its escape character", pattern)
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

// prefix reports whether s begins with the piece, and how many bytes it compared: all of the piece, if so.
func (p *piece) prefix(s []byte) (compared int, ok bool) {
	if p.runes == nil {
		return len(p.text), bytes.HasPrefix(s, p.text)
	}
	pos := 0
	for _, want := range p.runes {
		r, n := utf8.DecodeRune(s[pos:])
		if n == 0 || want != anyRune && want != r {
			return pos, false
		}
		pos += n
	}
	return pos, true
}

// find returns where the piece first matches in s; from is -1 if it does not.
func (p *piece) find(s []byte, goesOn func(read int) bool) (from, to int) {
	if p.runes == nil {
		from = bytes.Index(s, p.text)
		return from, from + len(p.text)
	}
	for from <= len(s) {
		compared, ok := p.prefix(s[from:])
		if ok {
			return from, from + compared
		}
		if !goesOn(1 + compared) { // a piece of any length may be compared at each character
			break
		}
		_, n := utf8.DecodeRune(s[from:])
		if n == 0 {
			break
		}
		from += n
	}
	return -1, 0
}

// Match reports whether the whole of s matches: the first piece at the start, the last at the end, and the others
// between, each as early as possible, which finds a match whenever there is one. It calls goesOn with bytes that it has
// read. If that returns false, so does Match.
func (l *like) Match(s []byte, goesOn func(read int) bool) bool {
	first := &l.pieces[0]
	n, ok := first.prefix(s)
	if !ok {
		return false
	}
	s = s[n:]
	if len(l.pieces) == 1 {
		return len(s) == 0
	}
	for i := 1; i < len(l.pieces)-1; i++ {
		start, end := l.pieces[i].find(s, goesOn)
		if start < 0 {
			return false
		}
		s = s[end:]
	}
	last := &l.pieces[len(l.pieces)-1]
	if last.runes == nil {
		return bytes.HasSuffix(s, last.text)
	}
	pos := len(s)
	for range last.runes {
		_, n := utf8.DecodeLastRune(s[:pos])
		if n == 0 {
			return false
		}
		pos -= n
	}
	n, ok = last.prefix(s[pos:])
	return ok && n == len(s)-pos
}

// Ieee is appended to the name of a comparison in which NaN is never above a number.
const Ieee = "!"

package eval

import (
	"bytes"
	"math/big"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/ast"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/format/tables/query/internal/vec"
)

// Node is a bound expression, whose columns are found and types known. Equal expressions are one node, so pointers
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
	Field     int         // of OpColumn: a field of its struct, counted from 1; 0 for the column itself
	Set       *literalSet // of OpIn over literals
	Like      *like       // of OpLike with a literal pattern
	Try       bool        // of OpCast: values that cannot be cast become null
	State     any         // of OpCall: what Prepare of its function returned
	Weight    int         // the nodes of the expression, counted as if none were shared
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
type Evaluation = func(ev *Evaluator, n *Node, args []*tables.Vector, b *vec.Batch) (*tables.Vector, error)

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

// literalSet holds the literals of x IN (…).
type literalSet struct {
	Ints    map[int64]bool
	Strings map[string]bool
	Null    bool // NULL is among them
}

// NewSet returns the set of the literals args if all are of x's own type, else nil.
func NewSet(x *Node, args []*Node) *literalSet {
	literals := &literalSet{}
	integers := sql.IsInteger(x.Type)
	switch {
	case integers:
		literals.Ints = map[int64]bool{}
	case x.Type.Kind == tables.String:
		literals.Strings = map[string]bool{}
	default:
		return nil
	}
	for _, node := range args {
		switch {
		case node.Literal == nil:
			return nil
		case node.Literal.Null:
			literals.Null = true
		case integers && node.Literal.Rat != nil:
			lo, hi := sql.Limits(x.Type)
			if r := node.Literal.Rat; r.IsInt() && sql.Within(r.Num(), lo, hi) { // others are never equal
				literals.Ints[sql.Word(r.Num())] = true
			}
		case literals.Strings != nil && node.Type.Kind == tables.String:
			literals.Strings[node.Literal.String] = true
		default:
			return nil
		}
	}
	return literals
}

// like is a pattern of LIKE.
type like struct {
	parts [][]byte // between its percent signs
	runes []rune   // of a pattern with underscores: all of it, with anyRune and anyText; else nil
	Fold  bool     // ILIKE
}

// Signs of a pattern that stand for other characters than themselves.
const (
	anyRune = -1 - iota // an underscore
	anyText             // a percent sign
)

// NewLike compiles a pattern. fold makes it ILIKE.
func NewLike(pattern, escape string, fold bool) (*like, error) {
	compiled := &like{Fold: fold, parts: [][]byte{nil}}
	if fold {
		pattern = strings.Map(unicode.ToLower, pattern)
	}
	esc, _ := utf8.DecodeRuneInString(escape)
	underscores := false
	for rest := pattern; rest != ""; {
		char, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
		switch {
		case escape != "" && char == esc:
			if rest == "" {
				return nil, sql.Bind("the LIKE pattern %q ends in its escape character", pattern)
			}
			char, size = utf8.DecodeRuneInString(rest)
			rest = rest[size:]
		case char == '%':
			compiled.runes, compiled.parts = append(compiled.runes, anyText), append(compiled.parts, nil)
			continue
		case char == '_':
			compiled.runes, underscores = append(compiled.runes, anyRune), true
			continue
		}
		last := len(compiled.parts) - 1
		compiled.runes, compiled.parts[last] = append(compiled.runes, char), utf8.AppendRune(compiled.parts[last], char)
	}
	if !underscores {
		compiled.runes = nil
	}
	return compiled, nil
}

// Match reports whether the whole of s matches: the first part at the start, the last at the end, and the others
// between, each as early as possible, which finds a match whenever there is one. It calls goesOn with bytes that it has
// read. If that returns false, so does Match.
func (l *like) Match(s []byte, goesOn func(read int) bool) bool {
	if l.runes != nil {
		return l.matchRunes(s, goesOn)
	}
	first, last := l.parts[0], len(l.parts)-1
	if last == 0 {
		return bytes.Equal(s, first)
	}
	if !bytes.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	for _, part := range l.parts[1:last] {
		found := bytes.Index(s, part)
		if found < 0 {
			return false
		}
		s = s[found+len(part):]
	}
	return bytes.HasSuffix(s, l.parts[last])
}

// matchRunes matches a pattern with underscores, a character at a time: what stands behind its last percent sign from
// the end, and the rest from the start.
func (l *like) matchRunes(s []byte, goesOn func(read int) bool) bool {
	pattern := l.runes
	for last := len(pattern) - 1; len(l.parts) > 1 && pattern[last] != anyText; last-- {
		char, size := utf8.DecodeLastRune(s)
		if size == 0 || pattern[last] != char && pattern[last] != anyRune {
			return false
		}
		s, pattern = s[:len(s)-size], pattern[:last]
	}
	inPattern, inText := 0, 0
	percent, from := -1, 0 // the last percent sign, and where in s what follows it is tried
	for inText < len(s) {
		if inPattern < len(pattern) && pattern[inPattern] == anyText {
			if percent, from = inPattern, inText; percent == len(pattern)-1 {
				return true
			}
			inPattern++
			continue
		}
		char, size := rune(s[inText]), 1
		if char >= utf8.RuneSelf {
			char, size = utf8.DecodeRune(s[inText:])
		}
		switch {
		case inPattern < len(pattern) && (pattern[inPattern] == char || pattern[inPattern] == anyRune):
			inPattern++
			inText += size
		case percent < 0 || !goesOn(1+inText-from): // what follows may be compared at each character
			return false
		default: // the percent sign takes a character more
			if inText > from {
				_, size = utf8.DecodeRune(s[from:])
			}
			from += size
			inPattern, inText = percent+1, from
		}
	}
	for inPattern < len(pattern) && pattern[inPattern] == anyText {
		inPattern++
	}
	return inPattern == len(pattern)
}

// Ieee is appended to the name of a comparison in which NaN is never above a number.
const Ieee = "!"

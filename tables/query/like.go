package query

import (
	"bytes"
	"math/big"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/tables"
)

// set is the literals of x IN (…).
type set struct {
	ints  map[int64]bool
	texts map[string]bool
	null  bool // NULL is among them
}

// newSet returns the set of literals that are of x's own type, or nil if they are not all.
func newSet(x *node, args []*node) *set {
	s := &set{}
	integers := isInteger(x.typ) && x.typ.Kind != tables.Huge
	switch {
	case integers:
		s.ints = map[int64]bool{}
	case x.typ.Kind == tables.Text:
		s.texts = map[string]bool{}
	default:
		return nil
	}
	for _, a := range args {
		switch {
		case a.lit == nil:
			return nil
		case a.lit.null:
			s.null = true
		case integers && a.lit.rat != nil:
			lo, hi := limits(x.typ)
			if r := a.lit.rat; r.IsInt() && within(r.Num(), lo, hi) { // others are never equal
				s.ints[int64(lowBits(r.Num()))] = true
			}
		case s.texts != nil && a.typ.Kind == tables.Text:
			s.texts[a.lit.s] = true
		default:
			return nil
		}
	}
	return s
}

func within(x, lo, hi *big.Int) bool { return x.Cmp(lo) >= 0 && x.Cmp(hi) <= 0 }

func evalIn(n *node, x *vec) *vec {
	s := n.set
	v := &vec{n: x.n, t: make([]bool, x.n), nulls: x.nulls}
	if s.ints != nil {
		for k, i := range x.i {
			v.t[k] = s.ints[i]
		}
	} else {
		for k := range v.t {
			v.t[k] = s.texts[string(x.bytes(k))]
		}
	}
	if s.null { // what is not found may be the unknown one
		v.nulls = append(make([]bool, 0, x.n), x.nulls...)[:x.n]
		for k, t := range v.t {
			v.nulls[k] = v.nulls[k] || !t
		}
	}
	if n.not {
		for k := range v.t {
			v.t[k] = !v.t[k]
		}
	}
	return v
}

// like is a pattern of LIKE: pieces between the percent signs.
type like struct {
	pieces []piece
	fold   bool // ILIKE
}

// piece is text in which some characters may be any one.
type piece struct {
	text  []byte
	runes []rune // where any is not empty: the characters, -1 for any
}

const anyRune = -1

func newLike(pattern, escape string, fold bool) (*like, error) {
	l := &like{fold: fold}
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
				return nil, binderError("the LIKE pattern %q ends in its escape character", pattern)
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

// match reports whether the whole of s fits the pattern: the first piece stands in front, the last
// at the end, the others between, each as early as it can.
func (l *like) match(s []byte) bool {
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

func evalLike(n *node, x *vec) *vec {
	if n.args[0].typ.Kind == tables.Null || n.like == nil {
		return allNull(boolType, x.n)
	}
	v := &vec{n: x.n, nulls: x.nulls, t: make([]bool, x.n)}
	for k := range v.t {
		if x.null(k) {
			continue
		}
		s := x.bytes(k)
		if n.like.fold {
			s = bytes.Map(unicode.ToLower, s)
		}
		v.t[k] = n.like.match(s) != n.not
	}
	return v
}

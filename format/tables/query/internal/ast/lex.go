package ast

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
)

// Limits of a query.
const (
	maxQuery = 1 << 21 // bytes: a split may be written as the list of its ids, some 100,000 of 20 bytes
	maxName  = 1 << 9  // bytes
	// maxTokens bounds what a query of 2 MiB makes of its commas: the longest list, of 262,144 items, and the rest.
	maxTokens = 600_000
	maxDepth  = 400 // of an expression: the parser, binder and evaluator recurse
)

// kind is the kind of a token.
type kind uint8

const (
	tEnd kind = iota
	tName
	tQuoted
	tString
	tNumber
	tSign
)

type token struct {
	kind kind
	text string // as written; of strings and quoted names without the quotes
	pos  int
}

// is reports whether the token is a keyword or a sign.
func (t token) is(word string) bool {
	switch t.kind {
	case tName:
		return strings.EqualFold(t.text, word)
	case tSign:
		return t.text == word
	}
	return false
}

// names reports whether the token can name a column, a table or an alias.
func (t token) names() bool { return t.kind == tQuoted || t.kind == tName && !reserved(t.text) }

// syntaxErrorAt is the error "at or near" a token, in DuckDB's words. It shows at most 40 bytes of the query.
func syntaxErrorAt(t token, query string) error {
	if t.kind == tEnd {
		return &sql.SyntaxError{Msg: "at end of input", Pos: t.pos}
	}
	text := query[t.pos:]
	if n := strings.IndexAny(text, " \t\r\n"); t.kind != tSign && n > 0 {
		text = text[:n]
	} else if t.kind == tSign {
		text = t.text
	}
	if len(text) > 40 {
		text = text[:40]
	}
	return &sql.SyntaxError{Msg: fmt.Sprintf("at or near %q", text), Pos: t.pos}
}

// tokens splits a query into tokens. The last token is tEnd.
func tokens(q string) ([]token, error) {
	if len(q) > maxQuery {
		return nil, fault.New(fault.Limit, "query", "%d bytes, at most %d", len(q), maxQuery)
	}
	if !utf8.ValidString(q) {
		return nil, &sql.SyntaxError{Msg: "in a query that is not UTF-8", Pos: 0}
	}
	var out []token
	for pos := 0; ; {
		pos += blanks(q[pos:])
		if pos >= len(q) {
			return append(out, token{kind: tEnd, pos: len(q)}), nil
		}
		tok, length, err := next(q, pos)
		if err != nil {
			return nil, err
		}
		if (tok.kind == tName || tok.kind == tQuoted) && len(tok.text) > maxName {
			return nil, fault.New(fault.Limit, "query", "a name of %d bytes, at most %d", len(tok.text), maxName)
		}
		if len(out) == maxTokens {
			return nil, fault.At(fault.Limit, "query", int64(pos), "more than %d words and signs", maxTokens)
		}
		out = append(out, tok)
		pos += length
	}
}

// blanks returns the length of the leading blanks and comments.
func blanks(s string) int {
	pos := 0
	for pos < len(s) {
		switch rest := s[pos:]; {
		case strings.IndexByte(" \t\r\n\f\v", rest[0]) >= 0:
			pos++
		case strings.HasPrefix(rest, "--"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				return len(s)
			}
			pos += end
		case strings.HasPrefix(rest, "/*"):
			pos += comment(rest)
		default:
			return pos
		}
	}
	return pos
}

// comment returns the length of a leading comment, which may contain others. One that does not end extends to the end.
func comment(s string) int {
	depth := 0
	for pos := 0; pos+1 < len(s); {
		switch s[pos : pos+2] {
		case "/*":
			depth++
			pos += 2
		case "*/":
			pos += 2
			if depth--; depth == 0 {
				return pos
			}
		default:
			pos++
		}
	}
	return len(s)
}

// letter reports whether a byte may begin a name: bytes from 0x80 on belong to letters of UTF-8.
func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80 }

// next reads the token at a byte that is not blank, and returns its length.
func next(q string, at int) (token, int, error) {
	rest := q[at:]
	switch first := rest[0]; {
	case first == '\'':
		text, length, ok := quoted(rest)
		if !ok {
			return token{}, 0, &sql.SyntaxError{Msg: "in a string that does not end", Pos: at}
		}
		return token{tString, text, at}, length, nil
	case first == '"':
		text, length, ok := quoted(rest)
		if !ok || text == "" {
			return token{}, 0, &sql.SyntaxError{Msg: "in a quoted name that is empty or does not end", Pos: at}
		}
		return token{tQuoted, text, at}, length, nil
	case letter(first):
		length := 1
		for length < len(rest) && (letter(rest[length]) || sql.IsDigit(rest[length]) || rest[length] == '$') {
			length++
		}
		if length < len(rest) && rest[length] == '\'' && length == 1 && strings.IndexByte("eExXbB", first) >= 0 {
			return token{}, 0, sql.Unsupported("strings of the form %c'…'", first)
		}
		return token{tName, rest[:length], at}, length, nil
	case sql.IsDigit(first) || first == '.' && len(rest) > 1 && sql.IsDigit(rest[1]):
		length := len(number.FindString(rest))
		if length < len(rest) && (letter(rest[length]) || sql.IsDigit(rest[length])) {
			return token{}, 0, &sql.SyntaxError{Msg: fmt.Sprintf("at or near %q", rest[:length+1]), Pos: at}
		}
		return token{tNumber, rest[:length], at}, length, nil
	}
	for _, sign := range [...]string{"<=", ">=", "<>", "!=", "==", "||", "//", "::", "**"} {
		if strings.HasPrefix(rest, sign) {
			return token{tSign, sign, at}, 2, nil
		}
	}
	if strings.IndexByte("+-*/%^()[],.;=<>:", rest[0]) >= 0 {
		return token{tSign, rest[:1], at}, 1, nil
	}
	if strings.IndexByte("$?@#&|~!{}", rest[0]) >= 0 {
		return token{}, 0, sql.Unsupported("the sign %q", rest[:1])
	}
	return token{}, 0, &sql.SyntaxError{Msg: fmt.Sprintf("at or near %q", rest[:1]), Pos: at}
}

// quoted reads a leading string or name in quotes, in which a doubled quote is one quote character.
func quoted(s string) (text string, n int, ok bool) {
	quote := s[0]
	var content strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != quote {
			content.WriteByte(s[i])
			continue
		}
		if i+1 == len(s) || s[i+1] != quote {
			return content.String(), i + 1, true
		}
		content.WriteByte(quote)
		i++
	}
	return "", 0, false
}

// number matches digits, a fraction and an exponent.
var number = regexp.MustCompile(`^[0-9]*(\.[0-9]*)?([eE][+-]?[0-9]+)?`)

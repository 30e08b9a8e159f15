// Package pattern reads what tensors are to look like. A pattern is text in the notation of einops (A. Rogozhnikov,
// "Einops: Clear and Reliable Tensor Manipulations with Einstein-like Notation", ICLR 2022). It is parsed once, and
// resolved for shapes to a Plan of package einops.
//
// The package reads
//
//   - two-sided patterns, "n b (h p) (w q) -> n (h w) (p q b)", with everything that the rearrange
//     function of einops accepts: permutations, groups, splits, 1, () and "...". Items of the left side
//     match the input axes by position. The bare name of an input axis matches that axis only, so that
//     "n x y b -> ..." is an error and not a silent swap. The left side may omit input axes of
//     length 1.
//   - one-sided patterns, "n (y x) b", which name input axes only; the left side is implied. They may
//     omit input axes of length 1.
//
// Not supported: reductions, repetitions, and numbers other than 1.
package pattern

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// SyntaxError describes an error in a pattern, or a pattern that does not fit the axes of an input.
type SyntaxError struct {
	Pattern string
	Col     int // 1-based, in runes; 0 if the error has no single place
	Msg     string
}

// Error returns `pattern "…" column 7: …`.
func (e *SyntaxError) Error() string {
	if e.Col == 0 {
		return fmt.Sprintf("pattern %q: %s", e.Pattern, e.Msg)
	}
	return fmt.Sprintf("pattern %q column %d: %s", e.Pattern, e.Col, e.Msg)
}

// Pattern is a parsed pattern. It is immutable and safe for concurrent use.
type Pattern struct {
	text        string
	left, right []item // left is empty in a one-sided pattern
	twoSided    bool
}

// item is one axis of a side: a name, 1, "..." or a group of them.
type item struct {
	atoms []axisAtom
	group bool
	col   int
}

// axisAtom is a name, "1" or "...".
type axisAtom struct {
	name string
	col  int
}

const (
	one      = "1"
	ellipsis = "..."
)

// is reports whether the item is the bare atom name.
func (it item) is(name string) bool { return !it.group && it.atoms[0].name == name }

// String returns the pattern's text.
func (p *Pattern) String() string { return p.text }

func (p *Pattern) errorf(col int, format string, args ...any) error {
	return &SyntaxError{Pattern: p.text, Col: col, Msg: fmt.Sprintf(format, args...)}
}

// MaxPattern is the longest pattern in bytes: patterns are user input, and the longest useful one has
// some dozen axes.
const MaxPattern = 4096

// Parse reads a pattern. Its errors are of type *SyntaxError.
func Parse(pattern string) (*Pattern, error) {
	parsed := &Pattern{text: pattern}
	if len(pattern) > MaxPattern {
		parsed.text = strings.ToValidUTF8(pattern[:32], "") + "…"
		return nil, parsed.errorf(0, "%d bytes long, at most %d are read", len(pattern), MaxPattern)
	}
	if err := parsed.parse(); err != nil {
		return nil, err
	}
	if err := parsed.check(); err != nil {
		return nil, err
	}
	return parsed, nil
}

func (p *Pattern) parse() error {
	var items []item
	var open *item // the group being read
	for pos := 0; ; {
		token, col, err := p.token(pos)
		if err != nil {
			return err
		}
		pos = col - 1 + len(token) // what was read is ASCII
		switch {
		case token == "":
			if open != nil {
				return p.errorf(open.col, "this parenthesis is not closed")
			}
			p.right = items
			return nil
		case token == "->":
			if open != nil {
				return p.errorf(open.col, "this parenthesis is not closed")
			}
			if p.twoSided {
				return p.errorf(col, "a second arrow")
			}
			p.twoSided, p.left, items = true, items, nil
		case token == "(":
			if open != nil {
				return p.errorf(col, "a group inside a group")
			}
			open = &item{group: true, col: col}
		case token == ")":
			if open == nil {
				return p.errorf(col, "this parenthesis was never opened")
			}
			items, open = append(items, *open), nil
		case open != nil:
			open.atoms = append(open.atoms, axisAtom{token, col})
		default:
			items = append(items, item{atoms: []axisAtom{{token, col}}, col: col})
		}
	}
}

// tokens are names, 1, "...", "->" and parentheses.
var tokens = regexp.MustCompile(`^[ \t\r\n]*(->|\.\.\.|[()]|\w+|)`)

// token returns the next token from byte at on, and its column. It is empty at the end.
func (p *Pattern) token(at int) (tok string, col int, err error) {
	match := tokens.FindStringSubmatchIndex(p.text[at:])
	rest, tok := p.text[at+match[2]:], p.text[at+match[2]:at+match[3]]
	col = at + match[2] + 1
	switch {
	case tok == "" && rest != "":
		letter, _ := utf8.DecodeRuneInString(rest)
		err = p.errorf(col, "%q has no meaning here", letter)
	case tok == "" || tok == one:
	case '0' <= tok[0] && tok[0] <= '9':
		err = p.errorf(col, "%s is neither a name nor 1", tok)
	case tok[0] == '_' || strings.HasSuffix(tok, "_"):
		err = p.errorf(col, "name %s starts or ends with an underscore", tok)
	}
	return tok, col, err
}

// check verifies all that does not depend on shapes.
func (p *Pattern) check() error {
	right, err := p.names(p.right)
	if err != nil {
		return err
	}
	if !p.twoSided {
		if len(p.right) == 0 {
			return p.errorf(1, "the pattern is empty")
		}
		return nil
	}
	left, err := p.names(p.left)
	if err != nil {
		return err
	}
	for _, part := range p.left {
		for _, atom := range part.atoms {
			if atom.name == ellipsis && part.group {
				return p.errorf(atom.col, "... inside a group on the left side")
			}
		}
	}
	if err := p.missing(p.left, right, "right"); err != nil {
		return err
	}
	return p.missing(p.right, left, "left")
}

// names collects a side's names and "..." and refuses duplicates.
func (p *Pattern) names(side []item) (map[string]bool, error) {
	seen := map[string]bool{}
	for _, part := range side {
		for _, atom := range part.atoms {
			if atom.name == one {
				continue
			}
			if seen[atom.name] {
				return nil, p.errorf(atom.col, "%s for the second time on one side", atom.name)
			}
			seen[atom.name] = true
		}
	}
	return seen, nil
}

// missing refuses the first name of a side that the other side lacks.
func (p *Pattern) missing(side []item, other map[string]bool, otherSide string) error {
	for _, part := range side {
		for _, atom := range part.atoms {
			if atom.name != one && !other[atom.name] {
				return p.errorf(atom.col, "%s is not on the %s side", atom.name, otherSide)
			}
		}
	}
	return nil
}

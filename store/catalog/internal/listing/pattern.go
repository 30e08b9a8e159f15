package listing

import (
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/source"
)

// Pattern is a pattern of paths. {name} stands for text, the same wherever the name is; "*" for any text in a part of
// the path, and "**" as a whole part for any number of directories. Names take as much as they can, the first ones
// first.
type Pattern struct {
	text  string
	names []string // in the order of their first places
	parts []patternPart
	wild  bool // it has stars

	// The parts before, between and after the places of the only name, if that may hold slashes.
	lits []string
	size int // bytes of lits
}

// patternPart is a piece of a pattern.
type patternPart struct {
	kind partKind
	text string // of a literal
	name int    // the number of a name
}

type partKind uint8

const (
	literal partKind = iota
	named
	anyText  // "*"
	anyFiles // "**" at the end
	anyPath  // "**/"
)

// maxSteps bounds the places at which names and stars of a pattern are tried for a path. The number of places grows
// with the power of the number of names, and both may be of somebody else.
const maxSteps = 1 << 16

// maxNames bounds the names of a pattern.
const maxNames = 32

// ParsePatterns parses the patterns of the fields of a dataset. A name stands for text without slashes, unless each
// pattern has at most one name and no stars: then it stands for any text.
func ParsePatterns(texts []string) ([]*Pattern, error) {
	patterns, whole := make([]*Pattern, len(texts)), true
	for i, text := range texts {
		pattern := &Pattern{text: text, names: column.Names(text)}
		if len(pattern.names) > maxNames {
			return nil, fault.New(fault.Limit, "pattern", "it has %d names, at most %d", len(pattern.names), maxNames)
		}
		pattern.parse()
		whole = whole && len(pattern.names) <= 1 && !pattern.wild
		patterns[i] = pattern
	}
	for _, p := range patterns {
		if whole && len(p.names) == 1 {
			p.lits = strings.Split(p.text, "{"+p.names[0]+"}")
			for _, l := range p.lits {
				p.size += len(l)
			}
		}
	}
	return patterns, nil
}

func (p *Pattern) parse() {
	for rest := p.text; rest != ""; {
		before, name, after, ok := column.CutName(rest)
		p.parseStars(before, !ok)
		if ok {
			p.parts = append(p.parts, patternPart{kind: named, name: slices.Index(p.names, name)})
		}
		rest = after
	}
}

// parseStars appends the parts of a text without names, which is the last of the pattern or stands before a name.
func (p *Pattern) parseStars(text string, last bool) {
	for text != "" {
		star := strings.IndexByte(text, '*')
		if star < 0 {
			star = len(text)
		}
		if star > 0 {
			p.parts = append(p.parts, patternPart{text: text[:star]})
			text = text[star:]
			continue
		}
		p.wild = true
		stars := len(text) - len(strings.TrimLeft(text, "*"))
		starts := len(p.parts) == 0
		if !starts {
			last := &p.parts[len(p.parts)-1]
			starts = strings.HasSuffix(last.text, "/") || strings.HasSuffix(last.text, source.Separator) ||
				last.kind == anyPath
		}
		switch after := text[stars:]; {
		case stars == 2 && starts && after == "" && last:
			p.parts = append(p.parts, patternPart{kind: anyFiles})
		case stars == 2 && starts && strings.HasPrefix(after, "/"):
			p.parts = append(p.parts, patternPart{kind: anyPath})
			stars++
		default:
			p.parts = append(p.parts, patternPart{kind: anyText})
		}
		text = text[stars:]
	}
}

// Names returns the names of the pattern. The caller must not change them.
func (p *Pattern) Names() []string { return p.names }

// Stars reports whether the pattern has stars.
func (p *Pattern) Stars() bool { return p.wild }

// Match returns what the names of the pattern stand for in a path, appended to values, or false if the pattern does not
// match. A pattern that would take too long is an error.
func (p *Pattern) Match(path string, values []string) ([]string, bool, error) {
	if p.lits != nil {
		value, ok := p.matchOne(path)
		return append(values, value), ok, nil
	}
	if n := len(p.parts); n == 0 || !strings.HasPrefix(path, p.parts[0].text) ||
		!strings.HasSuffix(path, p.parts[n-1].text) {
		return values, false, nil
	}
	n := len(values)
	m := match{pattern: p, values: append(values, make([]string, len(p.names))...)[n:]}
	ok := m.from(0, path)
	if m.steps > maxSteps {
		return values, false, fault.New(fault.Limit, "pattern",
			"%q takes over %d steps for the path %q: write more between its names", p.text, maxSteps, path)
	}
	return append(values, m.values...), ok, nil
}

// match is one path that is matched.
type match struct {
	pattern *Pattern
	values  []string // "" of names that stand for nothing yet
	steps   int
}

// from reports whether the parts from number i on match a path.
func (m *match) from(i int, path string) bool {
	if m.steps++; m.steps > maxSteps {
		return false
	}
	if i == len(m.pattern.parts) {
		return path == ""
	}
	part := &m.pattern.parts[i]
	switch {
	case part.kind == literal:
		return strings.HasPrefix(path, part.text) && m.from(i+1, path[len(part.text):])
	case part.kind == named && m.values[part.name] != "":
		value := m.values[part.name]
		return strings.HasPrefix(path, value) && m.from(i+1, path[len(value):])
	case part.kind == anyFiles:
		return true
	case part.kind == anyPath:
		for end := len(path); end >= 0; end = strings.LastIndexByte(path[:end], '/') {
			if end < len(path) && m.from(i+1, path[end+1:]) {
				return true
			}
		}
		return m.from(i+1, path)
	}
	end := strings.IndexByte(path, '/')
	if end < 0 {
		end = len(path)
	}
	return m.longest(i, path, end)
}

// longest matches part i, a name or a star, with the longest text of at most end bytes with which the rest matches.
func (m *match) longest(i int, path string, end int) bool {
	part, next := &m.pattern.parts[i], ""
	least := 0
	if part.kind == named {
		least = 1
	}
	if i+1 == len(m.pattern.parts) && end < len(path) {
		return false
	}
	if i+1 < len(m.pattern.parts) {
		next = m.pattern.parts[i+1].text
	}
	for ; end >= least; end-- {
		if next != "" { // the text may end only where the literal behind it begins
			if end = strings.LastIndex(path[:min(len(path), end+len(next))], next); end < least {
				break
			}
		}
		if part.kind == named {
			m.values[part.name] = path[:end]
		}
		if m.from(i+1, path[end:]) {
			return true
		}
		if i+1 == len(m.pattern.parts) || m.steps > maxSteps {
			break
		}
	}
	if part.kind == named {
		m.values[part.name] = ""
	}
	return false
}

// matchOne returns what the only name stands for. All its places have the same text, so its length follows from the
// length of the path.
func (p *Pattern) matchOne(s string) (string, bool) {
	n := len(p.lits) - 1
	rest := len(s) - p.size
	if rest < n || rest%n != 0 {
		return "", false
	}
	size := rest / n
	id := ""
	for i, literal := range p.lits {
		if i > 0 {
			switch got := s[:size]; {
			case i == 1:
				id = got
			case got != id:
				return "", false
			}
			s = s[size:]
		}
		if !strings.HasPrefix(s, literal) {
			return "", false
		}
		s = s[len(literal):]
	}
	return id, true
}

// Path replaces the names for which value returns a text. Others, and stars, stay.
func (p *Pattern) Path(value func(name string) (string, bool)) string {
	return column.Fill(p.text, value)
}

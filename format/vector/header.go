package vector

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables/parquet"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/internal/literal"
)

// header are the columns of a text by their names, and those that Options.Names makes of them.
type header struct {
	at      map[string]int
	made    map[string]*madeColumn
	words   []string       // of a line
	record  record         // of it
	comma   rune           // between them; 0 for blanks
	opened  string         // the column and "/", of a cell of the line that is an object
	members []headerMember // of that
	names   []string       // those of at, of a few columns that have different names
	next    int            // of these, the one that was found last
}

// headerMember is a member of an object.
type headerMember struct{ name, value string }

// fewColumns is how many columns are found sooner one by one.
const fewColumns = 16

// columns returns columns that have these names, and numbers.
func columns(names []string) *header {
	h := &header{at: map[string]int{}, made: map[string]*madeColumn{}}
	h.record = h.word
	h.name(names)
	return h
}

// madeColumn is a part of the values of a column.
type madeColumn struct {
	from    string
	pattern *regexp.Regexp
	group   int
}

// isNumber reports whether the name of a column is its number.
func isNumber(name string) bool {
	name = strings.TrimSuffix(name, texts.ToEnd)
	for i := range len(name) {
		if name[i] < '0' || name[i] > '9' {
			return false
		}
	}
	return name != ""
}

// newHeader returns the columns of a header, or of none, which then have numbers.
func newHeader(o *Options, names []string) (*header, error) {
	h := columns(names)
	o.headed = true
	for from, rest := range o.Names {
		if names != nil && !slices.Contains(names, from) && !isNumber(from) {
			return nil, fault.New(fault.NotFound, "names", "no column %q; there are %s", from, fault.Names(names))
		}
		text, parts := "^", []string{}
		for more := true; more; {
			var before, name string
			before, name, rest, more = column.CutName(rest)
			if text += regexp.QuoteMeta(before); more {
				text, parts = text+"(.+)", append(parts, name)
			}
		}
		whole, err := regexp.Compile(text + "$")
		if err != nil {
			return nil, fmt.Errorf("vector: names of %q: %w", from, err)
		}
		for i, name := range parts {
			h.made[name] = &madeColumn{from, whole, i + 1}
		}
	}
	return h, nil
}

// name gives the columns names.
func (h *header) name(names []string) {
	for i, name := range slices.Backward(names) {
		h.at[name] = i
	}
	h.names, h.next = nil, 0
	if len(h.at) == len(names) && len(names) <= fewColumns {
		h.names = names
	}
}

// also gives a column one more name.
func (h *header) also(name, column string) {
	if at, ok := h.at[column]; ok {
		h.at[name], h.names = at, nil
	} else {
		h.made[name] = h.made[column]
	}
}

// find returns the number of a column by its name or, without such a name, by its number; rest reports whether the
// column has the rest of the line.
func (h *header) find(name string) (i int, rest, ok bool) {
	for range h.names { // mostly the next one is asked for
		if h.next++; h.next >= len(h.names) {
			h.next = 0
		}
		if h.names[h.next] == name {
			return h.next, false, true
		}
	}
	if i, ok = h.at[name]; ok && h.names == nil {
		return i, false, true
	}
	if !isNumber(name) {
		return 0, false, false
	}
	number, rest := strings.CutSuffix(name, texts.ToEnd)
	i, err := strconv.Atoi(number)
	return i, rest, err == nil && i < parquet.MaxColumns
}

// of returns the record of a line, until the next one.
func (h *header) of(words []string) record {
	h.words = words
	return h.record
}

// word returns what the line has in a column.
func (h *header) word(name string) (string, bool) {
	var made *madeColumn
	if len(h.made) > 0 {
		if made = h.made[name]; made != nil {
			name = made.from
		}
	}
	i, rest, ok := h.find(name)
	if !ok || i >= len(h.words) {
		name, ok = strings.CutPrefix(name, h.opened)
		for k := len(h.members) - 1; ok && k >= 0; k-- {
			if h.members[k].name == name {
				return h.members[k].value, true
			}
		}
		return "", false
	}
	word := strings.TrimSpace(h.words[i])
	if rest {
		word = strings.TrimSpace(strings.Join(h.words[i:], string(cmp.Or(h.comma, ' '))))
	}
	if made == nil {
		return asJSON(word), true
	}
	parts := made.pattern.FindStringSubmatch(word)
	if parts == nil {
		return "", false
	}
	return parts[made.group], true
}

// open reads the members of an object of JSON in a cell of the line. place is the path of one of them.
func (h *header) open(place string) error {
	column, _, _ := strings.Cut(place, "/")
	text, _ := h.word(column)
	h.opened, h.members = place[:len(column)+1], h.members[:0]
	err := visitMembers(json.RawMessage(text), func(name string, value json.RawMessage) {
		h.members = append(h.members, headerMember{name, string(value)})
	})
	if err != nil {
		return fault.New(fault.Corrupt, column, "%v", err)
	}
	return nil
}

// asJSON returns a list or dict that Python wrote as JSON, and other texts as they are.
func asJSON(text string) string {
	if (strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{")) && strings.ContainsAny(text, "'(") {
		if made, ok := literal.JSON(text); ok {
			return string(made)
		}
	}
	return text
}

// check refuses columns that a line does not have.
func (h *header) check(names []string, head []string) error {
	for _, name := range names {
		if made, ok := h.made[name]; ok {
			name = made.from
		}
		if i, _, ok := h.find(name); !ok || i >= len(head) {
			return fault.New(fault.NotFound, "line 1", "no column %q; there are %s, or the numbers from 0 to %d", name,
				fault.Names(head), len(head)-1)
		}
	}
	return nil
}

// isValue reports whether a word is a number.
func isValue(word string) bool { _, err := parseNumber(strings.TrimSpace(word)); return err == nil }

package build

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
	"github.com/chaski-eo/chaski/tables"
)

// schema is the columns of the samples of a level so far.
type schema struct {
	names []string
	types map[string]tables.Type
	first string // path of the first sample, or of its folder
	begun bool
}

// add checks the columns of the samples at path.
func (s *schema) add(t *tables.Table, path string) error {
	return s.addPart(t, path, "sample "+strconv.Quote(path))
}

// addLevel checks the columns of all samples of a level.
func (s *schema) addLevel(t *tables.Table, k int) error {
	return s.addPart(t, levelName(k), "level "+strconv.Itoa(k))
}

// addPart is add; part is what errors name.
func (s *schema) addPart(t *tables.Table, path, part string) error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Unsupported, part, fault.NoOffset, format, args...)
	}
	seen := map[string]bool{}
	for _, column := range t.Columns() {
		if what := badColumn(column.Name); what != "" {
			return bad("column %q %s", column.Name, what)
		}
		if seen[column.Name] {
			return bad("there are two columns %q", column.Name)
		}
		seen[column.Name] = true
		was, known := s.types[column.Name]
		switch {
		case !known && s.begun:
			return bad("has a column %q, which %q has not", column.Name, s.first)
		case known && was.Kind != tables.Null && column.Type.Kind != tables.Null && !was.Equal(column.Type):
			return bad("column %q has type %v, and %v in %q", column.Name, column.Type, was, s.first)
		}
		if !known {
			s.names = append(s.names, column.Name)
		}
		if !known || was.Kind == tables.Null {
			s.types[column.Name] = column.Type
		}
	}
	for _, name := range s.names {
		if !seen[name] {
			return bad("has no column %q, which %q has", name, s.first)
		}
	}
	if !s.begun {
		s.first, s.begun = path, true
	}
	return nil
}

// badColumn returns the reason why a column may not have this name, or "".
func badColumn(name string) string {
	switch {
	case name == "":
		return "has no name"
	case name == model.ColumnID || name == model.ColumnType || name == "path" || strings.HasPrefix(name, "internal:"):
		return "is one that the container has itself"
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return "is not UTF-8 without control characters"
	}
	return ""
}

// badIDFor returns the reason why a sample of level k may not have this id, or "". No path has the ids of the samples
// of TACO 3, whose folders are numbered.
func badIDFor(f Form, k int, id string) string {
	switch {
	case !f.Named() || k > 0:
		return badID(id)
	case strings.TrimSpace(id) == "":
		return "is blank"
	case !utf8.ValidString(id):
		return "is not UTF-8"
	}
	return ""
}

// badID returns the reason why no path may have this id, or "".
func badID(id string) string {
	if what := taco2.BadID(id); what != "" {
		return what
	}
	if strings.HasPrefix(id, model.PadPrefix) {
		return `begins with "` + model.PadPrefix + `", which is reserved`
	}
	if strings.ContainsFunc(id, unicode.IsControl) {
		return "holds a control character"
	}
	return ""
}

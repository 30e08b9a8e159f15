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

// checkColumns checks the names of the columns of a level.
func checkColumns(t *tables.Table, k int) error {
	bad := func(format string, args ...any) error {
		return unsupported("level "+strconv.Itoa(k), format, args...)
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

// unsupported returns an error about a part of a container.
func unsupported(part, format string, args ...any) *fault.Error {
	return fault.New(fault.Unsupported, part, fault.NoOffset, format, args...)
}

package taco2

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/rules"
)

// The rules of TACO 2.0.0 for COLLECTION.json ("TACO-level Fields"). Documents that violate them
// can be read anyway, so each violation is a note.

var idForm = regexp.MustCompile(`^[a-z0-9_-]+$`)

// maxTitle is the largest length of a title, in characters.
const maxTitle = 250

// core are the members of all documents.
var core = []rules.Field{
	rules.Must("id", rules.Leaf("text of a-z, 0-9, _ and -", func(v any) bool {
		s, ok := v.(string)
		return ok && idForm.MatchString(s)
	})),
	rules.Must("taco_version", rules.Leaf("of version 2, as containers of this form are", func(v any) bool {
		s, ok := v.(string)
		return ok && strings.HasPrefix(s, "2.")
	})),
	rules.Must("dataset_version", rules.Text), rules.Must("description", rules.Text),
	rules.Must("licenses", rules.Texts), rules.Must("providers", people), rules.Must("tasks", rules.Texts),
	rules.May("curators", people), rules.May("keywords", rules.Texts),
	rules.May("title", rules.Leaf(fmt.Sprintf("text of at most %d characters", maxTitle), func(v any) bool {
		s, ok := v.(string)
		return ok && utf8.RuneCountInString(s) <= maxTitle
	})),
	rules.May("extent", rules.Extent),
}

// CoreViolations is Violations for the members that all documents have.
func CoreViolations(doc map[string]json.RawMessage) (all []string) {
	c := rules.Checker(func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) })
	for _, f := range core {
		v := any(nil)
		if Has(doc[f.Name]) {
			v = rules.Decoded(doc[f.Name])
		}
		if list, ok := v.([]any); f.Need && (rules.Empty(v) || ok && len(list) == 0) {
			c("%s is missing or empty", f.Name)
		} else if v != nil {
			f.Is(c, f.Name, v)
		}
	}
	return all
}

// verifyCollection adds a note for each violation of the specification in COLLECTION.json.
func (c *reader) verifyCollection(r *model.Report) {
	var doc map[string]json.RawMessage
	if json.Unmarshal(c.coll.Raw, &doc) != nil {
		return // it was parsed when the container was opened
	}
	note := func(format string, args ...any) { r.Note("COLLECTION.json: "+format, args...) }
	for _, what := range append(CoreViolations(doc), Violations(doc)...) {
		note("%s", what)
	}
	c.verifyFields(note)
}

// Has reports whether a member exists and is not null.
func Has(b json.RawMessage) bool { return len(b) > 0 && string(b) != "null" }

// verifyFields compares the names in taco:field_schema with the columns of the tables. It does not
// compare types, because writers have used several names for them.
func (c *reader) verifyFields(note func(format string, args ...any)) {
	if c.coll.Fields == nil {
		note("has no taco:field_schema")
		return
	}
	var schema map[string][]json.RawMessage
	if json.Unmarshal(c.coll.Fields, &schema) != nil {
		note("taco:field_schema is not an object of lists")
		return
	}
	for k := range c.places {
		fields, ok := schema[model.LevelName(k)]
		if !ok {
			note("taco:field_schema has no %s", model.LevelName(k))
			continue
		}
		names := map[string]bool{}
		for _, raw := range fields {
			var pair []string
			if json.Unmarshal(raw, &pair) == nil && len(pair) >= 2 {
				names[pair[0]] = true
			} else {
				note("taco:field_schema has %s for %s, which is not [name, type]", raw, model.LevelName(k))
			}
		}
		ours := func(name string) bool { return strings.HasPrefix(name, "internal:") }
		var violations []string
		for _, col := range c.levels[k].Table.Columns() {
			if !names[col.Name] && !ours(col.Name) {
				violations = append(violations, col.Name)
			}
			delete(names, col.Name)
		}
		missing := slices.DeleteFunc(slices.Sorted(maps.Keys(names)), ours)
		if len(missing) > 0 {
			note("taco:field_schema has %q, which the table of %s has not", missing, model.LevelName(k))
		}
		if len(violations) > 0 {
			note("taco:field_schema has not %q, which the table of %s has", violations, model.LevelName(k))
		}
	}
}

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
	for _, field := range core {
		value := any(nil)
		if Has(doc[field.Name]) {
			value = rules.Decoded(doc[field.Name])
		}
		if list, ok := value.([]any); field.Need && (rules.Empty(value) || ok && len(list) == 0) {
			c("%s is missing or empty", field.Name)
		} else if value != nil {
			field.Is(c, field.Name, value)
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
	for level := range c.places {
		fields, ok := schema[model.LevelName(level)]
		if !ok {
			note("taco:field_schema has no %s", model.LevelName(level))
			continue
		}
		names := map[string]bool{}
		for _, raw := range fields {
			var pair []string
			if json.Unmarshal(raw, &pair) == nil && len(pair) >= 2 {
				names[pair[0]] = true
			} else {
				note("taco:field_schema has %s for %s, which is not [name, type]", raw, model.LevelName(level))
			}
		}
		ours := func(name string) bool { return strings.HasPrefix(name, "internal:") }
		var violations []string
		for _, col := range c.levels[level].Table.Columns() {
			if !names[col.Name] && !ours(col.Name) {
				violations = append(violations, col.Name)
			}
			delete(names, col.Name)
		}
		missing := slices.DeleteFunc(slices.Sorted(maps.Keys(names)), ours)
		if len(missing) > 0 {
			note("taco:field_schema has %q, which the table of %s has not", missing, model.LevelName(level))
		}
		if len(violations) > 0 {
			note("taco:field_schema has not %q, which the table of %s has", violations, model.LevelName(level))
		}
	}
}

// Members of COLLECTION.json that extensions of a dataset define: Labels, OpticalData, SplitStrategy and Publications
// of tacotoolbox 0.26.9, which the text of TACO 0.2.0 has under other names; and the people of the text of 2.0.0.

// extensions are the members of extensions with the rule of each.
var extensions = []rules.Field{
	rules.Must("labels:classes", rules.List("name", rules.Must("name", rules.Text),
		rules.Must("category", rules.TextOrWhole), rules.May("description", rules.Text))),
	rules.May("labels:description", rules.Text), rules.May("labels:num_classes", rules.Whole),
	rules.Must("optical:sensor", rules.Text),
	rules.May("optical:bands", rules.List("name", rules.Must("name", rules.Text), rules.May("index", rules.Whole),
		rules.May("common_name", rules.Text), rules.May("description", rules.Text), rules.May("unit", rules.Text),
		rules.May("center_wavelength", rules.Number), rules.May("full_width_half_max", rules.Number))),
	rules.May("optical:num_bands", rules.Whole),
	rules.May("publications", rules.List("", rules.Must("doi", rules.Text), rules.Must("citation", rules.Text),
		rules.May("summary", rules.Text))),
	// The text of TACO 0.2.0 has all strategies but "manual".
	rules.May("split:strategy", rules.OneOf("random", "stratified", "manual", "other", "none", "unknown")),
}

// Counts are members that say how many elements another has.
var Counts = map[string]string{"labels:num_classes": "labels:classes", "optical:num_bands": "optical:bands"}

// ExtensionMembers returns the members of a namespace, such as "labels", or nil if no extension has it.
func ExtensionMembers(namespace string) (names []string) {
	for _, f := range extensions {
		if strings.HasPrefix(f.Name, namespace+":") {
			names = append(names, f.Name)
		}
	}
	return names
}

// Violations returns the violations in members of extensions in COLLECTION.json, one sentence each.
func Violations(doc map[string]json.RawMessage) (all []string) {
	c := rules.Checker(func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) })
	values := map[string]any{}
	for _, f := range extensions {
		if Has(doc[f.Name]) {
			values[f.Name] = rules.Decoded(doc[f.Name])
		}
	}
	for _, field := range extensions {
		value := values[field.Name]
		namespace, _, some := strings.Cut(field.Name, ":")
		if value != nil {
			field.Is(c, field.Name, value)
		} else if some && field.Need {
			missing := func(name string) bool { return values[name] == nil }
			others := slices.DeleteFunc(ExtensionMembers(namespace), missing)
			if len(others) > 0 {
				c("%s is missing: %s needs it", field.Name, others[0])
			}
		}
		list, ok := values[Counts[field.Name]].([]any)
		if ok && value != nil && fmt.Sprint(value) != fmt.Sprint(len(list)) {
			c("%s is %s: %s has %d", field.Name, rules.Shown(value), Counts[field.Name], len(list))
		}
	}
	return all
}

// person is what providers and curators have.
var person = []rules.Field{rules.May("name", rules.Text), rules.May("organization", rules.Text),
	rules.May("url", rules.Text), rules.May("email", rules.Text)}

// people is the rule of providers and curators: objects with the members of the text of 2.0.0 and of tacotoolbox.
func people(c rules.Checker, at string, v any) {
	rules.List("", person...)(c, at, v)
	list, _ := v.([]any)
	for i := range list {
		p, ok := list[i].(map[string]any)
		if ok && rules.Empty(p["name"]) && rules.Empty(p["organization"]) {
			c("%s[%d] has neither name nor organization: it must have one", at, i)
		}
		if mail, ok := p["email"].(string); ok && !strings.Contains(mail, "@") {
			c("%s[%d].email is %q: it must be an address with @", at, i, mail)
		}
	}
}

// BadID returns the reason why an id is not allowed, or "".
func BadID(id string) string {
	switch {
	case id == "":
		return "is empty"
	case id == "." || id == "..":
		return "is a name of folders"
	case !utf8.ValidString(id):
		return "is not UTF-8"
	case strings.ContainsAny(id, "/\\:\x00"):
		return `holds one of / \ : or NUL`
	case strings.HasPrefix(id, "__") && !model.IsPadding(id):
		return `begins with "__", which is reserved`
	}
	return ""
}

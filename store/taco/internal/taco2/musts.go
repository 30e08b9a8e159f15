package taco2

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// The rules of TACO 2.0.0 for COLLECTION.json ("TACO-level Fields"). Documents that violate them
// can be read anyway, so each violation is a note.

// IDForm is the form of the id of a dataset: lower-case letters, digits, "_" and "-".
var IDForm = regexp.MustCompile(`^[a-z0-9_-]+$`)

// MaxTitle is the largest length of a title, in characters.
const MaxTitle = 250

// verifyCollection adds a note for each violation of the specification in COLLECTION.json.
func (c *Container) verifyCollection(r *model.Report) {
	var doc map[string]json.RawMessage
	if json.Unmarshal(c.coll.Raw, &doc) != nil {
		return // it was parsed when the container was opened
	}
	note := func(format string, args ...any) { r.Note("COLLECTION.json: "+format, args...) }
	if !IDForm.MatchString(c.coll.ID) {
		note("id %q: only a-z, 0-9, _ and - are allowed", c.coll.ID)
	}
	for _, name := range []string{"taco_version", "dataset_version", "description"} {
		if text, ok := as[string](doc[name]); !ok || text == "" {
			note("%s is missing, empty or not a string", name)
		}
	}
	if v := c.coll.Version; v != "" && !strings.HasPrefix(v, "2.") {
		note("taco_version is %q: containers of this form are of version 2", v)
	}
	for _, name := range []string{"licenses", "tasks"} {
		if list, ok := as[[]string](doc[name]); !ok || len(list) == 0 {
			note("%s is missing, empty or not a list of strings", name)
		}
	}
	people, ok := as[[]map[string]any](doc["providers"])
	if !ok || len(people) == 0 {
		note("providers is missing, empty or not a list of objects")
	}
	violations := PeopleViolations("providers", people)
	if Has(doc["curators"]) {
		if people, ok = as[[]map[string]any](doc["curators"]); !ok {
			note("curators is not a list of objects")
		}
		violations = append(violations, PeopleViolations("curators", people)...)
	}
	for _, what := range append(violations, Violations(doc)...) {
		note("%s", what)
	}
	if Has(doc["keywords"]) {
		if _, ok := as[[]string](doc["keywords"]); !ok {
			note("keywords is not a list of strings")
		}
	}
	if Has(doc["title"]) {
		if text, ok := as[string](doc["title"]); !ok || utf8.RuneCountInString(text) > MaxTitle {
			note("title is not a string of at most %d characters", MaxTitle)
		}
	}
	if Has(doc["extent"]) {
		c.verifyExtent(doc["extent"], note)
	}
	c.verifyFields(note)
}

// as decodes a value. ok is false if it is missing, null or of another type.
func as[T any](b json.RawMessage) (v T, ok bool) { return v, Has(b) && json.Unmarshal(b, &v) == nil }

// Has reports whether a member exists and is not null.
func Has(b json.RawMessage) bool { return len(b) > 0 && string(b) != "null" }

func (c *Container) verifyExtent(b json.RawMessage, note func(format string, args ...any)) {
	extent, ok := as[map[string]json.RawMessage](b)
	if !ok {
		note("extent is not an object")
		return
	}
	if Has(extent["spatial"]) {
		box, ok := as[[]float64](extent["spatial"])
		if !ok || !model.OnGlobe(box) {
			note("extent.spatial %s is not [west, south, east, north] in degrees", extent["spatial"])
		}
	}
	if Has(extent["temporal"]) {
		if times, ok := as[[]string](extent["temporal"]); !ok || len(times) != 2 {
			note("extent.temporal %s is not [start, end], two strings", extent["temporal"])
		}
	}
}

// verifyFields compares the names in taco:field_schema with the columns of the tables. It does not
// compare types, because writers have used several names for them.
func (c *Container) verifyFields(note func(format string, args ...any)) {
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
		fields, ok := schema[partOf(k)]
		if !ok {
			note("taco:field_schema has no %s", partOf(k))
			continue
		}
		names := map[string]bool{}
		for _, raw := range fields {
			if pair, ok := as[[]string](raw); ok && len(pair) >= 2 {
				names[pair[0]] = true
			} else {
				note("taco:field_schema has %s for %s, which is not [name, type]", raw, partOf(k))
			}
		}
		var violations []string
		for _, col := range c.levels[k].tbl.Columns() {
			if !names[col.Name] && !strings.HasPrefix(col.Name, "internal:") {
				violations = append(violations, col.Name)
			}
			delete(names, col.Name)
		}
		var missing []string
		for name := range names {
			if !strings.HasPrefix(name, "internal:") {
				missing = append(missing, name)
			}
		}
		slices.Sort(missing)
		if len(missing) > 0 {
			note("taco:field_schema has %q, which the table of %s has not", missing, partOf(k))
		}
		if len(violations) > 0 {
			note("taco:field_schema has not %q, which the table of %s has", violations, partOf(k))
		}
	}
}

// verifyHierarchy compares the types and ids of taco:pit_schema with the tree below the first
// sample, which all others share.
func (c *Container) verifyHierarchy(r *model.Report) {
	if c.coll.PIT == nil || len(c.levels) == 0 || c.levels[0].tbl.Len() == 0 {
		return
	}
	folders := []int32{0} // at level k-1, below the first sample
	for k := 1; k < len(c.places); k++ {
		declared := c.coll.PIT.Hierarchy[strconv.Itoa(k)]
		if len(declared) != len(folders) {
			r.Note("taco:pit_schema has %d folders with samples of level %d, the first sample has %d",
				len(declared), k, len(folders))
			return
		}
		up, level := c.levels[k-1], c.levels[k]
		var below []int32
		for i, folder := range folders {
			var types, ids []string
			for _, row := range up.rows[up.first[folder]:up.first[folder+1]] {
				types, ids = append(types, string(level.types.Bytes(int(row)))), append(ids, level.ids.Str(int(row)))
				if string(level.types.Bytes(int(row))) == "FOLDER" {
					below = append(below, row)
				}
			}
			if !slices.Equal(types, declared[i].Type) || !slices.EqualFunc(ids, declared[i].ID, sameID) {
				r.Note("taco:pit_schema has %q of types %q at level %d, the first sample has %q of %q", declared[i].ID,
					declared[i].Type, k, ids, types)
			}
		}
		folders = below
	}
}

package build

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/store/taco/internal/taco3"
)

// named returns COLLECTION.json of TACO 3 with more members. Members that TACO 3 does not have go to the namespace
// taco2.
func (c *Collection) named(more ...jsonMember) ([]byte, error) {
	providers, others := people(c.Providers, "name", "roles", "url", "links")
	curators, _ := people(c.Curators)
	members := []jsonMember{{"taco:version", taco3.Current}, {"id", c.ID}, {"description", c.Description},
		{"licenses", c.Licenses}, {"providers", providers}}
	maybe := func(name string, value any, given bool) {
		if given {
			members = append(members, jsonMember{name, value})
		}
	}
	maybe("tasks", c.Tasks, len(c.Tasks) > 0)
	maybe("title", c.Title, c.Title != "")
	maybe("keywords", c.Keywords, len(c.Keywords) > 0)
	maybe("curators", curators, len(c.Curators) > 0)
	maybe("extent", c.Extent, c.Extent != nil)
	maybe(oldSpace+"providers", c.Providers, others)
	maybe(oldSpace+"dataset_version", c.DatasetVersion, c.DatasetVersion != "")
	members = append(members, more...)
	known, err := complete(c.More)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		members = append(members, jsonMember{newMember(name), known[name]})
	}
	doc, err := object(members).lines()
	if err != nil {
		return nil, err
	}
	if err := taco3.CheckCollection(doc); err != nil {
		return nil, unsupported(model.CollectionName, "cannot be that of TACO 3: %v", err)
	}
	return doc, nil
}

// people returns people or organisations, without members that are null. If allowed has names, it drops all other
// members; others reports whether there were any.
func people(list []map[string]any, allowed ...string) (out []map[string]any, others bool) {
	for _, item := range list {
		kept := map[string]any{}
		for name, value := range item {
			switch {
			case value == nil:
			case allowed == nil || slices.Contains(allowed, name):
				kept[name] = value
			default:
				others = true
			}
		}
		out = append(out, kept)
	}
	return out, others
}

// newMember returns the name of a further member in TACO 3.
func newMember(name string) string {
	space, field, ok := strings.Cut(name, ":")
	if ok && taco3.ColumnName(space+":x") {
		return name
	}
	if !ok {
		field = name
	}
	return oldSpace + field
}

// checkNamed checks the members that TACO 3 wants.
func (c *Collection) checkNamed() error {
	_, err := c.named(jsonMember{"taco:structure", []string{"x"}},
		jsonMember{"taco:metadata", object{{"sample", object{}}, {"children", object{}}}})
	return err
}

// modern takes what members of TACO 3 say of files and columns, and leaves the members that TACO 2 has, too.
func (c *Collection) modern(members map[string]json.RawMessage) {
	_ = json.Unmarshal(members["taco:structure"], &c.structure) // readers have checked it
	if json.Unmarshal(members["taco:metadata"], &c.declared) == nil {
		c.descriptions = map[string]string{}
		for level, columns := range c.declared {
			depth := taco3.Depth(level)
			for name, d := range columns {
				if d.Description != nil {
					c.descriptions[keyOf(depth, name)] = *d.Description
				}
			}
		}
	}
	for name, value := range members {
		space, field, _ := strings.Cut(name, ":")
		if space == "taco" {
			delete(members, name)
		} else if space+":" == oldSpace {
			delete(members, name)
			members[field] = value
		}
	}
	members["taco_version"] = quoted(Version)
}

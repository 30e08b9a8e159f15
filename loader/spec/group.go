package spec

import (
	"errors"
	"fmt"

	"github.com/chaski-eo/chaski/tables"
)

// Group is a number of consecutive containers of a source, with conditions for their samples.
type Group struct {
	// Paths is the number of containers of the group, at least 1. A group begins after the
	// containers of the group before it; Source comes first, then Parts.
	Paths int `json:"paths"`
	// Where lists conditions that see only the containers of the group.
	Where []Condition `json:"where,omitempty"`
	// Columns says what happens to columns that some containers of the group lack: "intersection"
	// (default) drops them, "fill_missing" fills them with nulls, "strict" is an error. For a group
	// of all containers it applies to fields, too.
	Columns string `json:"columns,omitempty"`
}

// maxNested is the depth of groups in groups. A spec is user input and groups are visited
// recursively, so that the depth must have a bound.
const maxNested = 8

// Joins reports whether the conditions begin with groups of containers. Groups can only come first.
func Joins(where []Condition) bool { return len(where) > 0 && where[0].Concat != nil }

// Joins reports whether the conditions join groups of containers with conditions of their own.
// Their dataset must then be opened with taco.Options.Chosen, because the groups join columns
// themselves.
func (s *Subset) Joins() bool { return Joins(s.Where) }

// ColumnsMode returns how the columns of all containers are joined: as their group says if there is
// only one group, else by tables.Intersection.
func (s *Subset) ColumnsMode() (tables.Mode, error) {
	if s.Joins() && len(s.Where[0].Concat) == 1 {
		return s.Where[0].Concat[0].Mode()
	}
	return tables.Intersection, nil
}

// validateGroups checks the groups of a condition. at is the index of the condition, depth the
// number of groups around it.
func validateGroups(groups []Group, at, depth int) error {
	switch {
	case at > 0:
		return errors.New("concat stands before all other conditions")
	case depth > maxNested || len(groups) == 0:
		return fmt.Errorf("concat of %d groups, in %d others", len(groups), depth)
	}
	for i, group := range groups {
		if group.Paths < 1 {
			return fmt.Errorf("concat: group %d has %d paths", i, group.Paths)
		}
		if _, err := group.Mode(); err != nil {
			return within("concat", err)
		}
		if err := validateWhere(group.Where, depth+1); err != nil {
			return within(fmt.Sprintf("concat: group %d", i), err)
		}
	}
	return nil
}

// Mode returns how the columns of the group are joined: Columns, or tables.Intersection by default.
func (g *Group) Mode() (tables.Mode, error) {
	if g.Columns == "" {
		return tables.Intersection, nil
	}
	return tables.ParseMode(g.Columns)
}

// conditions counts conditions, groups and the conditions in groups.
func conditions(where []Condition) int {
	n := len(where)
	for i := range where {
		for k := range where[i].Concat {
			n += 1 + conditions(where[i].Concat[k].Where)
		}
	}
	return n
}

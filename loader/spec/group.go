package spec

import (
	"errors"
	"fmt"

	"github.com/chaski-eo/chaski/tables"
)

// Group is some of the containers of a source, and the conditions that their samples have to meet.
type Group struct {
	// Paths is how many of Source and Parts belong to it: those behind the ones of the group before it.
	Paths int `json:"paths"`
	// Where are conditions that see the containers of the group alone.
	Where []Condition `json:"where,omitempty"`
	// Columns says what becomes of columns that not all containers of the group have: "intersection" (left out,
	// the default), "fill_missing" or "strict". That of a group of all containers holds for fields too.
	Columns string `json:"columns,omitempty"`
}

// maxNested bounds how deep groups lie in groups.
const maxNested = 8

// Joins reports whether conditions begin with groups.
func Joins(where []Condition) bool { return len(where) > 0 && where[0].Concat != nil }

// Joins reports whether the conditions join groups of containers that have conditions of their own: their dataset is
// opened with taco.Options.Chosen then.
func (s *Subset) Joins() bool { return Joins(s.Where) }

// ColumnsMode says how the columns of all containers are joined: as the group of all of them says, if there is one.
func (s *Subset) ColumnsMode() (tables.Mode, error) {
	if s.Joins() && len(s.Where[0].Concat) == 1 {
		return s.Where[0].Concat[0].Mode()
	}
	return tables.Intersection, nil
}

// validateGroups checks the groups of a condition. at is its place among the others.
func validateGroups(groups []Group, at, depth int) error {
	switch {
	case at > 0:
		return errors.New("concat stands before all other conditions")
	case depth > maxNested || len(groups) == 0:
		return fmt.Errorf("concat of %d groups, in %d others", len(groups), depth)
	}
	for i, g := range groups {
		if g.Paths < 1 {
			return fmt.Errorf("concat: group %d has %d paths", i, g.Paths)
		}
		if _, err := g.Mode(); err != nil {
			return fmt.Errorf("concat: %w", err)
		}
		if err := validateWhere(g.Where, depth+1); err != nil {
			return fmt.Errorf("concat: group %d: %w", i, err)
		}
	}
	return nil
}

func (g *Group) Mode() (tables.Mode, error) {
	if g.Columns == "" {
		return tables.Intersection, nil
	}
	return tables.ParseMode(g.Columns)
}

// conditions counts conditions, also those of groups.
func conditions(where []Condition) int {
	n := len(where)
	for i := range where {
		for k := range where[i].Concat {
			n += 1 + conditions(where[i].Concat[k].Where)
		}
	}
	return n
}

package query

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/format/tables"
)

// Map finds tables in a map whose keys are in lower case.
func Map(m map[string]*tables.Table) Tables {
	return func(_ context.Context, name string) (*tables.Table, error) {
		if t := m[strings.ToLower(name)]; t != nil {
			return t, nil
		}
		return nil, tables.NoTable(name, slices.Sorted(maps.Keys(m)))
	}
}

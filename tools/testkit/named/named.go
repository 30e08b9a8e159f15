// Package named gives tables names, for tests of SQL.
package named

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/format/tables"
)

// Tables finds tables by their names, in letters of either case.
func Tables(m map[string]*tables.Table) func(ctx context.Context, name string) (*tables.Table, error) {
	return func(_ context.Context, name string) (*tables.Table, error) {
		if t := m[strings.ToLower(name)]; t != nil {
			return t, nil
		}
		return nil, tables.NoTable(name, slices.Sorted(maps.Keys(m)))
	}
}

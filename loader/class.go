package loader

import (
	"context"
	"maps"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
)

// classSource is one of the sources that have the strings of a field of classes.
type classSource struct {
	table    rows.Table
	source   *Source
	selected bool // the table has only the rows that the source selects
}

// findClasses returns the strings of the column of field number i in all sources, in the order of their bytes.
func findClasses(ctx context.Context, i int, dtype string, sources []classSource) ([]string, error) {
	seen := map[string]bool{}
	limit := spec.ClassLimit(dtype)
	for _, s := range sources {
		// Rows that the table lacks would give other numbers to the same strings.
		if s.selected && (len(s.source.Where) > 0 || s.source.Split.OfRows()) {
			return nil, fault.WithFile(fault.New(fault.Unsupported, "classes", fault.NoOffset,
				"only the selected rows of a container are known: give the classes"), s.source.Source)
		}
		for row := range s.table.Len() {
			v, err := s.table.Value(ctx, i, row)
			switch {
			case err != nil:
				return nil, err
			case v.Null || v.Text == "" || seen[v.Text]:
				continue
			}
			if seen[v.Text] = true; len(seen) > limit {
				return nil, fault.WithFile(fault.New(fault.Limit, "classes", fault.NoOffset,
					"over %d strings, the most for dtype %q", limit, dtype), s.source.Source)
			}
		}
	}
	if len(seen) == 0 {
		return nil, fault.New(fault.NotFound, "classes", fault.NoOffset, "no sample has one")
	}
	return slices.Sorted(maps.Keys(seen)), nil
}

package rows

import (
	"context"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/store/catalog"
)

// named returns a column by its name, or the texts that a name with others in braces becomes, as "{scene}_{tile}" does
// with the columns scene and tile. A row in which one of these is null has a null.
func (t *Table) named(ctx context.Context, name string) (*Column, error) {
	return joinColumns(name, func(name string) (*Column, error) {
		found, err := t.Column(ctx, name)
		if name == column.RowColumn && fault.KindOf(err) == fault.NotFound {
			return column.Numbers(t.N), nil
		}
		return found, err
	})
}

// joinColumns is named with the function that finds columns of other tables.
func joinColumns(name string, find func(name string) (*Column, error)) (*Column, error) {
	found, err := find(name)
	names := column.Names(name)
	if len(names) == 0 || fault.KindOf(err) != fault.NotFound {
		return found, err
	}
	parts := make([]*Column, len(names))
	for i, part := range names {
		if parts[i], err = find(part); err != nil {
			return nil, err
		}
		if kind := parts[i].Kind; kind != catalog.Text && kind != catalog.Int || parts[i].Unit != 0 {
			return nil, fault.New(fault.Unsupported, "column "+part,
				"it must hold strings or whole numbers to be a part of %q", name)
		}
	}
	return column.Join(parts, func(values []catalog.Value) catalog.Value {
		if slices.ContainsFunc(values, func(v catalog.Value) bool { return v.Null }) {
			return catalog.Value{Null: true}
		}
		text := make([]byte, 0, 2*len(name))
		return catalog.Value{Text: column.AppendFill(text, name, func(part string) (string, bool) {
			i := slices.Index(names, part)
			return values[i].In(parts[i].Kind), true
		})}
	}), nil
}

// inBraces returns the columns that names in braces name.
func inBraces(names []string) (parts []string) {
	for _, name := range names {
		parts = append(parts, column.Names(name)...)
	}
	return parts
}

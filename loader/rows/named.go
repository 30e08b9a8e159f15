package rows

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
)

// named returns a column by its name, as filled does, or the numbers of the rows.
func (t *Table) named(ctx context.Context, name string) (*Column, error) {
	return filled(name, func(name string) (*Column, error) {
		found, err := t.Column(ctx, name)
		if name == column.RowColumn && fault.KindOf(err) == fault.NotFound {
			return column.Numbers(t.N), nil
		}
		return found, err
	})
}

// filled returns the column that find finds by a name, or the texts that a name with others in braces becomes, as
// "{scene}_{tile}" does with the columns scene and tile. A row in which one of these is null has a null.
func filled(name string, find func(name string) (*Column, error)) (*Column, error) {
	found, err := find(name)
	if len(column.Names(name)) == 0 || fault.KindOf(err) != fault.NotFound {
		return found, err
	}
	return column.Filled(name, false, find)
}

// inBraces returns the columns that names in braces name.
func inBraces(names []string) (parts []string) {
	for _, name := range names {
		parts = append(parts, column.Names(name)...)
	}
	return parts
}

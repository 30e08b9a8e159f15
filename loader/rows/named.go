package rows

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/store/catalog"
)

// named returns a column by its name, or the texts that a name with others in braces becomes, as "{scene}_{tile}" does
// with the columns scene and tile. A row in which one of these is null has a null.
func (t *Table) named(ctx context.Context, name string) (Column, error) {
	return joinColumns(ctx, name, t.Column)
}

// joinColumns is named with the function that finds columns of other tables.
func joinColumns(ctx context.Context, name string, find func(context.Context, string) (Column, error)) (
	joined Column, err error) {
	found, err := find(ctx, name)
	names := column.Names(name)
	if len(names) == 0 || fault.KindOf(err) != fault.NotFound {
		return found, err
	}
	parts := make([]Column, len(names))
	for i, part := range names {
		if parts[i], err = find(ctx, part); err != nil {
			return Column{}, err
		}
		if kind := parts[i].Kind; kind != catalog.Text && kind != catalog.Int || parts[i].Unit != 0 {
			return Column{}, fault.New(fault.Unsupported, "column "+part,
				"it must hold strings or whole numbers to be a part of %q", name)
		}
	}
	return Column{Kind: catalog.Text, Scan: func(ctx context.Context,
		visit func(row int64, v catalog.Value) error) error {
		return scanTogether(ctx, parts, func(row int64, values []catalog.Value) error {
			if slices.ContainsFunc(values, func(v catalog.Value) bool { return v.Null }) {
				return visit(row, catalog.Value{Null: true})
			}
			return visit(row, catalog.Value{Text: []byte(column.Fill(name, func(part string) (string, bool) {
				i := slices.Index(names, part)
				return textOf(parts[i].Kind, values[i]), true
			}))})
		})
	}}, nil
}

// scanTogether visits the values of several columns in every row, in order.
func scanTogether(ctx context.Context, columns []Column, visit func(row int64, values []catalog.Value) error) error {
	var failed error
	rest := make([]func() (int64, catalog.Value, bool), len(columns)-1)
	for i := range rest {
		next, stop := iter.Pull2(func(yield func(int64, catalog.Value) bool) {
			err := columns[i+1].Scan(ctx, func(row int64, v catalog.Value) error {
				if !yield(row, v) {
					return errEnough
				}
				return nil
			})
			if err != nil && failed == nil {
				failed = err
			}
		})
		defer stop()
		rest[i] = next
	}
	values := make([]catalog.Value, len(columns))
	return columns[0].Scan(ctx, func(row int64, v catalog.Value) error {
		values[0] = v
		for i, next := range rest {
			_, v, ok := next()
			if !ok {
				return cmp.Or(failed, errEnough)
			}
			values[i+1] = v
		}
		return visit(row, values)
	})
}

// inBraces returns the columns that names in braces name.
func inBraces(names []string) (parts []string) {
	for _, name := range names {
		parts = append(parts, column.Names(name)...)
	}
	return parts
}

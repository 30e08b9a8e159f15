package rows

import (
	"context"
	"regexp"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/store/catalog"
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

// inSQL matches names that may be expressions of SQL: with parentheses, or with an operator between two operands.
var inSQL = regexp.MustCompile(`\(.*\)|\S *(\|\||::) *\S|\S [-+*/%] \S`)

// keyed returns a column of keys: found, which find returned with err, or else what the name says as an expression of
// SQL over data.
func keyed(ctx context.Context, name string, found *Column, err error,
	data func(ctx context.Context) (*tables.Table, error)) (*Column, error) {
	if fault.KindOf(err) != fault.NotFound || !inSQL.MatchString(name) {
		return found, err
	}
	all, failed := data(ctx)
	if failed != nil || all == nil {
		return nil, err
	}
	texts, failed := computed(ctx, numbered(all), name)
	if failed != nil {
		return nil, fault.New(fault.NotFound, "column "+name, "no column has the name, and as SQL: %v", failed)
	}
	return textsOrNull(texts), nil
}

// textsOrNull is the column of texts that are in memory, of which "" stands for null.
func textsOrNull(texts []string) *Column {
	return column.Of(catalog.Text, 0, int64(len(texts)), func(row int64) catalog.Value {
		return catalog.Value{Text: []byte(texts[row]), Null: texts[row] == ""}
	})
}

// computed returns what an expression of SQL is for each row of a table: strings or whole numbers, "" for null.
func computed(ctx context.Context, data *tables.Table, expression string) ([]string, error) {
	engine, err := tables.FindSQL()
	if err != nil {
		return nil, err
	}
	from := func(context.Context, string) (*tables.Table, error) { return data, nil }
	result, err := engine.Run(ctx, "SELECT ("+expression+") AS key FROM data", from, tables.QueryLimits{})
	if err != nil {
		return nil, err
	}
	if result.Len() != data.Len() {
		return nil, fault.New(fault.Unsupported, "column "+expression, "it is no value of each row")
	}
	return result.Names(ctx, "key")
}

// numbered returns a table with the numbers of its rows as column.RowColumn, if it has no column of that name.
func numbered(t *tables.Table) *tables.Table {
	if t.Index(column.RowColumn) >= 0 {
		return t
	}
	cols := []tables.Column{{Name: column.RowColumn, Type: tables.Ints}}
	return tables.Join(t, tables.New(t.Len(), cols, func(context.Context, int) (*tables.Vector, error) {
		return tables.NewInts(tables.Ints, num.Range[int64](0, t.Len()), nil), nil
	}))
}

// inBraces returns the columns that names in braces name.
func inBraces(names []string) (parts []string) {
	for _, name := range names {
		parts = append(parts, column.Names(name)...)
	}
	return parts
}

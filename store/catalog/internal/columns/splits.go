package columns

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
)

// SplitColumn is the column of a table of OpenSplits with the folder of each row.
const SplitColumn = "split"

// FileName ends the names of the columns in which a directory of images, as Hugging Face has it, names its files.
const FileName = "file_name"

// OpenSplits opens the metadata of several folders of images as one table in memory, with the paths of the images
// relative to the folder above, and SplitColumn unless the tables have one. names are the tables, and folders the
// paths of theirs.
func OpenSplits(ctx context.Context, o source.Opener, names, folders []string) (*Table, error) {
	parts := make([]*tables.Table, len(names))
	for i, name := range names {
		var part *Table
		var err error
		if magic.Named(source.Name(name)).Class == magic.Parquet {
			part, err = OpenShards(ctx, o, []string{name}, 0) // which does not stay open
		} else {
			part, err = Open(ctx, o, name, 0)
		}
		if err != nil {
			return nil, err
		}
		rows, err := part.Data(ctx)
		if err != nil {
			return nil, err
		}
		parts[i] = inFolder(rows, folders[i])
	}
	joined, err := tables.Concat(parts, column.FillMissing)
	if err != nil {
		return nil, err
	}
	out := &Table{memory: joined, begins: []int64{int64(joined.Len())}, part: "header"}
	for _, column := range joined.Columns() {
		out.names = append(out.names, column.Name)
	}
	return out, nil
}

// inFolder returns a table of images of a folder as one of the folder above.
func inFolder(t *tables.Table, folder string) *tables.Table {
	cols := t.Columns()
	if t.Index(SplitColumn) < 0 {
		cols = append(cols[:len(cols):len(cols)], tables.Column{Name: SplitColumn, Type: tables.Strings})
	}
	return tables.New(t.Len(), cols, func(ctx context.Context, i int) (*tables.Vector, error) {
		if i == len(t.Columns()) {
			return tables.NewStrings(slices.Repeat([]string{folder}, t.Len()), nil), nil
		}
		values, err := t.Column(ctx, cols[i].Name)
		if err != nil || values.Type().Kind != tables.String || !strings.HasSuffix(cols[i].Name, FileName) {
			return values, err
		}
		paths, nulls := make([]string, t.Len()), make([]bool, t.Len())
		for row := range paths {
			if nulls[row] = values.Null(row); !nulls[row] {
				paths[row] = path.Join(folder, string(values.Bytes(row)))
			}
		}
		return tables.NewStrings(paths, nulls), nil
	})
}

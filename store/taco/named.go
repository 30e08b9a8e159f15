package taco

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// LevelNames returns the names of the tables of a container of TACO 3, "sample", "children", "children/before", or nil
// if the tables have no names.
func (d *Dataset) LevelNames() []string {
	if len(d.parts) == 0 {
		return nil
	}
	return namesOf(d.parts[0])
}

// FileNamed returns the path of the file below each sample of TACO 3 that a field means by its name: with the name, or
// with one extension more ("image" is image.tif). "image", the name of a field that nobody named, means the only file,
// too. FileNamed returns name if no file is meant, or several.
func (d *Dataset) FileNamed(name string) string {
	if d.LevelNames() == nil {
		return name
	}
	files := d.parts[0].Named.Files
	if len(files) == 1 && name == "image" {
		return files[0]
	}
	found := ""
	for _, file := range files {
		if file == name {
			return name
		}
		if strings.TrimSuffix(file, path.Ext(file)) == name {
			if found != "" {
				return name
			}
			found = file
		}
	}
	return cmp.Or(found, name)
}

// Sequence returns the sequence of files that a field means by its name: an entry of taco:structure, with or without
// its bounds and what follows ("before/t" of before/t*[1,3].tif). It returns nil if no sequence is meant.
func (d *Dataset) Sequence(ctx context.Context, name string) (*store.Sequence, error) {
	if d.LevelNames() == nil {
		return nil, nil
	}
	var joined *store.Sequence
	for i, part := range d.parts {
		if part.Named.Sequence == nil {
			return nil, nil
		}
		sequence, err := part.Named.Sequence(ctx, name)
		if err != nil || sequence == nil {
			return nil, err
		}
		bases, err := d.bases(ctx, sequence.Level)
		if err != nil {
			return nil, err
		}
		for _, rows := range sequence.Rows {
			for k := range rows {
				rows[k] += bases[i]
			}
		}
		if joined != nil {
			sequence.Rows, sequence.Most = append(joined.Rows, sequence.Rows...), max(joined.Most, sequence.Most)
		}
		joined = sequence
	}
	return joined, nil
}

// LevelRows returns the level that holds the rows of a table with a name, and the rows. A container whose tables lack
// names, or have others, is fault.NotFound.
func (d *Dataset) LevelRows(ctx context.Context, name string) (level int, rows []int, err error) {
	if d.LevelNames() == nil {
		return 0, nil, fault.WithFile(fault.New(fault.NotFound, "level",
			"no level %.80q: the levels are 0 to %d", name, d.Levels()-1), d.name())
	}
	for i, part := range d.parts {
		table, depth, first, err := part.Named.Rows(ctx, name)
		if err != nil {
			return 0, nil, err
		}
		bases, err := d.bases(ctx, depth)
		if err != nil {
			return 0, nil, err
		}
		level = depth
		for row := range table.Len() {
			rows = append(rows, bases[i]+first+row)
		}
	}
	return level, rows, nil
}

// LevelTable returns a table of TACO 3 by its name, as it is stored.
func (d *Dataset) LevelTable(ctx context.Context, name string) (*tables.Table, error) {
	t, bases, err := d.concat(ctx, fmt.Sprintf("table %q", name),
		func(ctx context.Context, p *model.Container) (*tables.Table, error) {
			t, _, _, err := p.Named.Rows(ctx, name)
			return t, err
		})
	if err != nil || d.joined == nil {
		return t, err
	}
	return d.joined.withSource(t, bases), nil
}

// wide returns the table with a row for each sample.
func (d *Dataset) wide(ctx context.Context) (*tables.Table, error) {
	bases, err := d.bases(ctx, 0)
	if err != nil {
		return nil, err
	}
	t, _, err := d.concat(ctx, `table "dataset"`,
		func(ctx context.Context, p *model.Container) (*tables.Table, error) {
			return p.Named.Wide(ctx, bases[slices.Index(d.parts, p)], source.VSI)
		})
	return t, err
}

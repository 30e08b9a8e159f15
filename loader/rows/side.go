package rows

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// side is a table that is joined to a dataset.
type side struct {
	Match
	table *catalog.Table
	// fields are the numbers of fields in the table, by their numbers in the spec.
	fields map[int]int
}

// openSides opens the tables of a subset with their fields among some, and the columns that the subset and more name.
func openSides(ctx context.Context, s *spec.Subset, fields []spec.Field, more []string, o resources.Options) (
	sides []*side, err error) {
	for _, table := range s.Tables {
		if !magic.Named(source.Name(table.Path)).Class.Table() {
			way := ""
			if refusal := magic.Refusal(source.Name(table.Path)); refusal != "" {
				way = ": " + refusal
			}
			return nil, errors.Join(fmt.Errorf("tables: %q is no table (.csv, .tsv, .parquet, .json)%s", table.Path,
				way), closeSides(sides))
		}
		made := &side{Match: Match{SideTable: table}, fields: map[int]int{}}
		var sources []catalog.Source
		parts := inBraces([]string{table.Column})
		for _, name := range append(parts, table.Column) {
			sources = append(sources, catalog.Source{Field: name, Column: name, Kind: catalog.Text, Strings: true,
				Maybe: len(parts) > 0})
		}
		for i, field := range fields {
			if field.Column != "" && field.Column != table.On {
				place := CatalogSource(field)
				place.Maybe = true
				made.fields[i], sources = len(sources), append(sources, place)
			}
		}
		made.table, err = catalog.Open(ctx, table.Path, sources, CatalogOptions(s, more, o))
		if err != nil {
			return nil, errors.Join(InPart(err, "tables"), closeSides(sides))
		}
		maps.DeleteFunc(made.fields, func(i, _ int) bool { return !made.table.HasColumn(fields[i].Column) })
		sides = append(sides, made)
	}
	return sides, nil
}

// JoinTables gives a table the columns of the tables of a subset, which are open until the table is closed.
func JoinTables(ctx context.Context, t *Table, s *spec.Subset, o resources.Options) error {
	sides, err := openSides(ctx, s, nil, nil, o)
	if err != nil {
		return err
	}
	if err := t.joinSides(ctx, sides); err != nil {
		return errors.Join(err, closeSides(sides))
	}
	return nil
}

func closeSides(sides []*side) (err error) {
	for _, s := range sides {
		err = errors.Join(err, s.table.Close())
	}
	return err
}

// ownFields returns the fields that are the dataset's own, at least one, and for each field its number among them, -1
// for fields of sides.
func ownFields(fields []spec.Field, sides []*side) (own []spec.Field, places []stack) {
	places = make([]stack, len(fields))
	for i := range fields {
		if slices.ContainsFunc(sides, func(s *side) bool { _, ok := s.fields[i]; return ok }) {
			places[i].first = -1
			continue
		}
		places[i].first, own = len(own), append(own, fields[i])
	}
	if len(own) == 0 {
		own = []spec.Field{{Name: sides[0].On, Column: sides[0].On, Kind: spec.TextField}}
	}
	return own, places
}

// joinFields gives a table whose fields are its own, as ownFields returned them, the fields of sides,
// too.
func (t *Table) joinFields(ctx context.Context, fields []spec.Field, places []stack, sides []*side) error {
	column := t.Column
	if err := t.joinSides(ctx, sides); err != nil {
		return err
	}
	for i, field := range fields {
		if places[i].first >= 0 {
			continue
		}
		joined, err := sideOf(ctx, column, sides, field.Column)
		if err != nil {
			return InField(field.Name, err)
		}
		places[i].first = len(t.Fields)
		made := joined.field(joined.fields[i])
		if t.Fields = append(t.Fields, made); made.Kind == catalog.Raster {
			t.Misplaced = nil // it knows the dataset's own rasters
		}
	}
	return t.stack(fields, places)
}

// joinSides finds the rows of tables for all samples, and gives the table their columns.
func (t *Table) joinSides(ctx context.Context, sides []*side) error {
	hash := digest.New()
	_, _ = hash.WriteString(t.Fingerprint)
	for _, s := range sides {
		if err := s.find(ctx, t); err != nil {
			return fault.WithFile(InPart(err, "tables"), s.Path)
		}
		t.matches = append(t.matches, &s.Match)
		_, _ = hash.WriteString(s.table.Fingerprint())
		for _, row := range s.row {
			hash.Number(uint64(row))
		}
	}
	own, data, closing := t.Column, t.Data, t.Close
	t.Fingerprint = hash.Hex()
	t.Column = func(ctx context.Context, name string) (*Column, error) {
		s, err := sideOf(ctx, own, sides, name)
		switch {
		case err != nil:
			return nil, err
		case s == nil:
			return own(ctx, name)
		}
		return s.table.ColumnAt(name, s.row)
	}
	if data != nil {
		t.Data = func(ctx context.Context) (*tables.Table, error) {
			own, err := data(ctx)
			if err != nil {
				return nil, err
			}
			return withSides(ctx, own, sides)
		}
	}
	t.Close = func() error { return errors.Join(closing(), closeSides(sides)) }
	return nil
}

// sideOf returns the table that has a column, nil of none. An ambiguous name is Unsupported; the columns that
// paths make give way. own returns columns of the dataset itself.
func sideOf(ctx context.Context, own func(context.Context, string) (*Column, error), sides []*side, name string) (
	found *side, err error) {
	twice := func(other string) error {
		return fault.New(fault.Unsupported, "column "+name, "it is a column of %s and of %s: name it "+
			"differently in one of them", path.Base(found.Path), other)
	}
	for _, s := range sides {
		switch {
		case name == s.On:
			return nil, nil
		case !s.table.HasColumn(name):
		case found != nil:
			return nil, twice(path.Base(s.Path))
		default:
			found = s
		}
	}
	if found == nil || slices.Contains(catalog.PathColumns, name) {
		return found, nil
	}
	if _, err := own(ctx, name); fault.KindOf(err) != fault.NotFound {
		return nil, twice("the dataset")
	}
	return found, nil
}

// find finds the row of the table for each sample. Two rows with one key are Corrupt.
func (s *side) find(ctx context.Context, t *Table) error {
	if err := budget.Grow(ctx, 4*t.N); err != nil {
		return err
	}
	keys, err := s.keys(ctx)
	if err != nil {
		return err
	}
	found, err := t.match(ctx, keys, s.On, true)
	if err != nil {
		return err
	}
	if err := found.Unique(s.Column); err != nil {
		return err
	}
	err = found.Err("column "+s.Column, "name the samples by a column that tells them apart, such as path")
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(keys, func(key string) bool { return key != "" }); i >= 0 {
		s.example = keys[i]
	}
	s.row = slices.Repeat([]int32{-1}, int(t.N))
	for row, key := range found.Matches() {
		s.row[row] = key
	}
	return nil
}

// keys reads the keys of the table, whose numbers are its rows; "" for null.
func (s *side) keys(ctx context.Context) (keys []string, err error) {
	found, err := joinColumns(s.Column, s.table.Column)
	if err != nil {
		return nil, err
	}
	keys = make([]string, 0, s.table.Len())
	return keys, found.Scan(ctx, func(_ int64, v catalog.Value) error {
		if keys = append(keys, ""); !v.Null {
			keys[len(keys)-1] = v.In(found.Kind)
		}
		return nil
	})
}

// field returns a field of the table for the samples of the dataset.
func (s *side) field(number int) Field {
	below := OfCatalog(s.table).Fields[number]
	made := Field{
		Kind: below.Kind,
		Asset: func(ctx context.Context, row int64) (catalog.Asset, error) {
			if from := s.row[row]; from >= 0 {
				return below.Asset(ctx, int64(from))
			}
			return catalog.Asset{}, fault.WithFile(fault.New(fault.NotFound, "column "+s.Column,
				"no row has the key of sample %d", row), s.Path)
		},
		Value: func(ctx context.Context, row int64) (catalog.Value, error) {
			if from := s.row[row]; from >= 0 {
				return below.Value(ctx, int64(from))
			}
			return catalog.Value{Null: true}, nil
		},
	}
	if below.Announce != nil {
		made.Announce = func(row int64) (over func()) {
			if from := s.row[row]; from >= 0 {
				return below.Announce(int64(from))
			}
			return func() {}
		}
	}
	return made
}

// withSides returns a table for queries, whose rows are the samples, with the columns of the tables that it lacks.
func withSides(ctx context.Context, own *tables.Table, sides []*side) (*tables.Table, error) {
	cols, from := slices.Clone(own.Columns()), slices.Repeat([]*tables.Table{own}, len(own.Columns()))
	for _, s := range sides {
		data, err := s.table.Data(ctx)
		if err != nil {
			return nil, err
		}
		data = data.Take(num.As[int](s.row))
		for _, c := range data.Columns() {
			same := func(other tables.Column) bool { return other.Name == c.Name }
			i := slices.IndexFunc(cols, same)
			switch {
			case i < 0:
				cols, from = append(cols, c), append(from, data)
			case slices.Contains(catalog.PathColumns, c.Name) && c.Name != s.On:
				cols[i], from[i] = c, data
			}
		}
	}
	return tables.New(own.Len(), cols, func(ctx context.Context, i int) (*tables.Vector, error) {
		return from[i].Column(ctx, cols[i].Name)
	}), nil
}

package rows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog"
)

// side is a dataset that is joined to another one: mostly a table.
type side struct {
	spec.SideTable
	table   *Table
	arrays  []string // those that fields of the table have, of arrays
	row     []int32  // of the table for each sample, -1 without one
	example string   // the first key, for errors
	// of has the rows of each key by the first one, of a table with several rows for a key; nil of others.
	of map[int32][]int32
	// fields are the numbers of fields in the table, by their numbers in the spec.
	fields map[int]int
}

// has reports whether the table has a column, other than the numbers of its rows.
func (s *side) has(ctx context.Context, name string) bool {
	if t, ok := s.table.base.(*catalog.Table); ok {
		return t.HasColumn(name)
	}
	_, err := s.table.Column(ctx, name)
	return err == nil || slices.Contains(s.arrays, name)
}

// ownColumn returns the column of the side that a name means: of TABLE::COLUMN, whose table is the end of the side's
// path, and which nothing but the side has (said), COLUMN; of other names all.
func (s *side) ownColumn(name string) (column string, said bool) {
	if i := strings.LastIndex(name, source.Separator); i > 0 {
		if table := name[:i]; s.Path == table || strings.HasSuffix(s.Path, "/"+table) {
			return name[i+len(source.Separator):], true
		}
	}
	return name, false
}

// openSides opens the tables of a subset with their fields among some, and the columns that the subset and more name.
// Arrays among them have the dimensions dims, as the dataset has, where a field does not say.
func openSides(ctx context.Context, s *spec.Subset, dims string, fields []spec.Field, more []string,
	o resources.Options) (sides []*side, err error) {
	for _, table := range s.Tables {
		made := &side{SideTable: table, fields: map[int]int{}}
		if name, several := strings.CutSuffix(table.Column, spec.SeveralRows); several {
			made.Column, table.Column, made.of = name, name, map[int32][]int32{}
		}
		if !magic.Named(source.Name(table.Path)).Class.Table() {
			if err := made.openArrays(ctx, dims, fields, o); err != nil {
				return nil, errors.Join(InPart(err, "tables"), closeSides(sides))
			}
			sides = append(sides, made)
			continue
		}
		var sources []catalog.Source
		parts, expression := inBraces([]string{table.Column}), inSQL.MatchString(table.Column)
		for _, name := range append(parts, table.Column) {
			sources = append(sources, catalog.Source{Field: name, Column: name, Kind: catalog.Text, Strings: true,
				Maybe: len(parts) > 0 || expression})
		}
		for i, field := range fields {
			if field.Column != "" && field.Column != table.On {
				place := CatalogSource(field)
				column, said := made.ownColumn(field.Column)
				place.Column, place.Maybe = column, !said
				made.fields[i], sources = len(sources), append(sources, place)
			}
		}
		options := CatalogOptions(s, more, o)
		options.AllColumns = options.AllColumns || expression
		for _, name := range slices.Concat(options.Columns, options.Texts) {
			if column, said := made.ownColumn(name); said {
				options.Columns = append(options.Columns, column)
			}
		}
		opened, err := catalog.Open(ctx, table.Path, sources, options)
		if err != nil {
			return nil, errors.Join(InPart(err, "tables"), closeSides(sides))
		}
		made.table = New(opened)
		maps.DeleteFunc(made.fields, func(i, _ int) bool {
			column, _ := made.ownColumn(fields[i].Column)
			return !opened.HasColumn(column)
		})
		sides = append(sides, made)
	}
	return sides, nil
}

// openArrays opens the arrays of a store with the fields that they have.
func (s *side) openArrays(ctx context.Context, dims string, fields []spec.Field, o resources.Options) error {
	src := spec.Source{Source: s.Path, Dims: dims}
	kind, err := kindOf(ctx, &src, o)
	arrays, ok := kind.(store.Arrays)
	if !ok || err != nil {
		way := ""
		if refusal := magic.Refusal(source.Name(s.Path)); refusal != "" {
			way = ": " + refusal
		}
		return cmp.Or(err, fmt.Errorf("%q is neither a table (.csv, .tsv, .parquet, .json) nor a store of arrays%s",
			s.Path, way))
	}
	made, err := newArrays(ctx, arrays, &src, o)
	if err != nil {
		return err
	}
	for i, field := range fields {
		column, _ := s.ownColumn(field.Column)
		if column == "" || field.Column == s.On {
			continue
		}
		field.Column = column
		err := made.add(ctx, &field)
		if fault.KindOf(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return err
		}
		s.fields[i], s.arrays = len(s.arrays), append(s.arrays, column)
	}
	if s.arrays == nil {
		err = made.add(ctx, &spec.Field{Name: s.Column, Column: s.Column, Kind: spec.TextField})
	}
	if err != nil {
		return err
	}
	s.table, err = made.table()
	return err
}

// JoinTables gives a table the columns of the tables of a subset. Closing the table closes them, also after an error.
func JoinTables(ctx context.Context, t *Table, s *spec.Subset, o resources.Options) error {
	sides, err := openSides(ctx, s, "", nil, nil, o)
	if err != nil {
		return err
	}
	return t.joinSides(ctx, sides)
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
		own[len(own)-1].Column = strings.TrimPrefix(fields[i].Column, source.Separator)
	}
	if len(own) == 0 {
		own = []spec.Field{{Name: sides[0].On, Column: sides[0].On, Kind: spec.TextField}}
	}
	return own, places
}

// joinFields gives a table whose fields are its own, as ownFields returned them, the fields of sides,
// too.
func (t *Table) joinFields(ctx context.Context, fields []spec.Field, places []stack, sides []*side) error {
	if err := t.joinSides(ctx, sides); err != nil {
		return err
	}
	for i, field := range fields {
		if places[i].first >= 0 {
			continue
		}
		joined, _, err := sideOf(ctx, t.base, sides, field.Column)
		if err != nil {
			return InField(field.Name, err)
		}
		places[i].first = len(t.Fields)
		kind := joined.table.Fields[joined.fields[i]].Kind
		if joined.of != nil && (kind == catalog.Raster || kind.IsList()) {
			return InField(field.Name, fault.New(fault.Unsupported, "column "+field.Column, "several rows for a "+
				"sample make lists of numbers and of strings, and it holds %ss", kind))
		}
		made := joined.field(joined.fields[i])
		if t.Fields = append(t.Fields, made); made.Kind == catalog.Raster {
			t.misplaced = true // the store knows its own rasters
		}
	}
	return t.stack(fields, places)
}

// joinSides finds the rows of tables for all samples, and gives the table their columns.
func (t *Table) joinSides(ctx context.Context, sides []*side) error {
	if len(sides) > 0 { // but their rows are found by the dataset's own columns
		defer func() { t.store = &sided{t.base, sides} }()
	}
	hash := digest.New()
	_, _ = hash.WriteString(t.Fingerprint)
	for _, s := range sides {
		if err := s.find(ctx, t); err != nil {
			return fault.WithFile(InPart(err, "tables"), s.Path)
		}
		_, _ = hash.WriteString(s.table.Fingerprint)
		for _, row := range s.row {
			hash.Number(uint64(row))
		}
	}
	t.Fingerprint = hash.Hex()
	return nil
}

// sided is a store with the tables that are joined to it.
type sided struct {
	Store
	sides []*side
}

// sides returns the tables that are joined to a dataset.
func (t *Table) sides() []*side {
	if s, ok := t.store.(*sided); ok {
		return s.sides
	}
	return nil
}

func (s *sided) Column(ctx context.Context, name string) (*Column, error) {
	in, name, err := sideOf(ctx, s.Store, s.sides, name)
	switch {
	case err != nil:
		return nil, err
	case in == nil:
		return s.Store.Column(ctx, name)
	}
	return in.column(ctx, name)
}

func (s *sided) Close() error { return errors.Join(s.Store.Close(), closeSides(s.sides)) }

// sideOf returns the table that has a column and the column's name in it, nil of none. TABLE::COLUMN names the column
// of one table, and ::COLUMN one of the dataset itself. Another name that several have is Unsupported; the columns that
// paths make give way.
func sideOf(ctx context.Context, own Store, sides []*side, name string) (found *side, column string, err error) {
	if column, ok := strings.CutPrefix(name, source.Separator); ok {
		return nil, column, nil
	}
	twice := func(other string) error {
		file := path.Base(found.Path)
		return fault.New(fault.Unsupported, "column "+name, "it is a column of %s and of %s: name one of them, as in "+
			"%q", file, other, file+source.Separator+name)
	}
	for _, s := range sides {
		if column, said := s.ownColumn(name); said {
			return s, column, nil
		}
		switch {
		case name == s.On:
			return nil, name, nil
		case !s.has(ctx, name):
		case found != nil:
			return nil, name, twice(path.Base(s.Path))
		default:
			found = s
		}
	}
	if found == nil || slices.Contains(catalog.PathColumns, name) {
		return found, name, nil
	}
	if _, err := own.Column(ctx, name); fault.KindOf(err) != fault.NotFound {
		return nil, name, twice("the dataset")
	}
	return found, name, nil
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
	s.group(keys)
	found, err := t.match(ctx, keys, s.On, true)
	if err != nil {
		return err
	}
	way := fmt.Sprintf(", or %q, which makes lists of the values of several", s.Column+spec.SeveralRows)
	if err := found.Unique(s.Column, way); err != nil {
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

// group takes the keys from all rows but the first of each key, if a key may have several.
func (s *side) group(keys []string) {
	if s.of == nil {
		return
	}
	first := map[string]int32{}
	for row, key := range keys {
		if key == "" {
			continue
		}
		if _, again := first[key]; again {
			keys[row] = ""
		} else {
			first[key] = int32(row)
		}
		s.of[first[key]] = append(s.of[first[key]], int32(row))
	}
}

// keys reads the keys of the table, whose numbers are its rows; "" for null.
func (s *side) keys(ctx context.Context) (keys []string, err error) {
	// Arrays have no numbers of rows: a wrong name must not become them.
	own := func(name string) (*Column, error) { return s.table.Column(ctx, name) }
	found, err := filled(s.Column, own)
	if found, err = keyed(ctx, s.Column, found, err, s.table.Data); err != nil {
		return nil, err
	}
	keys = make([]string, 0, s.table.N)
	return keys, found.Scan(ctx, func(_ int64, v catalog.Value) error {
		if keys = append(keys, ""); !v.Null {
			keys[len(keys)-1] = v.In(found.Kind)
		}
		return nil
	})
}

// field returns a field of the table for the samples of the dataset.
func (s *side) field(number int) Field {
	below := &s.table.Fields[number]
	made := Field{Kind: below.Kind, Size: below.Size, values: s, facts: s, number: number}
	if s.of != nil {
		made.Kind |= catalog.List
	}
	return made
}

// column returns a column of the table for the samples of the dataset.
func (s *side) column(ctx context.Context, name string) (*Column, error) {
	if s.of != nil && name != s.Column {
		return nil, fault.New(fault.Unsupported, "column "+name, "it is of a table with several rows for each "+
			"sample, and so of fields alone")
	}
	found, err := s.table.Column(ctx, name)
	if err != nil {
		return nil, err
	}
	return catalog.Picked(found, s.row), nil
}

// Asset implements Values, as Value does.
func (s *side) Asset(ctx context.Context, field int, row int64) (catalog.Asset, error) {
	if from := s.row[row]; from >= 0 {
		return s.table.Fields[field].Asset(ctx, int64(from))
	}
	return catalog.Asset{}, fault.WithFile(fault.New(fault.NotFound, "column "+s.Column,
		"no row has the key of sample %d", row), s.Path)
}

func (s *side) Value(ctx context.Context, field int, row int64) (v catalog.Value, err error) {
	below, from := &s.table.Fields[field], s.row[row]
	switch {
	case from < 0:
		return catalog.Value{Null: true}, nil
	case s.of == nil:
		return below.Value(ctx, int64(from))
	}
	for _, from := range s.of[from] {
		value, err := below.Value(ctx, int64(from))
		if err != nil {
			return value, err
		}
		v.List = append(v.List, value)
	}
	return v, nil
}

// Announces implements announced, as Announce does.
func (s *side) Announces() bool { return s.of == nil && s.table.Announces() }

func (s *side) Announce(field int, row int64) (over func()) {
	if from := s.row[row]; from >= 0 {
		return s.table.Fields[field].Announce(int64(from))
	}
	return func() {}
}

// Data returns a table for queries, whose rows are the samples, with the columns of the tables that the dataset lacks.
func (s *sided) Data(ctx context.Context) (*tables.Table, error) {
	store, ok := s.Store.(queried)
	if !ok {
		return nil, nil
	}
	own, err := store.Data(ctx)
	if err != nil {
		return nil, err
	}
	cols, from := slices.Clone(own.Columns()), slices.Repeat([]*tables.Table{own}, len(own.Columns()))
	for _, side := range s.sides {
		if side.of != nil {
			continue
		}
		data, err := side.table.Data(ctx)
		if err != nil {
			return nil, err
		}
		if data == nil { // of arrays queries see the values of conditions alone
			continue
		}
		data = data.Take(num.As[int](side.row))
		for _, c := range data.Columns() {
			same := func(other tables.Column) bool { return other.Name == c.Name }
			i := slices.IndexFunc(cols, same)
			switch {
			case i < 0:
				cols, from = append(cols, c), append(from, data)
			case slices.Contains(catalog.PathColumns, c.Name) && c.Name != side.On:
				cols[i], from[i] = c, data
			}
		}
	}
	return tables.New(own.Len(), cols, func(ctx context.Context, i int) (*tables.Vector, error) {
		return from[i].Column(ctx, cols[i].Name)
	}), nil
}

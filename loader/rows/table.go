package rows

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// RoundUp returns the smallest multiple of a that is at least n.
func RoundUp(n, a int) int { return (n + a - 1) / a * a }

// Table is an open dataset: N samples, which are rows numbered from 0, each with the same fields. It has what a store
// gives, and what the spec makes of it: the columns of the tables that are joined to it, and the rasters that a field
// stacks, scales or picks bands of. It is safe for concurrent use.
type Table struct {
	N int64
	// Fields are numbered in the order of the spec. Behind them are the steps of fields that have Field.Steps.
	Fields []Field
	// Fingerprint is a hash of the ids and sizes of the samples. A state resumes only where it is the same.
	Fingerprint string
	// Marks are what marks the contents of the files: see catalog.Table.Marks and source.Marks.
	Marks string
	// Array is true if the rasters are images of an array.
	Array bool
	// Selected is true if the rows are those that the conditions and the split of the source leave.
	Selected bool
	// Joined is nil unless the table joins several datasets of scenes, one after the other.
	Joined *Joined

	store     Store // with the tables that are joined to it
	base      Store // without them
	misplaced bool  // Misplaced knows nothing: a field has other rasters than the store
}

// New returns the dataset of a store. Close closes the store.
func New(store Store) *Table {
	t := &Table{N: store.Len(), Fields: make([]Field, store.Fields()), Fingerprint: store.Fingerprint(), store: store,
		base: store}
	for i := range t.Fields {
		t.Fields[i] = Field{Kind: store.Kind(i), values: store, facts: store, number: i}
		if s, ok := store.(sequences); ok && s.Steps(i) != nil {
			t.Fields[i].Steps = &Steps{Fields: s.Steps(i), of: s, number: i}
		}
	}
	return t
}

// ID returns the id of a sample, for errors and reports.
func (t *Table) ID(ctx context.Context, row int64) (string, error) { return t.store.ID(ctx, row) }

// ScanIDs visits the id of every row, in order.
func (t *Table) ScanIDs(ctx context.Context, visit func(row int64, id string) error) error {
	if s, ok := t.base.(scanned); ok {
		return s.ScanIDs(ctx, visit)
	}
	for row := range t.N {
		if row%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		id, err := t.base.ID(ctx, row)
		if err == nil {
			err = visit(row, id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Keys visits the key of every row, in order: what its sample is called whichever fields are read. It is the id where
// the store has no keys.
func (t *Table) Keys(ctx context.Context, visit func(row int64, key string) error) error {
	if s, ok := t.base.(*catalog.Table); ok {
		return s.ScanKeys(ctx, visit)
	}
	return t.ScanIDs(ctx, visit)
}

// Column returns a column by its name, of the store or of a table that is joined to it. One that does not exist is
// fault.NotFound. Names that make one of several are for method named.
func (t *Table) Column(ctx context.Context, name string) (*Column, error) {
	return t.store.Column(ctx, name)
}

// Data returns all columns and rows for queries, nil if the dataset has none.
func (t *Table) Data(ctx context.Context) (*tables.Table, error) {
	if s, ok := t.store.(queried); ok {
		return s.Data(ctx)
	}
	return nil, nil
}

// Misplaced visits the rows (nil: of all) in which the raster of a field lies elsewhere than the raster of the first,
// as far as the store knows the places without opening files.
func (t *Table) Misplaced(ctx context.Context, first, other int, rows []uint32,
	visit func(row int64, err error)) error {
	if s, ok := t.base.(*catalog.Table); ok && !t.misplaced {
		return s.Misplaced(ctx, t.Fields[first].number, t.Fields[other].number, rows, visit)
	}
	return nil
}

// Announces reports whether Field.Announce of some field changes any reads.
func (t *Table) Announces() bool {
	return slices.ContainsFunc(t.Fields, func(f Field) bool {
		s, ok := f.facts.(announced)
		return ok && s.Announces()
	})
}

// Pages returns a counter of the pages that reads of rasters in cells take, or nil if no rasters need one.
func (t *Table) Pages(ctx context.Context) (*catalog.PageCounter, error) {
	if s, ok := t.base.(*catalog.Table); ok {
		return s.NewPageCounter(ctx)
	}
	return nil, nil
}

// Close closes the dataset. Assets that it has returned stay valid.
func (t *Table) Close() error { return t.store.Close() }

// Field is what a field of the spec has in each row of a Table: a raster, or a value of a metadata column.
type Field struct {
	Kind catalog.Kind // a raster, or the type of a metadata column
	// Size is the size in pixels that all rasters have.
	Size *catalog.Size
	// Steps are the steps of time, if the rasters are several files in each sample.
	Steps *Steps

	values  Values
	number  int           // of the field there
	facts   Values        // what is known of the rasters without their files; of a stack those of its first field
	unsized bool          // but for their sizes
	changes []assetChange // of its rasters, in order
	change  valueChange   // of its values, or nil
	lacks   []bool        // the rows without a raster, of a field that may lack; nil of others
	same    []uint32      // see Same
}

// assetChange is what the spec makes of a raster, and valueChange of a value that is not null.
type (
	assetChange interface {
		ofAsset(ctx context.Context, a catalog.Asset, row int64) (catalog.Asset, error)
	}
	valueChange interface {
		ofValue(v catalog.Value) (catalog.Value, error)
	}
)

// Asset returns the raster of a row.
func (f *Field) Asset(ctx context.Context, row int64) (catalog.Asset, error) {
	asset, err := f.values.Asset(ctx, f.number, row)
	for i := 0; i < len(f.changes) && err == nil; i++ {
		asset, err = f.changes[i].ofAsset(ctx, asset, row)
	}
	if err != nil {
		err = f.lacking(err)
	}
	return asset, err
}

// Value returns the value of a metadata column or, for rasters, the path of the raster as the dataset has it.
func (f *Field) Value(ctx context.Context, row int64) (catalog.Value, error) {
	value, err := f.values.Value(ctx, f.number, row)
	if err != nil || f.change == nil || value.Null {
		return value, err
	}
	return f.change.ofValue(value)
}

// changeRasters adds a change of the rasters of a field, and of its steps.
func (t *Table) changeRasters(field int, change assetChange) {
	numbers := []int{field}
	if steps := t.Fields[field].Steps; steps != nil {
		numbers = append(numbers, steps.Fields...)
	}
	for _, number := range numbers {
		t.Fields[number].changes = append(t.Fields[number].changes, change)
	}
}

// Extent returns what returns the bytes of an object that are read for the raster of a row, if the object has others
// beside it. It reads no header of a raster. It is nil if rasters are objects of their own.
func (f *Field) Extent() func(ctx context.Context, row int64) (at source.Extent, ok bool) {
	if s, ok := f.facts.(extents); ok {
		return s.Extent(f.number)
	}
	return nil
}

// Announce says that the raster of a row is read soon, until over is called.
func (f *Field) Announce(row int64) (over func()) {
	if s, ok := f.facts.(announced); ok {
		return s.Announce(f.number, row)
	}
	return func() {}
}

// Cell returns the name of the raster of a row in the cell of a file, "" of others. ok is false of a dataset without
// cells.
func (f *Field) Cell(row int64) (name string, ok bool) {
	s, ok := f.facts.(*catalog.Table)
	if !ok {
		return "", false
	}
	return s.CellName(f.number, row), true
}

// Sizes returns the size in pixels of the raster in each row, or nil if the dataset does not know them.
func (f *Field) Sizes(ctx context.Context) ([]catalog.Size, error) {
	if s, ok := f.facts.(*catalog.Table); ok && !f.unsized {
		return s.Sizes(ctx, f.number)
	}
	return nil, nil
}

// Steps are the steps of time of a field whose rasters are several files in each sample, as sequences of TACO 3 are.
// The field itself has the first file of each sample.
type Steps struct {
	// Fields are the numbers of the fields of the table that have the steps.
	Fields []int

	of     sequences
	number int // of the field there
}

// Padding reports whether a sample has no file for a step, and some for others.
func (s *Steps) Padding(step int, row int64) bool { return s.of.Padding(s.number, step, row) }

// Column is a column of a Table, beside its fields.
type Column = column.Column

// scan visits the values of a column of a table, with the column.
func scan(ctx context.Context, t *Table, name string,
	visit func(row int64, c *Column, v catalog.Value) error) error {
	c, err := t.named(ctx, name)
	if err != nil {
		return err
	}
	return c.Scan(ctx, func(row int64, v catalog.Value) error { return visit(row, c, v) })
}

// scanNumbers visits the values of a column of numbers, NaN for null.
func scanNumbers(ctx context.Context, t *Table, name string, visit func(row int64, v float64)) error {
	return scan(ctx, t, name, func(row int64, c *Column, v catalog.Value) error {
		if !v.Null && c.Kind != catalog.Int && c.Kind != catalog.Float {
			return fmt.Errorf("column %q holds strings, not numbers", name)
		}
		visit(row, v.Number(c.Kind))
		return nil
	})
}

// firstTries bounds how many samples FirstAssets tries. A dataset in which all samples are bad
// would otherwise be read to its end before the run says so.
const firstTries = 1000

// First is the raster of a field in the first sample that has it.
type First struct {
	catalog.Asset
	Row int64
}

// FirstAssets returns the assets of some fields of the first sample, which shows the bands and
// types that all other samples must have. columns are the numbers of the fields, rows the selected
// rows (nil for all). Unless policy is spec.BadError, bad samples are passed over, up to
// firstTries. If no sample can be read, it returns the error of the first.
func FirstAssets(ctx context.Context, t *Table, columns []int, policy string, rows shuffle.Rows) ([]First, error) {
	tries := int64(1)
	if policy != spec.BadError {
		tries = min(rows.Len(t.N), firstTries)
	}
	var failed error
	for i := range min(rows.Len(t.N), firstTries) {
		if i >= tries && !errors.Is(failed, ErrLacks) {
			break
		}
		row := rows.At(i)
		assets := make([]First, 0, len(columns))
		var err error
		for _, c := range columns {
			var a catalog.Asset
			if a, err = t.Fields[c].Asset(ctx, row); err != nil {
				break
			}
			assets = append(assets, First{a, row})
		}
		if err == nil {
			return assets, nil
		}
		if failed == nil || errors.Is(failed, ErrLacks) {
			failed = err
		}
		// Errors of the network or of permissions, which lack a kind, are not faults of a sample.
		if fault.KindOf(err) == 0 {
			break
		}
	}
	return nil, failed
}

// LeadFirst puts the first of some raster fields that no sample lacks first: its rasters make the windows.
func LeadFirst(fields []spec.Field, columns []int) []int {
	lead := slices.IndexFunc(columns, func(i int) bool { return !fields[i].MayLack() })
	if lead <= 0 {
		return columns
	}
	return slices.Concat(columns[lead:lead+1], columns[:lead], columns[lead+1:])
}

// FirstOf returns FirstAssets of some fields of a spec by their numbers. Of several datasets in one table (Joined) each
// field has the first of its own, and one that may lack the first of a sample that has it.
func FirstOf(ctx context.Context, t *Table, fields []spec.Field, columns []int, policy string, rows shuffle.Rows) (
	[]First, error) {
	if t.Joined == nil && !slices.ContainsFunc(columns, func(c int) bool { return t.Fields[c].lacks != nil }) {
		assets, err := FirstAssets(ctx, t, columns, policy, rows)
		if err == nil || policy != spec.BadFill || fault.KindOf(err) == 0 {
			return assets, err
		}
	}
	var out []First
	for _, column := range columns { // no sample need have all fields
		some := rows
		switch {
		case t.Joined != nil && !t.Joined.hasAny(column, rows):
			return nil, InField(fields[column].Name, fault.New(fault.NotFound, "dataset", "no scenes"))
		case t.Joined != nil, t.Fields[column].lacks != nil:
			some = t.having(column, rows)
		}
		asset, err := FirstAssets(ctx, t, []int{column}, policy, some)
		if err != nil {
			return nil, InField(fields[column].Name, err)
		}
		out = append(out, asset...)
	}
	return out, nil
}

// Lead returns the raster of the field that makes the windows, whose first raster is given, in the sample of another
// field's first raster. If it cannot be read there, Lead returns the given one.
func (t *Table) Lead(ctx context.Context, column int, lead, other *First) *catalog.Asset {
	if other.Row == lead.Row {
		return &lead.Asset
	}
	asset, err := t.Fields[column].Asset(ctx, other.Row)
	if err != nil {
		return &lead.Asset
	}
	return &asset
}

// having returns the first rows, among some (nil: all), that have a field: as many as FirstAssets tries. Without one it
// returns rows that are not among them, whose files have the same form, or the rows.
func (t *Table) having(field int, rows shuffle.Rows) (mine []uint32) {
	for i := int64(0); i < rows.Len(t.N) && len(mine) < firstTries; i++ {
		if row := rows.At(i); !t.Lacks(field, row) {
			mine = append(mine, uint32(row))
		}
	}
	if mine == nil && rows != nil {
		if mine = t.having(field, nil); mine == nil {
			return rows
		}
	}
	return mine
}

// noteLacking notes the rows in which rasters of fields that may lack are null.
func (t *Table) noteLacking(ctx context.Context, fields []spec.Field) error {
	for i := range fields {
		field := &t.Fields[i]
		if !fields[i].MayLack() || field.Kind != catalog.Raster {
			continue
		}
		if err := budget.Grow(ctx, t.N); err != nil {
			return err
		}
		field.lacks = make([]bool, t.N)
		for row := range t.N {
			if row%4096 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			value, err := field.Value(ctx, row)
			if err != nil {
				return InField(fields[i].Name, err)
			}
			field.lacks[row] = value.Null || len(value.Text) == 0
		}
	}
	return nil
}

// lacking gives an error about an array that the file of a raster has not the cause ErrLacks, if the raster may lack.
func (f *Field) lacking(err error) error {
	cause, ok := errors.AsType[*fault.Error](err)
	if !ok || f.lacks == nil || !errors.Is(err, fault.ErrNoMember) {
		return err
	}
	lacking := *cause
	lacking.Err = ErrLacks
	return &lacking
}

// ErrLacks is the cause of the error about the raster of a field that may lack, whose file is there without the array:
// only opening the file shows it, so Lacks does not know.
var ErrLacks = errors.New("the file lacks the array")

// Lacks reports whether a row has no raster of a field: of a field that may lack, or as it is of a dataset without it.
func (t *Table) Lacks(field int, row int64) bool {
	if j := t.Joined; j != nil {
		k, below := j.Dataset(row)
		return !j.Has(field, k) || j.tables[k].Lacks(j.fields[field][k], below)
	}
	lacks := t.Fields[field].lacks
	return lacks != nil && lacks[row]
}

// InField adds the field of the spec to an error.
func InField(name string, err error) error {
	if fault.KindOf(err) != 0 {
		return fault.WithPart(err, "field "+name, fault.NoOffset)
	}
	return fmt.Errorf("field %q: %w", name, err)
}

// InPart puts part in front of an error: before the part of a fault, which is what commands print.
func InPart(err error, part string) error {
	if _, ok := errors.AsType[*fault.Error](err); !ok {
		return fmt.Errorf("%s: %w", part, err)
	}
	return fault.InPart(err, part)
}

// NameOf returns what a sample is called: the path of its first raster, as the dataset has it, or without one its id.
func (t *Table) NameOf(ctx context.Context, row int64) (string, error) {
	raster := slices.IndexFunc(t.Fields, func(f Field) bool { return f.Kind == catalog.Raster })
	if t.Joined == nil && !t.Array && raster >= 0 {
		name, err := t.Fields[raster].Value(ctx, row)
		if err != nil || !name.Null && len(name.Text) > 0 {
			return string(name.Text), err
		}
	}
	return t.ID(ctx, row)
}

// Single fails with kind unsupported if a field has steps of time that are files. what is what takes one raster of each
// sample.
func (t *Table) Single(fields []spec.Field, what string) error {
	for i, f := range spec.RowFields(fields) {
		if t.Fields[i].Steps != nil {
			return InField(f.Name, fault.New(fault.Unsupported, "asset", "it has steps of time that are files, and %s "+
				"take one raster of a sample: name one file, such as the first", what))
		}
	}
	return nil
}

// Store is what a dataset is stored in: samples, which are rows numbered from 0, each with the same fields. A
// *catalog.Table is one, for catalogs, tables and directories; others are containers, arrays, and several datasets of
// scenes. It is safe for concurrent use.
type Store interface {
	Values
	// Len returns the number of samples, and Fields the number of fields.
	Len() int64
	Fields() int
	// Kind returns the kind of a field: a raster, or the type of a metadata column.
	Kind(field int) catalog.Kind
	// Fingerprint returns a hash of the ids and sizes of the samples.
	Fingerprint() string
	// ID returns the id of a sample.
	ID(ctx context.Context, row int64) (string, error)
	// Column returns a column by its name, with a row for each sample. One that does not exist is fault.NotFound.
	Column(ctx context.Context, name string) (*Column, error)
	// Close closes the store. Assets that it has returned stay valid.
	Close() error
}

// Values are what fields have in each row.
type Values interface {
	// Asset returns the raster of a field.
	Asset(ctx context.Context, field int, row int64) (catalog.Asset, error)
	// Value returns the value of a metadata column or, for rasters, the path of the raster as the dataset has it.
	Value(ctx context.Context, field int, row int64) (catalog.Value, error)
}

// What some stores can do, beside what a *catalog.Table alone knows of rasters without opening their files.
type (
	scanned interface { // see Table.ScanIDs: in less time than row by row
		ScanIDs(ctx context.Context, visit func(row int64, id string) error) error
	}
	queried interface { // all columns and rows, for queries
		Data(ctx context.Context) (*tables.Table, error)
	}
	banded interface { // see Table.BandNames
		BandNames() []string
	}
	centred interface { // the centroids of the samples in degrees, NaN for null
		Centroids(ctx context.Context, visit func(row int64, lon, lat float64) error) error
	}
	extents interface { // see Field.Extent
		Extent(field int) func(ctx context.Context, row int64) (at source.Extent, ok bool)
	}
	announced interface { // see Field.Announce
		Announces() bool
		Announce(field int, row int64) (over func())
	}
	sequences interface { // see Steps: the fields that have the steps of a field, nil of other fields
		Steps(field int) []int
		Padding(field, step int, row int64) bool
	}
)

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

// Table is an open dataset: N samples, which are rows numbered from 0, each with the same fields. It is a catalog, a
// table or a directory (package catalog), a container (package containers) or the images of an array. What a dataset
// does not know or cannot do is nil. A Table is safe for concurrent use.
type Table struct {
	N int64
	// Fields are numbered in the order of the spec. Behind them are the steps of fields that have Field.Steps.
	Fields []Field
	// Fingerprint is a hash of the ids and sizes of the samples. A state resumes only where it is the same.
	Fingerprint string
	// Marks are what marks the contents of the files: see catalog.Table.Marks and source.Marks.
	Marks string
	// ID returns the id of a sample, for errors and reports.
	ID func(ctx context.Context, row int64) (string, error)
	// ScanIDs visits the id of every row, in order.
	ScanIDs func(ctx context.Context, visit func(row int64, id string) error) error
	// ScanKeys visits the key of every row, in order: what its sample is called whichever fields are read. It is nil if
	// that is the id.
	ScanKeys func(ctx context.Context, visit func(row int64, key string) error) error
	// Column returns a column by its name. One that does not exist is fault.NotFound. Names that make one of several
	// are for method named.
	Column func(ctx context.Context, name string) (*Column, error)
	// Pages returns a counter of the pages that reads of rasters in cells take, or nil if no rasters need one.
	Pages func(ctx context.Context) (*catalog.PageCounter, error)
	// Close closes the dataset. Assets that it has returned stay valid.
	Close func() error

	// Centroids visits the centroid of every row in degrees, NaN for null. A dataset without a column
	// of centroids is fault.NotFound.
	Centroids func(ctx context.Context, visit func(row int64, lon, lat float64) error) error
	// Data returns all columns and rows, for queries.
	Data func(ctx context.Context) (*tables.Table, error)
	// Misplaced visits the rows (nil: of all) in which the raster of a field lies elsewhere than the raster of the
	// first, if the dataset knows the places without opening files.
	Misplaced func(ctx context.Context, first, other int, rows []uint32, visit func(row int64, err error)) error
	// BandNames returns the names of the bands of all rasters, nil if they have none.
	BandNames func() []string
	// Array is true if the rasters are images of an array.
	Array bool
	// Selected is true if the rows are those that the conditions and the split of the source leave.
	Selected bool
	// Joined is nil unless the table joins several datasets of scenes, one after the other.
	Joined *Joined

	matches []*Match // with the tables that are joined to it
}

// Match says which rows of a table belong to the samples of a dataset.
type Match struct {
	spec.SideTable
	row     []int32 // for each sample, -1 without one
	example string  // the first key of the table, for errors
}

// Field is what a field of the spec has in each row of a Table.
type Field struct {
	Kind catalog.Kind // a raster, or the type of a metadata column
	// Asset returns the raster of a row.
	Asset func(ctx context.Context, row int64) (catalog.Asset, error)
	// Extent returns the bytes of an object that are read for the raster of a row, if the object has others beside it.
	// It reads no header of a raster. It is nil if rasters are objects of their own.
	Extent func(ctx context.Context, row int64) (at source.Extent, ok bool)
	// Announce says that the raster of a row is read soon, until over is called. It is nil if that changes no read.
	Announce func(row int64) (over func())
	// Value returns the value of a metadata column or, for rasters, the path of the raster as the dataset has it.
	Value func(ctx context.Context, row int64) (catalog.Value, error)
	// Cell returns the name of the raster of a row in the cell of a file, "" of others. It is nil if there are none.
	Cell func(row int64) string
	// Size is the size in pixels that all rasters have.
	Size *catalog.Size
	// Sizes returns the size in pixels of the raster in each row, or nil if the dataset does not know them.
	Sizes func(ctx context.Context) ([]catalog.Size, error)
	// CountSteps counts the steps of time of all rasters, without opening files. It may stop after a raster with
	// enough. It is nil if they are never known.
	CountSteps func(ctx context.Context, enough int) (catalog.StepCount, error)
	lacks      []bool // the rows without a raster, of a field that may lack; nil of others
	// Steps are the steps of time, if the rasters are several files in each sample.
	Steps *Steps
}

// Steps are the steps of time of a field whose rasters are several files in each sample, as sequences of TACO 3 are.
// The field itself has the first file of each sample.
type Steps struct {
	// Fields are the numbers of the fields of the table that have the steps.
	Fields []int
	// Padding reports whether a sample has no file for a step, and some for others.
	Padding func(step int, row int64) bool
}

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
		// An error without a kind, of the network or of a permission, is not the fault of a sample.
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
		if asset := field.Asset; asset != nil {
			field.Asset = func(ctx context.Context, row int64) (catalog.Asset, error) {
				a, err := asset(ctx, row)
				if cause, ok := errors.AsType[*fault.Error](err); ok && errors.Is(err, fault.ErrNoMember) {
					lacking := *cause
					lacking.Err, err = ErrLacks, &lacking
				}
				return a, err
			}
		}
	}
	return nil
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

// Keys visits the key of every row, in order: ScanKeys, or ScanIDs.
func (t *Table) Keys(ctx context.Context, visit func(row int64, key string) error) error {
	if t.ScanKeys != nil {
		return t.ScanKeys(ctx, visit)
	}
	return t.ScanIDs(ctx, visit)
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

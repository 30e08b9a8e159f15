package rows

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

// RoundUp returns the smallest multiple of a that is at least n.
func RoundUp(n, a int) int { return (n + a - 1) / a * a }

// Table is an open dataset: a number of samples, each with the same fields. It is a catalog, a table or a directory
// (package catalog), a container (package containers) or the images of an array. A Table is safe for concurrent use.
type Table interface {
	// Len returns the number of samples. Fields are numbered in the order of the spec, rows from 0.
	Len() int64
	// Kind returns the kind of a field: a raster, or the type of a metadata column.
	Kind(field int) catalog.Kind
	// Asset returns the raster of a sample's raster field.
	Asset(ctx context.Context, field int, row int64) (catalog.Asset, error)
	// Value returns the value of a metadata column or, for a raster field, the path of the raster
	// as the dataset has it.
	Value(ctx context.Context, field int, row int64) (catalog.Value, error)
	// ID returns the id of a sample, for errors and reports.
	ID(ctx context.Context, row int64) (string, error)
	// Fingerprint returns a hash of the ids and sizes of the samples. A state resumes only where it
	// is the same.
	Fingerprint() string
	// Column returns a column by its name. One that does not exist is fault.NotFound.
	Column(ctx context.Context, name string) (Column, error)
	// ScanIDs visits the id of every row, in order.
	ScanIDs(ctx context.Context, visit func(row int64, id string) error) error
	// Extras returns what only some kinds of datasets can do.
	Extras() Extras
	// Close closes the dataset. Assets that it has returned stay valid.
	Close() error
}

// Column is a column of a Table, beside its fields.
type Column struct {
	Kind catalog.Kind
	// Unit is what the values of dates or timestamps count; 0 for other values.
	Unit time.Duration
	// Scan visits the value in every row, in order.
	Scan func(ctx context.Context, visit func(row int64, v catalog.Value) error) error
}

// Extras are what only some kinds of datasets can do. A function is nil if the dataset cannot do it.
type Extras struct {
	// Centroids visits the centroid of every row in degrees, NaN for null. A dataset without a column
	// of centroids is fault.NotFound.
	Centroids func(ctx context.Context, visit func(row int64, lon, lat float64) error) error
	// Data returns all columns and rows, for queries.
	Data func(ctx context.Context) (*tables.Table, error)
	// Sizes returns the size in pixels of a field's raster in each row, or nil if the dataset does not
	// know them.
	Sizes func(ctx context.Context, field int) ([]catalog.Size, error)
	// Size returns the size in pixels that all rasters of a field have.
	Size func(field int) catalog.Size
	// Misplaced visits the rows (nil: of all) in which the raster of a field lies elsewhere than the raster of the
	// first, if the dataset knows the places without opening files.
	Misplaced func(ctx context.Context, first, other int, rows []uint32, visit func(row int64, err error)) error
	// BandNames returns the names of the bands of all rasters, nil if they have none.
	BandNames func() []string
	// Array is true if the rasters are images of an array.
	Array bool
	// Steps returns the steps of time of a field whose rasters are several files in each sample, or nil.
	Steps func(field int) *Steps
	// Selected is true if the rows are those that the conditions and the split of the source leave.
	Selected bool
	// Joined is nil unless the table joins several datasets of scenes, one after the other.
	Joined *Joined
}

// scan visits the values of a column of a table, with the column.
func scan(ctx context.Context, t Table, column string, visit func(row int64, c *Column, v catalog.Value) error) error {
	c, err := t.Column(ctx, column)
	if err != nil {
		return err
	}
	return c.Scan(ctx, func(row int64, v catalog.Value) error { return visit(row, &c, v) })
}

// firstTries bounds how many samples FirstAssets tries. A dataset in which all samples are bad
// would otherwise be read to its end before the run says so.
const firstTries = 1000

// FirstAssets returns the assets of some fields of the first sample, which shows the bands and
// types that all other samples must have. columns are the numbers of the fields, rows the selected
// rows (nil for all). Unless policy is spec.BadError, bad samples are passed over, up to
// firstTries. If no sample can be read, it returns the error of the first.
func FirstAssets(ctx context.Context, t Table, columns []int, policy string, rows []uint32) ([]catalog.Asset, error) {
	tries, count := int64(1), t.Len()
	if rows != nil {
		count = int64(len(rows))
	}
	if policy != spec.BadError {
		tries = min(count, firstTries)
	}
	var failed error
	for row := range tries {
		if rows != nil {
			row = int64(rows[row])
		}
		assets := make([]catalog.Asset, 0, len(columns))
		var err error
		for _, c := range columns {
			var a catalog.Asset
			if a, err = t.Asset(ctx, c, row); err != nil {
				break
			}
			assets = append(assets, a)
		}
		if err == nil {
			return assets, nil
		}
		failed = cmp.Or(failed, err)
		// An error without a kind, of the network or of a permission, is not the fault of a sample.
		if fault.KindOf(err) == 0 {
			break
		}
	}
	return nil, failed
}

// FirstOf returns FirstAssets of some fields of a spec by their numbers. Of several datasets in one table (Joined) each
// field has the first of its own.
func FirstOf(ctx context.Context, t Table, fields []spec.Field, columns []int, policy string, rows []uint32) (
	[]catalog.Asset, error) {
	joined := t.Extras().Joined
	if joined == nil {
		return FirstAssets(ctx, t, columns, policy, rows)
	}
	var out []catalog.Asset
	for _, column := range columns {
		some := joined.first(column, rows)
		if len(some) == 0 {
			return nil, InField(fields[column].Name, fault.New(fault.NotFound, "dataset", fault.NoOffset, "no scenes"))
		}
		asset, err := FirstAssets(ctx, t, []int{column}, policy, some)
		if err != nil {
			return nil, InField(fields[column].Name, err)
		}
		out = append(out, asset...)
	}
	return out, nil
}

// Lacks reports whether a row of a table is of a dataset that has no rasters of a field.
func Lacks(t Table, field int, row int64) bool {
	datasets := t.Extras().Joined
	if datasets == nil {
		return false
	}
	k, _ := datasets.Dataset(row)
	return !datasets.Has(field, k)
}

// InField adds the field of the spec to an error.
func InField(name string, err error) error {
	if fault.KindOf(err) != 0 {
		return fault.WithPart(err, "field "+name, fault.NoOffset)
	}
	return fmt.Errorf("field %q: %w", name, err)
}

// StepsOf returns the steps of time of a field that are files of a sample, or nil.
func StepsOf(t Table, field int) *Steps {
	if steps := t.Extras().Steps; steps != nil {
		return steps(field)
	}
	return nil
}

// Assets returns the rasters of a field in a row: one, or all steps of time that it has files for.
func Assets(ctx context.Context, t Table, field int, row int64) ([]catalog.Asset, error) {
	columns := []int{field}
	if steps := StepsOf(t, field); steps != nil {
		columns = nil
		for k, column := range steps.Columns {
			if !steps.Padding(k, row) {
				columns = append(columns, column)
			}
		}
	}
	out := make([]catalog.Asset, len(columns))
	for i, column := range columns {
		var err error
		if out[i], err = t.Asset(ctx, column, row); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Single fails with kind unsupported if a field has steps of time that are files. what is what takes one raster of each
// sample.
func Single(t Table, fields []spec.Field, what string) error {
	for i, f := range spec.RowFields(fields) {
		if StepsOf(t, i) != nil {
			return InField(f.Name, fault.New(fault.Unsupported, "asset", fault.NoOffset,
				"it has steps of time that are files, and %s take one raster of a sample: name one file, such as the "+
					"first", what))
		}
	}
	return nil
}

package rows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tables"
)

// Opener opens the dataset of a source with the given fields.
type Opener func(ctx context.Context, src spec.Source, fields []spec.Field) (Table, error)

// RoundUp returns the smallest multiple of a that is at least n.
func RoundUp(n, a int) int { return (n + a - 1) / a * a }

// Table is an open dataset: a number of samples, each with the same fields. It is a catalog, a table
// or a directory (package catalog), a *Container or an *Array. A Table is safe for concurrent use.
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
	// Scan visits the value of a column in every row, in order, and returns the kind of the column.
	// A column that does not exist is fault.NotFound.
	Scan(ctx context.Context, column string, visit func(row int64, v catalog.Value) error) (catalog.Kind, error)
	// ScanIDs visits the id of every row, in order.
	ScanIDs(ctx context.Context, visit func(row int64, id string) error) error
	// Extras returns what only some kinds of datasets can do.
	Extras() Extras
	// Close closes the dataset. Assets that it has returned stay valid.
	Close() error
}

// Extras are what only some kinds of datasets can do. A function is nil if the dataset cannot do it.
type Extras struct {
	// TimeUnit returns the unit in which the values of a column of dates or timestamps count, 0 for
	// any other column.
	TimeUnit func(ctx context.Context, column string) time.Duration
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
	// BandNames returns the names of the bands of all rasters, nil if they have none.
	BandNames func() []string
	// Coordinate returns the coordinate of a row along the axis n of an array, 0 for an array without
	// n.
	Coordinate func(row int64) int64
	// Selected is true if the rows are those that the conditions and the split of the source leave.
	Selected bool
}

// catalogTable is a catalog, a table or a directory as a Table.
type catalogTable struct{ *catalog.Table }

// Extras implements Table.
func (t catalogTable) Extras() Extras {
	return Extras{TimeUnit: t.TimeUnit, Data: t.Data, Sizes: t.Sizes}
}

// OpenTable opens the dataset of a spec with one source: a catalog, a table, a container, an array,
// a directory, a glob or a file. A container has the samples that meet the spec's conditions and
// split; other datasets have all rows. An invalid spec, a mixture and a dataset that cannot be
// opened are errors.
func OpenTable(ctx context.Context, spec spec.Spec, o resources.Options) (Table, error) {
	spec.AllFields = spec.AllFields || len(spec.Fields) == 0
	spec = spec.WithDefaults()
	spec.BatchSize = max(spec.BatchSize, 1)
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if len(spec.Sources) > 0 {
		return nil, errors.New("spec: a mixture has several datasets")
	}
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	spec, err := WithOwnFields(ctx, spec, o)
	if err != nil {
		o.CloseOpener()
		return nil, err
	}
	t, err := Open(ctx, spec.Root(), spec.Fields, o)
	if err != nil {
		o.CloseOpener()
		return nil, err
	}
	return &ownTable{t, o}, nil
}

// ownTable is a table that also closes the default opener, which OpenTable has made for it.
type ownTable struct {
	Table
	o resources.Options
}

// Close closes the table before its opener, since closing a table may still use files.
func (t *ownTable) Close() error {
	defer t.o.CloseOpener()
	return t.Table.Close()
}

// WithOwnFields replaces the one field of a spec with AllFields by the fields of its first dataset,
// if that is a catalog of pairs. Other specs are returned unchanged.
func WithOwnFields(ctx context.Context, s spec.Spec, o resources.Options) (spec.Spec, error) {
	if !s.AllFields {
		return s, nil
	}
	s.AllFields = false
	src := s.Root()
	for len(src.Sources) > 0 {
		src = src.Sources[0]
	}
	f := s.Fields[0]
	if src.Source == "" || f.Column != "" || f.Pattern != "" || f.Points != nil {
		return s, nil
	}
	names, err := catalog.Fields(ctx, src.Source, catalog.Options{Opener: o.Opener, Roots: o.Roots})
	if err != nil || len(names) == 0 {
		return s, err
	}
	// A fill for images, such as 0, may be a class of labels, so one fill for integer fields of
	// both kinds would silently make labels of nodata.
	dtype := cmp.Or(f.DType, "native")
	integers := dtype == "native" || strings.Contains(dtype, "int")
	if len(names) > 1 && f.Fill != nil && f.Normalize == nil && integers {
		return s, fmt.Errorf("spec: fill is %v and dtype is %q for all fields of the catalog, %q, "+
			"of which some may be labels: give fields, and fill to those that it is for",
			float64(*f.Fill), dtype, names)
	}
	s.Fields = nil
	for _, name := range names {
		f.Name = name
		s.Fields = append(s.Fields, f)
		f.Validity = "" // it names one tensor, so only the first field keeps it
	}
	return s, s.Validate()
}

// Open opens the dataset of a source with the fields from. Options that do not suit the kind of
// dataset are errors.
func Open(ctx context.Context, src spec.Source, from []spec.Field, o resources.Options) (Table, error) {
	hasPattern := func(f spec.Field) bool { return f.Pattern != "" }
	if src.Missing == spec.MissingDrop && !slices.ContainsFunc(from, hasPattern) {
		return nil, errors.New("spec: missing is \"drop\", but no field has a pattern: " +
			"tables and containers say themselves what belongs together")
	}
	is, err := isContainer(ctx, &src, o)
	if err != nil {
		return nil, err
	}
	if is && src.Dims != "" {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "dataset", fault.NoOffset,
			"a container has no dimensions to name: dims is for arrays"), src.Source)
	}
	if is && src.Timestamp != nil {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "dataset", fault.NoOffset,
			"a container has no times: timestamp is for arrays"), src.Source)
	}
	if is {
		return openContainer(ctx, &src, spec.RowFields(from), o)
	}
	from = spec.RowFields(from)
	if isCube(&src) {
		c, err := openCube(ctx, &src, from, o)
		if err != nil {
			return nil, err // a nil *Array would be a Table that is not nil
		}
		return c, nil
	}
	fields := make([]catalog.Source, len(from))
	for i, f := range from {
		fields[i] = catalog.Source{
			Field: f.Name, Column: f.Column, Blob: f.Blob, Pattern: f.Pattern, Kind: spec.WantedKinds[f.Kind],
		}
	}
	t, err := catalog.Open(ctx, src.Source, fields, catalog.Options{
		Opener: o.Opener, MaxChunk: o.MaxChunkBytes, CacheBytes: o.CacheBytes, Roots: o.Roots,
		Columns: src.Columns(), AllColumns: src.Queries(),
		DropIncomplete: src.Missing == spec.MissingDrop,
	})
	if err != nil {
		return nil, err
	}
	if n, example := t.Dropped(); n > 0 {
		o.Logger.Warn("incomplete samples are left out: some field has no file for them",
			"samples", n, "left", t.Len(), "such as", example, "dataset", src.Source)
	}
	return catalogTable{t}, nil
}

// firstTries bounds how many samples FirstAssets tries. A dataset in which all samples are bad
// would otherwise be read to its end before the run says so.
const firstTries = 1000

// FirstAssets returns the assets of some fields of the first sample, which shows the bands and
// types that all other samples must have. columns are the numbers of the fields, rows the selected
// rows (nil for all). Unless policy is spec.BadError, bad samples are passed over, up to
// firstTries. If no sample can be read, it returns the error of the first.
func FirstAssets(ctx context.Context, t Table, columns []int, policy string, rows []uint32) ([]catalog.Asset, error) {
	tries, n := int64(1), t.Len()
	if rows != nil {
		n = int64(len(rows))
	}
	if policy != spec.BadError {
		tries = min(n, firstTries)
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
		if failed == nil {
			failed = err
		}
		// An error without a kind, of the network or of a permission, is not the fault of a sample.
		if fault.KindOf(err) == 0 {
			break
		}
	}
	return nil, failed
}

// InField adds the field of the spec to an error.
func InField(name string, err error) error {
	if fault.KindOf(err) != 0 {
		return fault.WithPart(err, "field "+name, fault.NoOffset)
	}
	return fmt.Errorf("field %q: %w", name, err)
}

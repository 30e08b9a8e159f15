package rows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

// opener opens the table of a source.
type Opener func(ctx context.Context, src spec.Source, fields []spec.Field) (Table, error)

// RoundUp returns the multiple of a that is n or next above it.
func RoundUp(n, a int) int { return (n + a - 1) / a * a }

// Sized is what a table tells of sizes, if it has them. *catalog.Table has it.
type Sized interface {
	Sizes(ctx context.Context, field int) ([]catalog.Size, error)
}

// SameSize is what a table tells of sizes whose assets are all of one.
type SameSize interface {
	Size(field int) catalog.Size
}

// Table is an open dataset: N samples of some fields. *catalog.Table is one, *Array another. It
// is safe for concurrent use.
type Table interface {
	// Len returns N. Fields are numbered in the order of the spec, rows from 0.
	Len() int64
	// Kind returns what a field is.
	Kind(field int) catalog.Kind
	// Asset returns the raster of a sample's raster field.
	Asset(ctx context.Context, field int, row int64) (catalog.Asset, error)
	// Value returns what rides along; of a raster field where it lies, as the dataset has it.
	Value(ctx context.Context, field int, row int64) (catalog.Value, error)
	// ID names a sample in errors and reports.
	ID(ctx context.Context, row int64) (string, error)
	// Fingerprint depends on what the samples are called and how large they are.
	Fingerprint() string
	// Close closes the dataset. Assets that it gave stay valid.
	Close() error
}

// OpenTable opens the dataset of a spec of one source: a catalog, a table, a container, a folder, a glob or
// a file. The subset of a container is applied; of other datasets all rows are there.
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

// ownTable is a table that closes its opener, if that is its own.
type ownTable struct {
	Table
	o resources.Options
}

func (t *ownTable) Close() error {
	defer t.o.CloseOpener()
	return t.Table.Close()
}

// WithOwnFields puts the fields of the first dataset, where that is a catalog of pairs, in the place of the one that AllFields is
// about.
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
	if dtype := cmp.Or(f.DType, "native"); len(names) > 1 && f.Fill != nil && f.Normalize == nil && (dtype == "native" || strings.Contains(dtype, "int")) {
		return s, fmt.Errorf("spec: fill is %v and dtype is %q for all fields of the catalog, %q, of which some may be labels: give fields, and fill to those that it is for", float64(*f.Fill), dtype, names)
	}
	s.Fields = nil
	for _, name := range names {
		f.Name = name
		s.Fields = append(s.Fields, f)
		f.Validity = "" // which names one tensor
	}
	return s, s.Validate()
}

// Open opens the dataset of a source.
func Open(ctx context.Context, src spec.Source, from []spec.Field, o resources.Options) (Table, error) {
	if src.Missing == spec.MissingDrop && !slices.ContainsFunc(from, func(f spec.Field) bool { return f.Pattern != "" }) {
		return nil, errors.New("spec: missing is \"drop\", but no field has a pattern: tables and containers say themselves what belongs together")
	}
	is, err := isContainer(ctx, &src, o)
	if err != nil {
		return nil, err
	}
	if is && src.Dims != "" {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "dataset", fault.NoOffset, "a container has no dimensions to name: dims is for arrays"), src.Source)
	}
	if is && src.Timestamp != nil {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "dataset", fault.NoOffset, "a container has no times: timestamp is for arrays"), src.Source)
	}
	if is {
		return openContainer(ctx, &src, spec.RowFields(from), o)
	}
	from = spec.RowFields(from)
	if isCube(&src) {
		c, err := openCube(ctx, &src, from, o)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
	fields := make([]catalog.Source, len(from))
	for i, f := range from {
		fields[i] = catalog.Source{Field: f.Name, Column: f.Column, Blob: f.Blob, Pattern: f.Pattern, Kind: spec.WantedKinds[f.Kind]}
	}
	t, err := catalog.Open(ctx, src.Source, fields, catalog.Options{
		Opener: o.Opener, MaxChunk: o.MaxChunkBytes, CacheBytes: o.CacheBytes, Roots: o.Roots, Columns: src.Columns(), AllColumns: src.Queries(),
		DropIncomplete: src.Missing == spec.MissingDrop,
	})
	if err != nil {
		return nil, err
	}
	if n, example := t.Dropped(); n > 0 {
		o.Logger.Warn("incomplete samples are left out: some field has no file for them", "samples", n, "left", t.Len(), "such as", example, "dataset", src.Source)
	}
	return t, nil
}

// firstTries bounds how many samples are tried until one can be read, where bad ones are skipped.
const firstTries = 1000

// FirstAssets returns the assets of some fields of the first sample: the one that shows what all
// others must be like. Where bad samples do not end the run, it is the first that can be read. rows are
// those that count, nil for all.
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
		if fault.KindOf(err) == 0 {
			break
		}
	}
	return nil, failed
}

// InField says in which field of the spec an error came up.
func InField(name string, err error) error {
	if fault.KindOf(err) != 0 {
		return fault.WithPart(err, "field "+name, fault.NoOffset)
	}
	return fmt.Errorf("field %q: %w", name, err)
}

package rows

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

// joined is a Table of Datasets.
type joined struct {
	tables []Table
	first  []int64 // row of each table, and at the end the number of rows
	// fields has for each field its number in each table, or -1.
	fields [][]int
	leads  []bool // for each table
}

// openJoined opens the dataset of a source and those that fields name, each with its own fields. The conditions and
// options of the source are for its own dataset.
func openJoined(ctx context.Context, src spec.Source, from []spec.Field, o resources.Options) (t Table, err error) {
	j := &joined{first: []int64{0}, fields: make([][]int, len(from))}
	defer func() {
		if err != nil {
			err = errors.Join(err, j.Close())
		}
	}()
	paths := []string{""}
	for _, f := range from {
		for _, p := range f.Scenes {
			if !slices.Contains(paths, p) {
				paths = append(paths, p)
			}
		}
	}
	leading := spec.Leading(from)
	for k, p := range paths {
		j.leads = append(j.leads, slices.Contains(leading, p))
		var mine []spec.Field
		for i, field := range from {
			number := -1
			if listed := field.Scenes; slices.Contains(listed, p) || listed == nil && p == "" {
				number = len(mine)
				field.Scenes = nil
				mine = append(mine, field)
			}
			j.fields[i] = append(j.fields[i], number)
		}
		if len(mine) == 0 {
			return nil, errors.New("spec: scenes: no field has rasters of the source itself")
		}
		source := src
		if k > 0 {
			source = spec.Source{Source: p, Sampler: src.Sampler, More: src.More}
		}
		table, err := Open(ctx, source, mine, o)
		if err != nil {
			return nil, err
		}
		j.tables = append(j.tables, table)
		j.first = append(j.first, j.first[k]+table.Len())
	}
	return j, nil
}

// Dataset implements Datasets.
func (j *joined) Dataset(row int64) (int, int64) {
	k, found := slices.BinarySearch(j.first, row)
	if !found {
		k--
	}
	for k+1 < len(j.tables) && j.first[k+1] == row { // datasets without rows
		k++
	}
	return k, row - j.first[k]
}

// Count implements Datasets.
func (j *joined) Count() int { return len(j.tables) }

// Has implements Datasets.
func (j *joined) Has(field, dataset int) bool { return j.fields[field][dataset] >= 0 }

// Leads implements Datasets.
func (j *joined) Leads(dataset int) bool { return j.leads[dataset] }

// Selected implements Datasets.
func (j *joined) Selected(ctx context.Context, s *spec.Subset, o resources.Options) ([]uint32, error) {
	rows, err := selectRows(ctx, j.tables[0], s, o)
	if err != nil || rows == nil {
		return nil, err
	}
	if j.Len() > math.MaxUint32 {
		return nil, fault.New(fault.Limit, "dataset", fault.NoOffset, "%d rows: conditions take at most 2^32-1",
			j.Len())
	}
	for row := j.first[1]; row < j.Len(); row++ {
		rows = append(rows, uint32(row))
	}
	return rows, nil
}

// FirstAsset implements Datasets.
func (j *joined) FirstAsset(ctx context.Context, field int, policy string, rows []uint32) (catalog.Asset, error) {
	k := slices.IndexFunc(j.fields[field], func(at int) bool { return at >= 0 })
	var mine []uint32
	for row := j.first[k]; row < j.first[k+1] && len(mine) < firstTries && rows == nil; row++ {
		mine = append(mine, uint32(row))
	}
	for _, row := range rows {
		if int64(row) >= j.first[k] && int64(row) < j.first[k+1] && len(mine) < firstTries {
			mine = append(mine, row)
		}
	}
	if len(mine) == 0 {
		return catalog.Asset{}, fault.New(fault.NotFound, "dataset", fault.NoOffset, "no scenes")
	}
	a, err := FirstAssets(ctx, j, []int{field}, policy, mine)
	if err != nil {
		return catalog.Asset{}, err
	}
	return a[0], nil
}

// Len implements Table.
func (j *joined) Len() int64 { return j.first[len(j.tables)] }

// own returns the first table that has a field, and the field there.
func (j *joined) own(field int) (Table, int) {
	k := slices.IndexFunc(j.fields[field], func(at int) bool { return at >= 0 })
	return j.tables[k], j.fields[field][k]
}

// Kind implements Table.
func (j *joined) Kind(field int) catalog.Kind {
	t, column := j.own(field)
	return t.Kind(column)
}

// Asset implements Table.
func (j *joined) Asset(ctx context.Context, field int, row int64) (catalog.Asset, error) {
	k, r := j.Dataset(row)
	if !j.Has(field, k) {
		return catalog.Asset{}, fault.New(fault.NotFound, "field", fault.NoOffset, "it has no rasters in this dataset")
	}
	return j.tables[k].Asset(ctx, j.fields[field][k], r)
}

// Value implements Table. It is null in the rows of other datasets.
func (j *joined) Value(ctx context.Context, field int, row int64) (catalog.Value, error) {
	k, r := j.Dataset(row)
	if !j.Has(field, k) {
		return catalog.Value{Null: true}, nil
	}
	return j.tables[k].Value(ctx, j.fields[field][k], r)
}

// ID implements Table.
func (j *joined) ID(ctx context.Context, row int64) (string, error) {
	k, r := j.Dataset(row)
	return j.tables[k].ID(ctx, r)
}

// Fingerprint implements Table.
func (j *joined) Fingerprint() string {
	hasher := xxh3.New()
	for _, t := range j.tables {
		_, _ = hasher.WriteString(t.Fingerprint() + "\n")
	}
	for _, f := range j.fields {
		for _, number := range f {
			_, _ = hasher.Write([]byte{byte(number), byte(number >> 8)})
		}
	}
	sum := hasher.Sum128()
	return fmt.Sprintf("%016x%016x", sum.Hi, sum.Lo)
}

// Column implements Table. A dataset without the column has nulls; those that have it with other kinds or units are
// fault.Unsupported.
func (j *joined) Column(ctx context.Context, name string) (column Column, err error) {
	parts := make([]Column, len(j.tables))
	known := false
	var missing error
	for k, table := range j.tables {
		part, err := table.Column(ctx, name)
		switch {
		case fault.KindOf(err) == fault.NotFound:
			missing = err
			continue
		case err != nil:
			return part, err
		case known && (part.Kind != column.Kind || part.Unit != column.Unit):
			return part, fault.New(fault.Unsupported, "column "+name, fault.NoOffset,
				"it has another type in another dataset of scenes")
		}
		parts[k], column, known = part, part, true
	}
	if !known {
		return column, missing
	}
	column.Scan = func(ctx context.Context, visit func(row int64, v catalog.Value) error) error {
		for k, part := range parts {
			err := error(nil)
			if part.Scan == nil {
				err = eachRow(j.first[k], j.first[k+1], visit)
			} else {
				err = part.Scan(ctx, func(row int64, v catalog.Value) error { return visit(j.first[k]+row, v) })
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return column, nil
}

// eachRow visits rows with null.
func eachRow(first, end int64, visit func(row int64, v catalog.Value) error) error {
	for row := first; row < end; row++ {
		if err := visit(row, catalog.Value{Null: true}); err != nil {
			return err
		}
	}
	return nil
}

// ScanIDs implements Table.
func (j *joined) ScanIDs(ctx context.Context, visit func(row int64, id string) error) error {
	for k, t := range j.tables {
		err := t.ScanIDs(ctx, func(row int64, id string) error { return visit(j.first[k]+row, id) })
		if err != nil {
			return err
		}
	}
	return nil
}

// Extras implements Table.
func (j *joined) Extras() Extras { return Extras{Joined: j} }

// Close implements Table.
func (j *joined) Close() error {
	var errs []error
	for _, t := range j.tables {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}

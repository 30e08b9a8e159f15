package rows

import (
	"context"
	"errors"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Joined is a Table of several datasets of scenes, one after the other. A field has assets in the rows of some of them.
type Joined struct {
	tables []Table
	begins []int64 // row of each table, and at the end the number of rows
	// fields has for each field its number in each table, or -1.
	fields [][]int
	leads  []bool // for each table
}

// Dataset returns the number of the dataset that a row is of, and the row in it.
func (j *Joined) Dataset(row int64) (int, int64) {
	place, found := slices.BinarySearch(j.begins, row)
	if !found {
		place--
	}
	for place+1 < len(j.tables) && j.begins[place+1] == row { // datasets without rows
		place++
	}
	return place, row - j.begins[place]
}

// Count returns how many datasets there are.
func (j *Joined) Count() int { return len(j.tables) }

// Has reports whether a field has assets in the rows of a dataset.
func (j *Joined) Has(field, dataset int) bool { return j.fields[field][dataset] >= 0 }

// Leads reports whether the scenes of a dataset are steps of sequences (spec.Leading).
func (j *Joined) Leads(dataset int) bool { return j.leads[dataset] }

// lead returns the first dataset that has a field.
func (j *Joined) lead(field int) int {
	return slices.IndexFunc(j.fields[field], func(column int) bool { return column >= 0 })
}

// first returns the first rows, among some (nil: all), of the first dataset that has a field: as many as FirstAssets
// tries.
func (j *Joined) first(field int, rows []uint32) (mine []uint32) {
	lead := j.lead(field)
	for row := j.begins[lead]; row < j.begins[lead+1] && len(mine) < firstTries && rows == nil; row++ {
		mine = append(mine, uint32(row))
	}
	for _, row := range rows {
		if int64(row) >= j.begins[lead] && int64(row) < j.begins[lead+1] && len(mine) < firstTries {
			mine = append(mine, row)
		}
	}
	return mine
}

// Len implements Table.
func (j *Joined) Len() int64 { return j.begins[len(j.tables)] }

// Kind implements Table.
func (j *Joined) Kind(field int) catalog.Kind {
	k := j.lead(field)
	return j.tables[k].Kind(j.fields[field][k])
}

// Asset implements Table.
func (j *Joined) Asset(ctx context.Context, field int, row int64) (catalog.Asset, error) {
	k, r := j.Dataset(row)
	if !j.Has(field, k) {
		return catalog.Asset{}, fault.New(fault.NotFound, "field", fault.NoOffset, "it has no rasters in this dataset")
	}
	return j.tables[k].Asset(ctx, j.fields[field][k], r)
}

// Value implements Table. It is null in the rows of other datasets.
func (j *Joined) Value(ctx context.Context, field int, row int64) (catalog.Value, error) {
	k, r := j.Dataset(row)
	if !j.Has(field, k) {
		return catalog.Value{Null: true}, nil
	}
	return j.tables[k].Value(ctx, j.fields[field][k], r)
}

// ID implements Table.
func (j *Joined) ID(ctx context.Context, row int64) (string, error) {
	k, r := j.Dataset(row)
	return j.tables[k].ID(ctx, r)
}

// Fingerprint implements Table.
func (j *Joined) Fingerprint() string {
	hasher := digest.New()
	for _, t := range j.tables {
		_, _ = hasher.WriteString(t.Fingerprint() + "\n")
	}
	for _, columns := range j.fields {
		for _, column := range columns {
			_, _ = hasher.Write([]byte{byte(column), byte(column >> 8)})
		}
	}
	return hasher.Hex()
}

// Column implements Table. A dataset without the column has nulls; those that have it with other kinds or units are
// fault.Unsupported.
func (j *Joined) Column(ctx context.Context, name string) (column Column, err error) {
	parts := make([]Column, len(j.tables))
	known := false
	var missing error
	for place, table := range j.tables {
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
		parts[place], column, known = part, part, true
	}
	if !known {
		return column, missing
	}
	column.Scan = func(ctx context.Context, visit func(row int64, v catalog.Value) error) error {
		for place, part := range parts {
			begin := j.begins[place]
			if part.Scan != nil {
				err := part.Scan(ctx, func(row int64, v catalog.Value) error { return visit(begin+row, v) })
				if err != nil {
					return err
				}
				continue
			}
			for row := begin; row < j.begins[place+1]; row++ {
				if err := visit(row, catalog.Value{Null: true}); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return column, nil
}

// ScanIDs implements Table.
func (j *Joined) ScanIDs(ctx context.Context, visit func(row int64, id string) error) error {
	for k, t := range j.tables {
		err := t.ScanIDs(ctx, func(row int64, id string) error { return visit(j.begins[k]+row, id) })
		if err != nil {
			return err
		}
	}
	return nil
}

// Extras implements Table.
func (j *Joined) Extras() Extras { return Extras{Joined: j} }

// Close implements Table.
func (j *Joined) Close() error {
	var errs []error
	for _, t := range j.tables {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}

package rows

import (
	"context"
	"errors"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Joined are several datasets of scenes in one Table, one after the other. A field has assets in the rows of some of
// them.
type Joined struct {
	tables []*Table
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

// hasAny reports whether one of some rows (nil: all) is of a dataset that has a field.
func (j *Joined) hasAny(field int, rows []uint32) bool {
	if rows == nil {
		for k := range j.tables {
			if j.Has(field, k) && j.begins[k] < j.begins[k+1] {
				return true
			}
		}
	}
	return slices.ContainsFunc(rows, func(row uint32) bool {
		k, _ := j.Dataset(int64(row))
		return j.Has(field, k)
	})
}

// table returns the datasets as one table.
func (j *Joined) table() *Table {
	marks := make([]string, len(j.tables))
	for i, t := range j.tables {
		marks[i] = t.Marks
	}
	made := New(j)
	made.Joined, made.Marks = j, JoinMarks(marks)
	return made
}

// Joined is a Store.
func (j *Joined) Len() int64  { return j.begins[len(j.tables)] }
func (j *Joined) Fields() int { return len(j.fields) }

func (j *Joined) Kind(field int) catalog.Kind {
	lead := j.lead(field)
	return j.tables[lead].Fields[j.fields[field][lead]].Kind
}

func (j *Joined) Fingerprint() string {
	hasher := digest.New()
	for _, t := range j.tables {
		_, _ = hasher.WriteString(t.Fingerprint + "\n")
	}
	for _, columns := range j.fields {
		for _, number := range columns {
			_, _ = hasher.Write([]byte{byte(number), byte(number >> 8)})
		}
	}
	return hasher.Hex()
}

func (j *Joined) ID(ctx context.Context, row int64) (string, error) {
	k, below := j.Dataset(row)
	return j.tables[k].ID(ctx, below)
}

// at returns a field in the dataset of a row, and the row there; nil of a dataset without the field.
func (j *Joined) at(field int, row int64) (_ *Field, below int64) {
	k, below := j.Dataset(row)
	if !j.Has(field, k) {
		return nil, below
	}
	return &j.tables[k].Fields[j.fields[field][k]], below
}

func (j *Joined) Asset(ctx context.Context, field int, row int64) (catalog.Asset, error) {
	if f, below := j.at(field, row); f != nil {
		return f.Asset(ctx, below)
	}
	return catalog.Asset{}, fault.New(fault.NotFound, "field", "it has no rasters in this dataset")
}

// Value is null in the rows of datasets without the field.
func (j *Joined) Value(ctx context.Context, field int, row int64) (catalog.Value, error) {
	if f, below := j.at(field, row); f != nil {
		return f.Value(ctx, below)
	}
	return catalog.Value{Null: true}, nil
}

// Column has nulls for a dataset without the column; datasets that have it with other kinds or units are
// fault.Unsupported.
func (j *Joined) Column(ctx context.Context, name string) (*Column, error) {
	parts := make([]*Column, len(j.tables))
	var known *Column
	var missing error
	for place, table := range j.tables {
		part, err := table.Column(ctx, name)
		switch {
		case fault.KindOf(err) == fault.NotFound:
			parts[place], missing = column.Nulls(table.N), err
			continue
		case err != nil:
			return nil, err
		case known != nil && (part.Kind != known.Kind || part.Unit != known.Unit):
			return nil, fault.New(fault.Unsupported, "column "+name,
				"it has another type in another dataset of scenes")
		}
		parts[place], known = part, part
	}
	if known == nil {
		return nil, missing
	}
	joined := column.Concat(parts)
	joined.Kind, joined.Unit = known.Kind, known.Unit
	return joined, nil
}

func (j *Joined) ScanIDs(ctx context.Context, visit func(row int64, id string) error) error {
	for k, t := range j.tables {
		err := t.ScanIDs(ctx, func(row int64, id string) error { return visit(j.begins[k]+row, id) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (j *Joined) Close() error {
	var errs []error
	for _, t := range j.tables {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}

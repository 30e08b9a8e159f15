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
	hasher := digest.New()
	marks := make([]string, len(j.tables))
	for i, t := range j.tables {
		_, _ = hasher.WriteString(t.Fingerprint + "\n")
		marks[i] = t.Marks
	}
	fields := make([]Field, len(j.fields))
	for i, columns := range j.fields {
		for _, number := range columns {
			_, _ = hasher.Write([]byte{byte(number), byte(number >> 8)})
		}
		fields[i] = j.field(i)
	}
	return &Table{
		N: j.begins[len(j.tables)], Fields: fields, Fingerprint: hasher.Hex(), Column: j.column, ScanIDs: j.scanIDs,
		Close: j.close, Joined: j, Marks: JoinMarks(marks),
		ID: func(ctx context.Context, row int64) (string, error) {
			k, r := j.Dataset(row)
			return j.tables[k].ID(ctx, r)
		},
	}
}

// field returns a field of the table. Its values are null in the rows of datasets without it.
func (j *Joined) field(number int) Field {
	fieldAt := func(row int64) (field *Field, below int64) {
		k, r := j.Dataset(row)
		if !j.Has(number, k) {
			return nil, r
		}
		return &j.tables[k].Fields[j.fields[number][k]], r
	}
	lead := j.lead(number)
	return Field{
		Kind: j.tables[lead].Fields[j.fields[number][lead]].Kind,
		Asset: func(ctx context.Context, row int64) (catalog.Asset, error) {
			if field, below := fieldAt(row); field != nil {
				return field.Asset(ctx, below)
			}
			return catalog.Asset{}, fault.New(fault.NotFound, "field", "it has no rasters in this dataset")
		},
		Value: func(ctx context.Context, row int64) (catalog.Value, error) {
			if field, below := fieldAt(row); field != nil {
				return field.Value(ctx, below)
			}
			return catalog.Value{Null: true}, nil
		},
	}
}

// column implements Table.Column. A dataset without the column has nulls; those that have it with other kinds or units
// are fault.Unsupported.
func (j *Joined) column(ctx context.Context, name string) (*Column, error) {
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

// scanIDs implements Table.ScanIDs.
func (j *Joined) scanIDs(ctx context.Context, visit func(row int64, id string) error) error {
	for k, t := range j.tables {
		err := t.ScanIDs(ctx, func(row int64, id string) error { return visit(j.begins[k]+row, id) })
		if err != nil {
			return err
		}
	}
	return nil
}

// close closes the tables.
func (j *Joined) close() error {
	var errs []error
	for _, t := range j.tables {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}

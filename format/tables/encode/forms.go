package encode

import (
	"context"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
)

// Fitted returns the columns of a table in forms that hold all values. Times are in nanoseconds where the table counts
// those and 64 bits hold all of them (years 1678 to 2261), otherwise in microseconds. Codes of dictionaries are as wide
// as their number needs. Columns with nulls are not required.
func Fitted(ctx context.Context, t *tables.Table) []tables.Column {
	cols := slices.Clone(t.Columns())
	for i := range cols {
		if required := cols[i].Type.Stored().Required; required || cols[i].Type.Any(mayNotFit) {
			values, err := t.At(ctx, i)
			if err != nil {
				// The column cannot be read: the writer needs to return that error, and not this function.
				continue
			}
			cols[i].Type = fitted(cols[i].Type, values)
			if required && slices.Contains(values.Nulls(), true) {
				cols[i].Type = cols[i].Type.With(func(f *tables.Form) { f.Required = false })
			}
		}
	}
	return cols
}

// fitted returns a type in the form that holds its values, see Fitted.
func fitted(t tables.Type, v *tables.Vector) tables.Type {
	switch t.Kind {
	case tables.Time, tables.Timestamp:
		t.Nano = t.Nano && nanosFit(v)
		if t.Stored().Store == tables.Seconds && slices.ContainsFunc(v.Ints(), func(us int64) bool {
			return us%1_000_000 != 0
		}) {
			t = t.With(func(f *tables.Form) { f.Store = tables.Default })
		}
	case tables.String, tables.Binary:
		if form := t.Stored(); form.Store == tables.Coded && form.Size < wideCodes && tooMany(form, v) {
			form.Size = wideCodes
			t.Form = &form
		}
	case tables.List:
		child, _ := v.Offsets()
		elem := fitted(*t.Elem, child)
		t.Elem = &elem
	case tables.Struct:
		fields := make([]tables.Column, len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = tables.Column{Name: f.Name, Type: fitted(f.Type, v.Field(i))}
		}
		t.Fields = fields
	}
	return t
}

// wideCodes are the bits of codes that are always enough: a table has fewer rows.
const wideCodes = 32

// tooMany reports whether a column has more values than codes of its form count.
func tooMany(f tables.Form, v *tables.Vector) bool {
	bits := f.Size
	if !f.Unsigned {
		bits--
	}
	seen := map[string]bool{}
	for i := range v.Len() {
		if !v.Null(i) {
			seen[v.Str(i)] = true
		}
		if len(seen) > 1<<bits {
			return true
		}
	}
	return false
}

// mayNotFit reports whether fitted may change the form of a type.
func mayNotFit(t tables.Type) bool {
	store := t.Stored().Store
	return t.Nano || store == tables.Coded || store == tables.Seconds
}

// nanosFit reports whether 64 bits of nanoseconds hold all times.
func nanosFit(v *tables.Vector) bool {
	for i, us := range v.Ints() {
		if (us >= math.MaxInt64/1000 || us <= math.MinInt64/1000) && !v.Null(i) {
			return false
		}
	}
	return true
}

// checkForm refuses values that the form of a type does not hold. Package tables reads none, but tables that were made
// or joined elsewhere may have them.
func checkForm(t tables.Type, v *tables.Vector) error {
	form := t.Stored()
	switch t.Kind {
	case tables.Time, tables.Timestamp:
		return checkTimes(t, v)
	case tables.Decimal:
		return checkDecimals(t, v)
	case tables.Binary:
		if form.Store == tables.FixedBytes || form.Store == tables.Decimals {
			if form.Size > maxFixed {
				return fault.New(fault.Limit, "", "values of %d bytes, at most %d", form.Size, maxFixed)
			}
			for i := range v.Len() {
				if n := len(v.Bytes(i)); n != int(form.Size) && !v.Null(i) {
					return misfit(t, "%d bytes in row %d", n, i)
				}
			}
		}
	case tables.List:
		if err := checkLists(t, v); err != nil {
			return err
		}
		child, _ := v.Offsets()
		return checkForm(*t.Elem, child)
	case tables.Struct:
		for i, c := range t.Fields {
			if err := checkForm(c.Type, v.Field(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxFixed bounds the bytes of values of one size: the Parquet library allocates one for nulls, and a few bytes of a
// file may state any size.
const maxFixed = 1 << 20

func misfit(t tables.Type, format string, args ...any) error {
	return fault.New(fault.Unsupported, "", "type "+t.ArrowName()+" does not hold "+format, args...)
}

func checkTimes(t tables.Type, v *tables.Vector) error {
	if t.Nano && !nanosFit(v) {
		return fault.New(fault.Limit, "", "a time that 64 bits of nanoseconds do not hold")
	}
	if t.Nano || t.Stored().Unit != 3 {
		return nil
	}
	for i, us := range v.Ints() {
		if us%1000 != 0 && !v.Null(i) {
			return misfit(t, "the microseconds of row %d", i)
		}
	}
	return nil
}

// checkDecimals checks that decimals of 32 and 64 bits have no more.
func checkDecimals(t tables.Type, v *tables.Vector) error {
	width := decimalBits(t) / 8
	if width >= 16 {
		return nil
	}
	high := v.High()
	for i, low := range v.Ints() {
		sign := low >> (8*width - 1)
		wide := sign != 0 && sign != -1 || high[i] != sign
		if wide && !v.Null(i) {
			return misfit(t, "%s of row %d", v.AppendJSON(nil, i), i)
		}
	}
	return nil
}

// checkLists checks the length of lists of one length, and the keys of maps.
func checkLists(t tables.Type, v *tables.Vector) error {
	form := t.Stored()
	for i := range v.Len() {
		if v.Null(i) {
			continue
		}
		child, lo, hi := v.List(i)
		if form.Store == tables.FixedList && hi-lo != int(form.Size) {
			return misfit(t, "%d values in row %d", hi-lo, i)
		}
		if form.Store == tables.Map {
			for k := lo; k < hi; k++ {
				if child.Null(k) || child.Field(0).Null(k) {
					return misfit(t, "the key in row %d, which is null", i)
				}
			}
		}
	}
	return nil
}

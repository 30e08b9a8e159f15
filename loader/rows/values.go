package rows

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

// maxParts is how many values of a column an error lists, so it stays short.
const maxParts = 10

// values are the different values of a column, for errors.
type values struct {
	kind   catalog.Kind
	texts  map[string]bool // at most one more than maxParts, which shows that there are others
	lo, hi catalog.Value   // of numbers
}

func (s *values) add(kind catalog.Kind, v catalog.Value) {
	if v.Null {
		return
	}
	if s.kind = kind; s.texts == nil {
		s.texts, s.lo, s.hi = map[string]bool{}, v, v
	}
	if len(s.texts) <= maxParts {
		s.texts[v.In(kind)] = true
	}
	if v.Int < s.lo.Int || v.Float < s.lo.Float {
		s.lo = v
	}
	if v.Int > s.hi.Int || v.Float > s.hi.Float {
		s.hi = v
	}
}

// String returns the values, or the least and the greatest of many numbers.
func (s *values) String() string {
	list := slices.Sorted(maps.Keys(s.texts))
	switch {
	case len(list) <= maxParts:
		return fmt.Sprintf("%q", list)
	case s.kind == catalog.Text:
		return fmt.Sprintf("%q, …", list[:maxParts])
	}
	return fmt.Sprintf("numbers from %s to %s", s.lo.In(s.kind), s.hi.In(s.kind))
}

// split makes lists of strings of the texts of fields whose strings spec.Field.Split separates.
func (t *Table) split(fields []spec.Field) error {
	for i := range fields {
		separator := fields[i].Split
		if separator == "" {
			continue
		}
		whole := t.Fields[i]
		if whole.Kind != catalog.Text {
			return InField(fields[i].Name, fault.New(fault.Unsupported,
				"column "+cmp.Or(fields[i].Column, fields[i].Name), "split is for texts, and it holds %ss", whole.Kind))
		}
		t.Fields[i].Kind = catalog.Text | catalog.List
		t.Fields[i].Value = func(ctx context.Context, row int64) (catalog.Value, error) {
			value, err := whole.Value(ctx, row)
			if err != nil || value.Null {
				return value, err
			}
			parts := bytes.SplitN(value.Text, []byte(separator), texts.MaxList+1)
			if len(parts) > texts.MaxList {
				return value, fault.New(fault.Limit, "column", "a text of over %d strings", texts.MaxList)
			}
			for _, part := range parts {
				if part = bytes.TrimSpace(part); len(part) > 0 {
					value.List = append(value.List, catalog.Value{Text: part})
				}
			}
			value.Text = nil
			return value, nil
		}
	}
	return nil
}

package rows

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/internal/literal"
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

// split makes lists of strings of the texts of fields whose strings spec.Field.Split separates, and of classes whose
// texts are lists as Python and JSON write them. The first text says it. Files of texts hold numbers, and the names of
// classes, with blanks around them; the first one, or the dtype, says whether numbers have fractions.
func (t *Table) split(ctx context.Context, fields []spec.Field) error {
	for i := range fields {
		separator, field := fields[i].Split, &t.Fields[i]
		if field.Kind == catalog.Text && fields[i].Pattern != "" && separator == "" &&
			(fields[i].Kind == spec.NumberField || fields[i].Kind == spec.ClassField) {
			if fields[i].Kind == spec.NumberField {
				first, err := t.firstText(ctx, i)
				if err != nil {
					return InField(fields[i].Name, err)
				}
				field.Kind = catalog.Float
				_, err = strconv.ParseInt(string(label([]byte(first))), 10, 64)
				if err == nil && !strings.HasPrefix(fields[i].DType, "float") {
					field.Kind = catalog.Int
				}
			}
			field.change = &fileText{field.Kind, fields[i].Name}
			continue
		}
		switch {
		case separator != "" && field.Kind != catalog.Text:
			return InField(fields[i].Name, fault.New(fault.Unsupported,
				"column "+cmp.Or(fields[i].Column, fields[i].Name), "split is for texts, and it holds %ss", field.Kind))
		case separator == "" && (fields[i].Kind != spec.ClassField || field.Kind != catalog.Text):
			continue
		case separator == "":
			first, err := t.firstText(ctx, i)
			if err != nil {
				return InField(fields[i].Name, err)
			}
			_, ok := literal.JSON(first)
			if !ok || !strings.HasPrefix(strings.TrimSpace(first), "[") || slices.Contains(fields[i].Classes, first) {
				continue
			}
		}
		field.Kind, field.change = catalog.Text|catalog.List, &textList{separator}
	}
	return nil
}

// fileText is the kind of the values that files of texts hold, and the name of their field.
type fileText struct {
	kind catalog.Kind
	name string
}

// ofValue returns the value of a text.
func (t *fileText) ofValue(value catalog.Value) (_ catalog.Value, err error) {
	value.Text = label(value.Text)
	part := "text of field " + t.name
	if bytes.IndexByte(value.Text, '\n') >= 0 {
		return value, fault.New(fault.Unsupported, part, "it has several lines, and a label has one")
	}
	switch t.kind {
	case catalog.Int:
		value.Int, err = strconv.ParseInt(string(value.Text), 10, 64)
	case catalog.Float:
		value.Float, err = strconv.ParseFloat(string(value.Text), 64)
	}
	if err != nil {
		hint := ""
		if t.kind == catalog.Int {
			hint = `: dtype "float64" takes fractions`
		}
		err = fault.New(fault.Corrupt, part, "%q is no number as the first file has%s", fault.Short(string(value.Text)),
			hint)
	}
	return value, err
}

// label returns the label in a file of text, without blanks around it and a byte order mark.
func label(text []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(text, []byte(texts.Mark)))
}

// textList is how texts are lists of strings: separated or, without a separator, as Python and JSON write lists.
type textList struct{ separator string }

// ofValue returns the list of a text.
func (t *textList) ofValue(value catalog.Value) (catalog.Value, error) {
	var list [][]byte
	var err error
	if t.separator == "" {
		list, err = written(value.Text)
	} else {
		list = bytes.SplitN(value.Text, []byte(t.separator), texts.MaxList+1)
	}
	value.Text, value.List = nil, make([]catalog.Value, 0, len(list)) // an empty list is a list
	for _, part := range list {
		if part = bytes.TrimSpace(part); len(part) > 0 {
			value.List = append(value.List, catalog.Value{Text: part})
		}
	}
	if len(list) > texts.MaxList {
		err = fault.New(fault.Limit, "column", "a text of over %d strings", texts.MaxList)
	}
	return value, err
}

// firstText returns the first text of a field that is not null.
func (t *Table) firstText(ctx context.Context, field int) (string, error) {
	for row := range t.N {
		value, err := t.Fields[field].Value(ctx, row)
		if err != nil || !value.Null && len(value.Text) > 0 {
			return string(value.Text), err
		}
	}
	return "", nil
}

// written returns the strings and numbers of a list as Python and JSON write it.
func written(text []byte) (parts [][]byte, err error) {
	wrong := fault.New(fault.Corrupt, "column", "%s is no list of strings, as the first text is",
		fault.Short(string(text)))
	list, ok := literal.JSON(string(text))
	var elements []json.RawMessage
	if !ok || json.Unmarshal(list, &elements) != nil {
		return nil, wrong
	}
	for _, element := range elements {
		switch element[0] {
		case '[', '{', 'n':
			return nil, wrong
		case '"':
			var plain string
			if err := json.Unmarshal(element, &plain); err != nil {
				return nil, err
			}
			element = []byte(plain)
		}
		parts = append(parts, element)
	}
	return parts, nil
}

package flags

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
)

// Source has the flags that say where the fields of a dataset are, and which of its rows to use.
type Source struct {
	Fields []string
	dims   string
	at     Timestamp
	Filter Filter
	part   string
	drop   bool
	tables []string
}

// Add adds the flags.
func (f *Source) Add(fl *pflag.FlagSet) {
	console.Var(fl, &f.Fields, "field", nil)
	f.at.Add(fl)
	console.Var(fl, &f.dims, "dims", "")
	f.Filter.addFilters(fl)
	console.Var(fl, &f.drop, "drop-missing", false)
	console.NonEmptyVar(fl, &f.part, "split")
	console.Var(fl, &f.tables, "table", nil)
}

// Spec returns the members of a spec that the flags set, without defaults.
func (f *Source) Spec(dataset string) (s loader.Spec, err error) {
	s.Source, s.Dims, s.Timestamp = dataset, f.dims, f.at.Value
	if s.Fields, err = ParseFields(f.Fields); err != nil {
		return s, err
	}
	s.Fields = stackFields(s.Fields)
	if s.Where, err = f.Filter.conditions(); err != nil {
		return s, err
	}
	if f.part != "" {
		s.Split, s.Use = &spec.Split{By: "given"}, f.part
	}
	for _, text := range f.tables {
		i := strings.LastIndexByte(text, '=')
		if i <= 0 || i == len(text)-1 {
			return s, console.Usagef("--table %q: it must be TABLE=COLUMN", text)
		}
		table := spec.SideTable{Path: text[:i], On: text[i+1:]}
		table.Path, table.Column, _ = strings.Cut(table.Path, source.Separator)
		s.Tables = append(s.Tables, table)
	}
	if f.drop {
		s.Missing = spec.MissingDrop
	}
	return s, nil
}

// ParseFields reads the values of --field: NAME, NAME=COLUMN or NAME=PATTERN.
func ParseFields(list []string) ([]loader.Field, error) {
	var fields []loader.Field
	for _, text := range list {
		name, where, named := strings.Cut(text, "=")
		field := loader.Field{Name: name}
		switch {
		case name == "" || named && where == "":
			return nil, console.Usagef("--field is %q: it must be NAME, NAME=COLUMN or NAME=PATTERN", text)
		case len(column.Names(where)) > 0:
			field.Pattern = where
		default:
			field.Column = where
		}
		fields = append(fields, field)
	}
	return fields, nil
}

// stackFields joins the fields that have one name into a stack of their columns or patterns.
func stackFields(fields []loader.Field) []loader.Field {
	var out []loader.Field
	for _, field := range fields {
		place := slices.IndexFunc(out, func(stacked loader.Field) bool { return stacked.Name == field.Name })
		if place < 0 {
			out = append(out, field)
			continue
		}
		// A member that both lack, or that has two kinds, stays as it is: the spec makes the error.
		switch stacked := &out[place]; {
		case field.Column != "" && (stacked.Column != "" || stacked.Columns != nil):
			if stacked.Columns == nil {
				stacked.Columns, stacked.Column = []string{stacked.Column}, ""
			}
			stacked.Columns = append(stacked.Columns, field.Column)
		case field.Pattern != "" && (stacked.Pattern != "" || stacked.Patterns != nil):
			if stacked.Patterns == nil {
				stacked.Patterns, stacked.Pattern = []string{stacked.Pattern}, ""
			}
			stacked.Patterns = append(stacked.Patterns, field.Pattern)
		default:
			out = append(out, field)
		}
	}
	return out
}

// ParsePair reads a size in pixels: "HxW", or "N" for "NxN". Its errors go on after "--FLAG is".
func ParsePair(text string) (h, w int, err error) {
	a, b, two := strings.Cut(text, "x")
	if !two {
		b = a
	}
	h, err1 := strconv.Atoi(a)
	w, err2 := strconv.Atoi(b)
	if err1 != nil || err2 != nil || min(h, w) < 1 || max(h, w) > math.MaxInt32 {
		return 0, 0, fmt.Errorf("%q: it must be HxW in pixels, such as 256x256", text)
	}
	return h, w, nil
}

// Bands is the flag --bands: the bands of the first field.
type Bands string

// Add adds the flag.
func (f *Bands) Add(fl *pflag.FlagSet) {
	console.NonEmptyVar(fl, (*string)(f), "bands")
}

// set picks the bands of a field.
func (f Bands) set(field *loader.Field) error {
	if f == "" || f == "position" {
		field.ByPosition = f != ""
		return nil
	}
	for text := range strings.SplitSeq(string(f), ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			return console.Usagef("--bands is %q: it has an empty band", string(f))
		}
		field.BandNames = append(field.BandNames, text)
		if n, err := strconv.Atoi(text); err == nil {
			field.Bands = append(field.Bands, n)
		}
	}
	switch len(field.Bands) {
	case 0:
	case len(field.BandNames):
		field.BandNames = nil
	default:
		return console.Usagef("--bands is %q: it must have numbers or names, not both", string(f))
	}
	return nil
}

// First picks the bands of the first of some fields, or of "image" if there are no fields.
func (f Bands) First(fields []loader.Field) ([]loader.Field, error) {
	if len(fields) == 0 && f != "" {
		fields = []loader.Field{{Name: "image"}}
	}
	if len(fields) == 0 {
		return nil, nil
	}
	return fields, f.set(&fields[0])
}

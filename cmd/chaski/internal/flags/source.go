package flags

import (
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
)

// Source has the flags that say where the fields of a dataset are, and which of its rows to use.
type Source struct {
	Fields []string
	dims   string
	at     Timestamp
	Filter Filter
	part   string
	drop   bool
}

// Add adds the flags.
func (f *Source) Add(fl *pflag.FlagSet) {
	fl.StringArrayVar(&f.Fields, "field", nil,
		"`NAME=WHERE`: a field of a sample; WHERE is a column of the table, an attribute of the array or a "+
			"pattern with {id}; NAME alone stands for the dataset's own assets; repeatable (default: one "+
			"raster \"image\"). Several with one NAME are a stack: their bands follow each other, on the grid of the "+
			"first")
	f.at.Add(fl)
	fl.StringVar(&f.dims, "dims", "",
		"what the dimensions of an array are, in their order: n, b, y and x, and t of Zarr (default: their names)")
	f.Filter.addFilters(fl)
	fl.BoolVar(&f.drop, "drop-missing", false,
		"leave out samples without a file for each field that is a pattern (default: such a sample is an error)")
	NonEmptyVar(fl, &f.part, "split",
		"use only the rows of this `PART`, such as train, as the table's split column says")
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
	if f.drop {
		s.Missing = spec.MissingDrop
	}
	return s, nil
}

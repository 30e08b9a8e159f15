package flags

import (
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/loader"
)

// Source say where the fields of a dataset are, and which of its rows count.
type Source struct {
	Fields []string
	dims   string
	at     Timestamp
	Filter Filter
	part   string
	drop   bool
}

func (f *Source) Add(fl *pflag.FlagSet) {
	fl.StringArrayVar(&f.Fields, "field", nil, "`NAME=WHERE`: a field of a sample, WHERE being a column of the table, an attribute of the array or a pattern with {id}; NAME alone is the dataset's own assets; repeatable (default: one raster \"image\")")
	f.at.Add(fl)
	fl.StringVar(&f.dims, "dims", "", "dimensions of a TileDB array, in their order, of n, b, y and x (default: their names)")
	f.Filter.addFilters(fl)
	fl.BoolVar(&f.drop, "drop-missing", false, "leave out samples for which a field with a pattern has no file (default: an error)")
	NonEmptyVar(fl, &f.part, "split", "`PART` of the data that counts, by the column that says of each row which one it belongs to")
}

// Spec returns what the flags say of a dataset, without defaults.
func (f *Source) Spec(dataset string) (s loader.Spec, err error) {
	s.Source, s.Dims, s.Timestamp = dataset, f.dims, f.at.Value
	if s.Fields, err = ParseFields(f.Fields); err != nil {
		return s, err
	}
	if s.Where, err = f.Filter.conditions(); err != nil {
		return s, err
	}
	if f.part != "" {
		s.Split, s.Use = &loader.Split{By: "given"}, f.part
	}
	if f.drop {
		s.Missing = loader.MissingDrop
	}
	return s, nil
}

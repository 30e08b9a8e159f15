package cli

import (
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/loader"
)

// sourceFlags say where the fields of a dataset are, and which of its rows count.
type sourceFlags struct {
	fields []string
	dims   string
	at     timestampFlag
	filter filterFlags
	part   string
	drop   bool
}

func (f *sourceFlags) add(fl *pflag.FlagSet) {
	fl.StringArrayVar(&f.fields, "field", nil, "`NAME=WHERE`: a field of a sample, WHERE being a column of the table, an attribute of the array or a pattern with {id}; NAME alone is the dataset's own assets; repeatable (default: one raster \"image\")")
	f.at.add(fl)
	fl.StringVar(&f.dims, "dims", "", "dimensions of a TileDB array, in their order, of n, b, y and x (default: their names)")
	f.filter.addFilters(fl)
	fl.BoolVar(&f.drop, "drop-missing", false, "leave out samples for which a field with a pattern has no file (default: an error)")
	givenVar(fl, &f.part, "split", "`PART` of the data that counts, by the column that says of each row which one it belongs to")
}

// spec returns what the flags say of a dataset, without defaults.
func (f *sourceFlags) spec(dataset string) (s loader.Spec, err error) {
	s.Source, s.Dims, s.Timestamp = dataset, f.dims, f.at.t
	if s.Fields, err = parseFields(f.fields); err != nil {
		return s, err
	}
	if s.Where, err = f.filter.conditions(); err != nil {
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

// conditions returns the filters as a spec has them.
func (f *filterFlags) conditions() ([]loader.Condition, error) {
	if _, err := f.filter(); err != nil {
		return nil, err
	}
	var list []loader.Condition
	if f.where != "" {
		list = append(list, loader.Condition{SQL: f.where})
	}
	if f.bbox != "" {
		sides, err := f.sides()
		if err != nil {
			return nil, err
		}
		epsg, err := f.epsg()
		if err != nil {
			return nil, err
		}
		list = append(list, loader.Condition{BBox: &sides, BBoxCRS: epsg, Within: f.rule == "within", Column: f.geometry, Level: f.atLevel})
	}
	if f.datetime != "" {
		list = append(list, loader.Condition{Datetime: f.datetime, Column: f.timeCol, Level: f.atLevel})
	}
	return list, nil
}

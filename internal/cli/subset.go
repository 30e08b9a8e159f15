package cli

import (
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/loader"
)

// splitFlag chooses a part of the data that a column names.
type splitFlag struct{ use string }

func (f *splitFlag) add(fl *pflag.FlagSet) {
	givenVar(fl, &f.use, "split", "`PART` of the data that counts, by the column that says of each row which one it belongs to")
}

// into takes the part over into a subset.
func (f *splitFlag) into(s *loader.Subset) {
	if f.use != "" {
		s.Split, s.Use = &loader.Split{By: "given"}, f.use
	}
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
		b, err := parseBox(f.bbox)
		if err != nil {
			return nil, err
		}
		list = append(list, loader.Condition{BBox: &[4]float64{b.MinX, b.MinY, b.MaxX, b.MaxY}, Within: f.rule == "within", Column: f.geometry, Level: f.atLevel})
	}
	if f.datetime != "" {
		list = append(list, loader.Condition{Datetime: f.datetime, Column: f.timeCol, Level: f.atLevel})
	}
	return list, nil
}

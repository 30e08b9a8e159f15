package flags

import (
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
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
	console.Var(fl, &f.Fields, "field", nil)
	f.at.Add(fl)
	console.Var(fl, &f.dims, "dims", "")
	f.Filter.addFilters(fl)
	console.Var(fl, &f.drop, "drop-missing", false)
	console.NonEmptyVar(fl, &f.part, "split")
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

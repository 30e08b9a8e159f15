package dataset

import (
	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
)

// Measured has the flags that say which samples are measured, and with which fields.
type Measured struct {
	source flags.Source
	bands  flags.Bands
	bad    string
	base   string

	own pflag.FlagSet // the flags that a spec excludes, because it says the same
}

func (m *Measured) Add(fl *pflag.FlagSet) {
	m.source.Add(&m.own)
	m.bands.Add(&m.own)
	console.Var(&m.own, &m.bad, "bad-samples", spec.BadError)
	console.Var(&m.own, &m.base, "base-path", "")
	fl.AddFlagSet(&m.own)
}

// spec makes a spec of a dataset and the flags.
func (m *Measured) spec(dataset string) (loader.Spec, error) {
	if m.bad != "" {
		if err := console.OneOf("bad-samples", m.bad, spec.BadError, spec.BadSkip); err != nil {
			return loader.Spec{}, err
		}
	}
	s, err := m.source.Spec(dataset)
	if err != nil {
		return s, err
	}
	if s.Fields, err = m.bands.First(s.Fields); err != nil {
		return s, err
	}
	s.BatchSize, s.BadSamples, s.BasePath = 1, m.bad, m.base
	s = s.WithDefaults()
	if err := s.Validate(); err != nil {
		return s, console.WrongUsage(err)
	}
	return s, nil
}

package container

import (
	"context"
	"encoding/json"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tables/query"
)

// conditionFlags choose samples by the conditions that a spec has.
type conditionFlags struct {
	text   string
	given  loader.Subset // of text, once it is read
	sql    query.Full
	read   bool
	stored bool // tables have the histograms of a streaming TACO too
}

func (f *conditionFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.text, "given", "", "`JSON` list of conditions that samples of level 0 have to meet first, as the member where of a spec has them; @FILE: what the file holds")
}

// fromFile returns what the file holds that "@FILE" names, and any other argument as it is: no argument
// of a program is longer than 128 KiB, a list of ids may be.
func fromFile(arg string) (string, error) {
	name, ok := strings.CutPrefix(arg, "@")
	if !ok {
		return arg, nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return "", console.Usagef("%w", err)
	}
	return string(b), nil
}

// subset returns the conditions. What they come from is read once: a pipe has them once.
func (f *conditionFlags) subset() (s loader.Subset, err error) {
	if f.text == "" || f.read {
		return f.given, nil
	}
	text, err := fromFile(f.text)
	if err != nil {
		return s, err
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s.Where); err != nil {
		return s, console.Usagef("--given: %w", err)
	}
	f.given, f.read = s, true
	return s, nil
}

// samples returns the samples that the conditions leave.
func (f *conditionFlags) samples(ctx context.Context, d *taco.Dataset) (*loader.Samples, error) {
	s, err := f.subset()
	if err != nil {
		return nil, err
	}
	found, err := loader.SelectSamples(ctx, d, s, loader.Options{SQL: f.sql})
	return found, console.UsageUnlessFault(err)
}

// tables returns the tables that a query sees.
func (f *conditionFlags) tables(ctx context.Context, d *taco.Dataset) (query.Tables, error) {
	if f.stored {
		return d.StoredTable, nil
	}
	if f.text == "" {
		return d.SQLTable, nil
	}
	s, err := f.subset()
	if err != nil {
		return nil, err
	}
	if len(s.Where) == 0 && d.Levels() > 0 {
		if all, err := d.AllVisible(ctx, 0); err == nil && all { // data is level 0 as it is; an error comes again
			return d.SQLTable, nil
		}
	}
	found, err := f.samples(ctx, d)
	if err != nil {
		return nil, err
	}
	return found.SQLTable, nil
}

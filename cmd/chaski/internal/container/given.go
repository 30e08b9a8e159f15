package container

import (
	"context"
	"encoding/json"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/containers"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tables/query"
)

// conditionFlags has the flag --given, which chooses samples by the conditions of a spec.
type conditionFlags struct {
	text   string        // of the flag
	parsed loader.Subset // of text, if read is set
	read   bool
	sql    query.Full
	limits query.Limits
	stored bool // --stored: tables have all rows of the file
}

func (f *conditionFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.text, "given", "",
		"use only the samples of level 0 that meet a `JSON` list of conditions, like \"where\" of a spec; @FILE "+
			"reads the list from a file")
}

// fromFile returns the content of FILE for an argument "@FILE", and any other argument unchanged. It
// exists because Linux refuses arguments over 128 KiB, and a list of ids may be longer.
func fromFile(arg string) (string, error) {
	name, ok := strings.CutPrefix(arg, "@")
	if !ok {
		return arg, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return "", console.Usagef("%w", err)
	}
	return string(data), nil
}

// subset returns the conditions. It reads their file only once, since a pipe would be empty the second
// time.
func (f *conditionFlags) subset() (s loader.Subset, err error) {
	if f.text == "" || f.read {
		return f.parsed, nil
	}
	text, err := fromFile(f.text)
	if err != nil {
		return s, err
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s.Where); err != nil {
		return s, console.Usagef("--given is not a list of conditions: %w", err)
	}
	f.parsed, f.read = s, true
	return s, nil
}

// tables returns the tables that a query can name.
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
	source, err := containers.Tables(ctx, d, s.Where, loader.Options{SQL: f.sql, SQLLimits: f.limits})
	return source, console.UsageUnlessFault(err)
}

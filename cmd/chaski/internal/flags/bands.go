package flags

import (
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/loader"
)

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

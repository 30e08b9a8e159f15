package flags

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/loader"
)

// ParseFields reads the values of --field: NAME, NAME=COLUMN or NAME=PATTERN.
func ParseFields(list []string) ([]loader.Field, error) {
	var fields []loader.Field
	for _, text := range list {
		name, where, named := strings.Cut(text, "=")
		f := loader.Field{Name: name}
		switch {
		case name == "" || named && where == "":
			return nil, console.Usagef("--field is %q: it must be NAME, NAME=COLUMN or NAME=PATTERN", text)
		case strings.Contains(where, "{id}"):
			f.Pattern = where
		default:
			f.Column = where
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// stackFields joins the fields that have one name into a stack of their columns or patterns.
func stackFields(fields []loader.Field) []loader.Field {
	var out []loader.Field
	for _, f := range fields {
		k := slices.IndexFunc(out, func(o loader.Field) bool { return o.Name == f.Name })
		if k < 0 {
			out = append(out, f)
			continue
		}
		// A member that both lack, or that has two kinds, stays as it is: the spec makes the error.
		switch o := &out[k]; {
		case f.Column != "" && (o.Column != "" || o.Columns != nil):
			if o.Columns == nil {
				o.Columns, o.Column = []string{o.Column}, ""
			}
			o.Columns = append(o.Columns, f.Column)
		case f.Pattern != "" && (o.Pattern != "" || o.Patterns != nil):
			if o.Patterns == nil {
				o.Patterns, o.Pattern = []string{o.Pattern}, ""
			}
			o.Patterns = append(o.Patterns, f.Pattern)
		default:
			out = append(out, f)
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

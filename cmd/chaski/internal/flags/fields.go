package flags

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/loader"
)

// ParseFields reads NAME, NAME=COLUMN and NAME=PATTERN.
func ParseFields(list []string) ([]loader.Field, error) {
	var fields []loader.Field
	for _, text := range list {
		name, where, named := strings.Cut(text, "=")
		f := loader.Field{Name: name}
		switch {
		case name == "" || named && where == "":
			return nil, console.Usagef("--field %q is not NAME=COLUMN or NAME=PATTERN", text)
		case strings.Contains(where, "{id}"):
			f.Pattern = where
		default:
			f.Column = where
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// ParsePair reads "HxW" or "N", which is "NxN".
func ParsePair(text string) (h, w int, err error) {
	a, b, two := strings.Cut(text, "x")
	if !two {
		b = a
	}
	h, err1 := strconv.Atoi(a)
	w, err2 := strconv.Atoi(b)
	if err1 != nil || err2 != nil || h < 1 || w < 1 || h > math.MaxInt32 || w > math.MaxInt32 {
		return 0, 0, fmt.Errorf("%q is not HxW in pixels", text)
	}
	return h, w, nil
}

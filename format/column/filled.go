package column

import (
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
)

// Filled returns the column of the texts that a pattern becomes with the values of the columns that it names, as
// "{scene}_{tile}" does with the columns scene and tile, which find returns. A row in which one of these is null, or an
// empty string if path is set, has a null. A column of other values than strings and whole numbers is
// fault.Unsupported.
func Filled(pattern string, path bool, find func(name string) (*Column, error)) (*Column, error) {
	names, what := Names(pattern), strconv.Quote(pattern)
	if path {
		what = "a path"
	}
	from := make([]*Column, len(names))
	for i, name := range names {
		var err error
		if from[i], err = find(name); err != nil {
			return nil, err
		}
		if kind := from[i].Kind; kind != Text && kind != Int || from[i].Unit != 0 {
			return nil, fault.New(fault.Unsupported, "column "+name,
				"it must hold strings or whole numbers to be a part of %s", what)
		}
	}
	return Join(from, func(values []Value) Value {
		for i, v := range values {
			if v.Null || path && from[i].Kind == Text && len(v.Text) == 0 {
				return Value{Null: true}
			}
		}
		return Value{Text: AppendFill(make([]byte, 0, 2*len(pattern)), pattern, func(name string) (string, bool) {
			i := slices.Index(names, name)
			return values[i].In(from[i].Kind), true
		})}
	}), nil
}

package rows

import (
	"fmt"
	"maps"
	"slices"

	"github.com/chaski-eo/chaski/store/catalog"
)

// maxParts is how many values of a column an error lists, so it stays short.
const maxParts = 10

// values are the different values of a column, for errors.
type values struct {
	kind   catalog.Kind
	texts  map[string]bool // at most one more than maxParts, which shows that there are others
	lo, hi catalog.Value   // of numbers
}

func (s *values) add(kind catalog.Kind, v catalog.Value) {
	if v.Null {
		return
	}
	if s.kind = kind; s.texts == nil {
		s.texts, s.lo, s.hi = map[string]bool{}, v, v
	}
	if len(s.texts) <= maxParts {
		s.texts[v.In(kind)] = true
	}
	if v.Int < s.lo.Int || v.Float < s.lo.Float {
		s.lo = v
	}
	if v.Int > s.hi.Int || v.Float > s.hi.Float {
		s.hi = v
	}
}

// String returns the values, or the least and the greatest of many numbers.
func (s *values) String() string {
	list := slices.Sorted(maps.Keys(s.texts))
	switch {
	case len(list) <= maxParts:
		return fmt.Sprintf("%q", list)
	case s.kind == catalog.Text:
		return fmt.Sprintf("%q, …", list[:maxParts])
	}
	return fmt.Sprintf("numbers from %s to %s", s.lo.In(s.kind), s.hi.In(s.kind))
}

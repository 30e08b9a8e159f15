package column

import (
	"fmt"
	"slices"
)

// Mode says what Concat does with columns that some tables lack.
type Mode uint8

// Modes.
const (
	Intersection Mode = iota // leave them out
	FillMissing              // fill them with null
	Strict                   // refuse
	// as FillMissing, but types that cannot be joined are an error only when the column is loaded
	Mixed
)

// Missing says in a message what becomes of columns that some tables lack.
func (m Mode) Missing() string {
	if m == Intersection {
		return "left out"
	}
	return "filled with null"
}

// Modes are the names of the modes that ParseMode knows.
var Modes = []string{"intersection", "fill_missing", "strict"}

// ParseMode parses a name of Modes.
func ParseMode(s string) (Mode, error) {
	if m := slices.Index(Modes, s); m >= 0 {
		return Mode(m), nil
	}
	return 0, fmt.Errorf("column mode is %q: it must be intersection, fill_missing or strict", s)
}

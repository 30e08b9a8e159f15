package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Grid is the grid of a field of several rasters: 0 for the first one's, else the size of its pixels in metres.
// Its JSON form is "first" or a number.
type Grid float64

const firstGrid = "first"

// MarshalJSON writes "first", or the size of pixels.
func (g Grid) MarshalJSON() ([]byte, error) {
	if g == 0 {
		return json.Marshal(firstGrid)
	}
	return json.Marshal(float64(g))
}

// UnmarshalJSON reads "first" or a number above 0. Other JSON is an error.
func (g *Grid) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(string(b), 64)
	if string(b) != `"`+firstGrid+`"` && (err != nil || !(v > 0)) {
		return errors.New(`"first", or the size of pixels in metres, above 0`)
	}
	*g = Grid(v)
	return nil
}

// maxParts bounds the rasters of a stacked field: a file for each of the 224 bands of a hyperspectral sensor fits.
const maxParts = 256

// Stacked reports whether the field is made of the rasters of several columns or patterns.
func (f *Field) Stacked() bool { return f.Columns != nil || f.Patterns != nil }

// Parts returns a field for each raster of a stacked field, in their order.
func (f *Field) Parts() []Field {
	out := make([]Field, 0, len(f.Columns)+len(f.Patterns))
	part := func(name string) Field {
		index := len(out)
		kind := RasterField
		if f.Kind == NumberField {
			kind = f.Kind
		}
		return Field{Name: f.Name + "." + name, Kind: kind, DType: f.DType, Pages: f.Pages, Dims: f.Dims,
			Missing: f.Missing, Scale: f.Scale.of(index, cap(out)), Offset: f.Offset.of(index, cap(out))}
	}
	for _, c := range f.Columns {
		field := part(c)
		field.Column = c
		out = append(out, field)
	}
	for _, pattern := range f.Patterns {
		field := part(pattern)
		field.Pattern = pattern
		out = append(out, field)
	}
	return out
}

// validateStack checks the members of a stacked field. Only a stacked field may have a grid.
func (f *Field) validateStack() error {
	if !f.Stacked() {
		if f.Grid != 0 {
			return wrong("grid", float64(f.Grid), "it is for columns or patterns")
		}
		return nil
	}
	name, list := "columns", f.Columns
	if f.Patterns != nil {
		name, list = "patterns", f.Patterns
	}
	switch {
	case f.Columns != nil && f.Patterns != nil:
		return errors.New("both columns and patterns are given")
	case f.Column != "" || f.Pattern != "" || f.Blob != "":
		return fmt.Errorf("%s is given, and column, pattern or blob beside it", name)
	case len(list) == 0 || len(list) > maxParts || slices.Contains(list, ""):
		return fmt.Errorf("%s is %q: it must have 1 to %d names", name, list, maxParts)
	case f.BandNames != nil:
		return fmt.Errorf("%s and names of bands are given: pick bands by their index in the stack", name)
	case !(f.Grid >= 0) || math.IsInf(float64(f.Grid), 0):
		return wrong("grid", float64(f.Grid), "it must be the size of pixels in metres, above 0")
	}
	return nil
}

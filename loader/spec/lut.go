package spec

import (
	"errors"
	"fmt"
	"slices"

	"github.com/chaski-eo/chaski/format/chunk"
)

// Values are one for each band, or one for all.
type Values []float64

// Names are names of columns: one for each band, or one for all.
type Names []string

// of returns the names for one raster of n: each has the same, or one of its own.
func (names Names) of(i, n int) Names {
	if len(names) == n {
		return names[i : i+1]
	}
	return names
}

// LUT is a look-up table for rasters of real types, or for the colours of rasters of uint8 or uint16.
// It applies to stored pixels: nodata and masks are the file's, and windows are resampled before it, with the nearest
// pixels.
type LUT struct {
	// From are the stored numbers that have values. Pixels with other numbers are nodata, and the field needs a fill.
	// Default: 0, 1 and so on; a list with a value for each number of an int8 or int16 has its negative numbers at
	// the end, as numpy's take.
	From []int `json:"from,omitempty"`
	// Colours have values in place of From: each is a list with the numbers of the bands that the field picks, three or
	// four of them. The raster becomes one of one band. A pixel that is nodata in all bands is nodata. A sample with a
	// pixel of another colour is bad, unless the field has a fill: then the pixel is nodata. Default: none.
	Colours [][]int `json:"colours,omitempty"`
	// Masks says that each band, such as each raster of Columns or Patterns, is the mask of one class, in place of
	// From, Colours and To. The raster becomes one of one band: the number, from 1, of the last one that is neither 0
	// nor nodata, else 0. A pixel that is nodata in all bands is nodata. A sample is bad whose band has two numbers
	// besides 0, such as masks in JPEG. JSON may have "masks".
	Masks bool `json:"masks,omitempty"`
	// To are their values: each a number or, for a raster of one band, a list with one for each band of the tensor.
	To []Values `json:"to,omitempty"`
}

// maxLUT is the largest number of values: one for each number of 16 bits.
const maxLUT = 1 << 16

// Bands returns how many bands the table makes of one, or 0 if it leaves bands as they are.
func (l *LUT) Bands() int {
	if l == nil || l.Masks || len(l.To[0]) == 1 {
		return 0
	}
	return len(l.To[0])
}

// OfColours reports whether the table makes one band of all.
func (l *LUT) OfColours() bool { return l != nil && (l.Colours != nil || l.Masks) }

// Numbers returns the stored numbers that have values, for a raster of a dtype.
func (l *LUT) Numbers(dtype chunk.DType) []int {
	if l.From != nil {
		return l.From
	}
	count := 1 << (8 * min(dtype.Size(), 2)) // other dtypes have no table
	signed := len(l.To) == count && (dtype == chunk.Int8 || dtype == chunk.Int16)
	out := make([]int, len(l.To))
	for i := range out {
		if out[i] = i; signed && i >= count/2 {
			out[i] = i - count
		}
	}
	return out
}

// validate checks the table of a field. stacked is true of a field with several rasters. A nil l is valid.
func (l *LUT) validate(stacked bool) error {
	switch {
	case l == nil:
		return nil
	case l.Masks:
		if l.From != nil || l.Colours != nil || l.To != nil {
			return errors.New("masks is true, and from, colours or to is given beside it")
		}
		return nil
	case len(l.To) == 0 || len(l.To) > maxLUT:
		return fmt.Errorf("it has %d values: it must have 1 to %d", len(l.To), maxLUT)
	case l.From != nil && len(l.From) != len(l.To):
		return fmt.Errorf("from has %d numbers and to has %d values: both need as many", len(l.From), len(l.To))
	case l.Colours != nil:
		if err := l.validateColours(stacked); err != nil {
			return err
		}
	case len(l.To[0]) > 1 && stacked:
		return errors.New("columns and patterns have several rasters: lists of values are for a raster of one band")
	}
	for i, value := range l.To {
		if n := len(value); n != len(l.To[0]) || n == 0 || n > chunk.MaxBands {
			return fmt.Errorf("value %d has %d numbers, and the first has %d: all need as many, from 1 to %d", i, n,
				len(l.To[0]), chunk.MaxBands)
		}
	}
	if number, twice := repeated(l.From); twice {
		return fmt.Errorf("%d has two values", number)
	}
	return nil
}

// validateColours checks the colours of a table.
func (l *LUT) validateColours(stacked bool) error {
	switch {
	case l.From != nil:
		return errors.New("both from and colours are given")
	case len(l.Colours) != len(l.To) || len(l.To) == maxLUT:
		return fmt.Errorf("colours has %d and to has %d values: both need as many, at most %d", len(l.Colours),
			len(l.To), maxLUT-1)
	case stacked:
		return errors.New("columns and patterns have several rasters: colours are the bands of one")
	}
	seen := map[[4]int]bool{}
	for i, colour := range l.Colours {
		outside := func(number int) bool { return number < 0 || number >= 1<<16 }
		if n := len(colour); n != len(l.Colours[0]) || n < 3 || n > 4 || slices.ContainsFunc(colour, outside) {
			return fmt.Errorf("colour %d is %d: all have 3 or all 4 numbers, from 0 to 65535", i, colour)
		}
		key := [4]int{3: -1}
		if copy(key[:], colour); seen[key] {
			return fmt.Errorf("the colour %d has two values", colour)
		}
		seen[key] = true
	}
	return nil
}

package recipe

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/ops/columns"
)

// Labels says which classes the pixels of a chip must have. The answer depends on the window alone, so every worker
// and part gives the same.
type Labels struct {
	// Field is the field of labels: one band of whole numbers, or a mask of shapes.
	Field string `json:"field"`
	// Classes are values of Field, which are whole numbers. A chip stays if it has enough pixels of one of them.
	Classes []float64 `json:"classes"`
	// MinShare is the least share of the pixels of a chip that is enough, from 0 to 1. Nodata, masked pixels and those
	// past the edge are of no class, but count as pixels. Default: one pixel is enough.
	MinShare float64 `json:"min_share"`
}

// maxClass bounds classes. Pixels are compared as float64, which holds all whole numbers up to 2^53; a larger pixel
// never rounds to a smaller class.
const maxClass = 1<<53 - 1

// check checks the values that do not depend on the field.
func (l *Labels) check() error {
	switch {
	case len(l.Classes) == 0:
		return errors.New("quality.labels.classes is missing, such as [3, 7]")
	case !(l.MinShare >= 0 && l.MinShare <= 1):
		return fmt.Errorf("quality.labels.min_share is %g: it must be from 0 to 1", l.MinShare)
	}
	for _, class := range l.Classes {
		if class != math.Trunc(class) || math.Abs(class) > maxClass {
			return fmt.Errorf("quality.labels.classes has %.16g: it must be a whole number from %d to %d", class,
				-maxClass, maxClass)
		}
	}
	return nil
}

// in reports whether the valid samples of an image have enough pixels of one class.
func (l *Labels) in(pixels *loader.Tensor, valid []byte) (bool, error) {
	refuse := func(format string, args ...any) (bool, error) {
		return false, fault.New(fault.Unsupported, "field "+l.Field, fault.NoOffset, format, args...)
	}
	if n := pixels.Shape[1]; n != 1 {
		return refuse("a chip has %d bands: quality.labels needs one, as bands: [0] gives it", n)
	}
	if !pixels.DType.Integer() {
		return refuse("a chip is %s: classes of quality.labels are whole numbers", pixels.DType)
	}
	counts := make([]int, len(l.Classes))
	width, size := int(pixels.Shape[3]), pixels.DType.Size()
	var line []float64
	for pos := 0; pos < len(valid); pos += width {
		line = columns.AppendValues(line[:0], pixels.Data[pos*size:][:width*size], pixels.DType)
		for x, v := range line {
			if i := slices.Index(l.Classes, v); i >= 0 && valid[pos+x] != 0 {
				counts[i]++
			}
		}
	}
	// The quotient of 7 and 100 is 0.07 as the recipe has it, and the product of 0.07 and 100 is more than 7.
	largest := slices.Max(counts)
	return largest > 0 && float64(largest)/float64(len(valid)) >= l.MinShare, nil
}

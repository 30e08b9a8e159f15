package vector

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/npy"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
)

func init() { register(labelFormat{"NumPy's array", beginsNPY, readNPY, Pixels, false}) }

func beginsNPY(head []byte) bool { return magic.Of(head) == magic.NPY }

// readNPY reads an array (k, 4) of boxes x0, y0, x1, y1, or (k, 5) with a number of the class behind each. An array of
// any shape without elements has no objects.
func readNPY(ctx context.Context, r source.Reader, l *labels) error {
	at := func(off int64, n int) ([]byte, error) {
		if off > r.Size()-int64(n) {
			return nil, fault.New(fault.Corrupt, "array", off, "the file ends before %d bytes", n)
		}
		b := make([]byte, n)
		return b, r.ReadAt(ctx, b, off)
	}
	array, err := npy.Parse(at)
	if err != nil {
		return err
	}
	dtype, big, ok := array.DType()
	boxes, known := 0, []string{}
	for i, n := range array.Shape {
		switch {
		case n == 0:
			return nil
		case i == 0:
			boxes = n
		case n == 5 && len(array.Shape) == 2:
			known = []string{classColumn}
		case n != 4 || len(array.Shape) != 2:
			ok = false
		}
	}
	if !ok || len(array.Shape) != 2 {
		return fault.New(fault.Unsupported, "array", fault.NoOffset, "dtype %q of shape %d: boxes are numbers (k, 4), "+
			"or (k, 5) with their classes", array.Descr, array.Shape)
	}
	if err := l.have(known...); err != nil {
		return err
	}
	l.values[0].words, l.ordinal = false, l.values[0].column == classColumn
	size, width := dtype.Size(), 4+len(known)
	row, column := width, 1 // how many numbers further the next one is
	if array.Fortran {
		row, column = 1, boxes
	}
	if int64(boxes) > r.Size()/int64(width*size) {
		return fault.New(fault.Corrupt, "array", r.Size(), "the file ends before its %d boxes", boxes)
	}
	for i := range boxes {
		var values [5]float64
		for k := range width {
			sample, err := at(int64(array.Size)+int64(i*row+k*column)*int64(size), size)
			if err != nil {
				return err
			}
			if big {
				slices.Reverse(sample)
			}
			if values[k] = dtype.Number(sample); math.IsNaN(values[k]) || math.IsInf(values[k], 0) {
				return fault.New(fault.Corrupt, fmt.Sprintf("row %d", i), fault.NoOffset, "%g is no coordinate: leave "+
					"out such boxes", values[k])
			}
		}
		form := l.box(values[0], values[1], values[2], values[3])
		if err := l.words(map[string]string{classColumn: strconv.FormatFloat(values[4], 'f', -1, 64)}); err != nil {
			return err
		}
		if err := l.end(ctx, form); err != nil {
			return err
		}
	}
	return nil
}

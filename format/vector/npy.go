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

func beginsNPY(head []byte) bool { return magic.Of(head) == magic.NPY }

// readNPY reads an array (k, 4) of boxes x0, y0, x1, y1, or (k, 5) with a number of the class behind each. An array
// without elements, of any shape, stands for an empty list of objects.
func readNPY(ctx context.Context, r source.Reader, l *labels, _ []byte) error {
	at := func(off int64, n int) ([]byte, error) {
		if off > r.Size()-int64(n) {
			return nil, fault.At(fault.Corrupt, "array", off, "the file ends before %d bytes", n)
		}
		return source.Read(ctx, r, off, int64(n))
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
		return fault.New(fault.Unsupported, "array", "dtype %q of shape %d: boxes are numbers (k, 4), "+
			"or (k, 5) with their classes", array.Descr, array.Shape)
	}
	if err := l.have(known); err != nil {
		return err
	}
	width, size := 4+len(known), dtype.Size()
	if int64(boxes) > r.Size()/int64(width*size) {
		return fault.At(fault.Corrupt, "array", r.Size(), "the file ends before its %d boxes", boxes)
	}
	if err := l.o.Grow(ctx, int64(boxes*width*size)); err != nil {
		return err
	}
	data, err := at(int64(array.Size), boxes*width*size)
	if err != nil {
		return err
	}
	for i := range boxes {
		var values [5]float64
		for k := range width {
			place := i*width + k
			if array.Fortran { // the numbers of a column stand together
				place = k*boxes + i
			}
			sample := data[place*size:][:size]
			if big {
				slices.Reverse(sample)
			}
			if values[k] = dtype.Number(sample); math.IsNaN(values[k]) || math.IsInf(values[k], 0) {
				return fault.New(fault.Corrupt, fmt.Sprintf("row %d", i), "%g is no coordinate: "+
					"leave out such boxes", values[k])
			}
		}
		form := l.box(values[0], values[1], values[2], values[3])
		for _, column := range l.values {
			if column.column != "" { // it is the class
				if err := column.addWord(strconv.FormatFloat(values[4], 'f', -1, 64)); err != nil {
					return err
				}
			}
		}
		if err := l.end(ctx, form); err != nil {
			return err
		}
	}
	return nil
}

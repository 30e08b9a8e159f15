package vector

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/npy"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
)

func beginsNPY(head []byte) bool { return magic.Of(head) == magic.NPY }

// readNPY reads an array (k, 4) of boxes x0, y0, x1, y1, or (k, 5) with a number of the class behind each. An array
// without elements, of any shape, stands for an empty list of objects.
func readNPY(ctx context.Context, r source.Reader, l *labels) error {
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
	if err := l.have(known...); err != nil {
		return err
	}
	l.values[0].words, l.ordinal = false, l.values[0].column == classColumn
	boxed := npyBoxes{labels: l, at: at, array: array, dtype: dtype, big: big, width: 4 + len(known)}
	if int64(boxes) > r.Size()/int64(boxed.width*dtype.Size()) {
		return fault.At(fault.Corrupt, "array", r.Size(), "the file ends before its %d boxes", boxes)
	}
	for from := 0; from < boxes; from += npyBlock {
		if err := boxed.read(ctx, from, min(npyBlock, boxes-from)); err != nil {
			return err
		}
	}
	return nil
}

// npyBlock is how many boxes are read at a time: at most 5 numbers of 8 bytes each, 40 KiB.
const npyBlock = 1 << 10

// npyBoxes are the boxes of an array.
type npyBoxes struct {
	labels *labels
	at     func(off int64, n int) ([]byte, error)
	array  npy.Array
	dtype  chunk.DType
	big    bool
	width  int // numbers of a box
}

// read adds n boxes. In C order their numbers stand together, in Fortran order the numbers of each
// column do.
func (b *npyBoxes) read(ctx context.Context, from, n int) error {
	size, runs, each := b.dtype.Size(), 1, n*b.width
	start := func(int) int { return from * b.width }
	if b.array.Fortran {
		runs, each = b.width, n
		start = func(column int) int { return column*b.array.Shape[0] + from }
	}
	columns := make([]byte, 0, n*b.width*size)
	for k := range runs {
		run, err := b.at(int64(b.array.Size)+int64(start(k))*int64(size), each*size)
		if err != nil {
			return err
		}
		columns = append(columns, run...)
	}
	for i := range n {
		var values [5]float64
		for k := range b.width {
			place := i*b.width + k
			if b.array.Fortran {
				place = k*n + i
			}
			sample := columns[place*size:][:size]
			if b.big {
				slices.Reverse(sample)
			}
			if values[k] = b.dtype.Number(sample); math.IsNaN(values[k]) || math.IsInf(values[k], 0) {
				return fault.New(fault.Corrupt, fmt.Sprintf("row %d", from+i), "%g is no coordinate: "+
					"leave out such boxes", values[k])
			}
		}
		form := b.labels.box(values[0], values[1], values[2], values[3])
		class := strconv.FormatFloat(values[4], 'f', -1, 64)
		if err := b.labels.add(ctx, form, []string{classColumn}, class); err != nil {
			return err
		}
	}
	return nil
}

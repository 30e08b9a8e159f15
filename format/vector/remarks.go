package vector

import (
	"fmt"

	"github.com/chaski-eo/chaski/fault"
)

// Remark says what of a file of shapes becomes nothing, or perhaps another thing than its writer meant. It is for the
// log; what cannot be read is an error.
type Remark string

// Remarks on files of labels, of any format.
const (
	NoOutline    Remark = "objects that are no outlines, such as lines and points, are left out"
	NoArea       Remark = "boxes without width or height are left out"
	NoBox        Remark = "objects without coordinates where box says are left out"
	NoObject     Remark = "values where objects must stand are taken for none"
	Backwards    Remark = "boxes end before they begin: the order of box is x0 y0 x1 y1"
	NoImage      Remark = "objects name images that the file does not have, and are left out"
	Annotators   Remark = "images have annotations of several annotators: the objects of all are taken"
	OtherSize    Remark = "the labels are for images of another size"
	SixNumbers   Remark = "the sixth number of objects is taken for a score, and not for an angle"
	SevenNumbers Remark = "objects of a class and six numbers are taken for outlines of three points"
)

// Remarks has how often each remark holds, and the first case.
type Remarks map[Remark]Counted

// Counted is how often a remark holds, and what the first object is that it holds for.
type Counted struct {
	N     int
	First string
}

// Add counts an object that a remark holds for. first says which it is.
func (r *Remarks) Add(remark Remark, first ...any) {
	if *r == nil {
		*r = Remarks{}
	}
	c := (*r)[remark]
	if c.N++; c.N == 1 {
		c.First = fault.Short(fmt.Sprint(first...))
	}
	(*r)[remark] = c
}

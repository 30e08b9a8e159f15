package vector

import (
	"context"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// Names that columns have in formats whose columns have no names of their own.
const (
	classColumn = "class"
	scoreColumn = "score" // of predictions
)

// format is a format of labels for detectors, whose shapes lie in the pixels of images: where a file has its objects,
// and where each of them has its coordinates, its class and its values. A place is a column, or a path, see pathOf;
// several are alternatives.
type format struct {
	name   string
	begins func(head []byte) bool // reports whether a file with these first bytes has it; nil of JSON, see member
	member string                 // of a file in JSON, with its objects
	read   func(ctx context.Context, r source.Reader, l *labels, head []byte) error
	unit   unit // of coordinates
	many   bool // one file names the images of its objects

	// columns are the names of places of forms and of values in a text without a header or an array, "." for none.
	columns string
	// words returns what a line has in columns.
	words   func(l *labels, words []string) ([]string, error)
	ordinal bool // classes are positions in a list of names that is elsewhere

	objects string
	class   string    // its column has the name of the first place; "": values has it, if any
	forms   []*form   // the first outline that an object has in full counts, or the first box: see choose
	shape   string    // says which of them it is, by form.shapes, "" of formats that do not say it
	more    string    // places of an object that are looked at, too
	values  string    // the member of an object that has its values; "": the object itself
	image   [3]string // the name, the width and the height of the image
	lacks   string    // what is wrong with an object without coordinates; "": it has no shape

	// shared is the member around the objects of an image, "." for the elements of a list; "": a file is of one image.
	shared string
	drops  string                   // the member around objects that is true where they do not count; "": all count
	path   func(name string) string // of an image by its name in the file; nil: they are equal
}

// unit is in what coordinates are measured.
type unit uint8

const (
	inPixels  unit = iota
	inShares       // of the image
	inPercent      // of the image, whose width, height and turn the object has at percentPlaces
)

const percentPlaces = "original_width original_height image_rotation"

// labelFormats are the formats that are no JSON; formats.go sets them before main runs.
var labelFormats []*format

// nothing is the form of an object that lacks a shape.
var nothing = &form{kind: &shapeKind{}}

// choose returns the form of an object: an outline, if it has one and boxes are not asked for. Where objects say what
// they are, the first form of these shapes counts.
func (l *labels) choose(of record) (*form, error) {
	f := l.format
	name := ""
	if f.shape != "" && textAt(of, f.shape) != "null" {
		name = unquoted(textAt(of, f.shape))
	}
	shape := strings.TrimSuffix(name, "labels") // of Label Studio
	var box, outline *form
	for _, form := range f.forms {
		switch isBox := form.kind.text == nil && len(form.kind.roles) == 4; {
		case !form.fits(shape) || !form.all(of):
		case form.shapes != nil:
			return form, nil
		case isBox && box == nil:
			box = form
		case !isBox && outline == nil:
			outline = form
		}
	}
	others := func(form *form) bool { return form.shapes != nil && form.fits(shape) }
	begun := func(form *form) bool { return textAt(of, form.places[0].name) != "" }
	switch {
	case box != nil && (l.o.Boxes || outline == nil):
		return box, nil
	case outline != nil:
		return outline, nil
	case shape != "" && !slices.ContainsFunc(f.forms, others) && (f.lacks == "" || slices.ContainsFunc(f.forms, begun)):
		l.leaveOut(name)
	case shape != "" && slices.ContainsFunc(f.forms, func(form *form) bool { return others(form) && form.any(of) }):
		return nil, fault.New(fault.Corrupt, "object", "%q has too few coordinates, or too many", fault.Short(name))
	case f.lacks != "":
		return nil, fault.New(fault.Unsupported, "object", "%s", f.lacks)
	case !l.table: // a line without coordinates is of an image without shapes
		l.leaveOut("an object without coordinates")
	}
	return nothing, nil
}

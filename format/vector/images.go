package vector

import (
	"cmp"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/source"
)

// images finds the shapes of an image by its path.
type images struct {
	values *Values          // the column with the paths
	exact  *spelling        // as the column has them
	loose  func() *spelling // without the endings of images, with slashes in place of the separators of Windows
	rows   [][]uint32       // for each code its shapes
	owners []owner          // for each code the image that it names, after Layer.Own; nil before
	sizes  [][2]float64     // for each code the width and height that the file says, or nil
	one    bool             // all shapes are of one image
}

// Image is what a file of shapes says of an image.
type Image struct {
	Rows          []uint32 // the numbers of its shapes, in the order of the file
	Width, Height float64  // in pixels; 0 if the file does not say it
	Other         string   // the image that a file of one image names instead, or ""
}

// spelling has the paths of a column in one form.
type spelling struct {
	names []string // by code
	order []uint32 // the codes, sorted by the names from their ends
}

// newSpelling returns the spelling of names.
func newSpelling(names []string) *spelling {
	s := &spelling{names: names, order: make([]uint32, len(names))}
	for code := range names {
		s.order[code] = uint32(code)
	}
	slices.SortFunc(s.order, func(a, b uint32) int { return fromEnds(names[a], names[b]) })
	return s
}

// owner is an image that a path in the column names.
type owner struct {
	uri    string
	parts  int    // how many of their last parts the two paths have in common
	second string // another image that has as many, or ""
}

// newImages makes the lists of shapes from a column of strings; it returns nil without one.
func newImages(o *Options, values *Values) (*images, error) {
	if values == nil {
		return nil, nil
	}
	if o.imageForm != "" {
		values = values.inPath(o.imageForm)
	}
	if values.Codes == nil && !values.AllNull() {
		return nil, fault.New(fault.Unsupported, "column "+o.Image,
			`it has numbers, but images are found by their paths: write one, such as "{%s}.tif"`, o.Image)
	}
	found := &images{values: values, rows: make([][]uint32, len(values.Names)), exact: newSpelling(values.Names)}
	found.loose = sync.OnceValue(func() *spelling {
		names := make([]string, len(values.Names))
		for code, name := range values.Names {
			names[code] = magic.WithoutEnding(strings.ReplaceAll(name, `\`, "/"))
		}
		return newSpelling(names)
	})
	for row, code := range values.Codes {
		if !values.Null(row) {
			found.rows[code] = append(found.rows[code], uint32(row))
		}
	}
	return found, nil
}

// OfImage returns what the file says of an image. The image is the one that the file names, in the column Options.Image
// or as its format does, with the most of the last parts of the path; if none has the last part, endings of images do
// not count. It is not found if the file names no image or, as Own has seen, another one. All shapes of a file that
// names no images, or is of one image, are of any image.
func (l *Layer) OfImage(uri string) (image Image, err error) {
	known := l.images
	if known == nil || known.one {
		image.Rows = num.Range[uint32](0, int(l.n))
	}
	if known == nil {
		return image, nil
	}
	code, parts, err := known.find(uri)
	switch {
	case err != nil && known.one: // of a file that does not name it, Other is ""
		image.Other, err = known.values.Names[0], nil
	case err == nil && known.owners != nil && parts < known.owners[code].parts:
		err = known.notNamed(uri)
	}
	if err != nil {
		return Image{}, err
	}
	if !known.one {
		image.Rows = known.rows[code]
	}
	if known.sizes != nil {
		image.Width, image.Height = known.sizes[code][0], known.sizes[code][1]
	}
	return image, nil
}

// Owned says how the images of a dataset and those that a file names fit together.
type Owned struct {
	Images, Named, Shapes int    // images of the dataset, those that the file names, and shapes on them
	Unnamed               string // the first image that the file does not name, or ""
	Others                int    // paths in the file that no image has
	Other                 string // the first one
}

// Own notes which images there are, by their paths. If a path in the column names two of them alike, or the file names
// no images, it is unsupported.
func (l *Layer) Own(uris iter.Seq2[string, error]) (fit Owned, err error) {
	known := l.images
	if known == nil {
		return fit, fault.New(fault.Unsupported, "images", "it does not say on which image each shape "+
			"lies: give the column with the path of the image as image, or a file for each image as pattern")
	}
	owners := make([]owner, len(known.rows))
	for uri, err := range uris {
		if err != nil {
			return fit, err
		}
		fit.Images++
		code, parts, err := known.find(uri)
		if err != nil { // reading the image says so
			fit.Unnamed = cmp.Or(fit.Unnamed, uri)
			continue
		}
		fit.Named++
		switch one := &owners[code]; {
		case parts > one.parts:
			*one = owner{uri: uri, parts: parts}
		case parts == one.parts && one.uri != uri && one.second == "":
			one.second = uri
		}
	}
	for code, one := range owners {
		name := known.values.Names[code]
		if one.second != "" {
			return fit, fault.New(fault.Unsupported, "images", "%q may be %s or %s: write paths that tell them "+
				"apart into the column, such as %q", name, one.uri, one.second, one.uri)
		}
		if one.uri == "" && name != "" {
			fit.Others, fit.Other = fit.Others+1, cmp.Or(fit.Other, name)
		} else if one.uri != "" {
			fit.Shapes += len(known.rows[code])
		}
	}
	known.owners = owners
	return fit, nil
}

func (known *images) notNamed(uri string) error {
	example := ""
	if len(known.values.Names) > 0 {
		example = fmt.Sprintf("; the file has names such as %q", fault.Short(known.values.Names[0]))
	}
	return fault.New(fault.NotFound, "images", "no shape names %q%s: missing \"empty\" takes it as without objects, "+
		"and ids of rows leave it out, as \"FILE.json::images.file_name\" of COCO", path.Base(uri), example)
}

// exactParts is above how many parts a path has: a name with its ending is nearer than any without.
const exactParts = 1 << 20

// find returns the code of the path in the column that has the most of the last parts of the path of an image, and how
// near it is: the number of these parts, and exactParts if the ending is one.
func (known *images) find(uri string) (code uint32, parts int, err error) {
	if source.IsWeb(uri) {
		uri, _, _ = strings.Cut(uri, "?") // a signature
	}
	code, parts, several := known.exact.nearest(uri)
	if parts > 0 {
		parts += exactParts
	} else {
		code, parts, several = known.loose().nearest(magic.WithoutEnding(uri))
	}
	switch {
	case parts == 0:
		err = known.notNamed(uri)
	case several:
		err = fault.New(fault.Unsupported, "images", "several names of the column may be %q: write "+
			"paths that tell them apart into it, such as this one", uri)
	}
	return code, parts, err
}

// nearest returns the code of the name that has the most of the last parts of a path, how many, and whether several
// names have as many.
func (s *spelling) nearest(uri string) (found uint32, largest int, several bool) {
	pos, _ := slices.BinarySearchFunc(s.order, uri, func(code uint32, uri string) int {
		return fromEnds(s.names[code], uri)
	})
	// Paths with the same last parts follow each other, so two with the most are beside each other at pos.
	for _, code := range s.order[max(0, pos-2):min(pos+2, len(s.order))] {
		switch parts := common(uri, s.names[code]); {
		case parts > largest:
			found, largest, several = code, parts, false
		case parts == largest:
			several = true
		}
	}
	return found, largest, several
}

// fromEnds compares two paths from their ends, as if each began with a slash.
func fromEnds(a, b string) int {
	byteOf := func(s string, i int) int {
		switch {
		case i < len(s):
			return int(s[len(s)-1-i])
		case i == len(s):
			return '/'
		}
		return -1
	}
	for i := range min(len(a), len(b)) + 2 {
		if order := cmp.Compare(byteOf(a, i), byteOf(b, i)); order != 0 {
			return order
		}
	}
	return 0
}

// common returns how many of their last parts two paths have in common.
func common(a, b string) (n int) {
	first, second := strings.Split(a, "/"), strings.Split(b, "/")
	for n < min(len(first), len(second)) && first[len(first)-1-n] == second[len(second)-1-n] {
		n++
	}
	return n
}

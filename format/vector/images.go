package vector

import (
	"cmp"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/join"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/source"
)

// images finds the shapes of an image by its path.
type images struct {
	paths []string // by code
	codes []uint32 // the code of each shape; len(paths) of one without an image
	null  []bool
	names *join.Names  // the paths, by code
	rows  [][]uint32   // for each code its shapes
	near  []join.Near  // for each code how near the nearest image is, after Layer.Own; nil before
	sizes [][2]float64 // for each code the width and height that the file says, or nil
	one   bool         // all shapes are of one image
}

// Image is what a file of shapes says of an image.
type Image struct {
	Rows          []uint32 // the numbers of its shapes, in the order of the file
	Width, Height float64  // in pixels; 0 if the file does not say it
	Other         string   // the image that a file of one image names instead, or ""
}

// imagesIn makes the lists of shapes from the column with the paths; it returns nil without one.
func imagesIn(o *Options, values *tables.Vector) (*images, error) {
	if values == nil {
		return nil, nil
	}
	if o.imageForm != "" {
		values = Texts(values)
	}
	codes, paths := values.Distinct()
	if values.Kind() != tables.String && !values.AllNull() {
		return nil, fault.New(fault.Unsupported, "column "+o.Image,
			`it has numbers, but images are found by their paths: write one, such as "{%s}.tif"`, o.Image)
	}
	if codes == nil {
		codes = make([]uint32, values.Len())
	}
	return newImages(o.imageForm, paths, codes, values.Nulls()), nil
}

// newImages makes the lists of shapes from the codes of their paths; template, if not "", has a path in braces.
func newImages(template string, paths []string, codes []uint32, null []bool) *images {
	for i, path := range paths {
		if template != "" {
			paths[i] = column.Fill(template, func(string) (string, bool) { return path, true })
		}
	}
	found := &images{paths: paths, codes: codes, null: null, rows: make([][]uint32, len(paths)),
		names: join.Apart(paths)}
	counts := make([]int, len(paths)+1)
	for _, code := range codes {
		counts[code]++
	}
	all := make([]uint32, len(codes))
	for code := range found.rows {
		found.rows[code], all = all[:0:counts[code]], all[counts[code]:]
	}
	for row, code := range codes {
		if int(code) < len(paths) {
			found.rows[code] = append(found.rows[code], uint32(row))
		}
	}
	return found
}

// Sample is a sample of a dataset, as its image is named.
type Sample struct {
	Key string // what the sample is called, if the file names it so; "": its path counts
	URI string // of its image
}

// name returns what names of the file are compared with.
func (s *Sample) name() string { return cmp.Or(s.Key, withoutQuery(s.URI)) }

// OfImage returns what the file says of the image of a sample. The image is the one that the file names, in the column
// Options.Image or as its format does: see join.Apart. It is fault.NotFound if the file names no image or, as Own has
// seen, another one. All shapes of a file that names no images, or is of one image, are of any image.
func (l *Layer) OfImage(s Sample) (image Image, err error) {
	known := l.images
	if known == nil || known.one {
		image.Rows = num.Range[uint32](0, int(l.n))
	}
	if known == nil {
		return image, nil
	}
	code, err := known.find(s)
	switch {
	case err != nil && known.one: // of a file that does not name it, Other is ""
		image.Other, err = known.paths[0], nil
	case err != nil:
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

// NamesCells reports whether the images are named as cells of a table: "FILE::ROW/COLUMN".
func (l *Layer) NamesCells() bool {
	return l.images != nil && slices.ContainsFunc(l.images.paths, func(name string) bool {
		file, cell, ok := strings.Cut(name, "::")
		return ok && magic.Named(file).Class == magic.Parquet && strings.Contains(cell, "/")
	})
}

// OfRow returns what OfRows found in a row.
func (l *Layer) OfRow(row int64) (image Image) {
	if row >= 0 && row < int64(len(l.images.rows)) {
		image.Rows = l.images.rows[row]
	}
	return image
}

// Owned says how the images of a dataset and those that a file names fit together.
type Owned struct {
	Images, Named, Shapes int    // images of the dataset, those that the file names, and shapes on them
	Unnamed               string // the first image that the file does not name, or ""
	Others                int    // paths in the file that no image has
	Other                 string // the first one
}

// Names reports whether the file names an image that a sample may be called, or its path.
func (l *Layer) Names(text string) bool {
	if l.images == nil {
		return false
	}
	text = withoutQuery(text)
	m, ok := l.images.names.Best(text, text)
	return ok && !m.Several
}

// Own notes which images there are. If a path in the column names two of them alike, or the file names no images, it is
// unsupported.
func (l *Layer) Own(samples iter.Seq2[Sample, error]) (fit Owned, err error) {
	known := l.images
	if known == nil {
		return fit, fault.New(fault.Unsupported, "images", "it does not say on which image each shape "+
			"lies: give the column with the path of the image as image, or a file for each image as pattern")
	}
	own := join.Of(known.names)
	for s, err := range samples {
		if err != nil {
			return fit, err
		}
		fit.Images++
		path := s.name()
		if m, ok := known.names.Best(path, path); !ok || m.Several { // reading the image says so
			fit.Unnamed = cmp.Or(fit.Unnamed, s.URI)
		} else {
			own.Add(0, path, m)
			fit.Named++
		}
	}
	if err := own.Err("images", "write paths that tell them apart into the column"); err != nil {
		return fit, err
	}
	for code, name := range known.paths {
		if own.Nearest[code] > 0 {
			fit.Shapes += len(known.rows[code])
		} else if name != "" {
			fit.Others, fit.Other = fit.Others+1, cmp.Or(fit.Other, name)
		}
	}
	known.near = own.Nearest
	return fit, nil
}

func (known *images) notNamed(uri string) error {
	example := ""
	if len(known.paths) > 0 {
		example = fmt.Sprintf("; the file has names such as %q", fault.Short(known.paths[0]))
	}
	return fault.New(fault.NotFound, "images", "no shape names %q%s: missing \"empty\" takes it as without objects, "+
		"and ids of rows leave it out, as \"FILE.json::images.file_name\" of COCO", path.Base(uri), example)
}

// withoutQuery returns a URI without the signature of a URL.
func withoutQuery(uri string) string {
	if source.IsWeb(uri) {
		uri, _, _ = strings.Cut(uri, "?")
	}
	return uri
}

// find returns the code of the path in the column that means the image of a sample.
func (known *images) find(s Sample) (code int32, err error) {
	uri := s.name()
	m, ok := known.names.Best(uri, uri)
	switch {
	case !ok, known.near != nil && m.Near < known.near[m.Name]:
		return 0, known.notNamed(uri)
	case m.Several:
		return 0, known.names.Several(m, uri, "images", "write paths that tell them apart into the file")
	}
	return m.Name, nil
}

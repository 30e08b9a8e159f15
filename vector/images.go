package vector

import (
	"path"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// images finds the shapes of an image by its path. It does not change after it is made.
type images struct {
	values *Values             // the column with the paths
	byBase map[string][]uint32 // from the last part of a path to the codes of the paths that have it
	rows   [][]uint32          // for each code its shapes
}

// newImages makes the lists of shapes from a column of strings; it returns nil without one.
func newImages(column string, values *Values) (*images, error) {
	if values == nil {
		return nil, nil
	}
	if values.Codes == nil {
		return nil, fault.New(fault.Unsupported, "column "+column, fault.NoOffset,
			"it has numbers, but images are found by their paths")
	}
	found := &images{values: values, byBase: map[string][]uint32{}, rows: make([][]uint32, len(values.Names))}
	for code, name := range values.Names {
		base := path.Base(name)
		found.byBase[base] = append(found.byBase[base], uint32(code))
	}
	for row, code := range values.Codes {
		if !values.Null(row) {
			found.rows[code] = append(found.rows[code], uint32(row))
		}
	}
	return found, nil
}

// OfImage returns the numbers of the shapes of an image, in the order of the file. The image is the one in the column
// Options.Image that has the most of the last parts of the path. It is not found if the column has none.
func (l *Layer) OfImage(uri string) ([]uint32, error) {
	found, largest, several := uint32(0), 0, false
	for _, code := range l.images.byBase[path.Base(uri)] {
		switch n := common(uri, l.images.values.Names[code]); {
		case n > largest:
			found, largest, several = code, n, false
		case n == largest:
			several = true
		}
	}
	switch {
	case largest == 0:
		return nil, fault.New(fault.NotFound, "images", fault.NoOffset, "no shape names %q", path.Base(uri))
	case several:
		return nil, fault.New(fault.Unsupported, "images", fault.NoOffset, "several images may be %q", uri)
	}
	return l.images.rows[found], nil
}

// common returns how many of their last parts two paths have in common.
func common(a, b string) (n int) {
	p, q := strings.Split(a, "/"), strings.Split(b, "/")
	for n < min(len(p), len(q)) && p[len(p)-1-n] == q[len(q)-1-n] {
		n++
	}
	return n
}

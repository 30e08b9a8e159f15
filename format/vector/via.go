package vector

import (
	"bytes"
	"encoding/json"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// isVIA reports whether the member of a file, whose key is of no meaning, is what VIA says of an image.
func isVIA(member []byte) bool {
	has := func(name string) bool { return bytes.Contains(member, []byte(`"`+name+`"`)) }
	return bytes.HasPrefix(member, []byte("{")) && has("regions") && has("filename") &&
		(has("file_attributes") || has("shape_attributes"))
}

// classNames are what columns with the classes of objects are called, in lower case.
const classNames = "label class class_name category category_name label_name labelname name"

// attributes adds the values of an object that are members of one. If the format names no class, it is the first member
// of an object that classes are called by or, without one, the only one.
func (l *labels) attributes(members json.RawMessage) error {
	if first := l.values[0]; l.o.Class && first.column == "" {
		names, best, count, only := strings.Fields(classNames+" type"), math.MaxInt, 0, ""
		if err := visitMembers(members, func(name string, _ json.RawMessage) {
			if i := slices.Index(names, name); i >= 0 {
				best = min(best, i)
			}
			count, only = count+1, name
		}); err != nil {
			return fault.New(fault.Corrupt, "region_attributes", "%v", err)
		}
		if best < len(names) {
			l.classIs(names[best])
		} else if count == 1 {
			l.classIs(only)
		}
		for first.column != "" && first.n < len(l.ends) { // objects before it have no class
			if err := first.put(nullCell, ""); err != nil {
				return err
			}
		}
	}
	for i, column := range l.values {
		column.optional = l.o.OneImage || i == 0 && l.o.Column == ""
		if err := column.add(members); err != nil {
			return err
		}
	}
	return nil
}

// beginsTasks reports whether a file begins as a list of objects.
func beginsTasks(head []byte) bool {
	list, ok := bytes.CutPrefix(bytes.TrimSpace(head), []byte("["))
	return ok && bytes.HasPrefix(bytes.TrimSpace(list), []byte("{"))
}

// uploaded returns the path of an image of Label Studio: behind the query of local files, and without the eight digits
// that it puts before the name of a file that is uploaded.
func uploaded(name string) string {
	if _, local, ok := strings.Cut(name, "/local-files/?d="); ok {
		if path, err := url.PathUnescape(local); err == nil {
			return path
		}
		return local
	}
	return uploadMark.ReplaceAllString(name, "$1")
}

var uploadMark = regexp.MustCompile(`^(/data/upload/\d+/)[0-9a-f]{8}-`)

// percent returns how many pixels a percent of the image of an object is, to the right and down.
func (l *labels) percent(of record, image uint32) (scale [2]float64, err error) {
	var size [3]float64
	for i, place := range strings.Fields(percentPlaces) {
		if word := textAt(of, place); word != "" || i < 2 {
			if size[i], err = parseNumber(word); err != nil {
				return scale, fault.WithPart(err, place, fault.NoOffset)
			}
		}
		if i == 2 && size[i] != 0 {
			return scale, fault.New(fault.Unsupported, place, "%g: the labels are of a turned image", size[i])
		}
	}
	l.declareSize(image, size[0], size[1])
	return [2]float64{size[0] / 100, size[1] / 100}, nil
}

package vector

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
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

// viaValues adds the values of a region. Its class is the first attribute that classes are called by or, without one,
// the only one.
func (l *labels) viaValues(attributes json.RawMessage) error {
	if first := l.values[0]; l.o.Class && first.column == "" {
		names, best, count, only := append(slices.Clone(classColumns), "type"), math.MaxInt, 0, ""
		if err := eachMember(attributes, func(name string, _ json.RawMessage) {
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
		for first.column != "" && first.n < len(l.ends) { // regions before it have no class
			if err := first.put(nullCell, ""); err != nil {
				return err
			}
		}
	}
	for i, column := range l.values {
		column.optional = l.o.OneImage || i == 0 && l.o.Column == ""
		if err := column.add(attributes); err != nil {
			return err
		}
	}
	return nil
}

// labelMe adds a shape of LabelMe by its points, of a type, or of Supervisely, perhaps with holes.
func labelMe(ctx context.Context, l *labels, text string, more record, _ uint32) (coordForm, error) {
	var p [][2]float64
	err := checkPositions([]byte(text), 2)
	if err == nil {
		err = json.Unmarshal([]byte(text), &p)
	}
	if err != nil {
		return noForm, fault.Wrap(fault.Corrupt, "points", err)
	}
	switch kind := textAt(more, "shape_type"); {
	case kind == "rectangle" && len(p) == 2:
		return l.box(min(p[0][0], p[1][0]), min(p[0][1], p[1][1]), max(p[0][0], p[1][0]), max(p[0][1], p[1][1])), nil
	case kind == "circle" && len(p) == 2: // its middle, and a point of its edge
		r := math.Hypot(p[1][0]-p[0][0], p[1][1]-p[0][1])
		return polygonForm, l.polygon(ellipse(p[0][0], p[0][1], r, r, 0)...)
	case kind == "mask" && len(p) == 2: // its first and its last pixel
		return l.bitmap(ctx, textAt(more, "mask"), p[0])
	case kind == "polygon", kind == "rectangle", kind == "": // the oldest files have no types
	default:
		return l.leaveOut(kind), nil
	}
	if err = l.polygon(flat(p)...); err == nil && textAt(more, "holes") != "" {
		err = l.holesText(textAt(more, "holes"))
	}
	return polygonForm, err
}

// beginsTasks reports whether a file begins as a list of objects.
func beginsTasks(head []byte) bool {
	list, ok := bytes.CutPrefix(bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))), []byte("["))
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

// percent adds a shape of Label Studio, whose numbers are in percent of the image. text are the points of a polygon,
// or the first of the numbers of an ellipse or a rectangle.
func (l *labels) percent(text string, more record, image uint32) (coordForm, error) {
	kind := textAt(more, "type")
	if base := strings.TrimSuffix(kind, "labels"); base == "brush" || base == "bitmask" {
		return noForm, fault.New(fault.Unsupported, "type", "%q: export masks of brushes as PNG, and take the files "+
			"as a field of rasters", kind)
	} else if !slices.Contains([]string{"rectangle", "polygon", "ellipse", ""}, base) {
		return l.leaveOut(cmp.Or(kind, "a result without a type")), nil
	}
	var err error
	number := func(role string) float64 {
		word, _ := more(role)
		if word == "" && strings.HasSuffix(role, "rotation") {
			return 0
		}
		x, wrong := parseNumber(word)
		err = cmp.Or(err, fault.WithPart(wrong, role, fault.NoOffset))
		return x
	}
	width, height, turn := number("original_width"), number("original_height"), number("image_rotation")
	if err == nil && turn != 0 {
		err = fault.New(fault.Unsupported, "image_rotation", "%g: the labels are of a turned image", turn)
	}
	l.declareSize(image, width, height)
	right, down := width/100, height/100
	if _, isRound := more("radiusY"); isRound || strings.IndexByte(text, '[') < 0 {
		first, wrong := parseNumber(text)
		x, y, angle := number("x")*right, number("y")*down, number("rotation")*math.Pi/180
		var outline []float64
		if isRound {
			outline = ellipse(x, y, first*right, number("radiusY")*down, angle)
		} else { // turned around the upper left corner
			w, h := number("width")*right, first*down
			if outline = turned(x, y, angle, [][2]float64{{0, 0}, {w, 0}, {w, h}, {0, h}}); angle == 0 {
				return l.box(x, y, x+w, y+h), cmp.Or(err, wrong)
			}
		}
		return polygonForm, cmp.Or(err, wrong, l.polygon(outline...))
	}
	points, wrong := appendNumbers(nil, text)
	if wrong == nil && !pairs.MatchString(text) {
		wrong = fault.New(fault.Corrupt, "points", "%s is no outline", fault.Short(text))
	}
	for i := range points {
		points[i] *= []float64{right, down}[i%2]
	}
	return polygonForm, cmp.Or(err, wrong, l.polygon(points...))
}

// checkPositions refuses what encoding/json takes for 0: numbers that a position lacks, and null.
func checkPositions(text []byte, depth int) error {
	level, commas := 0, 0
	for _, char := range text {
		switch char {
		case '[':
			level, commas = level+1, 0
		case ',':
			commas++
		case ']':
			if level == depth && commas == 0 {
				return errors.New("a position of fewer than two numbers")
			}
			level--
		case 'n':
			return errors.New("a position with null")
		}
	}
	return nil
}

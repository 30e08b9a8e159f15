package vector

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"

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

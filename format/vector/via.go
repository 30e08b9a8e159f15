package vector

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
)

func init() {
	jsonFormats["_via_img_metadata"] = jsonFormat{read: readVIA, is: isVIA, add: addVIA}
	jsonFormats["shapes"] = jsonFormat{read: readLabelMe}
}

// viaFormat is the name of the format, for errors.
const viaFormat = "VIA's JSON"

// viaRegion is a region of an image.
type viaRegion struct {
	Shape  viaShape        `json:"shape_attributes"`
	Values json.RawMessage `json:"region_attributes"`
}

// isVIA reports whether the member of a file, whose key is of no meaning, is what VIA says of an image.
func isVIA(member []byte) bool {
	has := func(name string) bool { return bytes.Contains(member, []byte(`"`+name+`"`)) }
	return bytes.HasPrefix(member, []byte("{")) && has("regions") && has("filename") &&
		(has("file_attributes") || has("shape_attributes"))
}

// readVIA reads the images of a project of VIA.
func readVIA(ctx context.Context, c *collection, d *json.Decoder) error {
	c.objectsOf(viaFormat, true) // a project may have no images
	if err := expect(d, '{'); err != nil {
		return err
	}
	var image json.RawMessage
	for d.More() {
		if _, err := d.Token(); err != nil {
			return err
		}
		c.text.Next()
		if err := d.Decode(&image); err != nil {
			return err
		}
		if err := addVIA(ctx, c, image); err != nil {
			return err
		}
	}
	return expect(d, '}')
}

// addVIA adds the regions of an image.
func addVIA(ctx context.Context, c *collection, text json.RawMessage) error {
	l := c.objectsOf(viaFormat, true)
	var image struct {
		Filename string
		Regions  json.RawMessage
	}
	if err := json.Unmarshal(text, &image); err != nil {
		return err
	}
	number, err := l.declare(image.Filename, image.Filename, 0, 0)
	if err != nil {
		return err
	}
	err = eachRegion(image.Regions, func(i int, region *viaRegion) error {
		form, err := l.via(&region.Shape)
		if err == nil {
			err = l.viaValues(region.Values)
		}
		if err != nil {
			return fault.WithPart(err, "region "+strconv.Itoa(i)+" of "+fault.Short(image.Filename), fault.NoOffset)
		}
		l.images = append(l.images, number)
		return l.end(ctx, form)
	})
	if err != nil {
		return err
	}
	return l.charge(ctx)
}

// eachRegion visits the regions of an image one after the other: a list, or of VIA 1 an object that numbers them.
func eachRegion(text json.RawMessage, visit func(i int, region *viaRegion) error) error {
	type numbered struct{ number, from, to int }
	var order []numbered
	d := json.NewDecoder(bytes.NewReader(text))
	start, err := d.Token()
	switch {
	case len(text) == 0 || err == nil && start == nil: // null
		return nil
	case err == nil && start != json.Delim('[') && start != json.Delim('{'):
		return fault.New(fault.Corrupt, "regions", "%.32s is no list", text)
	case start == json.Delim('{'):
		var raw json.RawMessage
		for err == nil && d.More() {
			var key json.Token
			var n numbered
			if key, err = d.Token(); err == nil {
				if n.number, err = strconv.Atoi(key.(string)); err != nil { // the decoder takes no other keys
					return fault.Wrap(fault.Corrupt, "regions", err)
				}
			}
			if err == nil {
				err = d.Decode(&raw)
			}
			n.to = int(d.InputOffset())
			n.from = n.to - len(raw)
			order = append(order, n)
		}
		slices.SortStableFunc(order, func(a, b numbered) int { return a.number - b.number })
	}
	for i := 0; err == nil && (i < len(order) || start == json.Delim('[') && d.More()); i++ {
		var region viaRegion
		if start == json.Delim('[') {
			err = d.Decode(&region)
		} else {
			err = json.Unmarshal(text[order[i].from:order[i].to], &region)
		}
		if err == nil {
			err = visit(i, &region)
		}
	}
	return err
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

// readLabelMe reads the shapes of LabelMe, whose files are of one image each.
func readLabelMe(ctx context.Context, c *collection, d *json.Decoder) error {
	l := c.objectsOf("LabelMe's JSON", false)
	l.classIs("label")
	for _, column := range l.values {
		column.optional = true
	}
	if err := expect(d, '['); err != nil {
		return err
	}
	var text json.RawMessage
	for number := 0; d.More(); number++ {
		c.text.Next()
		if err := d.Decode(&text); err != nil {
			return err
		}
		form, err := l.labelMe(text)
		if err == nil {
			err = l.addMembers(ctx, form, text)
		}
		if err != nil {
			return fault.WithPart(err, "shape "+strconv.Itoa(number), fault.NoOffset)
		}
	}
	return expect(d, ']')
}

// labelMe adds a shape.
func (l *labels) labelMe(text json.RawMessage) (coordForm, error) {
	var shape struct {
		Points json.RawMessage
		Type   string `json:"shape_type"`
	}
	var p [][2]float64
	err := json.Unmarshal(text, &shape)
	if err == nil && len(shape.Points) > 0 {
		if err = checkPositions(shape.Points, 2); err == nil {
			err = json.Unmarshal(shape.Points, &p)
		}
	}
	if err != nil {
		return noForm, fault.Wrap(fault.Corrupt, "points", err)
	}
	switch {
	case shape.Type == "rectangle" && len(p) == 2:
		return l.box(min(p[0][0], p[1][0]), min(p[0][1], p[1][1]), max(p[0][0], p[1][0]), max(p[0][1], p[1][1])), nil
	case shape.Type == "circle" && len(p) == 2: // its middle, and a point of its edge
		r := math.Hypot(p[1][0]-p[0][0], p[1][1]-p[0][1])
		return polygonForm, l.polygon(ellipse(p[0][0], p[0][1], r, r, 0)...)
	case shape.Type == "polygon", shape.Type == "rectangle", shape.Type == "": // the oldest files have no types
	default:
		return l.leaveOut(shape.Type), nil
	}
	return polygonForm, l.polygon(flat(p)...)
}

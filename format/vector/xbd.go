package vector

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// subtypeColumn is the damage of a building in xBD. Files of before the disaster have none.
const subtypeColumn = "subtype"

// readXBD reads the features of a file of xBD, the data set of xView2: lists of objects by the space that they lie in,
// of which "xy" has pixels. The shape of each is WKT.
func (c *collection) readXBD(ctx context.Context, d *json.Decoder) error {
	c.xbd = newLabels(c.o, "xBD's JSON")
	c.xbd.classIs(subtypeColumn)
	for _, column := range c.xbd.values {
		column.optional = true
	}
	var skipped json.RawMessage
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		if c.text.next(); key != "xy" {
			if err := d.Decode(&skipped); err != nil {
				return err
			}
			continue
		}
		if err := expect(d, '['); err != nil {
			return err
		}
		for number := 0; d.More(); number++ {
			c.text.next()
			var object struct {
				Properties json.RawMessage `json:"properties"`
				WKT        string          `json:"wkt"`
			}
			if err := d.Decode(&object); err != nil {
				return err
			}
			if err := c.xbd.addXBD(ctx, object.Properties, object.WKT); err != nil {
				return fault.WithPart(err, "xy "+strconv.Itoa(number), fault.NoOffset)
			}
		}
		if err := expect(d, ']'); err != nil {
			return err
		}
	}
	return expect(d, '}')
}

// addXBD adds an object.
func (l *labels) addXBD(ctx context.Context, properties json.RawMessage, wkt string) error {
	form, err := l.wkt(wkt)
	if err != nil {
		return err
	}
	for _, column := range l.values {
		if err := column.add(properties); err != nil {
			return err
		}
	}
	return l.end(ctx, form)
}

// wkt adds the outer outlines of a polygon or multipolygon of WKT, as the masks of xView2 have them: without its
// holes. Each begins behind two opening brackets, and a hole behind one.
func (l *labels) wkt(wkt string) (coordForm, error) {
	word, rest, _ := strings.Cut(strings.TrimSpace(wkt), "(")
	kind, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(word)), " ")
	if kind != "POLYGON" && kind != "MULTIPOLYGON" {
		return noForm, fault.New(fault.Unsupported, "wkt", fault.NoOffset, "it is %s, and no polygon",
			fault.Short(wkt))
	}
	form := noForm
	for rest = "(" + rest; ; {
		_, after, found := strings.Cut(rest, "((")
		if !found {
			return form, nil
		}
		text, more, closed := strings.Cut(strings.TrimLeft(after, "( "), ")")
		if !closed {
			return noForm, fault.New(fault.Corrupt, "wkt", fault.NoOffset, "%s has no end", fault.Short(wkt))
		}
		var outline []float64
		for point := range strings.SplitSeq(text, ",") {
			coords := strings.Fields(point)
			if len(coords) < 2 {
				return noForm, fault.New(fault.Corrupt, "wkt", fault.NoOffset, "%s is no point", fault.Short(point))
			}
			for _, coord := range coords[:2] {
				x, err := parseNumber(coord)
				if err != nil {
					return noForm, fault.New(fault.Corrupt, "wkt", fault.NoOffset, "%s is no number",
						fault.Short(coord))
				}
				outline = append(outline, x)
			}
		}
		if err := l.polygon(outline...); err != nil {
			return noForm, err
		}
		form, rest = polygonForm, more
	}
}

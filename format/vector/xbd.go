package vector

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/wkb"
)

// subtypeColumn is the damage of a building in xBD. Files of before the disaster have none.
const subtypeColumn = "subtype"

func init() { jsonFormats["features"] = jsonFormat{read: readXBD} }

// readXBD reads the features of a file of xBD, the data set of xView2: lists of objects by the space that they lie in;
// "xy" has pixels. The shape of each is WKT.
func readXBD(ctx context.Context, c *collection, d *json.Decoder) error {
	l := c.objectsOf("xBD's JSON", false)
	l.classIs(subtypeColumn)
	for _, column := range l.values {
		column.optional = true
	}
	var skipped json.RawMessage
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		if c.text.Next(); key != "xy" {
			if err := d.Decode(&skipped); err != nil {
				return err
			}
			continue
		}
		if err := expect(d, '['); err != nil {
			return err
		}
		for number := 0; d.More(); number++ {
			c.text.Next()
			var object struct {
				Properties json.RawMessage `json:"properties"`
				WKT        string          `json:"wkt"`
			}
			if err := d.Decode(&object); err != nil {
				return err
			}
			if err := l.addXBD(ctx, object.Properties, object.WKT); err != nil {
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
	form, err := l.wkt(wkt, false)
	if err != nil {
		return err
	}
	return l.addMembers(ctx, form, properties)
}

// wktWithHoles is wkt with the holes of polygons.
func (l *labels) wktWithHoles(text string) (coordForm, error) { return l.wkt(text, true) }

// wkt adds a polygon or multipolygon of WKT. The masks of xView2 have the outer outlines alone, without the holes.
func (l *labels) wkt(text string, holes bool) (coordForm, error) {
	binary, err := wkb.AppendText(nil, text)
	if err != nil {
		return noForm, err
	}
	shape, err := wkb.Geometry(binary)
	if err != nil {
		return noForm, err
	}
	parts, several := shape.(orb.Collection)
	if !several {
		parts = orb.Collection{shape}
	}
	form := noForm
	for _, part := range parts {
		polygon, ok := part.(orb.Polygon)
		if !ok {
			return noForm, fault.New(fault.Unsupported, "wkt", "it is %s, and no polygon: leave it out",
				fault.Short(text))
		}
		if !holes {
			polygon = polygon[:min(len(polygon), 1)]
		}
		for i, ring := range polygon {
			if err := l.polygon(flat(ring)...); err != nil {
				return noForm, err
			}
			if form = polygonForm; i > 0 {
				l.holes = append(l.holes, int64(len(l.coords)))
			}
		}
	}
	return form, nil
}

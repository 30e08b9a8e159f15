package vector

import (
	"context"
	"encoding/json"
)

// subtypeColumn is the damage of a building in xBD. Files of before the disaster have none.
const subtypeColumn = "subtype"

func init() { jsonFormats["features"] = jsonFormat{read: readXBD} }

// xbdForm is the form of objects of xBD: polygons of WKT, without their holes, as the masks of xView2 have them.
var xbdForm = &form{places: []place{{"wkt", []int{0}}}, kind: &shapeKind{roles: []string{"wkt"},
	text: func(l *labels, text string, _ uint32) (coordForm, error) { return l.wkt(text, false) }}}

// readXBD reads the features of a file of xBD, the data set of xView2: lists of objects by the space that they lie in;
// "xy" has pixels.
func readXBD(ctx context.Context, c *collection, d *json.Decoder) error {
	l := c.objectsOf("xBD's JSON", false)
	l.classIs(subtypeColumn)
	l.inJSON = true
	t := &tree{labels: l, objects: [][]string{{"xy"}}, in: []spot{{name: "wkt", path: []string{"wkt"}}}, text: c.text}
	for _, column := range l.values {
		column.optional = true
		path := append([]string{"properties"}, pathOf(column.column)...)
		t.in = append(t.in, spot{name: column.column, path: path})
	}
	t.add = func(ctx context.Context, of record) error { return l.put(ctx, xbdForm, of, 0) }
	return t.behind(ctx, d, json.Delim('{'))
}

package vector

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/wkb"
	"github.com/chaski-eo/chaski/internal/boxtree"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/internal/textguard"
	"github.com/chaski-eo/chaski/source"
)

func init() { readers.text = openText }

// maxText bounds a GeoJSON file, which is read whole: a gigabyte takes some 20 s, and GeoParquet is made for more.
const maxText = 1 << 30

// textShapes are the shapes of a GeoJSON file, in memory as WKB. It is safe for concurrent use.
type textShapes struct {
	r    source.Reader
	data []byte
	ends []int64 // where each shape ends in data; a feature without a geometry has no bytes
}

// Close implements shapes.
func (t *textShapes) Close() error { return t.r.Close() }

// shape implements shapes.
func (t *textShapes) shape(_ context.Context, row int) (orb.Geometry, error) {
	start := int64(0)
	if row > 0 {
		start = t.ends[row-1]
	}
	if start == t.ends[row] {
		return nil, nil
	}
	return wkb.Geometry(t.data[start:t.ends[row]])
}

// feature is a feature of GeoJSON (RFC 7946, section 3.2).
type feature struct {
	Type       string          `json:"type"`
	Geometry   json.RawMessage `json:"geometry"`
	Properties json.RawMessage `json:"properties"`
}

// collection is a feature collection that is read.
type collection struct {
	textShapes
	o     *Options
	boxes []boxtree.Box
	most  int64 // the most bytes that a feature took so far: see feature.memory
	crs   *crs.CRS
	kind  string
	text  *textguard.Parts
	cells *cells
	more  []*cells  // of Options.Columns
	paths *cells    // of images
	coco  *coco     // nil for a file that has no member of COCO
	other *tree     // nil for a file of none of the other formats in JSON: see treeOf
	many  bool      // other names the images of its shapes
	first feature   // of a file of a feature a line
	begun bool      // see begin
	image [3]string // the name, width and height of the one image of a file
}

// openText opens a file of JSON: GeoJSON or COCO.
func openText(ctx context.Context, r source.Reader, o *Options) (*Layer, error) {
	features := &collection{textShapes: textShapes{r: r}, o: o, cells: newCells(o.Column), paths: newCells(o.Image)}
	for _, column := range o.Columns {
		features.more = append(features.more, newCells(column))
	}
	features.text = newParts(ctx, r, "JSON", maxPiece)
	decoder := json.NewDecoder(unseparated{features.text})
	if err := features.read(ctx, decoder); err != nil {
		return nil, jsonError(decoder, err)
	}
	if other := features.other; other != nil && !features.hasOwn() {
		if !features.many && !o.OneImage {
			return nil, fault.New(fault.Unsupported, "JSON", "%s is of one image: name the files by a "+
				`pattern, such as "labels/{id}.json"`, other.format)
		}
		if !features.many {
			image := &features.image
			if _, err := other.declare("", image[0], sizeOf(image[1]), sizeOf(image[2])); err != nil {
				return nil, err
			}
		}
		return other.layer(Pixels, r.Size())
	}
	if !features.isGeoJSON() {
		return features.coco.layer(r.Size())
	}
	return features.layer(r.Size())
}

// unseparated is a text of JSON with spaces in place of the separators of records (RFC 8142), which no string has.
type unseparated struct{ io.Reader }

func (u unseparated) Read(b []byte) (int, error) {
	n, err := u.Reader.Read(b)
	for rest := b[:n]; ; {
		i := bytes.IndexByte(rest, recordMark)
		if i < 0 {
			return n, err
		}
		rest[i] = ' '
		rest = rest[i:]
	}
}

// recordMark begins a record of a JSON text sequence.
const recordMark = '\x1e'

// layer returns the layer of the features. size is the size of the file in bytes.
func (c *collection) layer(size int64) (layer *Layer, err error) {
	layer = &Layer{CRS: c.crs, shapes: &c.textShapes}
	if layer.CRS == nil { // RFC 7946, section 4
		if layer.CRS, err = crs.Lookup(4326); err != nil {
			return nil, err
		}
	}
	if layer.Values, err = c.cells.values(); err != nil {
		return nil, err
	}
	for _, column := range c.more {
		values, err := column.values()
		if err != nil {
			return nil, err
		}
		layer.Columns = append(layer.Columns, values)
	}
	paths, err := c.paths.values()
	if err != nil {
		return nil, err
	}
	if layer.images, err = newImages(c.o, paths); err != nil {
		return nil, err
	}
	layer.index(c.boxes, size)
	return layer, nil
}

// read reads the members of the collection, one feature at a time.
func (c *collection) read(ctx context.Context, d *json.Decoder) error {
	if err := expect(d, '{'); err != nil {
		return err
	}
	var skipped json.RawMessage
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		switch key {
		case "type":
			err = d.Decode(&c.kind)
		case "crs":
			err = c.readCRS(d)
		case "features":
			err = c.features(ctx, d)
		case "geometry", "properties":
			part := &c.first.Geometry
			if key == "properties" {
				part = &c.first.Properties
			}
			if err = c.begin(ctx); err == nil {
				err = d.Decode(part)
			}
		case "imageData": // of LabelMe: the image in Base64, which is one word
			if err = c.o.Grow(ctx, 2*c.r.Size()); err == nil {
				c.text.Limit = maxText
				err = d.Decode(&skipped)
				c.text.Limit = maxPiece
			}
		case "images", "annotations", "categories":
			if c.coco == nil {
				c.coco = newCOCO(c.o, c.text)
			}
			err = c.coco.list(ctx, d, key.(string))
		default:
			err = c.readOther(ctx, d, key.(string)) // the decoder takes no other keys
		}
		c.text.Next()
		if err != nil {
			return err
		}
	}
	if c.kind == "Feature" && len(c.first.Geometry) > 0 && len(c.boxes) == 0 && c.coco == nil {
		return c.lines(ctx, d)
	}
	if err := expect(d, '}'); err != nil || c.kind == "FeatureCollection" || c.coco != nil || c.other != nil {
		return err
	}
	return fault.At(fault.Unsupported, "GeoJSON", 0, "type %q is not a FeatureCollection, and there are no "+
		"annotations of COCO, features of xBD, shapes of LabelMe, objects of Supervisely or regions of VIA: box "+
		"says where others have their coordinates", fault.Short(c.kind))
}

// readOther reads a member that neither GeoJSON nor COCO has.
func (c *collection) readOther(ctx context.Context, d *json.Decoder, key string) error {
	known := c.isGeoJSON() || c.coco != nil // which have members of any name
	if format, ok := jsonFormats[key]; ok && !known {
		return c.treeOf(format).list(ctx, d, key)
	}
	var member json.RawMessage
	if err := d.Decode(&member); err != nil || known {
		return err
	}
	if isVIA(member) {
		d := json.NewDecoder(bytes.NewReader(member))
		return c.treeOf(jsonFormats[viaMember]).list(ctx, d, viaMember, key)
	}
	for _, format := range jsonFormats {
		for i, place := range format.image {
			if outer, inner, _ := strings.Cut(place, "/"); place != "" && outer == key && format.shared == "" {
				c.image[i] = unquoted(below(member, inner))
			}
		}
	}
	return nil
}

// below returns a member of a value, or the value itself without a name.
func below(value json.RawMessage, name string) string {
	if name != "" {
		value, _, _ = member(value, name, nil) // another thing says nothing
	}
	return string(value)
}

// isGeoJSON reports whether the file says that it has features.
func (c *collection) isGeoJSON() bool { return c.kind == "FeatureCollection" || c.kind == "Feature" }

// hasOwn reports whether the file has features of GeoJSON or images of COCO.
func (c *collection) hasOwn() bool {
	return c.begun && c.isGeoJSON() || c.coco != nil && len(c.coco.paths) > 0
}

// treeOf returns the objects of a file of another format in JSON.
func (c *collection) treeOf(f *named) *tree {
	if c.other == nil {
		c.other, c.many = newLabels(c.o, f.name).treeOf(f, false), f.shared != ""
		c.other.text = c.text
	}
	return c.other
}

// lines reads a file of a feature a line, whose first one has been read but for its end: GeoJSON lines (GeoJSONSeq).
func (c *collection) lines(ctx context.Context, d *json.Decoder) error {
	if err := cmp.Or(expect(d, '}'), c.begin(ctx)); err != nil {
		return err
	}
	c.first.Type = c.kind
	for single := c.first; ; {
		if err := c.next(ctx, d, &single); err != nil {
			return err
		}
		single = feature{}
		if err := d.Decode(&single); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// readCRS reads the CRS that files of 2008's GeoJSON name, and that GDAL writes. x comes before y there, too.
func (c *collection) readCRS(d *json.Decoder) error {
	var named struct {
		Properties struct {
			Name string `json:"name"`
		} `json:"properties"`
	}
	if err := d.Decode(&named); err != nil || named.Properties.Name == "" {
		return err
	}
	name := named.Properties.Name
	if rest, ok := strings.CutPrefix(name, "urn:ogc:def:crs:"); ok { // AUTHORITY:VERSION:CODE
		if parts := strings.Split(rest, ":"); len(parts) == 3 {
			name = parts[0] + ":" + parts[2]
		}
	}
	var ok bool
	if c.crs, ok = crs.ByName(name); !ok {
		return fault.At(fault.Unsupported, "CRS", d.InputOffset(), "%q is not known: in geopandas, to_crs(4326) "+
			"converts the shapes", fault.Short(named.Properties.Name))
	}
	return nil
}

func (c *collection) features(ctx context.Context, d *json.Decoder) error {
	switch token, err := d.Token(); {
	case err != nil:
		return err
	case token == json.Delim('{') && c.other == nil:
		t := c.treeOf(jsonFormats["features"])
		t.path = append(t.path, "features")
		return t.behind(ctx, d, token)
	case token != json.Delim('['):
		return fault.At(fault.Corrupt, "JSON", d.InputOffset(), "it has %v where [ must stand", token)
	}
	if err := c.begin(ctx); err != nil {
		return err
	}
	defer func() { c.text.Limit = maxPiece }()
	for d.More() {
		var single feature
		if err := d.Decode(&single); err != nil {
			return err
		}
		if err := c.next(ctx, d, &single); err != nil {
			return err
		}
	}
	return expect(d, ']')
}

// begin counts the memory of all features.
func (c *collection) begin(ctx context.Context) error {
	c.text.Limit = maxText // feature.memory counts what a feature takes
	size := c.r.Size()
	if c.begun {
		return nil
	}
	c.begun = true
	if size > maxText {
		return fault.New(fault.Limit, "GeoJSON", "%d bytes, at most %d: write it as GeoParquet", size, maxText)
	}
	// A pair of coordinates takes 16 bytes and in text 5 at least. A feature takes 45 bytes beside its geometry, twice
	// while the lists grow, and at least 18 in text. The memory for parsing the largest feature comes on top: see
	// feature.memory.
	return c.o.Grow(ctx, 5*size)
}

// next adds the next feature.
func (c *collection) next(ctx context.Context, d *json.Decoder, f *feature) error {
	if int64(len(c.boxes)) == c.o.MaxShapes {
		return fault.At(fault.Limit, "GeoJSON", d.InputOffset(), "over %d shapes", c.o.MaxShapes)
	}
	return fault.WithPart(c.add(ctx, f), "feature "+strconv.Itoa(len(c.boxes)), fault.NoOffset)
}

// memory returns how many bytes a feature takes at most while it is read: its text three times and, for each geometry
// of a collection, a structure that is up to three times in memory while the list around it grows.
func (f *feature) memory() int64 {
	const geometry = 4 * 64
	return 3*int64(len(f.Geometry)+len(f.Properties)) + geometry*int64(bytes.Count(f.Geometry, []byte("{")))
}

// add adds a feature.
func (c *collection) add(ctx context.Context, f *feature) error {
	if f.Type != "Feature" {
		return fault.New(fault.Corrupt, "feature", "type %q, want \"Feature\"", f.Type)
	}
	if need := f.memory(); need > c.most {
		if err := c.o.Grow(ctx, need-c.most); err != nil {
			return err
		}
		c.most = need
	}
	var geometry *textGeometry
	if box, err := c.imageBox(f.Properties); err != nil {
		return err
	} else if box != nil {
		f.Geometry = box
	}
	if len(f.Geometry) > 0 {
		if err := json.Unmarshal(f.Geometry, &geometry); err != nil {
			return fault.New(fault.Corrupt, "geometry", "%v", err)
		}
	}
	bounds := boxtree.Nothing
	if geometry != nil && !geometry.isEmptyPoint() {
		start := len(c.data)
		data, err := geometry.appendWKB(c.data, 0)
		if err != nil {
			return err
		}
		box, ok, err := wkb.Bounds(data[start:])
		if err != nil {
			return err
		}
		if ok {
			bounds = boxtree.Around(box.MinX, box.MinY, box.MaxX, box.MaxY)
		}
		c.data = data
	}
	c.boxes, c.ends = append(c.boxes, bounds), append(c.ends, int64(len(c.data)))
	for _, column := range append(c.more, c.cells, c.paths) {
		if err := column.add(f.Properties); err != nil {
			return err
		}
	}
	return nil
}

// imageBox returns the box of a feature of xView in pixels of its image, as a geometry, where the images of features
// are asked for: its own geometry lies on the ground.
func (c *collection) imageBox(properties json.RawMessage) (json.RawMessage, error) {
	if c.o.Image == "" || !bytes.Contains(properties, []byte("bounds_imcoords")) {
		return nil, nil
	}
	var members struct {
		Box *string `json:"bounds_imcoords"`
	}
	if err := json.Unmarshal(properties, &members); err != nil || members.Box == nil {
		return nil, err
	}
	if strings.TrimSpace(*members.Box) == "" {
		return json.RawMessage("null"), nil
	}
	box, err := numbers(strings.Split(*members.Box, ","))
	if err != nil || len(box) != 4 {
		return nil, fault.New(fault.Corrupt, "bounds_imcoords", "%q is no box of four numbers",
			fault.Short(*members.Box))
	}
	return json.Marshal(map[string]any{"type": "Polygon", "coordinates": [][][2]float64{{{box[0], box[1]},
		{box[2], box[1]}, {box[2], box[3]}, {box[0], box[3]}, {box[0], box[1]}}}})
}

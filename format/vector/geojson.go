package vector

import (
	"bytes"
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

// collection is a file of JSON that is read: features of GeoJSON, or objects of another format.
type collection struct {
	textShapes
	o     *Options
	boxes []boxtree.Box
	most  int64 // the most bytes that a feature took so far: see feature.memory
	crs   *crs.CRS
	kind  string
	text  *textguard.Parts
	paths *cells  // of images
	own   *labels // has the values of features
	coco  *coco   // nil for a file that has no member of COCO
	other *tree   // of the objects of another format, see jsonFormats; that has no name if there is none
	first feature // of a file of a feature a line
	ready bool    // see begin
}

// openText opens a file of JSON: GeoJSON, COCO, or one of jsonFormats.
func openText(ctx context.Context, r source.Reader, o *Options) (*Layer, error) {
	c := &collection{textShapes: textShapes{r: r}, o: o, paths: newCells(o.Image), own: newLabels(o, &format{})}
	c.text = newParts(ctx, r, "JSON", maxPiece)
	c.other = newLabels(o, &format{}).newTree(false)
	c.other.text, c.other.member = c.text, c.member
	for _, f := range jsonFormats {
		for i, image := range f.image {
			if !f.many { // it is known before the format is
				c.other.out = spots(c.other.out, imagePlaces[i], strings.Fields(image)...)
			}
		}
	}
	decoder := json.NewDecoder(unseparated{c.text})
	if err := c.read(ctx, decoder); err != nil {
		return nil, jsonError(decoder, err)
	}
	switch f, noOther := c.other.format, c.other.format.name == ""; {
	case c.isGeoJSON() && (c.ready || noOther):
		return c.layer(r.Size())
	case c.coco != nil && (len(c.coco.paths) > 0 || noOther):
		return c.coco.layer(r.Size())
	case !f.many && !o.OneImage:
		return nil, fault.New(fault.Unsupported, "JSON", "%s is of one image: name the files by a "+
			`pattern, such as "labels/{id}.json"`, f.name)
	}
	return c.other.layer(r.Size())
}

// layer returns the layer of the features. size is the size of the file in bytes.
func (c *collection) layer(size int64) (layer *Layer, err error) {
	shapes := c.textShapes // the rest of c is not needed any more
	layer = &Layer{CRS: c.crs, shapes: &shapes}
	if layer.CRS == nil { // RFC 7946, section 4
		if layer.CRS, err = crs.Lookup(4326); err != nil {
			return nil, err
		}
	}
	if err = c.own.setColumns(layer); err != nil {
		return nil, err
	}
	paths, err := c.paths.values()
	if err != nil {
		return nil, err
	}
	if layer.images, err = imagesIn(c.o, paths); err != nil {
		return nil, err
	}
	layer.index(c.boxes, size)
	return layer, nil
}

// read reads the file, one feature or object at a time.
func (c *collection) read(ctx context.Context, d *json.Decoder) error {
	err := expect(d, '{')
	if err == nil {
		err = c.other.behind(ctx, d, json.Delim('{'))
	}
	switch {
	case err != nil || c.kind == "FeatureCollection" || c.coco != nil:
		return err
	case c.kind == "Feature" && len(c.first.Geometry) > 0 && len(c.boxes) == 0:
		return c.lines(ctx, d)
	case c.other.format.name != "":
		return nil
	}
	return fault.At(fault.Unsupported, "GeoJSON", 0, "type %q is not a FeatureCollection, and there are no "+
		"annotations of COCO, features of xBD, shapes of LabelMe, objects of Supervisely or regions of VIA: box "+
		"says where others have their coordinates", fault.Short(c.kind))
}

// member reads a member of the file.
func (c *collection) member(ctx context.Context, d *json.Decoder, key string) (err error) {
	defer c.text.Next()
	switch key {
	case "type":
		return d.Decode(&c.kind)
	case "crs":
		return c.readCRS(d)
	case "features":
		return c.features(ctx, d)
	case "geometry", "properties":
		part := &c.first.Geometry
		if key == "properties" {
			part = &c.first.Properties
		}
		if err = c.begin(ctx); err == nil {
			err = d.Decode(part)
		}
		return err
	case "imageData": // of LabelMe: the image in Base64, which is one word
		if err = c.o.Grow(ctx, 2*c.r.Size()); err == nil {
			c.text.Limit = maxText
			err = d.Decode(new(json.RawMessage))
			c.text.Limit = maxPiece
		}
		return err
	case "images", "annotations", "categories":
		if c.coco == nil {
			c.coco = newCOCO(c.o, c.text)
		}
		return c.coco.list(ctx, d, key)
	}
	t, known := c.other, c.isGeoJSON() || c.coco != nil // which have members of any name
	if f := jsonFormat(key); f != nil && !known {
		t.use(f)
	}
	t.skipped = t.skipped[:0]
	if err = t.list(ctx, d, key); err != nil || known || !isVIA(t.skipped) {
		return err
	}
	image := json.NewDecoder(bytes.NewReader(bytes.Clone(t.skipped)))
	t.use(jsonFormat(viaMember))
	err = t.list(ctx, image, viaMember, key)
	t.path = t.path[:1]
	return err
}

// isGeoJSON reports whether the file says that it has features.
func (c *collection) isGeoJSON() bool { return c.kind == "FeatureCollection" || c.kind == "Feature" }

// lines reads a file of a feature a line, whose first one has been read: GeoJSON lines (GeoJSONSeq).
func (c *collection) lines(ctx context.Context, d *json.Decoder) error {
	if err := c.begin(ctx); err != nil {
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
	case token == json.Delim('{') && c.other.format.name == "":
		c.other.use(jsonFormat("features"))
		return c.other.behind(ctx, d, token)
	case token != json.Delim('['):
		return fault.At(fault.Corrupt, "JSON", d.InputOffset(), "it has %v where [ must stand", token)
	}
	if err := c.begin(ctx); err != nil {
		return err
	}
	defer func() { c.text.Limit = maxPiece }()
	return textguard.EachElement(d, func() error {
		var single feature
		if err := d.Decode(&single); err != nil {
			return err
		}
		return c.next(ctx, d, &single)
	})
}

// begin counts the memory of all features.
func (c *collection) begin(ctx context.Context) error {
	c.text.Limit = maxText // feature.memory counts what a feature takes
	size := c.r.Size()
	if c.ready {
		return nil
	}
	c.ready = true
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
	for _, column := range append(c.own.values, c.paths) {
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
	raw, ok, err := member(properties, "bounds_imcoords", nil)
	text := unquoted(string(raw))
	switch {
	case err != nil || !ok || text == "null":
		return nil, err
	case strings.TrimSpace(text) == "":
		return json.RawMessage("null"), nil
	}
	v, err := numbers(nil, strings.Split(text, ","))
	if err != nil || len(v) != 4 {
		return nil, fault.New(fault.Corrupt, "bounds_imcoords", "%q is no box of four numbers", fault.Short(text))
	}
	return json.Marshal(map[string]any{"type": "Polygon", "coordinates": rectangle(v[0], v[1], v[2], v[3])})
}

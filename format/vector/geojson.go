package vector

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/paulmach/orb"
	orbwkb "github.com/paulmach/orb/encoding/wkb"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/wkb"
	"github.com/chaski-eo/chaski/internal/boxtree"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/source"
)

// maxText bounds a GeoJSON file, which is read whole: a gigabyte takes some 20 s, and GeoParquet is made for more.
const maxText = 1 << 30

// maxNested bounds collections of geometries inside collections, as package wkb does.
const maxNested = 32

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

type textGeometry struct {
	Type        string          `json:"type"`
	Coordinates json.RawMessage `json:"coordinates"`
	Geometries  []textGeometry  `json:"geometries"`
}

// collection is a feature collection that is read.
type collection struct {
	textShapes
	o     *Options
	boxes []boxtree.Box
	most  int64 // the most bytes that a feature took so far: see feature.memory
	crs   *crs.CRS
	kind  string
	cells *cells
	paths *cells // of images
	coco  bool   // it has the member "annotations"
}

// openText opens a GeoJSON file.
func openText(ctx context.Context, r source.Reader, o *Options) (*Layer, error) {
	if r.Size() > maxText {
		return nil, fault.New(fault.Limit, "GeoJSON", fault.NoOffset, "%d bytes, at most %d: write it as GeoParquet",
			r.Size(), maxText)
	}
	// A pair of coordinates takes 16 bytes and in text 5 at least. A feature takes 45 bytes beside its geometry, twice
	// while the lists grow, and at least 18 in text. The memory for parsing the largest feature comes on top: see
	// feature.memory.
	if err := o.Grow(ctx, 5*r.Size()); err != nil {
		return nil, err
	}
	features := &collection{textShapes: textShapes{r: r}, o: o, cells: newCells(o.Column), paths: newCells(o.Image)}
	stream := source.Sequential(ctx, r, 0)
	decoder := json.NewDecoder(io.MultiReader(skipMark(stream)...))
	if err := features.read(ctx, decoder); err != nil {
		var syntax *json.SyntaxError
		var typ *json.UnmarshalTypeError
		if errors.As(err, &syntax) || errors.As(err, &typ) || errors.Is(err, io.EOF) ||
			errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fault.New(fault.Corrupt, "GeoJSON", decoder.InputOffset(), "%v", err)
		}
		return nil, err
	}
	layer := &Layer{CRS: features.crs, shapes: &features.textShapes}
	var err error
	if layer.CRS == nil { // RFC 7946, section 4
		if layer.CRS, err = crs.Lookup(4326); err != nil {
			return nil, err
		}
	}
	if layer.Values, err = features.cells.values(); err != nil {
		return nil, err
	}
	paths, err := features.paths.values()
	if err != nil {
		return nil, err
	}
	if layer.images, err = newImages(o.Image, paths); err != nil {
		return nil, err
	}
	layer.index(features.boxes, r.Size())
	return layer, nil
}

// skipMark returns the readers of a text without its byte order mark.
func skipMark(r io.Reader) []io.Reader {
	head := make([]byte, 3)
	// The error is left out, since the decoder meets it again.
	size, _ := io.ReadFull(r, head)
	return []io.Reader{bytes.NewReader(bytes.TrimPrefix(head[:size], []byte("\xef\xbb\xbf"))), r}
}

// read reads the members of the collection, one feature at a time.
func (c *collection) read(ctx context.Context, d *json.Decoder) error {
	if err := expect(d, '{'); err != nil {
		return err
	}
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
		default:
			c.coco = c.coco || key == "annotations"
			var skipped json.RawMessage
			err = d.Decode(&skipped)
		}
		if err != nil {
			return err
		}
	}
	if c.coco && c.kind == "" {
		return fault.New(fault.Unsupported, "shapes", 0, "COCO's JSON is not read: in Python, give "+
			"chaski.Vector(FRAME, image=COLUMN) of what pycocotools reads, as docs/labels.md shows")
	}
	if c.kind != "FeatureCollection" {
		way := ""
		if c.kind == "Feature" { // one on each line
			way = ": 'ogr2ogr OUT.geojson IN.geojsonl' makes one of lines of features"
		}
		return fault.New(fault.Unsupported, "GeoJSON", 0, "type %q is not a FeatureCollection%s", c.kind, way)
	}
	return expect(d, '}')
}

// expect reads a delimiter.
func expect(d *json.Decoder, want json.Delim) error {
	token, err := d.Token()
	if err == nil && token != want {
		err = fault.New(fault.Corrupt, "JSON", d.InputOffset(), "it has %v where %v must stand", token, want)
	}
	return err
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
		return fault.New(fault.Unsupported, "CRS", d.InputOffset(), "%q is not known: in geopandas, to_crs(4326) "+
			"converts the shapes", fault.Short(named.Properties.Name))
	}
	return nil
}

func (c *collection) features(ctx context.Context, d *json.Decoder) error {
	if err := expect(d, '['); err != nil {
		return err
	}
	for d.More() {
		if int64(len(c.boxes)) == c.o.MaxShapes {
			return fault.New(fault.Limit, "GeoJSON", d.InputOffset(), "over %d shapes", c.o.MaxShapes)
		}
		var single feature
		if err := d.Decode(&single); err != nil {
			return err
		}
		if err := c.add(ctx, &single); err != nil {
			return fault.WithPart(err, "feature "+strconv.Itoa(len(c.boxes)), fault.NoOffset)
		}
	}
	return expect(d, ']')
}

// memory returns how many bytes a feature takes at most while it is read: its text three times and, for each list, a
// position of 16 bytes or a slice of 24, which is up to three times in memory while the list around it grows, and once
// more as geometry. An object of a collection takes twice as much, and so does a property.
func (f *feature) memory() (n int64) {
	const list = 4 * 24
	for _, text := range [][]byte{f.Geometry, f.Properties} {
		items := bytes.Count(text, []byte("[")) + 2*bytes.Count(text, []byte("{")) + 2*bytes.Count(text, []byte(":"))
		n += 3*int64(len(text)) + list*int64(items)
	}
	return n
}

// add adds a feature.
func (c *collection) add(ctx context.Context, f *feature) error {
	if f.Type != "Feature" {
		return fault.New(fault.Corrupt, "feature", fault.NoOffset, "type %q, want \"Feature\"", f.Type)
	}
	if need := f.memory(); need > c.most {
		if err := c.o.Grow(ctx, need-c.most); err != nil {
			return err
		}
		c.most = need
	}
	var geometry *textGeometry
	if len(f.Geometry) > 0 {
		if err := json.Unmarshal(f.Geometry, &geometry); err != nil {
			return fault.New(fault.Corrupt, "geometry", fault.NoOffset, "%v", err)
		}
	}
	bounds := boxtree.Nothing
	if geometry != nil && !geometry.isEmptyPoint() {
		shape, err := geometry.shape(0)
		if err != nil {
			return err
		}
		data, err := orbwkb.Marshal(shape)
		if err != nil {
			return fault.New(fault.Corrupt, "geometry", fault.NoOffset, "%v", err)
		}
		box, ok, err := wkb.Bounds(data)
		if err != nil {
			return err
		}
		if ok {
			bounds = boxtree.Around(box.MinX, box.MinY, box.MaxX, box.MaxY)
		}
		c.data = append(c.data, data...)
	}
	c.boxes, c.ends = append(c.boxes, bounds), append(c.ends, int64(len(c.data)))
	if err := c.cells.add(f.Properties); err != nil {
		return err
	}
	return c.paths.add(f.Properties)
}

// isEmptyPoint reports whether the geometry is a point without coordinates, which shapely writes of "POINT EMPTY". A
// point of package orb has coordinates.
func (g *textGeometry) isEmptyPoint() bool {
	var numbers []json.RawMessage
	return g.Type == "Point" && len(g.Coordinates) > 0 && json.Unmarshal(g.Coordinates, &numbers) == nil &&
		numbers != nil && len(numbers) == 0
}

// shape returns the geometry.
func (geometry *textGeometry) shape(depth int) (orb.Geometry, error) {
	switch geometry.Type {
	case "Point":
		return coordinates[orb.Point](geometry, 1)
	case "MultiPoint":
		return coordinates[orb.MultiPoint](geometry, 2)
	case "LineString":
		return coordinates[orb.LineString](geometry, 2)
	case "MultiLineString":
		return coordinates[orb.MultiLineString](geometry, 3)
	case "Polygon":
		return coordinates[orb.Polygon](geometry, 3)
	case "MultiPolygon":
		return coordinates[orb.MultiPolygon](geometry, 4)
	case "GeometryCollection":
	default:
		return nil, fault.New(fault.Corrupt, "geometry", fault.NoOffset, "type %q", geometry.Type)
	}
	if depth == maxNested {
		return nil, fault.New(fault.Limit, "geometry", fault.NoOffset, "collections %d deep", depth)
	}
	// Not nil, because orb would write nothing for it.
	shapes := orb.Collection{}
	for i := range geometry.Geometries {
		if geometry.Geometries[i].isEmptyPoint() {
			continue
		}
		part, err := geometry.Geometries[i].shape(depth + 1)
		if err != nil {
			return nil, err
		}
		shapes = append(shapes, part)
	}
	return shapes, nil
}

// coordinates returns a geometry whose positions are lists in depth - 1 others.
func coordinates[T orb.Geometry](g *textGeometry, depth int) (orb.Geometry, error) {
	var out T
	err := checkPositions(g.Coordinates, depth)
	if err == nil {
		err = json.Unmarshal(g.Coordinates, &out)
	}
	if err != nil {
		return nil, fault.New(fault.Corrupt, "geometry", fault.NoOffset, "%s: %v", g.Type, err)
	}
	return out, nil
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

// cells collects the values of one property.
type cells struct {
	column  string
	n       int
	exists  bool
	names   map[string]bool // of the first feature's properties
	v       Values
	codes   codes
	floats  []float64
	allInts bool // all numbers so far are whole
	kind    string
}

func newCells(column string) *cells {
	empty := &cells{column: column, allInts: true, names: map[string]bool{}}
	empty.codes = codes{v: &empty.v, of: map[string]uint32{}}
	return empty
}

// add adds the value of a feature.
func (c *cells) add(properties json.RawMessage) error {
	if c.column == "" {
		return nil
	}
	var members map[string]json.RawMessage
	if len(properties) > 0 {
		if err := json.Unmarshal(properties, &members); err != nil {
			return fault.New(fault.Corrupt, "properties", fault.NoOffset, "%v", err)
		}
	}
	if c.n++; c.n == 1 {
		for name := range members {
			c.names[name] = true
		}
	}
	raw, ok := members[c.column]
	c.exists = c.exists || ok
	text := string(raw)
	c.v.null = append(c.v.null, text == "" || text == "null")
	c.v.Ints, c.floats, c.v.Codes = append(c.v.Ints, 0), append(c.floats, 0), append(c.v.Codes, 0)
	pos := c.n - 1
	if c.v.null[pos] {
		return nil
	}
	kind := "number"
	var err error
	switch {
	case text == "true" || text == "false":
		if text == "true" {
			c.v.Ints[pos], c.floats[pos] = 1, 1
		}
	case text[0] == '"':
		kind = "string"
		var decoded string
		if err = json.Unmarshal(raw, &decoded); err == nil {
			c.v.Codes[pos], err = c.codes.code([]byte(decoded))
		}
	default:
		if c.floats[pos], err = strconv.ParseFloat(text, 64); err != nil {
			kind = "list or object"
			// Left out, because the error below names the property.
			err = nil
		}
		if whole, ierr := strconv.ParseInt(text, 10, 64); ierr == nil {
			c.v.Ints[pos] = whole
		} else {
			c.allInts = false
		}
	}
	c.kind = cmp.Or(c.kind, kind)
	if err == nil && (kind != c.kind || kind != "number" && kind != "string") {
		err = fault.New(fault.Unsupported, "property "+c.column, fault.NoOffset,
			"a %s: all features need numbers, or all strings", kind)
	}
	return err
}

// values returns the values of all features.
func (c *cells) values() (*Values, error) {
	switch {
	case c.column == "":
		return nil, nil
	case !c.exists && c.n > 0:
		return nil, fault.New(fault.NotFound, "property "+c.column, fault.NoOffset, "no feature has it; there are %q",
			slices.Sorted(maps.Keys(c.names)))
	case c.kind == "string":
		c.v.Ints = nil
		c.codes.sort()
		return &c.v, nil
	}
	if c.v.Codes = nil; !c.allInts {
		c.v.Ints, c.v.Floats = nil, c.floats
	}
	return &c.v, nil
}

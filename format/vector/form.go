package vector

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/internal/textguard"
)

// form says where the coordinates of an object lie and what they are. A place is the name or the number of a column, or
// the path of a member. One place may have several coordinates, also of several objects one after the other.
type form struct {
	kind   *shapeKind
	places []place
	shapes []string // what format.shape has of objects of the form; nil: anything
}

// place has some of the coordinates of an object.
type place struct {
	name     string
	at       []int // what its numbers are: positions in shapeKind.roles
	optional bool  // without a number it is 0
}

// shapeKind is what coordinates are together. Either add or text is nil.
type shapeKind struct {
	roles []string
	add   func(l *labels, v []float64) (coordForm, error)
	// text adds a shape that is one text, and may say the size of its image. more returns what the further places have.
	text func(ctx context.Context, l *labels, text string, more record, image uint32) (coordForm, error)
}

func numberKind(roles string, add func(l *labels, v []float64) (coordForm, error)) shapeKind {
	return shapeKind{roles: strings.Fields(roles), add: add}
}

func outlineKind(roles string, outline func(v []float64) []float64) shapeKind {
	return numberKind(roles, func(l *labels, v []float64) (coordForm, error) {
		return polygonForm, l.polygon(outline(v)...)
	})
}

// textKind returns the kind of a shape that is one text.
func textKind(roles string, add func(l *labels, text string, more record, image uint32) (coordForm, error)) shapeKind {
	return shapeKind{roles: strings.Fields(roles), text: func(_ context.Context, l *labels, text string, more record,
		image uint32) (coordForm, error) {
		return add(l, text, more, image)
	}}
}

// shapeKinds are the kinds that Options.Box may have, but outlines of vertices x1 y1 x2 y2 x3 y3 …: see verticesOf.
// Angles are clockwise, as pictures are seen.
var shapeKinds = []shapeKind{
	numberKind("x0 y0 x1 y1", addCorners),
	numberKind("x1 y1 x2 y2", addCorners),
	numberKind("x y w h", addSized),
	numberKind("cx cy w h", func(l *labels, v []float64) (coordForm, error) {
		return l.box(v[0]-v[2]/2, v[1]-v[3]/2, v[0]+v[2]/2, v[1]+v[3]/2), nil
	}),
	outlineKind("cx cy w h angle", func(v []float64) []float64 { return rotated(v[0], v[1], v[2], v[3], v[4]) }),
	outlineKind("cx cy w h degrees", func(v []float64) []float64 {
		return rotated(v[0], v[1], v[2], v[3], radians(v[4]))
	}),
	numberKind("x y", func(l *labels, v []float64) (coordForm, error) {
		l.coords = append(l.coords, v...)
		return pointForm, nil
	}),
	textKind("outline", (*labels).outlineText),
	textKind("outline holes", (*labels).outlineText),
	textKind("runs", (*labels).runsText),
	textKind("wkt", func(l *labels, text string, _ record, _ uint32) (coordForm, error) { return l.wkt(text, true) }),
}

// ownKinds are kinds of named formats alone.
var ownKinds = []shapeKind{
	numberKind("xa ya xb yb", func(l *labels, v []float64) (coordForm, error) { // any two corners across
		return l.box(min(v[0], v[2]), min(v[1], v[3]), max(v[0], v[2]), max(v[1], v[3])), nil
	}),
	numberKind("x y w h degrees", func(l *labels, v []float64) (coordForm, error) { // turned around the first corner
		if v[4] == 0 {
			return addSized(l, v)
		}
		w, h := v[2], v[3]
		corners := [][2]float64{{0, 0}, {w, 0}, {w, h}, {0, h}}
		return polygonForm, l.polygon(turned(v[0], v[1], radians(v[4]), corners)...)
	}),
	outlineKind("cx cy r", func(v []float64) []float64 { return ellipse(v[0], v[1], v[2], v[2], 0) }),
	outlineKind("cx cy x y", func(v []float64) []float64 { // the middle, and a point of the edge
		r := math.Hypot(v[2]-v[0], v[3]-v[1])
		return ellipse(v[0], v[1], r, r, 0)
	}),
	outlineKind("cx cy rx ry angle", func(v []float64) []float64 { return ellipse(v[0], v[1], v[2], v[3], v[4]) }),
	outlineKind("cx cy rx ry degrees", func(v []float64) []float64 {
		return ellipse(v[0], v[1], v[2], v[3], radians(v[4]))
	}),
	textKind("xs ys", (*labels).apartText),
	textKind("outer", func(l *labels, text string, _ record, _ uint32) (coordForm, error) { // as masks of xView2 are
		return l.wkt(text, false)
	}),
	{roles: strings.Fields("bitmap origin"), text: bitmapText},
	textKind("brush", func(_ *labels, text string, _ record, _ uint32) (coordForm, error) {
		return noForm, fault.New(fault.Unsupported, "type", "%q: export masks of brushes as PNG, and take the files "+
			"as a field of rasters", text)
	}),
}

// formsAre says which kinds there are, for errors.
const formsAre = "x0 y0 x1 y1 (corners), x y w h (a corner and the size), cx cy w h (the middle and the size, with " +
	"angle in radians or degrees), x y (a point), x1 y1 x2 y2 x3 y3 … (an outline), outline (perhaps with holes), " +
	"runs or wkt"

func addCorners(l *labels, v []float64) (coordForm, error) {
	if v[2] < v[0] || v[3] < v[1] {
		l.remarks.Add(Backwards, v)
	}
	return l.box(min(v[0], v[2]), min(v[1], v[3]), max(v[0], v[2]), max(v[1], v[3])), nil
}

func addSized(l *labels, v []float64) (coordForm, error) {
	return l.box(v[0], v[1], v[0]+v[2], v[1]+v[3]), nil
}

func radians(degrees float64) float64 { return degrees * math.Pi / 180 }

// maxVertices bounds the vertices that have places of their own.
const maxVertices = 100

// verticesOf returns the kind of an outline of n vertices.
func verticesOf(n int) *shapeKind {
	out := outlineKind("", func(v []float64) []float64 { return v })
	for i := range n {
		out.roles = append(out.roles, fmt.Sprint("x", i+1), fmt.Sprint("y", i+1))
	}
	return &out
}

// newForm returns the form that places have by what lies there: "x y w h", or each of these alone. It is
// of one of shapeKinds or more.
func newForm(box map[string]string, more ...shapeKind) (*form, error) {
	var roles []string
	keys := slices.Sorted(maps.Keys(box))
	for _, key := range keys {
		roles = append(roles, strings.Fields(key)...)
	}
	made := &form{}
	sorted := slices.Sorted(slices.Values(roles))
	is := func(kind *shapeKind) bool { return slices.Equal(slices.Sorted(slices.Values(kind.roles)), sorted) }
	kinds := slices.Concat(shapeKinds, more)
	if i := slices.IndexFunc(kinds, func(k shapeKind) bool { return is(&k) }); i >= 0 {
		made.kind = &kinds[i]
	} else if kind := verticesOf(min(len(roles), 2*maxVertices) / 2); len(roles) >= 6 && is(kind) {
		made.kind = kind
	} else {
		return nil, fmt.Errorf("vector: box has %s: it must have %s", fault.Names(roles), formsAre)
	}
	for _, key := range keys {
		p := place{name: box[key]}
		for _, role := range strings.Fields(key) {
			p.at = append(p.at, slices.Index(made.kind.roles, role))
		}
		if p.name == "" || len(p.at) == 0 {
			return nil, fmt.Errorf("vector: box has %q at %q: both must be given", key, p.name)
		}
		made.places = append(made.places, p)
	}
	slices.SortStableFunc(made.places, func(a, b place) int { return a.at[0] - b.at[0] })
	return made, nil
}

// withHoles returns the form with the holes of an outline that is called as the outer one of a polygon.
func (f *form) withHoles() *form {
	outer, ok := strings.CutSuffix(f.places[0].name, "exterior")
	if !ok || len(f.places) > 1 || f.kind.roles[0] != "outline" {
		return f
	}
	holed, _ := newForm(map[string]string{"outline": f.places[0].name, "holes": outer + "interior"}) // no error
	return holed
}

// entry returns the form of a named format: of as many places as coordinates, or of one for all. A number whose role
// ends in "?" may be missing.
func entry(roles, places string, shapes ...string) *form {
	names, at := strings.Fields(strings.TrimSuffix(roles, "?")), strings.Fields(places)
	box := map[string]string{strings.Join(names, " "): places}
	if len(at) == len(names) {
		box = map[string]string{}
		for i, name := range names {
			box[name] = at[i]
		}
	}
	made, err := newForm(box, ownKinds...)
	if err != nil {
		panic(err) // a fault of formats.go
	}
	made.shapes, made.places[len(made.places)-1].optional = shapes, strings.HasSuffix(roles, "?")
	return made
}

// record returns what an object has at a place: a word, or JSON of formats whose values are.
type record func(place string) (text string, ok bool)

// fits reports whether objects of a shape have the form.
func (f *form) fits(shape string) bool { return f.shapes == nil || slices.Contains(f.shapes, shape) }

// all reports whether an object has something at all places of a form. The further places of a text may be missing.
func (f *form) all(of record) bool {
	for _, p := range f.places {
		text, ok := of(p.name)
		switch {
		case p.optional, f.kind.text != nil && p.at[0] > 0:
		case !ok || text == "" || text == "[]":
			return false
		case f.shapes != nil && len(p.at) > 1: // others may have another number of points
			if numbers, err := appendNumbers(nil, text); err != nil || len(numbers) != len(p.at) {
				return false
			}
		}
	}
	return true
}

// any reports whether an object has coordinates at a place of a form.
func (f *form) any(of record) bool {
	return slices.ContainsFunc(f.places, func(p place) bool {
		text := textAt(of, p.name)
		return text != "" && text != "[]" && text != "null"
	})
}

// names returns the places of a form.
func (f *form) names() (names []string) {
	for _, p := range f.places {
		names = append(names, p.name)
	}
	return names
}

// columnsOf are all places that an object is asked for, beside its coordinates.
func (o *Options) columns() []string {
	names := slices.Concat([]string{o.Column}, o.Columns, o.WhereColumns)
	if image := column.Names(o.Image); len(image) > 0 {
		for _, name := range image {
			name, _, _ = strings.Cut(name, ":")
			names = append(names, name)
		}
	} else {
		names = append(names, o.Image)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// object adds an object of a named format, with its values; number is of its image.
func (l *labels) object(ctx context.Context, of record, number uint32) error {
	form, err := l.choose(of)
	if err == nil {
		err = l.put(ctx, form, of, number)
	}
	return err
}

// put adds the objects of a record in the form f, with the values of the columns; number is of their image. A record
// that lacks coordinates gives no objects, or in a named format one that lacks a shape.
func (l *labels) put(ctx context.Context, f *form, of record, number uint32) error {
	texts, count, err := l.coordinates(ctx, f, of)
	if err != nil {
		return err
	}
	if count == 0 && f != l.form {
		count = 1
	}
	names := l.scratch.names[:0]
	for _, column := range l.values {
		names = append(names, column.column)
	}
	names = append(names, l.o.WhereColumns...)
	rest := len(names) // places of a text behind the first one
	if texts != nil {
		names = append(names, f.names()[1:]...)
	}
	l.scratch.names, l.scratch.values = names, l.scratch.values[:0]
	for i, name := range names {
		value := cell{one: textAt(of, name)}
		if i < rest || count > 1 { // one shape may have a list, as of its holes
			value.list, err = l.elements(ctx, value.one)
		}
		if err == nil && value.list != nil && len(value.list) != count {
			err = fault.New(fault.Corrupt, name, "it has %d values for %d objects", len(value.list), count)
		}
		if err != nil {
			return err
		}
		l.scratch.values = append(l.scratch.values, value)
	}
	for i := range count {
		if l.o.Keep != nil && !l.o.Keep(func(name string) (string, bool) {
			text := l.scratch.values[len(l.values)+slices.Index(l.o.WhereColumns, name)].of(i)
			return unquoted(text), text != "" && text != "null"
		}) {
			continue
		}
		form, from, n := noForm, len(l.coords), len(f.kind.roles)
		scale := [2]float64{1, 1}
		if l.format.unit == inPercent && f != nothing {
			if scale, err = l.percent(of, number); err != nil {
				return err
			}
		}
		switch percent := scale != [2]float64{1, 1}; {
		case texts != nil:
			form, err = f.kind.text(ctx, l, unquoted(texts[i]), further(f, l.scratch.values[rest:], i), number)
			if percent {
				scaled(l.coords[from:], []string{"x", "y"}, scale)
			}
		case len(l.scratch.coords) > 0:
			v := l.scratch.coords[i*n:][:n]
			if percent {
				scaled(v, f.kind.roles, scale)
			}
			form, err = f.kind.add(l, v)
		}
		if err != nil {
			return err
		}
		if !l.o.OneImage {
			l.images = append(l.images, number)
		}
		if err = l.addValues(of, i); err == nil {
			err = l.end(ctx, form)
		}
		if err != nil {
			return err
		}
	}
	return l.charge(ctx)
}

// scaled scales coordinates by what they are, to the right and down.
func scaled(v []float64, roles []string, scale [2]float64) {
	for k := range v {
		role := roles[k%len(roles)]
		if axis := strings.IndexByte("xwyh", role[len(role)-1]); axis >= 0 { // angles have none
			v[k] *= scale[axis/2]
		}
	}
}

// addValues adds the values of object i of a record, which are members of one in some formats.
func (l *labels) addValues(of record, i int) (err error) {
	if l.format.values != "" {
		if members := textAt(of, l.format.values); members != "" {
			return l.attributes(json.RawMessage(members))
		}
	}
	for k, column := range l.values {
		switch text := l.scratch.values[k].of(i); {
		case err != nil || column.column == "":
		case l.inJSON && !(l.word && k == 0):
			err = column.addJSON(json.RawMessage(text))
		default:
			err = column.addWord(text)
		}
	}
	return err
}

// further returns what the places of a text behind the first one have for object i, by what it is there.
func further(f *form, values []cell, i int) record {
	return func(role string) (string, bool) {
		for k, place := range f.places[1:] {
			if text := values[k].of(i); f.kind.roles[place.at[0]] == role && text != "null" {
				return unquoted(text), true
			}
		}
		return "", false
	}
}

// cell is what a record has at a place: one value for all objects, or one for each.
type cell struct {
	one  string
	list []string
}

func (c *cell) of(i int) string {
	if c.list == nil {
		return c.one
	}
	return c.list[i]
}

// coordinates returns how many objects a record has, and their shapes if these are texts; otherwise the coordinates of
// all objects are in labels.outline.
func (l *labels) coordinates(ctx context.Context, f *form, of record) (texts []string, count int, err error) {
	l.scratch.coords = l.scratch.coords[:0]
	if f.kind.text != nil {
		text := strings.TrimSpace(textAt(of, f.places[0].name))
		switch {
		case text == "" || text == "null" || text == "[]":
			return nil, 0, nil
		case !isDeep(text):
			return []string{text}, 1, nil
		}
		texts, err = l.elements(ctx, text)
		if around, ok := strings.CutSuffix(f.places[0].name, "coordinates"); ok && len(texts) > 1 && err == nil {
			err = fault.New(fault.Unsupported, "box", "%scoordinates of GeoJSON may have holes: name the member "+
				"around them", around)
		}
		return texts, len(texts), err
	}
	from, read := l.scratch.ends[:0], l.scratch.numbers[:0] // of each place
	even := true                                            // all places have the coordinates of as many objects
	for i, place := range f.places {
		from = append(from, len(read))
		text := textAt(of, place.name)
		if text == "" && place.optional {
			text = "0"
		}
		if read, err = appendNumbers(read, text); err != nil {
			return nil, 0, fault.WithPart(err, place.name, fault.NoOffset)
		}
		here := len(read) - from[i]
		if i == 0 {
			count = here / len(place.at)
		}
		even = even && here == count*len(place.at)
	}
	l.scratch.ends, l.scratch.numbers = from, read
	width := len(f.kind.roles)
	if len(read) > 0 && !even {
		return nil, 0, fault.New(fault.Corrupt, "box", "it has %d of %d coordinates, which are %s in %s", len(read),
			max(count, 1)*width, strings.Join(f.kind.roles, " "), fault.Names(f.names()))
	}
	l.scratch.coords = append(l.scratch.coords, make([]float64, len(read))...)
	for k, place := range f.places {
		for j, x := range read[from[k]:][:count*len(place.at)] {
			l.scratch.coords[j/len(place.at)*width+place.at[j%len(place.at)]] = x
		}
	}
	return nil, count, nil
}

// elements returns the values of a list of JSON, nil of another text.
func (l *labels) elements(ctx context.Context, text string) ([]string, error) {
	if text == "" || text[0] != '[' && text[0] != '"' {
		return nil, nil
	}
	inner := unquoted(text)
	if !strings.HasPrefix(inner, "[") {
		return nil, nil
	}
	const each, few = 64, 1 << 12 // bytes of a value; bytes of a text whose values are few
	if len(inner) > few {
		if err := l.o.Grow(ctx, each*int64(strings.Count(inner, ","))); err != nil {
			return nil, err
		}
	}
	var list []json.RawMessage
	if json.Unmarshal([]byte(inner), &list) != nil {
		return nil, nil
	}
	values := make([]string, len(list))
	for i, value := range list {
		values[i] = string(value)
	}
	return values, nil
}

func textAt(of record, name string) string {
	text, _ := of(name)
	return text
}

// unquoted returns the text of a string of JSON, and others as they are.
func unquoted(text string) string {
	if !strings.HasPrefix(text, `"`) {
		return text
	}
	if inner := text[1:]; len(inner) > 0 && isPlain(inner[:len(inner)-1]) && inner[len(inner)-1] == '"' {
		return inner[:len(inner)-1]
	}
	var plain string
	if json.Unmarshal([]byte(text), &plain) != nil {
		return text
	}
	return plain
}

// isApart reports whether a character separates the numbers of a text.
func isApart(char byte) bool {
	switch char {
	case ' ', '\t', '\r', '\n', ',', ';', '(', ')', '[', ']', '"', '\'':
		return true
	}
	return false
}

// appendNumbers appends the numbers of a text or a list of JSON.
func appendNumbers(to []float64, text string) ([]float64, error) {
	if x, ok := decimal(text); ok { // most places have one
		return append(to, x), nil
	}
	if text == "null" {
		return to, nil
	}
	for pos := 0; ; {
		for pos < len(text) && isApart(text[pos]) {
			pos++
		}
		start := pos
		for pos < len(text) && !isApart(text[pos]) {
			pos++
		}
		if start == pos {
			return to, nil
		}
		x, err := parseNumber(text[start:pos])
		if err != nil {
			return to, err
		}
		to = append(to, x)
	}
}

// outlineText adds an outline: x and y in turn, also as JSON of points or of several outlines, or a mask of COCO, or a
// geometry of GeoJSON. Holes are a list of outlines.
func (l *labels) outlineText(text string, more record, image uint32) (form coordForm, err error) {
	from := len(l.rings)
	switch {
	case strings.HasPrefix(text, "{") && isGeometry.MatchString(text):
		form, err = l.geometry(text)
	case strings.HasPrefix(text, "{"):
		form, err = l.mask(json.RawMessage(text), image)
	case strings.HasPrefix(text, "[") && namedPoints.MatchString(text):
		var points []struct{ X, Y json.Number }
		if wrong := json.Unmarshal([]byte(text), &points); wrong != nil {
			return noForm, fault.New(fault.Corrupt, "outline", "%v", wrong)
		}
		form, err = polygonForm, l.namedPoints(points)
	case strings.HasPrefix(text, "["):
		form, err = l.outlines(text)
	default:
		if l.scratch.text == "" || l.scratch.text != text {
			l.scratch.numbers, err = appendNumbers(l.scratch.numbers[:0], text)
		}
		if err == nil {
			form, err = polygonForm, l.polygon(l.scratch.numbers...)
		}
	}
	holes := textAt(more, "holes")
	switch {
	case err != nil || holes == "":
	case form != polygonForm || len(l.rings) != from+1:
		err = fault.New(fault.Unsupported, "holes", "they are of one outline, and there are %d", len(l.rings)-from)
	default:
		err = l.holesText(holes)
	}
	return form, err
}

// apartText adds an outline whose x stand in one text, and whose y in another.
func (l *labels) apartText(text string, more record, _ uint32) (coordForm, error) {
	xs, wrong := appendNumbers(nil, text)
	ys, err := appendNumbers(nil, textAt(more, "ys"))
	if err = cmp.Or(wrong, err); err != nil {
		return noForm, err
	}
	if len(xs) != len(ys) {
		return noForm, fault.New(fault.Corrupt, "region", "%d x and %d y of its points", len(xs), len(ys))
	}
	outline := make([]float64, 0, 2*len(xs))
	for i, x := range xs {
		outline = append(outline, x, ys[i])
	}
	return polygonForm, l.polygon(outline...)
}

// namedPoints adds an outline of objects with the members x and y.
func (l *labels) namedPoints(points []struct{ X, Y json.Number }) error {
	outline := make([]float64, 0, 2*len(points))
	for _, p := range points {
		x, wrong := parseNumber(p.X.String())
		y, err := parseNumber(p.Y.String())
		if err = cmp.Or(wrong, err); err != nil {
			return err
		}
		outline = append(outline, x, y)
	}
	return l.polygon(outline...)
}

// holesText adds the holes of the last outline.
func (l *labels) holesText(text string) error {
	d := json.NewDecoder(strings.NewReader(text))
	err := expect(d, '[')
	if err == nil {
		err = textguard.EachElement(d, func() error {
			var hole json.RawMessage
			if err := d.Decode(&hole); err != nil {
				return err
			}
			points, depth, pairs, err := l.lists(string(hole))
			switch {
			case err != nil || len(points) < 6 && len(points)%2 == 0: // it covers nothing
				return err
			case depth != 1 && !pairs:
				return fault.New(fault.Corrupt, "hole", "%s is no outline", fault.Short(string(hole)))
			}
			err = l.polygon(points...)
			l.holes = append(l.holes, int64(len(l.coords)))
			return err
		})
	}
	return fault.WithPart(jsonError(d, err), "holes", fault.NoOffset)
}

// isDeep reports whether a text begins as a list of the outlines of several objects.
func isDeep(text string) bool {
	depth := 0
	for depth < 3 && strings.HasPrefix(text, "[") {
		depth, text = depth+1, strings.TrimLeft(text[1:], "\t\n\f\r ")
	}
	return depth == 3
}

// namedPoints is the begin of a list of points that are objects.
var namedPoints = regexp.MustCompile(`^\[\s*\{`)

// isGeometry is the begin of a geometry of GeoJSON.
var isGeometry = regexp.MustCompile(`^\{\s*"(type|coordinates|geometries)"`)

// runsText adds a mask of runs: of COCO, or as startsAndLengths reads it.
func (l *labels) runsText(text string, _ record, image uint32) (coordForm, error) {
	if strings.HasPrefix(text, "{") {
		return l.mask(json.RawMessage(text), image)
	}
	return l.startsAndLengths(text)
}

// declareImage notes the image of a record, and returns its number.
func (l *labels) declareImage(template string, of record) (uint32, error) {
	name, err := l.imageOf(template, of)
	if err != nil {
		return 0, err
	}
	return l.declare(name, name, 0, 0)
}

// imageOf returns the path of the image of a record: what Options.Image names, or the path that it becomes.
func (l *labels) imageOf(template string, of record) (string, error) {
	if strings.IndexByte(template, '{') < 0 {
		text, ok := of(template)
		if !ok {
			return "", fault.New(fault.NotFound, "image", "no %q", template)
		}
		return strings.TrimSpace(unquoted(text)), nil
	}
	lacks := ""
	name := column.Fill(template, func(name string) (string, bool) {
		name, width, _ := strings.Cut(name, ":")
		text, ok := of(name)
		if !ok {
			lacks = name
		}
		text = strings.TrimSpace(unquoted(text))
		if whole, isWhole := strings.CutSuffix(text, ".0"); isWhole { // a number of a table of floats
			text = whole
		}
		if digits, err := strconv.Atoi(width); err == nil && digits <= maxDigits {
			text = strings.Repeat("0", max(0, digits-len(text))) + text
		}
		return text, true
	})
	if lacks != "" {
		return "", fault.New(fault.NotFound, "image", "no %q", lacks)
	}
	return name, nil
}

// maxDigits bounds the zeros before a number in the path of an image.
const maxDigits = 64

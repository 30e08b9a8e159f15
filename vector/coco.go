package vector

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/paulmach/orb"
	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/boxtree"
	"github.com/chaski-eo/chaski/source"
)

// cocoFile holds all annotations of a COCO file. The coordinates of an annotation are pixels of its image. It does not
// change after it is read.
type cocoFile struct {
	r      source.Reader
	images []cocoImage
	byBase map[string][]int32 // from the last part of a file name to the images that have it
	list   []annotation
	rows   [][]uint32 // for each image its annotations
	points []orb.Point
	rings  []uint32 // where each ring ends in points
	counts []uint32 // of all masks
}

// cocoImage is an image that a COCO file lists.
type cocoImage struct {
	name          string
	height, width int
}

// annotation is one object of a COCO file.
type annotation struct {
	image       int32 // its number; while the file is read, ^i if its id is cocoReader.later[i]
	crowd       bool
	boxed       bool
	box         [4]float64 // least x and y, greatest x and y
	ring, rings uint32     // of its outline
	count, runs uint32     // of its mask
	height      uint32     // of its mask
}

// Close implements shapes.
func (c *cocoFile) Close() error { return c.r.Close() }

// shape implements shapes: it returns the outline, or nil.
func (c *cocoFile) shape(_ context.Context, row int) (orb.Geometry, error) {
	annotation := &c.list[row]
	if annotation.rings == 0 {
		return nil, nil
	}
	var out orb.Collection
	start := uint32(0)
	if annotation.ring > 0 {
		start = c.rings[annotation.ring-1]
	}
	for _, end := range c.rings[annotation.ring : annotation.ring+annotation.rings] {
		out = append(out, orb.Polygon{slices.Clone(orb.Ring(c.points[start:end]))}) // callers may change it
		start = end
	}
	return out, nil
}

// Coco reports whether the shapes are annotations of images, in pixels.
func (l *Layer) Coco() bool { return l.coco != nil }

// OfImage returns the numbers of the annotations of an image, in the order of the file. The image is the one whose name
// in the file has the most of the last parts of the path. It is not found if the file has none, and misplaced if the
// file gives it another size.
func (l *Layer) OfImage(uri string, height, width int) ([]uint32, error) {
	cocoFile := l.coco
	found, largest, several := int32(-1), 0, false
	for _, i := range cocoFile.byBase[path.Base(uri)] {
		n := common(uri, cocoFile.images[i].name)
		switch {
		case n > largest:
			found, largest, several = i, n, false
		case n == largest:
			several = true
		}
	}
	switch {
	case found < 0:
		return nil, fault.New(fault.NotFound, "images", fault.NoOffset, "no file_name is that of %q", path.Base(uri))
	case several:
		return nil, fault.New(fault.Unsupported, "images", fault.NoOffset, "several images may be %q", uri)
	}
	cocoImage := &cocoFile.images[found]
	if cocoImage.height != height || cocoImage.width != width {
		return nil, fault.New(fault.Misplaced, "images", fault.NoOffset,
			"%q is %d by %d pixels here, but its raster has %d by %d", cocoImage.name, cocoImage.height,
			cocoImage.width, height, width)
	}
	return cocoFile.rows[found], nil
}

// common returns how many of their last parts two paths have in common.
func common(a, b string) (n int) {
	p, q := strings.Split(a, "/"), strings.Split(b, "/")
	for n < min(len(p), len(q)) && p[len(p)-1-n] == q[len(q)-1-n] {
		n++
	}
	return n
}

// Box returns the box of an annotation in pixels of its image: least x and y, greatest x and y. It reports false if the
// annotation has none, and for a crowd, which is not one object.
func (l *Layer) Box(row uint32) (box [4]float64, ok bool) {
	a := &l.coco.list[row]
	return a.box, a.boxed && !a.crowd
}

// Crowd reports whether an annotation is a crowd: many objects with one mask.
func (l *Layer) Crowd(row uint32) bool { return l.coco.list[row].crowd }

// Runs returns the mask of an annotation, and false if it has none.
func (l *Layer) Runs(row uint32) (Runs, bool) {
	a := &l.coco.list[row]
	return Runs{counts: l.coco.counts[a.count : a.count+a.runs], height: int(a.height)}, a.runs > 0
}

// cocoReader reads a COCO file.
type cocoReader struct {
	cocoFile
	o          *Options
	ids        map[string]int32 // from the id of an image to its number
	later      []string         // ids of images that were not known yet: see annotation.image
	sizes      [][2]int         // for each annotation the size of its mask
	category   []int64
	categories map[int64]string
	most       int64       // see collection.most
	seen       bool        // the file has the member "annotations"
	numbers    [][]float64 // polygons of the last annotation, whose memory the next one uses
	box        []float64   // its bbox, in the same way
	whole      float64     // size of the file divided by the bytes read so far
}

// openCoco opens a COCO file.
func openCoco(ctx context.Context, r source.Reader, o *Options) (*Layer, error) {
	if r.Size() > maxText {
		return nil, fault.New(fault.Limit, "COCO", fault.NoOffset, "%d bytes, at most %d", r.Size(), maxText)
	}
	// A vertex takes 16 bytes, which are twice in memory while they grow, and in text 4 at least; a count of a mask 4
	// bytes and in text 1. An annotation takes some 200 bytes beside its outline, and in text 20 at least.
	if err := o.Grow(ctx, 12*r.Size()); err != nil {
		return nil, err
	}
	c := &cocoReader{cocoFile: cocoFile{r: r, byBase: map[string][]int32{}}, o: o, ids: map[string]int32{},
		categories: map[int64]string{}}
	jsonText := newJSONText(io.MultiReader(skipMark(source.Sequential(ctx, r, 0))...), int(min(r.Size()+2, flatBlock)))
	if err := c.read(ctx, jsonText); err != nil {
		var syntax *json.SyntaxError
		var typ *json.UnmarshalTypeError
		if errors.As(err, &syntax) || errors.As(err, &typ) || errors.Is(err, errJSON) ||
			errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fault.New(fault.Corrupt, "COCO", jsonText.offset(), "%v", err)
		}
		return nil, err
	}
	if !c.seen {
		return nil, fault.New(fault.Unsupported, "COCO", fault.NoOffset, `it has no "annotations"`)
	}
	if err := c.link(); err != nil {
		return nil, err
	}
	layer := &Layer{coco: &c.cocoFile, shapes: &c.cocoFile, Values: c.values()}
	quotes := make([]string, len(c.images))
	for i := range quotes {
		quotes[i] = strconv.Quote(c.images[i].name)
	}
	boxes := make([]boxtree.Box, len(c.list))
	var h xxh3.Hasher
	for i := range c.list {
		annotation := &c.list[i]
		boxes[i] = boxtree.Around(annotation.box[0], annotation.box[1], annotation.box[2], annotation.box[3])
		_, _ = h.WriteString(quotes[annotation.image])
		_, _ = h.WriteString(strconv.FormatBool(annotation.crowd))
	}
	layer.index(boxes, r.Size())
	layer.sum += fmt.Sprintf("%016x", h.Sum64())
	return layer, nil
}

// read reads the members of the file, in any order.
func (c *cocoReader) read(ctx context.Context, t *jsonText) error {
	seen := map[string]bool{}
	return t.object(func(key string) error {
		if key == "images" || key == "annotations" || key == "categories" {
			if seen[key] {
				return fault.New(fault.Corrupt, "COCO", t.offset(), "it has %q twice", key)
			}
			seen[key] = true
		}
		switch key {
		case "images":
			return list(t, "image", func(i int) error { return c.addImage(t, i) })
		case "annotations":
			c.seen = true
			return list(t, "annotation", func(i int) error { return c.add(ctx, t, i) })
		case "categories":
			return list(t, "category", func(int) error {
				var category struct {
					ID   int64  `json:"id"`
					Name string `json:"name"`
				}
				if err := t.decode(&category); err != nil {
					return err
				}
				c.categories[category.ID] = category.Name
				return nil
			})
		}
		_, err := t.value()
		return err
	})
}

// list calls read for each element of a list.
func list(t *jsonText, what string, read func(i int) error) error {
	return t.elements('[', ']', func(i int) error {
		if err := read(i); err != nil {
			return fault.WithPart(err, what+" "+strconv.Itoa(i), fault.NoOffset)
		}
		return nil
	})
}

// maxSide bounds the height and the width of an image: products of two fit into 32 bits, as runs do.
const maxSide = 1<<16 - 1

func (c *cocoReader) addImage(t *jsonText, n int) error {
	var img struct {
		ID     json.RawMessage `json:"id"`
		Name   string          `json:"file_name"`
		Height int             `json:"height"`
		Width  int             `json:"width"`
	}
	if err := t.decode(&img); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return fault.New(fault.Corrupt, "image", fault.NoOffset, format, args...)
	}
	id := string(img.ID)
	if id == "" || img.Name == "" {
		return bad("id or file_name is missing")
	}
	if _, twice := c.ids[id]; twice {
		return bad("id is %.64q: an image above has the same", id)
	}
	if img.Height < 1 || img.Width < 1 || img.Height > maxSide || img.Width > maxSide {
		return bad("%d by %d pixels: sides must be from 1 to %d", img.Height, img.Width, maxSide)
	}
	c.ids[id] = int32(n)
	c.images = append(c.images, cocoImage{img.Name, img.Height, img.Width})
	base := path.Base(img.Name)
	c.byBase[base] = append(c.byBase[base], int32(n))
	return nil
}

// cocoAnnotation is an annotation in JSON.
type cocoAnnotation struct {
	Image        json.RawMessage `json:"image_id"`
	Category     int64           `json:"category_id"`
	BBox         []float64       `json:"bbox"`
	Crowd        json.RawMessage `json:"iscrowd"`
	Segmentation json.RawMessage `json:"segmentation"`
}

// read reads the annotation that comes next in a text. BBox is written over. The bytes are valid until the next read.
func (a *cocoAnnotation) read(t *jsonText) error {
	box, quick := a.BBox, false
	text, err := t.piece(func(b []byte, pos int) int {
		*a = cocoAnnotation{BBox: box[:0]}
		end := short
		if end, quick = a.members(t, b, pos); !quick {
			end = t.skip(b, pos, maxDepth)
		}
		return end
	})
	if err == nil && !quick { // an unusual form: encoding/json decides whether it is valid
		*a = cocoAnnotation{}
		err = json.Unmarshal(text, a)
	}
	return err
}

// cocoMembers are the members of an annotation that are read.
var cocoMembers = [...]string{"image_id", "category_id", "bbox", "iscrowd", "segmentation"}

// members reads an annotation at a place in a text and returns its end, or else short or wrong. It reports false for
// an annotation that encoding/json must decode: one that is not an object, has a member twice or in another spelling,
// or has a value of another type.
func (a *cocoAnnotation) members(t *jsonText, b []byte, at int) (end int, quick bool) {
	if b[at] != '{' {
		return 0, false
	}
	if at = space(b, at+1); at < len(b) && b[at] == '}' {
		return at + 1, true
	}
	for seen := 0; ; at++ {
		if at = space(b, at); at == len(b) {
			return short, true
		}
		start := at
		if at = quoted(b, at); at < 0 {
			return at, true
		}
		known, same := member(b[start+1 : at-1])
		if !same || known >= 0 && seen>>known&1 != 0 {
			return 0, false
		}
		if at = colon(b, at); at < 0 {
			return at, true
		}
		if at = space(b, at); at == len(b) {
			return short, true
		}
		start = at
		if at = t.skip(b, at, maxDepth-1); at < 0 {
			return at, true
		}
		if known >= 0 {
			if seen |= 1 << known; !a.set(known, b[start:at]) {
				return 0, false
			}
		}
		if at = space(b, at); at == len(b) {
			return short, true
		}
		switch b[at] {
		case '}':
			return at + 1, true
		case ',':
		default:
			return wrong, true
		}
	}
}

// member returns which of cocoMembers a key is, or -1. It reports false if encoding/json may take it for one of them,
// by an escape or by capital letters.
func member(key []byte) (known int, same bool) {
	for i, name := range cocoMembers {
		if string(key) == name {
			return i, true
		}
		if len(key) >= len(name) && bytes.EqualFold(key, []byte(name)) {
			return 0, false
		}
	}
	return -1, bytes.IndexByte(key, '\\') < 0
}

// set sets a member to a value in valid JSON. It reports false for one that it leaves to encoding/json.
func (a *cocoAnnotation) set(member int, text []byte) (ok bool) {
	switch cocoMembers[member] {
	case "image_id":
		a.Image = text
	case "category_id":
		n, err := strconv.ParseInt(string(text), 10, 64)
		a.Category = n
		return err == nil
	case "bbox":
		a.BBox, _, ok = numbers(text, 0, a.BBox[:0])
		return ok
	case "iscrowd":
		a.Crowd = text
	default:
		a.Segmentation = text
	}
	return true
}

// add adds annotation n.
func (c *cocoReader) add(ctx context.Context, t *jsonText, n int) error {
	if int64(n) == min(c.o.MaxShapes, math.MaxInt32) {
		return fault.New(fault.Limit, "COCO", t.offset(), "over %d annotations", n)
	}
	item := cocoAnnotation{BBox: c.box[:0]}
	if err := item.read(t); err != nil {
		return err
	}
	c.box, c.whole = item.BBox, float64(c.r.Size())/float64(t.offset())
	f := feature{Geometry: item.Segmentation}
	if m := f.memory(); m > c.most {
		if err := c.o.Grow(ctx, m-c.most); err != nil {
			return err
		}
		c.most = m
	}
	if len(item.Image) == 0 || string(item.Image) == "null" { // see openCoco: it has fewer bytes of text
		return fault.New(fault.Corrupt, "image_id", fault.NoOffset, "it is missing")
	}
	a := annotation{crowd: string(item.Crowd) == "1" || string(item.Crowd) == "true"}
	size, err := c.outline(&a, item.Segmentation)
	if err != nil {
		return err
	}
	switch b := item.BBox; len(b) {
	case 0:
		a.around(c.points, c.rings)
	case 4:
		if a.box, a.boxed = [4]float64{b[0], b[1], b[0] + b[2], b[1] + b[3]}, true; b[2] < 0 || b[3] < 0 {
			return fault.New(fault.Corrupt, "bbox", fault.NoOffset, "is %v: width and height must be at least 0", b)
		}
	default:
		return fault.New(fault.Corrupt, "bbox", fault.NoOffset, "it has %d numbers: it must be x, y, width and height",
			len(b))
	}
	var known bool
	if a.image, known = c.ids[string(item.Image)]; !known {
		a.image = ^int32(len(c.later))
		c.later = append(c.later, string(item.Image))
	}
	c.list = append(room(c.list, 1, c.whole), a)
	c.category = append(room(c.category, 1, c.whole), item.Category)
	c.sizes = append(room(c.sizes, 1, c.whole), size)
	return nil
}

// room returns a list with room for n elements more. A full list grows, within bounds, to the size that it will have if
// the rest of the file is like the part read so far; the file is whole times as large as that. append would copy a
// large list four times, because it grows it by a quarter at a time.
func room[T any](list []T, n int, whole float64) []T {
	have := len(list)
	if have+n <= cap(list) {
		return list
	}
	want := int(float64(have) * min(max(1.02*whole, 1.25), 4))
	return slices.Grow(list, max(n, want-have))
}

// around sets the box to the one around the outline, if there is an outline.
func (a *annotation) around(points []orb.Point, rings []uint32) {
	if a.rings == 0 {
		return
	}
	start := uint32(0)
	if a.ring > 0 {
		start = rings[a.ring-1]
	}
	b := orb.MultiPoint(points[start:rings[a.ring+a.rings-1]]).Bound()
	a.box, a.boxed = [4]float64{b.Min[0], b.Min[1], b.Max[0], b.Max[1]}, true
}

// outline reads a segmentation: polygons, or a mask, whose size it returns.
func (c *cocoReader) outline(a *annotation, text json.RawMessage) (size [2]int, err error) {
	bad := func(format string, args ...any) ([2]int, error) {
		return size, fault.New(fault.Corrupt, "segmentation", fault.NoOffset, format, args...)
	}
	switch {
	case len(text) == 0 || string(text) == "null":
		return size, nil
	case text[0] == '{':
		return c.mask(a, text)
	}
	polygons, ok := numberLists(text, c.numbers)
	if !ok { // an unusual form: encoding/json makes the error
		polygons = nil
		if err := json.Unmarshal(text, &polygons); err != nil {
			return bad("%v", err)
		}
	}
	c.numbers = polygons
	a.ring = uint32(len(c.rings))
	for _, p := range polygons {
		if len(p)%2 != 0 || len(p) < 6 {
			return bad("a polygon has %d numbers: it must have x and y of at least 3 vertices", len(p))
		}
		if int64(len(c.points))+int64(len(p)) > math.MaxUint32 {
			return bad("over 2^32 vertices")
		}
		c.points = room(c.points, len(p)/2, c.whole)
		for i := 0; i < len(p); i += 2 {
			c.points = append(c.points, orb.Point{p[i], p[i+1]})
		}
		c.rings = append(room(c.rings, 1, c.whole), uint32(len(c.points)))
		a.rings++
	}
	return size, nil
}

// numberLists parses lists of lists of numbers, in valid JSON, into the memory of to. It reports false for all else.
func numberLists(text []byte, to [][]float64) (_ [][]float64, ok bool) {
	pos := space(text, 0)
	if to = to[:0]; text[pos] != '[' {
		return to, false
	}
	for pos = space(text, pos+1); text[pos] != ']'; pos = space(text, pos) {
		if text[pos] == ',' {
			pos++
		}
		if len(to) < cap(to) {
			to = to[:len(to)+1]
		} else {
			to = append(to, nil)
		}
		if to[len(to)-1], pos, ok = numbers(text, pos, to[len(to)-1][:0]); !ok {
			return to, false
		}
	}
	return to, true
}

// numbers appends the numbers of a list at a place in valid JSON, and returns where it ends. It reports false for all
// else.
func numbers(text []byte, at int, to []float64) (_ []float64, end int, ok bool) {
	if at = space(text, at); text[at] != '[' {
		return to, at, false
	}
	for at = space(text, at+1); text[at] != ']'; at = space(text, at) {
		if text[at] == ',' {
			at = space(text, at+1)
		}
		var v float64
		if v, at, ok = number(text, at); !ok {
			return to, at, false
		}
		to = append(to, v)
	}
	return to, at + 1, true
}

// number parses a number at a place in valid JSON, and returns where it ends. It reports false for other values, and
// for a number that is too large. One of up to 15 digits is a quotient of two numbers that float64 holds, so that one
// division rounds as strconv does.
func number(text []byte, at int) (v float64, end int, ok bool) {
	start, count, point := at, 0, -1
	value := uint64(0)
	if at < len(text) && text[at] == '-' {
		at++
	}
	for ; at < len(text); at++ {
		if b := text[at]; digit(b) {
			value = 10*value + uint64(b-'0') // may overflow, and is not used then
			count++
		} else if b == '.' {
			point = count
		} else {
			break
		}
	}
	exponent := at < len(text) && text[at]|0x20 == 'e'
	if count == 0 {
		return 0, at, false
	}
	if exponent || count > 15 {
		for at < len(text) && (digit(text[at]) || bytes.IndexByte([]byte("eE-+"), text[at]) >= 0) {
			at++
		}
		v, err := strconv.ParseFloat(string(text[start:at]), 64)
		return v, at, err == nil
	}
	if v = float64(value); point >= 0 {
		v /= powers[count-point]
	}
	if text[start] == '-' {
		v = -v
	}
	return v, at, true
}

// powers holds the powers of 10 that number divides by. float64 holds each of them exactly.
var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// mask reads the runs of a mask, as a list or as a string.
func (c *cocoReader) mask(a *annotation, text json.RawMessage) (size [2]int, err error) {
	bad := func(format string, args ...any) ([2]int, error) {
		return size, fault.New(fault.Corrupt, "segmentation", fault.NoOffset, format, args...)
	}
	var m struct {
		Size   [2]int          `json:"size"`
		Counts json.RawMessage `json:"counts"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return bad("%v", err)
	}
	size = m.Size
	if size[0] < 1 || size[1] < 1 || size[0] > maxSide || size[1] > maxSide {
		return bad("a mask of %d by %d pixels", size[0], size[1])
	}
	start := len(c.counts)
	if len(m.Counts) > 0 && m.Counts[0] == '"' {
		var packed string
		if err := json.Unmarshal(m.Counts, &packed); err != nil {
			return bad("%v", err)
		}
		var ok bool
		if c.counts, ok = unpack(c.counts, packed); !ok {
			return bad("counts are not runs")
		}
	} else {
		var counts []uint32
		if err := json.Unmarshal(m.Counts, &counts); err != nil {
			return bad("%v", err)
		}
		c.counts = append(c.counts, counts...)
	}
	total, want := uint64(0), uint64(size[0])*uint64(size[1])
	for i, n := range c.counts[start:] {
		if total += uint64(n); total > want {
			return bad("runs of over %d pixels", want)
		}
		c.counts[start+i] = uint32(total) // from here on it holds where the run ends
	}
	if total != want || int64(len(c.counts)) > math.MaxUint32 {
		return bad("runs of %d pixels, want %d", total, want)
	}
	a.count, a.runs, a.height = uint32(start), uint32(len(c.counts)-start), uint32(size[0])
	return size, nil
}

// link finds the image of each annotation.
func (c *cocoReader) link() error {
	each := make([]int, len(c.images))
	for i := range c.list {
		annotation := &c.list[i]
		part := func() string { return "annotation " + strconv.Itoa(i) }
		if annotation.image < 0 {
			id, ok := c.later[^annotation.image], false
			if annotation.image, ok = c.ids[id]; !ok {
				return fault.New(fault.Corrupt, part(), fault.NoOffset, "image_id %.64q is not in images", id)
			}
		}
		if m := &c.images[annotation.image]; annotation.runs > 0 && c.sizes[i] != [2]int{m.height, m.width} {
			return fault.New(fault.Corrupt, part(), fault.NoOffset, "its mask has %v pixels, the image %d by %d",
				c.sizes[i], m.height, m.width)
		}
		each[annotation.image]++
	}
	c.rows = make([][]uint32, len(c.images))
	list := make([]uint32, len(c.list))
	for i, n := range each {
		c.rows[i], list = list[:0:n], list[n:]
	}
	for i := range c.list {
		pos := c.list[i].image
		c.rows[pos] = append(c.rows[pos], uint32(i))
	}
	return nil
}

// values returns the categories: their numbers or, if Options.Column is "name", their names, including categories
// without annotations.
func (c *cocoReader) values() *Values {
	values := &Values{}
	if c.o.Column == "" {
		values.Ints = c.category
		return values
	}
	names := map[string]bool{}
	for _, name := range c.categories {
		names[name] = true
	}
	for _, id := range c.category {
		names[c.categories[id]] = true
	}
	values.Names = slices.Sorted(maps.Keys(names))
	values.Codes = make([]uint32, len(c.category))
	for i, id := range c.category {
		k, _ := slices.BinarySearch(values.Names, c.categories[id])
		values.Codes[i] = uint32(k)
	}
	return values
}

package vector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// cocoFile are the annotations of a COCO file, in memory. Coordinates are pixels of the image of each one. It does not
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
	image       int32
	crowd       bool
	boxed       bool
	box         [4]float64 // least x and y, greatest x and y
	ring, rings uint32     // of its outline
	count, runs uint32     // of its mask
	height      uint32     // of its mask
}

// Close implements shapes.
func (c *cocoFile) Close() error { return c.r.Close() }

// shape implements shapes: it returns the outline, or nil if there is none.
func (c *cocoFile) shape(_ context.Context, row int) (orb.Geometry, error) {
	a := &c.list[row]
	if a.rings == 0 {
		return nil, nil
	}
	var out orb.Collection
	from := uint32(0)
	if a.ring > 0 {
		from = c.rings[a.ring-1]
	}
	for _, end := range c.rings[a.ring : a.ring+a.rings] {
		out = append(out, orb.Polygon{slices.Clone(orb.Ring(c.points[from:end]))}) // callers may change it
		from = end
	}
	return out, nil
}

// Coco reports whether the shapes are annotations of images, in pixels.
func (l *Layer) Coco() bool { return l.coco != nil }

// OfImage returns the numbers of the annotations of an image, in the order of the file. The image is the one whose name
// in the file has the most of the last parts of the path. It is not found if the file has none, and misplaced if the
// file gives it another size.
func (l *Layer) OfImage(uri string, height, width int) ([]uint32, error) {
	c := l.coco
	found, most, several := int32(-1), 0, false
	for _, i := range c.byBase[path.Base(uri)] {
		n := common(uri, c.images[i].name)
		switch {
		case n > most:
			found, most, several = i, n, false
		case n == most:
			several = true
		}
	}
	switch {
	case found < 0:
		return nil, fault.New(fault.NotFound, "images", fault.NoOffset, "no file_name is that of %q", path.Base(uri))
	case several:
		return nil, fault.New(fault.Unsupported, "images", fault.NoOffset, "several images may be %q", uri)
	}
	i := &c.images[found]
	if i.height != height || i.width != width {
		return nil, fault.New(fault.Misplaced, "images", fault.NoOffset,
			"%q has %d by %d pixels, and the file has %d by %d of it", i.name, height, width, i.height, i.width)
	}
	return c.rows[found], nil
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
// annotation has none, and if it is that of a crowd, which is not one object.
func (l *Layer) Box(row uint32) (box [4]float64, ok bool) {
	a := &l.coco.list[row]
	return a.box, a.boxed && !a.crowd
}

// Crowd reports whether an annotation is that of a crowd.
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
	imageOf    []string         // for each annotation the id of its image
	sizes      [][2]int         // for each annotation the size of its mask
	category   []int64
	categories map[int64]string
	most       int64       // see collection.most
	seen       bool        // there are annotations
	numbers    [][]float64 // of the annotation before, whose memory is used again
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
	d := json.NewDecoder(io.MultiReader(skipMark(&sequential{ctx: ctx, r: r})...))
	if err := c.read(ctx, d); err != nil {
		var syntax *json.SyntaxError
		var typ *json.UnmarshalTypeError
		if errors.As(err, &syntax) || errors.As(err, &typ) || errors.Is(err, io.EOF) ||
			errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fault.New(fault.Corrupt, "COCO", d.InputOffset(), "%v", err)
		}
		return nil, err
	}
	if !c.seen {
		return nil, fault.New(fault.Unsupported, "COCO", fault.NoOffset, `it has no "annotations"`)
	}
	if err := c.link(); err != nil {
		return nil, err
	}
	l := &Layer{coco: &c.cocoFile, shapes: &c.cocoFile, Values: c.values()}
	boxes := make([]boxtree.Box, len(c.list))
	var h xxh3.Hasher
	for i := range c.list {
		a := &c.list[i]
		boxes[i] = boxtree.Around(a.box[0], a.box[1], a.box[2], a.box[3])
		_, _ = fmt.Fprintf(&h, "%q%v", c.images[a.image].name, a.crowd)
	}
	l.index(boxes, r.Size())
	l.sum += fmt.Sprintf("%016x", h.Sum64())
	return l, nil
}

// read reads the members of the file, in any order.
func (c *cocoReader) read(ctx context.Context, d *json.Decoder) error {
	if err := expect(d, '{'); err != nil {
		return err
	}
	seen := map[any]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		if key == "images" || key == "annotations" || key == "categories" {
			if seen[key] {
				return fault.New(fault.Corrupt, "COCO", d.InputOffset(), "it has %q twice", key)
			}
			seen[key] = true
		}
		switch key {
		case "images":
			err = list(d, "image", func(i int) error { return c.addImage(d, i) })
		case "annotations":
			c.seen = true
			err = list(d, "annotation", func(i int) error { return c.add(ctx, d, i) })
		case "categories":
			err = list(d, "category", func(int) error {
				var one struct {
					ID   int64  `json:"id"`
					Name string `json:"name"`
				}
				if err := d.Decode(&one); err != nil {
					return err
				}
				c.categories[one.ID] = one.Name
				return nil
			})
		default:
			var skipped json.RawMessage
			err = d.Decode(&skipped)
		}
		if err != nil {
			return err
		}
	}
	return expect(d, '}')
}

// list calls read for each element of a list.
func list(d *json.Decoder, what string, read func(i int) error) error {
	if err := expect(d, '['); err != nil {
		return err
	}
	for i := 0; d.More(); i++ {
		if err := read(i); err != nil {
			return fault.WithPart(err, what+" "+strconv.Itoa(i), fault.NoOffset)
		}
	}
	return expect(d, ']')
}

// maxSide bounds the height and the width of an image: products of two fit into 32 bits, as runs do.
const maxSide = 1<<16 - 1

func (c *cocoReader) addImage(d *json.Decoder, n int) error {
	var one struct {
		ID     json.RawMessage `json:"id"`
		Name   string          `json:"file_name"`
		Height int             `json:"height"`
		Width  int             `json:"width"`
	}
	if err := d.Decode(&one); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return fault.New(fault.Corrupt, "image", fault.NoOffset, format, args...)
	}
	id := string(one.ID)
	if _, ok := c.ids[id]; ok || id == "" || one.Name == "" {
		return bad("id %q is there twice, or id or file_name is missing", id)
	}
	if one.Height < 1 || one.Width < 1 || one.Height > maxSide || one.Width > maxSide {
		return bad("%d by %d pixels: sides must be from 1 to %d", one.Height, one.Width, maxSide)
	}
	c.ids[id] = int32(n)
	c.images = append(c.images, cocoImage{one.Name, one.Height, one.Width})
	base := path.Base(one.Name)
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

// add adds annotation n.
func (c *cocoReader) add(ctx context.Context, d *json.Decoder, n int) error {
	if int64(n) == min(c.o.MaxShapes, math.MaxInt32) {
		return fault.New(fault.Limit, "COCO", d.InputOffset(), "over %d annotations", n)
	}
	var one cocoAnnotation
	if err := d.Decode(&one); err != nil {
		return err
	}
	f := feature{Geometry: one.Segmentation}
	if m := f.memory(); m > c.most {
		if err := c.o.Grow(ctx, m-c.most); err != nil {
			return err
		}
		c.most = m
	}
	if len(one.Image) == 0 || string(one.Image) == "null" { // see openCoco: it has fewer bytes of text
		return fault.New(fault.Corrupt, "image_id", fault.NoOffset, "it is missing")
	}
	a := annotation{crowd: string(one.Crowd) == "1" || string(one.Crowd) == "true"}
	size, err := c.outline(&a, one.Segmentation)
	if err != nil {
		return err
	}
	switch b := one.BBox; len(b) {
	case 0:
		a.around(c.points, c.rings)
	case 4:
		if a.box, a.boxed = [4]float64{b[0], b[1], b[0] + b[2], b[1] + b[3]}, true; b[2] < 0 || b[3] < 0 {
			return fault.New(fault.Corrupt, "bbox", fault.NoOffset, "%v: it must be x, y, width and height", b)
		}
	default:
		return fault.New(fault.Corrupt, "bbox", fault.NoOffset, "%d numbers, want 4", len(b))
	}
	c.list, c.imageOf = append(c.list, a), append(c.imageOf, string(one.Image))
	c.category, c.sizes = append(c.category, one.Category), append(c.sizes, size)
	return nil
}

// around sets the box to the one around the outline, if there is an outline.
func (a *annotation) around(points []orb.Point, rings []uint32) {
	if a.rings == 0 {
		return
	}
	from := uint32(0)
	if a.ring > 0 {
		from = rings[a.ring-1]
	}
	b := orb.MultiPoint(points[from:rings[a.ring+a.rings-1]]).Bound()
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
	if !ok { // nothing that writers of COCO write: the slow way says what is wrong
		if err := json.Unmarshal(text, &polygons); err != nil {
			return bad("%v", err)
		}
	}
	c.numbers = polygons
	a.ring = uint32(len(c.rings))
	for _, p := range polygons {
		if len(p)%2 != 0 || len(p) < 6 {
			return bad("a polygon of %d numbers", len(p))
		}
		if int64(len(c.points))+int64(len(p)) > math.MaxUint32 {
			return bad("over 2^32 vertices")
		}
		for i := 0; i < len(p); i += 2 {
			c.points = append(c.points, orb.Point{p[i], p[i+1]})
		}
		c.rings = append(c.rings, uint32(len(c.points)))
		a.rings++
	}
	return size, nil
}

// numberLists parses lists of lists of numbers, in valid JSON, into the memory of to. It reports false for all else.
func numberLists(text []byte, to [][]float64) (_ [][]float64, ok bool) {
	at := 0
	next := func() byte { // the first byte that is no white space, or 0
		for ; at < len(text); at++ {
			if b := text[at]; b > ' ' {
				return b
			}
		}
		return 0
	}
	open := func() bool {
		ok := next() == '['
		at++
		return ok
	}
	if to = to[:0]; !open() {
		return nil, false
	}
	for next() != ']' {
		if !open() {
			return nil, false
		}
		if len(to) < cap(to) {
			to = to[:len(to)+1]
		} else {
			to = append(to, nil)
		}
		one := to[len(to)-1][:0]
		for next() != ']' {
			from := at
			for at < len(text) && text[at] > ' ' && text[at] != ',' && text[at] != ']' {
				at++
			}
			v, ok := number(text[from:at])
			if !ok {
				return nil, false
			}
			if one = append(one, v); next() == ',' {
				at++
			}
		}
		at++
		if to[len(to)-1] = one; next() == ',' {
			at++
		}
	}
	return to, true
}

// number parses a number of JSON. One of up to 15 digits, with a point or not, is a quotient of two numbers that
// float64 holds, so that one division rounds as strconv does.
func number(text []byte) (float64, bool) {
	digits, after, negative := uint64(0), 0, false
	for i, b := range text {
		switch {
		case b == '-' && i == 0:
			negative = true
		case b == '.' && after == 0:
			after = len(text) - 1 - i
		case b >= '0' && b <= '9' && len(text) <= 15:
			digits = 10*digits + uint64(b-'0')
		default:
			v, err := strconv.ParseFloat(string(text), 64)
			return v, err == nil
		}
	}
	v := float64(digits) / powers[after]
	if negative {
		v = -v
	}
	return v, len(text) > 0
}

// powers are those of 10.
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
	from := len(c.counts)
	if len(m.Counts) > 0 && m.Counts[0] == '"' {
		var packed string
		if err := json.Unmarshal(m.Counts, &packed); err != nil {
			return bad("%v", err)
		}
		var ok bool
		if c.counts, ok = unpack(c.counts, packed); !ok {
			return bad("counts are no runs")
		}
	} else {
		var counts []uint32
		if err := json.Unmarshal(m.Counts, &counts); err != nil {
			return bad("%v", err)
		}
		c.counts = append(c.counts, counts...)
	}
	total, want := uint64(0), uint64(size[0])*uint64(size[1])
	for i, n := range c.counts[from:] {
		if total += uint64(n); total > want {
			return bad("runs of over %d pixels", want)
		}
		c.counts[from+i] = uint32(total) // where the run ends, from here on
	}
	if total != want || int64(len(c.counts)) > math.MaxUint32 {
		return bad("runs of %d pixels, want %d", total, want)
	}
	a.count, a.runs, a.height = uint32(from), uint32(len(c.counts)-from), uint32(size[0])
	return size, nil
}

// link finds the image of each annotation.
func (c *cocoReader) link() error {
	c.rows = make([][]uint32, len(c.images))
	for i, id := range c.imageOf {
		at, ok := c.ids[id]
		part := "annotation " + strconv.Itoa(i)
		if !ok {
			return fault.New(fault.Corrupt, part, fault.NoOffset, "image_id %.64q is not in images", id)
		}
		if m := &c.images[at]; c.list[i].runs > 0 && c.sizes[i] != [2]int{m.height, m.width} {
			return fault.New(fault.Corrupt, part, fault.NoOffset, "a mask of %v pixels, the image has %d by %d",
				c.sizes[i], m.height, m.width)
		}
		c.list[i].image = at
		c.rows[at] = append(c.rows[at], uint32(i))
	}
	return nil
}

// values returns the categories: their numbers or, if Options.Column is "name", their names, with those of categories
// that no annotation has.
func (c *cocoReader) values() *Values {
	v := &Values{}
	if c.o.Column == "" {
		v.Ints = c.category
		return v
	}
	names := map[string]bool{}
	for _, name := range c.categories {
		names[name] = true
	}
	for _, id := range c.category {
		names[c.categories[id]] = true
	}
	for name := range names {
		v.Names = append(v.Names, name)
	}
	slices.Sort(v.Names)
	v.Codes = make([]uint32, len(c.category))
	for i, id := range c.category {
		k, _ := slices.BinarySearch(v.Names, c.categories[id])
		v.Codes[i] = uint32(k)
	}
	return v
}

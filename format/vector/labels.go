package vector

import (
	"bytes"
	"context"
	"io"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/internal/digest"
	"github.com/chaski-eo/chaski/internal/textguard"
	"github.com/chaski-eo/chaski/source"
)

// headBytes is how many bytes of a file tell its format: the header line of a CSV, or the first lines of a text.
const headBytes = 4 << 10

// Space says in what the coordinates of shapes are measured.
type Space uint8

// Values of Space.
const (
	Ground Space = iota // the CRS of the layer
	Pixels              // pixels of an image, from its upper left corner
	Shares              // the same, in shares of the width and the height of the image
)

// coordForm says how the coordinates of an object are stored.
type coordForm uint8

const (
	noForm      coordForm = iota // no coordinates: the object has no shape
	boxForm                      // two opposite corners
	polygonForm                  // vertices of one or more outlines, which labels.rings separates
	runForm                      // height of a mask and the lengths of its runs: see runs
	pointForm                    // x and y
)

// imageHeight is the height of a mask of runs that has the height of its image, which its file does not say.
const imageHeight = 0

// labels reads the objects of a file.
type labels struct {
	shapeList
	imageList
	o       *Options
	format  *format
	values  []*cells // of Options.Column, or of the class if there is none, and of Options.Columns
	form    *form    // of Options.Box
	inJSON  bool     // values are JSON
	word    bool     // but the first one, which is a word
	scratch scratch
	bitmaps bitmaps
	// ordinal says that the numbers of classes are positions in a list of names that is elsewhere.
	ordinal      bool
	table        bool // the images are in a column, which Options.Image may name
	ofRows       bool // the images are the rows of a table
	chargedBytes int64
	remarks      Remarks
}

// shapeList has the shapes of objects, in memory. A box takes 41 bytes beside its values.
type shapeList struct {
	forms  []coordForm
	coords []float64
	ends   []int64 // where each object ends in coords
	rings  []int64 // where each outline of polygons ends in coords
	holes  []int64 // those ends whose outlines are holes of the polygon before them
}

// imageList has the images of objects, of files that name these, or their one image.
type imageList struct {
	images []uint32          // of each object
	ids    map[string]uint32 // numbers of images by their names in the file
	paths  []string          // by number; "" for one that has no path
	sizes  [][2]float64      // by number: width and height as the file says them, 0 if it does not
	text   int64             // bytes of names, with nameBytes for each
}

// scratch is what is used anew for each record.
type scratch struct {
	numbers []float64
	text    string // whose numbers they are, where a format has looked at them
	ends    []int
	coords  []float64
	names   []string
	values  []cell
}

func newLabels(o *Options, f *format) *labels {
	l := &labels{o: o, format: f, imageList: imageList{ids: map[string]uint32{}}}
	for i, column := range append([]string{o.Column}, o.Columns...) {
		l.values = append(l.values, newCells(column))
		l.values[i].truths = i > 0
	}
	return l
}

// Close implements shapes.
func (l *shapeList) Close() error { return nil }

// classIs names the column that has the class of objects, for a field that names no column. Classes are strings unless
// they are numbers of the format.
func (l *labels) classIs(name string) {
	first := l.values[0]
	if first.column == "" && l.o.Class {
		first.column = name
	}
	first.words = first.column == name || l.o.Words
}

// have refuses columns that the format does not have.
func (l *labels) have(known []string) error {
	if slices.Contains(known, classColumn) {
		l.classIs(classColumn)
	}
	for _, column := range l.values {
		if column.optional = true; column.column != "" && !slices.Contains(known, column.column) {
			return fault.New(fault.NotFound, "column "+column.column, "objects of %s have %q", l.format.name, known)
		}
	}
	if l.format.ordinal {
		l.values[0].words, l.ordinal = false, l.values[0].column == classColumn
	}
	return nil
}

// chargeStep is how many bytes of memory are charged at least at a time.
const chargeStep = 64 << 10

// end ends an object, whose coordinates and values were added.
func (l *labels) end(ctx context.Context, f coordForm) error {
	if int64(len(l.ends)) >= l.o.MaxShapes {
		return fault.New(fault.Limit, l.format.name, "over %d shapes", l.o.MaxShapes)
	}
	l.forms, l.ends = append(l.forms, f), append(l.ends, int64(len(l.coords)))
	return l.charge(ctx)
}

// charge charges the memory of what was added.
func (l *labels) charge(ctx context.Context) error {
	const value, image = 22, 16 // bytes of an object in cells, and in the lists of images; nameBytes has those of sizes
	kept := 8*int64(len(l.coords)+len(l.rings)+len(l.holes)) + 9*int64(len(l.ends)) + l.text
	kept += value*int64(len(l.values)*len(l.ends)) + image*int64(len(l.images))
	for _, column := range l.values {
		kept += int64(column.codes.size)
	}
	// Twice, because a slice that grows is copied into one that is up to twice as long.
	growth := 2*kept - l.chargedBytes
	if growth <= 0 {
		return nil
	}
	growth = max(growth, chargeStep)
	l.chargedBytes += growth
	return l.o.Grow(ctx, growth)
}

// leaveOut counts an object that is no outline.
func (l *labels) leaveOut(what string) { l.remarks.Add(NoOutline, what) }

// asks reports whether a column is one of those that are read.
func (l *labels) asks(name string) bool {
	return slices.ContainsFunc(l.values, func(c *cells) bool { return c.column == name })
}

// box adds the coordinates of a box.
func (l *labels) box(x0, y0, x1, y1 float64) coordForm {
	if x0 == x1 || y0 == y1 {
		l.remarks.Add(NoArea, x0, y0, x1, y1)
	}
	l.coords = append(l.coords, x0, y0, x1, y1)
	return boxForm
}

// polygon adds an outline, whose x and y follow each other. A point at its end that repeats the first one is left out.
func (l *labels) polygon(outline ...float64) error {
	if n := len(outline); n > 6 && n%2 == 0 && outline[0] == outline[n-2] && outline[1] == outline[n-1] {
		outline = outline[:n-2]
	}
	if len(outline) < 6 || len(outline)%2 != 0 {
		return fault.New(fault.Corrupt, "polygon", "it has %d coordinates", len(outline))
	}
	l.coords = append(l.coords, outline...)
	l.rings = append(l.rings, int64(len(l.coords)))
	return nil
}

// flat returns the x and y of points, which follow each other.
func flat[P ~[2]float64](points []P) []float64 {
	out := make([]float64, 0, 2*len(points))
	for _, p := range points {
		out = append(out, p[0], p[1])
	}
	return out
}

// imageNumber returns the number of an image by its name in the file.
func (l *labels) imageNumber(name string) (uint32, error) {
	if number, ok := l.ids[name]; ok {
		return number, nil
	}
	if l.text += int64(len(name)) + nameBytes; len(name) > maxName || l.text > maxNames {
		return 0, fault.New(fault.Limit, "images",
			"names of images have over %d bytes, or one has over %d bytes", maxNames, maxName)
	}
	number := uint32(len(l.ids))
	l.ids[strings.Clone(name)], l.paths = number, append(l.paths, "") // name may be a part of a line
	l.sizes = append(l.sizes, [2]float64{})
	return number, nil
}

// declare notes the path of an image and its size in pixels, 0 if the file does not say it, by the name of the image in
// the file.
func (l *labels) declare(name, path string, width, height float64) (number uint32, err error) {
	if number, err = l.imageNumber(name); err != nil {
		return number, err
	}
	if len(path) > maxName {
		return number, fault.New(fault.Limit, "images", "a path of over %d bytes", maxName)
	}
	if l.paths[number] != path {
		l.paths[number] = strings.Clone(path)
		l.text += int64(len(path))
	}
	l.declareSize(number, width, height)
	return number, nil
}

// declareSize notes the size of an image. Programs that do not know it write 0.
func (l *labels) declareSize(number uint32, width, height float64) {
	known, said := &l.sizes[number], [2]float64{width, height}
	switch {
	case !(width > 0 && height > 0) || *known == said:
	case *known == [2]float64{}:
		*known = said
	default:
		l.remarks.Add(OtherSize, l.paths[number], ": ", known[0], "x", known[1], ", and ", width, "x", height)
	}
}

// sizeOf returns the width or height that a word is, 0 if it is not a number.
func sizeOf(word string) float64 {
	x, _ := parseNumber(strings.Trim(word, `"`)) // 0 with an error
	return x
}

// extent returns the range of an object in coords.
func (l *shapeList) extent(row int) (from, to int64) {
	if row > 0 {
		from = l.ends[row-1]
	}
	return from, l.ends[row]
}

// shape implements shapes.
func (l *shapeList) shape(_ context.Context, row int) (orb.Geometry, error) { return l.shapeIn(row, 0) }

// shapeIn returns the shape of an object in an image of a height, 0 if that is not known.
func (l *shapeList) shapeIn(row, height int) (orb.Geometry, error) {
	from, to := l.extent(row)
	coords := l.coords[from:to]
	switch l.forms[row] {
	case boxForm:
		return rectangle(coords[0], coords[1], coords[2], coords[3]), nil
	case runForm:
		if coords[0] != imageHeight {
			return runs(coords[0], coords[1:]), nil
		}
		if height == 0 {
			return orb.Collection{}, nil
		}
		return runs(float64(height), coords[1:]), nil
	case pointForm:
		return orb.Point{coords[0], coords[1]}, nil
	case polygonForm:
	default:
		return nil, nil
	}
	var parts orb.Collection
	for ring := sort.Search(len(l.rings), func(i int) bool { return l.rings[i] > from }); from < to; ring++ {
		_, isHole := slices.BinarySearch(l.holes, l.rings[ring])
		outline := make(orb.Ring, 0, (l.rings[ring]-from)/2+1)
		for ; from < l.rings[ring]; from += 2 {
			outline = append(outline, orb.Point{l.coords[from], l.coords[from+1]})
		}
		outline = append(outline, outline[0])
		if last := len(parts) - 1; isHole {
			parts[last] = append(parts[last].(orb.Polygon), outline)
			continue
		}
		parts = append(parts, orb.Polygon{outline})
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return parts, nil
}

// rectangle returns the polygon of a box.
func rectangle(x0, y0, x1, y1 float64) orb.Polygon {
	return orb.Polygon{{{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}, {x0, y0}}}
}

// runs returns a mask of runs as rectangles, which cover the same pixels: of columns of a height, the lengths of runs
// outside and inside in turn.
func runs(height float64, lengths []float64) orb.Geometry {
	pos, parts := 0.0, orb.Collection{}
	for i, length := range lengths {
		start, end := pos, pos+length
		if pos = end; i%2 == 0 || length == 0 {
			continue
		}
		first, last := math.Floor(start/height), math.Floor((end-1)/height)
		top, bottom := start-first*height, end-last*height
		if first == last {
			parts = append(parts, rectangle(first, top, first+1, bottom))
			continue
		}
		if top > 0 {
			parts = append(parts, rectangle(first, top, first+1, height))
			first++
		}
		if bottom < height {
			parts = append(parts, rectangle(last, 0, last+1, bottom))
			last--
		}
		if first <= last {
			parts = append(parts, rectangle(first, 0, last+1, height))
		}
	}
	return parts
}

// setColumns sets the values of a layer.
func (l *labels) setColumns(out *Layer) (err error) {
	out.Columns = make([]*tables.Vector, len(l.o.Columns))
	for i, column := range l.values {
		to := &out.Values
		if i > 0 {
			to = &out.Columns[i-1]
		}
		if *to, err = column.values(); err != nil {
			return err
		}
	}
	return nil
}

// layer returns the layer of the objects. size is the size of the file in bytes.
func (l *labels) layer(size int64) (*Layer, error) {
	if l.o.Image != "" && l.o.imageForm == "" && !l.table {
		return nil, fault.New(fault.Unsupported, "images", "image is %q, and %s names the image of each shape itself",
			l.o.Image, l.format.name)
	}
	if l.o.OneImage && len(l.paths) > 1 {
		return nil, fault.New(fault.Unsupported, "images", "the file names %d images, such as %q and %q: give it as "+
			"path, not as pattern", len(l.paths), fault.Short(l.paths[0]), fault.Short(l.paths[1]))
	}
	for _, number := range l.images {
		if l.paths[number] == "" && !l.o.OneImage && !l.ofRows {
			l.remarks.Add(NoImage)
		}
	}
	list := l.shapeList // the rest of l is not needed any more
	out := &Layer{Space: Pixels, Remarks: l.remarks, Ordinal: l.ordinal, shapes: &list, n: len(l.ends)}
	if l.format.unit == inShares {
		out.Space = Shares
	}
	if err := l.setColumns(out); err != nil {
		return nil, err
	}
	out.Ordinal = out.Ordinal || l.o.Numbered && out.Values != nil && out.Values.Ints() != nil
	if l.ordinal && out.Values.Floats() != nil {
		return nil, fault.New(fault.Corrupt, "classes", "they are whole numbers, and the file has others")
	}
	if !l.o.OneImage || len(l.paths) > 0 {
		template := l.o.imageForm
		if l.table { // the paths are whole
			template = ""
		}
		out.images = newImages(template, l.paths, l.images, nil)
		out.images.sizes, out.images.one = l.sizes, l.o.OneImage
	}
	hash := digest.New()
	hash.Number(uint64(size))
	for row, form := range l.forms {
		hash.Number(uint64(form)<<56 | uint64(l.ends[row]))
	}
	for _, x := range l.coords {
		hash.Number(math.Float64bits(x))
	}
	for _, end := range slices.Concat(l.rings, l.holes) {
		hash.Number(uint64(end))
	}
	out.sum = out.hashColumns(hash)
	return out, nil
}

// far returns the first shape with a coordinate that is far from all shares of an image.
func (l *shapeList) far() (row uint32, x float64, found bool) {
	// Boxes may pass the edge, and positions in pixels have some number over 2.
	pos := slices.IndexFunc(l.coords, func(x float64) bool { return !(x >= -1 && x <= 2) })
	if pos < 0 {
		return 0, 0, false
	}
	row = uint32(sort.Search(len(l.ends), func(i int) bool { return l.ends[i] > int64(pos) }))
	return row, l.coords[pos], true
}

// likeShares reports whether all coordinates are from 0 to 1, and not all of them whole numbers.
func (l *shapeList) likeShares() bool {
	between := false
	for _, x := range l.coords {
		if !(x >= 0 && x <= 1) {
			return false
		}
		between = between || x != math.Trunc(x)
	}
	return between
}

// maxPiece and maxLine bound one part of a text in bytes, which its parser holds as a whole: an object of JSON, in
// which a polygon of 100,000 vertices has 4 MB; and a line, or a tag of XML. A tag of attributes 15 times.
const (
	maxPiece = 4 << 20
	maxLine  = 1 << 20
)

// newParts returns the text of a file, without its byte order mark.
func newParts(ctx context.Context, r source.Reader, name string, limit int64) *textguard.Parts {
	text, head := source.Sequential(ctx, r), make([]byte, len(texts.Mark))
	n, _ := io.ReadFull(text, head) // the parser meets the error again
	unmarked := io.MultiReader(bytes.NewReader(bytes.TrimPrefix(head[:n], []byte(texts.Mark))), text)
	return textguard.NewParts(ctx, unmarked, name, "one part", limit)
}

// isText reports whether bytes may be the begin of a text in UTF-8.
func isText(head []byte) bool {
	for len(head) > 0 {
		char, size := utf8.DecodeRune(head)
		if char == utf8.RuneError && size == 1 && utf8.FullRune(head) {
			return false
		}
		if char < ' ' && char != '\t' && char != '\n' && char != '\r' {
			return false
		}
		head = head[size:]
	}
	return true
}

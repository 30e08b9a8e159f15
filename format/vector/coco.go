package vector

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/textguard"
)

// categoryColumn is the column with the names of categories.
const categoryColumn = "category"

// maxRuns bounds the runs of a mask, which take up to 200 bytes each while it is drawn.
const maxRuns = 1 << 18

// coco is a file of COCO's JSON, and of SODA's, that is read.
type coco struct {
	*labels
	text       *textguard.Parts
	categories map[string]string // names by the text of their ids
	named      bool              // the first column is the name of the category
	slots      map[string]int    // of the members of an annotation that are read
	members    []json.RawMessage // of an annotation, by slot
	skipped    json.RawMessage
	outline    []float64
}

// Slots of members that all annotations have; columns have those behind.
const (
	imageSlot = iota
	boxSlot
	segmentSlot
	polySlot // the outline in SODA
)

func newCOCO(o *Options, text *textguard.Parts) *coco {
	c := &coco{labels: newLabels(o, "COCO's JSON"), text: text, categories: map[string]string{}}
	c.classIs(categoryColumn)
	c.slots = map[string]int{"image_id": imageSlot, "bbox": boxSlot, "segmentation": segmentSlot, "poly": polySlot}
	c.named = c.values[0].column == categoryColumn
	for i, column := range c.values {
		name := column.column
		if column.optional = o.OneImage; i == 0 && c.named {
			name = "category_id"
		}
		if _, known := c.slots[name]; !known && name != "" {
			c.slots[name] = len(c.slots)
		}
	}
	c.members = make([]json.RawMessage, len(c.slots))
	return c
}

// read reads a member of the file.
func (c *coco) read(ctx context.Context, d *json.Decoder, key json.Token) error {
	element := map[json.Token]func(context.Context, *json.Decoder) error{
		"images": c.readImage, "annotations": c.readAnnotation, "categories": c.readCategory,
	}[key]
	start, err := d.Token()
	if start == json.Delim('{') { // one image: SODA
		return element(ctx, d)
	}
	if err != nil || start == nil { // null
		return err
	}
	if start != json.Delim('[') {
		return fault.At(fault.Corrupt, "JSON", d.InputOffset(), "%v is no list", key)
	}
	for number := 0; d.More(); number++ {
		c.text.Next()
		if err = expect(d, '{'); err == nil {
			err = element(ctx, d)
		}
		if err != nil {
			return fault.WithPart(err, key.(string)+" "+strconv.Itoa(number), fault.NoOffset)
		}
	}
	return expect(d, ']')
}

// readObject reads the members of an object whose begin was read. want returns where a member goes; nil skips it.
func (c *coco) readObject(d *json.Decoder, want func(name string) any) error {
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		into := want(key.(string)) // the decoder takes no other keys
		if into == nil {
			into = &c.skipped
		}
		if err := d.Decode(into); err != nil {
			return err
		}
	}
	return expect(d, '}')
}

// namedEntry is what a file says of an image or a category.
type namedEntry struct {
	ID            json.RawMessage
	Name, File    string
	Width, Height json.RawMessage // numbers, but text of some programs
}

func (c *coco) readNamed(d *json.Decoder) (n namedEntry, err error) {
	members := map[string]any{"id": &n.ID, "name": &n.Name, "file_name": &n.File,
		"width": &n.Width, "height": &n.Height}
	err = c.readObject(d, func(name string) any { return members[name] })
	if err == nil && len(n.ID) == 0 {
		err = fault.New(fault.Corrupt, "id", "it has none")
	}
	return n, err
}

// idOf returns an id in JSON as one text for all spellings of a number, as pandas writes 1 as 1.0.
func idOf(raw json.RawMessage) string {
	if bytes.HasPrefix(raw, []byte(`"`)) || !bytes.ContainsAny(raw, ".eE") {
		return string(raw)
	}
	x, err := parseNumber(string(raw))
	if err != nil || x != math.Trunc(x) || math.Abs(x) > 1<<53 {
		return string(raw)
	}
	return strconv.FormatInt(int64(x), 10)
}

func (c *coco) readImage(ctx context.Context, d *json.Decoder) error {
	image, err := c.readNamed(d)
	if err == nil {
		_, err = c.declare(idOf(image.ID), image.File, sizeOf(string(image.Width)), sizeOf(string(image.Height)))
	}
	if err != nil {
		return err
	}
	return c.charge(ctx)
}

func (c *coco) readCategory(_ context.Context, d *json.Decoder) error {
	category, err := c.readNamed(d)
	if err == nil && (len(c.categories) == maxWords || len(category.Name) > maxName) {
		err = fault.New(fault.Limit, "categories", "over %d, or a name of over %d bytes", maxWords, maxName)
	}
	if err == nil {
		c.categories[idOf(category.ID)] = category.Name
	}
	return err
}

// readAnnotation reads an object.
func (c *coco) readAnnotation(ctx context.Context, d *json.Decoder) error {
	for i := range c.members {
		c.members[i] = c.members[i][:0]
	}
	err := c.readObject(d, func(name string) any {
		if slot, ok := c.slots[name]; ok {
			return &c.members[slot]
		}
		return nil
	})
	if err != nil {
		return err
	}
	number, err := c.image(idOf(c.members[imageSlot]))
	if err != nil {
		return err
	}
	f, err := c.cocoShape(number)
	if err != nil {
		return err
	}
	c.images = append(c.images, number)
	for i, column := range c.values {
		switch {
		case column.column == "":
		case i == 0 && c.named:
			err = column.addWord(idOf(c.members[c.slots["category_id"]]))
		case column.column == "category_id":
			err = column.addJSON(json.RawMessage(idOf(c.members[c.slots["category_id"]])))
		default:
			err = column.addJSON(c.members[c.slots[column.column]])
		}
		if err != nil {
			return err
		}
	}
	return c.end(ctx, f)
}

// has reports whether an annotation has a member.
func (c *coco) has(slot int) bool {
	text := string(c.members[slot])
	return text != "" && text != "null" && text != "[]"
}

// cocoShape adds the shape of an annotation of an image: the outline, if it has one and boxes are not asked for.
func (c *coco) cocoShape(image uint32) (coordForm, error) {
	switch {
	case c.has(boxSlot) && (c.o.Boxes || !c.has(segmentSlot) && !c.has(polySlot)):
		box, depth, err := c.list(c.members[boxSlot], nil)
		if err != nil || depth != 1 || len(box) != 4 {
			return noForm, fault.New(fault.Corrupt, "bbox", "%s is no list of x, y, width and height",
				fault.Short(string(c.members[boxSlot])))
		}
		return c.box(box[0], box[1], box[0]+box[2], box[1]+box[3]), nil
	case c.has(segmentSlot) && c.members[segmentSlot][0] == '{':
		return c.mask(c.members[segmentSlot], image)
	case c.has(segmentSlot):
		return c.outlines(c.members[segmentSlot])
	case c.has(polySlot):
		return c.outlines(c.members[polySlot])
	}
	return c.leaveOut("an annotation without a box"), nil
}

// outlines adds a list of coordinates, or a list of such lists. Lists of fewer than three points cover nothing.
func (c *coco) outlines(text json.RawMessage) (coordForm, error) {
	f := noForm
	add := func(outline []float64) error {
		if len(outline) < 6 && len(outline)%2 == 0 {
			c.leaveOut("a segmentation of two points")
			return nil
		}
		f = polygonForm
		return c.polygon(outline...)
	}
	rest, depth, err := c.list(text, add)
	if err == nil && depth == 1 {
		err = add(rest)
	}
	return f, err
}

// list returns the numbers of a list, and how many lists deep they lie. It calls each with the numbers of every list
// that lies in another, unless it is nil.
func (c *coco) list(text json.RawMessage, each func([]float64) error) (list []float64, depth int, err error) {
	wrong := fault.New(fault.Corrupt, "list", "%s is no list of numbers", fault.Short(string(text)))
	list, level := c.outline[:0], 0
	rest := strings.TrimSpace(string(text))
	for len(rest) > 0 {
		switch char := rest[0]; char {
		case '[':
			level++
			depth = max(depth, level)
			if rest = rest[1:]; level > 2 || level == 2 && (each == nil || len(list) > 0) {
				return nil, 0, wrong
			}
		case ']':
			if level--; level == 1 {
				if err := each(list); err != nil {
					return nil, 0, err
				}
				list = list[:0]
			}
			rest = rest[1:]
		case ',', ' ', '\t', '\r', '\n':
			rest = rest[1:]
		default:
			end := strings.IndexAny(rest, ",] \t\r\n")
			if end <= 0 || level != depth {
				return nil, 0, wrong
			}
			x, err := parseNumber(rest[:end])
			if err != nil {
				return nil, 0, wrong
			}
			list, rest = append(list, x), rest[end:]
		}
	}
	c.outline = list
	return list, depth, nil
}

// mask adds a mask of runs, whose lengths are a list, or a string of LEB128-like numbers that pycocotools writes.
func (c *coco) mask(text json.RawMessage, image uint32) (coordForm, error) {
	var mask struct {
		Size   []int64         `json:"size"`
		Counts json.RawMessage `json:"counts"`
	}
	if err := json.Unmarshal(text, &mask); err != nil || len(mask.Size) != 2 {
		return noForm, fault.New(fault.Corrupt, "segmentation", "a mask of runs has size and counts")
	}
	const side = 1 << 24 // each sum of runs is exact as a float64
	height, width := mask.Size[0], mask.Size[1]
	if height < 1 || width < 1 || height > side || width > side {
		return noForm, fault.New(fault.Corrupt, "segmentation", "size %v", mask.Size)
	}
	c.declareSize(image, float64(width), float64(height))
	c.coords = append(c.coords, float64(height))
	start := len(c.coords)
	var err error
	if strings.HasPrefix(string(mask.Counts), `"`) {
		var counts string
		if err = json.Unmarshal(mask.Counts, &counts); err == nil {
			err = c.packed(counts)
		}
	} else {
		var list []float64
		list, _, err = c.list(mask.Counts, nil)
		c.coords = append(c.coords, list...)
	}
	if len(c.coords)-start > maxRuns {
		return noForm, fault.New(fault.Limit, "counts", "over %d runs", maxRuns)
	}
	left := float64(height * width)
	for _, run := range c.coords[start:] {
		if left -= run; !(run >= 0 && left >= 0) || run != float64(int64(run)) {
			return noForm, fault.New(fault.Corrupt, "counts", "runs do not fit into %v", mask.Size)
		}
	}
	return runForm, err
}

// packed adds runs of a string, as rleFrString of COCO's API reads them: six bits a character, from the lowest on, and
// from the fourth run on the difference to the last but one.
func (c *coco) packed(counts string) error {
	start := len(c.coords)
	for pos := 0; pos < len(counts); {
		value, shift, more := int64(0), uint(0), true
		for more {
			if pos == len(counts) || shift > 50 || counts[pos] < 48 || counts[pos] > 111 {
				return fault.New(fault.Corrupt, "counts", "character %d of the runs is wrong", pos)
			}
			bits := int64(counts[pos] - 48)
			value |= bits & 31 << shift
			more = bits&32 != 0
			pos++
			if shift += 5; !more && bits&16 != 0 {
				value |= -1 << shift
			}
		}
		if number := len(c.coords) - start; number > 2 {
			value += int64(c.coords[len(c.coords)-2])
		}
		c.coords = append(c.coords, float64(value))
	}
	return nil
}

// layer returns the layer of the file.
func (c *coco) layer(size int64) (*Layer, error) {
	if first := c.values[0]; c.named && len(c.categories) > 0 {
		for id := range first.codes.of {
			if _, ok := c.categories[id]; !ok {
				return nil, fault.New(fault.Corrupt, "categories", "no category has the id %s", fault.Short(id))
			}
		}
		first.codes.rename(c.categories)
	} else if c.named { // numbers of categories without names
		first.words = c.o.Words
	}
	layer, err := c.labels.layer(Pixels, size)
	if err == nil && c.named {
		layer.Listed = slices.Collect(maps.Values(c.categories))
	}
	return layer, err
}

package vector

import (
	"cmp"
	"encoding/json"
	"math"
	"strings"

	"github.com/paulmach/orb"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/wkb"
)

// outlines adds a list of coordinates, or of points, or of lists of coordinates. Lists of fewer than three points cover
// nothing.
func (l *labels) outlines(text string) (coordForm, error) {
	numbers, depth, pairs, err := l.lists(text)
	if err != nil || pairs {
		return polygonForm, cmp.Or(err, l.polygon(numbers...))
	}
	ends := l.scratch.ends
	if depth == 1 {
		ends = append(ends[:0], len(numbers))
	}
	f, from := noForm, 0
	for _, end := range ends {
		outline := numbers[from:end]
		if from = end; len(outline) < 6 && len(outline)%2 == 0 {
			l.leaveOut("a segmentation of two points")
			continue
		}
		if err := l.polygon(outline...); err != nil {
			return noForm, err
		}
		f = polygonForm
	}
	return f, nil
}

// lists returns the numbers of a list, or of lists in a list, and how many lists deep they lie. scratch.ends then has
// where those lists end; pairs reports whether each of them has two numbers. The numbers are valid until the next call.
func (l *labels) lists(text string) (list []float64, depth int, pairs bool, err error) {
	c := coordinateText{text: []byte(text)}
	list, ends, flat := l.scratch.numbers[:0], l.scratch.ends[:0], false
	number := func() {
		quoted := c.text[c.pos] == '"' // a number in a string
		if quoted {
			c.pos++
		}
		if list = append(list, c.number()); quoted {
			c.expect('"')
		}
	}
	c.items(func() {
		if start := len(list); c.peek() == '[' {
			c.items(number)
			pairs = len(list) == start+2 && (pairs || len(ends) == 0)
			ends = append(ends, len(list))
		} else {
			flat = true
			number()
		}
	})
	if c.err != nil || c.peek() != 0 || flat && len(ends) > 0 {
		return nil, 0, false, fault.New(fault.Corrupt, "list", "%s is no list of numbers", fault.Short(text))
	}
	l.scratch.numbers, l.scratch.ends = list, ends
	return list, 1 + min(1, len(ends)), pairs, nil
}

// mask adds a mask of runs, whose lengths are a list, or a string of LEB128-like numbers that pycocotools writes.
func (l *labels) mask(text json.RawMessage, image uint32) (coordForm, error) {
	var mask struct {
		Size   []int64         `json:"size"`
		Counts json.RawMessage `json:"counts"`
	}
	if err := json.Unmarshal(text, &mask); err != nil || len(mask.Size) != 2 || mask.Counts == nil {
		return noForm, fault.New(fault.Corrupt, "segmentation", "a mask of runs has size and counts")
	}
	const side = 1 << 24 // each sum of runs is exact as a float64
	height, width := mask.Size[0], mask.Size[1]
	if height < 1 || width < 1 || height > side || width > side {
		return noForm, fault.New(fault.Corrupt, "segmentation", "size %v", mask.Size)
	}
	l.declareSize(image, float64(width), float64(height))
	l.coords = append(l.coords, float64(height))
	start := len(l.coords)
	var err error
	if strings.HasPrefix(string(mask.Counts), `"`) {
		var counts string
		if err = json.Unmarshal(mask.Counts, &counts); err == nil {
			err = l.packed(counts)
		}
	} else {
		list, depth, _, wrong := l.lists(string(mask.Counts))
		if err = wrong; depth > 1 {
			err = fault.New(fault.Corrupt, "list", "%s is no list of numbers", fault.Short(string(mask.Counts)))
		}
		l.coords = append(l.coords, list...)
	}
	if len(l.coords)-start > maxRuns {
		return noForm, fault.New(fault.Limit, "counts", "over %d runs", maxRuns)
	}
	left := float64(height * width)
	for _, run := range l.coords[start:] {
		if left -= run; !(run >= 0 && left >= 0) || run != float64(int64(run)) {
			return noForm, fault.New(fault.Corrupt, "counts", "runs do not fit into %v", mask.Size)
		}
	}
	return runForm, err
}

// packed adds runs of a string, as rleFrString of COCO's API reads them: six bits a character, from the lowest on, and
// from the fourth run on the difference to the last but one.
func (l *labels) packed(counts string) error {
	start := len(l.coords)
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
		if number := len(l.coords) - start; number > 2 {
			value += int64(l.coords[len(l.coords)-2])
		}
		l.coords = append(l.coords, float64(value))
	}
	return nil
}

// maxRuns bounds the runs of a mask, which take up to 200 bytes each while it is drawn.
const maxRuns = 1 << 18

// startsAndLengths adds a mask of runs: for each the number of its first pixel, from 1 on, and its length.
// Pixels are numbered from top to bottom, column after column, of an image whose height the file does not say. Kaggle's
// oldest files have -1 for an image without a mask.
func (l *labels) startsAndLengths(text string) (coordForm, error) {
	if text == "-1" {
		return noForm, nil
	}
	list, err := numbers(nil, strings.Fields(text))
	const last = 1 << 48 // of an image of side by side pixels; its number is exact as a float64
	if err != nil {
		return noForm, err
	}
	if len(list)%2 != 0 || len(list) > maxRuns {
		return noForm, fault.New(fault.Corrupt, "runs", "%d numbers: they are the first pixel and the "+
			"length of each run, of at most %d", len(list), maxRuns/2)
	}
	l.coords = append(l.coords, imageHeight)
	pos := 0.0
	for i := 0; i < len(list); i += 2 {
		start, length := list[i]-1, list[i+1]
		whole := start == math.Trunc(start) && length == math.Trunc(length)
		if !whole || !(start >= pos && length >= 0 && start+length <= last) {
			return noForm, fault.New(fault.Corrupt, "runs", "the run %v %v follows pixel %v: runs are "+
				"whole numbers in their order, from 1", list[i], length, pos)
		}
		l.coords = append(l.coords, start-pos, length)
		pos = start + length
	}
	return runForm, nil
}

// rotated returns the corners of a box around a middle that is turned clockwise, as pictures are seen, by an angle in
// radians.
func rotated(x, y, width, height, angle float64) []float64 {
	right, down := width/2, height/2
	return turned(x, y, angle, [][2]float64{{-right, -down}, {right, -down}, {right, down}, {-right, down}})
}

// turned returns an outline whose points are said by their distances from a middle, turned around it.
func turned(x, y, angle float64, points [][2]float64) (outline []float64) {
	sin, cos := math.Sincos(angle)
	for _, p := range points {
		outline = append(outline, x+float64(p[0]*cos)-float64(p[1]*sin), y+float64(p[0]*sin)+float64(p[1]*cos))
	}
	return outline
}

// wkt adds a polygon or multipolygon of WKT.
func (l *labels) wkt(text string, holes bool) (coordForm, error) {
	binary, err := wkb.AppendText(nil, text)
	if err != nil {
		return noForm, err
	}
	return l.wkb(binary, text, holes)
}

// geometry adds a polygon or multipolygon of GeoJSON.
func (l *labels) geometry(text string) (coordForm, error) {
	var g textGeometry
	if err := json.Unmarshal([]byte(text), &g); err != nil {
		return noForm, fault.New(fault.Corrupt, "geometry", "%v", err)
	}
	binary, err := g.appendWKB(nil, 0)
	if err != nil {
		return noForm, err
	}
	return l.wkb(binary, text, true)
}

// wkb adds a polygon or multipolygon; text says it in errors.
func (l *labels) wkb(binary []byte, text string, holes bool) (coordForm, error) {
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
			return noForm, fault.New(fault.Unsupported, "shape", "it is %s, and no polygon: leave it out",
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

// ellipseSides is how many sides an ellipse has as an outline: of one that is 100 pixels wide, they bend by a sixteenth
// of a pixel. A multiple of four keeps its box.
const ellipseSides = 64

// ellipse returns the outline of an ellipse, turned clockwise, as pictures are seen, by an angle in radians.
func ellipse(x, y, right, down, angle float64) []float64 {
	points := make([][2]float64, ellipseSides)
	for i := range points {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / ellipseSides)
		points[i] = [2]float64{cos * right, sin * down}
	}
	return turned(x, y, angle, points)
}

package vector

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// lineFormat is a format of a text with an object on each line.
type lineFormat struct {
	name    string
	ordinal bool     // classes are positions in a list of names that is elsewhere
	columns []string // of values, the class first
	// begins reports whether the words of the first object are of the format. headed says that lines of DOTA's files
	// stand before it.
	begins func(words []string, headed bool) bool
	// object adds the coordinates of an object, and returns its values of the columns.
	object func(l *labels, words []string) (coordForm, []string, error)
}

// in returns the format, whose coordinates are measured in a space.
func (f *lineFormat) in(space Space) labelFormat {
	begins := func(head []byte) bool { return f.begins(firstWords(head)) }
	return labelFormat{f.name, begins, f.read, space, false}
}

// read reads the objects of a text.
func (f *lineFormat) read(ctx context.Context, r source.Reader, l *labels) error {
	if err := l.have(f.columns...); err != nil {
		return err
	}
	if f.ordinal {
		l.values[0].words, l.ordinal = false, l.values[0].column == classColumn
	}
	return lines(ctx, r, func(words []string) error {
		if isHeading(words) {
			return nil
		}
		form, values, err := f.object(l, words)
		if err != nil {
			return err
		}
		return l.add(ctx, form, f.columns, values...)
	})
}

// lines calls visit with the words of each line of a text that has words.
func lines(ctx context.Context, r source.Reader, visit func(words []string) error) error {
	text := newParts(ctx, r, "line", maxLine)
	in := bufio.NewReader(text)
	for number := 1; ; number++ {
		text.Next()
		line, err := in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if words := strings.Fields(line); len(words) > 0 {
			if err := visit(words); err != nil {
				return fault.WithPart(err, "line "+strconv.Itoa(number), fault.NoOffset)
			}
		}
		if err != nil {
			return nil
		}
	}
}

// firstWords returns the words of the first line of objects of a text, behind the lines that begin DOTA's files. headed
// reports whether there were such lines.
func firstWords(head []byte) (words []string, headed bool) {
	if !isText(head) {
		return nil, false
	}
	for line := range strings.Lines(string(head)) {
		if words = strings.Fields(line); isHeading(words) {
			headed = true
		} else if len(words) > 0 {
			return words, headed
		}
	}
	return nil, headed
}

// isHeading reports whether words are one of the lines before the objects of DOTA.
func isHeading(words []string) bool {
	return len(words) > 0 && (strings.HasPrefix(words[0], "imagesource:") || strings.HasPrefix(words[0], "gsd:"))
}

// countNumbers returns how many words at the begin are numbers.
func countNumbers(words []string) (n int) {
	for ; n < len(words); n++ {
		if _, err := parseNumber(words[n]); err != nil {
			break
		}
	}
	return n
}

// beginsDOTA reports whether an object is eight coordinates and a class. Nine numbers are an object of YOLO.
func beginsDOTA(words []string, headed bool) bool {
	count := countNumbers(words)
	return headed || count == 8 && len(words) >= 9 || count == 10 && len(words) == 10
}

// dotaObject reads x1 y1 x2 y2 x3 y3 x4 y4 class difficult. A class may be of several words, and the last number may be
// missing.
func dotaObject(l *labels, words []string) (coordForm, []string, error) {
	if len(words) < 9 {
		return noForm, nil, fault.New(fault.Corrupt, "object", "%d words, where 8 coordinates, a class and "+
			"whether it is difficult stand", len(words))
	}
	corners, err := numbers(words[:8])
	if err == nil {
		err = l.polygon(corners...)
	}
	class, difficult := words[8:], ""
	if last := class[len(class)-1]; len(class) > 1 && countNumbers(class[len(class)-1:]) == 1 {
		class, difficult = class[:len(class)-1], last
		if err == nil && !slices.Contains([]string{"0", "1", "2"}, last) {
			err = fault.New(fault.Corrupt, "object", "%q behind the class may be a part of it, or say whether the "+
				"object is difficult, as 0, 1 or 2 do", fault.Short(last))
		}
	}
	return polygonForm, []string{strings.Join(class, " "), difficult}, err
}

// beginsYOLO reports whether an object is numbers alone; the readers of DOTA and KITTI take others.
func beginsYOLO(words []string, _ bool) bool {
	count := countNumbers(words)
	return count == len(words) && count >= 5 && count != 10 && !isKITTI(words)
}

// YOLOOrder says what the numbers of YOLO's text are, for errors.
const YOLOOrder = "class, x and y of the middle, width and height, or class and the vertices of an outline"

// yoloObject reads class, x and y of the middle, width and height, and perhaps a score; or class and the vertices of an
// outline, which may be an oriented box. Coordinates are shares of the image.
func yoloObject(l *labels, words []string) (form coordForm, values []string, err error) {
	list, err := numbers(words)
	if err != nil {
		return noForm, nil, err
	}
	other := func(what string) (coordForm, []string, error) {
		return noForm, nil, fault.New(fault.Unsupported, "object", "%s, which is not read: write %s", what, YOLOOrder)
	}
	class, coords := list[0], list[1:]
	values = []string{strconv.FormatFloat(class, 'f', -1, 64)}
	switch count := len(coords); {
	case class != math.Trunc(class):
		return noForm, nil, fault.New(fault.Corrupt, "object", "%v is no class: the order is %s", class, YOLOOrder)
	case count == 5 && !(coords[4] >= 0 && coords[4] <= 1):
		return other("the sixth number is no score, and may be an angle")
	case count == 6 && math.Abs(math.Hypot(coords[4], coords[5])-1) < 1e-3:
		return other("the last two numbers may be a cosine and a sine")
	case hasKeypoints(coords):
		return other("it is a box with keypoints")
	case count == 4 || count == 5:
		if form = l.box(coords[0]-coords[2]/2, coords[1]-coords[3]/2, coords[0]+coords[2]/2,
			coords[1]+coords[3]/2); count == 5 {
			values = append(values, words[5])
			if !l.asks(scoreColumn) {
				l.remarks.Add(SixNumbers, words)
			}
		}
		return form, values, nil
	case count == 6:
		l.remarks.Add(SevenNumbers, words)
	}
	return polygonForm, values, l.polygon(coords...)
}

// hasKeypoints reports whether coordinates are a box, by its middle and size, with points in it, of x, y and perhaps 0,
// 1 or 2 for how far it is seen. An outline has no 2, and its second vertex is not far from all others.
func hasKeypoints(c []float64) bool {
	fits := func(width int) bool {
		seen, lo, hi := false, slices.Clone(c[:2]), slices.Clone(c[:2])
		for p := range slices.Chunk(c[4:], width) {
			for axis := range 2 {
				lo[axis], hi[axis] = min(lo[axis], p[axis]), max(hi[axis], p[axis])
				if p[axis] != 0 && math.Abs(p[axis]-c[axis]) > c[2+axis]/2+1e-3 {
					return false
				}
			}
			if width == 3 && !slices.Contains([]float64{0, 1, 2}, p[2]) {
				return false
			}
			seen = seen || width == 3 && p[2] == 2
		}
		far := func(axis int) bool {
			extent, x := hi[axis]-lo[axis], c[2+axis]
			return x < lo[axis]-extent || x > hi[axis]+extent
		}
		return seen || far(0) || far(1)
	}
	count := len(c) - 4
	return count >= 4 && count%2 == 0 && fits(2) || count >= 3 && count%3 == 0 && fits(3)
}

// kittiWords are how many words an object has, perhaps with a score behind them.
const kittiWords = 15

// isKITTI reports whether words are an object of KITTI: a class, 14 numbers and perhaps a score. Where the class is a
// number, the seven numbers of the object in space are 0, as ArcGIS exports them, and no outline of YOLO is like that.
func isKITTI(words []string) bool {
	if len(words) != kittiWords && len(words) != kittiWords+1 {
		return false
	}
	rest, err := numbers(words[1:])
	inSpace := func(x float64) bool { return x != 0 }
	return err == nil && (countNumbers(words[:1]) == 0 || !slices.ContainsFunc(rest[7:14], inSpace))
}

func beginsKITTI(words []string, headed bool) bool { return !headed && isKITTI(words) }

// kittiObject reads the box of class, three numbers, x0, y0, x1, y1, the object in space, and perhaps a score.
func kittiObject(l *labels, words []string) (coordForm, []string, error) {
	if !isKITTI(words) {
		return noForm, nil, fault.New(fault.Corrupt, "object", "it is no class and 14 numbers")
	}
	box, err := numbers(words[4:8])
	if err != nil {
		return noForm, nil, err
	}
	return l.box(box[0], box[1], box[2], box[3]), append(words[:1:1], words[kittiWords:]...), nil
}

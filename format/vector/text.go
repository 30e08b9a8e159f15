package vector

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// Names that columns have in formats whose columns have no names of their own.
const (
	classColumn     = "class"
	difficultColumn = "difficult" // of DOTA
	scoreColumn     = "score"     // of predictions in YOLO's text
)

func init() {
	register(labelFormat{"DOTA's text", beginsDOTA, readDOTA, Pixels, false},
		labelFormat{"YOLO's text", beginsYOLO, readYOLO, Shares, false},
		labelFormat{"KITTI's text", beginsKITTI, readKITTI, Pixels, false})
}

// lines calls visit with the words of each line of a text that has words.
func lines(ctx context.Context, r source.Reader, visit func(words []string) error) error {
	text := newPieces(ctx, r, "line", maxLine)
	in := bufio.NewReader(text)
	for number := 1; ; number++ {
		text.next()
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

// beginsDOTA reports whether a text has objects of eight coordinates and a class. Nine numbers are an object of YOLO.
func beginsDOTA(head []byte) bool {
	words, headed := firstWords(head)
	count := countNumbers(words)
	return headed || count == 8 && len(words) >= 9 || count == 10 && len(words) == 10
}

// readDOTA reads lines of x1 y1 x2 y2 x3 y3 x4 y4 class difficult; the last one may be missing.
func readDOTA(ctx context.Context, r source.Reader, l *labels) error {
	if err := l.have(classColumn, difficultColumn); err != nil {
		return err
	}
	return lines(ctx, r, func(words []string) error {
		if isHeading(words) {
			return nil
		}
		if len(words) != 9 && len(words) != 10 {
			return fault.New(fault.Corrupt, "object", "%d words, where 8 coordinates, a class and "+
				"whether it is difficult stand", len(words))
		}
		corners, err := numbers(words[:8])
		if err == nil {
			err = l.polygon(corners...)
		}
		if err != nil {
			return err
		}
		named := map[string]string{classColumn: words[8]}
		if len(words) == 10 {
			named[difficultColumn] = words[9]
		}
		return l.add(ctx, polygonForm, named)
	})
}

// beginsYOLO reports whether a text has objects of a class, four coordinates and perhaps a score, or an outline.
func beginsYOLO(head []byte) bool {
	words, _ := firstWords(head)
	count := countNumbers(words)
	return count == len(words) && !isKITTI(words) && (count == 5 || count == 6 || count >= 7 && count%2 == 1)
}

// readYOLO reads lines of class, x and y of the middle, width and height, and perhaps a score; or of class and the
// vertices of an outline, which may be an oriented box. Coordinates are shares of the image.
func readYOLO(ctx context.Context, r source.Reader, l *labels) error {
	if err := l.have(classColumn, scoreColumn); err != nil {
		return err
	}
	l.values[0].words, l.ordinal = false, l.values[0].column == classColumn
	return lines(ctx, r, func(words []string) error {
		list, err := numbers(words)
		if err != nil {
			return err
		}
		named, f := map[string]string{classColumn: strconv.FormatFloat(list[0], 'f', -1, 64)}, polygonForm
		switch coords := list[1:]; {
		case len(coords) == 4 || len(coords) == 5:
			f = l.box(coords[0]-coords[2]/2, coords[1]-coords[3]/2, coords[0]+coords[2]/2, coords[1]+coords[3]/2)
			if len(coords) == 5 {
				named[scoreColumn] = words[5]
			}
		default:
			err = l.polygon(coords...)
		}
		if err != nil {
			return err
		}
		return l.add(ctx, f, named)
	})
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

// beginsKITTI reports whether a text has objects of KITTI.
func beginsKITTI(head []byte) bool {
	words, headed := firstWords(head)
	return !headed && isKITTI(words)
}

// readKITTI reads the boxes of lines of class, three numbers, x0, y0, x1, y1, the object in space, and perhaps a score.
func readKITTI(ctx context.Context, r source.Reader, l *labels) error {
	if err := l.have(classColumn, scoreColumn); err != nil {
		return err
	}
	return lines(ctx, r, func(words []string) error {
		if !isKITTI(words) {
			return fault.New(fault.Corrupt, "object", "it is no class and 14 numbers")
		}
		box, err := numbers(words[4:8])
		if err != nil {
			return err
		}
		named := map[string]string{classColumn: words[0]}
		if len(words) > kittiWords {
			named[scoreColumn] = words[kittiWords]
		}
		return l.add(ctx, l.box(box[0], box[1], box[2], box[3]), named)
	})
}

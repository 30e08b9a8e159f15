package vector

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/parquet"
	"github.com/chaski-eo/chaski/internal/textguard"
	"github.com/chaski-eo/chaski/source"
)

// eachLine visits the words of each line of a text that has words. A separator stands between them, 0 for blanks; width
// is how many there are, as of csv.Reader. The words are valid during the call.
func eachLine(ctx context.Context, r source.Reader, comma rune, width int,
	visit func(number int, words []string) error) error {
	text := newParts(ctx, r, "line", maxLine)
	in := bufio.NewReaderSize(text, headBytes)
	var fields []string
	next, part, first := func() ([]string, error) {
		line, err := readLine(in)
		fields = appendFields(fields[:0], line)
		return fields, err
	}, "line ", 1
	if comma != 0 {
		head, _ := in.Peek(headBytes) // Read meets the error again
		if n := textguard.SeparatorLine(head); n > 0 {
			if _, err := in.Discard(n); err != nil {
				return err
			}
			head, _ = in.Peek(headBytes)
		}
		reader := csv.NewReader(in)
		reader.Comma, reader.ReuseRecord, reader.FieldsPerRecord = comma, true, width
		text.Values = textguard.Values{Separator: byte(comma), Most: parquet.MaxColumns + headBytes}
		text.Values.Add(head)
		next, part, first = reader.Read, "row ", 0
	}
	for number := 0; ; number++ {
		text.Next()
		words, err := next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			if parse, ok := errors.AsType[*csv.ParseError](err); ok {
				err = fault.Wrap(fault.Corrupt, "line "+strconv.Itoa(parse.Line), parse.Err)
			}
			return err
		case len(words) == 0:
			continue
		case comma != 0 && len(words) > parquet.MaxColumns:
			return fault.New(fault.Limit, "line 1", "%d columns, at most %d", len(words), parquet.MaxColumns)
		}
		if err = visit(number, words); err != nil && number+first > 0 {
			err = fault.WithPart(err, part+strconv.Itoa(number+first), fault.NoOffset)
		}
		if err != nil {
			return err
		}
	}
}

// readLine returns the next line of a text.
func readLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadSlice('\n')
	if err == nil || len(line) > 0 && errors.Is(err, io.EOF) { // the next line has it
		return string(line), nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return "", err
	}
	begin := string(line)
	rest, err := in.ReadString('\n')
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return begin + rest, err
}

// appendFields appends the words of a line, as strings.Fields returns them.
func appendFields(to []string, line string) []string {
	start := -1 // of a word
	for i := range len(line) {
		switch c := line[i]; {
		case c >= utf8.RuneSelf:
			return append(to[:0], strings.Fields(line)...)
		case c == ' ' || c >= '\t' && c <= '\r':
			if start >= 0 {
				to = append(to, line[start:i])
			}
			start = -1
		case start < 0:
			start = i
		}
	}
	if start >= 0 {
		to = append(to, line[start:])
	}
	return to
}

// readWords reads a text with an object on each line, whose words are the columns of its format.
func readWords(ctx context.Context, r source.Reader, l *labels, _ []byte) error {
	header, values := l.format.fixed()
	if err := l.have(values); err != nil {
		return err
	}
	return eachLine(ctx, r, 0, 0, func(_ int, words []string) error {
		if isHeading(words) {
			return nil
		}
		words, err := l.format.words(l, words)
		switch forms := l.format.forms; {
		case err != nil:
			return err
		case len(forms) == 1:
			return l.put(ctx, forms[0], header.of(words), 0)
		}
		return l.object(ctx, header.of(words), 0)
	})
}

// fixed returns the columns of a format that has no header, and the names of those that have values.
func (f *format) fixed() (h *header, values []string) {
	names := strings.Fields(f.columns)
	isPlace := func(name string) bool {
		return slices.ContainsFunc(f.forms, func(form *form) bool { return slices.Contains(form.names(), name) })
	}
	for _, name := range names {
		if name != "." && !isPlace(name) {
			values = append(values, name)
		}
	}
	return columns(names), values
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
		if _, ok := numberOf(words[n]); !ok {
			break
		}
	}
	return n
}

// beginsDOTA reports whether an object is eight coordinates and a class. Nine numbers are an object of YOLO.
func beginsDOTA(head []byte) bool {
	words, headed := firstWords(head)
	count := countNumbers(words)
	return headed || count == 8 && len(words) >= 9 || count == 10 && len(words) == 10
}

// dotaWords returns x1 y1 x2 y2 x3 y3 x4 y4 class difficult. A class may be of several words, and the last number may
// be missing.
func dotaWords(_ *labels, words []string) ([]string, error) {
	if len(words) < 9 {
		return nil, fault.New(fault.Corrupt, "object", "%d words, where 8 coordinates, a class and "+
			"whether it is difficult stand", len(words))
	}
	class, difficult := words[8:], ""
	if last := class[len(class)-1]; len(class) > 1 && countNumbers(class[len(class)-1:]) == 1 {
		class, difficult = class[:len(class)-1], last
		if !slices.Contains([]string{"0", "1", "2"}, last) {
			return nil, fault.New(fault.Corrupt, "object", "%q behind the class may be a part of it, or say whether "+
				"the object is difficult, as 0, 1 or 2 do", fault.Short(last))
		}
	}
	return append(words[:8], strings.Join(class, " "), difficult), nil
}

// beginsYOLO reports whether an object is numbers alone; the readers of DOTA and KITTI take others.
func beginsYOLO(head []byte) bool {
	words, _ := firstWords(head)
	count := countNumbers(words)
	return count == len(words) && count >= 5 && count != 10 && !isKITTI(words)
}

// YOLOOrder says what the numbers of YOLO's text are, for errors.
const YOLOOrder = "class, x and y of the middle, width and height, or class and the vertices of an outline"

// yoloWords returns class, x and y of the middle, width and height, and perhaps a score; or class and, behind empty
// words, the vertices of an outline, which may be an oriented box.
func yoloWords(l *labels, words []string) ([]string, error) {
	parsed := words
	if len(words) == 5 {
		parsed = words[:1] // the numbers of a box are looked at when it is added
	}
	list, err := numbers(l.scratch.numbers[:0], parsed)
	if err != nil {
		return nil, err
	}
	other := func(what string) ([]string, error) {
		return nil, fault.New(fault.Unsupported, "object", "%s, which is not read: write %s", what, YOLOOrder)
	}
	class, coords, number := list[0], list[1:], words[0]
	if len(number) > 15 || !isNumber(number) || number[0] == '0' && number != "0" { // it is written in another way
		number = strconv.FormatFloat(class, 'f', -1, 64)
	}
	switch count := len(words) - 1; {
	case count == 0:
		return nil, l.polygon()
	case class != math.Trunc(class):
		return nil, fault.New(fault.Corrupt, "object", "%v is no class: the order is %s", class, YOLOOrder)
	case count == 5 && !(coords[4] >= 0 && coords[4] <= 1):
		return other("the sixth number is no score, and may be an angle")
	case count == 6 && math.Abs(math.Hypot(coords[4], coords[5])-1) < 1e-3:
		return other("the last two numbers may be a cosine and a sine")
	case count > 5 && hasKeypoints(coords):
		return other("it is a box with keypoints")
	case count == 4 || count == 5:
		if count == 5 && !l.asks(scoreColumn) {
			l.remarks.Add(SixNumbers, words)
		}
		words[0] = number
		return words, nil
	case count == 6:
		l.remarks.Add(SevenNumbers, words)
	}
	l.scratch.text, l.scratch.numbers = strings.Join(words[1:], " "), append(list[:0], coords...)
	return append(words[:0], number, "", "", "", "", "", l.scratch.text), nil
}

// hasKeypoints reports whether coordinates are a box, by its middle and size, with points in it, of x, y and perhaps 0,
// 1 or 2 for how far it is seen. An outline lacks a 2, and its second vertex lies near some others.
func hasKeypoints(c []float64) bool {
	fits := func(width int) bool {
		seen, lo, hi := false, [2]float64(c), [2]float64(c)
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

// kittiCount is how many words an object has, perhaps with a score behind them.
const kittiCount = 15

// isKITTI reports whether words are an object of KITTI: a class, 14 numbers and perhaps a score. Where the class is a
// number, the seven numbers of the object in space are 0, as ArcGIS exports them, and no outline of YOLO is like that.
func isKITTI(words []string) bool {
	if len(words) != kittiCount && len(words) != kittiCount+1 {
		return false
	}
	rest, err := numbers(make([]float64, 0, kittiCount), words[1:])
	inSpace := func(x float64) bool { return x != 0 }
	return err == nil && (countNumbers(words[:1]) == 0 || !slices.ContainsFunc(rest[7:14], inSpace))
}

func beginsKITTI(head []byte) bool {
	words, headed := firstWords(head)
	return !headed && isKITTI(words)
}

// kittiWords returns class, three numbers, x0, y0, x1, y1, the object in space, and perhaps a score.
func kittiWords(_ *labels, words []string) ([]string, error) {
	if !isKITTI(words) {
		return nil, fault.New(fault.Corrupt, "object", "it is no class and 14 numbers")
	}
	return words, nil
}

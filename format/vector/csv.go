package vector

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/parquet"
	"github.com/chaski-eo/chaski/internal/textguard"
	"github.com/chaski-eo/chaski/source"
)

func init() { register(labelFormat{"CSV", beginsCSV, readCSV, Pixels, true}) }

// boxColumns are the names, in lower case, that tables have for the coordinates of a shape: of the vertices of an
// outline, of two corners, or of a corner with width and height; or for one text that is the shape. The first that a
// table has in full count.
var boxColumns = []struct {
	names []string
	sized bool
	text  func(l *labels, text string) (coordForm, error) // reads the shape of a cell; nil of columns of numbers
}{
	{names: strings.Fields("x1 y1 x2 y2 x3 y3 x4 y4")},
	{names: strings.Fields("xmin ymin xmax ymax")},
	{names: strings.Fields("x_min y_min x_max y_max")},
	{names: strings.Fields("minx miny maxx maxy")},
	{names: strings.Fields("x0 y0 x1 y1")},
	{names: strings.Fields("x1 y1 x2 y2")},
	{names: strings.Fields("left top right bottom")},
	{names: strings.Fields("bbox_x bbox_y bbox_width bbox_height"), sized: true},
	{names: strings.Fields("left top width height"), sized: true},
	{names: strings.Fields("x y width height"), sized: true},
	{names: strings.Fields("x y w h"), sized: true},
	{names: strings.Fields("polygonwkt_pix"), text: (*labels).wktWithHoles}, // SpaceNet
	{names: strings.Fields("region_shape_attributes"), text: (*labels).viaText},
	{names: strings.Fields("encodedpixels"), text: (*labels).startsAndLengths}, // Kaggle
	{names: strings.Fields("rle_mask"), text: (*labels).startsAndLengths},
	{names: strings.Fields("rle"), text: (*labels).startsAndLengths},
	{names: strings.Fields("encoding"), text: (*labels).startsAndLengths},
}

// imageColumns and classColumns are the names, in lower case, that tables have for the image of a shape and its class.
var (
	imageColumns = strings.Fields("image_path img_path image file_name filename file path image_name img image_id " +
		"imageid")
	classColumns = strings.Fields("label class class_name category category_name label_name labelname name")
)

// separator returns what separates the values of a table by its first line.
func separator(head []byte) rune {
	return textguard.Separator(head[textguard.SeparatorLine(head):], textguard.Order(head, ",;\t"))
}

// beginsCSV reports whether a text begins with names that are separated.
func beginsCSV(head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	comma := separator(head)
	head = head[textguard.SeparatorLine(head):]
	words, headed := firstWords(head)
	return comma != 0 && len(words) > 0 && !headed && countNumbers(words) == 0 && !beginsXML(head) && !isKITTI(words)
}

// table are the columns of a CSV that are read.
type table struct {
	shape []int // columns of the coordinates
	sized bool
	text  func(l *labels, text string) (coordForm, error) // of one column that is the shape, or nil
	via   int                                             // the column with classes and values in JSON, or -1
	image int                                             // -1: none
	size  []int                                           // columns of width and height of the image, or nil
	cells []int
}

// columnsOf finds the columns of a table by its header line.
func (l *labels) columnsOf(head []string) (t table, err error) {
	lower := make([]string, len(head))
	for i := range head {
		head[i] = strings.TrimSpace(head[i])
		lower[i] = strings.ToLower(head[i])
	}
	first := func(names []string) int {
		for _, name := range names {
			if i := slices.Index(lower, name); i >= 0 {
				return i
			}
		}
		return -1
	}
	missing := func(what string) (table, error) {
		return t, fault.New(fault.NotFound, "line 1", "no column %s; there are %s", what, fault.Names(head))
	}
	for _, known := range boxColumns {
		t.shape, t.sized, t.text = nil, known.sized, known.text
		for _, name := range known.names {
			if i := slices.Index(lower, name); i >= 0 {
				t.shape = append(t.shape, i)
			}
		}
		if len(t.shape) == len(known.names) {
			break
		}
		t.shape = nil
	}
	if t.shape == nil {
		return missing(`of a box, such as "xmin", "ymin", "xmax" and "ymax", nor of an outline or a mask of runs`)
	}
	if t.image, l.table = first(imageColumns), true; l.o.Image != "" {
		t.image = slices.Index(head, l.o.Image)
	}
	if t.image < 0 && t.text != nil && !l.o.OneImage { // of masks of runs
		t.image = first([]string{"id"})
	}
	if t.image < 0 && !l.o.OneImage {
		return missing("with the path of the image, which image names")
	}
	width, height := first([]string{"image_width", "img_width", "width"}), first([]string{"image_height", "img_height",
		"height"})
	if width >= 0 && height >= 0 && !slices.Contains(t.shape, width) {
		t.size = []int{width, height}
	}
	if class := first(classColumns); class >= 0 {
		l.classIs(head[class])
	}
	if t.via = first([]string{"region_attributes"}); t.via >= 0 { // the columns are in it
		return t, nil
	}
	l.values[0].words = l.o.Words
	for _, column := range l.values {
		column.optional = true // a table of no row has no value
		i := slices.Index(head, column.column)
		if i < 0 && column.column != "" {
			return missing(strconv.Quote(column.column))
		}
		t.cells = append(t.cells, i)
	}
	return t, nil
}

// readCSV reads a table with a header line and a line for each shape. A line without coordinates names an image
// without shapes.
func readCSV(ctx context.Context, r source.Reader, l *labels) error {
	text := newParts(ctx, r, "line", maxLine)
	in := bufio.NewReaderSize(text, headBytes)
	head, _ := in.Peek(headBytes) // Read meets the error again
	comma := separator(head)
	if n := textguard.SeparatorLine(head); n > 0 {
		if _, err := in.Discard(n); err != nil {
			return err
		}
		head, _ = in.Peek(headBytes)
	}
	reader := csv.NewReader(in)
	reader.Comma, reader.ReuseRecord = comma, true
	text.Values = textguard.Values{Separator: byte(reader.Comma), Most: parquet.MaxColumns + headBytes}
	text.Values.Add(head)
	var t table
	for number := 0; ; number++ {
		text.Next()
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && len(record) > parquet.MaxColumns {
			err = fault.New(fault.Limit, "line 1", "%d columns, at most %d", len(record), parquet.MaxColumns)
		} else if err == nil && number == 0 {
			t, err = l.columnsOf(slices.Clone(record))
		} else if err == nil {
			err = fault.WithPart(l.row(ctx, &t, record), "row "+strconv.Itoa(number), fault.NoOffset)
		}
		var parse *csv.ParseError
		if errors.As(err, &parse) {
			return fault.Wrap(fault.Corrupt, "line "+strconv.Itoa(parse.Line), parse.Err)
		}
		if err != nil {
			return err
		}
	}
}

// row adds the shape of a line.
func (l *labels) row(ctx context.Context, t *table, record []string) error {
	from := len(l.coords)
	f, err := l.shapeOf(t, record)
	if err != nil {
		return err
	}
	if t.image >= 0 {
		name, size := strings.TrimSpace(record[t.image]), [2]float64{}
		if t.size != nil {
			size = [2]float64{sizeOf(record[t.size[0]]), sizeOf(record[t.size[1]])}
		}
		for i, x := range l.coords[from:] {
			if f != runForm && x > size[i%2] { // the size of the box, which ends behind it
				size = [2]float64{}
			}
		}
		number, err := l.declare(name, name, size[0], size[1])
		if err != nil {
			return err
		}
		l.images = append(l.images, number)
	}
	if t.via >= 0 {
		if err := l.viaValues(json.RawMessage(record[t.via])); err != nil {
			return err
		}
		return l.end(ctx, f)
	}
	for i, column := range l.values {
		if t.cells[i] < 0 {
			continue
		}
		if err := column.addWord(record[t.cells[i]]); err != nil {
			return err
		}
	}
	return l.end(ctx, f)
}

// shapeOf adds the coordinates of the shape of a line, which may have none.
func (l *labels) shapeOf(t *table, record []string) (coordForm, error) {
	if t.text != nil {
		text := record[t.shape[0]]
		if strings.TrimSpace(text) == "" {
			return noForm, nil
		}
		return t.text(l, text)
	}
	coords := make([]float64, 0, 8)
	for _, column := range t.shape {
		if word := strings.TrimSpace(record[column]); word != "" {
			x, err := parseNumber(word)
			if err != nil {
				return noForm, err
			}
			coords = append(coords, x)
		}
	}
	switch {
	case len(coords) == 0:
		return noForm, nil
	case len(coords) != len(t.shape):
		return noForm, fault.New(fault.Corrupt, "box", "it has %d of %d coordinates", len(coords), len(t.shape))
	case len(coords) == 8:
		return polygonForm, l.polygon(coords...)
	case t.sized:
		return l.box(coords[0], coords[1], coords[0]+coords[2], coords[1]+coords[3]), nil
	}
	return l.box(coords[0], coords[1], coords[2], coords[3]), nil
}

// startsAndLengths adds a mask of runs: for each the number of its first pixel, from 1 on, and its length.
// Pixels are numbered from top to bottom, column after column, of an image whose height the file does not say. Kaggle's
// oldest files have -1 for an image without a mask.
func (l *labels) startsAndLengths(text string) (coordForm, error) {
	if text == "-1" {
		return noForm, nil
	}
	list, err := numbers(strings.Fields(text))
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

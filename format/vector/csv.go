package vector

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/textguard"
	"github.com/chaski-eo/chaski/source"
)

func init() { register(labelFormat{"CSV", beginsCSV, readCSV, Pixels, true}) }

// tableForms are the forms of shapes in a CSV, by the names of their columns in lower case. The first that a table has
// in full counts.
var tableForms = []*form{
	entry("x1 y1 x2 y2 x3 y3 x4 y4", "x1 y1 x2 y2 x3 y3 x4 y4"),
	entry("x0 y0 x1 y1", "xmin ymin xmax ymax"),
	entry("x0 y0 x1 y1", "x_min y_min x_max y_max"),
	entry("x0 y0 x1 y1", "minx miny maxx maxy"),
	entry("x0 y0 x1 y1", "x0 y0 x1 y1"),
	entry("x0 y0 x1 y1", "x1 y1 x2 y2"),
	entry("x0 y0 x1 y1", "left top right bottom"),
	entry("x y w h", "bbox_x bbox_y bbox_width bbox_height"),
	entry("x y w h", "left top width height"),
	entry("x y w h", "x y width height"),
	entry("x y w h", "x y w h"),
	entry("wkt", "polygonwkt_pix"), // SpaceNet
	entry("via", "region_shape_attributes"),
	entry("runs", "encodedpixels"), // Kaggle
	entry("runs", "rle_mask"),
	entry("runs", "rle"),
	entry("runs", "encoding"),
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
	*header
	form  *form
	via   int    // the column with classes and values in JSON, or -1
	image string // the column with the path of the image, or the path that it becomes
	size  [2]int // columns of width and height of the image, or -1
}

// columnsOf finds the columns of a table by its header line.
func (l *labels) columnsOf(head []string) (t table, err error) {
	for i := range head {
		head[i] = strings.TrimSpace(head[i])
	}
	if t.header, err = newHeader(l.o, head); err != nil {
		return t, err
	}
	names := slices.Concat(head, slices.Sorted(maps.Keys(t.made)))
	lower := map[string]string{}
	for _, name := range slices.Backward(names) {
		lower[strings.ToLower(name)] = name
	}
	first := func(known []string) string {
		for _, name := range known {
			if name, ok := lower[name]; ok {
				return name
			}
		}
		return ""
	}
	missing := func(what string) (table, error) {
		return t, fault.New(fault.NotFound, "line 1", "no column %s; there are %s", what, fault.Names(names))
	}
	isThere := func(name string) (string, bool) { name, ok := lower[name]; return name, ok }
	i := slices.IndexFunc(tableForms, func(f *form) bool { return f.all(isThere) })
	if i < 0 {
		return missing(`of a box, such as "xmin", "ymin", "xmax" and "ymax", nor of an outline or a mask of runs: ` +
			"box says where they lie")
	}
	t.form = &form{kind: tableForms[i].kind}
	for _, p := range tableForms[i].places {
		t.form.places = append(t.form.places, place{lower[p.name], p.at})
	}
	if t.image, l.table = cmp.Or(l.o.imageForm, l.o.Image, first(imageColumns)), true; t.image == "" &&
		t.form.kind.text != nil && !l.o.OneImage { // of masks of runs
		t.image = first([]string{"id"})
	}
	if column := cmp.Or(l.o.Image, t.image); !l.o.OneImage && (column == "" || !slices.Contains(names, column)) {
		return missing("with the path of the image, which image names")
	}
	t.size = [2]int{-1, -1}
	width, height := first([]string{"image_width", "img_width", "width"}), first([]string{"image_height", "img_height",
		"height"})
	if width != "" && height != "" && !slices.Contains(t.form.names(), width) {
		t.size[0], _ = t.find(width)
		t.size[1], _ = t.find(height)
	}
	if class := first(classColumns); class != "" {
		l.classIs(class)
	}
	t.via = -1
	if via := first([]string{"region_attributes"}); via != "" { // the columns are in it
		t.via, _ = t.find(via)
		return t, nil
	}
	l.values[0].words = l.o.Words
	for _, column := range l.values {
		column.optional = true // a table of no row has no value
		if column.column != "" && !slices.Contains(names, column.column) {
			return missing(strconv.Quote(column.column))
		}
	}
	return t, nil
}

// readCSV reads a table with a header line and a line for each shape. A line without coordinates names an image
// without shapes.
func readCSV(ctx context.Context, r source.Reader, l *labels) error {
	head, err := source.Read(ctx, r, 0, min(r.Size(), headBytes))
	if err != nil {
		return err
	}
	var t table
	return eachLine(ctx, r, separator(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))), 0,
		func(number int, words []string) (err error) {
			if number == 0 {
				t, err = l.columnsOf(slices.Clone(words))
				return err
			}
			return l.row(ctx, &t, words)
		})
}

// row adds the shape of a line.
func (l *labels) row(ctx context.Context, t *table, words []string) error {
	from, number, of, name := len(l.coords), uint32(0), t.of(words), ""
	var err error
	if t.image != "" {
		if name, err = l.imageOf(t.image, of); err == nil {
			number, err = l.declare(name, name, 0, 0)
		}
	}
	if l.valued = t.via >= 0; err == nil && l.valued {
		err = l.viaValues(json.RawMessage(words[t.via]))
	}
	if err == nil {
		err = l.put(ctx, t.form, of, number)
	}
	if err != nil || name == "" || t.size[0] < 0 {
		return err
	}
	size := [2]float64{sizeOf(words[t.size[0]]), sizeOf(words[t.size[1]])}
	for i, x := range l.coords[from:] {
		if t.form.kind.text == nil && x > size[i%2] { // the size of the box, which ends behind it
			return nil
		}
	}
	l.declareSize(number, size[0], size[1])
	return nil
}

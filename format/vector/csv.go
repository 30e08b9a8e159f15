package vector

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/textguard"
	"github.com/chaski-eo/chaski/source"
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
		t.form.places = append(t.form.places, place{cmp.Or(lower[p.name], p.name), p.at})
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
	if first([]string{"region_attributes"}) != "" { // the columns are in it
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

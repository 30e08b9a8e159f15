package vector

import (
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
	comma := separator(head)
	head = head[textguard.SeparatorLine(head):]
	words, headed := firstWords(head)
	return comma != 0 && len(words) > 0 && !headed && countNumbers(words) == 0 && !beginsXML(head) && !isKITTI(words)
}

// columnsOf finds the columns of a table by its header line: the format then has their names, and the forms whose
// columns are all there.
func (l *labels) columnsOf(head []string) (*header, error) {
	for i := range head {
		head[i] = strings.TrimSpace(head[i])
	}
	h, err := newHeader(l.o, head)
	if err != nil {
		return nil, err
	}
	names, lower := slices.Concat(head, slices.Sorted(maps.Keys(h.made))), map[string]string{}
	for _, name := range slices.Backward(names) {
		lower[strings.ToLower(name)] = name
	}
	first := func(places string) string {
		for _, place := range strings.Fields(places) {
			if name, ok := lower[place]; ok {
				return name
			}
		}
		return ""
	}
	missing := func(what string) (*header, error) {
		return nil, fault.New(fault.NotFound, "line 1", "no column %s; there are %s", what, fault.Names(names))
	}
	f := *l.format
	f.forms = slices.Clone(f.forms)
	isThere := func(name string) (string, bool) { name, ok := lower[name]; return name, ok }
	in, _, _ := strings.Cut(f.shape, "/") // the column with the coordinates of shapes
	i := slices.IndexFunc(f.forms, func(form *form) bool {
		return form.shapes == nil && form.all(isThere) || form.shapes != nil && lower[in] != ""
	})
	switch {
	case i < 0:
		return missing(`of a box, such as "xmin", "ymin", "xmax" and "ymax", nor of an outline or a mask of ` +
			"runs: box says where they lie")
	case f.forms[i].shapes != nil:
		f.forms = slices.DeleteFunc(f.forms, func(form *form) bool { return form.shapes == nil })
		h.also(in, lower[in])
	default:
		one := *f.forms[i]
		one.places = slices.Clone(one.places)
		for i := range one.places {
			one.places[i].name = first(one.places[i].name)
		}
		f.forms, f.shape = []*form{&one}, ""
	}
	form := f.forms[0]
	if f.image[0], l.table = cmp.Or(l.o.imageForm, l.o.Image, first(f.image[0])), true; f.image[0] == "" &&
		form.kind.text != nil && !l.o.OneImage { // of masks of runs
		f.image[0] = first("id")
	}
	if column := cmp.Or(l.o.Image, f.image[0]); !l.o.OneImage && (column == "" || !slices.Contains(names, column)) {
		return missing("with the path of the image, which image names")
	}
	f.image[1], f.image[2] = first(f.image[1]), first(f.image[2])
	if f.image[1] == "" || slices.Contains(form.names(), f.image[1]) {
		f.image[2] = ""
	}
	if class := first(f.class); class != "" {
		l.classIs(class)
	}
	f.values = first(f.values)
	if l.format = &f; f.values != "" { // the columns are in it
		return h, nil
	}
	l.values[0].words = l.o.Words
	for _, column := range l.values {
		column.optional = true // a table of no row has no value
		if column.column != "" && !slices.Contains(names, column.column) {
			return missing(strconv.Quote(column.column))
		}
	}
	return h, nil
}

// readCSV reads a table with a header line and a line for each shape. A line without coordinates names an image
// without shapes.
func readCSV(ctx context.Context, r source.Reader, l *labels, head []byte) error {
	var h *header
	return eachLine(ctx, r, separator(head), 0, func(number int, words []string) (err error) {
		if number == 0 {
			h, err = l.columnsOf(slices.Clone(words))
			return err
		}
		return l.row(ctx, h, h.of(words))
	})
}

// row adds the shape of a line.
func (l *labels) row(ctx context.Context, h *header, of record) (err error) {
	f, from, number := l.format, len(l.coords), uint32(0)
	if f.image[0] != "" {
		number, err = l.declareImage(f.image[0], of)
	}
	switch {
	case err != nil:
	case f.shape == "":
		err = l.put(ctx, f.forms[0], of, number)
	default:
		if err = h.open(f.shape); err == nil {
			err = l.object(ctx, of, number)
		}
	}
	if err != nil || f.image[0] == "" || f.image[2] == "" || l.paths[number] == "" {
		return err
	}
	size := [2]float64{sizeOf(textAt(of, f.image[1])), sizeOf(textAt(of, f.image[2]))}
	for i, x := range l.coords[from:] {
		if f.forms[0].kind.text == nil && x > size[i%2] { // the size of the box, which ends behind it
			return nil
		}
	}
	l.declareSize(number, size[0], size[1])
	return nil
}

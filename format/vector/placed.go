package vector

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/textguard"
	"github.com/chaski-eo/chaski/source"
)

func init() { readers.placed = openPlaced }

// openPlaced opens a file whose objects have their coordinates where Options.Box says: a text, a table, JSON or XML.
func openPlaced(ctx context.Context, r source.Reader, o *Options, head []byte) (*Layer, error) {
	text := beginOf(head)
	l, err := newPlaced(o, "text")
	if err != nil {
		return nil, err
	}
	switch {
	case magic.Of(head).Class == magic.Parquet:
		var rows *tables.Table
		if rows, err = tables.Read(ctx, r, 0, r.Size(), tables.Options{MaxRows: o.MaxShapes}); err == nil {
			l.format.name = "the table"
			err = l.readTable(ctx, rows, nil)
		}
	case len(text) > 0 && (text[0] == '{' || text[0] == '['):
		l.format.name = "JSON"
		t := l.newTree(false)
		if err = t.walkJSON(ctx, r); err == nil {
			err = t.check()
		}
	case beginsXML(text):
		l.format.name = "XML"
		err = l.readXML(ctx, r)
	case isText(text):
		err = l.readLines(ctx, r, head)
	default:
		err = fault.At(fault.Unsupported, "shapes", 0, "box is for text, CSV, JSON, XML and Parquet")
	}
	if err != nil {
		return nil, err
	}
	return l.layer(r.Size())
}

func newPlaced(o *Options, name string) (l *labels, err error) {
	l = newLabels(o, &format{name: name})
	l.table = true // Options.Image is not of the format
	l.form, err = newForm(o.Box)
	for i, values := range l.values {
		values.optional, values.words = o.OneImage, i == 0 && o.Words
	}
	return l, err
}

// record adds the objects of a record.
func (l *labels) record(ctx context.Context, of record) error {
	number := uint32(0)
	if !l.o.OneImage {
		if l.o.Image == "" {
			return fault.New(fault.Unsupported, "images", "image must name the column with the path of the image, "+
				`such as "file_name", or be the path with columns in braces`)
		}
		var err error
		if number, err = l.declareImage(l.o.Image, of); err != nil {
			return err
		}
	}
	return l.put(ctx, l.form, of, number)
}

// readXML reads the objects of XML.
func (l *labels) readXML(ctx context.Context, r source.Reader) error {
	t := l.newTree(true)
	if len(t.objects[0]) == 0 {
		return fault.New(fault.Unsupported, "box", "it has %s: in XML places begin with the element of an object, as "+
			`in "object/x1"`, fault.Names(l.form.names()))
	}
	t.empty = true // as far as can be told
	if _, err := t.walkXML(ctx, r); err != nil {
		return err
	}
	return t.check()
}

// isRemark reports whether words are a line that has no object: a comment, or a line that begins DOTA's files.
func isRemark(words []string) bool {
	if len(words) == 0 || isHeading(words) {
		return true
	}
	first := strings.TrimSpace(words[0])
	return first == "" && len(words) == 1 || slices.ContainsFunc([]string{"#", "%", "//"}, func(mark string) bool {
		return strings.HasPrefix(first, mark)
	})
}

// readLines reads a text of an object a line: values are separated by commas, semicolons, tabs or blanks. It has a
// header if a place has a name, or if its first line has no number where a coordinate should be.
func (l *labels) readLines(ctx context.Context, r source.Reader, head []byte) error {
	comma := rune(0)
	for line := range strings.Lines(string(head)) {
		if !isRemark(strings.Fields(line)) {
			comma = separator([]byte(line))
			break
		}
	}
	box := l.form.names()
	names := append(l.o.columns(), box...)
	h, err := newHeader(l.o, nil)
	if err != nil {
		return err
	}
	h.comma = comma
	headed := slices.ContainsFunc(names, func(name string) bool {
		return !isNumber(name) && h.made[name] == nil
	})
	open := slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, texts.ToEnd) })
	width := 0 // of the first line
	return eachLine(ctx, r, comma, -1, func(_ int, words []string) error {
		if isRemark(words) {
			return nil
		}
		if comma == 0 && width > 0 && len(words) != width && !open { // perhaps a class of several words
			return fault.New(fault.Corrupt, "line", "%d words, and the first line has %d: values with blanks need "+
				"commas, semicolons or tabs between them, or are the rest of the line, which %q is", len(words), width,
				strconv.Itoa(width-1)+texts.ToEnd)
		}
		if width == 0 && !headed && h.check(box, words) != nil && !slices.ContainsFunc(words, isValue) {
			return nil // a heading
		}
		if width == 0 {
			width = len(words)
			_, err := appendNumbers(nil, textAt(h.of(words), box[0]))
			if headed || err != nil && l.form.kind.add != nil {
				for i := range words {
					words[i] = strings.TrimSpace(words[i])
				}
				h.name(slices.Clone(words))
				return h.check(names, words)
			}
		}
		if err := h.check(box, words); err != nil {
			return err
		}
		return l.record(ctx, h.of(words))
	})
}

// readTable reads the objects of a table, in whose cells there are values, lists or structs. add, if not nil, adds the
// objects of a row.
func (l *labels) readTable(ctx context.Context, rows *tables.Table,
	add func(ctx context.Context, row int, of record) error) error {
	t := l.newTree(false)
	row := 0
	if add != nil {
		t.add = func(ctx context.Context, of record) error { return add(ctx, row, of) }
	}
	var columns []*tables.Vector
	var names [][]byte
	for _, c := range rows.Columns() {
		path := pathOf(c.Name)
		needed := func(name string) bool { return begins(append(path, ""), pathOf(name)) == len(path) }
		if !slices.ContainsFunc(append(l.form.names(), l.o.columns()...), needed) {
			continue
		}
		values, err := rows.Column(ctx, c.Name)
		if err != nil {
			return err
		}
		name, _ := json.Marshal(c.Name) // no error: it is a string
		columns, names = append(columns, values), append(names, name)
	}
	if err := l.o.Grow(ctx, rows.Bytes()); err != nil {
		return err
	}
	var text []byte
	for ; row < rows.Len(); row++ {
		text = append(text[:0], '{')
		for i, values := range columns {
			if i > 0 {
				text = append(text, ',')
			}
			text = append(append(text, names[i]...), ':')
			text = values.AppendJSON(text, row)
		}
		t.text = textguard.NewParts(ctx, bytes.NewReader(append(text, '}')), "row", "a row", maxText)
		d := json.NewDecoder(t.text)
		d.UseNumber()
		if err := t.value(ctx, d); err != nil {
			return fault.WithPart(err, "row "+strconv.Itoa(row), fault.NoOffset)
		}
	}
	for _, c := range rows.Columns() {
		t.members = append(t.members, c.Name)
	}
	t.empty = t.empty || rows.Len() == 0
	return t.check()
}

// OfRows opens the shapes that lie in the cells of a table, one row for each image: see Layer.OfRow.
func OfRows(ctx context.Context, rows *tables.Table, o Options) (*Layer, error) {
	o.defaults()
	l, err := newPlaced(&o, "the table")
	if err != nil {
		return nil, err
	}
	l.ofRows = true
	l.paths, l.sizes = make([]string, rows.Len()), make([][2]float64, rows.Len())
	err = l.readTable(ctx, rows, func(ctx context.Context, row int, of record) error {
		return l.put(ctx, l.form, of, uint32(row))
	})
	if err != nil {
		return nil, err
	}
	return l.layer(int64(rows.Len()))
}

package vector

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/parquet"
	"github.com/chaski-eo/chaski/internal/literal"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/textguard"
	"github.com/chaski-eo/chaski/source"
)

func init() { readers.placed = openPlaced }

// openPlaced opens a file whose objects have their coordinates where Options.Box says: a text, a table, JSON or XML.
func openPlaced(ctx context.Context, r source.Reader, o *Options) (*Layer, error) {
	head, err := source.Read(ctx, r, 0, min(r.Size(), headBytes))
	if err != nil {
		return nil, err
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n\x1e")
	l, err := newPlaced(o, "text")
	if err != nil {
		return nil, err
	}
	switch {
	case magic.Of(head).Class == magic.Parquet:
		var rows *tables.Table
		if rows, err = tables.Read(ctx, r, 0, r.Size(), tables.Options{MaxRows: o.MaxShapes}); err == nil {
			l.format = "the table"
			err = l.readTable(ctx, rows, nil)
		}
	case bytes.HasPrefix(text, []byte("{")) || bytes.HasPrefix(text, []byte("[")):
		err = l.readJSON(ctx, r)
	case beginsXML(text):
		err = l.readXML(ctx, r)
	case isText(text):
		err = l.readLines(ctx, r, head)
	default:
		err = fault.At(fault.Unsupported, "shapes", 0, "box is for text, CSV, JSON, XML and Parquet")
	}
	if err != nil {
		return nil, err
	}
	return l.layer(Pixels, r.Size())
}

func newPlaced(o *Options, format string) (l *labels, err error) {
	l = newLabels(o, format)
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
		name, err := l.imageOf(l.o.Image, of)
		if err == nil {
			number, err = l.declare(name, name, 0, 0)
		}
		if err != nil {
			return err
		}
	}
	return l.put(ctx, l.form, of, number)
}

// header are the columns of a text by their names, and those that Options.Names makes of them.
type header struct {
	at     map[string]int
	made   map[string]madeColumn
	words  []string // of a line
	record record   // of it
	comma  rune     // between them; 0 for blanks
}

// madeColumn is a part of the values of a column.
type madeColumn struct {
	from  string
	whole *regexp.Regexp
	group int
}

// toEnd ends the number of a column that has the rest of the line.
const toEnd = "+"

// isNumber reports whether the name of a column is its number.
func isNumber(name string) bool {
	name = strings.TrimSuffix(name, toEnd)
	return name != "" && strings.Trim(name, "0123456789") == ""
}

// newHeader returns the columns of a header, or of none, which then have numbers.
func newHeader(o *Options, names []string) (*header, error) {
	h := &header{at: map[string]int{}, made: map[string]madeColumn{}}
	h.record = h.word
	h.name(names)
	o.headed = true
	for from, rest := range o.Names {
		if names != nil && !slices.Contains(names, from) && !isNumber(from) {
			return nil, fault.New(fault.NotFound, "names", "no column %q; there are %s", from, fault.Names(names))
		}
		text, parts := "^", []string{}
		for more := true; more; {
			var before, name string
			before, name, rest, more = column.CutName(rest)
			if text += regexp.QuoteMeta(before); more {
				text, parts = text+"(.+)", append(parts, name)
			}
		}
		whole, err := regexp.Compile(text + "$")
		if err != nil {
			return nil, fmt.Errorf("vector: names of %q: %w", from, err)
		}
		for i, name := range parts {
			h.made[name] = madeColumn{from, whole, i + 1}
		}
	}
	return h, nil
}

// name gives the columns names.
func (h *header) name(names []string) {
	for i, name := range slices.Backward(names) {
		h.at[name] = i
	}
}

// find returns the number of a column by its name or, without such a name, by its number.
func (h *header) find(name string) (int, bool) {
	if i, ok := h.at[name]; ok {
		return i, true
	}
	number := strings.TrimSuffix(name, toEnd)
	i, err := strconv.Atoi(number)
	return i, err == nil && isNumber(name) && i < parquet.MaxColumns
}

// of returns the record of a line, until the next one.
func (h *header) of(words []string) record {
	h.words = words
	return h.record
}

// word returns what the line has in a column.
func (h *header) word(name string) (string, bool) {
	made, isMade := h.made[name]
	if isMade {
		name = made.from
	}
	i, ok := h.find(name)
	if !ok || i >= len(h.words) {
		return "", false
	}
	word := strings.TrimSpace(h.words[i])
	if _, named := h.at[name]; !named && strings.HasSuffix(name, toEnd) {
		word = strings.TrimSpace(strings.Join(h.words[i:], string(cmp.Or(h.comma, ' '))))
	}
	if !isMade {
		return asJSON(word), true
	}
	parts := made.whole.FindStringSubmatch(word)
	if parts == nil {
		return "", false
	}
	return parts[made.group], true
}

// asJSON returns a list or dict that Python wrote as JSON, and other texts as they are.
func asJSON(text string) string {
	if (strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{")) && strings.ContainsAny(text, "'(") {
		if made, ok := literal.JSON(text); ok {
			return string(made)
		}
	}
	return text
}

// check refuses columns that a line does not have.
func (h *header) check(names []string, head []string) error {
	for _, name := range names {
		if made, ok := h.made[name]; ok {
			name = made.from
		}
		if i, ok := h.find(name); !ok || i >= len(head) {
			return fault.New(fault.NotFound, "line 1", "no column %q; there are %s, or the numbers from 0 to %d", name,
				fault.Names(head), len(head)-1)
		}
	}
	return nil
}

// isValue reports whether a word is a number.
func isValue(word string) bool { _, err := parseNumber(strings.TrimSpace(word)); return err == nil }

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
	for line := range strings.Lines(strings.TrimPrefix(string(head), "\xef\xbb\xbf")) {
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
		return !isNumber(name) && h.made[name].from == ""
	})
	open := slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, toEnd) })
	width := 0 // of the first line
	visit := func(words []string) error {
		if isRemark(words) {
			return nil
		}
		if comma == 0 && width > 0 && len(words) != width && !open { // perhaps a class of several words
			return fault.New(fault.Corrupt, "line", "%d words, and the first line has %d: values with blanks need "+
				"commas, semicolons or tabs between them, or are the rest of the line, which %q is", len(words), width,
				strconv.Itoa(width-1)+toEnd)
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
	}
	if comma == 0 {
		return lines(ctx, r, visit)
	}
	return eachLine(ctx, r, comma, -1, func(_ int, words []string) error { return visit(words) })
}

// eachLine visits the values of each line of a CSV.
func eachLine(ctx context.Context, r source.Reader, comma rune, width int,
	visit func(number int, words []string) error) error {
	text := newParts(ctx, r, "line", maxLine)
	in := bufio.NewReaderSize(text, headBytes)
	head, _ := in.Peek(headBytes) // Read meets the error again
	if n := textguard.SeparatorLine(head); n > 0 {
		if _, err := in.Discard(n); err != nil {
			return err
		}
		head, _ = in.Peek(headBytes)
	}
	reader := csv.NewReader(in)
	reader.Comma, reader.ReuseRecord, reader.FieldsPerRecord = comma, true, width
	text.Values = textguard.Values{Separator: byte(reader.Comma), Most: parquet.MaxColumns + headBytes}
	text.Values.Add(head)
	for number := 0; ; number++ {
		text.Next()
		words, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && len(words) > parquet.MaxColumns {
			err = fault.New(fault.Limit, "line 1", "%d columns, at most %d", len(words), parquet.MaxColumns)
		} else if err == nil {
			if err = visit(number, words); err != nil && number > 0 {
				err = fault.WithPart(err, "row "+strconv.Itoa(number), fault.NoOffset)
			}
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

// readTable reads the objects of a table, in whose cells there are values, lists or structs. add, if not nil, adds
// those of a row.
func (l *labels) readTable(ctx context.Context, rows *tables.Table,
	add func(ctx context.Context, row int, of record) error) error {
	l.inJSON = true
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
		t.seen = append(t.seen, c.Name)
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
	return l.layer(Pixels, int64(rows.Len()))
}

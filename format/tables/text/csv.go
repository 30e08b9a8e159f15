package text

import (
	"bufio"
	"bytes"
	"cmp"
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
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/parquet"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/textguard"
	"github.com/chaski-eo/chaski/source"
)

// maxRecord bounds one record of a CSV file in bytes, which the parser holds as a whole. A polygon of 100,000 corners
// has 4 MB as text.
const maxRecord = 16 << 20

// csvBuffer is how many bytes of a CSV file are read ahead of its parser.
const csvBuffer = 1 << 16

// csvStep is how many bytes of values are charged at a time.
const csvStep = 1 << 20

// stringType is the type of the values of a text before they are inferred.
var stringType = tables.Type{Kind: tables.String}

// utf8Start skips a byte order mark, and refuses other encodings than UTF-8.
func utf8Start(in *bufio.Reader) error {
	start, _ := in.Peek(4)
	if bytes.HasPrefix(start, []byte(texts.Mark)) {
		_, err := in.Discard(len(texts.Mark))
		return err
	}
	marked := bytes.HasPrefix(start, []byte("\xff\xfe")) || bytes.HasPrefix(start, []byte("\xfe\xff"))
	// Without a mark every second byte of ASCII is 0.
	if marked || len(start) == 4 && (start[0] == 0) != (start[1] == 0) && (start[2] == 0) != (start[3] == 0) {
		return fault.At(fault.Unsupported, "text", 0, "it is UTF-16: save it as UTF-8")
	}
	return nil
}

// skipComments skips the lines before the header that are comments or empty.
func skipComments(file *textguard.Parts, in *bufio.Reader) error {
	const longest = 8 // of Excel's line, with "\r\n" and a byte that follows
	start, _ := in.Peek(longest)
	if n := textguard.SeparatorLine(start); n > 0 {
		if _, err := in.Discard(n); err != nil {
			return err
		}
		file.Next()
	}
	for {
		start, _ := in.Peek(2)
		if !isComment(start) && !bytes.HasPrefix(start, []byte{'\n'}) && string(start) != "\r\n" {
			return nil
		}
		for more := true; more; {
			_, err := in.ReadSlice('\n')
			if errors.Is(err, io.EOF) {
				return nil
			}
			if more = errors.Is(err, bufio.ErrBufferFull); err != nil && !more {
				return err
			}
		}
		file.Next()
	}
}

// words reads a text whose values blanks separate as one that has one tab between values, and none around lines.
type words struct {
	in       *bufio.Reader
	blank    bool // blanks are held back
	hasValue bool // the line has a value
}

func (w *words) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if n > 0 && w.in.Buffered() == 0 {
			return n, nil
		}
		c, err := w.in.ReadByte()
		switch {
		case err != nil && n > 0:
			return n, nil
		case err != nil:
			return 0, err
		case c == ' ' || c == '\t' || c == '\r':
			w.blank = true
			continue
		case c == '\n':
			w.hasValue = false
		case w.blank && w.hasValue:
			c = '\t'
			_ = w.in.UnreadByte() // it was read just now
		default:
			w.hasValue = true
		}
		w.blank, p[n] = false, c
		n++
	}
	return n, nil
}

// separated returns a text, and what separates the values of its first line that is neither empty nor a comment: a
// comma, or else a tab or a semicolon. A text of words, or one in which blanks may separate values, has blanks without
// them, in whose place it then has tabs.
func separated(in *bufio.Reader, isWords, blanks bool) (io.Reader, rune) {
	start, _ := in.Peek(1 << 16)
	start = bytes.TrimPrefix(start, []byte(texts.Mark))
	line, rest, more := bytes.Cut(start[textguard.SeparatorLine(start):], []byte{'\n'})
	for more && (isComment(line) || len(bytes.TrimSuffix(line, []byte{'\r'})) == 0) {
		line, rest, more = bytes.Cut(rest, []byte{'\n'})
	}
	order := ",\t;"
	if isWords {
		order = "\t,;"
	}
	if comma := textguard.Separator(line, textguard.Order(start, order)); comma != 0 {
		return in, comma
	}
	if isWords || blanks {
		return &words{in: in}, '\t'
	}
	return in, ','
}

// wantsSecond reports whether the second column of a file without a header is wanted. Then blanks separate values if
// nothing else does.
func wantsSecond(want func(name string) texts.Want) bool {
	return want("1") != want(noColumn) || want("1"+texts.ToEnd) != want(noColumn)
}

// isComment reports whether a line before the header is a comment: "#" alone, or "# " and text.
func isComment(start []byte) bool {
	return len(start) > 0 && start[0] == '#' && (len(start) == 1 || bytes.IndexByte([]byte(" \t\r\n#!"), start[1]) >= 0)
}

// readCSV reads a CSV file, whose values comma separates, if its first line does not say otherwise: see separator.
func readCSV(ctx context.Context, r source.Reader, comma rune, want func(name string) texts.Want) (*texts.Table,
	error) {
	read := csvTable{ctx: ctx, want: want}
	if err := read.all(r, comma); err != nil {
		return nil, err
	}
	return read.table()
}

// csvTable holds the rows of CSV files with the same columns.
type csvTable struct {
	ctx           context.Context
	want          func(name string) texts.Want
	names         []string
	into          []*tables.Appender // of strings; nil: not wanted
	rows          int64
	points        bool              // numbers have a point alone, because commas or tabs separate the values of a file
	bytes, charge int64             // of the values, and how many of them are charged to the budget
	paths         []string          // the columns of the paths of several files, behind the columns of the files
	from          map[string]string // and their values in the rows of a file
}

// all adds the rows of a file, whose values comma separates, if its first line does not say otherwise.
func (t *csvTable) all(r source.Reader, comma rune) error {
	if r.Size() > texts.MaxBytes {
		return fault.New(fault.Limit, "table", "%d bytes, at most %d", r.Size(), int64(texts.MaxBytes))
	}
	var text io.Reader = source.Sequential(t.ctx, r)
	if comma != '\t' {
		text, comma = separated(bufio.NewReaderSize(text, 1<<16), comma == 0, wantsSecond(t.want))
	}
	t.points = t.points || comma != ';' // programs write "1,5" between semicolons, where a comma is the point
	file := textguard.NewParts(t.ctx, text, "table", "a line, or a value in quotes,", maxRecord)
	file.Byte, file.Values = byte(comma), textguard.Values{Separator: byte(comma), Most: parquet.MaxColumns + csvBuffer}
	in := bufio.NewReaderSize(file, csvBuffer)
	if err := cmp.Or(utf8Start(in), skipComments(file, in)); err != nil {
		return err
	}
	first := firstLine(in)
	reader := csv.NewReader(in)
	reader.Comma, reader.ReuseRecord = comma, true
	head, err := reader.Read()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("no header line")
		}
		return csvError(reader, err)
	}
	reader.TrimLeadingSpace = comma != '\t' && unpad(head)
	names, data, err := columnNames(head, t.want)
	columns := 0
	if err == nil {
		columns, err = restColumn(names, data != nil, t.want)
	}
	if columns > 0 {
		names = slices.Clone(names[:columns])
		names[columns-1] += texts.ToEnd
	}
	if err == nil {
		err = t.columns(names)
	}
	switch {
	case err != nil:
		return err
	case columns == 0:
		return t.records(reader, file, data)
	case data == nil:
		first = ""
	case first == "":
		return fault.New(fault.Limit, "line 1", "over %d bytes, where a column is the rest of each line", maxFirst)
	}
	line, _ := reader.FieldPos(len(head) - 1)
	rest := restReader{in: in, comma: byte(comma), columns: columns, trims: reader.TrimLeadingSpace, line: first,
		number: line}
	_, rest.ofWords = text.(*words)
	return t.restRecords(&rest, file)
}

// columns prepares the columns of the first file. Other files must have the same.
func (t *csvTable) columns(names []string) error {
	inFile := len(t.names) - len(t.paths) // the columns that the first file has
	switch {
	case t.names != nil && !slices.Equal(names, t.names[:inFile]):
		return fault.New(fault.Corrupt, "line 1", "its columns are %s, and those of the first file %s",
			fault.Names(names), fault.Names(t.names[:inFile]))
	case t.names != nil:
		return nil
	}
	t.paths = slices.DeleteFunc(t.paths, func(name string) bool { return slices.Contains(names, name) })
	t.names = slices.Concat(names, t.paths)
	t.into = make([]*tables.Appender, len(t.names))
	for i, name := range t.names {
		if t.want(name) != texts.Skipped {
			t.into[i] = tables.NewAppender(stringType)
		}
	}
	return nil
}

// records adds the records of a file. data is its first line, if that is no header.
func (t *csvTable) records(reader *csv.Reader, file *textguard.Parts, data []string) error {
	for {
		file.Next()
		rec, err := data, error(nil)
		if data = nil; rec == nil {
			rec, err = reader.Read()
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if errors.Is(err, csv.ErrFieldCount) {
			line, _ := reader.FieldPos(0)
			columns := t.names[:len(t.names)-len(t.paths)]
			return fault.New(fault.Corrupt, "line "+strconv.Itoa(line), "it has %d values for %d columns%s", len(rec),
				len(columns), cmp.Or(commentHint(t.names[0], rec[0]), restHint(columns, len(rec), reader.Comma)))
		}
		if err != nil {
			return csvError(reader, err)
		}
		if err := t.add(rec); err != nil {
			return err
		}
	}
}

// add adds a record.
func (t *csvTable) add(rec []string) error {
	for i, column := range t.into {
		if column == nil {
			continue
		}
		value := t.from[t.names[i]]
		if i < len(rec) {
			value = rec[i]
		}
		if _, text := column.Vector().Size(); text > math.MaxUint32-int64(len(value)) {
			return fault.New(fault.Limit, "column "+t.names[i], "over %d bytes", int64(math.MaxUint32))
		}
		column.AddString(value)
		t.bytes += int64(len(value)) + 8
	}
	// Twice, because a slice that grows is copied into one that is up to twice as long.
	if growth := 2*t.bytes - t.charge; growth > 0 {
		growth = max(growth, csvStep)
		if err := budget.Grow(t.ctx, growth); err != nil {
			return err
		}
		t.charge += growth
	}
	t.rows++
	return nil
}

// table returns the table of all files.
func (t *csvTable) table() (*texts.Table, error) {
	columns, err := heldColumns(t.ctx, t.names, t.into, t.want, !t.points)
	if err != nil {
		return nil, err
	}
	return heldTable(t.rows, t.names, columns, "line 1"), nil
}

// unpad takes the blanks behind commas from a line, if each of its values but the first begins with one. In
// "name, class" the blank belongs to the comma, in the lines below, too.
func unpad(line []string) bool {
	if len(line) < 2 || slices.ContainsFunc(line[1:], func(v string) bool { return !strings.HasPrefix(v, " ") }) {
		return false
	}
	for i := range line {
		line[i] = strings.TrimLeft(line[i], " ")
	}
	return true
}

// heldColumns returns columns of texts by their names as want says. Those that are nil are left out. With commas,
// numbers may have a comma in place of the point.
func heldColumns(ctx context.Context, names []string, from []*tables.Appender, want func(name string) texts.Want,
	commas bool) (map[string]held, error) {
	columns := map[string]held{}
	for i, column := range from {
		if column == nil {
			continue
		}
		var err error
		switch values, name := column.Vector(), names[i]; {
		case !values.ValidText():
			columns[name] = held{wrong: notUTF8(values)}
		case want(name) == texts.Written:
			columns[name] = held{values: values}
		default:
			if columns[name], err = infer(ctx, values, want(name), commas); err != nil {
				return nil, err
			}
		}
	}
	return columns, nil
}

// notUTF8 returns the error about the first string of a column that is not UTF-8.
func notUTF8(column *tables.Vector) error {
	row := 0
	for utf8.Valid(column.Bytes(row)) {
		row++
	}
	return fault.New(fault.Unsupported, "row "+strconv.Itoa(row),
		"%q is not UTF-8: save the file as UTF-8, which Excel calls CSV UTF-8", fault.Short(column.Str(row)))
}

// columnNames returns the names of the columns and, if the first line is no header, that line.
func columnNames(head []string, want func(name string) texts.Want) (names, data []string, err error) {
	if len(head) <= parquet.MaxColumns && hasNoHeader(head, want) {
		return numbers(len(head)), head, nil
	}
	names, err = headerNames(head)
	return names, nil, err
}

// noColumn is a name that nobody wants. "" is one that callers have for a column that is found later.
const noColumn = "\x00"

// hasNoHeader reports whether the first line of a file is data: a column is wanted by its number, from 0, and the line
// has neither the name of another one that is wanted, nor the numbers from 0 on as names.
func hasNoHeader(head []string, want func(name string) texts.Want) bool {
	wanted := func(name string) bool {
		return want(name) != want(noColumn) || want(name+texts.ToEnd) != want(noColumn)
	}
	if !slices.ContainsFunc(numbers(len(head)), wanted) {
		return false
	}
	var names []string
	for _, name := range head {
		name = strings.TrimSpace(name)
		_, err := strconv.ParseUint(name, 10, 32)
		switch {
		case err == nil:
			names = append(names, name)
		case wanted(name):
			return false
		}
	}
	alone := len(names) == 1 && len(head) > 1 && strings.TrimSpace(head[0]) != "" // "0" after a name is a value
	return len(names) == 0 || alone || !slices.Equal(names, numbers(len(names)))
}

// numbers returns the names of n columns without a header.
func numbers(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	return names
}

// commentHint ends the error for a line with another number of values than the header, which begins with head.
func commentHint(head, line string) string {
	switch {
	case strings.HasPrefix(line, "#"):
		return `: it begins with "#", and comments are read before the header alone`
	case strings.HasPrefix(head, "#"):
		return `: the header begins with "#"; a comment before it begins with "# "`
	}
	return ""
}

// headerNames returns the names of the columns, which must differ.
func headerNames(head []string) ([]string, error) {
	if len(head) > parquet.MaxColumns {
		return nil, fault.New(fault.Limit, "line 1", "%d columns, at most %d", len(head), parquet.MaxColumns)
	}
	names, seen := make([]string, len(head)), make(map[string]bool, len(head))
	for i, name := range head {
		name = strings.TrimSpace(name)
		if !utf8.ValidString(name) {
			return nil, fault.New(fault.Unsupported, "line 1",
				"the column %q is not UTF-8: save the file as UTF-8, which Excel calls CSV UTF-8", fault.Short(name))
		}
		if seen[name] {
			return nil, fault.New(fault.Corrupt, "line 1", "two columns are called %q", name)
		}
		names[i], seen[name] = name, true
	}
	return names, nil
}

func csvError(c *csv.Reader, err error) error {
	if fault.KindOf(err) != 0 || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if pe, ok := errors.AsType[*csv.ParseError](err); ok {
		return &fault.Error{Kind: fault.Corrupt, Part: "line " + strconv.Itoa(pe.Line), Off: fault.NoOffset,
			Msg: pe.Err.Error(), Err: err}
	}
	return fault.WrapAt(fault.Corrupt, "table", c.InputOffset(), err)
}

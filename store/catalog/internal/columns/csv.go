package columns

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/turns"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tables/parquet"
)

// maxRecord bounds one record of a CSV file in bytes, which the parser holds as a whole. A polygon of 100,000 corners
// has 4 MB as text.
const maxRecord = 16 << 20

// csvStep is how many bytes of values are charged at a time.
const csvStep = 1 << 20

// maxCSV bounds a CSV file, which is read into memory, in bytes.
const maxCSV = 4 << 30

// Held is a CSV file or a list of STAC items, whose wanted columns are in memory.
type Held struct {
	Names   []string // of all columns, in order
	N       int64
	Columns map[string]Column
	part    string // of the file that names the columns, for errors
}

// openCSV reads a CSV file, whose values comma separates: see OpenHeld.
func openCSV(ctx context.Context, r source.Reader, comma rune, want func(name string) bool,
	raw []string) (*Held, error) {
	if r.Size() > maxCSV {
		return nil, fault.New(fault.Limit, "table", fault.NoOffset, "%d bytes, at most %d", r.Size(), int64(maxCSV))
	}
	file := &records{ctx: ctx, file: source.Sequential(ctx, r, 0), what: "a line, or a value in quotes,"}
	in := bufio.NewReaderSize(file, 1<<16)
	if b, _ := in.Peek(3); bytes.Equal(b, []byte("\xef\xbb\xbf")) {
		_, _ = in.Discard(3) // UTF-8 byte order mark
	}
	reader := csv.NewReader(in)
	reader.Comma, reader.ReuseRecord = comma, true
	head, err := reader.Read()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("no header line")
		}
		return nil, csvError(reader, err)
	}
	names, err := headerNames(head)
	if err != nil {
		return nil, err
	}
	t := &Held{Names: names, Columns: map[string]Column{}, part: "line 1"}
	cols := map[string]*Strings{}
	into := make([]*Strings, len(head)) // nil: not wanted
	for i, name := range t.Names {
		if want(name) {
			into[i] = &Strings{}
			cols[name] = into[i]
		}
	}
	held, charged := int64(0), int64(0)
	for {
		file.record = 0
		rec, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, csv.ErrFieldCount) {
			line, _ := reader.FieldPos(0)
			return nil, fault.New(fault.Corrupt, "line "+strconv.Itoa(line), fault.NoOffset,
				"it has %d values for %d columns", len(rec), len(head))
		}
		if err != nil {
			return nil, csvError(reader, err)
		}
		for i, column := range into {
			if column != nil {
				column.data = append(column.data, rec[i]...)
				column.ends = append(column.ends, uint64(len(column.data)))
				held += int64(len(rec[i])) + 8
			}
		}
		// Twice, because a slice that grows is copied into one that is up to twice as long.
		if growth := 2*held - charged; growth > 0 {
			growth = max(growth, csvStep)
			if err := budget.Grow(ctx, growth); err != nil {
				return nil, err
			}
			charged += growth
		}
		t.N++
	}
	for name, col := range cols {
		if t.Columns[name] = col; slices.Contains(raw, name) {
			continue
		}
		if t.Columns[name], err = infer(ctx, col); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// headerNames returns the names of the columns, which must differ.
func headerNames(head []string) ([]string, error) {
	if len(head) > parquet.MaxColumns {
		return nil, fault.New(fault.Limit, "line 1", fault.NoOffset, "%d columns, at most %d", len(head),
			parquet.MaxColumns)
	}
	names, seen := make([]string, len(head)), make(map[string]bool, len(head))
	for i, name := range head {
		name = strings.TrimSpace(name)
		if seen[name] {
			return nil, fault.New(fault.Corrupt, "line 1", fault.NoOffset, "two columns are called %q", name)
		}
		names[i], seen[name] = name, true
	}
	return names, nil
}

func csvError(c *csv.Reader, err error) error {
	if fault.KindOf(err) != 0 || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var pe *csv.ParseError
	if errors.As(err, &pe) {
		return &fault.Error{Kind: fault.Corrupt, Part: "line " + strconv.Itoa(pe.Line), Off: fault.NoOffset,
			Msg: pe.Err.Error(), Err: err}
	}
	return fault.Wrap(fault.Corrupt, "table", c.InputOffset(), err)
}

// ended returns the error of ctx, for which it looks at every 4096th row: parsing so many values takes less than 1 ms.
func ended[Row int | int64](ctx context.Context, row Row) error {
	if row%4096 == 0 {
		return ctx.Err()
	}
	return nil
}

// infer makes a column of the narrowest kind that holds all values.
func infer(ctx context.Context, t *Strings) (Column, error) {
	n := int64(len(t.ends))
	isInt, isFloat, found := true, true, false
	for row := range n {
		if err := ended(ctx, row); err != nil {
			return nil, err
		}
		data := t.at(row)
		if len(data) == 0 {
			if t.null == nil {
				t.null = make([]bool, n)
			}
			t.null[row] = true
			continue
		}
		found = true
		s := string(data)
		if isInt {
			_, err := strconv.ParseInt(s, 10, 64)
			isInt = err == nil
		}
		if !isInt {
			if _, ok := parseNumber(s); !ok {
				isFloat = false
				if t.null != nil || row+1 == n {
					continue // later rows may be null
				}
			}
		}
	}
	switch {
	case !found:
		return t, nil
	case isInt:
		intColumn := IntColumn{Values: make([]int64, n), null: t.null}
		for row := range intColumn.Values {
			if err := ended(ctx, row); err != nil {
				return nil, err
			}
			intColumn.Values[row], _ = strconv.ParseInt(string(t.at(int64(row))), 10, 64)
		}
		return intColumn, nil
	case isFloat:
		floatColumn := FloatColumn{v: make([]float64, n), null: t.null}
		for row := range floatColumn.v {
			if err := ended(ctx, row); err != nil {
				return nil, err
			}
			floatColumn.v[row], _ = parseNumber(string(t.at(int64(row))))
		}
		return floatColumn, nil
	}
	return t, nil
}

// parseNumber parses a decimal number, "nan" or "inf", but not hexadecimal numbers and underscores, which only programs
// write.
func parseNumber(s string) (float64, bool) {
	if strings.ContainsAny(s, "_xXpP") {
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil || errors.Is(err, strconv.ErrRange)
}

func (t *Held) Rows() int64 { return t.N }

func (t *Held) Column(name string) (Column, error) {
	if c := t.Columns[name]; c != nil {
		return c, nil
	}
	hint := ""
	if len(t.Names) == 1 && strings.ContainsAny(t.Names[0], ";\t") {
		hint = ": columns must be separated by commas or, in a .tsv file, by tabs"
	}
	return nil, fault.New(fault.NotFound, t.part, fault.NoOffset, "no column %q; there are %s%s", name,
		strings.Join(t.Names, ", "), hint)
}

func (t *Held) Close() error { return nil }

// records is a file of records, read from start to end.
type records struct {
	ctx    context.Context
	file   io.Reader
	at     int64
	record int64  // bytes since a record ended, including the buffer before the parser
	what   string // a record, for errors
}

func (s *records) Read(p []byte) (int, error) {
	if err := turns.Tick(s.ctx); err != nil {
		return 0, err
	}
	n, err := s.file.Read(p)
	s.at += int64(n)
	if s.record += int64(n); s.record > maxRecord {
		return 0, fault.New(fault.Limit, "table", s.at, "%s of over %d bytes", s.what, maxRecord)
	}
	return n, err
}

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
	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/parquet"
)

// maxRecord bounds one record of a CSV file in bytes, which the parser holds as a whole. A polygon of 100,000 corners
// has 4 MB as text.
const maxRecord = 16 << 20

// csvStep is how many bytes of values are charged at a time.
const csvStep = 1 << 20

// maxCSV bounds a CSV file, which is read into memory, in bytes.
const maxCSV = 4 << 30

// texts are the values of a column as they are written. A file has less than 4 GiB, so that 32 bits hold an offset.
type texts struct {
	data []byte
	offs []uint32 // text i is data[offs[i]:offs[i+1]]
	null []bool   // nil: no row is null
}

func newTexts() texts { return texts{offs: []uint32{0}} }

func (t *texts) len() int { return len(t.offs) - 1 }

func (t *texts) at(row int) string { return string(t.data[t.offs[row]:t.offs[row+1]]) }

func add[T ~string | ~[]byte](t *texts, text T) {
	t.data = append(t.data, text...)
	t.offs = append(t.offs, uint32(len(t.data)))
}

// strings returns the column of the texts themselves.
func (t *texts) strings() *tables.Vector {
	return tables.NewBytes(tables.Type{Kind: tables.String}, t.data, t.offs, t.null)
}

// openCSV reads a CSV file, whose values comma separates: see OpenText.
func openCSV(ctx context.Context, r source.Reader, comma rune, want func(name string) bool,
	raw []string) (*Table, error) {
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
	into := make([]*texts, len(head)) // nil: not wanted
	for i, name := range names {
		if want(name) {
			column := newTexts()
			into[i] = &column
		}
	}
	rows, held, charged := int64(0), int64(0), int64(0)
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
				add(column, rec[i])
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
		rows++
	}
	columns := map[string]*tables.Vector{}
	for i, column := range into {
		switch name := names[i]; {
		case column == nil:
		case slices.Contains(raw, name):
			columns[name] = column.strings()
		default:
			if columns[name], err = infer(ctx, column); err != nil {
				return nil, err
			}
		}
	}
	return heldTable(rows, names, columns, "line 1"), nil
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
	if pe, ok := errors.AsType[*csv.ParseError](err); ok {
		return &fault.Error{Kind: fault.Corrupt, Part: "line " + strconv.Itoa(pe.Line), Off: fault.NoOffset,
			Msg: pe.Err.Error(), Err: err}
	}
	return fault.Wrap(fault.Corrupt, "table", c.InputOffset(), err)
}

// ended returns the error of ctx, for which it looks at every 4096th row: parsing so many values takes less than 1 ms.
func ended(ctx context.Context, row int) error {
	if row%4096 == 0 {
		return ctx.Err()
	}
	return nil
}

// infer makes a column of the narrowest kind that holds all values.
func infer(ctx context.Context, t *texts) (*tables.Vector, error) {
	rows := t.len()
	isInt, isFloat, found := true, true, false
	for row := range rows {
		if err := ended(ctx, row); err != nil {
			return nil, err
		}
		text := t.at(row)
		if text == "" {
			if t.null == nil {
				t.null = make([]bool, rows)
			}
			t.null[row] = true
			continue
		}
		found = true
		if isInt {
			_, err := strconv.ParseInt(text, 10, 64)
			isInt = err == nil
		}
		if !isInt {
			if _, ok := parseNumber(text); !ok {
				isFloat = false
				if t.null != nil || row+1 == rows {
					continue // later rows may be null
				}
			}
		}
	}
	switch {
	case found && isInt:
		ints, err := parsed(ctx, t, func(text string) int64 {
			x, _ := strconv.ParseInt(text, 10, 64)
			return x
		})
		return tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, ints, t.null), err
	case found && isFloat:
		floats, err := parsed(ctx, t, func(text string) float64 {
			x, _ := parseNumber(text)
			return x
		})
		return tables.NewFloats(tables.Type{Kind: tables.Float64, Bits: 64}, floats, t.null), err
	}
	return t.strings(), nil
}

// parsed returns the number in each text.
func parsed[T int64 | float64](ctx context.Context, t *texts, parse func(text string) T) ([]T, error) {
	out := make([]T, t.len())
	for row := range out {
		if err := ended(ctx, row); err != nil {
			return nil, err
		}
		out[row] = parse(t.at(row))
	}
	return out, nil
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

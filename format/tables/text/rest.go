package text

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/internal/textguard"
)

// restColumn returns how many columns a file has if one of them is wanted as the rest of each line, else 0. Without a
// header the first line does not say how many there are.
func restColumn(names []string, noHeader bool, want func(name string) texts.Want) (columns int, err error) {
	at := slices.IndexFunc(names, func(name string) bool {
		return want(name+texts.ToEnd) != want(noColumn) && !slices.Contains(names, name+texts.ToEnd)
	})
	if last := len(names) - 1; at >= 0 && at < last && !noHeader {
		return 0, fault.New(fault.Unsupported, "column "+names[at]+texts.ToEnd,
			"it is the rest of each line, and the column %q stands behind it", names[last])
	}
	return at + 1, nil
}

// restHint ends the error for a line with too many values.
func restHint(names []string, values int, comma rune) string {
	if values < len(names) {
		return ""
	}
	last := names[len(names)-1]
	return fmt.Sprintf(": if %q has texts with %q in them and no quotes, name it %q, the rest of each line", last,
		comma, last+texts.ToEnd)
}

// maxFirst bounds the first line in bytes, where a column is the rest of each line and there is no header.
const maxFirst = csvBuffer / 2

// firstLine returns the first line of a text that is not empty, "" if it is longer than maxFirst.
func firstLine(in *bufio.Reader) string {
	text, err := in.Peek(maxFirst)
	line, _, ends := bytes.Cut(bytes.TrimLeft(text, "\r\n"), []byte{'\n'})
	if !ends && err == nil {
		return ""
	}
	return string(bytes.TrimSuffix(line, []byte{'\r'}))
}

// restReader reads records whose last value is the rest of the line.
type restReader struct {
	in      *bufio.Reader // the csv.Reader that has read the header reads from it without a buffer of its own
	comma   byte
	columns int
	trims   bool   // the blanks behind commas belong to these
	ofWords bool   // blanks separate values, in whose place there are tabs
	line    string // the one before those of in, if that is no header
	number  int    // of the last line
}

// restRecords adds the records of a file.
func (t *csvTable) restRecords(rest *restReader, file *textguard.Parts) error {
	for {
		file.Next()
		rec, err := rest.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = t.add(rec)
		}
		if err != nil {
			return err
		}
	}
}

// next returns the next record.
func (r *restReader) next() ([]string, error) {
	line := []byte(r.line)
	for r.line = ""; len(line) == 0; {
		var err error
		if line, err = r.read(); err != nil {
			return nil, err
		}
	}
	fail := func(format string, args ...any) ([]string, error) {
		return nil, fault.New(fault.Corrupt, "line "+strconv.Itoa(r.number), format, args...)
	}
	record := make([]string, 0, r.columns)
	for len(record) < r.columns {
		if r.trims {
			line = bytes.TrimLeft(line, " ")
		}
		last := len(record) == r.columns-1
		if len(line) > 0 && line[0] == '"' {
			value, behind, ok := unquoted(line)
			switch {
			case !ok:
				return fail("a value in quotes does not end in its line")
			case last && len(behind) > 0:
				return fail("text stands behind a value in quotes")
			case !last && (len(behind) == 0 || behind[0] != r.comma):
				return fail("it has %d values for %d columns, or text behind a value in quotes", len(record)+1,
					r.columns)
			case !last:
				behind = behind[1:]
			}
			record, line = append(record, value), behind
			continue
		}
		value, behind, more := line, []byte(nil), last
		if !last {
			value, behind, more = bytes.Cut(line, []byte{r.comma})
		}
		if !more {
			return fail("it has %d values for %d columns", len(record)+1, r.columns)
		}
		record, line = append(record, string(value)), behind
	}
	if r.ofWords {
		record[r.columns-1] = strings.ReplaceAll(record[r.columns-1], "\t", " ")
	}
	return record, nil
}

// read returns the next line, without what ends it.
func (r *restReader) read() (line []byte, err error) {
	for more := true; more; {
		var part []byte
		part, err = r.in.ReadSlice('\n')
		line = append(line, part...)
		more = errors.Is(err, bufio.ErrBufferFull)
	}
	r.number++
	if errors.Is(err, io.EOF) && len(line) > 0 {
		err = nil
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\r'}), err
}

// unquoted returns the value in quotes that a line begins with, and what stands behind it. ok is false if it does not
// end.
func unquoted(line []byte) (value string, behind []byte, ok bool) {
	var out []byte
	for line = line[1:]; ; line = line[1:] {
		part, after, found := bytes.Cut(line, []byte{'"'})
		if out = append(out, part...); !found {
			return "", nil, false
		}
		if line = after; len(line) == 0 || line[0] != '"' {
			return string(out), line, true
		}
		out = append(out, '"')
	}
}

package shards

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
)

// column collects the values of a column of level 0, which samples may lack. A value is text as JSON has it, and
// numbers that JSON lacks as strconv has them.
type column struct {
	name   string
	typ    tables.Type // of numbers, where the encoding says it; otherwise the values do
	rows   []int32
	values []string
}

// add adds the value of a row; "" stands for no value.
func (c *column) add(row int, value string) {
	if value != "" {
		c.rows, c.values = append(c.rows, int32(row)), append(c.values, value)
	}
}

// Types of columns whose encoding does not say one.
var (
	wholeType = tables.Type{Kind: tables.Int64, Bits: 64}
	floatType = tables.Type{Kind: tables.Float64, Bits: 64}
	textType  = tables.Type{Kind: tables.String}
	jsonType  = textType.With(func(f *tables.Form) { f.Extension = tables.ExtensionJSON })
)

// Kinds of values, which are bits.
const (
	wholes = 1 << iota
	fractions
	flags
	texts
	documents // lists and objects
)

// kindOf returns the kind of a value.
func kindOf(value string) int {
	switch value[0] {
	case '"':
		return texts
	case '{', '[':
		return documents
	case 't', 'f':
		return flags
	}
	if _, err := strconv.ParseInt(value, 10, 64); err == nil {
		return wholes
	}
	return fractions
}

// typeOf returns the type that holds values: numbers of both kinds are floats, with a list or an object all are JSON,
// and other mixtures are strings, as JSON writes the values.
func typeOf(values []string) tables.Type {
	kinds := 0
	for _, value := range values {
		kinds |= kindOf(value)
	}
	switch {
	case kinds&documents != 0:
		return jsonType
	case kinds&^wholes == 0:
		return wholeType
	case kinds&^(wholes|fractions) == 0:
		return floatType
	case kinds == flags:
		return tables.Type{Kind: tables.Bool}
	}
	return textType
}

// vector returns the values of n rows.
func (c *column) vector(n int) *tables.Vector {
	typ := c.typ
	if typ.Kind == tables.Null {
		typ = typeOf(c.values)
	}
	nulls := slices.Repeat([]bool{true}, n)
	ints, floats, texts := make([]int64, n), make([]float64, n), make([]string, n)
	for i, row := range c.rows {
		value := c.values[i]
		switch nulls[row] = false; {
		case typ.Kind == tables.Float64:
			floats[row], _ = strconv.ParseFloat(value, 64) // beyond its range an infinity, as in Python
		case typ.Kind == tables.Bool && value == "true":
			ints[row] = 1
		case typ.Kind == tables.Uint64:
			whole, _ := strconv.ParseUint(value, 10, 64) // the encoding wrote it
			ints[row] = int64(whole)
		case typ.Kind == tables.Int64:
			ints[row], _ = strconv.ParseInt(value, 10, 64) // typeOf or the encoding says that it is one
		case typ.Form != nil:
			texts[row] = value
		default:
			texts[row] = unquoted(value)
		}
	}
	switch typ.Kind {
	case tables.Float64:
		return tables.NewFloats(typ, floats, nulls)
	case tables.String:
		return tables.NewStrings(texts, nulls).As(typ.Stored())
	}
	return tables.NewInts(typ, ints, nulls)
}

// unquoted returns a value as text.
func unquoted(value string) string {
	text := value
	if strings.HasPrefix(value, `"`) {
		_ = json.Unmarshal([]byte(value), &text) // it is JSON
	}
	return text
}

// parseJSON returns a JSON value as one of a column, "" for null.
func parseJSON(b []byte) (string, error) {
	b = fromPython(bytes.TrimSpace(b))
	if !json.Valid(b) || !utf8.Valid(b) {
		return "", fault.New(fault.Corrupt, "json", fault.NoOffset, "%.60q is not JSON", b)
	}
	if string(b) == "null" {
		return "", nil
	}
	var short bytes.Buffer
	err := json.Compact(&short, b)
	return short.String(), err
}

// pythonNumbers matches a string of JSON, or a number that only Python's writer has.
var pythonNumbers = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|NaN|Infinity`)

// fromPython replaces the numbers of Python's json module that JSON lacks: NaN by null, and infinities by numbers
// beyond the range of float64.
func fromPython(b []byte) []byte {
	if json.Valid(b) {
		return b
	}
	return pythonNumbers.ReplaceAllFunc(b, func(found []byte) []byte {
		switch string(found) {
		case "NaN":
			return []byte("null")
		case "Infinity":
			return []byte("1e999")
		}
		return found
	})
}

// number returns a number that Python has written. Integers beyond int64 stay text.
func number(b []byte) (string, error) {
	digits := strings.TrimSpace(string(b))
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return strconv.FormatInt(n, 10), nil
	}
	if f, err := strconv.ParseFloat(digits, 64); err == nil && strings.ContainsAny(digits, ".eEnN") {
		return strconv.FormatFloat(f, 'g', -1, 64), nil
	}
	return text([]byte(digits))
}

// text returns a value of UTF-8.
func text(b []byte) (string, error) {
	if !utf8.Valid(b) {
		return "", fault.New(fault.Corrupt, "text", fault.NoOffset, "is not UTF-8")
	}
	quoted, err := json.Marshal(string(b))
	return string(quoted), err
}

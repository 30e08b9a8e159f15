package shards

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tables"
)

// column collects the values of a column of level 0, which samples may lack.
type column struct {
	name   string
	rows   []int32
	typ    tables.Type // of numbers, where the encoding says it; otherwise the values do
	values []any       // int64, uint64, float64, bool, string or document
}

// document is a list or an object as JSON.
type document string

// columns are the columns of a dataset, in the order in which they were first seen.
type columns struct {
	list []*column
	at   map[string]int
}

// add adds a value of a sample, or nothing for nil. typ is the type that the column's encoding says, or its zero value.
func (c *columns) add(row int, name string, typ tables.Type, v any) {
	i, ok := c.at[name]
	if !ok {
		if c.at == nil {
			c.at = map[string]int{}
		}
		i = len(c.list)
		c.at[name] = i
		c.list = append(c.list, &column{name: name, typ: typ})
	}
	if v != nil {
		k := c.list[i]
		k.rows, k.values = append(k.rows, int32(row)), append(k.values, v)
	}
}

// join adds the columns of a shard, whose first sample is the given row.
func (c *columns) join(of *columns, first int) {
	for _, k := range of.list {
		c.add(0, k.name, k.typ, nil)
		column := c.list[c.at[k.name]]
		for _, row := range k.rows {
			column.rows = append(column.rows, row+int32(first))
		}
		column.values = append(column.values, k.values...)
	}
}

// cellBytes is about the memory of a value in a column; fewCells values are always allowed. A sample that lacks a
// column takes as much as one that has it, so the product of rows and columns must be bounded: a small file could claim
// any number.
const (
	cellBytes    = 16
	fewBytes     = 64 << 20
	bytesPerByte = 4
)

// tooMany refuses columns that take far more memory than the shards have bytes.
func (c *columns) tooMany(samples int, size int64) error {
	if int64(len(c.list))*int64(samples) > (fewBytes+bytesPerByte*size)/cellBytes {
		return fault.New(fault.Limit, "columns", fault.NoOffset, "%d columns of %d samples in %d bytes", len(c.list),
			samples, size)
	}
	return nil
}

// numbers returns the values of n rows of a column whose encoding says its type.
func (k *column) numbers(n int, nulls []bool) *tables.Vector {
	if k.typ.Kind == tables.Float64 {
		out := make([]float64, n)
		for i, row := range k.rows {
			out[row] = k.values[i].(float64)
		}
		return tables.NewFloats(k.typ, out, nulls)
	}
	out := make([]int64, n)
	for i, row := range k.rows {
		switch v := k.values[i].(type) {
		case int64:
			out[row] = v
		case uint64:
			out[row] = int64(v)
		}
	}
	return tables.NewInts(k.typ, out, nulls)
}

// documents returns the values of n rows as JSON.
func (k *column) documents(n int, nulls []bool) *tables.Vector {
	out := make([]string, n)
	for i, row := range k.rows {
		switch v := k.values[i].(type) {
		case document:
			out[row] = string(v)
		case string:
			b, _ := json.Marshal(v) // strings always marshal
			out[row] = string(b)
		case float64:
			out[row] = strconv.FormatFloat(v, 'g', -1, 64)
		default:
			out[row] = fmt.Sprint(v)
		}
	}
	return tables.NewStrings(out, nulls).As(tables.Form{Extension: tables.ExtensionJSON})
}

// vector returns the values of n rows. Numbers of both kinds are floats, columns with lists or objects are JSON, and
// other mixtures are strings, as JSON writes the values.
func (k *column) vector(n int) *tables.Vector {
	nulls := make([]bool, n)
	for i := range nulls {
		nulls[i] = true
	}
	var ints, floats, bools, texts, documents int
	for _, v := range k.values {
		switch v.(type) {
		case document:
			documents++
		case int64:
			ints++
		case float64:
			floats++
		case bool:
			bools++
		default:
			texts++
		}
	}
	for _, row := range k.rows {
		nulls[row] = false
	}
	switch {
	case k.typ.Kind != tables.Null:
		return k.numbers(n, nulls)
	case documents > 0:
		return k.documents(n, nulls)
	case texts == 0 && floats == 0 && (ints == 0 || bools == 0):
		out := make([]int64, n)
		for i, row := range k.rows {
			switch v := k.values[i].(type) {
			case int64:
				out[row] = v
			case bool:
				if v {
					out[row] = 1
				}
			}
		}
		if bools > 0 {
			return tables.NewInts(tables.Type{Kind: tables.Bool}, out, nulls)
		}
		return tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, out, nulls)
	case texts == 0 && bools == 0:
		out := make([]float64, n)
		for i, row := range k.rows {
			switch v := k.values[i].(type) {
			case int64:
				out[row] = float64(v)
			case float64:
				out[row] = v
			}
		}
		return tables.NewFloats(tables.Type{Kind: tables.Float64, Bits: 64}, out, nulls)
	}
	out := make([]string, n)
	for i, row := range k.rows {
		switch v := k.values[i].(type) {
		case int64:
			out[row] = strconv.FormatInt(v, 10)
		case float64:
			out[row] = strconv.FormatFloat(v, 'g', -1, 64)
		case bool:
			out[row] = strconv.FormatBool(v)
		case string:
			out[row] = v
		}
	}
	return tables.NewStrings(out, nulls)
}

// parseJSON returns a JSON value as one of a column: a number, a boolean, a string, nil for null, or the document of a
// list or an object.
func parseJSON(b []byte) (any, error) {
	b = fromPython(bytes.TrimSpace(b))
	if !json.Valid(b) || !utf8.Valid(b) {
		return nil, fault.New(fault.Corrupt, "json", fault.NoOffset, "%.60q is not JSON", b)
	}
	switch b[0] {
	case 'n':
		return nil, nil
	case 't', 'f':
		return b[0] == 't', nil
	case '"':
		var s string
		err := json.Unmarshal(b, &s)
		return s, err
	case '{', '[':
		var short bytes.Buffer
		err := json.Compact(&short, b)
		return document(short.String()), err
	}
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil && !math.IsInf(f, 0) { // a number beyond the range of float64 is an infinity, as in Python
		return nil, fault.New(fault.Corrupt, "json", fault.NoOffset, "%.60q is not a number", b)
	}
	return f, nil
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

// text returns a value of UTF-8.
func text(b []byte) (any, error) {
	if !utf8.Valid(b) {
		return nil, fault.New(fault.Corrupt, "text", fault.NoOffset, "is not UTF-8")
	}
	return string(b), nil
}

package shards

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
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

// cellBytes is about the memory of a value in a column; fewBytes are always allowed. A sample that lacks a
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

// Types of columns whose encoding does not say one.
var (
	wholeType = tables.Type{Kind: tables.Int64, Bits: 64}
	floatType = tables.Type{Kind: tables.Float64, Bits: 64}
	boolType  = tables.Type{Kind: tables.Bool}
	textType  = tables.Type{Kind: tables.String}
	jsonType  = textType.With(func(f *tables.Form) { f.Extension = tables.ExtensionJSON })
)

// typeOf returns the type of a value.
func typeOf(v any) tables.Type {
	switch v.(type) {
	case int64:
		return wholeType
	case float64:
		return floatType
	case bool:
		return boolType
	case document:
		return jsonType
	}
	return textType
}

// joinTypes returns the type that holds two values: numbers of both kinds are floats, with a list or an object all are
// JSON, and other mixtures are strings, as JSON writes the values.
func joinTypes(a, b tables.Type) tables.Type {
	number := func(t tables.Type) bool { return t.Kind == tables.Int64 || t.Kind == tables.Float64 }
	switch {
	case a.Kind == tables.Null, b.Form != nil:
		return b
	case a.Form != nil, a.Kind == b.Kind:
		return a
	case number(a) && number(b):
		return floatType
	}
	return textType
}

// asText returns a value in a column of strings, or as JSON.
func asText(v any, asJSON bool) string {
	switch v := v.(type) {
	case document:
		return string(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		if asJSON {
			b, _ := json.Marshal(v) // strings always marshal
			return string(b)
		}
	}
	return fmt.Sprint(v)
}

// vector returns the values of n rows.
func (k *column) vector(n int) *tables.Vector {
	typ := k.typ
	if typ.Kind == tables.Null {
		for _, v := range k.values {
			typ = joinTypes(typ, typeOf(v))
		}
		if len(k.values) == 0 {
			typ = wholeType
		}
	}
	nulls, ints, floats, texts := make([]bool, n), make([]int64, n), make([]float64, n), make([]string, n)
	for i := range nulls {
		nulls[i] = true
	}
	for i, row := range k.rows {
		nulls[row] = false
		switch v := k.values[i].(type) {
		case int64:
			ints[row], floats[row] = v, float64(v)
		case uint64:
			ints[row] = int64(v)
		case bool:
			if v {
				ints[row] = 1
			}
		case float64:
			floats[row] = v
		}
		if typ.Kind == tables.String {
			texts[row] = asText(k.values[i], typ.Form != nil)
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

// number parses a number as Python writes it. Integers beyond int64 stay text.
func number(s string) (any, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && strings.ContainsAny(s, ".eEnN") {
		return f, nil
	}
	return text([]byte(s))
}

// text returns a value of UTF-8.
func text(b []byte) (any, error) {
	if !utf8.Valid(b) {
		return nil, fault.New(fault.Corrupt, "text", fault.NoOffset, "is not UTF-8")
	}
	return string(b), nil
}

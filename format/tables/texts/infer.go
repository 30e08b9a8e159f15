package texts

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
)

// contextErr returns the error of ctx, for which it looks at every 4096th row: parsing so many values takes less than 1
// ms.
func contextErr(ctx context.Context, row int) error {
	if row%4096 == 0 {
		return ctx.Err()
	}
	return nil
}

// Infer returns a column of strings as a text has it: numbers or booleans, if all strings are and want allows it. Nulls
// must have no bytes. Among numbers and booleans of a CSV words such as "NA" are nulls, and blanks around them do not
// count. With commas, numbers may have a comma in place of the point. Whole numbers are an error about the column if
// one has over 64 bits: as floats they would be other ones. All other errors are of ctx.
func Infer(ctx context.Context, column *tables.Vector, want Want, commas bool) (*tables.Vector, error) {
	rows, nulls := column.Len(), []bool(nil)
	isCSV, absent, point, comma := want <= Typed, false, false, false
	isInt, isFloat, isBool, found, large := true, true, isCSV, false, -1
	for row := range rows {
		if err := contextErr(ctx, row); err != nil {
			return nil, err
		}
		text := string(column.Bytes(row))
		if text == "" {
			nulls = mark(nulls, rows, row)
			continue
		}
		if isCSV {
			if text = strings.TrimSpace(text); slices.Contains(nullWords, text) {
				absent = true
				continue
			}
		}
		found = true
		if want != Values && isCode(text) {
			return column.WithNulls(nulls), nil
		}
		if isInt {
			_, err := strconv.ParseInt(text, 10, 64)
			over := errors.Is(err, strconv.ErrRange) && strings.Trim(text[1:], "0123456789") == ""
			if isInt = err == nil || over; over && large < 0 {
				large = row
			}
		}
		if commas {
			point, comma = point || strings.Contains(text, "."), comma || strings.Contains(text, ",")
		}
		if !isInt && isFloat {
			_, isFloat = parseNumber(text, commas)
		}
		isBool = isBool && slices.Contains(booleans, text)
	}
	isFloat = isFloat && !(point && comma) // 1.234 beside 1,5 may be a thousand
	for row := 0; absent && found && (isInt || isFloat || isBool) && row < rows; row++ {
		if slices.Contains(nullWords, strings.TrimSpace(string(column.Bytes(row)))) {
			nulls = mark(nulls, rows, row)
		}
	}
	switch {
	case !found || large >= 0 && isInt && want == Words:
	case large >= 0 && isInt:
		return nil, fault.New(fault.Unsupported, "row "+strconv.Itoa(large),
			"%s is no integer of 64 bits, as others in the column are", fault.Short(string(column.Bytes(large))))
	case isInt:
		ints, err := parsed(ctx, column, func(text string) int64 {
			x, _ := strconv.ParseInt(text, 10, 64)
			return x
		})
		return tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, ints, nulls), err
	case isFloat:
		floats, err := parsed(ctx, column, func(text string) float64 {
			x, _ := parseNumber(text, commas)
			return x
		})
		return tables.NewFloats(tables.Type{Kind: tables.Float64, Bits: 64}, floats, nulls), err
	case isBool:
		truths, err := parsed(ctx, column, func(text string) bool { return strings.EqualFold(text, "true") })
		return tables.NewBools(truths, nulls), err
	}
	return column.WithNulls(nulls), nil
}

// mark adds a row to the nulls of a column.
func mark(nulls []bool, rows, row int) []bool {
	if nulls == nil {
		nulls = make([]bool, rows)
	}
	nulls[row] = true
	return nulls
}

// isCode reports whether a text that may be a number loses what it says as one: a whole number with a zero in front, as
// the number of a tile ("0012"), or digits around an E, as the name of a cell of a grid ("31E10").
func isCode(text string) bool {
	text = strings.TrimPrefix(text, "-")
	if len(text) > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9' {
		return true
	}
	i := strings.IndexByte(text, 'E') // "1e3" is a number
	return i > 0 && strings.Trim(text[:i]+text[i+1:], "0123456789") == "" && i+1 < len(text)
}

// nullWords stand for numbers that are not known: R and pandas write them, and databases. "NaN" is a number.
var nullWords = []string{"NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "Null", "null", "None"}

// booleans are the words that pandas takes for booleans.
var booleans = []string{"True", "False", "true", "false", "TRUE", "FALSE"}

// parsed returns the value of each text.
func parsed[T int64 | float64 | bool](ctx context.Context, column *tables.Vector, parse func(text string) T) ([]T, error) {
	out := make([]T, column.Len())
	for row := range out {
		if err := contextErr(ctx, row); err != nil {
			return nil, err
		}
		out[row] = parse(strings.TrimSpace(string(column.Bytes(row))))
	}
	return out, nil
}

// parseNumber parses a decimal number, "nan" or "inf", but not hexadecimal numbers and underscores, which only programs
// write. With commas, one may stand for the point.
func parseNumber(s string, commas bool) (float64, bool) {
	if strings.ContainsAny(s, "_xXpP") {
		return 0, false
	}
	if commas {
		s = strings.Replace(s, ",", ".", 1)
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil || errors.Is(err, strconv.ErrRange)
}

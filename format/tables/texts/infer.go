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

// Infer returns a column of strings as a text has it: numbers or booleans, if all strings are and want allows it. Nulls
// must have no bytes. Among numbers and booleans of a CSV words such as "NA" are nulls, and blanks around them do not
// count. With commas, numbers may have a comma in place of the point. Whole numbers are an error about the column if
// one has over 64 bits: as floats they would be other ones. All other errors are of ctx.
func Infer(ctx context.Context, column *tables.Vector, want Want, commas bool) (*tables.Vector, error) {
	large, point, comma := -1, false, false
	ints, nulls, err := parsed(ctx, column, want, func(row int, text string) (int64, bool) {
		x, err := strconv.ParseInt(text, 10, 64)
		over := errors.Is(err, strconv.ErrRange) && strings.Trim(text[1:], "0123456789") == ""
		if over && large < 0 {
			large = row
		}
		return x, err == nil || over
	})
	switch {
	case err != nil:
		return nil, err
	case ints != nil && large < 0:
		return tables.NewInts(tables.Ints, ints, nulls), nil
	case ints != nil && want == Words:
		return asStrings(column, want), nil
	case ints != nil:
		return nil, fault.New(fault.Unsupported, "row "+strconv.Itoa(large),
			"%s is no integer of 64 bits, as others in the column are", fault.Short(column.Str(large)))
	}
	floats, nulls, err := parsed(ctx, column, want, func(_ int, text string) (float64, bool) {
		point, comma = point || strings.Contains(text, "."), comma || strings.Contains(text, ",")
		return parseNumber(text, commas)
	})
	if err != nil || floats != nil && !(point && comma) { // 1.234 beside 1,5 may be a thousand
		return tables.NewFloats(tables.Floats, floats, nulls), err
	}
	if want > Typed {
		return asStrings(column, want), nil
	}
	truths, nulls, err := parsed(ctx, column, want, func(_ int, text string) (bool, bool) {
		return strings.EqualFold(text, "true"), slices.Contains(booleans, text)
	})
	if err != nil || truths != nil {
		return tables.NewBools(truths, nulls), err
	}
	return asStrings(column, want), nil
}

// parsed returns the value of each text, and nulls of those that stand for none. It returns nil if parse refuses one,
// one is a code that want keeps, or none has a value.
func parsed[T int64 | float64 | bool](ctx context.Context, column *tables.Vector, want Want,
	parse func(row int, text string) (T, bool)) (out []T, nulls []bool, err error) {
	rows := column.Len()
	for row := range rows {
		if row%4096 == 0 && ctx.Err() != nil { // parsing so many values takes less than 1 ms
			return nil, nil, ctx.Err()
		}
		text := column.Str(row)
		isNull := text == ""
		if !isNull && want <= Typed {
			text = strings.TrimSpace(text)
			isNull = slices.Contains(nullWords, text)
		}
		if isNull {
			nulls = mark(nulls, rows, row)
			continue
		}
		x, ok := parse(row, text)
		if !ok || want != Values && isCode(text) {
			return nil, nil, nil
		}
		if out == nil {
			out = make([]T, rows)
		}
		out[row] = x
	}
	return out, nulls, nil
}

// asStrings returns the strings. Empty ones are null up to the first code that want keeps: digests of tables depend on
// that.
func asStrings(column *tables.Vector, want Want) *tables.Vector {
	var nulls []bool
	for row := range column.Len() {
		text := column.Str(row)
		if text == "" {
			nulls = mark(nulls, column.Len(), row)
		}
		if want <= Typed {
			text = strings.TrimSpace(text)
		}
		if want != Values && isCode(text) {
			break
		}
	}
	return column.WithNulls(nulls)
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

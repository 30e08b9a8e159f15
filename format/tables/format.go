package tables

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"time"
)

func floatName(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case f > 0:
		return "Infinity"
	}
	return "-Infinity"
}

// formatValue formats a decimal, date, time or timestamp.
func (v *Vector) formatValue(i int) string {
	switch v.typ.Kind {
	case Decimal:
		return formatDecimal(v.Big(i), int(v.typ.Scale))
	case Date:
		return FormatDate(v.ints[i])
	case Time:
		if ns := v.Nano(i); ns != 0 {
			return timeOf(v.ints[i], ns).Format("15:04:05.000000000")
		}
		return clock(v.ints[i], "15:04:05")
	}
	text := FormatTimestamp(v.ints[i])
	if ns := v.Nano(i); ns != 0 {
		text = timeOf(v.ints[i], ns).Format("2006-01-02T15:04:05.000000000")
	}
	if v.typ.UTC {
		text += "+00:00"
	}
	return text
}

// FormatDate returns days since 1970-01-01 as an ISO 8601 date.
func FormatDate(days int64) string {
	if days < math.MinInt32 || days > math.MaxInt32 {
		return strconv.FormatInt(days, 10)
	}
	return time.Unix(days*86400, 0).UTC().Format("2006-01-02")
}

// FormatTimestamp formats microseconds since 1970 in UTC as ISO 8601 without a zone, with six digits after the second
// unless they are 0.
func FormatTimestamp(us int64) string { return clock(us, "2006-01-02T15:04:05") }

func clock(us int64, layout string) string {
	if us%1e6 != 0 {
		layout += ".000000"
	}
	return time.UnixMicro(us).UTC().Format(layout)
}

// timeOf returns the time.Time of microseconds since 1970 plus nanoseconds.
func timeOf(us, ns int64) time.Time { return time.UnixMicro(us).UTC().Add(time.Duration(ns)) }

func formatDecimal(x *big.Int, scale int) string {
	digits := new(big.Int).Abs(x).String()
	for len(digits) <= scale {
		digits = "0" + digits
	}
	if scale > 0 {
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if x.Sign() < 0 {
		digits = "-" + digits
	}
	return digits
}

// AppendJSON appends value i as JSON: {"hex": …} for binary, objects for structs and for maps whose keys are text;
// other maps are lists of pairs. NaN and the infinities are "NaN", "Infinity" and "-Infinity", decimals numbers with
// all digits, dates and times ISO 8601. Timestamps that are UTC by their type end in "+00:00".
func (v *Vector) AppendJSON(dst []byte, i int) []byte {
	if v.Null(i) {
		return append(dst, "null"...)
	}
	switch v.typ.Kind {
	case Bool:
		return strconv.AppendBool(dst, v.bools[i])
	case Int64:
		return strconv.AppendInt(dst, v.ints[i], 10)
	case Uint64:
		return strconv.AppendUint(dst, uint64(v.ints[i]), 10)
	case Decimal: // a number of JSON has as many digits as it needs
		return append(dst, v.formatValue(i)...)
	case Float64:
		return appendFloat(dst, v.floats[i])
	case String:
		return appendJSONString(dst, v.Bytes(i))
	case Binary:
		dst = append(dst, `{"hex":"`...)
		return append(hex.AppendEncode(dst, v.Bytes(i)), `"}`...)
	case List:
		child, lo, hi := v.List(i)
		if v.typ.Stored().Store == Map {
			return child.appendMap(dst, lo, hi)
		}
		dst = append(dst, '[')
		for k := lo; k < hi; k++ {
			if k > lo {
				dst = append(dst, ',')
			}
			dst = child.AppendJSON(dst, k)
		}
		return append(dst, ']')
	case Struct:
		dst = append(dst, '{')
		for k, values := range v.children {
			if k > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendJSONString(dst, []byte(v.typ.Fields[k].Name)), ':')
			dst = values.AppendJSON(dst, i)
		}
		return append(dst, '}')
	}
	return append(append(append(dst, '"'), v.formatValue(i)...), '"')
}

// appendMap appends the keys and values of a map, which v has in rows lo to hi: as an object if the keys are text, else
// as pairs.
func (v *Vector) appendMap(dst []byte, lo, hi int) []byte {
	keys, values := v.children[0], v.children[1]
	open, between, end := "{", ":", "}"
	if keys.Kind() != String {
		open, between, end = "[[", ",", "]]"
	}
	if lo == hi {
		return append(append(dst, open[0]), end[0])
	}
	for k := lo; k < hi; k++ {
		switch {
		case k == lo:
			dst = append(dst, open...)
		case keys.Kind() == String:
			dst = append(dst, ',')
		default:
			dst = append(dst, "],["...)
		}
		dst = values.AppendJSON(append(keys.AppendJSON(dst, k), between...), k)
	}
	return append(dst, end...)
}

func appendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(append(append(dst, '"'), floatName(f)...), '"')
	}
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

func appendJSONString(dst, s []byte) []byte {
	// Most strings have nothing to escape, so they are copied as they are.
	for _, c := range s {
		if c < ' ' || c >= 0x7F || c == '"' || c == '\\' {
			b, _ := json.Marshal(string(s)) // strings always marshal
			return append(dst, b...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

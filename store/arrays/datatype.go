package arrays

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/cast"
)

// numpyTypes are the types of numpy, without their byte order.
var numpyTypes = map[string]chunk.DType{
	"b1": chunk.Uint8, "i1": chunk.Int8, "u1": chunk.Uint8, "i2": chunk.Int16, "u2": chunk.Uint16,
	"i4": chunk.Int32, "u4": chunk.Uint32, "i8": chunk.Int64, "u8": chunk.Uint64,
	"f2": chunk.Float16, "f4": chunk.Float32, "f8": chunk.Float64,
}

// ParseNumpy parses a type of numpy such as "<f4".
func ParseNumpy(s string) (t chunk.DType, big bool, err error) {
	if len(s) < 3 {
		return 0, false, Unsupported("data type %q", s)
	}
	t = numpyTypes[s[1:]]
	if t == chunk.Invalid || !strings.Contains("<>|", s[:1]) {
		return 0, false, Unsupported("data type %q: arrays of numbers and booleans are read", s)
	}
	return t, s[0] == '>' && t.Size() > 1, nil
}

// ParseFill returns a fill value as one little-endian sample. null is 0.
func ParseFill(raw json.RawMessage, t chunk.DType) ([]byte, error) {
	fill := make([]byte, t.Size())
	var value any
	if len(raw) == 0 || string(raw) == "null" {
		return fill, nil
	}
	if err := Decode(raw, &value); err != nil {
		return nil, err
	}
	switch value := value.(type) {
	case bool:
		if value {
			fill[0] = 1
		}
		if t.Size() != 1 {
			return nil, Corrupt("fill value %v of type %v", value, t)
		}
		return fill, nil
	case json.Number:
		return fill, putNumber(fill, string(value), t)
	case string:
		if hex, ok := strings.CutPrefix(value, "0x"); ok {
			bits, err := strconv.ParseUint(hex, 16, 64)
			if err != nil || !isFloat(t) || bits>>(8*t.Size()-1)>>1 != 0 {
				return nil, Corrupt("fill value %q of type %v", value, t)
			}
			cast.PutUint(fill, len(fill), bits)
			return fill, nil
		}
		switch value {
		case "NaN", "Infinity", "-Infinity":
			return fill, putNumber(fill, value, t)
		}
	}
	return nil, Unsupported("fill value %.40q of type %v", raw, t)
}

func isFloat(t chunk.DType) bool {
	return t == chunk.Float16 || t == chunk.Float32 || t == chunk.Float64
}

// putNumber puts a decimal number, NaN or Infinity into a sample.
func putNumber(to []byte, s string, t chunk.DType) error {
	bad := Corrupt("fill value %.40q is not one of type %v", s, t)
	if isFloat(t) {
		number, err := strconv.ParseFloat(s, 64)
		if err != nil && !math.IsInf(number, 0) {
			return bad
		}
		t.PutNumber(to, number) // NaN as the specification of version 3 ("Fill value") has it
		return nil
	}
	bits, signed := 8*t.Size(), t >= chunk.Int8 && t <= chunk.Int64
	if number, err := strconv.ParseFloat(s, 64); err == nil && strings.ContainsAny(s, ".eE") {
		// Some writers leave 0.0 as a fill value of integers, so it needs to be one.
		if number == math.Trunc(number) && math.Abs(number) < 1<<53 {
			s = strconv.FormatInt(int64(number), 10)
		}
	}
	if signed {
		i, err := strconv.ParseInt(s, 10, bits)
		if err != nil {
			return bad
		}
		cast.PutUint(to, len(to), uint64(i))
		return nil
	}
	number, err := strconv.ParseUint(s, 10, bits)
	if err != nil {
		return bad
	}
	cast.PutUint(to, len(to), number)
	return nil
}

package zarr

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/internal/cast"
)

// numpyTypes are the types of version 2, without their byte order.
var numpyTypes = map[string]chunk.DType{
	"b1": chunk.Uint8, "i1": chunk.Int8, "u1": chunk.Uint8, "i2": chunk.Int16, "u2": chunk.Uint16,
	"i4": chunk.Int32, "u4": chunk.Uint32, "i8": chunk.Int64, "u8": chunk.Uint64,
	"f2": chunk.Float16, "f4": chunk.Float32, "f8": chunk.Float64,
}

// parseNumpy parses a type like "<f4" of version 2.
func parseNumpy(s string) (t chunk.DType, big bool, err error) {
	if len(s) < 3 {
		return 0, false, unsupported("data type %q", s)
	}
	t = numpyTypes[s[1:]]
	if t == chunk.Invalid || !strings.Contains("<>|", s[:1]) {
		return 0, false, unsupported("data type %q: arrays of numbers and booleans are read", s)
	}
	return t, s[0] == '>' && t.Size() > 1, nil
}

// parseType parses a type of version 3.
func parseType(raw json.RawMessage) (chunk.DType, error) {
	var name string
	if decode(raw, &name) != nil {
		var v object
		if err := decode(raw, &v); err != nil {
			return 0, err
		}
		return 0, unsupported("data type %q: arrays of numbers and booleans are read", v.text("name"))
	}
	if name == "bool" {
		return chunk.Uint8, nil
	}
	for _, t := range numpyTypes {
		if t.String() == name {
			return t, nil
		}
	}
	return 0, unsupported("data type %q: arrays of numbers and booleans are read", name)
}

// parseFill returns a fill value as one little-endian sample. null is 0.
func parseFill(raw json.RawMessage, t chunk.DType) ([]byte, error) {
	fill := make([]byte, t.Size())
	var v any
	if len(raw) == 0 || string(raw) == "null" {
		return fill, nil
	}
	if err := decode(raw, &v); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case bool:
		if v {
			fill[0] = 1
		}
		if t.Size() != 1 {
			return nil, corrupt("fill value %v of type %v", v, t)
		}
		return fill, nil
	case json.Number:
		return fill, putNumber(fill, string(v), t)
	case string:
		if hex, ok := strings.CutPrefix(v, "0x"); ok {
			bits, err := strconv.ParseUint(hex, 16, 64)
			if err != nil || !isFloat(t) || bits>>(8*t.Size()-1)>>1 != 0 {
				return nil, corrupt("fill value %q of type %v", v, t)
			}
			cast.PutUint(fill, len(fill), bits)
			return fill, nil
		}
		switch v {
		case "NaN", "Infinity", "-Infinity":
			return fill, putNumber(fill, v, t)
		}
	}
	return nil, unsupported("fill value %.40q of type %v", raw, t)
}

func isFloat(t chunk.DType) bool {
	return t == chunk.Float16 || t == chunk.Float32 || t == chunk.Float64
}

// putNumber puts a decimal number, NaN or Infinity into a sample.
func putNumber(to []byte, s string, t chunk.DType) error {
	bad := corrupt("fill value %.40q is not one of type %v", s, t)
	if isFloat(t) {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil && !math.IsInf(f, 0) {
			return bad
		}
		putFloat(to, f, t)
		return nil
	}
	bits, signed := 8*t.Size(), t >= chunk.Int8 && t <= chunk.Int64
	if f, err := strconv.ParseFloat(s, 64); err == nil && strings.ContainsAny(s, ".eE") && f == math.Trunc(f) &&
		math.Abs(f) < 1<<53 {
		s = strconv.FormatInt(int64(f), 10) // 0.0 is a fill value of integers that some writers leave
	}
	if signed {
		i, err := strconv.ParseInt(s, 10, bits)
		if err != nil {
			return bad
		}
		cast.PutUint(to, len(to), uint64(i))
		return nil
	}
	u, err := strconv.ParseUint(s, 10, bits)
	if err != nil {
		return bad
	}
	cast.PutUint(to, len(to), u)
	return nil
}

// putFloat puts a number into a sample of a floating-point type. NaN is the quiet one of the specification of version 3
// ("Fill value"), which numpy writes, too.
func putFloat(to []byte, f float64, t chunk.DType) {
	clear(to)
	copy(to, (&chunk.Index{DType: t, NoData: &f}).NoDataSample()) // which is nil if all its bytes are 0
}

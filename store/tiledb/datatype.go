package tiledb

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// Datatype is the type of the values of an attribute or of coordinates. The format defines the numbers.
type Datatype uint8

// Datatypes. Those after DatetimeAttosecond are not in format 3.
const (
	Int32 Datatype = iota
	Int64
	Float32
	Float64
	Char
	Int8
	Uint8
	Int16
	Uint16
	Uint32
	Uint64
	StringASCII
	StringUTF8
	StringUTF16
	StringUTF32
	StringUCS2
	StringUCS4
	Any
	DatetimeYear
	DatetimeMonth
	DatetimeWeek
	DatetimeDay
	DatetimeHour
	DatetimeMinute
	DatetimeSecond
	DatetimeMillisecond
	DatetimeMicrosecond
	DatetimeNanosecond
	DatetimePicosecond
	DatetimeFemtosecond
	DatetimeAttosecond
	TimeHour
	TimeMinute
	TimeSecond
	TimeMillisecond
	TimeMicrosecond
	TimeNanosecond
	TimePicosecond
	TimeFemtosecond
	TimeAttosecond
	Blob
	Bool
	GeometryWKB
	GeometryWKT
	numDatatypes
)

// numOfFormat3 is the number of datatypes in format 3.
const numOfFormat3 = DatetimeAttosecond + 1

var datatypes = [numDatatypes]struct {
	name string
	size int
	kind filter.Kind
}{
	Int32: {"int32", 4, filter.Signed}, Int64: {"int64", 8, filter.Signed},
	Float32: {"float32", 4, filter.Float}, Float64: {"float64", 8, filter.Float},
	Char: {"char", 1, filter.Char}, Int8: {"int8", 1, filter.Signed}, Uint8: {"uint8", 1, filter.Unsigned},
	Int16: {"int16", 2, filter.Signed}, Uint16: {"uint16", 2, filter.Unsigned},
	Uint32: {"uint32", 4, filter.Unsigned}, Uint64: {"uint64", 8, filter.Unsigned},
	StringASCII: {"string_ascii", 1, filter.Char}, StringUTF8: {"string_utf8", 1, filter.Char},
	StringUTF16: {"string_utf16", 2, filter.Char}, StringUTF32: {"string_utf32", 4, filter.Char},
	StringUCS2: {"string_ucs2", 2, filter.Char}, StringUCS4: {"string_ucs4", 4, filter.Char},
	Any:          {"any", 1, filter.Char},
	DatetimeYear: {"datetime_year", 8, filter.Time}, DatetimeMonth: {"datetime_month", 8, filter.Time},
	DatetimeWeek: {"datetime_week", 8, filter.Time}, DatetimeDay: {"datetime_day", 8, filter.Time},
	DatetimeHour: {"datetime_hr", 8, filter.Time}, DatetimeMinute: {"datetime_min", 8, filter.Time},
	DatetimeSecond: {"datetime_sec", 8, filter.Time}, DatetimeMillisecond: {"datetime_ms", 8, filter.Time},
	DatetimeMicrosecond: {"datetime_us", 8, filter.Time}, DatetimeNanosecond: {"datetime_ns", 8, filter.Time},
	DatetimePicosecond: {"datetime_ps", 8, filter.Time}, DatetimeFemtosecond: {"datetime_fs", 8, filter.Time},
	DatetimeAttosecond: {"datetime_as", 8, filter.Time},
	TimeHour:           {"time_hr", 8, filter.Time}, TimeMinute: {"time_min", 8, filter.Time},
	TimeSecond: {"time_sec", 8, filter.Time}, TimeMillisecond: {"time_ms", 8, filter.Time},
	TimeMicrosecond: {"time_us", 8, filter.Time}, TimeNanosecond: {"time_ns", 8, filter.Time},
	TimePicosecond: {"time_ps", 8, filter.Time}, TimeFemtosecond: {"time_fs", 8, filter.Time},
	TimeAttosecond: {"time_as", 8, filter.Time},
	Blob:           {"blob", 1, filter.Unsigned}, Bool: {"bool", 1, filter.Unsigned},
	GeometryWKB: {"geom_wkb", 1, filter.Unsigned}, GeometryWKT: {"geom_wkt", 1, filter.Unsigned},
}

// Valid reports whether t is one of the constants above.
func (t Datatype) Valid() bool { return t < numDatatypes }

// Size returns the bytes of one value, or 0 for an invalid type.
func (t Datatype) Size() int {
	if !t.Valid() {
		return 0
	}
	return datatypes[t].size
}

// String returns TileDB's name of the type, in lower case.
func (t Datatype) String() string {
	if !t.Valid() {
		return "invalid"
	}
	return datatypes[t].name
}

// samples are the dtypes of numbers.
var samples = [numDatatypes]chunk.DType{Int8: chunk.Int8, Uint8: chunk.Uint8, Int16: chunk.Int16, Uint16: chunk.Uint16,
	Int32: chunk.Int32, Uint32: chunk.Uint32, Int64: chunk.Int64, Uint64: chunk.Uint64, Float32: chunk.Float32,
	Float64: chunk.Float64, Bool: chunk.Uint8}

// Sample returns the dtype of numbers of a type, or chunk.Invalid.
func (t Datatype) Sample() chunk.DType { return samples[t] }

// MarshalText writes the name (JSON).
func (t Datatype) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

func (t Datatype) kind() filter.Kind { return datatypes[t].kind }

// dimension reports whether a dimension of fixed length can have the type.
func (t Datatype) dimension() bool { return t.Valid() && t.kind() != filter.Char && t < Blob }

// text reports whether the type is one of strings, whose cells may have RLE or dictionaries of their
// own in later formats.
func (t Datatype) text() bool { return t == StringASCII || t == StringUTF8 }

// Real reports whether values are floating-point numbers.
func (t Datatype) Real() bool { return t.Valid() && t.kind() == filter.Float }

func (t Datatype) unsigned() bool { return t.kind() == filter.Unsigned }

// elem describes cells of n values to the filters.
func (t Datatype) elem(n int) filter.Elem {
	return filter.Elem{Kind: t.kind(), Size: t.Size(), Cell: n * t.Size()}
}

// fill returns the value of cells that were never written, little-endian. The values are TileDB's.
func (t Datatype) fill() []byte {
	data := make([]byte, t.Size())
	switch t.kind() {
	case filter.Signed, filter.Time:
		data[len(data)-1] = 0x80
	case filter.Unsigned:
		for i := range data {
			data[i] = 0xff
		}
	case filter.Float:
		if t == Float32 {
			binary.LittleEndian.PutUint32(data, 0x7fc00000)
		} else {
			binary.LittleEndian.PutUint64(data, 0x7ff8000000000000)
		}
	default:
		if t == Char {
			data[0] = 0x80
		}
	}
	return data
}

// Coord is a coordinate of any dimension type, in a form whose order as uint64 is the order of the values: integers
// with the sign bit flipped, and floating-point numbers with all bits flipped if they are negative. Thus boxes of all
// types share one comparison. Int, Float, ParseCoord and FormatCoord convert.
type Coord uint64

const signBit = 1 << 63

// CoordOf returns the coordinate of an integer, for dimensions of integer or datetime type.
func (t Datatype) CoordOf(v int64) Coord {
	if t.unsigned() {
		return Coord(v)
	}
	return Coord(uint64(v) ^ signBit)
}

// Int returns the integer of a coordinate of integer or datetime type. A uint64 above the largest int64 wraps around.
func (t Datatype) Int(c Coord) int64 {
	if t.unsigned() {
		return int64(c)
	}
	return int64(uint64(c) ^ signBit)
}

// CoordOfFloat returns the coordinate of a number, for dimensions of floating-point type.
func (t Datatype) CoordOfFloat(v float64) Coord {
	if t == Float32 {
		v = float64(float32(v))
	}
	return floatCoord(v)
}

// floatCoord maps -0 to 0, since both are the same coordinate, and NaN to the very end or the very beginning.
func floatCoord(v float64) Coord {
	bits := math.Float64bits(v + 0)
	if bits == signBit {
		bits = 0
	}
	if bits&signBit != 0 {
		return Coord(^bits)
	}
	return Coord(bits | signBit)
}

func (c Coord) float() float64 {
	if c&signBit != 0 {
		return math.Float64frombits(uint64(c) ^ signBit)
	}
	return math.Float64frombits(^uint64(c))
}

// Coord decodes the little-endian coordinate at the front of b.
func (t Datatype) Coord(b []byte) Coord {
	switch t {
	case Float32:
		return floatCoord(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	case Float64:
		return floatCoord(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	value := cast.Uint(b, t.Size())
	if t.unsigned() {
		return Coord(value)
	}
	shift := 64 - 8*t.Size()
	return t.CoordOf(int64(value<<shift) >> shift)
}

// store appends the encoded value of a coordinate, little-endian.
func (t Datatype) store(b []byte, c Coord) []byte {
	switch t {
	case StringASCII:
		return binary.BigEndian.AppendUint64(b, uint64(c))
	case Float32:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(c.float())))
	case Float64:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(c.float()))
	}
	value := uint64(c)
	if !t.unsigned() {
		value ^= signBit
	}
	var encoded [8]byte
	binary.LittleEndian.PutUint64(encoded[:], value)
	return append(b, encoded[:t.Size()]...)
}

// largest returns the largest coordinate of the type.
func (t Datatype) largest() Coord {
	switch {
	case t == StringASCII:
		return math.MaxUint64
	case t.Real():
		return floatCoord(math.Inf(1))
	case t.unsigned():
		return Coord(math.MaxUint64 >> (64 - 8*t.Size()))
	}
	return t.CoordOf(math.MaxInt64 >> (64 - 8*t.Size()))
}

// ParseCoord parses a coordinate: an integer, or a number for floating-point dimensions.
func (t Datatype) ParseCoord(s string) (Coord, error) {
	if t == StringASCII {
		return parseTextCoord(s)
	}
	if !t.dimension() {
		return 0, fmt.Errorf("no dimension has the type %v", t)
	}
	var coord Coord
	var err error
	bits := 8 * t.Size()
	switch {
	case t.Real():
		var number float64
		number, err = strconv.ParseFloat(s, bits)
		coord = t.CoordOfFloat(number)
	case t.unsigned():
		var number uint64
		number, err = strconv.ParseUint(s, 10, bits)
		coord = Coord(number)
	default:
		var number int64
		number, err = strconv.ParseInt(s, 10, bits)
		coord = t.CoordOf(number)
	}
	if err != nil || nan(t, coord) {
		return 0, fmt.Errorf("%q is not a number of type %v", s, t)
	}
	return coord, nil
}

// FormatCoord is the inverse of ParseCoord.
func (t Datatype) FormatCoord(c Coord) string {
	switch {
	case t == StringASCII:
		return formatTextCoord(c)
	case t.Real():
		return strconv.FormatFloat(c.float(), 'g', -1, 8*t.Size())
	case t.unsigned():
		return strconv.FormatUint(uint64(c), 10)
	}
	return strconv.FormatInt(int64(uint64(c)^signBit), 10)
}

package ifd

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// Value holds the values of one tag. The zero Value is a missing tag.
type Value struct {
	Type Type
	Off  int64 // of the first value in the file

	b     []byte
	order binary.ByteOrder
}

// Len returns the number of values, 0 for a missing tag.
func (v Value) Len() int {
	if v.Type == 0 {
		return 0
	}
	return len(v.b) / v.Type.Size()
}

// IsInt reports whether the values are integers. Signed types count, because some writers use them for
// offsets and sizes.
func (v Value) IsInt() bool {
	switch v.Type {
	case Byte, Short, Long, Long8, IFD, IFD8, SByte, SShort, SLong, SLong8:
		return true
	}
	return false
}

// Uint returns integer i. A negative integer becomes more than math.MaxInt64, which no offset or size is.
func (v Value) Uint(i int) uint64 {
	switch v.Type {
	case SByte:
		return uint64(int64(int8(v.b[i])))
	case SShort:
		return uint64(int64(int16(v.order.Uint16(v.b[2*i:]))))
	case SLong:
		return uint64(int64(int32(v.order.Uint32(v.b[4*i:]))))
	}
	switch v.Type.Size() {
	case 1:
		return uint64(v.b[i])
	case 2:
		return uint64(v.order.Uint16(v.b[2*i:]))
	case 4:
		return uint64(v.order.Uint32(v.b[4*i:]))
	}
	return v.order.Uint64(v.b[8*i:])
}

// Shorts returns the low 16 bits of integers; nil for a missing tag.
func (v Value) Shorts() (shorts []uint16) {
	for i := range v.Len() {
		shorts = append(shorts, uint16(v.Uint(i)))
	}
	return shorts
}

// IsFloat reports whether the values are FLOAT or DOUBLE.
func (v Value) IsFloat() bool { return v.Type == Float || v.Type == Double }

// Float returns value i of FLOAT or DOUBLE values.
func (v Value) Float(i int) float64 {
	if v.Type == Float {
		return float64(math.Float32frombits(v.order.Uint32(v.b[4*i:])))
	}
	return math.Float64frombits(v.order.Uint64(v.b[8*i:]))
}

// Floats returns FLOAT or DOUBLE values; nil for other types.
func (v Value) Floats() (floats []float64) {
	for i := 0; v.IsFloat() && i < v.Len(); i++ {
		floats = append(floats, v.Float(i))
	}
	return floats
}

// Number returns value i of integers, floats or fractions as libtiff converts it. It is 0 for a fraction with the
// denominator 0, and for other types.
func (v Value) Number(i int) float32 {
	switch {
	case v.IsFloat():
		return float32(v.Float(i))
	case v.Type == Rational || v.Type == SRational:
		numerator, denominator := v.order.Uint32(v.b[8*i:]), v.order.Uint32(v.b[8*i+4:])
		switch {
		case denominator == 0:
			return 0
		case v.Type == SRational:
			return float32(int32(numerator)) / float32(int32(denominator))
		}
		return float32(numerator) / float32(denominator)
	case v.IsInt():
		return float32(int64(v.Uint(i)))
	}
	return 0
}

// Text returns the values of an ASCII tag up to the first NUL, "" for other types.
func (v Value) Text() string {
	if v.Type != ASCII {
		return ""
	}
	text, _, _ := strings.Cut(string(v.b), "\x00")
	return text
}

// Bytes returns the bytes of the values, little-endian whatever the byte order of the file. They may share memory with
// the File, and must not be changed.
func (v Value) Bytes() []byte {
	size := v.Type.Size()
	if v.Type == Rational || v.Type == SRational {
		size /= 2 // two numbers
	}
	if v.order != binary.BigEndian || size < 2 {
		return v.b
	}
	data := slices.Clone(v.b)
	for i := 0; i < len(data); i += size {
		slices.Reverse(data[i : i+size])
	}
	return data
}

// Part names a tag for an error: "ifd 0 tag 324".
func (d *Directory) Part(tag uint16) string {
	return "ifd " + strconv.Itoa(d.Index) + " tag " + strconv.Itoa(int(tag))
}

// valueBytes returns the size of an entry's values, checked against the file.
func (f *File) valueBytes(d *Directory, e *Entry) (int64, error) {
	size := e.Type.Size()
	if size == 0 {
		return 0, fault.New(fault.Corrupt, d.Part(e.Tag), "type %d does not exist", e.Type)
	}
	if e.Off < 0 || e.Off > f.Size() || e.Count > uint64(f.Size()-e.Off)/uint64(size) {
		return 0, fault.At(fault.Corrupt, d.Part(e.Tag), e.Off, "%d values reach past the end of the file", e.Count)
	}
	return int64(e.Count) * int64(size), nil
}

package kernel

// Num is the type of a real number in memory, little-endian.
type Num uint8

// Numbers.
const (
	None Num = iota // not a real number
	U8
	U16
	U32
	U64
	I8
	I16
	I32
	I64
	F16
	F32
	F64
	BF16
	numNums
)

var numSizes = [numNums]uint8{U8: 1, U16: 2, U32: 4, U64: 8, I8: 1, I16: 2, I32: 4, I64: 8, F16: 2, F32: 4,
	F64: 8, BF16: 2}

// Size returns the bytes of one number, 0 for None.
func (t Num) Size() int { return int(numSizes[t]) }

// IsFloat reports whether t is a floating-point type.
func (t Num) IsFloat() bool { return t == F16 || t == F32 || t == F64 || t == BF16 }

type real interface {
	uint8 | uint16 | uint32 | uint64 | int8 | int16 | int32 | int64 | float32 | float64
}

type unsigned interface {
	uint8 | uint16 | uint32 | uint64
}

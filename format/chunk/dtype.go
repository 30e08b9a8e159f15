package chunk

import "github.com/chaski-eo/chaski/format/dtype"

// DType is the type of one sample (one band of one pixel).
type DType = dtype.Type

// The types of package dtype.
const (
	Invalid        = dtype.Invalid
	Uint8          = dtype.Uint8
	Uint16         = dtype.Uint16
	Uint32         = dtype.Uint32
	Uint64         = dtype.Uint64
	Int8           = dtype.Int8
	Int16          = dtype.Int16
	Int32          = dtype.Int32
	Int64          = dtype.Int64
	Float16        = dtype.Float16
	Float32        = dtype.Float32
	Float64        = dtype.Float64
	Complex64      = dtype.Complex64
	Complex128     = dtype.Complex128
	ComplexInt16   = dtype.ComplexInt16
	ComplexInt32   = dtype.ComplexInt32
	ComplexFloat16 = dtype.ComplexFloat16
	BFloat16       = dtype.BFloat16
	Uint1          = dtype.Uint1
	Uint2          = dtype.Uint2
	Uint4          = dtype.Uint4
	Int2           = dtype.Int2
	Int4           = dtype.Int4
	Float8E4M3FN   = dtype.Float8E4M3FN
	Float8E5M2     = dtype.Float8E5M2
	Float8E8M0FNU  = dtype.Float8E8M0FNU
	Float6E2M3FN   = dtype.Float6E2M3FN
	Float6E3M2FN   = dtype.Float6E3M2FN
	Float4E2M1FN   = dtype.Float4E2M1FN
)

// ParseDType returns the type with a numpy name.
func ParseDType(name string) (DType, error) { return dtype.Parse(name) }

package geozl

import "github.com/chaski-eo/chaski/codec/openzl"

// Ids of the codecs (core/include/geozl/ctids.h).
const (
	DeltaW               = 0x72D701
	DeltaN               = 0x72D702
	Planar               = 0x72D703
	Deinterleave         = 0x72D704
	Med                  = 0x72D705
	Average              = 0x72D706
	WPStatic             = 0x72D707
	BinOffset            = 0x72D708
	IntMult              = 0x72D709
	FloatQuant           = 0x72D70A
	FloatMult            = 0x72D70B
	Nodata               = 0x72D70C
	Pfor                 = 0x72D70D
	BlockedTransposeZstd = 0x72D70E
	PlanarZigzag         = 0x72D70F
	PlanarZigzagPfor     = 0x72D710
	MedZigzag            = 0x72D711
	PlanarZigzagPivco    = 0x72D712
	QuantLinear          = 0x72D781
	QuantLog             = 0x72D782
	QuantSqrt            = 0x72D783
)

// Shorthands for signatures.
var (
	serial        = []openzl.Type{openzl.Serial}
	numeric       = []openzl.Type{openzl.Numeric}
	numericBoth   = []openzl.Type{openzl.Numeric, openzl.Numeric}
	numericSerial = []openzl.Type{openzl.Numeric, openzl.Serial}
)

// Codecs returns a new registry of all codecs. Decoding does not change it, so that several decoders may
// share it.
func Codecs() map[uint32]*openzl.CustomCodec {
	register := func(name string, decode func(*openzl.Call) error) *openzl.CustomCodec {
		return &openzl.CustomCodec{Name: "geozl." + name, In: numeric, Out: numeric, Decode: decode}
	}
	two := func(name string, decode func(*openzl.Call) error) *openzl.CustomCodec {
		return &openzl.CustomCodec{Name: "geozl." + name, In: numericBoth, Out: numeric, Decode: decode}
	}
	packed := func(name string, decode func(*openzl.Call) error) *openzl.CustomCodec {
		return &openzl.CustomCodec{Name: "geozl." + name, In: serial, Out: numeric, Decode: decode}
	}
	return map[uint32]*openzl.CustomCodec{
		DeltaW:               register("delta_w", decodeDeltaW),
		DeltaN:               register("delta_n", decodeDeltaN),
		Planar:               register("planar", decodePlanar),
		Deinterleave:         two("deinterleave", decodeDeinterleave),
		Med:                  register("med", decodeMed),
		Average:              register("average", decodeAverage),
		WPStatic:             register("wp_static", decodeWPStatic),
		BinOffset:            two("binoffset", decodeBinOffset),
		IntMult:              two("intmult", decodeIntMult),
		FloatQuant:           two("floatquant", decodeFloatQuant),
		FloatMult:            two("floatmult", decodeFloatMult),
		Nodata:               two("nodata", decodeNodata),
		Pfor:                 packed("pfor", decodePfor),
		BlockedTransposeZstd: packed("blocked_transpose_zstd", decodeBlocked),
		PlanarZigzag:         register("planar_zigzag", decodePlanarZigzag),
		PlanarZigzagPfor:     packed("planar_zigzag_pfor", decodePlanarZigzagPfor),
		MedZigzag:            register("med_zigzag", decodeMedZigzag),
		PlanarZigzagPivco: {Name: "geozl.planar_zigzag_pivco", In: numericSerial, Out: numeric,
			Decode: decodePlanarZigzagPivco},
		QuantLinear: register("quant_linear", decodeQuantLinear),
		QuantLog:    register("quant_log", decodeQuantLog),
		QuantSqrt:   register("quant_sqrt", decodeQuantSqrt),
	}
}

package geozl

import "github.com/chaski-eo/chaski/format/codec/openzl"

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

// Codecs returns a new registry of all codecs. Decoding does not change it, so several decoders may
// share it.
func Codecs() map[uint32]*openzl.CustomCodec {
	codec := func(name string, in []openzl.Type, decode func(*openzl.Call) error) *openzl.CustomCodec {
		return &openzl.CustomCodec{Name: "geozl." + name, In: in, Out: numeric, Decode: decode}
	}
	return map[uint32]*openzl.CustomCodec{
		DeltaW:               codec("delta_w", numeric, decodeDeltaW),
		DeltaN:               codec("delta_n", numeric, deltaN.decode),
		Planar:               codec("planar", numeric, planar.decode),
		Deinterleave:         codec("deinterleave", numericBoth, decodeDeinterleave),
		Med:                  codec("med", numeric, med.decode),
		Average:              codec("average", numeric, avg.decode),
		WPStatic:             codec("wp_static", numeric, decodeWPStatic),
		BinOffset:            codec("binoffset", numericBoth, decodeBinOffset),
		IntMult:              codec("intmult", numericBoth, decodeIntMult),
		FloatQuant:           codec("floatquant", numericBoth, decodeFloatQuant),
		FloatMult:            codec("floatmult", numericBoth, decodeFloatMult),
		Nodata:               codec("nodata", numericBoth, decodeNodata),
		Pfor:                 codec("pfor", serial, decodePfor),
		BlockedTransposeZstd: codec("blocked_transpose_zstd", serial, decodeBlocked),
		PlanarZigzag:         codec("planar_zigzag", numeric, planarZigzag.decode),
		PlanarZigzagPfor:     codec("planar_zigzag_pfor", serial, decodePlanarZigzagPfor),
		MedZigzag:            codec("med_zigzag", numeric, medZigzag.decode),
		PlanarZigzagPivco:    codec("planar_zigzag_pivco", numericSerial, decodePlanarZigzagPivco),
		QuantLinear:          codec("quant_linear", numeric, decodeQuantLinear),
		QuantLog:             codec("quant_log", numeric, decodeQuantLog),
		QuantSqrt:            codec("quant_sqrt", numeric, decodeQuantSqrt),
	}
}

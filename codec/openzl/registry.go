package openzl

// numStandard bounds the ids of standard codecs.
const numStandard = 128

// codec is a standard codec as the decoder sees it: in are the types of the streams it takes, out
// those of the streams it regenerates. (The encoder's view is the other way round, and so are the
// names of the conversions: convert_num_to_serial_le makes numbers from bytes here.)
type codec struct {
	name     string
	in       []Type
	vars     []Type // types its variable inputs may have; nil if it has none
	out      []Type
	many     bool  // the last of out may occur any number of times
	alias    bool  // its output is, as a rule, the bytes of its input as they are
	min, max uint8 // format versions it occurs in; max 0 stands for all later ones
	decode   func(*call) error
}

// Shorthands for signatures.
var (
	serial        = []Type{Serial}
	structs       = []Type{Struct}
	numeric       = []Type{Numeric}
	stringOnly    = []Type{String}
	serialSerial  = []Type{Serial, Serial}
	serialNumeric = []Type{Serial, Numeric}
	numericSerial = []Type{Numeric, Serial}
	numericBoth   = []Type{Numeric, Numeric}
	structNumeric = []Type{Struct, Numeric}
	stringNumeric = []Type{String, Numeric}
	serial4       = []Type{Serial, Serial, Serial, Serial}
	serial8       = []Type{Serial, Serial, Serial, Serial, Serial, Serial, Serial, Serial}
)

// standard lists all standard codecs by id. One without decode is known by name only.
var standard = [numStandard]codec{
	1:  {name: "delta_int", in: numeric, out: numeric, decode: decodeDelta},
	2:  {name: "transpose", in: structs, out: structs, decode: decodeTranspose},
	3:  {name: "zigzag", in: numeric, out: numeric, decode: decodeZigzag},
	4:  {name: "transpose_split", vars: serial, out: structs, min: 11, decode: decodeTransposeSplit},
	5:  {name: "convert_serial_to_struct", in: structs, out: serial, alias: true, decode: decodeToSerial},
	6:  {name: "convert_struct_to_serial", in: serial, out: structs, alias: true, decode: decodeSerialToStruct},
	7:  {name: "convert_struct_to_num_le", in: numeric, out: structs, alias: true, decode: decodeSameShape},
	8:  {name: "convert_num_to_struct_le", in: structs, out: numeric, alias: true, decode: decodeSameShape},
	9:  {name: "convert_serial_to_num_le", in: numeric, out: serial, alias: true, decode: decodeToSerial},
	10: {name: "convert_num_to_serial_le", in: serial, out: numeric, alias: true, decode: decodeSerialToNum},
	11: {name: "convert_serial_string", in: stringOnly, out: serial, min: 10, decode: decodeToSerial},
	12: {name: "separate_string_components", in: serialNumeric, out: stringOnly, min: 10, decode: decodeJoinStrings},
	13: {name: "convert_struct_to_num_be", in: numeric, out: structs, min: 21, decode: decodeSwapToStruct},
	14: {name: "convert_serial_to_num_be", in: numeric, out: serial, min: 21, decode: decodeSwapToSerial},
	15: {name: "fse_deprecated", in: serial, out: serial, max: 14, decode: decodeFSE14},
	16: {name: "huffman_deprecated", in: serial, out: serial, max: 14, decode: decodeHuffman14},
	17: {name: "huffman_fixed_deprecated", in: serial, out: structs, max: 14, decode: decodeHuffmanFixed14},
	18: {name: "sentinel", in: numericBoth, out: numeric, min: 24, decode: decodeSentinel},
	19: {name: "lz", in: []Type{Serial, Numeric, Numeric, Numeric}, out: serial, min: 24, decode: decodeLZ},
	20: {name: "rolz", max: 12},
	21: {name: "fastlz", max: 12},
	22: {name: "zstd", in: serial, out: serial, decode: decodeZstd},
	23: {name: "zstd_fixed", in: serial, out: structs, max: 10, decode: decodeZstd},
	24: {name: "field_lz", in: []Type{Struct, Struct, Numeric, Numeric, Numeric}, out: structs, decode: decodeFieldLZ},
	25: {name: "quantize_offsets", in: numericSerial, out: numeric, decode: decodeQuantizeOffsets},
	26: {name: "quantize_lengths", in: numericSerial, out: numeric, decode: decodeQuantizeLengths},
	27: {name: "bitpack_serial", in: serial, out: serial, decode: decodeBitpack},
	28: {name: "bitpack_int", in: serial, out: numeric, decode: decodeBitpack},
	29: {name: "flatpack", in: serialSerial, out: serial, decode: decodeFlatpack},
	30: {name: "transpose_split2", in: serialSerial, out: structs, decode: decodeTransposeSplit},
	31: {name: "transpose_split4", in: serial4, out: structs, decode: decodeTransposeSplit},
	32: {name: "transpose_split8", in: serial8, out: structs, decode: decodeTransposeSplit},
	33: {name: "float_deconstruct", in: []Type{Struct, Serial}, out: numeric, decode: decodeFloatDeconstruct},
	34: {name: "bitunpack", in: numeric, out: serial, decode: decodeBitunpack},
	35: {name: "range_pack", in: numeric, out: numeric, decode: decodeRangePack},
	36: {name: "tokenize_fixed", in: structNumeric, out: structs, decode: decodeTokenize},
	37: {name: "tokenize_numeric", in: numericBoth, out: numeric, decode: decodeTokenize},
	38: {name: "tokenize_string", in: stringNumeric, out: stringOnly, min: 11, decode: decodeTokenizeString},
	40: {name: "splitn", vars: serial, out: serial, min: 9, decode: decodeSplitN},
	41: {name: "splitByStruct", vars: structs, out: serial, min: 9, decode: decodeSplitByStruct},
	42: {name: "dispatchN_byTag", in: numericBoth, vars: serial, out: serial, min: 9, decode: decodeDispatchN},
	43: {name: "merge_sorted", in: numericBoth, out: numeric, min: 9, decode: decodeMergeSorted},
	44: {name: "constant_serial", in: serial, out: serial, min: 11, decode: decodeConstant},
	45: {name: "constant_fixed", in: structs, out: structs, min: 11, decode: decodeConstant},
	46: {name: "prefix", in: stringNumeric, out: stringOnly, min: 11, decode: decodePrefix},
	47: {name: "splitn_struct", vars: structs, out: structs, min: 14, decode: decodeSplitN},
	48: {name: "splitn_num", vars: numeric, out: numeric, min: 14, decode: decodeSplitN},
	49: {name: "fse_v2", in: numericSerial, out: serial, min: 15, decode: decodeFSE},
	50: {name: "huffman_v2", in: numericSerial, out: serial, min: 15, decode: decodeHuffman},
	51: {name: "huffman_struct_v2", in: numericSerial, out: structs, min: 15, decode: decodeHuffmanStruct},
	52: {name: "fse_ncount", in: serial, out: numeric, min: 15, decode: decodeFSECounts},
	53: {name: "divide_by", in: numeric, out: numeric, min: 16, decode: decodeDivideBy},
	54: {name: "dispatch_string", in: numeric, vars: stringOnly, out: stringOnly, min: 16, decode: decodeDispatchString},
	55: {name: "concat_serial", in: numericSerial, out: serial, many: true, min: 16, decode: decodeConcat},
	56: {name: "dedup_num", in: numeric, out: numeric, many: true, min: 16, decode: decodeDedup},
	57: {name: "concat_num", in: numericBoth, out: numeric, many: true, min: 17, decode: decodeConcat},
	58: {name: "concat_struct", in: []Type{Numeric, Struct}, out: structs, many: true, min: 17, decode: decodeConcat},
	59: {name: "concat_string", in: []Type{Numeric, String}, out: stringOnly, many: true, min: 18, decode: decodeConcatString},
	60: {name: "parse_int", in: numeric, out: stringOnly, min: 19, decode: decodeParseInt},
	61: {name: "interleave_string", in: stringOnly, out: stringOnly, many: true, min: 20, decode: decodeInterleave},
	62: {name: "lz4", in: serial, out: serial, min: 23, decode: decodeLZ4},
	63: {name: "bitSplit", vars: numeric, out: numeric, min: 24, decode: decodeBitSplit},
	64: {name: "partition", in: numericSerial, out: numeric, min: 24, decode: decodePartition},
	65: {name: "mux_lengths", in: serialNumeric, out: numericBoth, min: 24, decode: decodeMuxLengths},
	66: {name: "sparse_num", in: numericBoth, out: numeric, min: 26, decode: decodeSparse},
	67: {name: "pivco_huffman", min: 27},
}

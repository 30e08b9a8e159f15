package codecs

// NumStandard bounds the ids of standard codecs: the format has 7 bits for them.
const NumStandard = 128

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

// Standard lists all standard codecs by id. Those without Decode are known by name only.
var Standard = [NumStandard]Codec{
	1:  {Name: "delta_int", In: numeric, Out: numeric, Decode: decodeDelta},
	2:  {Name: "transpose", In: structs, Out: structs, Decode: decodeTranspose},
	3:  {Name: "zigzag", In: numeric, Out: numeric, Decode: decodeZigzag},
	4:  {Name: "transpose_split", Vars: serial, Out: structs, Min: 11, Decode: decodeTransposeSplit},
	5:  {Name: "convert_serial_to_struct", In: structs, Out: serial, Alias: true, Decode: decodeToSerial},
	6:  {Name: "convert_struct_to_serial", In: serial, Out: structs, Alias: true, Decode: decodeSerialToStruct},
	7:  {Name: "convert_struct_to_num_le", In: numeric, Out: structs, Alias: true, Decode: decodeSameShape},
	8:  {Name: "convert_num_to_struct_le", In: structs, Out: numeric, Alias: true, Decode: decodeSameShape},
	9:  {Name: "convert_serial_to_num_le", In: numeric, Out: serial, Alias: true, Decode: decodeToSerial},
	10: {Name: "convert_num_to_serial_le", In: serial, Out: numeric, Alias: true, Decode: decodeSerialToNum},
	11: {Name: "convert_serial_string", In: stringOnly, Out: serial, Min: 10, Decode: decodeToSerial},
	12: {Name: "separate_string_components", In: serialNumeric, Out: stringOnly, Min: 10, Decode: decodeJoinStrings},
	13: {Name: "convert_struct_to_num_be", In: numeric, Out: structs, Min: 21, Decode: decodeSwapToStruct},
	14: {Name: "convert_serial_to_num_be", In: numeric, Out: serial, Min: 21, Decode: decodeSwapToSerial},
	15: {Name: "fse_deprecated", In: serial, Out: serial, Max: 14, Decode: decodeFSE14},
	16: {Name: "huffman_deprecated", In: serial, Out: serial, Max: 14, Decode: decodeHuffman14},
	17: {Name: "huffman_fixed_deprecated", In: serial, Out: structs, Max: 14, Decode: decodeHuffmanFixed14},
	18: {Name: "sentinel", In: numericBoth, Out: numeric, Min: 24, Decode: decodeSentinel},
	19: {Name: "lz", In: []Type{Serial, Numeric, Numeric, Numeric}, Out: serial, Min: 24, Decode: decodeLZ},
	20: {Name: "rolz", In: serial, Out: serial, Max: 12, Decode: decodeRolz},
	21: {Name: "fastlz", In: serial, Out: serial, Max: 12, Decode: decodeFastLZ},
	22: {Name: "zstd", In: serial, Out: serial, Decode: decodeZstd},
	23: {Name: "zstd_fixed", In: serial, Out: structs, Max: 10, Decode: decodeZstd},
	24: {Name: "field_lz", In: []Type{Struct, Struct, Numeric, Numeric, Numeric}, Out: structs, Decode: decodeFieldLZ},
	25: {Name: "quantize_offsets", In: numericSerial, Out: numeric, Decode: decodeQuantizeOffsets},
	26: {Name: "quantize_lengths", In: numericSerial, Out: numeric, Decode: decodeQuantizeLengths},
	27: {Name: "bitpack_serial", In: serial, Out: serial, Decode: decodeBitpack},
	28: {Name: "bitpack_int", In: serial, Out: numeric, Decode: decodeBitpack},
	29: {Name: "flatpack", In: serialSerial, Out: serial, Decode: decodeFlatpack},
	30: {Name: "transpose_split2", In: serialSerial, Out: structs, Decode: decodeTransposeSplit},
	31: {Name: "transpose_split4", In: serial4, Out: structs, Decode: decodeTransposeSplit},
	32: {Name: "transpose_split8", In: serial8, Out: structs, Decode: decodeTransposeSplit},
	33: {Name: "float_deconstruct", In: []Type{Struct, Serial}, Out: numeric, Decode: decodeFloatDeconstruct},
	34: {Name: "bitunpack", In: numeric, Out: serial, Decode: decodeBitunpack},
	35: {Name: "range_pack", In: numeric, Out: numeric, Decode: decodeRangePack},
	36: {Name: "tokenize_fixed", In: structNumeric, Out: structs, Decode: decodeTokenize},
	37: {Name: "tokenize_numeric", In: numericBoth, Out: numeric, Decode: decodeTokenize},
	38: {Name: "tokenize_string", In: stringNumeric, Out: stringOnly, Min: 11, Decode: decodeTokenizeString},
	40: {Name: "splitn", Vars: serial, Out: serial, Min: 9, Decode: decodeSplitN},
	41: {Name: "splitByStruct", Vars: structs, Out: serial, Min: 9, Decode: decodeSplitByStruct},
	42: {Name: "dispatchN_byTag", In: numericBoth, Vars: serial, Out: serial, Min: 9, Decode: decodeDispatchN},
	43: {Name: "merge_sorted", In: numericBoth, Out: numeric, Min: 9, Decode: decodeMergeSorted},
	44: {Name: "constant_serial", In: serial, Out: serial, Min: 11, Decode: decodeConstant},
	45: {Name: "constant_fixed", In: structs, Out: structs, Min: 11, Decode: decodeConstant},
	46: {Name: "prefix", In: stringNumeric, Out: stringOnly, Min: 11, Decode: decodePrefix},
	47: {Name: "splitn_struct", Vars: structs, Out: structs, Min: 14, Decode: decodeSplitN},
	48: {Name: "splitn_num", Vars: numeric, Out: numeric, Min: 14, Decode: decodeSplitN},
	49: {Name: "fse_v2", In: numericSerial, Out: serial, Min: 15, Decode: decodeFSE},
	50: {Name: "huffman_v2", In: numericSerial, Out: serial, Min: 15, Decode: decodeHuffman},
	51: {Name: "huffman_struct_v2", In: numericSerial, Out: structs, Min: 15, Decode: decodeHuffmanStruct},
	52: {Name: "fse_ncount", In: serial, Out: numeric, Min: 15, Decode: decodeFSECounts},
	53: {Name: "divide_by", In: numeric, Out: numeric, Min: 16, Decode: decodeDivideBy},
	54: {Name: "dispatch_string", In: numeric, Vars: stringOnly, Out: stringOnly, Min: 16,
		Decode: decodeDispatchString},
	55: {Name: "concat_serial", In: numericSerial, Out: serial, LastRepeats: true, Min: 16, Decode: decodeConcat},
	56: {Name: "dedup_num", In: numeric, Out: numeric, LastRepeats: true, Min: 16, Decode: decodeDedup},
	57: {Name: "concat_num", In: numericBoth, Out: numeric, LastRepeats: true, Min: 17, Decode: decodeConcat},
	58: {Name: "concat_struct", In: []Type{Numeric, Struct}, Out: structs, LastRepeats: true, Min: 17,
		Decode: decodeConcat},
	59: {Name: "concat_string", In: []Type{Numeric, String}, Out: stringOnly, LastRepeats: true, Min: 18,
		Decode: decodeConcatString},
	60: {Name: "parse_int", In: numeric, Out: stringOnly, Min: 19, Decode: decodeParseInt},
	61: {Name: "interleave_string", In: stringOnly, Out: stringOnly, LastRepeats: true, Min: 20,
		Decode: decodeInterleave},
	62: {Name: "lz4", In: serial, Out: serial, Min: 23, Decode: decodeLZ4},
	63: {Name: "bitSplit", Vars: numeric, Out: numeric, Min: 24, Decode: decodeBitSplit},
	64: {Name: "partition", In: numericSerial, Out: numeric, Min: 24, Decode: decodePartition},
	65: {Name: "mux_lengths", In: serialNumeric, Out: numericBoth, Min: 24, Decode: decodeMuxLengths},
	66: {Name: "sparse_num", In: numericBoth, Out: numeric, Min: 26, Decode: decodeSparse},
	67: {Name: "pivco_huffman", In: numericSerial, Out: serial, Min: 27, Decode: decodePivco},
}

package shards

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/picture/npy"
	"github.com/chaski-eo/chaski/tables"
)

// layout says how the columns of a sample are stored.
type layout struct {
	names     []string
	encodings []encoding
	variable  int // columns without a size of their own
	id        int // the column of ids, -1 without
}

// encoding names how MDS stores one column.
type encoding struct {
	size   int64 // -1 if each sample has its own
	value  func(b []byte) (any, error)
	typ    tables.Type    // of numbers; zero: each value says its own
	array  *arrayEncoding // of arrays, which are files with a header
	isFile bool
}

// arrayEncoding is the encoding ndarray, whose dtype and shape stand in the index or before each array.
type arrayEncoding struct {
	dtype chunk.DType // Invalid: before each array
	shape []int       // nil: before each array
}

// newLayout parses the columns of a shard.
func newLayout(s *indexShard) (*layout, error) {
	l := &layout{names: s.Names, id: -1}
	seen := map[string]bool{}
	for i, name := range s.Names {
		encoding, err := parseEncoding(s.Encodings[i], s.Sizes[i])
		if err == nil && (seen[name] || strings.Trim(name, ".") == "" || strings.ContainsAny(name, "/\x00")) {
			err = fault.New(fault.Corrupt, "", fault.NoOffset,
				"its name is empty, only dots, there twice, or has / or NUL")
		}
		if err != nil {
			return nil, fault.WithPart(err, fmt.Sprintf("column %.200q", name), fault.NoOffset)
		}
		seen[name] = true
		if encoding.size < 0 {
			l.variable++
		}
		if name == columnID && !encoding.isFile {
			l.id = i
		}
		l.encodings = append(l.encodings, encoding)
	}
	return l, nil
}

// numberOf returns the type of an encoding that is a number of fixed size, and what decodes one.
func numberOf(name string) (typ tables.Type, value func(b []byte) (any, error), ok bool) {
	if name == "int" {
		name = "int64"
	}
	dtype, err := chunk.ParseDType(name)
	if err != nil || arrayCode(dtype) == 0 {
		return typ, nil, false
	}
	typ = tables.Type{Kind: tables.Int64, Bits: uint8(8 * dtype.Size())}
	switch name[0] {
	case 'u':
		typ.Kind = tables.Uint64
	case 'f':
		typ.Kind = tables.Float64
	}
	return typ, func(b []byte) (any, error) {
		var wide [8]byte
		copy(wide[:], b)
		bits := binary.LittleEndian.Uint64(wide[:])
		switch {
		case dtype == chunk.Float16:
			return float64(kernel.Float32FromFloat16(uint16(bits))), nil
		case dtype == chunk.Float32:
			return float64(math.Float32frombits(uint32(bits))), nil
		case dtype == chunk.Float64:
			return math.Float64frombits(bits), nil
		case typ.Kind == tables.Uint64:
			return bits, nil
		}
		shift := 64 - typ.Bits
		return int64(bits) << shift >> shift, nil
	}, true
}

// fileEncodings are encodings of bytes that are files, or that chaski hands out as they are.
var fileEncodings = []string{"bytes", "png", "jpeg", "jpeg_array", "jpegarray", "pil", "pkl", "list[pil]", "list[jpeg]",
	"list[png]"}

// parseEncoding parses the encoding of a column, whose size the index may state.
func parseEncoding(name string, size *int64) (encoding, error) {
	e, err := encodingOf(name)
	if err != nil || size == nil && e.size < 0 || size != nil && *size == e.size {
		return e, err
	}
	stated := "null"
	if size != nil {
		stated = strconv.FormatInt(*size, 10)
	}
	return e, fault.New(fault.Corrupt, "", fault.NoOffset, "its encoding is %q, and its size %s", name, stated)
}

// encodingOf parses an encoding.
func encodingOf(name string) (encoding, error) {
	e := encoding{size: -1}
	kind, rest, _ := strings.Cut(name, ":")
	typ, decode, isNumber := numberOf(name)
	switch {
	case isNumber:
		e.size, e.typ, e.value = int64(typ.Bits/8), typ, decode
	case kind == "ndarray":
		e.isFile, e.array = true, &arrayEncoding{}
		if err := e.array.parse(rest); err != nil {
			return e, err
		}
		if e.array.dtype != chunk.Invalid && e.array.shape != nil {
			e.size = int64(e.array.dtype.Size())
			for _, k := range e.array.shape {
				if int64(k) > math.MaxInt64/e.size {
					return e, fault.New(fault.Limit, "", fault.NoOffset, "its encoding is %q", name)
				}
				e.size *= int64(k)
			}
		}
	case slices.Contains(fileEncodings, name):
		e.isFile = true
	case name == "str" || name == "str_decimal":
		e.value = text
	case name == "str_int" || name == "str_float":
		e.value = func(b []byte) (any, error) { return number(string(b)) }
	case name == "json":
		e.value = parseJSON
	default:
		return e, fault.New(fault.Unsupported, "", fault.NoOffset, "its encoding is %q", name)
	}
	return e, nil
}

// maxAxes is NumPy's limit, but for one that a byte cannot say.
const maxAxes = 63

// parse reads "DTYPE:SHAPE", "DTYPE" or "".
func (a *arrayEncoding) parse(s string) (err error) {
	dtype, shape, given := strings.Cut(s, ":")
	if dtype != "" {
		if a.dtype, err = chunk.ParseDType(dtype); err != nil || arrayCode(a.dtype) == 0 {
			return fault.New(fault.Unsupported, "", fault.NoOffset, "arrays of dtype %q", dtype)
		}
	}
	if !given {
		return nil
	}
	axes := strings.Split(shape, ",")
	for _, text := range axes {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 || len(axes) > maxAxes {
			return fault.New(fault.Corrupt, "", fault.NoOffset, "arrays of shape %q", shape)
		}
		a.shape = append(a.shape, int(n))
	}
	return nil
}

// arrayCodes are the numbers of dtypes before an array.
var arrayCodes = map[byte]chunk.DType{8: chunk.Uint8, 9: chunk.Int8, 16: chunk.Uint16, 17: chunk.Int16,
	18: chunk.Float16, 32: chunk.Uint32, 33: chunk.Int32, 34: chunk.Float32, 64: chunk.Uint64, 65: chunk.Int64,
	66: chunk.Float64}

// arrayCode returns the number of a dtype, 0 if arrays cannot have it.
func arrayCode(d chunk.DType) byte {
	for code, have := range arrayCodes {
		if have == d {
			return code
		}
	}
	return 0
}

// read reads what stands before an array of size bytes at an offset. It returns the header of a .npy file for it, and
// how many bytes were read.
func (a *arrayEncoding) read(w *window, off, size int64) (head string, n int64, err error) {
	bad := func(format string, args ...any) (string, int64, error) {
		return "", 0, fault.New(fault.Corrupt, "array", off, format, args...)
	}
	data, err := w.bytes(off, int(min(size, 2+8*maxAxes)))
	if err != nil {
		return "", 0, err
	}
	total := len(data)
	dtype, shape := a.dtype, a.shape
	if dtype == chunk.Invalid {
		if len(data) == 0 || arrayCodes[data[0]] == chunk.Invalid {
			return bad("its dtype is unknown")
		}
		dtype, data = arrayCodes[data[0]], data[1:]
	}
	if shape == nil {
		if len(data) == 0 || len(data)-1 < int(data[0]>>2)<<(data[0]&3) {
			return bad("it ends in its shape")
		}
		axes, each := int(data[0]>>2), 1<<(data[0]&3)
		data = data[1:]
		for range axes {
			var raw [8]byte
			copy(raw[:], data[:each])
			k := binary.LittleEndian.Uint64(raw[:])
			if k < 1 || k > math.MaxInt32 {
				return bad("an axis of %d", k)
			}
			shape, data = append(shape, int(k)), data[each:]
		}
	}
	n = int64(total - len(data))
	room := (size - n) / int64(dtype.Size())
	for _, k := range shape {
		room /= int64(k)
	}
	want := int64(dtype.Size())
	for _, k := range shape {
		if room > 0 {
			want *= int64(k)
		}
	}
	if room < 1 || want != size-n {
		return bad("of shape %d and dtype %s in %d bytes", shape, dtype, size-n)
	}
	made, err := npy.Header(dtype, shape)
	return string(made), n, err
}

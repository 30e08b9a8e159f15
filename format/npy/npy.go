// Package npy reads and writes the header of NumPy array files (NumPy Enhancement Proposal 1): version 1.0 is written,
// 1.0 to 3.0 are read. The data that follow are written as the little-endian bytes of the array in C order.
//
// Not supported: sample types that NumPy has no name for (complex integers, complex float16,
// bfloat16), and structures.
package npy

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
)

// descr has the name of each dtype in NumPy's array protocol.
var descr = map[chunk.DType]string{
	chunk.Uint8: "|u1", chunk.Uint16: "<u2", chunk.Uint32: "<u4", chunk.Uint64: "<u8",
	chunk.Int8: "|i1", chunk.Int16: "<i2", chunk.Int32: "<i4", chunk.Int64: "<i8",
	chunk.Float16: "<f2", chunk.Float32: "<f4", chunk.Float64: "<f8",
	chunk.Complex64: "<c8", chunk.Complex128: "<c16",
}

// The length of a header is a multiple of align. The NEP requires 64, so data can be memory-mapped for vector
// instructions.
const align = 64

// Header returns the header of an array. An error is of kind Unsupported: NumPy has no such type,
// or the shape does not fit a header of version 1.0 (some 3000 axes).
func Header(d chunk.DType, shape []int) ([]byte, error) {
	name, ok := descr[d]
	if !ok {
		return nil, fault.New(fault.Unsupported, "npy", "NumPy has no dtype for %s: use --format raw", d)
	}
	return HeaderOf(name, shape)
}

// HeaderOf is Header for a type by its name in NumPy's array protocol, such as "|b1" or "<U12".
func HeaderOf(name string, shape []int) ([]byte, error) {
	var dims strings.Builder
	for _, n := range shape {
		fmt.Fprintf(&dims, "%d, ", n)
	}
	// A tuple of one element needs its comma, as in Python; longer ones must not end in a space.
	inner := strings.TrimSuffix(dims.String(), " ")
	if len(shape) != 1 {
		inner = strings.TrimSuffix(inner, ",")
	}
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", name, inner)
	const prefix = 10
	total := (prefix + len(dict) + 1 + align - 1) / align * align
	if total-prefix > 1<<16-1 {
		return nil, fault.New(fault.Unsupported, "npy", "%d axes do not fit a header of version 1.0", len(shape))
	}
	head := append([]byte("\x93NUMPY\x01\x00"), 0, 0)
	binary.LittleEndian.PutUint16(head[8:], uint16(total-prefix))
	head = append(head, dict...)
	for len(head) < total-1 {
		head = append(head, ' ')
	}
	return append(head, '\n'), nil
}

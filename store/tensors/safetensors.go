package tensors

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/arrays"
)

// maxHeader bounds the JSON of a file in bytes: some 100,000 tensors.
const maxHeader = 16 << 20

// dtypes are the types of safetensors.
var dtypes = map[string]chunk.DType{"F64": chunk.Float64, "F32": chunk.Float32, "F16": chunk.Float16,
	"BF16": chunk.BFloat16, "I64": chunk.Int64, "I32": chunk.Int32, "I16": chunk.Int16, "I8": chunk.Int8,
	"U64": chunk.Uint64, "U32": chunk.Uint32, "U16": chunk.Uint16, "U8": chunk.Uint8, "BOOL": chunk.Uint8}

// safetensors reads the header of a file of safetensors: the length of a JSON object, that, and the samples.
func (f *file) safetensors(ctx context.Context) error {
	const lengthBytes = 8
	bad := func(text string, args ...any) error { return fault.At(fault.Corrupt, "header", 0, text, args...) }
	if f.stored.Size < lengthBytes {
		return bad("%d bytes are no file of tensors", f.stored.Size)
	}
	head, err := source.Read(ctx, f.r, 0, lengthBytes)
	if err != nil {
		return err
	}
	length := binary.LittleEndian.Uint64(head)
	switch room := uint64(f.stored.Size - lengthBytes); {
	case length > room:
		return bad("its %d bytes do not fit into the file's %d", length, f.stored.Size)
	case length > maxHeader:
		return fault.At(fault.Limit, "header", 0, "%d bytes, at most %d", length, maxHeader)
	}
	if err := f.Charge(ctx, 4*int64(length)); err != nil { // the text, its members, and what the arrays keep of them
		return err
	}
	text, err := source.Read(ctx, f.r, lengthBytes, int64(length))
	if err != nil {
		return err
	}
	object, _, err := arrays.DecodeObject(text)
	if err != nil {
		return err
	}
	begin := lengthBytes + int64(length)
	room := f.stored.Size - begin
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if name == "__metadata__" {
			continue
		}
		var said struct {
			DType   string   `json:"dtype"`
			Shape   []int64  `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}
		if err := arrays.Decode(object[name], &said); err != nil {
			return err
		}
		dtype, ok := dtypes[said.DType]
		if !ok {
			if err := arrays.CheckPath(name); err != nil {
				return err
			}
			f.PutBroken(name, fault.New(fault.Unsupported, "tensor "+name, "data type %.20q", said.DType), true, nil)
			continue
		}
		extent := chunk.Range{Off: said.Offsets[0], Len: said.Offsets[1] - said.Offsets[0]}
		cells := int64(-1)
		inside := extent.Off >= 0 && extent.Len >= 0 && extent.Off <= room-extent.Len
		if inside && !slices.ContainsFunc(said.Shape, func(n int64) bool { return n < 0 }) {
			cells = arrays.Cells(said.Shape, extent.Len/int64(dtype.Size()))
		}
		if cells < 0 || cells*int64(dtype.Size()) != extent.Len {
			return bad("tensor %.80q: %s of the shape %.200v in the bytes %v of %d", name, dtype, said.Shape,
				said.Offsets, room)
		}
		extent.Off += begin
		meta := &arrays.Meta{Shape: said.Shape, DType: dtype, Bool: said.DType == "BOOL",
			Text: fmt.Sprint(name, said.Shape, said.DType)}
		if err := f.put(ctx, name, meta, extent); err != nil {
			return err
		}
	}
	return nil
}

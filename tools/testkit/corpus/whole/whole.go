// Package whole reads an image from its chunk index the slow and obvious way: chunk by chunk,
// sample by sample. It is the judge of faster readers, and used by tests only.
package whole

import (
	"fmt"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
)

// Image decodes all chunks of x from the bytes of its file and returns the samples in C order
// (bands, height, width), little-endian. Images of more than limit bytes are refused.
func Image(x *chunk.Index, file []byte, limit int) ([]byte, error) {
	size := x.DType.Size()
	if x.Height > limit/x.Width || x.Height*x.Width > limit/x.Bands/size {
		return nil, fault.New(fault.Limit, "image", "over %d bytes", limit)
	}
	if bound := max(limit, 256<<20); !x.ChunkFits(bound) { // a tile may be larger than its image
		return nil, x.OverLimit(bound)
	}
	out := make([]byte, x.Bands*x.Height*x.Width*size)
	decoder := chunk.NewDecoder(nil)
	var buf []byte
	for i, span := range x.Ranges {
		if n := x.DecodedBytes(i); cap(buf) < n {
			buf = make([]byte, n)
		}
		buf = buf[:x.DecodedBytes(i)]
		if span.Len > 0 && (span.Off > int64(len(file)) || span.Len > int64(len(file))-span.Off) {
			return nil, fault.At(fault.Corrupt, fmt.Sprintf("chunk %d", i), span.Off, "past the end of the file")
		}
		src := file[:0]
		if span.Len > 0 {
			src = file[span.Off : span.Off+span.Len]
		}
		if err := decoder.Decode(buf, src, x, i); err != nil {
			return nil, err
		}
		place(out, buf, x, i)
	}
	return out, nil
}

// place copies the samples of chunk i that lie in the image.
func place(out, buf []byte, x *chunk.Index, i int) {
	size := x.DType.Size()
	box, strides := x.Box(i), x.Strides(i)
	for b := box.B0; b < box.B1; b++ {
		for y := box.Y0; y < box.Y1; y++ {
			for c := box.X0; c < box.X1; c++ {
				pos := strides.Plane(b-box.B0) + (y-box.Y0)*strides.Y + (c-box.X0)*strides.X
				end := (b*x.Height+y)*x.Width + c
				copy(out[end*size:(end+1)*size], buf[pos*size:])
			}
		}
	}
}

package picture

import (
	"encoding/binary"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
)

// BMP files: a header of 14 bytes, one of at least 40 (BITMAPINFOHEADER), a palette of 4 bytes a colour, and rows that
// take a multiple of 4 bytes, the lowest one first unless the height is negative.
const (
	bmpHeader  = 14
	bmpHeaders = bmpHeader + 40
	bmpColour  = 4
)

// bmpFile is what the headers of a file say.
type bmpFile struct {
	width, height int
	down          bool // the highest row comes first
	bits          int  // of a pixel
	pixels        int  // offset of the rows
	stride        int  // bytes of a row
}

// parseBMP reads the headers of a file of size bytes.
func parseBMP(b []byte, size int64) (f bmpFile, err error) {
	bad := func(k fault.Kind, text string, args ...any) (bmpFile, error) {
		return f, fault.At(k, "bmp", 0, text, args...)
	}
	if len(b) < bmpHeaders || string(b[:2]) != "BM" {
		return bad(fault.Corrupt, "%d bytes are no headers of a BMP", len(b))
	}
	le := binary.LittleEndian
	info := int64(le.Uint32(b[14:]))
	width, height := int64(int32(le.Uint32(b[18:]))), int64(int32(le.Uint32(b[22:])))
	f.down, f.bits = height < 0, int(le.Uint16(b[28:]))
	if f.down {
		height = -height
	}
	off := int64(le.Uint32(b[10:]))
	switch compression := le.Uint32(b[30:]); {
	case info < bmpHeaders-bmpHeader:
		return bad(fault.Unsupported, "a header of %d bytes, as OS/2 has it", info)
	case compression != 0:
		return bad(fault.Unsupported, "compression %d: uncompressed ones are read", compression)
	case !slices.Contains([]int{1, 4, 8, 24, 32}, f.bits):
		return bad(fault.Unsupported, "%d bits a pixel: 1, 4, 8, 24 and 32 are read", f.bits)
	case width < 1 || height < 1:
		return bad(fault.Corrupt, "an image of %d by %d pixels", height, width)
	}
	stride := (width*int64(f.bits) + 31) / 32 * 4 // below 2^36
	if off < bmpHeader+info || off > size || height > (size-off)/stride {
		return bad(fault.Corrupt, "%d rows of %d bytes from %d on do not fit into %d bytes", height, stride, off, size)
	}
	f.width, f.height, f.pixels, f.stride = int(width), int(height), int(off), int(stride)
	return f, nil
}

// bands is 3 of colours, and 1 of a palette, whose numbers are the samples.
func (f *bmpFile) bands() int {
	if f.bits > 8 {
		return 3
	}
	return 1
}

// bmp reads the headers of a file. A palette is classes unless each number is the grey of that value.
func (h *header) bmp() (*chunk.Index, error) {
	b, err := h.at(0, int(min(bmpHeaders, h.r.Size())))
	if err != nil {
		return nil, err
	}
	f, err := parseBMP(b, h.r.Size())
	if err != nil {
		return nil, err
	}
	x := &chunk.Index{Bands: f.bands(), Height: f.height, Width: f.width, DType: chunk.Uint8, Codec: chunk.BMP}
	if f.bits > 8 {
		return x, nil
	}
	begin := bmpHeader + int64(binary.LittleEndian.Uint32(b[14:]))
	colours := min((int64(f.pixels)-begin)/bmpColour, 1<<f.bits)
	entries, err := h.at(begin, int(colours)*bmpColour)
	if err != nil {
		return nil, err
	}
	for i := range int(colours) {
		c := entries[bmpColour*i:]
		isGrey := int(c[0]) == i && int(c[1]) == i && int(c[2]) == i
		x.Classes = x.Classes || f.bits < 8 || !isGrey
	}
	return x, nil
}

// bmpDecoder decodes files. It is a chunk.Decompressor.
type bmpDecoder struct{}

// Decompress implements chunk.Decompressor.
func (bmpDecoder) Decompress(dst, src []byte, t *chunk.Tile) error {
	f, err := parseBMP(src, int64(len(src)))
	if err != nil {
		return err
	}
	if f.width != t.Width || f.height != t.Height || f.bands() != t.Bands || t.DType != chunk.Uint8 {
		return fault.At(fault.Corrupt, "bmp", 0, "an image of %d by %d pixels of %d bands, not %d by %d of %d",
			f.height, f.width, f.bands(), t.Height, t.Width, t.Bands)
	}
	for y := range f.height {
		row := y
		if !f.down {
			row = f.height - 1 - y
		}
		line := src[f.pixels+row*f.stride:][:f.stride]
		f.row(dst[y*f.width*f.bands():][:f.width*f.bands()], line)
	}
	return nil
}

// row makes samples of the pixels of a row: numbers of a palette, or red, green and blue.
func (f *bmpFile) row(dst, line []byte) {
	switch {
	case f.bits == 8:
		copy(dst, line)
	case f.bits < 8:
		per := 8 / f.bits
		for x := range dst {
			shift := 8 - f.bits*(x%per+1)
			dst[x] = line[x/per] >> shift & (1<<f.bits - 1)
		}
	default:
		step := f.bits / 8
		for x := range f.width {
			p := line[x*step:][:3]
			dst[3*x], dst[3*x+1], dst[3*x+2] = p[2], p[1], p[0]
		}
	}
}

package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
)

// pngHeader is the content of the first chunk of a file, IHDR.
type pngHeader struct {
	width, height int
	bands         int
	dtype         chunk.DType // Uint8 or Uint16
	depth, color  byte
}

// pngHeaderSize is the bytes of a signature and a header, with its length and checksum.
const pngHeaderSize = 8 + 8 + 13 + 4

// pngSignature begins a file.
const pngSignature = "\x89PNG\r\n\x1a\n"

// Types of colour (section 11.2.1).
const (
	grey      = 0
	rgb       = 2
	palette   = 3
	greyAlpha = 4
	rgbAlpha  = 6
)

func badPNG(format string, args ...any) error {
	return fault.New(fault.Corrupt, "png", fault.NoOffset, format, args...)
}

// parsePNG reads the first pngHeaderSize bytes of a file. Its checksum is not checked; decoding does.
func parsePNG(b []byte) (h pngHeader, err error) {
	if len(b) < pngHeaderSize || string(b[:8]) != pngSignature || string(b[8:16]) != "\x00\x00\x00\rIHDR" {
		return h, badPNG("no header")
	}
	w, hh := binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint32(b[20:])
	h.depth, h.color = b[24], b[25]
	if w == 0 || hh == 0 || w > chunk.MaxSide || hh > chunk.MaxSide {
		return h, badPNG("%d by %d pixels", hh, w)
	}
	h.width, h.height, h.dtype = int(w), int(hh), chunk.Uint8
	if h.depth == 16 {
		h.dtype = chunk.Uint16
	}
	deep := h.depth == 8 || h.depth == 16
	small := h.depth == 1 || h.depth == 2 || h.depth == 4
	ok := false
	switch h.color {
	case grey:
		h.bands, ok = 1, deep || small
	case rgb:
		h.bands, ok = 3, deep
	case palette:
		h.bands, ok = 1, small || h.depth == 8
	case greyAlpha:
		h.bands, ok = 2, deep
	case rgbAlpha:
		h.bands, ok = 4, deep
	}
	if !ok {
		return h, badPNG("colour type %d with %d bits a sample", h.color, h.depth)
	}
	return h, nil
}

// transparent gives an index what the tRNS chunk b says, in a file with a palette of so many colours.
func (h *pngHeader) transparent(x *chunk.Index, b []byte, colours int64) {
	value, sample := -1, func(i int) int { return int(binary.BigEndian.Uint16(b[2*i:])) }
	switch h.color {
	case grey:
		if len(b) == 2 && sample(0)>>h.depth == 0 { // no sample has a larger one
			value = sample(0)
		}
	case palette:
		if int64(len(b)) <= colours && bytes.Count(b, []byte{0}) == 1 {
			value = bytes.IndexByte(b, 0)
		}
	case rgb:
		if len(b) == 6 {
			x.Joint = fmt.Sprint(sample(0), sample(1), sample(2))
		}
	}
	if value >= 0 {
		nodata := float64(value)
		x.NoData = &nodata
	}
}

// pngDecoder decodes files by the standard library. It is a chunk.Decompressor. Files are not trusted: the header
// must agree with the chunk before anything is allocated.
type pngDecoder struct{ src bytes.Reader }

// Decompress implements chunk.Decompressor.
func (d *pngDecoder) Decompress(dst, src []byte, t *chunk.Tile) error {
	pngHeader, err := parsePNG(src)
	if err != nil {
		return err
	}
	if pngHeader.width != t.Width || pngHeader.height != t.Height || pngHeader.bands != t.Bands ||
		pngHeader.dtype != t.DType {
		return badPNG("an image of %d by %d pixels of %d bands of %s, not %d by %d of %d of %s",
			pngHeader.height, pngHeader.width, pngHeader.bands, pngHeader.dtype, t.Height, t.Width, t.Bands, t.DType)
	}
	d.src.Reset(src)
	defer d.src.Reset(nil)
	input := io.Reader(&d.src)
	if pngHeader.color == grey || pngHeader.color == greyAlpha {
		input = withoutPalette(src, input)
	}
	img, err := png.Decode(input)
	if err != nil {
		return faultOf(err)
	}
	return pngHeader.pixels(dst, img)
}

// withoutPalette returns a reader of a grey image without the palettes before its pixels, or whole if it has none.
// Its colour type must not have one. libpng, and so GDAL, ignores them, but the library of Go refuses the file.
func withoutPalette(src []byte, whole io.Reader) io.Reader {
	const frame = 4 + 4 + 4 // the length, the type and the checksum of a chunk
	var parts []io.Reader
	start, off := 0, pngHeaderSize
	for len(src)-off >= frame && len(parts) < maxParts {
		n, kind := int64(binary.BigEndian.Uint32(src[off:])), string(src[off+4:off+8])
		if kind == "IDAT" || n > int64(len(src)-off-frame) {
			break
		}
		next := off + frame + int(n)
		if kind == "PLTE" {
			parts = append(parts, bytes.NewReader(src[start:off]))
			start = next
		}
		off = next
	}
	if parts == nil {
		return whole
	}
	return io.MultiReader(append(parts, bytes.NewReader(src[start:]))...)
}

// faultOf makes an error of the library one with a kind.
func faultOf(err error) error {
	kind := fault.Corrupt // also where zlib refuses the data
	if errors.As(err, new(png.UnsupportedError)) {
		kind = fault.Unsupported
	}
	return fault.Wrap(kind, "png", fault.NoOffset, err)
}

// pixels copies the samples of an image, interleaved by pixel and little-endian.
func (h *pngHeader) pixels(dst []byte, img image.Image) error {
	row := h.width * h.bands * h.dtype.Size()
	for y := range h.height {
		target := dst[y*row : (y+1)*row]
		switch m := img.(type) {
		case *image.Gray:
			h.unscale(target, m.Pix[y*m.Stride:])
		case *image.Paletted:
			copy(target, m.Pix[y*m.Stride:])
		case *image.Gray16:
			pick(target, m.Pix[y*m.Stride:], h.width, 2, 2, 0)
		case *image.RGBA: // opaque, so that nothing was multiplied
			pick(target, m.Pix[y*m.Stride:], h.width, 4, 1, 0, 1, 2)
		case *image.RGBA64:
			pick(target, m.Pix[y*m.Stride:], h.width, 8, 2, 0, 2, 4)
		case *image.NRGBA:
			h.withAlpha(target, m.Pix[y*m.Stride:], 1)
		case *image.NRGBA64:
			h.withAlpha(target, m.Pix[y*m.Stride:], 2)
		default:
			return fault.New(fault.Unsupported, "png", fault.NoOffset, "an image of type %T", img)
		}
	}
	return nil
}

// unscale copies a row of grey samples, which the library has scaled to 8 bits.
func (h *pngHeader) unscale(to, from []byte) {
	copy(to, from[:h.width])
	if h.depth < 8 {
		step := byte(255 / (1<<h.depth - 1)) // 255, 85 or 17
		for i := range to {
			to[i] /= step
		}
	}
}

// withAlpha copies a row of a file with an alpha band, or with a colour that is transparent: the library gives both as
// colours with alpha, which are not multiplied with it.
func (h *pngHeader) withAlpha(to, from []byte, size int) {
	switch h.color {
	case greyAlpha:
		pick(to, from, h.width, 4*size, size, 0, 3*size)
	case rgbAlpha:
		pick(to, from, h.width, 4*size, size, 0, size, 2*size, 3*size)
	case rgb:
		pick(to, from, h.width, 4*size, size, 0, size, 2*size)
	default: // grey with a transparent value
		pick(to, from, h.width, 4*size, size, 0)
		if h.depth < 8 {
			h.unscale(to, to)
		}
	}
}

// pick copies samples of size bytes from the offsets at of every pixel of step bytes. Samples of two bytes are
// big-endian.
func pick(to, from []byte, pixels, step, size int, at ...int) {
	k := 0
	for p := range pixels {
		for _, o := range at {
			s := from[p*step+o:]
			if size == 2 {
				to[k], to[k+1] = s[1], s[0]
			} else {
				to[k] = s[0]
			}
			k += size
		}
	}
}

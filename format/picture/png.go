package picture

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
)

// pngHeader is the content of the first chunk of a file, IHDR.
type pngHeader struct {
	width, height int
	bands         int
	dtype         chunk.DType // Uint8 or Uint16
	depth, color  byte
	interlaced    bool
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
	return fault.New(fault.Corrupt, "png", format, args...)
}

// parsePNG reads the first pngHeaderSize bytes of a file. Its checksum is not checked; decoding does.
func parsePNG(b []byte) (h pngHeader, err error) {
	if len(b) < pngHeaderSize || string(b[:8]) != pngSignature || string(b[8:16]) != "\x00\x00\x00\rIHDR" {
		return h, badPNG("no header")
	}
	h.width, h.height = int(binary.BigEndian.Uint32(b[16:])), int(binary.BigEndian.Uint32(b[20:])) // see Index.Validate
	h.depth, h.color, h.dtype = b[24], b[25], chunk.Uint8
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
	sample := func(i int) int { return int(binary.BigEndian.Uint16(b[2*i:])) }
	nodata := func(value int) {
		v := float64(value)
		x.NoData = &v
	}
	switch h.color {
	case grey:
		if len(b) == 2 && sample(0)>>h.depth == 0 { // no sample has a larger one
			nodata(sample(0))
		}
	case palette:
		if int64(len(b)) <= colours && bytes.Count(b, []byte{0}) == 1 {
			nodata(bytes.IndexByte(b, 0))
		}
	case rgb:
		if len(b) == 6 {
			x.Joint = fmt.Sprint(sample(0), sample(1), sample(2))
		}
	}
}

package picture

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/inflate"
	"github.com/chaski-eo/chaski/internal/kernel"
)

// pngDecoder decodes files. It is a chunk.Decompressor. Files are not trusted: the header must agree with the chunk
// before anything is allocated.
type pngDecoder struct {
	inflater inflate.Decoder
	stream   []byte    // the zlib stream of a file that has it in several chunks
	raw      []byte    // filtered rows
	lines    [3][]byte // two rows that filters look at, and a row of zeros, which nobody writes
}

// Decompress implements chunk.Decompressor.
func (d *pngDecoder) Decompress(dst, src []byte, t *chunk.Tile) error {
	h, err := parsePNG(src)
	if err != nil {
		return err
	}
	if h.width != t.Width || h.height != t.Height || h.bands != t.Bands || h.dtype != t.DType {
		return badPNG("an image of %d by %d pixels of %d bands of %s, not %d by %d of %d of %s",
			h.height, h.width, h.bands, h.dtype, t.Height, t.Width, t.Bands, t.DType)
	}
	if err := h.methods(src); err != nil {
		return err
	}
	stream, err := d.parts(src, &h)
	if err != nil {
		return err
	}
	size := 0
	for i := range h.passes() {
		if p := h.pass(i); p.width > 0 {
			size += p.height * (1 + h.rowBytes(p.width))
		}
	}
	if size/inflate.MostRatio > len(stream) {
		return badPNG("%d bytes of pixels in a stream of %d", size, len(stream))
	}
	d.raw = slices.Grow(d.raw[:0], size)[:size]
	switch err := d.inflater.Zlib(d.raw, stream); {
	case errors.Is(err, inflate.ErrSurplus):
		return badPNG("more pixels than the header says")
	case err != nil:
		return badPNG("%v", err)
	}
	return d.pixels(dst, &h)
}

// methods checks the methods that a header names: each has one number, and interlacing two.
func (h *pngHeader) methods(src []byte) error {
	compression, filter, interlace := src[26], src[27], src[28]
	switch {
	case compression != 0:
		return fault.New(fault.Unsupported, "png", "compression method %d", compression)
	case filter != 0:
		return fault.New(fault.Unsupported, "png", "filter method %d", filter)
	case interlace > 1:
		return badPNG("interlace method %d", interlace)
	}
	h.interlaced = interlace == 1
	return nil
}

// Chunks that a file must have in this order (section 5.6).
const (
	afterHeader = iota
	afterPalette
	afterTransparency
	afterPixels
)

// parts checks the chunks of a file and returns the zlib stream of its pixels.
func (d *pngDecoder) parts(src []byte, h *pngHeader) (stream []byte, err error) {
	const frame = 4 + 4 + 4                               // the length, the type and the checksum of a chunk
	state, together, several := afterHeader, false, false // together: the chunk before had pixels
	for off := len(pngSignature); ; {
		bad := func(format string, args ...any) ([]byte, error) {
			return nil, fault.At(fault.Corrupt, "png", int64(off), format, args...)
		}
		rest := len(src) - off - frame
		if rest < 0 {
			return bad("the file ends before its last chunk")
		}
		size, kind := int64(binary.BigEndian.Uint32(src[off:])), src[off+4:off+8]
		if size > int64(rest) {
			return bad("a chunk %q of %d bytes, where the file has %d", kind, size, rest)
		}
		body := src[off+8:][:size]
		// libpng, and so GDAL, ignores palettes of grey images.
		ignored := string(kind) == "PLTE" && h.isGrey() && state < afterPixels
		if sum := crc32.ChecksumIEEE(src[off+4 : off+8+int(size)]); !ignored &&
			sum != binary.BigEndian.Uint32(src[off+8+int(size):]) {
			return bad("the checksum of chunk %q is wrong", kind)
		}
		next, ok := h.follows(state, string(kind), off, body)
		pixels := string(kind) == "IDAT"
		switch {
		case ignored:
		case !ok:
			return bad("a chunk %q of %d bytes, which cannot be there", kind, size)
		case string(kind) == "IEND":
			return stream, nil
		case pixels && state != afterPixels:
			stream = body
		case pixels && together:
			if !several {
				d.stream, several = append(d.stream[:0], stream...), true
			}
			d.stream = append(d.stream, body...)
			stream = d.stream
		}
		if !ignored {
			state = next
		}
		together = pixels
		off += frame + int(size)
	}
}

// isGrey reports whether the image has no colours.
func (h *pngHeader) isGrey() bool { return h.color == grey || h.color == greyAlpha }

// follows returns the state behind a chunk, and whether it may be there and has a length that it may have.
func (h *pngHeader) follows(state int, kind string, off int, body []byte) (next int, ok bool) {
	switch kind {
	case "IHDR":
		return state, off == len(pngSignature)
	case "PLTE":
		entries := len(body) / 3
		maxEntries := 256
		if h.depth < 8 {
			maxEntries = 1 << h.depth
		}
		return afterPalette, state == afterHeader && len(body)%3 == 0 && 1 <= entries && entries <= maxEntries
	case "tRNS":
		switch h.color {
		case palette:
			return afterTransparency, state == afterPalette && len(body) <= 256
		case rgb:
			return afterTransparency, state <= afterPalette && len(body) == 6
		default:
			return afterTransparency, state == afterHeader && h.color == grey && len(body) == 2
		}
	case "IDAT":
		return afterPixels, state != afterHeader || h.color != palette
	case "IEND":
		return state, state == afterPixels
	}
	return state, true
}

// pass is a part of an image: every so many pixels of every so many rows.
type pass struct {
	x, y, stepX, stepY int
	width, height      int
}

// interlacing has the passes of Adam7 (section 8.1).
var interlacing = []pass{
	{x: 0, y: 0, stepX: 8, stepY: 8}, {x: 4, y: 0, stepX: 8, stepY: 8}, {x: 0, y: 4, stepX: 4, stepY: 8},
	{x: 2, y: 0, stepX: 4, stepY: 4}, {x: 0, y: 2, stepX: 2, stepY: 4}, {x: 1, y: 0, stepX: 2, stepY: 2},
	{x: 0, y: 1, stepX: 1, stepY: 2},
}

// passes returns how many parts the image has.
func (h *pngHeader) passes() int {
	if h.interlaced {
		return len(interlacing)
	}
	return 1
}

// pass returns part i of the image.
func (h *pngHeader) pass(i int) pass {
	p := pass{stepX: 1, stepY: 1}
	if h.interlaced {
		p = interlacing[i]
	}
	p.width = (h.width - p.x + p.stepX - 1) / p.stepX // p.x < p.stepX
	p.height = (h.height - p.y + p.stepY - 1) / p.stepY
	return p
}

// rowBytes returns the bytes of a row of so many pixels, without its filter.
func (h *pngHeader) rowBytes(width int) int { return (width*h.bands*int(h.depth) + 7) / 8 }

// pixels undoes the filters of all rows and writes samples, interleaved by pixel and little-endian.
func (d *pngDecoder) pixels(dst []byte, h *pngHeader) error {
	lineBytes := h.rowBytes(h.width)
	for i := range d.lines {
		d.lines[i] = slices.Grow(d.lines[i][:0], lineBytes)[:lineBytes]
	}
	raw := d.raw
	step := max(h.bands*int(h.depth)/8, 1) // bytes that filters look back
	pixel := h.bands * h.dtype.Size()
	for i := range h.passes() {
		p := h.pass(i)
		if p.width == 0 {
			continue
		}
		size := h.rowBytes(p.width)
		up, direct := d.lines[2][:size], h.depth == 8 && p.stepX == 1
		for row := range p.height {
			target := dst[((p.y+row*p.stepY)*h.width+p.x)*pixel:]
			line := d.lines[row%2][:size]
			if direct {
				line = target[:size]
			}
			if !unfilter(line, raw[1:1+size], up, step, raw[0]) {
				return badPNG("filter %d of row %d", raw[0], p.y+row*p.stepY)
			}
			raw, up = raw[1+size:], line
			if !direct {
				h.place(target, line, p.width, p.stepX)
			}
		}
	}
	return nil
}

// place writes the pixels of a row step pixels apart.
func (h *pngHeader) place(to, line []byte, width, step int) {
	switch {
	case h.depth < 8 && step == 1:
		kernel.Unpack(to[:width], line, int(h.depth))
	case h.depth < 8:
		unpack(to, line, width, step, uint(h.depth))
	case h.depth == 8:
		kernel.CopyStrided(to, line, width, step*h.bands, h.bands, h.bands)
	case step == 1:
		copy(to[:len(line)], line)
		kernel.SwapBytes(to[:len(line)], 2)
	default:
		size := 2 * h.bands
		for i := range width {
			pixel := to[i*step*size:][:size]
			for k := 0; k < size; k += 2 {
				pixel[k], pixel[k+1] = line[i*size+k+1], line[i*size+k]
			}
		}
	}
}

// unpack writes numbers of 1, 2 or 4 bits, the first one highest in its byte, as bytes that lie step apart.
func unpack(to, packed []byte, count, step int, depth uint) {
	mask := byte(1)<<depth - 1
	shift := uint(8)
	for i := range count {
		shift -= depth
		to[i*step] = packed[0] >> shift & mask
		if shift == 0 {
			packed, shift = packed[1:], 8
		}
	}
}

// Package picture reads PNG, JPEG and BMP files as rasters of one chunk: labels, and sets of photographs. It also
// reads arrays in .npy files (package npy), as rasters of uncompressed strips. They have no place on the ground.
//
// A PNG (PNG Specification, third edition) has the bands of its colour type, as uint8 or uint16. Samples of fewer than
// 8 bits become bytes without scaling, and palettes stay indices. Its nodata, as in GDAL, is the transparent value of
// a grey image, or the only transparent entry of a palette. A JPEG has one band, or three as RGB; samples equal what
// libjpeg-turbo gives. Pictures stand as the orientation in their Exif metadata says, as Hugging Face's datasets show
// them. GDAL leaves them as stored, and so do virtual rasters (chunk.Axes.AsStored).
package picture

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"image/color"
	"image/png"
	"io"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/pictures"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
)

// init registers what reads such files, besides the decompressor of JPEG, which package format/codec/jpeg has.
func init() {
	pictures.Open, pictures.Palette = Open, Palette
	chunk.Register(chunk.PNG, func() chunk.Decompressor { return new(pngDecoder) })
	chunk.Register(chunk.BMP, func() chunk.Decompressor { return bmpDecoder{} })
	chunk.Register(chunk.Turned, func() chunk.Decompressor { return new(turnedDecoder) })
}

// Open reads the header of a file and makes its index. maxChunk limits the decoded image in bytes (0:
// chunk.DefaultMaxBytes). Errors are Corrupt, Unsupported or Limit.
func Open(ctx context.Context, r source.Reader, axes chunk.Axes, maxChunk int) (*chunk.Index, error) {
	maxChunk = cmp.Or(maxChunk, chunk.DefaultMaxBytes)
	h := header{ctx: ctx, r: r}
	h.orientation = upright
	first, err := h.at(0, int(min(r.Size(), magic.Head)))
	if err != nil {
		return nil, err
	}
	var x *chunk.Index
	switch magic.Of(first) {
	case magic.PNG:
		x, err = h.png()
	case magic.BMP:
		x, err = h.bmp()
	case magic.NPY:
		if x, err = h.numpy(axes.Dims); err != nil {
			return nil, err
		}
		return x, x.Validate(r.Size(), maxChunk)
	case magic.VRT:
		err = fault.At(fault.Unsupported, "VRT", 0,
			"a virtual raster is not read here: make a TIFF of it, as by 'gdal_translate x.vrt x.tif'")
	default:
		x, err = h.jpeg()
	}
	if err != nil {
		return nil, err
	}
	if !axes.AsStored {
		turn(x, h.orientation)
	}
	x.ChunkB, x.ChunkH, x.ChunkW = x.Bands, x.Height, x.Width
	x.Predictor, x.Inner = chunk.NoPredictor, chunk.YXB
	x.Ranges = []chunk.Range{{Len: r.Size()}}
	return x, x.Validate(r.Size(), maxChunk)
}

// Palette returns the colours of a PNG, as chunk.Colours has them; nil: it has none, or they cannot be read.
func Palette(ctx context.Context, r source.Reader) []string {
	const most = 1 << 20 // bytes before the pixels, such as text and profiles
	config, _ := png.DecodeConfig(bufio.NewReader(io.LimitReader(source.Sequential(ctx, r), most)))
	entries, _ := config.ColorModel.(color.Palette)
	colours := make([]color.NRGBA, len(entries))
	for i, entry := range entries {
		colours[i] = color.NRGBAModel.Convert(entry).(color.NRGBA)
	}
	return chunk.Colours(colours)
}

// Limits of a header: JPEG files of cameras have ICC profiles in up to 255 segments and a preview beside, and a PNG has
// at most as many chunks of text before its pixels.
const (
	maxParts = 1024
	headSize = 16 << 10 // bytes that are read at a time, so a header takes few requests
	exifSize = 64 << 10 // bytes of Exif metadata that are looked at: a segment of JPEG has no more
	trnsSize = 256 + 1  // bytes of transparency that are looked at: one more than a palette has colours
)

// header reads parts of a file's header.
type header struct {
	ctx    context.Context
	r      source.Reader
	off    int64 // of held in the file
	buffer []byte

	orientation byte // as Exif metadata say
}

// at returns n bytes at an offset.
func (h *header) at(off int64, n int) ([]byte, error) {
	if off < h.off || off+int64(n) > h.off+int64(len(h.buffer)) {
		if off > h.r.Size()-int64(n) {
			return nil, fault.At(fault.Corrupt, "header", off, "the file ends there, after %d bytes", h.r.Size())
		}
		h.off, h.buffer = off, make([]byte, min(max(headSize, int64(n)), h.r.Size()-off))
		if err := h.r.ReadAt(h.ctx, h.buffer, off); err != nil {
			return nil, err
		}
	}
	return h.buffer[off-h.off:][:n], nil
}

// png reads the header of a PNG file, and the transparent value that may stand between it and the pixels.
func (h *header) png() (*chunk.Index, error) {
	data, err := h.at(0, pngHeaderSize)
	if err != nil {
		return nil, err
	}
	ihdr, err := parsePNG(data)
	if err != nil {
		return nil, err
	}
	index := &chunk.Index{Bands: ihdr.bands, Height: ihdr.height, Width: ihdr.width,
		DType: ihdr.dtype, Codec: chunk.PNG, Alpha: ihdr.bands%2 == 0,
		Classes: ihdr.color == palette}
	colours := int64(0)
	off := int64(pngHeaderSize)
	for range maxParts {
		b, err := h.at(off, 8)
		if err != nil {
			return nil, err
		}
		n, kind := int64(binary.BigEndian.Uint32(b)), string(b[4:8])
		switch {
		case kind == "IDAT" || kind == "IEND":
			return index, nil
		case kind == "eXIf":
			if b, err = h.at(off+8, int(min(n, exifSize))); err != nil {
				return nil, err
			}
			h.orientation = exifOrientation(b)
		case kind == "PLTE":
			colours = n / 3
		case kind == "tRNS":
			if b, err = h.at(off+8, int(min(n, trnsSize))); err != nil {
				return nil, err
			}
			ihdr.transparent(index, b, colours)
		}
		off += 8 + n + 4 // a checksum follows
	}
	return nil, fault.At(fault.Limit, "header", off, "over %d chunks before the pixels", maxParts)
}

// Markers of JPEG (ITU-T T.81, table B.1).
const (
	markSOF0  = 0xc0
	markDHT   = 0xc4
	markJPG   = 0xc8
	markDAC   = 0xcc
	markSOF15 = 0xcf
	markRST0  = 0xd0
	markSOI   = 0xd8
	markTEM   = 0x01
	markAPP0  = 0xe0
	markAPP1  = 0xe1
	markAPP14 = 0xee
)

// jpeg reads the header of a JPEG file up to its frame.
func (h *header) jpeg() (*chunk.Index, error) {
	bad := func(off int64, format string, args ...any) error {
		return fault.At(fault.Corrupt, "jpeg", off, format, args...)
	}
	off := int64(2)
	jfif, adobe := false, -1
	for range maxParts {
		data, err := h.at(off, 4)
		if err != nil {
			return nil, err
		}
		m, n := data[1], int64(binary.BigEndian.Uint16(data[2:]))
		switch {
		case data[0] != 0xff:
			return nil, bad(off, "no marker")
		case m == 0xff:
			off++ // a marker may have any number of these before it
			continue
		case m == markTEM || m >= markRST0 && m <= markSOI:
			off += 2
			continue
		case n < 2:
			return nil, bad(off, "a segment of %d bytes", n)
		}
		isFrame := m >= markSOF0 && m <= markSOF15 && m != markDHT && m != markJPG && m != markDAC
		if isFrame || m == markAPP0 || m == markAPP1 || m == markAPP14 {
			if data, err = h.at(off+4, int(n-2)); err != nil {
				return nil, err
			}
		}
		exif, hasExif := bytes.CutPrefix(data, []byte("Exif\x00\x00"))
		switch {
		case isFrame:
			return frame(data, m, jfif, adobe, off)
		case m == markAPP0 && bytes.HasPrefix(data, []byte("JFIF\x00")):
			jfif = true
		case m == markAPP1 && hasExif:
			h.orientation = exifOrientation(exif)
		case m == markAPP14 && len(data) >= 12 && bytes.HasPrefix(data, []byte("Adobe")):
			adobe = int(data[11])
		}
		off += 2 + n
	}
	return nil, fault.At(fault.Limit, "jpeg", off, "over %d segments before the frame", maxParts)
}

// frame makes an index of a frame header (section B.2.2).
func frame(b []byte, marker byte, jfif bool, adobe int, off int64) (*chunk.Index, error) {
	no := func(k fault.Kind, format string, args ...any) (*chunk.Index, error) {
		return nil, fault.At(k, "jpeg", off, format, args...)
	}
	if len(b) < 6 || len(b) != 6+3*int(b[5]) {
		return no(fault.Corrupt, "a frame header of %d bytes", len(b))
	}
	height, width := int(binary.BigEndian.Uint16(b[1:])), int(binary.BigEndian.Uint16(b[3:]))
	switch {
	case marker > markSOF0+2:
		return no(fault.Unsupported, "a frame of type %d: baseline, extended and progressive ones are read",
			marker-markSOF0)
	case b[0] != 8:
		return no(fault.Unsupported, "samples of %d bits", b[0])
	case width == 0 || height == 0:
		return no(fault.Unsupported, "an image of %d by %d pixels", height, width)
	case b[5] != 1 && b[5] != 3:
		return no(fault.Unsupported, "%d components: one and three are read", b[5])
	}
	x := &chunk.Index{Bands: int(b[5]), Height: height, Width: width, DType: chunk.Uint8, Codec: chunk.JPEG}
	x.Params = []byte{chunk.JPEGAsStored}
	if x.Bands == 3 && isYCbCr(b[6:], jfif, adobe) {
		x.Params[0] = chunk.JPEGYCbCr
	}
	return x, nil
}

// isYCbCr reports whether three components are YCbCr, as libjpeg decides: by the JFIF marker, by Adobe's, or
// the names of the components.
func isYCbCr(components []byte, jfif bool, adobe int) bool {
	if jfif {
		return true
	}
	if adobe >= 0 {
		return adobe != 0
	}
	return components[0] != 'R' || components[3] != 'G' || components[6] != 'B'
}

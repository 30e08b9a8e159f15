package webp

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/image/vp8"

	"github.com/chaski-eo/chaski/fault"
)

// MaxPixels bounds a tile, and with it the tables of VP8L: 1.7 KiB for every 16 pixels, if the stream has as many
// tables; each takes 30 bytes of it or more.
const MaxPixels = 1 << 22

func bad(format string, args ...any) error {
	return fault.New(fault.Corrupt, "webp", format, args...)
}

// Decode fills dst with an image of h rows of w pixels of 3 or 4 bytes, which src must state to have.
func Decode(dst, src []byte, w, h, bands int) error {
	if bands != 3 && bands != 4 {
		return fault.New(fault.Unsupported, "webp", "%d bands: an image of WebP has 3 or 4", bands)
	}
	if w < 1 || h < 1 || w > MaxPixels/h {
		return fault.New(fault.Limit, "webp", "%d by %d pixels: at most %d together", w, h, MaxPixels)
	}
	if len(dst) < w*h*bands {
		return bad("%d bytes for %d by %d pixels", len(dst), w, h)
	}
	image, err := open(src, w, h)
	if err != nil {
		return err
	}
	// libtiff leaves an alpha band of 255 out of an image.
	if image.hasAlpha && bands == 3 {
		return bad("an image with alpha for 3 bands")
	}
	if image.lossless != nil {
		return image.fillLossless(dst, w, h, bands)
	}
	return image.lossy(dst, w, h, bands)
}

// fillLossless fills dst with a lossless image.
func (p *parts) fillLossless(dst []byte, w, h, bands int) error {
	pix, err := lossless(p.lossless, w, h)
	if err != nil {
		return err
	}
	for i, pixel := range pix {
		target := dst[i*bands:][:bands]
		target[0], target[1], target[2] = byte(pixel>>16), byte(pixel>>8), byte(pixel)
		if bands == 4 {
			if target[3] = 255; p.hasAlpha {
				target[3] = byte(pixel >> 24)
			}
		}
	}
	return nil
}

// lossy fills dst with an image of VP8.
func (p *parts) lossy(dst []byte, w, h, bands int) error {
	decoder := vp8.NewDecoder()
	decoder.Init(bytes.NewReader(p.vp8), len(p.vp8))
	frame, err := decoder.DecodeFrameHeader()
	if err != nil {
		return bad("%v", err)
	}
	if frame.Width != w || frame.Height != h || int64(frame.FirstPartitionLen) > int64(len(p.vp8)) {
		return bad("a frame of %d by %d pixels, with a part of %d bytes", frame.Width, frame.Height,
			frame.FirstPartitionLen)
	}
	image, err := decoder.DecodeFrame()
	if err != nil {
		return bad("%v", err)
	}
	fromYUV(dst, image, bands)
	if !p.hasAlpha || p.alpha == nil {
		return nil
	}
	alpha, err := alphaOf(p.alpha, w, h)
	if err != nil {
		return err
	}
	for i, value := range alpha {
		dst[i*bands+3] = value
	}
	return nil
}

// parts are the parts of a container that make its image.
type parts struct {
	lossless []byte // VP8L behind its header
	vp8      []byte
	alpha    []byte
	hasAlpha bool
}

// open walks the container up to its image, and returns an error unless every size that it states is w by h.
func open(src []byte, w, h int) (p parts, err error) {
	const head, lossless = 12, 0x2f
	if len(src) < head || string(src[:4]) != "RIFF" || string(src[8:head]) != "WEBP" {
		return p, bad("not a WebP container")
	}
	for src = src[head:]; len(src) >= 8; {
		name, length := string(src[:4]), uint64(binary.LittleEndian.Uint32(src[4:]))
		if src = src[8:]; length > uint64(len(src)) {
			return p, bad("part %q of %d bytes ends after %d", name, length, len(src))
		}
		part := src[:length]
		width, height := w, h
		switch {
		case name == "VP8X" && length == 10:
			const hasAlpha = 0x10
			p.hasAlpha = part[0]&hasAlpha != 0
			width, height = 1+int(uint24(part[4:])), 1+int(uint24(part[7:]))
		case name == "ALPH":
			p.alpha = part
		case name == "VP8 " && length >= 10:
			size := binary.LittleEndian.Uint32(part[6:])
			width, height = int(size&0x3fff), int(size>>16&0x3fff)
			p.vp8 = part
		case name == "VP8L" && length >= 5 && part[0] == lossless && part[4]>>5 == 0: // version 0
			size := binary.LittleEndian.Uint32(part[1:])
			width, height = 1+int(size&0x3fff), 1+int(size>>14&0x3fff)
			p.lossless, p.hasAlpha = part[5:], size>>28&1 != 0
		case name == "VP8X" || name == "VP8 " || name == "VP8L":
			return p, bad("part %q of %d bytes", name, length)
		}
		if width != w || height != h {
			return p, bad("part %q is of %d by %d pixels, the tile of %d by %d", name, width, height, w, h)
		}
		if p.vp8 != nil || p.lossless != nil {
			return p, nil
		}
		// Parts need to begin at even offsets: behind one of odd size is a byte of padding.
		src = src[min(length+length&1, uint64(len(src))):]
	}
	return p, bad("the container has no image")
}

func uint24(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }

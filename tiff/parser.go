package tiff

import (
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// parser builds the chunk index from the tags of one directory. After the first error its methods return
// zeros.
type parser struct{ ifd.Tags }

// same returns the value that all bands share, or absent if the tag is missing. A single value stands for
// all bands, because many writers leave out the others. Values beyond the number of bands are ignored, as in
// libtiff, but more values of BitsPerSample than bands must not mean that SamplesPerPixel is wrong (agree).
func (p *parser) same(tag uint16, bands int, absent uint64) uint64 {
	v := p.Uints(tag)
	if v.Len() == 0 {
		return absent
	}
	few := v.Len() < bands
	many := tag == ifd.TagBitsPerSample && v.Len() > bands && !p.agree(bands)
	if v.Len() > 1 && (few || many) {
		p.Fail(fault.Corrupt, tag, "%d values for %d samples a pixel", v.Len(), bands)
		return 0
	}
	for i := range min(bands, v.Len()) {
		if v.Uint(i) != v.Uint(0) {
			p.Fail(fault.Unsupported, tag, "samples of different types in one image")
			return 0
		}
	}
	return v.Uint(0)
}

// agree reports whether PhotometricInterpretation and ExtraSamples need exactly that many bands.
func (p *parser) agree(bands int) bool {
	colours := Colours(uint16(min(p.Uint(ifd.TagPhotometric, PhotometricBlackIsZero), math.MaxUint16)))
	return p.Err == nil && colours+p.Uints(ifd.TagExtraSamples).Len() == bands
}

// Colours is the number of bands that a PhotometricInterpretation gives a meaning.
func Colours(photometric uint16) int {
	switch photometric {
	case PhotometricRGB, PhotometricYCbCr:
		return 3
	case PhotometricCMYK:
		return 4
	}
	return 1
}

package tiff

import (
	"bufio"
	"bytes"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/codec/lerc"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/zstd"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// Params of the codec LERC are two bytes: the compression around the blobs, and 1 if blobs may lack the last
// band, which then marks the valid pixels. Catalogs store the values: they must not change.
const (
	lercPlain   = 0 // as in LercParameters
	lercDeflate = 1
	lercZstd    = 2
)

var lercTypes = map[chunk.DType]lerc.Type{
	chunk.Int8: lerc.Int8, chunk.Uint8: lerc.Uint8, chunk.Int16: lerc.Int16, chunk.Uint16: lerc.Uint16,
	chunk.Int32: lerc.Int32, chunk.Uint32: lerc.Uint32, chunk.Float32: lerc.Float32, chunk.Float64: lerc.Float64,
}

// lerc reads the parameters of LERC. libtiff leaves an alpha band of bytes out of a blob, and makes it from
// the blob's mask, if it has no values but 0 and 255 there.
func (p *parser) lerc(x *chunk.Index) {
	params, extra := p.Uints(ifd.TagLercParameters), p.Uints(ifd.TagExtraSamples)
	if p.Err != nil {
		return
	}
	if _, ok := lercTypes[x.DType]; !ok || x.Packed != 0 {
		p.Fail(fault.Unsupported, ifd.TagBitsPerSample, "LERC of %s samples", x.DType)
		return
	}
	if params.Len() < 2 || params.Uint(1) > lercZstd {
		p.Fail(fault.Unsupported, ifd.TagLercParameters,
			"compression LERC: %d parameters, or an unknown additional compression", params.Len())
		return
	}
	const unassociated = 2
	alpha := byte(0)
	if count := extra.Len(); x.DType == chunk.Uint8 && x.ChunkB > 1 && count > 0 {
		if extra.Uint(count-1) == unassociated {
			alpha = 1
		}
	}
	x.Params = []byte{byte(params.Uint(1)), alpha}
}

// lercDecoder reads LERC, with or without deflate or zstd around the blob.
type lercDecoder struct {
	d    lerc.Decoder
	blob []byte
	tile []byte // without alpha
}

// Decompress implements chunk.Decompressor.
func (d *lercDecoder) Decompress(dst, src []byte, t *chunk.Tile) error {
	kind, ok := lercTypes[t.DType]
	if !ok || len(t.Params) != 2 || t.Params[0] > lercZstd || t.Params[1] > 1 ||
		t.Params[1] == 1 && (t.Bands < 2 || t.DType != chunk.Uint8) {
		return fault.New(fault.Corrupt, "lerc", fault.NoOffset, "not the parameters of this codec")
	}
	if t.Params[0] != lercPlain {
		var err error
		if src, err = d.unwrap(src, t.Params[0], 2*len(dst)+64<<10, t.Bands-int(t.Params[1])); err != nil {
			return err
		}
	}
	shape := lerc.Shape{Width: t.Width, Height: t.Height, Bands: t.Bands, Type: kind}
	if len(src) >= lerc.SizeAt && t.Bands > 1 {
		switch _, bands := lerc.BlobSize(src); {
		case t.Params[1] == 1 && bands == t.Bands-1:
			return d.withAlpha(dst, src, shape)
		case bands == 1:
			return d.eachBand(dst, src, shape)
		}
	}
	mask, err := d.d.Decode(dst, src, shape)
	if err == nil && mask != nil {
		fillNaN(dst, mask, kind, t.Bands)
	}
	return err
}

// eachBand decodes a tile that has a blob for each band, which libtiff writes if their masks differ.
func (d *lercDecoder) eachBand(dst, src []byte, s lerc.Shape) error {
	bands := s.Bands
	size := len(dst) / (s.Width * s.Height * bands)
	if n := len(dst) / bands; cap(d.tile) < n {
		d.tile = make([]byte, n)
	}
	d.tile = d.tile[:len(dst)/bands]
	s.Bands = 1
	for b := range bands {
		n := 0
		if len(src) >= lerc.SizeAt {
			n, _ = lerc.BlobSize(src)
		}
		if n < lerc.SizeAt || n > len(src) {
			return fault.New(fault.Corrupt, "lerc", fault.NoOffset, "the blob of band %d ends early", b)
		}
		s.Further = b > 0
		mask, err := d.d.Decode(d.tile, src[:n], s)
		if err != nil {
			return err
		}
		if mask != nil {
			fillNaN(d.tile, mask, s.Type, 1)
		}
		for k := range s.Width * s.Height {
			copy(dst[(k*bands+b)*size:][:size], d.tile[k*size:])
		}
		src = src[n:]
	}
	return nil
}

// unwrap decompresses the blobs of a tile, of at most that many bytes together.
func (d *lercDecoder) unwrap(src []byte, compression byte, most, bands int) ([]byte, error) {
	in := bufio.NewReader(bytes.NewReader(src))
	var s chunk.Stream
	var err error
	if compression == lercDeflate {
		s, err = new(deflateDecoder).Stream(in, most)
	} else {
		s, err = zstdDecoder{zstd.New()}.Stream(in, max(most, 8<<20))
	}
	if err != nil {
		return nil, err
	}
	defer s.Close()
	d.blob = d.blob[:0]
	for left := 1; left > 0; left-- {
		var head [lerc.SizeAt]byte
		if err := s.Fill(head[:]); err != nil {
			return nil, err
		}
		n, size := lerc.BlobSize(head[:])
		if n < len(head) || n > most-len(d.blob) {
			return nil, fault.New(fault.Corrupt, "lerc", fault.NoOffset, "a blob of %d bytes, at most %d", n, most)
		}
		if len(d.blob) == 0 && size == 1 {
			left = bands
		}
		pos := len(d.blob)
		d.blob = slices.Grow(d.blob, n)[:pos+n]
		if err := s.Fill(d.blob[pos+copy(d.blob[pos:], head[:]):]); err != nil {
			return nil, err
		}
	}
	return d.blob, s.End()
}

// withAlpha decodes a tile whose last band is 255 where a pixel is valid, else 0.
func (d *lercDecoder) withAlpha(dst, src []byte, s lerc.Shape) error {
	s.Bands--
	if n := len(dst) / (s.Bands + 1) * s.Bands; cap(d.tile) < n {
		d.tile = make([]byte, n)
	}
	d.tile = d.tile[:len(dst)/(s.Bands+1)*s.Bands]
	mask, err := d.d.Decode(d.tile, src, s)
	if err != nil {
		return err
	}
	for k := range s.Width * s.Height {
		target := dst[k*(s.Bands+1):][:s.Bands+1]
		copy(target, d.tile[k*s.Bands:][:s.Bands])
		if target[s.Bands] = 255; mask != nil && mask[k>>3]<<(k&7)&0x80 == 0 {
			target[s.Bands] = 0
		}
	}
	return nil
}

// fillNaN sets the pixels of an image of floats that are not valid, as libtiff does.
func fillNaN(dst, mask []byte, kind lerc.Type, bands int) {
	if kind < lerc.Float32 {
		return
	}
	nan := []byte{0, 0, 0xc0, 0x7f}
	if kind == lerc.Float64 {
		nan = []byte{0, 0, 0, 0, 0, 0, 0xf8, 0x7f}
	}
	size := bands * len(nan)
	for k := 0; k < len(dst)/size; k++ {
		if k&7 == 0 && mask[k>>3] == 0xff { // eight valid pixels
			k += 7
			continue
		}
		if mask[k>>3]<<(k&7)&0x80 == 0 {
			for p := dst[k*size:][:size]; len(p) > 0; p = p[len(nan):] {
				copy(p, nan)
			}
		}
	}
}

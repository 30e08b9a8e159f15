package lerc

import (
	"bufio"
	"bytes"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
)

func init() { chunk.Register(chunk.LERC, func() chunk.Decompressor { return new(tileDecoder) }) }

// tileDecoder reads LERC, with or without deflate or zstd around the blob.
type tileDecoder struct {
	inner chunk.Opened // of what surrounds a blob
	d     Decoder
	blob  []byte
	tile  []byte // without alpha
}

// Decompress implements chunk.Decompressor.
func (d *tileDecoder) Decompress(dst, src []byte, t *chunk.Tile) error {
	kind := slices.Index(chunk.LERCTypes[:], t.DType)
	if kind < 0 || len(t.Params) != 2 || t.Params[0] > chunk.LERCZstd || t.Params[1] > 1 ||
		t.Params[1] == 1 && (t.Bands < 2 || t.DType != chunk.Uint8) {
		return fault.New(fault.Corrupt, "lerc", "not the parameters of this codec")
	}
	if t.Params[0] != chunk.LERCPlain {
		var err error
		if src, err = d.unwrap(src, t.Params[0], 2*len(dst)+64<<10, t.Bands-int(t.Params[1])); err != nil {
			return err
		}
	}
	shape := Shape{Width: t.Width, Height: t.Height, Bands: t.Bands, Type: Type(kind)}
	if len(src) >= SizeAt && t.Bands > 1 {
		switch _, bands := BlobSize(src); {
		case t.Params[1] == 1 && bands == t.Bands-1:
			return d.withAlpha(dst, src, shape)
		case bands == 1:
			return d.eachBand(dst, src, shape)
		}
	}
	mask, err := d.d.Decode(dst, src, shape)
	if err == nil && mask != nil {
		fillNaN(dst, mask, shape.Type, t.Bands)
	}
	return err
}

// eachBand decodes a tile that has a blob for each band, which libtiff writes if their masks differ.
func (d *tileDecoder) eachBand(dst, src []byte, s Shape) error {
	bands := s.Bands
	size := len(dst) / (s.Width * s.Height * bands)
	if n := len(dst) / bands; cap(d.tile) < n {
		d.tile = make([]byte, n)
	}
	d.tile = d.tile[:len(dst)/bands]
	s.Bands = 1
	for b := range bands {
		n := 0
		if len(src) >= SizeAt {
			n, _ = BlobSize(src)
		}
		if n < SizeAt || n > len(src) {
			return fault.New(fault.Corrupt, "lerc", "the blob of band %d ends early", b)
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
func (d *tileDecoder) unwrap(src []byte, compression byte, most, bands int) ([]byte, error) {
	codec, window := chunk.Zstd, max(most, 8<<20)
	if compression == chunk.LERCDeflate {
		codec, window = chunk.Deflate, most
	}
	inner, err := d.inner.Of(codec)
	if err != nil {
		return nil, err
	}
	s, err := inner.(chunk.StreamDecompressor).Stream(bufio.NewReader(bytes.NewReader(src)), window)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	d.blob = d.blob[:0]
	for left := 1; left > 0; left-- {
		var head [SizeAt]byte
		if err := s.Fill(head[:]); err != nil {
			return nil, err
		}
		n, size := BlobSize(head[:])
		if n < len(head) || n > most-len(d.blob) {
			return nil, fault.New(fault.Corrupt, "lerc", "a blob of %d bytes, at most %d", n, most)
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
func (d *tileDecoder) withAlpha(dst, src []byte, s Shape) error {
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
func fillNaN(dst, mask []byte, kind Type, bands int) {
	if kind < Float32 {
		return
	}
	nan := []byte{0, 0, 0xc0, 0x7f}
	if kind == Float64 {
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

package tiff

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// Params of the codec YCbCr are three bytes, the codec of the stored samples and how many columns and rows share
// their chroma, and colorimetry. Catalogs store the values: they must not change.
const (
	yCbCrHead   = 3
	colorimetry = 4 * 9 // float32 of YCbCrCoefficients and ReferenceBlackWhite, little-endian
)

// yCbCrShares are the columns and rows that may share their chroma: the ones that libtiff makes RGB of.
var yCbCrShares = [][2]byte{{1, 1}, {1, 2}, {2, 1}, {2, 2}, {4, 1}, {4, 2}, {4, 4}}

// ycbcr reads how samples become RGB, and refuses images that libtiff does not make RGB of.
func (p *parser) ycbcr(x *chunk.Index) {
	share := [2]byte{2, 2}
	v := p.Uints(ifd.TagYCbCrSubSampling)
	if v.Len() >= 2 {
		share = [2]byte{byte(min(v.Uint(0), 255)), byte(min(v.Uint(1), 255))}
	}
	colours := p.colorimetry()
	codec := x.Codec
	switch {
	case codec.Samples(): // which have no blocks of luma and chroma in rows
		p.Fail(fault.Unsupported, ifd.TagPhotometric, "YCbCr samples with compression %s", codec)
	case x.Bands != 3 || x.ChunkB != 3 || x.DType != chunk.Uint8 || x.Packed != 0:
		p.Fail(fault.Unsupported, ifd.TagPhotometric, "YCbCr samples of %d bands of %s in chunks of %d", x.Bands,
			x.DType, x.ChunkB)
	case x.Predictor != chunk.NoPredictor:
		p.Fail(fault.Unsupported, ifd.TagPredictor, "predictor %d for YCbCr samples", x.Predictor)
	case !slices.Contains(yCbCrShares, share):
		p.Fail(fault.Unsupported, ifd.TagYCbCrSubSampling, "chroma that %d columns and %d rows share", share[0],
			share[1])
	}
	x.Codec, x.Params = chunk.YCbCr, append([]byte{byte(codec), share[0], share[1]}, colours...)
}

// colorimetry returns YCbCrCoefficients and ReferenceBlackWhite, or the numbers that libtiff has in their place.
func (p *parser) colorimetry() (params []byte) {
	for _, tag := range []struct {
		number uint16
		absent []float32
	}{
		{ifd.TagYCbCrCoefficients, []float32{0.299, 0.587, 0.114}},
		{ifd.TagReferenceBlackWhite, []float32{0, 255, 128, 255, 128, 255}},
	} {
		v, numbers := p.Value(tag.number), tag.absent
		if v.Len() > 0 {
			if v.Len() != len(tag.absent) {
				p.Fail(fault.Corrupt, tag.number, "%d values, not %d", v.Len(), len(tag.absent))
				return nil
			}
			numbers = make([]float32, v.Len())
			for i := range numbers {
				numbers[i] = v.Number(i)
			}
		}
		for _, f := range numbers {
			// libtiff refuses numbers that leave the range of int32 when 128 is subtracted, too.
			if !(math.Abs(float64(f)) < math.MaxInt32-128) {
				p.Fail(fault.Corrupt, tag.number, "a value of %v", f)
			}
			params = binary.LittleEndian.AppendUint32(params, math.Float32bits(f))
		}
		if tag.number == ifd.TagYCbCrCoefficients && numbers[1] == 0 {
			p.Fail(fault.Corrupt, tag.number, "0 for green")
		}
	}
	return params
}

// rgbTables makes RGB of YCbCr as libtiff does (TIFFYCbCrtoRGB), which GDAL reads such images by.
type rgbTables struct {
	params []byte // that the tables are made of
	y      [256]int32
	red    [256]int32 // by Cr
	blue   [256]int32 // by Cb
	greenR [256]int32 // by Cr, times 2^16
	greenB [256]int32 // by Cb, times 2^16
}

// reset makes the tables of colorimetry.
func (t *rgbTables) reset(params []byte) {
	if t.params != nil && string(t.params) == string(params) {
		return
	}
	t.params = append(t.params[:0], params...)
	var n [9]float32
	for i := range n {
		n[i] = math.Float32frombits(binary.LittleEndian.Uint32(params[4*i:]))
	}
	red, green, blue, reference := n[0], n[1], n[2], n[3:]
	fromCr, fromCb := 2-2*red, 2-2*blue
	r, b := fixed(fromCr), fixed(fromCb)
	greenR, greenB := -fixed(red*fromCr/green), -fixed(blue*fromCb/green)
	const half = 1 << 15
	for i := range 256 {
		x := int32(i)
		cr := value(x-128, reference[4]-128, reference[5]-128, 127)
		cb := value(x-128, reference[2]-128, reference[3]-128, 127)
		t.y[i] = value(x, reference[0], reference[1], 255)
		t.red[i], t.blue[i] = (r*cr+half)>>16, (b*cb+half)>>16
		t.greenR[i], t.greenB[i] = greenR*cr, greenB*cb+half
	}
}

// fixed returns a factor, cut to 0 to 2, times 2^16.
func fixed(f float32) int32 {
	f = max(0, min(f, 2))
	if f != f {
		f = 0
	}
	return int32(float64(f*(1<<16)) + 0.5)
}

// value returns the value of a code between the codes of black and white, which become 0 and size. It is cut to 32
// times the range of codes, so products fit in 32 bits.
func value(code int32, black, white, size float32) int32 {
	spread := cmp.Or(white-black, 1)
	v := float32(code-int32(black)) * size / spread
	if v != v {
		v = 0
	}
	return int32(max(-128*32, min(v, 128*32)))
}

// rgb writes one pixel.
func (t *rgbTables) rgb(dst []byte, y, cb, cr byte) {
	luma := t.y[y]
	dst[0] = clip(luma + t.red[cr])
	dst[1] = clip(luma + (t.greenB[cb]+t.greenR[cr])>>16)
	dst[2] = clip(luma + t.blue[cb])
}

func clip(v int32) byte { return byte(max(0, min(v, 255))) }

// yCbCrDecoder reads samples that are stored as blocks of all luma that share chroma, and that chroma.
type yCbCrDecoder struct {
	inner  chunk.Opened
	tables rgbTables
	blocks []byte
}

// Decompress implements chunk.Decompressor.
func (d *yCbCrDecoder) Decompress(dst, src []byte, t *chunk.Tile) error {
	bad := fault.New(fault.Corrupt, "ycbcr", "not the parameters of this codec")
	if len(t.Params) != yCbCrHead+colorimetry || t.DType != chunk.Uint8 || t.Bands != 3 ||
		!slices.Contains(yCbCrShares, [2]byte(t.Params[1:3])) {
		return bad
	}
	codec, across, down := chunk.Codec(t.Params[0]), int(t.Params[1]), int(t.Params[2])
	block := across*down + 2
	row := (t.Width + across - 1) / across * block
	blockRows := func(rows int) int { return (rows + down - 1) / down }
	need := blockRows(t.Rows)
	switch {
	case codec == chunk.Raw:
		// Some writers leave out the rows of a tile that lie below the image.
		if least := blockRows(min(t.Rows, t.LeastRows)) * row; len(src) < least {
			return fault.New(fault.Corrupt, "ycbcr", "%d bytes stored, %d needed", len(src), least)
		}
		need = min(need, len(src)/row)
	case !codec.Samples():
		if n := blockRows(t.Height) * row; cap(d.blocks) < n {
			d.blocks = make([]byte, n)
		}
		inner, err := d.inner.Of(codec)
		if err != nil {
			return err
		}
		blocks := d.blocks[:blockRows(t.Height)*row]
		if err := inner.Decompress(blocks, src, &chunk.Tile{Need: need * row, Number: 1}); err != nil {
			return err
		}
		src = blocks
	default:
		return bad
	}
	d.tables.reset(t.Params[yCbCrHead:])
	rows := min(t.Rows, need*down)
	for y := range rows {
		line, blocks := dst[y*t.Width*3:][:t.Width*3], src[y/down*row:]
		for x := range t.Width {
			b := blocks[x/across*block:][:block]
			d.tables.rgb(line[3*x:][:3], b[y%down*across+x%across], b[block-2], b[block-1])
		}
	}
	clear(dst[rows*t.Width*3 : t.Rows*t.Width*3])
	return nil
}

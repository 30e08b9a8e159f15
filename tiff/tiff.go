// Package tiff reads TIFF and BigTIFF images into the chunk index, and writes TACO optimized
// GeoTIFFs (TOGs).
//
// Open reads the first image of a file (TIFF 6.0, TIFF Technical Note 3): tiles or strips, PlanarConfiguration 1
// and 2, either byte order, predictors 1, 2 and 3, sparse chunks; the compressions of the table in tags.go;
// integers of 1 to 64 bits, floats of 16 to 64 bits, complex numbers. A TOG (TACO 0.2 specification, "TACO Optimized
// GeoTIFF") is the output of GDAL's COG driver with INTERLEAVE=TILE. The reader does not depend on the bytes of that
// driver around a tile (leader, trailer, ghost area).
//
// Not supported, and refused with an error that names it: other compressions (fax codes, JPEG XL, …), samples of mixed
// types, YCbCr in planes or with a predictor, signed integers and predictors of odd widths, predictors on complex
// numbers. OpenMask reads the mask of the first image, OpenOverviews its overviews, and tiff/extras
// everything else about it. OpenPages reads further images as bands or steps of time of one. Package
// store/catalog reads files beside this one (.msk, .aux.xml); only OpenOverviewFile is for one (.ovr).
//
// The reader accepts these files that violate TIFF, as GDAL does: one BitsPerSample or SampleFormat for all
// samples; more BitsPerSample than samples; a missing Compression, for uncompressed chunks; a RowsPerStrip that is
// missing, or at least the height although there are several strips; tiles under the tags of strips; more offsets than
// chunks; a chain of directories that breaks after the first (Meta.ChainErr); compressed strips that hold more than
// their rows; StripByteCounts that are missing, 0 or too small, if the samples are not compressed or there is one
// strip, so the size follows. Uncompressed tiles at the edges may lack the part outside the image. Unlike GDAL, a chunk
// with an offset is never sparse: if its size does not follow, the file is corrupt.
//
// An uncompressed chunk of more than 64 MiB is cut into pieces of whole rows of up to 4 MiB, so a
// window of an image in one strip costs no more than its rows. A compressed one stays whole in the index;
// its decompressor can decode it in pieces (chunk.StreamDecompressor).
package tiff

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// Image is one image of a file: its chunk index and its metadata.
type Image struct {
	Index *chunk.Index
	Meta  Meta
}

// Limits bound the memory and time that a file can cost. A zero field means its default.
type Limits struct {
	MaxChunk    int   // decoded bytes of a chunk, or of a row if InPieces cuts it. Default 256 MiB
	MaxTagBytes int64 // bytes of directories and tag values beyond the first 64 KiB. Default 64 MiB
	MaxIFDs     int   // directories of a file. Default 256
}

// IFD returns the limits for the directory parser.
func (l Limits) IFD() ifd.Limits { return ifd.Limits{MaxBytes: l.MaxTagBytes, MaxIFDs: l.MaxIFDs} }

// Open reads the structure of a file. It makes one read if the directories and tag values lie within the
// first 64 KiB, as in every TOG of up to about 5000 tiles.
//
// Errors are Corrupt (the file contradicts TIFF), Unsupported, or Limit.
func Open(ctx context.Context, r source.Reader, l Limits) (*Image, error) {
	file, err := ifd.Open(ctx, r, l.IFD())
	if err != nil {
		return nil, err
	}
	return FromFile(ctx, file, l)
}

// FromFile is Open for a file whose directories are read already.
func FromFile(ctx context.Context, f *ifd.File, l Limits) (*Image, error) {
	image, err := fromDirectory(ctx, f, &f.Dirs[0], l)
	if err == nil {
		err = image.Meta.countIFDs(ctx, f)
	}
	if err != nil {
		return nil, err
	}
	return image, nil
}

// fromDirectory reads the image of a directory.
func fromDirectory(ctx context.Context, f *ifd.File, d *ifd.Directory, l Limits) (*Image, error) {
	index, err := read(ctx, f, d, (*parser).index)
	if err != nil {
		return nil, err
	}
	meta, err := metaOf(ctx, f, d)
	if err != nil {
		return nil, err
	}
	index.NoData, index.NoDataBits = NoData(meta.NoData, index.DType)
	index.Alpha = meta.isAlpha(index)
	index.Classes = meta.Photometric == PhotometricPalette && index.Bands == 1 && index.DType.Integer()
	index.Physical = Physical(index, meta.Bands)
	if len(strings.Fields(meta.Joint)) == index.Bands {
		index.Joint = meta.Joint
	}
	if err := index.Validate(f.Size(), cmp.Or(l.MaxChunk, chunk.DefaultMaxBytes)); err != nil {
		return nil, err
	}
	return &Image{Index: index, Meta: meta}, nil
}

// isAlpha reports whether the last band of an image is alpha that GDAL takes for a mask. Drivers of GDAL call the last
// of four plain bytes alpha in ExtraSamples, and say what it is in GDAL_METADATA.
func (m *Meta) isAlpha(x *chunk.Index) bool {
	if last := x.Bands - 1; last < len(m.Bands) && m.Bands[last].Colour != "" {
		return IsAlpha(m.Bands[last].Colour, x)
	}
	last := len(m.ExtraSamples) - 1
	return last >= 0 && (m.ExtraSamples[last] == alphaAssociated || m.ExtraSamples[last] == alphaPlain) &&
		IsAlpha(AlphaColour, x)
}

// AlphaColour is what GDAL calls the colour interpretation of alpha.
const AlphaColour = "Alpha"

// IsAlpha reports whether the last band of an image, of a colour interpretation of GDAL, masks the others: of one or
// three of them, and of uint8 or uint16.
func IsAlpha(colour string, x *chunk.Index) bool {
	return colour == AlphaColour && (x.Bands == 2 || x.Bands == 4) &&
		(x.DType == chunk.Uint8 || x.DType == chunk.Uint16)
}

// Values of ExtraSamples that mean alpha.
const (
	alphaAssociated = 1 // colours are multiplied by it
	alphaPlain      = 2
)

// read builds the index of the image of a directory, not yet validated as a whole.
func read(ctx context.Context, f *ifd.File, d *ifd.Directory, build func(*parser) *chunk.Index) (*chunk.Index, error) {
	// All values in few reads, since each would otherwise cost a request of a remote file.
	if err := f.Prefetch(ctx, d, wanted...); err != nil {
		return nil, err
	}
	p := parser{f.Tags(ctx, d)}
	index := build(&p)
	if p.Err != nil {
		return nil, p.Err
	}
	cutRaw(index, f.Size())
	return index, nil
}

// wanted are the tags whose values may lie outside the directory.
var wanted = []uint16{
	ifd.TagBitsPerSample, ifd.TagSampleFormat, ifd.TagTileOffsets, ifd.TagTileByteCounts, ifd.TagStripOffsets,
	ifd.TagStripByteCounts, ifd.TagExtraSamples, ifd.TagJPEGTables, ifd.TagPixelScale, ifd.TagTiepoint,
	ifd.TagTransformation, ifd.TagGeoKeys, ifd.TagGeoDoubles, ifd.TagGeoASCII, ifd.TagGDALMetadata, ifd.TagGDALNoData,
	ifd.TagLercParameters, ifd.TagYCbCrCoefficients, ifd.TagReferenceBlackWhite,
}

// index builds the chunk index. It leaves out nodata, and the validation of the whole.
func (p *parser) index() *chunk.Index {
	index := &chunk.Index{
		Width:     int(p.Between(ifd.TagImageWidth, 0, 1, chunk.MaxSide)),
		Height:    int(p.Between(ifd.TagImageLength, 0, 1, chunk.MaxSide)),
		Bands:     int(p.Between(ifd.TagSamplesPerPixel, 1, 1, math.MaxUint16)),
		Codec:     p.codec(),
		BigEndian: p.File.BigEndian,
	}
	index.DType, index.Packed = p.dtype(index.Bands)
	index.Predictor = p.predictor(index)
	if index.ChunkB = 1; p.Between(ifd.TagPlanarConfig, 1, 1, 2) == 1 && index.Bands > 1 {
		index.ChunkB, index.Inner = index.Bands, chunk.YXB
	}
	p.coding(index)
	p.grid(index)
	if p.Err != nil {
		return nil
	}
	p.ranges(index)
	return index
}

// codec returns the codec of the chunks. They are uncompressed if the Compression tag is missing (TIFF 6.0).
func (p *parser) codec() chunk.Codec {
	// Rumi files of generation 2 lack the tag too, and their frames must not be taken for samples. They also
	// lack PhotometricInterpretation, which TIFF requires. As a second guard, ranges compares the sizes of the
	// chunks with the sizes of uncompressed samples.
	if p.Dir.Find(ifd.TagCompression) == nil && p.Dir.Find(ifd.TagPhotometric) == nil && p.tiled() {
		p.Fail(fault.Unsupported, ifd.TagCompression,
			"neither Compression nor PhotometricInterpretation, as in rumi files of generation 2")
		return 0
	}
	used := compressionOf(uint16(p.Between(ifd.TagCompression, compNone, 0, math.MaxUint16)))
	if used.unread {
		advice := ""
		if used.gdal {
			advice = "; this converts the file: gdal_translate -co COMPRESS=DEFLATE in.tif out.tif"
		}
		p.Fail(fault.Unsupported, ifd.TagCompression, "compression %s%s", CompressionName(used.number), advice)
	}
	return used.codec
}

// SampleFormat values.
const (
	formatUint         = 1
	formatInt          = 2
	formatFloat        = 3
	formatComplexInt   = 5
	formatComplexFloat = 6
)

// DTypeOf returns the sample type of a SampleFormat and a BitsPerSample (both components of a
// complex number together), or chunk.Invalid.
func DTypeOf(format, bits uint64) chunk.DType {
	return sampleTypes[[2]uint64{format, bits}]
}

var sampleTypes = map[[2]uint64]chunk.DType{
	{formatUint, 8}: chunk.Uint8, {formatUint, 16}: chunk.Uint16,
	{formatUint, 32}: chunk.Uint32, {formatUint, 64}: chunk.Uint64,
	{formatInt, 8}: chunk.Int8, {formatInt, 16}: chunk.Int16,
	{formatInt, 32}: chunk.Int32, {formatInt, 64}: chunk.Int64,
	{formatFloat, 16}: chunk.Float16, {formatFloat, 32}: chunk.Float32, {formatFloat, 64}: chunk.Float64,
	{formatComplexInt, 32}: chunk.ComplexInt16, {formatComplexInt, 64}: chunk.ComplexInt32,
	{formatComplexFloat, 32}: chunk.ComplexFloat16, {formatComplexFloat, 64}: chunk.Complex64,
	{formatComplexFloat, 128}: chunk.Complex128,
}

// FormatOf returns SampleFormat and BitsPerSample of a sample type, or zeros if TIFF does not have it.
func FormatOf(d chunk.DType) (format, bits uint16) {
	for k, v := range sampleTypes {
		if v == d {
			return uint16(k[0]), uint16(k[1])
		}
	}
	return 0, 0
}

// dtype returns the sample type, and the bits of a sample as stored if they are fewer.
func (p *parser) dtype(bands int) (d chunk.DType, packed int) {
	bits := p.same(ifd.TagBitsPerSample, bands, 1)
	format := p.same(ifd.TagSampleFormat, bands, formatUint)
	if d = DTypeOf(format, bits); d != chunk.Invalid {
		return d, 0
	}
	switch {
	case format == formatFloat && bits == 24:
		d = chunk.Float32
	case format != formatUint || bits == 0 || bits > 32:
		p.Fail(fault.Unsupported, ifd.TagBitsPerSample, "samples of %d bits with SampleFormat %d", bits, format)
	case bits < 8:
		d = chunk.Uint8
	case bits < 16:
		d = chunk.Uint16
	default:
		d = chunk.Uint32
	}
	return d, int(bits)
}

// predictor returns the predictor. It is 1 for uncompressed and PackBits data and for codecs of images even if the tag
// differs, as in libtiff.
func (p *parser) predictor(x *chunk.Index) chunk.Predictor {
	v := p.Uint(ifd.TagPredictor, 1)
	if p.Err != nil {
		return chunk.NoPredictor
	}
	if slices.ContainsFunc(compressions, func(c compression) bool { return c.plain && c.codec == x.Codec }) {
		return chunk.NoPredictor
	}
	if v != 1 && x.Packed != 0 {
		p.Fail(fault.Unsupported, ifd.TagPredictor, "predictor %d for samples of %d bits", v, x.Packed)
		return chunk.NoPredictor
	}
	float := x.DType == chunk.Float16 || x.DType == chunk.Float32 || x.DType == chunk.Float64
	switch {
	case v == 1:
	case v == 2 && x.DType.Components() == 1:
	case v == 3 && float:
	default:
		p.Fail(fault.Unsupported, ifd.TagPredictor, "predictor %d for %s samples", v, x.DType)
	}
	return chunk.Predictor(v)
}

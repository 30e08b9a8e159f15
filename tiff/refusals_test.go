package tiff

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

var offsetOf = regexp.MustCompile(` at \d+`)

// refusal returns the error of Open about a file without the directory and offsets in it, "" for none.
func refusal(file []byte) string {
	if _, err := Open(context.Background(), &corpus.Mem{B: file}, Limits{}); err != nil {
		return strings.TrimPrefix(offsetOf.ReplaceAllString(err.Error(), ""), "ifd 0 ")
	}
	return ""
}

// tagNumbers are the tags that texts of fields name.
var tagNumbers = map[string]uint16{
	"width":        ifd.TagImageWidth,
	"height":       ifd.TagImageLength,
	"bits":         ifd.TagBitsPerSample,
	"compression":  ifd.TagCompression,
	"photometric":  ifd.TagPhotometric,
	"fill":         ifd.TagFillOrder,
	"bands":        ifd.TagSamplesPerPixel,
	"planar":       ifd.TagPlanarConfig,
	"predictor":    ifd.TagPredictor,
	"tilew":        ifd.TagTileWidth,
	"tileh":        ifd.TagTileLength,
	"offsets":      ifd.TagTileOffsets,
	"sizes":        ifd.TagTileByteCounts,
	"extra":        ifd.TagExtraSamples,
	"format":       ifd.TagSampleFormat,
	"jpegtables":   ifd.TagJPEGTables,
	"coefficients": ifd.TagYCbCrCoefficients,
	"sub":          ifd.TagYCbCrSubSampling,
	"blackwhite":   ifd.TagReferenceBlackWhite,
	"lerc":         ifd.TagLercParameters,
	"rows":         ifd.TagRowsPerStrip,
	"kind":         ifd.TagNewSubfileType,
	"palette":      ifd.TagColorMap,
	"nodata":       ifd.TagGDALNoData,
	"description":  ifd.TagImageDescription,
	"gdal":         ifd.TagGDALMetadata,
	"keys":         ifd.TagGeoKeys,
	"scale":        ifd.TagPixelScale,
	"tie":          ifd.TagTiepoint,
	"matrix":       ifd.TagTransformation,
	"at":           ifd.TagStripOffsets,
	"counts":       ifd.TagStripByteCounts,
}

// fieldsOf returns the fields of a text as "bands=3 bits=8,8 blackwhite=0.,1. -predictor": the least of SHORT, LONG
// and LONG8 that has the numbers, or DOUBLE if one has a point; the last one is missing. "undefined" and "byte" are
// two bytes of these types, and what follows ' is text, in which /**/ is a space and \x01 a new line.
func fieldsOf(text string) (fields []ifdwrite.Field) {
	for word := range strings.FieldsSeq(text) {
		name, values, _ := strings.Cut(strings.TrimPrefix(word, "-"), "=")
		field := ifdwrite.Field{Tag: tagNumbers[name]}
		if field.Tag == 0 {
			panic(word)
		}
		var floats []float64
		var longs []uint64
		for value := range strings.SplitSeq(values, ",") {
			if number, err := strconv.ParseUint(value, 10, 64); err == nil {
				longs = append(longs, number)
			} else if number, err := strconv.ParseFloat(value, 64); err == nil {
				floats = append(floats, number)
			}
		}
		switch {
		case word[0] == '-':
		case strings.HasPrefix(values, "'"):
			field = ifdwrite.Text(field.Tag, strings.NewReplacer("/**/", " ", "\x01", "\n").Replace(values[1:]))
		case len(floats) > 0:
			field = ifdwrite.Doubles(field.Tag, floats...)
		case values == "undefined":
			field.Type, field.Data = ifd.Undefined, []byte{1, 2}
		case values == "byte":
			field.Type, field.Data = ifd.Byte, []byte{1, 2}
		case len(longs) == 0 && values != "":
			field = ifdwrite.Text(field.Tag, values)
		case slices.ContainsFunc(longs, func(n uint64) bool { return n > math.MaxUint32 }):
			field = ifdwrite.Long8s(field.Tag, longs...)
		case slices.ContainsFunc(longs, func(n uint64) bool { return n > math.MaxUint16 }):
			field = ifdwrite.Longs(field.Tag, cast[uint32](longs)...)
		default:
			field = ifdwrite.Shorts(field.Tag, cast[uint16](longs)...)
		}
		fields = append(fields, field)
	}
	return fields
}

func cast[T uint16 | uint32](longs []uint64) (out []T) {
	for _, n := range longs {
		out = append(out, T(n))
	}
	return out
}

// checkRefusals opens files of one tile with other fields, and compares the errors.
func checkRefusals(t *testing.T, rows [][2]string) {
	for _, row := range rows {
		if got := refusal(oneTile(fieldsOf(row[0])...)); got != row[1] {
			t.Errorf("%s: %q, want %q", row[0], got, row[1])
		}
	}
}

// TestRefusals: one tag that contradicts TIFF, or that is not read, is what the error names.
func TestRefusals(t *testing.T) {
	checkRefusals(t, [][2]string{
		{"width=0", "tag 256: value 0: corrupt"},
		{"width=2147483648", "tag 256: value 2147483648: corrupt"},
		{"-width", "tag 256: missing: corrupt"},
		{"height=0", "tag 257: value 0: corrupt"},
		{"-height", "tag 257: missing: corrupt"},
		{"bands=0", "tag 277: value 0: corrupt"},
		{"bands=65536", "tag 277: value 65536: corrupt"},
		{"-bands", ""},
		{"tilew=0", "tag 322: value 0: corrupt"},
		{"-tilew", "tag 322: missing: corrupt"},
		{"tileh=0", "tag 323: value 0: corrupt"},
		{"-tileh", "tag 323: missing: corrupt"},
		{"-tileh -tilew", "tag 322: missing: corrupt"},
		{"compression=0", "tag 259: compression 0: unsupported"},
		{"compression=65536", "tag 259: value 65536: corrupt"},
		{"-compression", ""},
		{"-photometric", ""},
		{"-compression -photometric",
			"tag 259: neither Compression nor PhotometricInterpretation, as in rumi files of generation 2: " +
				"unsupported"},
		{"planar=0", "tag 284: value 0: corrupt"},
		{"planar=3", "tag 284: value 3: corrupt"},
		{"-planar", ""},
		{"bits=8,8", ""},
		{"bands=3 planar=1 bits=8,8", "tag 258: 2 values for 3 samples a pixel: corrupt"},
		{"bands=3 planar=1 bits=8", ""},
		{"bands=3 planar=1 bits=8,8,16", "tag 258: samples of different types in one image: unsupported"},
		{"bands=3 planar=1 bits=8,8,8,8", "tag 258: 4 values for 3 samples a pixel: corrupt"},
		{"bands=1 bits=8,16", ""},
		{"bands=3 planar=1 bits=8,8,8,8 photometric=2", ""},
		{"bands=4 planar=1 bits=8,8,8,8,8 photometric=2", "tag 258: 5 values for 4 samples a pixel: corrupt"},
		{"bands=4 planar=1 bits=8,8,8,8,8 photometric=2 extra=0", ""},
		{"bands=4 planar=1 bits=8,8,8,8,8 photometric=5", ""},
		{"bands=3 planar=1 format=1,1", "tag 339: 2 values for 3 samples a pixel: corrupt"},
		{"bands=3 planar=1 format=1,1,2", "tag 339: samples of different types in one image: unsupported"},
		{"bands=3 planar=1 format=1,1,1,1", ""},
		{"bits=eight", "tag 258: 6 values of type 2: corrupt"},
		{"fill=0", "tag 266: FillOrder 0: unsupported"},
		{"fill=2", ""},
		{"fill=3", "tag 266: FillOrder 3: unsupported"},
		{"fill=65536", "tag 266: FillOrder 65536: unsupported"},
		{"fill=65537", "tag 266: FillOrder 65537: unsupported"},
	})
}

// checkRanges opens files of 16 by 16 pixels, and compares the rows of their chunks and where these lie, or the
// errors.
func checkRanges(t *testing.T, rows [][2]string) {
	const bare = "-tilew -tileh -offsets -sizes compression=1 "
	for _, row := range rows {
		file := oneTile(fieldsOf(bare + row[0])...)
		got := refusal(file)
		if image, err := Open(t.Context(), &corpus.Mem{B: file}, Limits{}); err == nil {
			got = fmt.Sprint(image.Index.ChunkH, image.Index.Ranges)
		}
		if got != row[1] {
			t.Errorf("%s: %q, want %q", row[0], got, row[1])
		}
	}
}

// TestRangesOfStrips: offsets and sizes of strips lie in the file, are as many as the image needs, and hold the
// samples. What is missing follows from the image, where samples are not compressed or there is one strip.
func TestRangesOfStrips(t *testing.T) {
	checkRanges(t, [][2]string{
		{"rows=4 at=300,364,428,492 counts=64,64,64,64", "4 [{300 64} {364 64} {428 64} {492 64}]"},
		{"rows=0 at=300,364,428,492 counts=64,64,64,64", "tag 278: value 0: corrupt"},
		{"rows=4294967296 at=300,364,428,492 counts=64,64,64,64", "tag 278: value 4294967296: corrupt"},
		{"rows=4 counts=64,64,64,64", "tag 273: missing: corrupt"},
		{"rows=4 at=300,364,428 counts=64,64,64,64",
			"tag 273: 3 entries for 4 positions with 1 chunks each: corrupt"},
		{"bands=2 rows=4 at=300,364,428,492,300,364,428 counts=64,64,64,64",
			"tag 273: 7 entries for 4 positions with 2 chunks each: corrupt"},
		{"rows=4 at=300,364,428,492", "4 [{300 64} {364 64} {428 64} {492 64}]"},
		{"rows=4 at=300,364,428,492 counts=64,64", "4 [{300 64} {364 64} {428 64} {492 64}]"},
		{"compression=8 rows=4 at=300,364,428,492", "tag 279: missing: corrupt"},
		{"compression=8 rows=4 at=300,364,428,492 counts=64,64,64", "tag 279: 3 entries for 4 chunks: corrupt"},
		{"compression=8 rows=16 at=300", "16 [{300 352}]"},
		{"compression=8 rows=16 at=300 counts=0", "16 [{300 372}]"},
		{"compression=8 rows=4 at=300,364,428,492 counts=64,0,64,64",
			"tag 279: entry 1 is 0, and its offset is 364: where its samples end does not follow: corrupt"},
		{"compression=8 rows=4 at=300,364,0,492 counts=64,64,0,64", "4 [{300 64} {364 64} {0 0} {492 64}]"},
		{"compression=8 rows=16 at=5000 counts=0", "tag 273: entry 0 is 5000, in a file of 672 bytes: corrupt"},
		{"compression=8 rows=16 at=5000", "tag 273: entry 0 is 5000, in a file of 652 bytes: corrupt"},
		{"rows=16 at=5000", "chunk index: chunk 0: range of 256 bytes ends past the file's 652: corrupt"},
		{"rows=4 at=300,0,428,492 counts=64,64,64,64", "tag 273: entry 1 is 0: corrupt"},
		{"rows=4 at=300,0,428,492", "tag 273: entry 1 is 0: corrupt"},
		{"rows=4 at=300,9223372036854775808,428,492 counts=64,64,64,64",
			"tag 273: entry 1 is 9223372036854775808: corrupt"},
		{"rows=4 at=300,9223372036854775807,428,492 counts=64,64,64,64", "tag 279: entry 1 is 64: corrupt"},
		{"rows=4 at=300,364,428,492 counts=64,9223372036854775807,64,64",
			"tag 279: entry 1 is 9223372036854775807: corrupt"},
		{"rows=4 at=300,364,428,492 counts=64,9223372036854775443,64,64", "4 [{300 64} {364 64} {428 64} {492 64}]"},
		{"rows=4 at=300,364,428,492 counts=64,9223372036854775444,64,64",
			"tag 279: entry 1 is 9223372036854775444: corrupt"},
		{"rows=4 at=300,364,428,492 counts=64,60,64,64", "4 [{300 64} {364 64} {428 64} {492 64}]"},
		{"rows=4 at=300,363,428,492 counts=64,60,64,64", "4 [{300 64} {363 64} {428 64} {492 64}]"},
		{"rows=4 at=300,365,428,492 counts=64,60,64,64", "tag 279: chunk 1 has 60 bytes, 64 needed: corrupt"},
		{"rows=4 at=300,364,364,492 counts=64,60,64,64", "4 [{300 64} {364 64} {364 64} {492 64}]"},
		{"rows=4 at=300,364,428,492 counts=64,64,64,63", "4 [{300 64} {364 64} {428 64} {492 64}]"},
		{"-compression rows=4 at=300,364,428,492 counts=64,64,64,64", "4 [{300 64} {364 64} {428 64} {492 64}]"},
		{"-compression rows=4 at=300,364,428,492 counts=64,64,0,64", "4 [{300 64} {364 64} {428 64} {492 64}]"},
		{"-compression rows=4 at=300,364,428,492 counts=64,65,64,64",
			"tag 279: no Compression tag, and chunk 1 has 65 bytes where samples that are not compressed have " +
				"64: unsupported"},
		{"-compression rows=4 at=300,364,428,492 counts=64,63,64,64",
			"tag 279: no Compression tag, and chunk 1 has 63 bytes where samples that are not compressed have " +
				"64: unsupported"},
		{"compression=8 at=300,364,428,492 counts=64,64,64,64",
			"tag 278: missing, and StripOffsets has 4 entries: corrupt"},
		{"at=300,364,428,492 counts=64,64,64,64", "4 [{300 64} {364 64} {428 64} {492 64}]"},
		{"at=300,364,428,492 counts=65,64,64,64", "tag 278: missing, and StripOffsets has 4 entries: corrupt"},
		{"at=300,364,428,492 counts=0,64,64,64", "tag 278: missing, and StripOffsets has 4 entries: corrupt"},
		{"at=300,364,428,492 counts=272,64,64,64", "tag 278: missing, and StripOffsets has 4 entries: corrupt"},
		{"at=300,364,428,492 counts=128,64,64,64", "tag 278: missing, and StripOffsets has 4 entries: corrupt"},
		{"at=300,364,428,492", "tag 278: missing, and StripOffsets has 4 entries: corrupt"},
		{"at=300 counts=256", "16 [{300 256}]"},
		{"rows=99 at=300,364,428,492 counts=64,64,64,64", "4 [{300 64} {364 64} {428 64} {492 64}]"},
		{"rows=99 at=300,364,428,492 counts=65,64,64,64", "tag 279: chunk 0 has 65 bytes, 256 needed: corrupt"},
		{"compression=8 rows=99 at=300,364,428,492 counts=64,64,64,64", "16 [{300 64}]"},
		{"bands=2 at=300,364,428,492,300,364,428,492 counts=64,64,64,64,64,64,64,64",
			"4 [{300 64} {300 64} {364 64} {364 64} {428 64} {428 64} {492 64} {492 64}]"},
		{"bands=2 at=300,364 counts=256,256", "16 [{300 256} {364 256}]"},
		{"compression=8 bands=2 at=300,364 counts=256,256", "16 [{300 256} {364 256}]"},
	})
}

// TestRangesOfTiles is TestRangesOfStrips for tiles, which may lack what lies outside the image.
func TestRangesOfTiles(t *testing.T) {
	checkRanges(t, [][2]string{
		{"tilew=16 tileh=16 height=10 offsets=400 sizes=160", "16 [{400 160}]"},
		{"tilew=16 tileh=16 height=10 offsets=400 sizes=161", "tag 325: chunk 0 has 161 bytes, 256 needed: corrupt"},
		{"tilew=16 tileh=16 height=10 offsets=400 sizes=159", "tag 325: chunk 0 has 159 bytes, 256 needed: corrupt"},
		{"tilew=16 tileh=16 height=10 offsets=900 sizes=256",
			"chunk index: chunk 0: range of 256 bytes ends past the file's 692: corrupt"},
		{"tilew=16 tileh=16 height=10 offsets=400", "16 [{400 256}]"},
		{"-compression tilew=16 tileh=16 height=10 offsets=400 sizes=160", "16 [{400 160}]"},
		{"-compression tilew=16 tileh=16 height=10 offsets=400 sizes=161",
			"tag 325: no Compression tag, and chunk 0 has 161 bytes where samples that are not compressed have " +
				"256: unsupported"},
		{"tilew=16 tileh=16 width=20 offsets=400,416 sizes=256,64", "16 [{400 256} {416 64}]"},
		{"tilew=16 tileh=16 width=20 offsets=400,416 sizes=256,256", "16 [{400 256} {416 256}]"},
		{"tilew=16 tileh=16 width=20 offsets=400,416 sizes=256,65",
			"tag 325: chunk 1 has 65 bytes, 256 needed: corrupt"},
		{"tilew=16 tileh=16 width=20 offsets=400,416 sizes=256", "16 [{400 256} {416 256}]"},
		{"tilew=16 tileh=16 width=20 bits=4 offsets=400,416 sizes=128,32",
			"tag 325: chunk 1 has 32 bytes, 128 needed: corrupt"},
		{"tilew=16 tileh=16 width=20 bits=4 offsets=400,416 sizes=128,128", "16 [{400 128} {416 128}]"},
		{"tilew=16 tileh=16 at=400 counts=256", "16 [{400 256}]"},
		{"tilew=16 tileh=16 offsets=400 counts=256", "16 [{400 256}]"},
		{"rows=16 at=400 sizes=256", "16 [{400 256}]"},
	})
}

// TestRefusalsOfCodecs: JPEG, LERC and WebP take the samples that libtiff gives them.
func TestRefusalsOfCodecs(t *testing.T) {
	checkRefusals(t, [][2]string{
		{"compression=7 bits=16", "tag 258: JPEG of samples of 16 bits: unsupported"},
		{"compression=7 bits=4", "tag 258: JPEG of samples of 4 bits: unsupported"},
		{"compression=7 jpegtables=1", "tag 347: values of type 3: corrupt"},
		{"compression=7 jpegtables=undefined", ""},
		{"compression=7 jpegtables=byte", ""},
		{"compression=7 jpegtables=", ""},
		{"compression=7 photometric=6", "tag 262: YCbCr samples of 1 bands in chunks of 1: unsupported"},
		{"compression=7 photometric=6 bands=3 planar=1", ""},
		{"compression=7 photometric=6 bands=4 planar=1",
			"tag 262: YCbCr samples of 4 bands in chunks of 4: unsupported"},
		{"compression=7 photometric=6 bands=3 planar=2 offsets=99,99,99 sizes=9,9,9",
			"tag 262: YCbCr samples of 3 bands in chunks of 1: unsupported"},
		{"compression=34887",
			"tag 50674: compression LERC: 0 parameters, or an unknown additional compression: unsupported"},
		{"compression=34887 lerc=4",
			"tag 50674: compression LERC: 1 parameters, or an unknown additional compression: unsupported"},
		{"compression=34887 lerc=4,3",
			"tag 50674: compression LERC: 2 parameters, or an unknown additional compression: unsupported"},
		{"compression=34887 lerc=4,2", ""},
		{"compression=34887 lerc=4,2 bits=64", "tag 258: LERC of uint64 samples: unsupported"},
		{"compression=34887 lerc=4,2 bits=4", "tag 258: LERC of uint8 samples: unsupported"},
		{"compression=50001", "tag 259: compression WebP: chunks of 1 bands, it has 3 or 4: unsupported"},
		{"compression=50001 bands=3 planar=1", ""},
		{"compression=50001 bands=4 planar=1", ""},
		{"compression=50001 bands=2 planar=1",
			"tag 259: compression WebP: chunks of 2 bands, it has 3 or 4: unsupported"},
		{"compression=50001 bands=5 planar=1",
			"tag 259: compression WebP: chunks of 5 bands, it has 3 or 4: unsupported"},
		{"compression=50001 bands=3 planar=1 bits=16", "tag 258: WebP of samples of 16 bits: unsupported"},
		{"compression=50001 bands=3 planar=1 bits=4", "tag 258: WebP of samples of 4 bits: unsupported"},
	})
}

// TestRefusalsOfYCbCr: YCbCr is read as libtiff reads it.
func TestRefusalsOfYCbCr(t *testing.T) {
	checkRefusals(t, [][2]string{
		{"photometric=6", "tag 262: YCbCr samples of 1 bands of uint8 in chunks of 1: unsupported"},
		{"photometric=6 bands=3 planar=1", ""},
		{"photometric=6 bands=4 planar=1", "tag 262: YCbCr samples of 4 bands of uint8 in chunks of 4: unsupported"},
		{"photometric=6 bands=3 planar=1 bits=16",
			"tag 262: YCbCr samples of 3 bands of uint16 in chunks of 3: unsupported"},
		{"photometric=6 bands=3 planar=1 bits=4",
			"tag 262: YCbCr samples of 3 bands of uint8 in chunks of 3: unsupported"},
		{"photometric=6 bands=3 planar=2 offsets=99,99,99 sizes=9,9,9",
			"tag 262: YCbCr samples of 3 bands of uint8 in chunks of 1: unsupported"},
		{"photometric=6 bands=3 planar=1 predictor=2", "tag 317: predictor 2 for YCbCr samples: unsupported"},
		{"photometric=6 bands=3 planar=1 compression=34887",
			"tag 262: YCbCr samples with compression lerc: unsupported"},
		{"photometric=6 bands=3 planar=1 sub=4,4", ""},
		{"photometric=6 bands=3 planar=1 sub=1,4", "tag 530: chroma that 1 columns and 4 rows share: unsupported"},
		{"photometric=6 bands=3 planar=1 sub=257,1",
			"tag 530: chroma that 255 columns and 1 rows share: unsupported"},
		{"photometric=6 bands=3 planar=1 sub=1,257",
			"tag 530: chroma that 1 columns and 255 rows share: unsupported"},
		{"photometric=6 bands=3 planar=1 sub=3", ""},
		{"photometric=6 bands=3 planar=1 coefficients=1.,1.", "tag 529: 2 values, not 3: corrupt"},
		{"photometric=6 bands=3 planar=1 coefficients=1.,0.,1.", "tag 529: 0 for green: corrupt"},
		{"photometric=6 bands=3 planar=1 coefficients=0.,1.,NaN", "tag 529: a value of NaN: corrupt"},
		{"photometric=6 bands=3 planar=1 blackwhite=0.,1.,2.,3.,4.,2147483519.",
			"tag 532: a value of 2.1474835e+09: corrupt"},
		{"photometric=6 bands=3 planar=1 blackwhite=0.,1.,2.,3.,4.,-2147483347.", ""},
		{"photometric=6 bands=3 planar=1 blackwhite=1.,2.,3.", "tag 532: 3 values, not 6: corrupt"},
	})
}

// TestSampleTypes: SampleFormat and BitsPerSample name a type, or are unsupported.
func TestSampleTypes(t *testing.T) {
	image, err := Open(t.Context(), &corpus.Mem{B: oneTile(fieldsOf("-bits -format")...)}, Limits{})
	if err != nil || image.Index.DType != chunk.Uint8 || image.Index.Packed != 1 {
		t.Errorf("without both tags: %v", err)
	}
	for format := range uint16(8) {
		for bits := range uint16(131) {
			name, packed := "", 0
			whole := slices.Contains([]uint16{8, 16, 32, 64}, bits)
			switch {
			case format == formatUint && whole:
				name = fmt.Sprintf("uint%d", bits)
			case format == formatUint && bits > 0 && bits < 32:
				packed = int(bits)
				name = fmt.Sprintf("uint%d", []int{8, 16, 32, 32}[packed/8])
			case format == formatInt && whole:
				name = fmt.Sprintf("int%d", bits)
			case format == formatFloat && whole && bits > 8:
				name = fmt.Sprintf("float%d", bits)
			case format == formatFloat && bits == 24:
				name, packed = "float32", 24
			case format == formatComplexInt && whole && bits > 16:
				name = fmt.Sprintf("complex_int%d", bits/2)
			case format == formatComplexFloat && bits == 32:
				name = "complex_float16"
			case format == formatComplexFloat && (bits == 64 || bits == 128):
				name = fmt.Sprintf("complex%d", bits)
			}
			file := oneTile(ifdwrite.Shorts(ifd.TagSampleFormat, format), ifdwrite.Shorts(ifd.TagBitsPerSample, bits))
			image, err := Open(t.Context(), &corpus.Mem{B: file}, Limits{})
			want := fmt.Sprintf("tag 258: samples of %d bits with SampleFormat %d: unsupported", bits, format)
			switch got := refusal(file); {
			case name == "" && got != want:
				t.Errorf("%q, want %q", got, want)
			case name != "" && (err != nil || image.Index.DType.String() != name || image.Index.Packed != packed):
				t.Errorf("SampleFormat %d, %d bits: %v, want %s of %d bits", format, bits, err, name, packed)
			}
			if d := DTypeOf(uint64(format), uint64(bits)); d != chunk.Invalid {
				if f, b := FormatOf(d); f != format || b != bits {
					t.Errorf("%v: SampleFormat %d, %d bits", d, f, b)
				}
			}
		}
	}
}

// TestPredictors: predictor 2 is for numbers of one component, 3 for floats, and neither for samples of odd widths.
// Codecs of images, and no compression, ignore it.
func TestPredictors(t *testing.T) {
	for _, c := range []struct {
		format, bits uint16
		allowed      string
	}{
		{formatUint, 8, "12"}, {formatUint, 64, "12"}, {formatInt, 16, "12"}, {formatFloat, 16, "123"},
		{formatFloat, 32, "123"}, {formatFloat, 64, "123"}, {formatComplexInt, 32, "1"}, {formatComplexFloat, 64, "1"},
		{formatUint, 4, "1"}, {formatFloat, 24, "1"},
	} {
		for predictor := range uint16(5) {
			for compression, plain := range map[uint16]bool{compZstd: false, 5: false, compNone: true, 32773: true} {
				file := oneTile(ifdwrite.Shorts(ifd.TagPredictor, predictor),
					ifdwrite.Shorts(ifd.TagCompression, compression),
					ifdwrite.Shorts(ifd.TagSampleFormat, c.format), ifdwrite.Shorts(ifd.TagBitsPerSample, c.bits),
					ifdwrite.Longs(ifd.TagTileByteCounts, 4096))
				file = append(file, make([]byte, 4096)...)
				image, err := Open(t.Context(), &corpus.Mem{B: file}, Limits{})
				allowed := plain || strings.Contains(c.allowed, fmt.Sprint(predictor))
				start := fmt.Sprintf("tag 317: predictor %d for ", predictor)
				if got := refusal(file); allowed != (got == "") || !allowed && (!strings.HasPrefix(got, start) ||
					!strings.HasSuffix(got, ": unsupported")) {
					t.Errorf("%+v, compression %d, predictor %d: %q", c, compression, predictor, got)
				}
				want := chunk.Predictor(predictor)
				if plain {
					want = chunk.NoPredictor
				}
				if err == nil && image.Index.Predictor != want {
					t.Errorf("%+v, compression %d: predictor %d, not %d", c, compression, image.Index.Predictor, want)
				}
			}
		}
	}
}

// Package extras reads what a TIFF says beside its pixels, so a copy of it keeps that, and writes GDAL's metadata.
package extras

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/internal/textguard"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
)

// Extras is the metadata of the first image of a file, in a form that package tog takes.
type Extras struct {
	// Tags holds the tags that mean the same in any file: strings, resolution, colour table, colour
	// profile, georeferencing with ground control points, rational polynomial coefficients.
	Tags []ifdwrite.Field
	// Photometric, WhiteIsZero and ExtraSamples mean what they mean in tog.Options.
	Photometric  uint16
	WhiteIsZero  bool
	ExtraSamples []uint16
	// Items holds the elements of GDAL_METADATA, as written. It leaves out elements of domain
	// IMAGE_STRUCTURE, because they describe how this file stores samples.
	Items []string
	// Unknown names everything else: tags that may point into the file or depend on how samples are
	// stored, further images, metadata that is not XML.
	Unknown []string
}

// Tags that Read keeps.
var keptTags = []uint16{
	269, 270, 271, 272, // DocumentName, ImageDescription, Make, Model
	274,                     // Orientation
	280, 281, 282, 283, 296, // MinSampleValue, MaxSampleValue, XResolution, YResolution, ResolutionUnit
	285, 286, 287, 297, // PageName, XPosition, YPosition, PageNumber
	301, 318, 319, // TransferFunction, WhitePoint, PrimaryChromaticities
	305, 306, 315, 316, // Software, DateTime, Artist, HostComputer
	ifd.TagColorMap,
	332, 333, 334, // InkSet, InkNames, NumberOfInks
	340, 341, // SMinSampleValue, SMaxSampleValue
	700, 33723, 34377, 34675, // XMP, IPTC, Photoshop, ICC profile
	33432, // Copyright
	ifd.TagPixelScale, ifd.TagTiepoint, ifd.TagTransformation, ifd.TagGeoKeys, ifd.TagGeoDoubles, ifd.TagGeoASCII,
	50844, 50908, 50909, // RPCCoefficient, RSID, GEO_METADATA
}

// LayoutTags are the tags of an image that tog.Options other than Tags write.
var LayoutTags = []uint16{
	ifd.TagNewSubfileType, ifd.TagImageWidth, ifd.TagImageLength, ifd.TagBitsPerSample, ifd.TagCompression,
	ifd.TagPhotometric, ifd.TagSamplesPerPixel, ifd.TagPlanarConfig, ifd.TagPredictor, ifd.TagTileWidth,
	ifd.TagTileLength, ifd.TagTileOffsets, ifd.TagTileByteCounts, ifd.TagExtraSamples, ifd.TagSampleFormat,
	ifd.TagGDALMetadata, ifd.TagGDALNoData,
}

// storageTags describe how samples are stored, or are in other fields of tiff.Meta and Extras.
var storageTags = append([]uint16{
	255, ifd.TagFillOrder, ifd.TagStripOffsets, ifd.TagRowsPerStrip, ifd.TagStripByteCounts, 288, 289,
	// SubfileType, FreeOffsets, FreeByteCounts
	ifd.TagYCbCrCoefficients, ifd.TagYCbCrSubSampling, 531, ifd.TagReferenceBlackWhite, // 531 is YCbCrPositioning
	ifd.TagJPEGTables, ifd.TagLercParameters,
}, LayoutTags...)

// tagNames names tags that are not kept, for messages.
var tagNames = map[uint16]string{ifd.TagSubIFDs: "SubIFDs", 34665: "EXIF", 34853: "GPS", 40965: "Interoperability",
	50838: "ImageJ", 50839: "ImageJ"}

// maxUnknown bounds the tags that are named, because a directory can have 65,535 of them, and a message
// must stay readable.
const maxUnknown = 8

// Read reads the metadata of the first image of a file. A value outside the file is Corrupt.
func Read(ctx context.Context, f *ifd.File) (*Extras, error) {
	dir := &f.Dirs[0]
	if err := f.Prefetch(ctx, dir, keptTags...); err != nil {
		return nil, err
	}
	t := f.Tags(ctx, dir)
	extras := &Extras{}
	seen := map[uint16]bool{} // if a tag occurs twice, the first counts
	unknown := 0
	for i := range dir.Entries {
		tag := dir.Entries[i].Tag
		switch {
		case seen[tag]:
		case tag == ifd.TagSubIFDs && dir.Entries[i].Count == uint64(f.Children):
		case slices.Contains(keptTags, tag):
			if v := t.Value(tag); v.Len() > 0 {
				extras.Tags = append(extras.Tags, ifdwrite.Field{Tag: tag, Type: v.Type, Data: v.Bytes()})
			}
		case !slices.Contains(storageTags, tag):
			if unknown++; unknown > maxUnknown {
				break
			}
			name := fmt.Sprintf("tag %d", tag)
			if s := tagNames[tag]; s != "" {
				name += " (" + s + ")"
			}
			extras.Unknown = append(extras.Unknown, name)
		}
		seen[tag] = true
	}
	if unknown > maxUnknown {
		extras.Unknown = append(extras.Unknown, fmt.Sprintf("%d further tags", unknown-maxUnknown))
	}
	extras.colours(&t)
	text := t.Value(ifd.TagGDALMetadata).Text()
	if t.Err != nil {
		return nil, t.Err
	}
	if text != "" {
		var err error
		if len(text) > tiff.MaxGDALMetadata {
			extras.Unknown = append(extras.Unknown,
				fmt.Sprintf("GDAL_METADATA of more than %d bytes", tiff.MaxGDALMetadata))
		} else if extras.Items, err = metadataItems(text); err != nil {
			extras.Unknown = append(extras.Unknown, "GDAL_METADATA that is not XML")
		}
	}
	if f.ChainErr != nil {
		extras.Unknown = append(extras.Unknown, "images after a broken chain of directories")
	}
	further := 0 // images that are neither overviews nor masks
	for _, directory := range f.Dirs[1:] {
		if directory.Kind&(tiff.SubfileReduced|tiff.SubfileMask) == 0 {
			further++
		}
	}
	if further > 0 {
		extras.Unknown = append(extras.Unknown, fmt.Sprintf("%d further images", further))
	}
	return extras, nil
}

// colours reads the meaning of the bands. It adds meanings that a TOG cannot express to Unknown.
func (e *Extras) colours(tags *ifd.Tags) {
	bands := tags.Uint(ifd.TagSamplesPerPixel, 1)
	p := tags.Uint(ifd.TagPhotometric, tiff.PhotometricBlackIsZero)
	bits := tags.Uint(ifd.TagBitsPerSample, 1)
	if tags.Err != nil {
		return
	}
	hasPalette := false
	e.Tags = slices.DeleteFunc(e.Tags, func(t ifdwrite.Field) bool {
		if t.Tag != ifd.TagColorMap {
			return false
		}
		// Red, green and blue of every value that a sample can have.
		hasPalette = (bits <= 8 || bits == 16) && t.Type == ifd.Short && len(t.Data) == 2*3<<bits
		if !hasPalette {
			e.Unknown = append(e.Unknown, "a colour table of another size than the samples need")
		}
		return !hasPalette
	})
	widenPalette(e.Tags)
	e.Photometric = tiff.PhotometricBlackIsZero
	switch {
	case p == tiff.PhotometricWhiteIsZero:
		e.WhiteIsZero = true
	case p == tiff.PhotometricPalette && hasPalette, p == tiff.PhotometricRGB, p == tiff.PhotometricCMYK,
		p == tiff.PhotometricYCbCr:
		if bands >= uint64(tiff.Colours(uint16(p))) {
			if e.Photometric = uint16(p); p == tiff.PhotometricYCbCr {
				e.Photometric = tiff.PhotometricRGB // which its samples become
			}
		}
	case p != tiff.PhotometricBlackIsZero:
		e.Unknown = append(e.Unknown, fmt.Sprintf("PhotometricInterpretation %d", p))
	}
	if v := tags.Value(ifd.TagExtraSamples); v.IsInt() && uint64(v.Len())+uint64(tiff.Colours(e.Photometric)) == bands {
		e.ExtraSamples = v.Shorts()
	}
}

// widenPalette gives a colour table for samples of fewer than 8 bits the size that samples of 8 bits need.
func widenPalette(tags []ifdwrite.Field) {
	const wide = 2 * 1 << 8 // bytes of one of the three colours
	for i, field := range tags {
		if n := len(field.Data) / 3; field.Tag == ifd.TagColorMap && n < wide {
			data := make([]byte, 3*wide)
			for c := range 3 {
				copy(data[c*wide:], field.Data[c*n:][:n])
			}
			tags[i].Data = data
		}
	}
}

// metadataItems returns the Item elements of GDAL_METADATA as they are written, without elements of domain
// IMAGE_STRUCTURE. It accepts bytes that XML forbids, as GDAL does.
func metadataItems(text string) (items []string, err error) {
	parsed := []byte(strings.ToValidUTF8(text, "?"))
	if len(parsed) != len(text) {
		// ToValidUTF8 replaced runs of bytes by one "?". Offsets must agree with offsets in text, so
		// each byte needs to be replaced by one.
		parsed = []byte(text)
		for i, b := range parsed {
			if b >= 0x80 {
				parsed[i] = '?'
			}
		}
	}
	for i, b := range parsed {
		if b < ' ' && b != '\t' && b != '\n' && b != '\r' {
			parsed[i] = '?'
		}
	}
	if _, err := textguard.XML("GDAL_METADATA", parsed, nil); err != nil {
		return nil, err
	}
	decoder := xml.NewDecoder(bytes.NewReader(parsed))
	decoder.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	depth, start := 0, int64(0)
	var item xml.StartElement
	structure := xml.Attr{Name: xml.Name{Local: "domain"}, Value: "IMAGE_STRUCTURE"}
	for {
		pos := decoder.InputOffset()
		token, err := decoder.Token()
		switch {
		case err == io.EOF:
			return items, nil
		case err != nil:
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; depth == 2 {
				item, start = t.Copy(), pos
			}
		case xml.EndElement:
			if depth--; depth == 1 && item.Name.Local == "Item" && !slices.Contains(item.Attr, structure) {
				items = append(items, text[start:decoder.InputOffset()])
			}
		}
	}
}

// GDALMetadata returns the GDAL_METADATA of a TOG: these items, and the item for the interleaving of
// its tiles.
func GDALMetadata(items []string) string {
	var b strings.Builder
	b.WriteString("<GDALMetadata>\n")
	for _, item := range items {
		b.WriteString("  " + item + "\n")
	}
	b.WriteString("  <Item name=\"INTERLEAVE\" domain=\"IMAGE_STRUCTURE\">TILE</Item>\n</GDALMetadata>\n")
	return b.String()
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// Descriptions returns the items of GDAL_METADATA that name bands, for GDALMetadata.
func Descriptions(names []string) (items []string) {
	for i, name := range names {
		if name != "" {
			items = append(items,
				fmt.Sprintf("<Item name=\"DESCRIPTION\" sample=\"%d\" role=\"description\">%s</Item>", i,
					escape.Replace(escape.Replace(name))))
		}
	}
	return items
}

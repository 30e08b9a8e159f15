package tiff

import (
	"bytes"
	"context"
	"encoding/xml"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/internal/textguard"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// Meta is the metadata of the first image of a file. Reading pixels does not need it.
type Meta struct {
	BigTIFF, BigEndian bool
	Tiled              bool
	Compression        uint16
	Predictor          uint16
	Planar             uint16
	Photometric        uint16
	ExtraSamples       []uint16 // meaning of the bands past the colours, 2 for alpha
	IFDs               int      // directories in the file's chain
	ChainErr           error    // why the chain of directories breaks (ifd.File.ChainErr); nil if it does not
	Overviews          int      // how many of the directories are reduced images
	OverviewSizes      [][2]int // their heights and widths, from the largest to the smallest
	HasMask            bool     // a directory is a mask of the full image
	Pages              int      // how many of the directories are neither reduced images nor masks

	// Interleave is TILE, BAND or PIXEL. GDAL's ghost area says BAND for TILE files; only the
	// INTERLEAVE item of GDAL_METADATA tells them apart.
	Interleave   string
	NoData       string   // GDAL_NODATA as written; empty for none
	Joint        string   // the NODATA_VALUES item of GDAL_METADATA; empty for none
	GDALMetadata string   // GDAL_METADATA (XML) as written
	BandNames    []string // the DESCRIPTION items in it, one per band; nil for none
	Bands        []Band   // the items about single bands, one entry per band; nil for none

	Geo
	Ghost map[string]string // GDAL's structural metadata (ghost area), unverified; nil for none
}

// Band holds the items of GDAL_METADATA about one band.
type Band struct {
	Description string            `json:"description,omitempty"`
	Scale       *float64          `json:"scale,omitempty"`  // value = sample*Scale + Offset
	Offset      *float64          `json:"offset,omitempty"` // in Unit; nil for none
	Unit        string            `json:"unit,omitempty"`
	Colour      string            `json:"-"`              // what GDAL calls the colour interpretation; "" for none
	Tags        map[string]string `json:"tags,omitempty"` // further items without a domain
}

// MaxGDALMetadata is the size of the longest GDAL_METADATA that is parsed, so a hostile file does not
// cost the parsing of the 64 MiB that tags may have.
const MaxGDALMetadata = 4 << 20

// ReadMeta reads the metadata of the first image of a file of any compression. It leaves broken fields
// empty, but a value outside the file is an error.
func ReadMeta(ctx context.Context, f *ifd.File) (Meta, error) {
	meta, err := metaOf(ctx, f, &f.Dirs[0])
	if err != nil {
		return meta, err
	}
	return meta, meta.countIFDs(ctx, f)
}

// metaOf is ReadMeta for the image of a directory, and counts no others.
func metaOf(ctx context.Context, f *ifd.File, directory *ifd.Directory) (Meta, error) {
	meta := Meta{BigTIFF: f.Big, BigEndian: f.BigEndian, IFDs: len(f.Dirs), ChainErr: f.ChainErr, Ghost: ghost(f)}
	meta.Tiled = directory.Find(ifd.TagTileWidth) != nil
	tags := parser{f.Tags(ctx, directory)}
	short := func(tag uint16, absent uint64) uint16 { return uint16(min(tags.Uint(tag, absent), math.MaxUint16)) }
	meta.Compression, meta.Predictor = short(ifd.TagCompression, compNone), short(ifd.TagPredictor, 1)
	meta.Planar, meta.Photometric = short(ifd.TagPlanarConfig, 1), short(ifd.TagPhotometric, 0)
	bands := int(short(ifd.TagSamplesPerPixel, 1))
	if extra := tags.Value(ifd.TagExtraSamples); extra.IsInt() && extra.Len() < bands {
		meta.ExtraSamples = extra.Shorts()
	}
	if err := meta.readText(ctx, &tags.Tags, bands); err != nil {
		return meta, err
	}
	if meta.Interleave == "" {
		meta.Interleave = "BAND"
		if meta.Planar == 1 && bands > 1 {
			meta.Interleave = "PIXEL"
		}
	}
	meta.Geo.read(&tags.Tags)
	return meta, tags.Err
}

func (m *Meta) readText(ctx context.Context, t *ifd.Tags, bands int) error {
	m.NoData = strings.TrimSpace(t.Value(ifd.TagGDALNoData).Text())
	m.GDALMetadata = t.Value(ifd.TagGDALMetadata).Text()
	if len(m.GDALMetadata) > MaxGDALMetadata {
		return nil
	}
	err := textguard.ParseXML(ctx, "GDAL_METADATA", []byte(m.GDALMetadata), nil, func(r io.Reader) error {
		m.Interleave, m.Joint, m.Bands = parseGDALMetadata(r, bands)
		return nil
	})
	if err != nil && fault.KindOf(err) == 0 { // a text with too many parts says nothing, as one that is no XML
		return err
	}
	for i, band := range m.Bands {
		if band.Description != "" && m.BandNames == nil {
			m.BandNames = make([]string, bands)
		}
		if m.BandNames != nil {
			m.BandNames[i] = band.Description
		}
	}
	return nil
}

// countIFDs counts the other directories by their NewSubfileType.
func (m *Meta) countIFDs(ctx context.Context, f *ifd.File) error {
	m.Pages = 1
	for i := range f.Dirs[1:] {
		switch f.Dirs[1+i].Kind & (SubfileReduced | SubfileMask) {
		case SubfileReduced:
			m.Overviews++
			var size [2]int
			for axis, tag := range [...]uint16{ifd.TagImageLength, ifd.TagImageWidth} {
				tags := f.Tags(ctx, &f.Dirs[1+i])
				size[axis] = int(min(tags.Uint(tag, 0), chunk.MaxSide+1)) // a broken one is 0, or too large
				if tags.Err != nil && fault.KindOf(tags.Err) == 0 {
					return tags.Err
				}
			}
			m.OverviewSizes = append(m.OverviewSizes, size)
		case SubfileMask:
			m.HasMask = true
		case 0:
			m.Pages++
		}
	}
	// In the order of OpenOverviews.
	slices.SortStableFunc(m.OverviewSizes, func(a, b [2]int) int { return b[0]*b[1] - a[0]*a[1] })
	return nil
}

// parseGDALMetadata finds the INTERLEAVE item, the nodata values of all bands together (NODATA_VALUES) and the items
// about bands. At an error in the XML it returns what came before. It leaves out numbers that do not parse.
func parseGDALMetadata(r io.Reader, bands int) (interleave, joint string, about []Band) {
	decoder := xml.NewDecoder(r)
	decoder.Strict = false
	decoder.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	var item xml.StartElement
	var value strings.Builder
	for {
		token, err := decoder.RawToken()
		if err != nil {
			return interleave, joint, about
		}
		switch part := token.(type) {
		case xml.StartElement:
			item = part.Copy()
			value.Reset()
		case xml.CharData:
			value.Write(part)
		case xml.EndElement:
			if item.Name.Local != "Item" {
				continue
			}
			name, sample := attr(item, "name"), attr(item, "sample")
			switch domain := attr(item, "domain"); {
			case sample == "" && name == "INTERLEAVE" && domain == "IMAGE_STRUCTURE":
				interleave = strings.TrimSpace(value.String())
			case sample == "" && name == "NODATA_VALUES" && domain == "":
				joint = strings.TrimSpace(value.String())
			}
			band, err := strconv.Atoi(sample)
			if known := err == nil && band >= 0 && band < bands; known && attr(item, "domain") == "" {
				if about == nil {
					about = make([]Band, bands)
				}
				// GDAL escapes twice, so one level is left after the XML parser.
				about[band].set(name, attr(item, "role"), unescape.Replace(value.String()))
			}
			item = xml.StartElement{}
		}
	}
}

// set stores one item.
func (b *Band) set(name, role, value string) {
	number := func() *float64 {
		v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || math.IsInf(v, 0) || v != v {
			return nil
		}
		return &v
	}
	switch role {
	case "description":
		b.Description = value
	case "scale":
		b.Scale = number()
	case "offset":
		b.Offset = number()
	case "unittype":
		b.Unit = value
	case "colorinterp":
		b.Colour = strings.TrimSpace(value)
	case "":
		if b.Tags == nil {
			b.Tags = map[string]string{}
		}
		b.Tags[name] = value
	}
}

var unescape = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">", "&quot;", `"`, "&apos;", "'")

func attr(e xml.StartElement, name string) string {
	for _, attribute := range e.Attr {
		if attribute.Name.Local == name {
			return attribute.Value
		}
	}
	return ""
}

// StructureKey begins GDAL's structural metadata, which follows the header.
const StructureKey = "GDAL_STRUCTURAL_METADATA_SIZE="

// ghost returns the lines of the ghost area as far as they look like KEY=VALUE. It ignores the size that
// the area states.
func ghost(f *ifd.File) map[string]string {
	data := f.Head[min(8, len(f.Head)):]
	if f.Big {
		data = f.Head[min(16, len(f.Head)):]
	}
	if !bytes.HasPrefix(data, []byte(StructureKey)) {
		return nil
	}
	items := map[string]string{}
	for line := range strings.Lines(string(data[:min(len(data), 1024)])) {
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok || strings.Trim(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") != "" {
			break
		}
		items[key] = value
	}
	return items
}

// Complete returns x with the nodata value, scales and offsets of the file, or x itself if the file has none.
func (m *Meta) Complete(x *chunk.Index) *chunk.Index {
	physical := Physical(x, m.Bands)
	if m.NoData == "" && physical == nil {
		return x
	}
	out := *x
	out.NoData, out.NoDataBits = NoData(m.NoData, x.DType)
	out.Physical = physical
	return &out
}

// Physical returns Index.Physical of image x with the scales and offsets of bands in place of its own.
func Physical(x *chunk.Index, bands []Band) []chunk.Linear {
	if len(bands) != x.StepBands() {
		return x.Physical
	}
	out := make([]chunk.Linear, len(bands))
	for i, b := range bands {
		out[i] = x.Linear(i)
		if b.Scale != nil {
			out[i].Scale = *b.Scale
		}
		if b.Offset != nil {
			out[i].Offset = *b.Offset
		}
	}
	return chunk.Linears(out)
}

// NoData parses GDAL_NODATA, as GDAL does: what follows the number is left out, and a text without one is 0. It
// keeps a number that the sample type lacks (-9999 in uint8): no sample equals it, but it determines the content of
// sparse chunks (chunk.Index.NoData). For 64-bit integers it also returns the bits, since a float64 is not exact; and
// of a fraction for other integers, which the samples are compared with without what follows the point. The bits of a
// number out of range are the bits of the nearest integer, as in GDAL, but negative numbers wrap around in uint64.
func NoData(s string, d chunk.DType) (*float64, *uint64) {
	if s == "" {
		return nil, nil
	}
	value := Number(s)
	return &value, noDataBits(s, value, d)
}

// Number returns the number that a text begins with, as GDAL reads it: decimals may have a comma, and a text without a
// number is 0.
func Number(s string) float64 {
	if value, ok := noNumbers[s]; ok {
		return value
	}
	for prefix, v := range noNumberPrefixes {
		if strings.HasPrefix(s, prefix) {
			return v
		}
	}
	value, _ := strconv.ParseFloat(decimal.FindString(strings.ReplaceAll(s, ",", ".")), 64)
	return value
}

// decimal matches the number that a text begins with.
var decimal = regexp.MustCompile(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?`)

// noNumbers are the texts of floats that are no numbers, and noNumberPrefixes how texts of them begin that runtimes of
// C write.
var (
	noNumbers = map[string]float64{"nan": math.NaN(), "NaN": math.NaN(), "inf": math.Inf(1), "Inf": math.Inf(1),
		"INF": math.Inf(1), "-inf": math.Inf(-1), "-Inf": math.Inf(-1), "-INF": math.Inf(-1),
		"-Infinity": math.Inf(-1)}
	noNumberPrefixes = map[string]float64{"1.#QNAN": math.NaN(), "-1.#QNAN": math.NaN(), "1.#SNAN": math.NaN(),
		"-1.#IND": math.NaN(), "1.#INF": math.Inf(1), "-1.#INF": math.Inf(-1)}
)

// integer matches the integer that a text begins with.
var integer = regexp.MustCompile(`^[+-]?[0-9]+`)

// noDataBits returns the bits of a 64-bit integer, or the bits of the integer that a fraction stands for in another
// type; nil else.
func noDataBits(s string, value float64, d chunk.DType) *uint64 {
	s = integer.FindString(s) // "" is 0
	var bits uint64
	switch d {
	case chunk.Int64:
		number, _ := strconv.ParseInt(s, 10, 64) // the nearest one, where it is out of range
		bits = uint64(number)
	case chunk.Uint64:
		digits, negative := strings.CutPrefix(strings.TrimPrefix(s, "+"), "-")
		var err error
		if bits, err = strconv.ParseUint(digits, 10, 64); negative && err == nil {
			bits = -bits
		}
	default:
		_, below := kernel.IntBits(d.Num(), math.Floor(value))
		_, above := kernel.IntBits(d.Num(), math.Ceil(value))
		isInteger := d.Num() != kernel.None && !d.Num().IsFloat()
		if !isInteger || value == math.Trunc(value) || !below || !above {
			return nil
		}
		bits = uint64(int64(value))
	}
	return &bits
}

// Package vrt reads GDAL's virtual rasters: XML files that name windows of other rasters as their pixels.
// Parse reads the file, and Piece puts pixels of a source to their places, as GDAL does. The package opens no source.
package vrt

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/vrt/classes"
	"github.com/chaski-eo/chaski/internal/textguard"
)

// MaxBytes is the size of the largest file that is read: about 150,000 sources as gdalbuildvrt writes them.
const MaxBytes = 64 << 20

// Dataset is a virtual raster.
type Dataset struct {
	Width, Height int
	SRS           string // a name or well-known text; "" for none
	Transform     string // six numbers; "" for none
	Files         []File // that the sources name, each once
	Bands         []Band
	Mask          *Band // of all bands; nil for none

	steps int // entries of lookup tables so far
}

// File is a file of sources.
type File struct {
	Name     string
	Relative bool // to the directory of the virtual raster
}

// Band is a band of a virtual raster. Later sources cover earlier ones.
type Band struct {
	DType  chunk.DType `xml:"-"`
	Name   string      `xml:"Description"`
	Colour string      `xml:"ColorInterp"` // the colour interpretation of GDAL; "" for none
	classes.Classes
	NoData     string   `xml:"NoDataValue"` // what pixels without a source are; "" for 0
	HideNoData bool     `xml:"-"`           // such pixels hold data
	Scale      *float64 `xml:"Scale"`
	Offset     *float64 `xml:"Offset"`
	Sources    []Source `xml:"-"`
}

// Source is a window of a band of a file, and where its pixels go.
type Source struct {
	File     int  // in Dataset.Files
	Band     int  // from 0
	OfMask   bool // the mask of that band
	Placed   bool // it has Src and Dst: otherwise its pixels keep their numbers
	Src, Dst Rect
	Masked   bool     // pixels that the source masks are left out
	NoData   *float64 // pixels that are left out; nil for none
	Scale    float64  // value = Offset + sample*Scale
	Offset   float64
	LUT      []Step
}

// Rect is a rectangle of pixels, which may have fractions.
type Rect struct {
	X float64 `xml:"xOff,attr"`
	Y float64 `xml:"yOff,attr"`
	W float64 `xml:"xSize,attr"`
	H float64 `xml:"ySize,attr"`
}

// Step is an entry of a lookup table, sorted by In.
type Step struct{ In, Out float64 }

// dtypes are the names of sample types in GDAL.
var dtypes = map[string]chunk.DType{
	"": chunk.Uint8, "Byte": chunk.Uint8, "Int8": chunk.Int8, "UInt16": chunk.Uint16, "Int16": chunk.Int16,
	"UInt32": chunk.Uint32, "Int32": chunk.Int32, "UInt64": chunk.Uint64, "Int64": chunk.Int64,
	"Float16": chunk.Float16, "Float32": chunk.Float32, "Float64": chunk.Float64,
	"CInt16": chunk.ComplexInt16, "CInt32": chunk.ComplexInt32, "CFloat16": chunk.ComplexFloat16,
	"CFloat32": chunk.Complex64, "CFloat64": chunk.Complex128,
}

// document is the XML of a virtual raster.
type document struct {
	XMLName   xml.Name
	Width     int       `xml:"rasterXSize,attr"`
	Height    int       `xml:"rasterYSize,attr"`
	SubClass  string    `xml:"subClass,attr"`
	SRS       string    `xml:"SRS"`
	Transform string    `xml:"GeoTransform"`
	Group     *struct{} `xml:"Group"` // a multidimensional raster
	Bands     []band    `xml:"VRTRasterBand"`
	Mask      []band    `xml:"MaskBand>VRTRasterBand"`
}

type band struct {
	Band
	Type     string     `xml:"dataType,attr"`
	SubClass string     `xml:"subClass,attr"`
	Hide     string     `xml:"HideNoDataValue"`
	Function string     `xml:"PixelFunctionType"`
	Mask     []struct{} `xml:"MaskBand"`
	Other    elements   `xml:",any"` // sources, in their order
}

// elements are the sources of a band.
type elements []element

// UnmarshalXML adds a source. Other elements of the band take no memory.
func (l *elements) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	if !strings.HasSuffix(start.Name.Local, "Source") {
		return d.Skip()
	}
	var e element
	if err := d.DecodeElement(&e, &start); err != nil {
		return err
	}
	if strings.TrimSpace(e.File.Name) == "" { // millions of them would fit in a file
		return corrupt(start.Name.Local, "a source names no file")
	}
	*l = append(*l, e)
	return nil
}

// maxSources bounds the sources of all bands: MaxBytes as gdalbuildvrt writes them.
const maxSources = 150_000

type element struct {
	XMLName    xml.Name
	Resampling string `xml:"resampling,attr"`
	File       struct {
		Relative string `xml:"relativeToVRT,attr"`
		Name     string `xml:",chardata"`
	} `xml:"SourceFilename"`
	Options   []struct{} `xml:"OpenOptions>OOI"`
	Band      string     `xml:"SourceBand"`
	Src       *Rect      `xml:"SrcRect"`
	Dst       *Rect      `xml:"DstRect"`
	NoData    string     `xml:"NODATA"`
	Masked    string     `xml:"UseMaskBand"`
	Offset    *float64   `xml:"ScaleOffset"`
	Ratio     *float64   `xml:"ScaleRatio"`
	LUT       string     `xml:"LUT"`
	Exponent  *struct{}  `xml:"Exponent"`
	SrcMin    *struct{}  `xml:"SrcMin"`
	Component string     `xml:"ColorTableComponent"`
}

// way ends errors about features that are not read.
const way = `: make a TIFF of it, as by 'gdal_translate x.vrt x.tif'`

func unsupported(part, format string, args ...any) error {
	return fault.New(fault.Unsupported, part, format+way, args...)
}

func corrupt(part, format string, args ...any) error {
	return fault.New(fault.Corrupt, part, format, args...)
}

// Parse parses the bytes of a file. Errors are Corrupt, Unsupported or Limit, or come from ctx.
func Parse(ctx context.Context, data []byte) (*Dataset, error) {
	var doc document
	limits := map[string]int{"VRTRasterBand": chunk.MaxBands + 1, "SourceFilename": maxSources} // one band is a mask
	err := textguard.ParseXML(ctx, "VRT", data, limits, func(r io.Reader) error {
		reader := xml.NewDecoder(r)
		reader.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
		if err := reader.Decode(&doc); err != nil && fault.KindOf(err) == 0 {
			return fault.At(fault.Corrupt, "VRT", reader.InputOffset(), "%v", err)
		} else if err != nil {
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	switch {
	case doc.XMLName.Local != "VRTDataset":
		return nil, corrupt("VRT", "the first element is %q, not VRTDataset", fault.Short(doc.XMLName.Local))
	case doc.SubClass != "":
		return nil, unsupported("VRT", "%s is not read", fault.Short(doc.SubClass))
	case doc.Group != nil:
		return nil, unsupported("VRT", "a multidimensional raster is not read")
	case len(doc.Bands) == 0:
		return nil, corrupt("VRT", "it has no bands")
	}
	set := &Dataset{Width: doc.Width, Height: doc.Height, SRS: doc.SRS, Transform: doc.Transform}
	files := map[File]int{}
	for i := range doc.Bands {
		parsed, err := set.band(&doc.Bands[i], files)
		if err != nil {
			return nil, fault.WithPart(err, "band "+strconv.Itoa(i+1), fault.NoOffset)
		}
		set.Bands = append(set.Bands, parsed)
	}
	if len(doc.Mask) > 0 {
		parsed, err := set.band(&doc.Mask[0], files)
		if err != nil {
			return nil, fault.WithPart(err, "mask", fault.NoOffset)
		}
		set.Mask = &parsed
	}
	return set, nil
}

// isSet reports whether a boolean of GDAL is true.
func isSet(text string) bool {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "", "0", "no", "false", "off":
		return false
	}
	return true
}

// band parses a band. files are the numbers of the files so far.
func (d *Dataset) band(b *band, files map[File]int) (out Band, err error) {
	dtype, known := dtypes[b.Type]
	switch {
	case b.SubClass != "" && b.SubClass != "VRTSourcedRasterBand":
		return out, unsupported("VRTRasterBand", "%s is not read", fault.Short(b.SubClass))
	case b.Function != "":
		return out, unsupported("VRTRasterBand", "the pixel function %q is not read", fault.Short(b.Function))
	case len(b.Mask) > 0:
		return out, unsupported("MaskBand", "a mask of one band is not read")
	case !known:
		return out, unsupported("VRTRasterBand", "dataType %q is not read", fault.Short(b.Type))
	}
	out = b.Band
	out.DType, out.HideNoData = dtype, isSet(b.Hide)
	out.Colour, out.NoData = strings.TrimSpace(b.Colour), strings.TrimSpace(b.NoData)
	for i := range b.Other {
		source, err := d.source(&b.Other[i], files, dtype)
		if err != nil {
			return out, fault.WithPart(err, "source "+strconv.Itoa(len(out.Sources)+1), fault.NoOffset)
		}
		out.Sources = append(out.Sources, source)
	}
	return out, nil
}

// source parses a source of a band.
func (d *Dataset) source(e *element, files map[File]int, dtype chunk.DType) (s Source, err error) {
	kind, complexSource := e.XMLName.Local, e.XMLName.Local == "ComplexSource"
	name := strings.TrimSpace(e.File.Name)
	switch {
	case kind != "SimpleSource" && !complexSource:
		return s, unsupported(kind, "such a source is not read")
	case len(e.Options) > 0:
		return s, unsupported("OpenOptions", "options of sources are not read")
	case e.Component != "" && e.Component != "0" || e.Exponent != nil || e.SrcMin != nil:
		return s, unsupported(kind, "colours of a palette, exponents and clipped scales are not read")
	case strings.ContainsAny(name[:1], "<") || strings.HasPrefix(name, "vrt://"):
		return s, unsupported("SourceFilename", "it is no file but a raster of its own, %q", fault.Short(name))
	}
	file := File{name, isSet(e.File.Relative)}
	number, ok := files[file]
	if !ok {
		number = len(d.Files)
		files[file] = number
		d.Files = append(d.Files, file)
	}
	s = Source{File: number, Scale: 1}
	if s.Placed = e.Src != nil && e.Dst != nil; s.Placed {
		s.Src, s.Dst = *e.Src, *e.Dst
	}
	if (e.Src == nil) != (e.Dst == nil) || !s.Src.fits() || !s.Dst.fits() {
		return s, corrupt("SrcRect", "%v to DstRect %v are no windows", e.Src, e.Dst)
	}
	text, mask := strings.CutPrefix(strings.TrimSpace(e.Band), "mask")
	if text = strings.TrimPrefix(text, ","); text == "" {
		text = "1"
	}
	if s.Band, err = strconv.Atoi(text); err != nil || s.Band < 1 || s.Band > chunk.MaxBands {
		return s, corrupt("SourceBand", "%q is no number of a band", fault.Short(e.Band))
	}
	s.Band, s.OfMask = s.Band-1, mask
	if how := e.Resampling; how != "" && !strings.HasPrefix(strings.ToLower(how), "near") && s.resampled() {
		return s, unsupported(kind, "resampling %q is not read, only nearest is", fault.Short(how))
	}
	if complexSource {
		err = s.process(e, dtype)
	}
	if d.steps += len(s.LUT); d.steps > maxSteps {
		return s, fault.New(fault.Limit, "LUT", "more than %d entries in all sources", maxSteps)
	}
	return s, err
}

// resampled reports whether the pixels of a source are no pixels of the virtual raster.
func (s *Source) resampled() bool {
	for _, v := range [...]float64{s.Src.X, s.Src.Y, s.Src.W, s.Src.H, s.Dst.X, s.Dst.Y, s.Dst.W, s.Dst.H} {
		if v != math.Floor(v) {
			return true
		}
	}
	return s.Src.W != s.Dst.W || s.Src.H != s.Dst.H
}

// fits reports whether the numbers of a rectangle fit in pixels.
func (r *Rect) fits() bool {
	const limit = math.MaxInt32
	isSide := func(v float64) bool { return v >= 0 && v <= limit }
	return math.Abs(r.X) <= limit && math.Abs(r.Y) <= limit && isSide(r.W) && isSide(r.H)
}

// process parses what a ComplexSource does with samples.
func (s *Source) process(e *element, dtype chunk.DType) (err error) {
	if text := strings.TrimSpace(e.NoData); text != "" {
		value, err := strconv.ParseFloat(text, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) { // a rounded text may be over the largest number: infinite
			return corrupt("NODATA", "%q is no number", fault.Short(text))
		}
		s.NoData = &value
	}
	s.Masked = isSet(e.Masked) && s.NoData == nil // GDAL takes the one or the other
	if e.Offset != nil {
		s.Offset = *e.Offset
	}
	if e.Ratio != nil {
		s.Scale = *e.Ratio
	}
	if text := strings.TrimSpace(e.LUT); text != "" {
		if s.LUT, err = table(text); err != nil {
			return err
		}
	}
	if dtype.Components() > 1 && (s.NoData != nil || s.computes()) {
		return unsupported("ComplexSource", "arithmetic of %s is not read", dtype)
	}
	return nil
}

// computes reports whether values change.
func (s *Source) computes() bool { return s.Scale != 1 || s.Offset != 0 || s.LUT != nil }

// maxSteps bounds the entries of the lookup tables of all sources, of 16 bytes each.
const maxSteps = 1 << 20

// maxTable bounds the entries of a lookup table, which has one for each value of 16 bits at most.
const maxTable = 1 << 16

// table parses a lookup table: IN:OUT,IN:OUT, with values of IN that grow.
func table(text string) (out []Step, err error) {
	if n := strings.Count(text, ","); n >= maxTable {
		return nil, fault.New(fault.Limit, "LUT", "%d entries, at most %d", n+1, maxTable)
	}
	for i, entry := range strings.Split(text, ",") {
		in, value, ok := strings.Cut(entry, ":")
		var step Step
		if ok {
			if step.In, err = strconv.ParseFloat(strings.TrimSpace(in), 64); err == nil {
				step.Out, err = strconv.ParseFloat(strings.TrimSpace(value), 64)
			}
		}
		falls := i > 0 && step.In < out[i-1].In
		if !ok || err != nil || step.In != step.In || falls {
			return nil, corrupt("LUT", "entry %d, %q, is not IN:OUT, with an IN that is no less than before", i,
				fault.Short(entry))
		}
		out = append(out, step)
	}
	return out, nil
}

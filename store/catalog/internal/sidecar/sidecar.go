// Package sidecar parses what GDAL writes beside a raster: NAME.aux.xml (its persistent auxiliary metadata, PAM) and
// world files. Statistics, histograms and colour tables of PAM are ignored.
package sidecar

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// Limits of files beside a raster, in bytes. PAM may have long parts that are not read, such as attribute tables.
const (
	MaxPAM   = 4 << 20
	MaxWorld = 4 << 10
)

// PAM is what NAME.aux.xml says.
type PAM struct {
	SRS       string // a name or well-known text; "" for none
	Transform *[6]float64
	Bands     []Band
}

// Band is what it says of a band.
type Band struct {
	Number      int    `xml:"band,attr"` // from 1
	Description string `xml:"Description"`
	NoData      string `xml:"NoDataValue"`
	Scale       string `xml:"Scale"`
	Offset      string `xml:"Offset"`
	Colour      string `xml:"ColorInterp"`
}

// Numbers returns the scale and the offset, nil for none.
func (b *Band) Numbers() (scale, offset *float64) {
	number := func(text string) *float64 {
		value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return nil
		}
		return &value
	}
	return number(b.Scale), number(b.Offset)
}

// ParsePAM parses NAME.aux.xml. XML of another kind says nothing.
func ParsePAM(data []byte) (*PAM, error) {
	decoder := xml.NewDecoder(bytes.NewReader(data))
	decoder.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	var doc struct {
		XMLName   xml.Name
		SRS       string
		Transform string `xml:"GeoTransform"`
		Bands     []Band `xml:"PAMRasterBand"`
	}
	if err := decoder.Decode(&doc); err != nil {
		return nil, fault.New(fault.Corrupt, "PAM", decoder.InputOffset(), "%v", err)
	}
	if doc.XMLName.Local != "PAMDataset" {
		return &PAM{}, nil
	}
	transform, err := Transform(doc.Transform)
	if err != nil {
		return nil, err
	}
	return &PAM{SRS: strings.TrimSpace(doc.SRS), Transform: transform, Bands: doc.Bands}, nil
}

// Transform parses a GeoTransform of PAM and VRT: six numbers, or nothing.
func Transform(text string) (*[6]float64, error) {
	if text = strings.TrimSpace(text); text == "" {
		return nil, nil
	}
	if out := numbers(strings.Split(text, ",")); out != nil {
		return out, nil
	}
	return nil, fault.New(fault.Corrupt, "GeoTransform", fault.NoOffset, "it is %q", fault.Short(text))
}

// numbers parses six numbers. It returns nil for fewer, and for others.
func numbers(texts []string) *[6]float64 {
	var out [6]float64
	if len(texts) < len(out) {
		return nil
	}
	for i := range out {
		value, err := strconv.ParseFloat(strings.TrimSpace(texts[i]), 64)
		if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
			return nil
		}
		out[i] = value
	}
	return &out
}

// ParseWorld parses a world file: six lines, the last two for the middle of the first pixel. It returns the transform
// from pixel corners, or nil if the file is something else, which its name does not rule out.
func ParseWorld(data []byte) *[6]float64 {
	v := numbers(strings.Fields(string(data)))
	if v == nil || v[0] == 0 && v[2] == 0 || v[1] == 0 && v[3] == 0 {
		return nil
	}
	out := [6]float64{
		v[4] - v[0]/2 - v[2]/2, v[0], v[2],
		v[5] - v[1]/2 - v[3]/2, v[1], v[3],
	}
	if math.IsInf(out[0], 0) || math.IsInf(out[3], 0) {
		return nil
	}
	return &out
}

// World returns the extensions of the world files of a raster, in the order in which they count: of "a.tif" .tfw, .tifw
// and .wld.
func World(name string) []string {
	ext := strings.ToLower(path.Ext(name))
	if len(ext) < 3 {
		return []string{".wld"}
	}
	return []string{ext[:2] + ext[len(ext)-1:] + "w", ext + "w", ".wld"}
}

// Is reports whether a file may lie beside a raster, by its name in any case.
func Is(name string) bool {
	name = strings.ToLower(name)
	ext := path.Ext(name)
	world := len(ext) >= 4 && len(ext) <= 6 && ext[len(ext)-1] == 'w'
	return ext == ".msk" || ext == ".wld" || world || strings.HasSuffix(name, ".aux.xml")
}

// maskFlags finds the flags of the first band of a mask in GDAL_METADATA.
var maskFlags = regexp.MustCompile(`<Item name="INTERNAL_MASK_FLAGS_1"[^>]*>\s*([0-9]+)`)

// IsMask reports whether the GDAL_METADATA of NAME.msk says that it is a mask. GDAL takes no other file for one.
func IsMask(metadata string) bool { return maskFlags.MatchString(metadata) }

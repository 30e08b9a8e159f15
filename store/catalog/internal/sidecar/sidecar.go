// Package sidecar parses what GDAL writes beside a raster: NAME.aux.xml (its persistent auxiliary metadata, PAM) and
// world files. Statistics and histograms of PAM are ignored.
package sidecar

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"io"
	"iter"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/vrt/classes"
	"github.com/chaski-eo/chaski/internal/textguard"
	"github.com/chaski-eo/chaski/tiff"
)

// Limits of files beside a raster, in bytes. PAM may have long parts, such as histograms and attribute tables.
const (
	MaxPAM   = 16 << 20
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
	Place       string `xml:"band,attr"` // its number, from 1
	Description string `xml:"Description"`
	NoData      NoData `xml:"NoDataValue"`
	Scale       string `xml:"Scale"`
	Offset      string `xml:"Offset"`
	Colour      string `xml:"ColorInterp"`
	classes.Classes
}

// Number returns the number of the band, from 1, or 0 for none.
func (b *Band) Number() int {
	n, _ := strconv.Atoi(digits.FindString(strings.TrimSpace(b.Place)))
	return n
}

// digits find the whole number that a text begins with.
var digits = regexp.MustCompile(`^\+?[0-9]+`)

// NoData is a nodata value. GDAL rounds its text, and writes the float64 itself as an attribute.
type NoData struct {
	Hex  string `xml:"le_hex_equiv,attr"` // 8 bytes, the lowest first
	Text string `xml:",chardata"`
}

// String returns the value as a text that tiff.NoData reads, or "" for none.
func (n *NoData) String() string {
	text := strings.TrimSpace(n.Text)
	bits, err := hex.DecodeString(n.Hex)
	if text == "" || err != nil || len(bits) != 8 {
		return text
	}
	switch value := math.Float64frombits(binary.LittleEndian.Uint64(bits)); {
	case math.IsInf(value, 1):
		return "inf"
	case math.IsInf(value, -1):
		return "-inf"
	case math.IsNaN(value):
		return "nan"
	default:
		return strconv.FormatFloat(value, 'f', -1, 64) // whole numbers without an exponent, which have 64 bits
	}
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

// ParsePAM parses NAME.aux.xml as leniently as GDAL does. XML of another kind says nothing.
func ParsePAM(ctx context.Context, data []byte) (*PAM, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) { // Latin-1, whatever the file says
		text := make([]byte, 0, 2*len(data))
		for _, b := range data {
			text = utf8.AppendRune(text, rune(b))
		}
		data = text
	}
	var doc struct {
		XMLName   xml.Name
		SRS       string
		Transform string `xml:"GeoTransform"`
		Bands     []Band `xml:"PAMRasterBand"`
	}
	limits := map[string]int{"PAMRasterBand": chunk.MaxBands}
	err := textguard.ParseXML(ctx, "PAM", data, limits, func(r io.Reader) error {
		decoder := xml.NewDecoder(r)
		decoder.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
		decoder.Strict = false // "&" and "&nbsp;" stand for themselves
		err := decoder.Decode(&doc)
		if err == nil {
			for err == nil { // what follows must be XML, too
				_, err = decoder.Token()
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
		}
		if err != nil {
			return fault.At(fault.Corrupt, "PAM", decoder.InputOffset(), "%v", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !strings.EqualFold(doc.XMLName.Local, "PAMDataset") {
		return &PAM{}, nil
	}
	return &PAM{SRS: strings.TrimSpace(doc.SRS), Transform: Transform(doc.Transform), Bands: doc.Bands}, nil
}

// Transform parses a GeoTransform of PAM and VRT. It is nil unless there are six numbers.
func Transform(text string) *[6]float64 {
	comma := func(r rune) bool { return r == ',' }
	if texts := firstOf(strings.FieldsFuncSeq(text, comma), 7); len(texts) == 6 {
		return numbers(texts)
	}
	return nil
}

// firstOf returns the first n texts: a file has megabytes of separators, and all texts between them would take 16
// bytes each.
func firstOf(texts iter.Seq[string], n int) (out []string) {
	for text := range texts {
		if out = append(out, text); len(out) == n {
			break
		}
	}
	return out
}

// numbers parses six numbers, each as far as its text is one. It returns nil for what is not finite.
func numbers(texts []string) *[6]float64 {
	var out [6]float64
	for i := range out {
		if out[i] = tiff.Number(strings.TrimSpace(texts[i])); math.IsNaN(out[i]) || math.IsInf(out[i], 0) {
			return nil
		}
	}
	return &out
}

// ParseWorld parses a world file: six lines, the last two for the middle of the first pixel. It returns the transform
// from pixel corners, or nil if the file is something else, which its name does not rule out.
func ParseWorld(data []byte) *[6]float64 {
	lines := firstOf(func(yield func(string) bool) {
		for line := range strings.FieldsFuncSeq(string(data), func(r rune) bool { return r == '\n' || r == '\r' }) {
			if strings.TrimSpace(line) != "" && !yield(line) {
				return
			}
		}
	}, 6)
	if len(lines) < 6 {
		return nil
	}
	v := numbers(lines)
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

// Names are the names of files in a directory that may belong to rasters.
type Names map[string]string

// Add adds a name, if a file of that name may belong to a raster.
func (n Names) Add(name string) {
	if !Is(name) {
		return
	}
	n[name] = name
	if lower := strings.ToLower(name); n[lower] == "" {
		n[lower] = name
	}
}

// Find returns the name of a file, which may have its letters in another case, or "" for none.
func (n Names) Find(name string) string { return cmp.Or(n[name], n[strings.ToLower(name)]) }

// maskFlags finds the flags of the first band of a mask in GDAL_METADATA.
var maskFlags = regexp.MustCompile(`<Item name="INTERNAL_MASK_FLAGS_1"[^>]*>\s*([0-9]+)`)

// IsMask reports whether the GDAL_METADATA of NAME.msk says that it is a mask. GDAL takes no other file for one.
func IsMask(metadata string) bool { return maskFlags.MatchString(metadata) }

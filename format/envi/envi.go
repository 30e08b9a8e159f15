// Package envi reads the headers of ENVI rasters: a text NAME.hdr beside a file of samples without a header of its own.
// What it says becomes an index of uncompressed chunks of that file.
package envi

import (
	"math"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/epsg"
)

// Magic begins each header.
const Magic = "ENVI"

// MaxHeader bounds a header in bytes: names and spectra of 65,536 bands.
const MaxHeader = 4 << 20

// Limits of an index: chunkBytes is about the size of a chunk, so a window reads the rows that it touches and few
// others; maxChunks are 64 MiB of ranges.
const (
	chunkBytes = 256 << 10
	maxChunks  = 4 << 20
)

const part = "ENVI header"

// Header is what a header says.
type Header struct {
	Index *chunk.Index
	Names []string // of the bands, or their wavelengths, nil without
	EPSG  int      // of the CRS, 0 if it is unknown
	CRS   string   // its parameters, as epsg.Described has them
	// Transform converts pixel corners to coordinates as GDAL's geotransform does; nil without a place.
	Transform *[6]float64
}

// dtypes are the types of samples by their numbers.
var dtypes = map[int64]chunk.DType{1: chunk.Uint8, 2: chunk.Int16, 3: chunk.Int32, 4: chunk.Float32, 5: chunk.Float64,
	6: chunk.Complex64, 9: chunk.Complex128, 12: chunk.Uint16, 13: chunk.Uint32, 14: chunk.Int64, 15: chunk.Uint64}

// members returns the values of a header by their names in lower case. One in braces may have several lines.
func members(text string) map[string]string {
	found := map[string]string{}
	for text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		if begin, open := strings.CutPrefix(value, "{"); open {
			if end := strings.IndexByte(begin, '}'); end >= 0 {
				value = begin[:end]
			} else {
				tail, rest, _ := strings.Cut(text, "}")
				value, text = begin+" "+tail, rest
			}
		}
		found[strings.Join(strings.Fields(strings.ToLower(name)), " ")] = strings.TrimSpace(value)
	}
	return found
}

// list returns the values in braces.
func list(value string) []string {
	if value == "" {
		return nil
	}
	out := strings.Split(value, ",")
	for i := range out {
		out[i] = strings.TrimSpace(out[i])
	}
	return out
}

// Parse reads a header of a file of size bytes, whose decoded chunks have at most maxChunk bytes.
func Parse(text string, size int64, maxChunk int) (*Header, error) {
	fields := members(text)
	if kind := strings.ToLower(fields["file type"]); kind != "" && kind != "envi standard" && kind != "envi" &&
		kind != "envi classification" {
		return nil, fault.New(fault.Unsupported, part, "file type %q", fields["file type"])
	}
	if n, _ := strconv.Atoi(fields["file compression"]); n != 0 {
		return nil, fault.New(fault.Unsupported, part, "the samples are compressed")
	}
	numbers := map[string]int64{"samples": 0, "lines": 0, "bands": 1, "data type": 1, "header offset": 0,
		"byte order": 0}
	for name := range numbers {
		value, ok := fields[name]
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 {
			return nil, fault.New(fault.Corrupt, part, "%s is %.40q", name, value)
		}
		numbers[name] = n
	}
	dtype, ok := dtypes[numbers["data type"]]
	if !ok {
		return nil, fault.New(fault.Unsupported, part, "data type %d", numbers["data type"])
	}
	h := &Header{Index: &chunk.Index{DType: dtype, Codec: chunk.Raw, Predictor: chunk.NoPredictor, CutEdge: true,
		BigEndian: numbers["byte order"] == 1 && dtype.Size() > 1, Bands: clip(numbers["bands"]),
		Height: clip(numbers["lines"]), Width: clip(numbers["samples"]),
		Classes: strings.EqualFold(fields["file type"], "envi classification")}}
	if err := layOut(h.Index, strings.ToLower(fields["interleave"]), numbers["header offset"], size); err != nil {
		return nil, err
	}
	if value, ok := fields["data ignore value"]; ok {
		number, err := strconv.ParseFloat(value, 64)
		if err != nil && !math.IsInf(number, 0) {
			return nil, fault.New(fault.Corrupt, part, "data ignore value is %.40q", value)
		}
		h.Index.SetNoData([][]float64{{number}})
	}
	h.names(fields)
	h.place(fields)
	return h, h.Index.Validate(size, maxChunk)
}

// clip returns a size as an int, which one that is too large cannot be.
func clip(n int64) int { return int(min(n, chunk.MaxSide+1)) }

// layOut makes the chunks of a file of size bytes.
func layOut(x *chunk.Index, interleave string, off, size int64) error {
	// Sizes are compared before they are multiplied: a header may claim any.
	total, room := int64(x.DType.Size()), size-off
	for _, n := range []int{x.Width, x.Height, x.Bands} {
		if n < 1 || n > chunk.MaxSide {
			return fault.New(fault.Corrupt, part, "%d bands of %d lines of %d samples", x.Bands, x.Height, x.Width)
		}
		if room <= 0 || int64(n) > room/total {
			return fault.New(fault.Corrupt, part, "%d bands of %d by %d samples of %s, from %d on, do not fit into "+
				"the file's %d bytes", x.Bands, x.Height, x.Width, x.DType, off, size)
		}
		total *= int64(n)
	}
	x.ChunkW, x.ChunkB, x.ChunkH = x.Width, x.Bands, 1
	line := int64(x.DType.Size()) * int64(x.Width) * int64(x.Bands)
	switch interleave {
	case "bil": // a line of all bands is (b, x)
	case "bip":
		x.Inner, x.ChunkH = chunk.YXB, int(min(max(chunkBytes/line, 1), int64(x.Height)))
	case "bsq", "":
		line /= int64(x.Bands)
		x.ChunkB, x.ChunkH = 1, int(min(max(chunkBytes/line, 1), int64(x.Height)))
	default:
		return fault.New(fault.Unsupported, part, "interleave %.40q: bsq, bil and bip are read", interleave)
	}
	planes := x.Bands / x.ChunkB
	if strips := (x.Height + x.ChunkH - 1) / x.ChunkH; strips > maxChunks/planes {
		return fault.New(fault.Limit, part, "%d bands of %d lines: at most %d chunks", x.Bands, x.Height, maxChunks)
	}
	for row := 0; row < x.Height; row += x.ChunkH {
		rows := int64(min(x.ChunkH, x.Height-row))
		for plane := range int64(planes) {
			before := plane*int64(x.Height) + int64(row)
			x.Ranges = append(x.Ranges, chunk.Range{Off: off + line*before, Len: line * rows})
		}
	}
	return nil
}

// names sets the names of the bands: those that the header has, or the wavelengths.
func (h *Header) names(fields map[string]string) {
	for _, name := range [...]string{"band names", "wavelength"} {
		if names := list(fields[name]); len(names) == h.Index.Bands {
			h.Names = names
			return
		}
	}
}

// place sets the transform of "map info", unless it is rotated, and the CRS: from the well-known text, or else UTM or
// degrees in WGS 84 from "map info".
func (h *Header) place(fields map[string]string) {
	info := list(fields["map info"])
	if len(info) < 7 {
		return
	}
	var v [6]float64 // the pixel, from 1 on, its coordinates, and the size of pixels
	for i := range v {
		number, err := strconv.ParseFloat(info[i+1], 64)
		if err != nil || math.IsInf(number, 0) || math.IsNaN(number) {
			return
		}
		v[i] = number
	}
	wgs84 := false
	for _, word := range info[7:] {
		if angle, ok := strings.CutPrefix(strings.ToLower(word), "rotation="); ok {
			if degrees, err := strconv.ParseFloat(angle, 64); err != nil || degrees != 0 {
				return
			}
		}
		wgs84 = wgs84 || word == "WGS-84"
	}
	if v[4] == 0 || v[5] == 0 {
		return
	}
	h.Transform = &[6]float64{v[2] - float64((v[0]-1)*v[4]), v[4], 0, v[3] + float64((v[1]-1)*v[5]), 0, -v[5]}
	if text := fields["coordinate system string"]; text != "" {
		h.EPSG, h.CRS = epsg.Described(text)
	}
	switch name := strings.ToLower(info[0]); {
	case h.EPSG != 0 || h.CRS != "" || !wgs84:
	case strings.HasPrefix(name, "geographic"):
		h.EPSG = 4326
	case name == "utm" && len(info) > 8:
		zone, err := strconv.Atoi(info[7])
		north := strings.EqualFold(info[8], "north")
		isZone := err == nil && zone >= 1 && zone <= 60
		switch {
		case !isZone || !north && !strings.EqualFold(info[8], "south"):
		case north:
			h.EPSG = 32600 + zone
		default:
			h.EPSG = 32700 + zone
		}
	}
}

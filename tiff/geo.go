package tiff

import (
	"math"
	"strings"

	"github.com/chaski-eo/chaski/internal/epsg"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// Geo is the georeferencing of an image (GeoTIFF 1.1, OGC 19-008r4).
type Geo struct {
	// EPSG is the code of the CRS, 0 if it is unknown. For a CRS that an ESRI citation or parameters
	// describe, it is the code of the CRS in package crs that matches them.
	EPSG int
	// Parameters describes a projected CRS without a code, as epsg.Definition.String does; empty for others, and where
	// the projection is not known.
	Parameters string
	// Transform maps the corner of pixel (row, col) to the ground, like GDAL's geotransform:
	// X = t[0] + col·t[1] + row·t[2], Y = t[3] + col·t[4] + row·t[5].
	Transform    [6]float64
	HasTransform bool
	GCPs         int // ground control points of a file without a transform

	// GeoKeys, GeoDoubles and GeoASCII are the GeoKeyDirectory and its parameters as in the file.
	GeoKeys    []uint16
	GeoDoubles []float64
	GeoASCII   string
}

// More GeoKeys in use.
const (
	keyVerticalCRS = 4096

	keyCitation           = 1026
	keyGeographicCitation = 2049
	keyProjectedCitation  = 3073
)

// maxGeo bounds the values of one georeferencing tag that are kept. Ground control points, the longest of
// them, have six values each: this is room for 10,000.
const maxGeo = 1 << 16

// read fills g from tags. It ignores those that are not valid.
func (g *Geo) read(t *ifd.Tags) {
	floats := func(tag uint16) []float64 {
		if v := t.Value(tag); v.Len() <= maxGeo {
			return v.Floats()
		}
		return nil
	}
	if v := t.Value(ifd.TagGeoKeys); v.Type == ifd.Short && v.Len() <= maxGeo {
		g.GeoKeys = v.Shorts()
	}
	g.GeoDoubles = floats(ifd.TagGeoDoubles)
	g.GeoASCII = t.Value(ifd.TagGeoASCII).Text()
	g.EPSG = g.epsg()
	g.Parameters = g.parameters()
	g.setTransform(floats(ifd.TagPixelScale), floats(ifd.TagTiepoint), floats(ifd.TagTransformation))
	if !g.HasTransform {
		g.GCPs = t.Value(ifd.TagTiepoint).Len() / 6
	}
}

// entries returns the entries of the directory, of four numbers each. As in GDAL, there are as many as the header says,
// and none if the header has a later version or more of them than the directory.
func (g *Geo) entries() []uint16 {
	if len(g.GeoKeys) < 4 || g.GeoKeys[0] > 1 || int(g.GeoKeys[3]) > len(g.GeoKeys)/4-1 {
		return nil
	}
	return g.GeoKeys[4 : 4+4*int(g.GeoKeys[3])]
}

// entry returns the count and the position of a GeoKey that is stored in a tag, or the value of one in the
// directory itself, tag 0.
func (g *Geo) entry(id, tag uint16) (count, value uint16, ok bool) {
	for keys := g.entries(); len(keys) > 0; keys = keys[4:] {
		if keys[0] == id && keys[1] == tag {
			return keys[2], keys[3], true
		}
	}
	return 0, 0, false
}

// key returns the value of a GeoKey that is stored in the directory itself.
func (g *Geo) key(id uint16) (uint16, bool) {
	_, value, ok := g.entry(id, 0)
	return value, ok
}

// IsPoint reports whether the file's tie points or matrix refer to the centres of pixels
// (RasterPixelIsPoint). Transform refers to corners in both cases.
func (g *Geo) IsPoint() bool {
	raster, _ := g.key(ifd.KeyRasterType)
	return raster == ifd.RasterPixelIsPoint
}

// IsGeographic reports whether the CRS has latitude and longitude. For a code that package epsg does not
// know it goes by the range: EPSG assigned 4000 to 4999 to geographic CRSs.
func (g *Geo) IsGeographic() bool {
	if projection := epsg.Projection(g.EPSG); projection != "" {
		return projection == "longlat"
	}
	if len(g.entries()) == 0 {
		return g.EPSG >= 4000 && g.EPSG < 5000
	}
	projected, _ := g.key(ifd.KeyProjectedCRS)
	return projected == 0 || projected == ifd.UserDefined
}

// IsVertical reports whether the file names a vertical CRS.
func (g *Geo) IsVertical() bool {
	code, ok := g.key(keyVerticalCRS)
	return ok && code != 0
}

// Citation returns the name of the CRS in the file: the first citation among the projected CRS's,
// the general one, and the geographic CRS's.
func (g *Geo) Citation() string {
	for _, id := range [...]uint16{keyProjectedCitation, keyCitation, keyGeographicCitation} {
		if name := g.citation(id); name != "" {
			return name
		}
	}
	return ""
}

// citation returns the string of a GeoKey, or "".
func (g *Geo) citation(id uint16) string {
	count, first, ok := g.entry(id, ifd.TagGeoASCII)
	if end := int(first) + int(count); ok && end <= len(g.GeoASCII) {
		return strings.TrimSpace(strings.TrimRight(g.GeoASCII[first:end], "|\x00"))
	}
	return ""
}

// setTransform sets the transform from a full matrix, or from a scale and the first tie point.
func (g *Geo) setTransform(scale, tie, matrix []float64) {
	transform := &g.Transform
	switch {
	case len(matrix) == 16:
		*transform = [6]float64{matrix[3], matrix[0], matrix[1], matrix[7], matrix[4], matrix[5]}
	case len(scale) >= 2 && scale[0] != 0 && scale[1] != 0 && len(tie) >= 6:
		// As in GDAL, rows run to the south for both signs, because some writers store the wrong one.
		down := math.Abs(scale[1])
		*transform = [6]float64{tie[3] - tie[0]*scale[0], scale[0], 0, tie[4] + tie[1]*down, 0, -down}
	default:
		return
	}
	// A tie point or matrix that refers to the centre of a pixel is moved to its corner, so the rest
	// of chaski needs to know one convention only.
	if g.IsPoint() {
		transform[0] -= (transform[1] + transform[2]) / 2
		transform[3] -= (transform[4] + transform[5]) / 2
	}
	for _, number := range transform {
		// GDAL reads such a transform. It is left out here: it places no pixel, and JSON lacks the number.
		if math.IsNaN(number) || math.IsInf(number, 0) {
			*transform = [6]float64{}
			return
		}
	}
	g.HasTransform = true
}

package tiff

import (
	"context"
	"math"
	"strings"

	"github.com/chaski-eo/chaski/crs"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// Geo is where an image lies on the ground (GeoTIFF 1.1, OGC 19-008r4).
type Geo struct {
	// EPSG is the code of the CRS, 0 for none that is known. Of a CRS that is given by a citation of ESRI's or by its parameters, it is the
	// code of the one in package crs that has them.
	EPSG int
	// Transform takes a corner of pixel (row, col) to the ground as GDAL's geotransform does:
	// X = t[0] + col·t[1] + row·t[2], Y = t[3] + col·t[4] + row·t[5].
	Transform    [6]float64
	HasTransform bool

	// The GeoKeyDirectory and its parameters as they are in the file.
	GeoKeys    []uint16
	GeoDoubles []float64
	GeoASCII   string
}

// GeoKeys that are looked at.
const (
	keyModelType     = 1024
	keyRasterType    = 1025
	keyGeographicCRS = 2048
	keyProjectedCRS  = 3072
	keyVerticalCRS   = 4096

	keyCitation           = 1026
	keyGeographicCitation = 2049
	keyProjectedCitation  = 3073

	rasterPixelIsPoint = 2
	userDefined        = 32767
)

// maxGeo bounds the values of one georeferencing tag that are kept.
const maxGeo = 1 << 16

// read fills g from the tags of d. Tags that make no sense are ignored.
func (g *Geo) read(ctx context.Context, f *ifd.File, d *ifd.Directory) error {
	floats := func(tag uint16) ([]float64, error) {
		v, err := f.Value(ctx, d, tag)
		if err != nil || !v.IsFloat() || v.Len() > maxGeo {
			return nil, err
		}
		s := make([]float64, v.Len())
		for i := range s {
			s[i] = v.Float(i)
		}
		return s, nil
	}
	v, err := f.Value(ctx, d, tagGeoKeys)
	if err != nil {
		return err
	}
	if v.Type == ifd.Short && v.Len() <= maxGeo {
		for i := range v.Len() {
			g.GeoKeys = append(g.GeoKeys, uint16(v.Uint(i)))
		}
	}
	if g.GeoDoubles, err = floats(tagGeoDoubles); err != nil {
		return err
	}
	if v, err = f.Value(ctx, d, tagGeoASCII); err != nil {
		return err
	}
	g.GeoASCII = v.Text()
	g.EPSG = g.epsg()
	scale, err := floats(tagPixelScale)
	if err != nil {
		return err
	}
	tie, err := floats(tagTiepoint)
	if err != nil {
		return err
	}
	matrix, err := floats(tagTransformation)
	if err != nil {
		return err
	}
	g.setTransform(scale, tie, matrix)
	return nil
}

// key returns the value of a GeoKey that stands in the directory itself.
func (g *Geo) key(id uint16) (uint16, bool) {
	for k := g.GeoKeys; len(k) >= 8; k = k[4:] {
		if k[4] == id && k[5] == 0 {
			return k[7], true
		}
	}
	return 0, false
}

// IsPoint reports whether the file's tie points or matrix refer to the centres of pixels
// (RasterPixelIsPoint); Transform refers to corners all the same.
func (g *Geo) IsPoint() bool {
	v, _ := g.key(keyRasterType)
	return v == rasterPixelIsPoint
}

// IsGeographic reports whether the CRS is one of latitude and longitude. Of a code that package crs does not know the range says it: 4000
// to 4999 were handed out to them.
func (g *Geo) IsGeographic() bool {
	if c, ok := crs.ByCode(g.EPSG); ok {
		return c.Geographic()
	}
	if len(g.GeoKeys) == 0 {
		return g.EPSG >= 4000 && g.EPSG < 5000
	}
	projected, _ := g.key(keyProjectedCRS)
	return projected == 0 || projected == userDefined
}

// IsVertical reports whether the file names a CRS of heights.
func (g *Geo) IsVertical() bool {
	v, ok := g.key(keyVerticalCRS)
	return ok && v != 0
}

// Citation returns what the file calls its CRS: the citation of the projected one, the general one or
// that of the geographic one, the first that there is.
func (g *Geo) Citation() string {
	for _, id := range [...]uint16{keyProjectedCitation, keyCitation, keyGeographicCitation} {
		if s := g.citation(id); s != "" {
			return s
		}
	}
	return ""
}

// citation returns the text of a GeoKey, "" for none.
func (g *Geo) citation(id uint16) string {
	for k := g.GeoKeys; len(k) >= 8; k = k[4:] {
		if k[4] != id || k[5] != tagGeoASCII {
			continue
		}
		if at, n := int(k[7]), int(k[6]); at <= len(g.GeoASCII) && n <= len(g.GeoASCII)-at {
			if s := strings.TrimSpace(strings.TrimRight(g.GeoASCII[at:at+n], "|\x00")); s != "" {
				return s
			}
		}
	}
	return ""
}

// setTransform uses a full matrix, or a scale with the first tie point. Where a tie point or matrix refers to the centre of a pixel
// (RasterPixelIsPoint), it is moved to the corner. As in GDAL, rows count to the south whatever the sign of the scale of y: some
// writers give it with the wrong one.
func (g *Geo) setTransform(scale, tie, matrix []float64) {
	t := &g.Transform
	switch {
	case len(matrix) == 16:
		*t = [6]float64{matrix[3], matrix[0], matrix[1], matrix[7], matrix[4], matrix[5]}
	case len(scale) >= 2 && scale[0] != 0 && scale[1] != 0 && len(tie) >= 6:
		down := math.Abs(scale[1])
		*t = [6]float64{tie[3] - tie[0]*scale[0], scale[0], 0, tie[4] + tie[1]*down, 0, -down}
	default:
		return
	}
	if v, _ := g.key(keyRasterType); v == rasterPixelIsPoint {
		t[0] -= (t[1] + t[2]) / 2
		t[3] -= (t[4] + t[5]) / 2
	}
	g.HasTransform = true
}

// Fields returns the tags that say where an image lies, for a directory to write; none for the
// zero Geo. A transform without rotation is written as a scale and a tie point, any other as a
// matrix. Without GeoKeys of its own, a Geo with an EPSG code is given the three keys that GeoTIFF
// needs at least.
func (g *Geo) Fields() []ifd.Field {
	var fields []ifd.Field
	keys := g.GeoKeys
	if len(keys) == 0 && g.EPSG > 0 && g.EPSG < userDefined {
		model, id := uint16(1), uint16(keyProjectedCRS)
		if g.IsGeographic() {
			model, id = modelGeographic, keyGeographicCRS
		}
		keys = []uint16{1, 1, 0, 3, keyModelType, 0, 1, model, keyRasterType, 0, 1, 1, id, 0, 1, uint16(g.EPSG)}
	}
	if g.HasTransform {
		t := g.Transform
		if v, _ := g.key(keyRasterType); v == rasterPixelIsPoint {
			t[0] += (t[1] + t[2]) / 2
			t[3] += (t[4] + t[5]) / 2
		}
		if t[2] == 0 && t[4] == 0 && t[5] < 0 {
			fields = append(fields, ifd.Doubles(tagPixelScale, t[1], -t[5], 0), ifd.Doubles(tagTiepoint, 0, 0, 0, t[0], t[3], 0))
		} else {
			fields = append(fields, ifd.Doubles(tagTransformation, t[1], t[2], 0, t[0], t[4], t[5], 0, t[3], 0, 0, 0, 0, 0, 0, 0, 1))
		}
	}
	if len(keys) > 0 {
		fields = append(fields, ifd.Shorts(tagGeoKeys, keys...))
		if len(g.GeoDoubles) > 0 {
			fields = append(fields, ifd.Doubles(tagGeoDoubles, g.GeoDoubles...))
		}
		if g.GeoASCII != "" {
			fields = append(fields, ifd.Text(tagGeoASCII, g.GeoASCII))
		}
	}
	return fields
}

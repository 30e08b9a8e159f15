// Package geotags makes the tags of GeoTIFF that say where a raster lies.
package geotags

import (
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
)

// Fields returns the tags of a directory to write that say where a raster lies; none for the zero Geo. A transform
// without rotation becomes a scale and a tie point, any other a matrix. A Geo with an EPSG code but without
// GeoKeys gets the three keys that GeoTIFF requires.
func Fields(g *tiff.Geo) []ifdwrite.Field {
	var fields []ifdwrite.Field
	keys := g.GeoKeys
	if len(keys) == 0 && g.EPSG > 0 && g.EPSG < ifd.UserDefined {
		model, id := uint16(ifd.ModelProjected), uint16(ifd.KeyProjectedCRS)
		if g.IsGeographic() {
			model, id = ifd.ModelGeographic, ifd.KeyGeographicCRS
		}
		keys = []uint16{1, 1, 0, 3, ifd.KeyModelType, 0, 1, model,
			ifd.KeyRasterType, 0, 1, ifd.RasterPixelIsArea, id, 0, 1, uint16(g.EPSG)}
	}
	if g.HasTransform {
		transform := g.Transform
		if g.IsPoint() {
			transform[0] += (transform[1] + transform[2]) / 2
			transform[3] += (transform[4] + transform[5]) / 2
		}
		if transform[2] == 0 && transform[4] == 0 && transform[5] < 0 {
			fields = append(fields,
				ifdwrite.Doubles(ifd.TagPixelScale, transform[1], -transform[5], 0),
				ifdwrite.Doubles(ifd.TagTiepoint, 0, 0, 0, transform[0], transform[3], 0))
		} else {
			fields = append(fields, ifdwrite.Doubles(ifd.TagTransformation,
				transform[1], transform[2], 0, transform[0], transform[4], transform[5], 0, transform[3],
				0, 0, 0, 0, 0, 0, 0, 1))
		}
	}
	if len(keys) > 0 {
		fields = append(fields, ifdwrite.Shorts(ifd.TagGeoKeys, keys...))
		if len(g.GeoDoubles) > 0 {
			fields = append(fields, ifdwrite.Doubles(ifd.TagGeoDoubles, g.GeoDoubles...))
		}
		if g.GeoASCII != "" {
			fields = append(fields, ifdwrite.Text(ifd.TagGeoASCII, g.GeoASCII))
		}
	}
	return fields
}

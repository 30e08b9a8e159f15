package tiff

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/internal/epsg"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// GeoKeys of CRSs that have no code (GeoTIFF 1.1, annex B, and 1.0, section 6.2).
const (
	modelGeocentric = 3

	keyGeodeticDatum = 2050
	keySemiMajor     = 2057
	keySemiMinor     = 2058
	keyInverseFlat   = 2059
	keyProjection    = 3074
	keyMethod        = 3075
	keyLinearUnits   = 3076
	keyLinearSize    = 3077
)

// epsg returns the EPSG code of the CRS, or 0 if it is unknown. It follows GDAL.
func (g *Geo) epsg() int {
	// The model type says whether a geographic CRS is the CRS of the raster or only the base of its
	// projection. Without this check a raster in metres would be taken for one in degrees.
	model, _ := g.key(ifd.KeyModelType)
	if model == modelGeocentric { // x and y are no place on a map
		return 0
	}
	if n := g.code(ifd.KeyProjectedCRS); n != 0 && model != ifd.ModelGeographic {
		return g.checked(n, g.code(ifd.KeyGeographicCRS))
	}
	if model == ifd.ModelGeographic {
		if n := g.code(ifd.KeyGeographicCRS); n != 0 {
			return n
		}
	}
	for _, id := range [...]uint16{keyProjectedCitation, keyCitation, keyGeographicCitation} {
		if text, ok := strings.CutPrefix(g.citation(id), "ESRI PE String = "); ok {
			n := epsg.ByWKT(text)
			if model == ifd.ModelProjected && epsg.Projection(n) == "longlat" {
				return 0
			}
			return n
		}
	}
	switch model {
	case ifd.ModelGeographic:
		return g.base()
	case ifd.ModelProjected:
		definition, _ := g.definition()
		return public(definition.Match())
	}
	return 0
}

// code returns the code that a GeoKey has, or 0.
func (g *Geo) code(id uint16) int {
	v, _ := g.key(id)
	if v < 1024 || v >= ifd.UserDefined { // undefined, obsolete or private
		return 0
	}
	return int(v)
}

// public returns a code of EPSG, or 0 for others.
func public(code int) int {
	if code >= ifd.UserDefined {
		return 0
	}
	return code
}

// parameters returns the parameters of a projected CRS without a code, or "" if one is missing.
func (g *Geo) parameters() string {
	if model, _ := g.key(ifd.KeyModelType); g.EPSG != 0 || model != ifd.ModelProjected {
		return ""
	}
	if definition, ok := g.definition(); ok {
		return definition.String()
	}
	return ""
}

// base returns the code of the geographic CRS, also of one that the file describes by its datum: by the code of the
// datum, or by the name of the datum or the CRS. It returns 0 if none is known.
func (g *Geo) base() int {
	if code := g.code(ifd.KeyGeographicCRS); code != 0 {
		return code
	}
	datum, _ := g.key(keyGeodeticDatum)
	if code := epsg.ByDatum(strconv.Itoa(int(datum))); code != 0 {
		return code
	}
	name := g.citation(keyGeographicCitation)
	if _, after, ok := strings.Cut(name, "GCS Name = "); ok {
		name = after
	}
	name, _, _ = strings.Cut(name, "|")
	return public(epsg.ByDatum(name))
}

// checked returns the code of a projected CRS. If other keys name another geographic CRS that is known, or another
// unit, it returns the code of the CRS that has these, or 0.
func (g *Geo) checked(code, base int) int {
	definition, ok := epsg.ByCode(code)
	if !ok || definition.Projection == "longlat" {
		return code
	}
	if epsg.Projection(base) == "" {
		base = definition.Base
	}
	unit, known := g.unit()
	if base == definition.Base && (!known || math.Abs(unit-definition.Value("unit")) < 1e-9) {
		return code
	}
	if base != definition.Base {
		definition.Base, definition.A = base, 0
	}
	if known {
		definition.Values["unit"] = unit
	}
	return public(definition.Match())
}

// unit returns the length of the unit of x and y in metres. known is false if no key says it.
func (g *Geo) unit() (metres float64, known bool) {
	code, _ := g.key(keyLinearUnits)
	switch code {
	case 9001:
		return 1, true
	case 9002:
		return 0.3048, true
	case 9003:
		return 1200. / 3937, true
	case 9036:
		return 1000, true
	case ifd.UserDefined:
		if size, ok := g.double(keyLinearSize); ok {
			return size, true
		}
	}
	return 1, false
}

// double returns the value of a GeoKey that is a finite float64.
func (g *Geo) double(id uint16) (float64, bool) {
	count, pos, _ := g.entry(id, ifd.TagGeoDoubles)
	if count != 1 || int(pos) >= len(g.GeoDoubles) {
		return 0, false
	}
	if number := g.GeoDoubles[pos]; !math.IsNaN(number) && !math.IsInf(number, 0) {
		return number, true
	}
	return 0, false
}

// methods maps the values of ProjMethodGeoKey that package epsg knows.
var methods = map[uint16]string{
	1: "tmerc", 3: "omerc_a", 7: "merc", 8: "lcc", 9: "lcc", 10: "laea", 11: "aea", 15: "stere", 16: "sterea",
	17: "eqc", 22: "poly", 24: "sinu",
	28: "cea", 29: "omerc",

	// Codes of EPSG, because some writers put them here.
	9804: "merc", 9807: "tmerc", 9812: "omerc_a", 9815: "omerc", 9820: "laea", 9822: "aea", 9835: "cea",
}

// methodKeys maps the keys of their parameters to PROJ's names: natural origin, false origin, centre and
// pole.
var methodKeys = map[uint16]string{
	3078: "lat_1", 3079: "lat_2", 3080: "lon_0", 3081: "lat_0", 3082: "x_0", 3083: "y_0", 3084: "lon_0",
	3085: "lat_0", 3086: "x_0", 3087: "y_0",
	3088: "lon_0", 3089: "lat_0", 3090: "x_0", 3091: "y_0", 3092: "k_0", 3093: "k_0", 3094: "alpha",
	3095: "lon_0", 3096: "gamma",
}

// definition returns a projected CRS by the parameters of its projection.
func (g *Geo) definition() (d epsg.Definition, ok bool) {
	if d.Base = g.base(); d.Base == 0 {
		d.Datum = g.citation(keyGeographicCitation)
		d.A, _ = g.double(keySemiMajor)
		if d.RF, ok = g.double(keyInverseFlat); !ok {
			if minor, has := g.double(keySemiMinor); has && minor != d.A {
				d.RF = d.A / (d.A - minor)
			}
		}
	}
	unit, _ := g.unit()
	d.Values = map[string]float64{"unit": unit}
	projection, _ := g.key(keyProjection)
	// UTM, by GeoTIFF 1.0, section 6.3.3.2: 16001 to 16060 in the north, 16101 to 16160 in the south.
	if side, zone := projection/100, projection%100; (side == 160 || side == 161) && zone >= 1 && zone <= 60 {
		d.Projection = "tmerc"
		d.Values = map[string]float64{"lon_0": float64(zone)*6 - 183, "k_0": 0.9996, "x_0": 500_000, "unit": unit}
		if side == 161 {
			d.Values["y_0"] = 10_000_000
		}
		return d, true
	}
	method, _ := g.key(keyMethod)
	if d.Projection, ok = methods[method]; !ok {
		return d, false
	}
	// In ascending order, because GDAL takes the lower of two keys with one meaning.
	for _, id := range slices.Sorted(maps.Keys(methodKeys)) {
		name := methodKeys[id]
		value, ok := g.double(id)
		if !ok {
			continue
		}
		if name == "x_0" || name == "y_0" {
			value *= unit
		}
		// A zero may be replaced, because some writers store zeros for keys that they do not use.
		if d.Values[name] == 0 {
			d.Values[name] = value
		}
	}
	if d.Canonical(); g.namesWebMercator() {
		return epsg.WebMercator(unit), true
	}
	return d, true
}

// namesWebMercator reports whether the name of the projected CRS is one of web Mercator for GDAL, which looks for more
// names in TIFFs than in well-known text.
func (g *Geo) namesWebMercator() bool {
	for _, id := range [...]uint16{keyProjectedCitation, keyCitation} {
		name := g.citation(id)
		if _, after, ok := strings.Cut(name, "PCS Name = "); ok {
			name, _, _ = strings.Cut(after, "|")
		}
		if name == "" {
			continue
		}
		return epsg.NamesWebMercator(name) || slices.ContainsFunc(webMercatorNames, func(known string) bool {
			return strings.EqualFold(name, known)
		})
	}
	return false
}

var webMercatorNames = []string{"WGS_1984_Web_Mercator_Auxiliary_Sphere", "Google Maps Global Mercator",
	"Google Maps Global Mercator (deprecated)"}

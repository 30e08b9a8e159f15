package crs

import (
	"math"
	"sync"

	"github.com/chaski-eo/chaski/internal/epsg"
)

// Point is x and y, or longitude and latitude in degrees.
type Point [2]float64

// CRS is a coordinate reference system. It is safe for use by several goroutines.
type CRS struct {
	code  int
	p     projection
	l     *ellipsoid
	datum *datumShift // nil: WGS 84, or a datum taken to be equal
	frame frame
	lon0  float64
	x0    float64
	y0    float64
	unit  float64 // metres of a unit; of longitude and latitude degrees of one
	sign  float64 // -1 where axes point west and south

	// Of the map: how far from lon0 it goes in degrees, and its latitudes. wide is the width of the
	// whole world in units of x where maps go on past it (cylindrical projections, longitude and
	// latitude), else 0.
	reach, south, north float64
	wide                float64
	round               bool // all meridians meet in the middle of the map, and none is cut
}

var cache sync.Map // code -> *CRS

// ByCode returns the CRS with an EPSG code, or false if the package does not know it.
func ByCode(code int) (*CRS, bool) {
	if cached, ok := cache.Load(code); ok {
		return cached.(*CRS), true
	}
	definition, ok := epsg.ByCode(code)
	if !ok {
		return nil, false
	}
	system := build(&definition)
	// Unknown codes are not cached, because files may contain any number.
	if system != nil {
		cache.Store(code, system)
	}
	return system, system != nil
}

// ByName returns the CRS with a name, as epsg.ByName reads it.
func ByName(text string) (*CRS, bool) { return ByCode(epsg.ByName(text)) }

// build returns the CRS of a definition, or nil if it is not supported.
func build(d *epsg.Definition) *CRS {
	system := &CRS{
		code: d.Code, l: newEllipsoid(d.A, d.RF), lon0: d.Value("lon_0") + d.Value("pm"),
		x0: d.Value("x_0"), y0: d.Value("y_0"), unit: d.Value("unit"), sign: 1, reach: 180, south: -90, north: 90,
	}
	if d.West {
		system.sign = -1
	}
	if !system.project(d) {
		return nil
	}
	system.datum, system.frame = datumOf(d), frameOf(d)
	if system.datum != nil && (d.Projection == "aea" || d.Projection == "cea" || d.Projection == "eqc") {
		// A shift maps all longitudes of a pole to one, but these maps draw the pole as a line: the
		// outline of a box with the pole would cross the map.
		system.south, system.north = -89.9, 89.9
	}
	for _, offset := range []float64{system.lon0, system.x0, system.y0} {
		if math.IsNaN(offset) || math.IsInf(offset, 0) {
			return nil
		}
	}
	if x, y := system.p.forward(0.1, (system.south+system.north)/2*math.Pi/180+0.1); !(system.unit > 0 && x == x &&
		y == y) {
		return nil
	}
	return system
}

// project sets the projection of c and where it is usable. It reports false if the method is not supported.
func (c *CRS) project(d *epsg.Definition) bool {
	radians := func(name string) float64 { return d.Value(name) * math.Pi / 180 }
	body := c.l
	scale, phi0 := d.Value("k_0"), radians("lat_0")
	switch d.Projection {
	case "longlat":
		c.p, c.unit, c.wide = longlat{}, math.Pi/180, 360
	case "tmerc":
		c.p = newTMerc(body, scale, phi0)
		c.reach = 60
	case "merc", "webmerc":
		mercator := &merc{l: body, radius: body.a * scale, web: d.Projection == "webmerc"}
		if parallel := radians("lat_ts"); parallel != 0 {
			mercator.radius = body.a * body.m(parallel)
		}
		c.p, c.south, c.north, c.wide = mercator, -89.9, 89.9, 2*math.Pi*mercator.radius/c.unit
	case "lcc":
		conic := newLCC(body, scale, phi0, radians("lat_1"), radians("lat_2"))
		if c.p = conic; conic.n > 0 {
			c.south = -85
		} else {
			c.north = 85
		}
	case "aea":
		c.p = newAEA(body, phi0, radians("lat_1"), radians("lat_2"))
	case "laea":
		azimuthal := newLAEA(body, phi0)
		c.p, c.round = azimuthal, azimuthal.polar()
		// Less than 180: the point opposite of an oblique map's centre has no image.
		c.reach = 179.99
	case "stere":
		if math.Abs(math.Abs(phi0)-quarter) > 1e-10 {
			return false
		}
		c.round = true
		if c.p = newStere(body, phi0 < 0, scale, radians("lat_ts")); phi0 > 0 {
			c.south = -85
		} else {
			c.north = 85
		}
	case "sterea":
		c.p = newSterea(body, scale, phi0)
		c.reach = 80
	case "somerc":
		c.p = newSomerc(body, scale, phi0)
		c.reach, c.south, c.north = 60, -80, 85
	case "omerc", "omerc_a":
		c.lon0 += d.Value("lonc")
		c.p = newOMerc(body, scale, phi0, radians("alpha"), radians("gamma"), d.Projection == "omerc_a")
		c.reach, c.south, c.north = 45, -85, 85
	case "cea":
		area := &cea{l: body, k: scale}
		if parallel := radians("lat_ts"); parallel != 0 {
			area.k = body.m(parallel)
		}
		c.p, c.wide = area, 2*math.Pi*body.a*area.k/c.unit
	case "eqc":
		cylinder := &eqc{l: body, k: body.a * body.m(radians("lat_ts"))}
		c.p, c.wide = cylinder, 2*math.Pi*cylinder.k/c.unit
	case "sinu":
		c.p = &sinu{l: body}
	case "moll":
		c.p = &moll{radius: body.a}
	case "poly":
		c.p = &poly{l: body, origin: body.meridian(phi0)}
		c.reach = 90
	default:
		return false
	}
	return true
}

// Code returns the EPSG code.
func (c *CRS) Code() int { return c.code }

// Geographic reports whether x and y are longitude and latitude in degrees.
func (c *CRS) Geographic() bool { _, ok := c.p.(longlat); return ok }

// Unit returns the metres of a unit of x and y; of longitude and latitude it is the radians of a degree.
func (c *CRS) Unit() float64 { return c.unit }

// Near reports whether the datum is taken to be WGS 84.
func (c *CRS) Near() bool { return c.datum == nil && c.lon0 == 0 }

// OwnDatum returns the CRS with longitudes and latitudes on its own datum instead of WGS 84.
func (c *CRS) OwnDatum() *CRS {
	clone := *c
	clone.datum = nil
	return &clone
}

// Forward converts longitudes and latitudes to x and y. dst and src must have the same length, and
// may be the same slice. A point without a place on the map becomes NaN.
func (c *CRS) Forward(dst, src []Point) {
	for i, point := range src {
		if !(math.Abs(point[0]) <= 1e6 && math.Abs(point[1]) <= 90) {
			dst[i] = Point{nan, nan}
			continue
		}
		lon, lat := c.datum.from(point[0], point[1])
		if !c.Geographic() {
			lon = c.lon0 + math.Remainder(lon-c.lon0, 360)
		}
		dst[i] = c.place(lon, lat)
	}
}

// place projects a point of the CRS's own datum. Its longitude may be any number of turns away from
// the central meridian.
func (c *CRS) place(lon, lat float64) Point {
	if c.Geographic() { // exactly
		return Point{lon - c.lon0, lat}
	}
	x, y := c.p.forward((lon-c.lon0)*math.Pi/180, lat*math.Pi/180)
	return Point{c.sign * (x + c.x0) / c.unit, c.sign * (y + c.y0) / c.unit}
}

// Inverse converts x and y to longitude and latitude. dst and src must have the same length, and
// may be the same slice. Longitudes are within 180 degrees of the central meridian, unless the map
// continues past that. A point off the map becomes NaN.
func (c *CRS) Inverse(dst, src []Point) {
	for i, point := range src {
		lam, phi := c.p.inverse(c.sign*point[0]*c.unit-c.x0, c.sign*point[1]*c.unit-c.y0)
		lon, lat := lam*180/math.Pi+c.lon0, phi*180/math.Pi
		if c.Geographic() {
			lon, lat = point[0]+c.lon0, point[1]
		}
		if !(math.Abs(lat) <= 90+1e-9) || c.wide == 0 && !(math.Abs(lam) <= math.Pi+1e-9) || !(math.Abs(lon) <= 1e6) {
			dst[i] = Point{nan, nan}
			continue
		}
		lon, lat = c.datum.to(lon, max(-90, min(90, lat)))
		dst[i] = Point{lon, lat}
	}
}

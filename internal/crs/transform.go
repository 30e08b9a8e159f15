package crs

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/epsg"
)

// Lookup returns the CRS with an EPSG code. Its error has kind unsupported and the code.
func Lookup(code int) (*CRS, error) {
	system, ok := ByCode(code)
	if !ok {
		return nil, fault.New(fault.Unsupported, "CRS", "EPSG:%d is not known", code)
	}
	return system, nil
}

// ByDefinition returns the CRS that a definition describes, with code 0: also a CRS without a code, such as the
// sinusoidal grid of MODIS (a sphere of 6371007.181 m). Its error has kind unsupported.
func ByDefinition(d epsg.Definition) (*CRS, error) {
	refuse := func(format string, args ...any) (*CRS, error) {
		return nil, fault.New(fault.Unsupported, "CRS", format, args...)
	}
	for name, value := range d.Values {
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return refuse("its %s is not finite", name)
		}
	}
	if d.Code = 0; d.Base == 0 && d.Datum != "" {
		d.Base = epsg.ByDatum(d.Datum)
	}
	if base, ok := epsg.ByCode(d.Base); ok && d.A == 0 {
		d.A, d.RF = base.A, base.RF
	}
	// Planets and moons have a radius of 1 km at least, and an ellipsoid of the Earth has a flattening
	// below 1/10: the series in the flattening would be wrong for others.
	if !(d.A >= 1e3 && d.A <= 1e9) || d.RF != 0 && !(math.Abs(d.RF) >= 10) {
		return refuse("its ellipsoid of %v m and inverse flattening %v is not supported", d.A, d.RF)
	}
	system := build(&d)
	if system == nil {
		return refuse("its projection %q is not supported with these parameters", d.Projection)
	}
	return system, nil
}

// frame describes the datum of a CRS.
type frame struct {
	id     string // EPSG code of the datum, "" if it has none
	sphere bool   // its latitudes count as latitudes of WGS 84, as in PROJ
	shift  bool   // the way to WGS 84 is known
}

// frameOf returns the frame of a CRS.
func frameOf(d *epsg.Definition) (f frame) {
	f.sphere = d.RF == 0
	base, ok := epsg.ByCode(d.Base)
	if !ok {
		return f
	}
	for name := range strings.SplitSeq(base.Datum, ",") {
		if _, err := strconv.Atoi(name); err == nil {
			f.id = name
		}
	}
	f.shift = base.Shift != "?"
	return f
}

// exactShift is the longest translation to WGS 84, in metres, that a Transform applies. Frames that
// follow the Earth's centre are within 5 m of it and known to decimetres. Frames of older surveys are
// hundreds of metres away, and their parameters are good to metres or tens of metres, which is a pixel
// or more.
const exactShift = 5

// why returns what prevents exact conversion to WGS 84, or "".
func (c *CRS) why() string {
	switch {
	case c.frame.sphere && c.datum == nil:
		return ""
	case !c.frame.shift:
		return "the shift of its datum to WGS 84 is not known"
	case c.datum != nil && math.Hypot(math.Hypot(c.datum.t[0], c.datum.t[1]), c.datum.t[2]) > exactShift:
		return "the shift of its datum to WGS 84 is known to some metres only"
	}
	return ""
}

// String returns "EPSG:code", or the projection of a CRS without a code.
func (c *CRS) String() string {
	if c.code == 0 {
		return fmt.Sprintf("a CRS without a code (%T)", c.p)
	}
	return "EPSG:" + strconv.Itoa(c.code)
}

// Transform converts points from one CRS to another. It is safe for use by several goroutines.
type Transform struct {
	from, to *CRS
	same     bool // both are one CRS: points stay as they are, to the bit
}

// NewTransform returns the conversion between two CRSs whose datums are the same, or whose shift is
// known to well below a metre: it is applied, or 0 (WGS 84, ETRS89, NAD83, GDA94, SIRGAS 2000,
// spheres, …). Any other shift is an error of kind unsupported, which names the CRS, because Forward
// and Inverse would be off by metres.
func NewTransform(from, to *CRS) (*Transform, error) {
	transform := &Transform{from: from, to: to, same: from == to || from.code != 0 && from.code == to.code}
	if transform.same {
		return transform, nil
	}
	if from.frame.id != "" && from.frame.id == to.frame.id {
		transform.from, transform.to = from.OwnDatum(), to.OwnDatum()
		return transform, nil
	}
	for _, system := range []*CRS{from, to} {
		if why := system.why(); why != "" {
			return nil, fault.New(fault.Unsupported, "CRS", "%s cannot be converted to %s: %s of %s",
				from, to, why, system)
		}
	}
	return transform, nil
}

// Points converts x and y of one CRS to x and y of the other; longitudes and latitudes are in degrees.
// dst and src must have the same length, and may be the same slice. A point without a place on one of
// the maps becomes NaN.
//
// Where x repeats (longitudes, cylindrical maps), it is the one nearest to the middle of the map the
// points come from; Width says after how much.
func (t *Transform) Points(dst, src []Point) {
	if t.same {
		copy(dst, src)
		return
	}
	t.from.Inverse(dst, src)
	t.to.Forward(dst, dst)
}

// Same reports whether points stay as they are.
func (t *Transform) Same() bool { return t.same }

// Reverse returns the conversion in the other direction.
func (t *Transform) Reverse() *Transform { return &Transform{from: t.to, to: t.from, same: t.same} }

// Width returns the width of the whole world in units of x, if the map goes on past it and repeats, or 0.
func (c *CRS) Width() float64 { return c.wide }

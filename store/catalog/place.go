package catalog

import (
	"fmt"
	"math"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/internal/epsg"
)

// Place is where an image lies on the ground.
type Place struct {
	// EPSG is the code of the CRS, 0 if it is unknown.
	EPSG int
	// CRS has the parameters of a CRS without a code, as epsg.Definition.String writes them; "" if they are not known.
	CRS string
	// Corners are the outer corners of the image in units of the CRS: upper left, upper right, lower left and
	// lower right in the file's order of pixels.
	Corners [4]crs.Point
	// Boxed says that the transform is not known: Corners belong to the smallest box around the image.
	Boxed bool
}

// NewPlace returns where an image of height by width pixels with a transform lies, nil without a transform.
func NewPlace(epsg int, transform *[6]float64, height, width int) *Place {
	return (&Meta{EPSG: epsg, Transform: transform}).Place(height, width)
}

// DescribedPlace is NewPlace for a CRS with a name or well-known text: see epsg.Described.
func DescribedPlace(text string, transform *[6]float64, height, width int) *Place {
	m := Meta{Transform: transform}
	m.EPSG, m.CRS = epsg.Described(text)
	return m.Place(height, width)
}

// Transform returns what converts pixel corners of the image, which has height by width pixels, to coordinates: see
// Meta. A Boxed place is taken for an image with north up.
func (p *Place) Transform(height, width int) [6]float64 {
	c, h, w := &p.Corners, float64(height), float64(width)
	return [6]float64{
		c[0][0], (c[1][0] - c[0][0]) / w, (c[2][0] - c[0][0]) / h,
		c[0][1], (c[1][1] - c[0][1]) / w, (c[2][1] - c[0][1]) / h,
	}
}

// Place returns where an image of height by width pixels lies, nil without a transform.
func (m *Meta) Place(height, width int) *Place {
	if m.Transform == nil {
		return nil
	}
	place := &Place{EPSG: m.EPSG, CRS: m.CRS}
	for i := range place.Corners {
		place.Corners[i] = crs.At(m.Transform, float64(i%2*width), float64(i/2*height))
	}
	for _, c := range place.Corners {
		if !finite(c[0]) || !finite(c[1]) {
			return nil
		}
	}
	return place
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Unplaced returns an error if the place of the image, or the code of its CRS, is not known. need says what it is for,
// such as "windows on the ground need".
func (a *Asset) Unplaced(need string) error {
	what, way := "", ""
	switch place := a.Place; {
	case place == nil && a.GCPs > 0:
		what = fmt.Sprintf("the file has %d ground control points and no transform", a.GCPs)
		need, way = "and "+need+" one", ": 'gdalwarp -t_srs EPSG:CODE IN OUT.tif' makes a file that has one"
	case place == nil:
		what, need = "the file does not say where it lies", "which "+need
	case place.EPSG == 0 && a.CRSName != "":
		name := a.CRSName // or well-known text
		if _, rest, ok := strings.Cut(name, `["`); ok {
			name, _, _ = strings.Cut(rest, `"`)
		}
		what = fmt.Sprintf("the EPSG code of the file's CRS, %q, is not known", fault.Short(name))
		need, way = "and "+need+" one", ": 'gdalwarp -t_srs EPSG:CODE IN OUT.tif' makes a file that has one"
	case place.EPSG == 0:
		what, need = "the file does not name its CRS by a code", "which "+need
		way = ": 'gdal_edit.py -a_srs EPSG:CODE FILE' names it"
	default:
		return nil
	}
	return fault.New(fault.Unsupported, "place", "%s, %s%s", what, need, way)
}

// bounds returns the least and the largest coordinates of the image.
func (p *Place) bounds() (low, high crs.Point) {
	low, high = p.Corners[0], p.Corners[0]
	for _, c := range p.Corners[1:] {
		low = crs.Point{math.Min(low[0], c[0]), math.Min(low[1], c[1])}
		high = crs.Point{math.Max(high[0], c[0]), math.Max(high[1], c[1])}
	}
	return low, high
}

// box returns the place with the corners of the smallest box around it.
func (p Place) box() Place {
	low, high := p.bounds()
	p.Corners = [4]crs.Point{{low[0], high[1]}, high, low, {high[0], low[1]}}
	p.Boxed = true
	return p
}

// pixel returns the size of the smallest box around a pixel of an image of height by width.
func (p *Place) pixel(height, width int) crs.Point {
	c := &p.Corners
	var size crs.Point
	for axis := range size {
		size[axis] = math.Abs(c[1][axis]-c[0][axis])/float64(width) + math.Abs(c[2][axis]-c[0][axis])/float64(height)
	}
	return size
}

// SameGround returns nil if two assets of one sample lie at the same place: with corners that differ by at most half a
// pixel of the coarser one along both axes, in the CRS of the first. UTM by ETRS89 and by WGS 84 are such CRSs.
// Otherwise it returns an error of kind fault.Misplaced about other that names both places. An asset whose place is
// unknown may lie anywhere, and an unknown CRS may be the other's.
func SameGround(first, other *Asset) error {
	if first.Place == nil || other.Place == nil {
		return nil
	}
	firstPlace, otherPlace := *first.Place, *other.Place
	// The corners of a rotated image would differ from a box around it, so boxes are compared.
	if firstPlace.Boxed || otherPlace.Boxed {
		firstPlace, otherPlace = firstPlace.box(), otherPlace.box()
	}
	stated := otherPlace
	fail := func(format string, args ...any) error {
		return fault.New(fault.Misplaced, "place", "it lies at %s and %s "+
			"at %s: "+format, append([]any{&stated, first.Name(), &firstPlace}, args...)...)
	}
	sameCRS := firstPlace.SameCRS(&otherPlace)
	if !sameCRS && !otherPlace.convert(firstPlace.EPSG) {
		return fail("the CRSs differ")
	}
	pixel := otherPlace.pixel(other.Index.Height, other.Index.Width)
	limit := firstPlace.pixel(first.Index.Height, first.Index.Width)
	for axis := range limit {
		limit[axis] = GroundTolerance * math.Max(limit[axis], pixel[axis])
	}
	off := [4]crs.Point{}
	for i, corner := range firstPlace.Corners {
		moved := otherPlace.Corners[i]
		off[i] = crs.Point{moved[0] - corner[0], moved[1] - corner[1]}
	}
	switch {
	case within(off[:], crs.Point{}, limit):
		return nil
	case !sameCRS:
		return fail("the CRSs differ")
	case within(off[:], off[0], limit):
		return fail("it is shifted by %s", shift(otherPlace.EPSG, off[0], pixel))
	case sameBox(firstPlace, otherPlace, limit):
		return fail("its rows or columns run another way")
	}
	return fail("the extents differ")
}

// convert moves a place into the CRS with a code. It returns false if one of the codes is not known.
func (p *Place) convert(epsg int) bool {
	oldCRS, knownFrom := crs.ByCode(p.EPSG)
	newCRS, knownTo := crs.ByCode(epsg)
	if !knownFrom || !knownTo {
		return false
	}
	transform, err := crs.NewTransform(oldCRS, newCRS)
	if err != nil {
		return false
	}
	corners := p.Corners // an array: the caller's place keeps its own
	transform.Points(corners[:], corners[:])
	p.EPSG, p.Corners = epsg, corners
	return true
}

// SameCRS reports whether two places may be in one CRS. Codes are compared with codes, parameters with parameters, and
// a code with parameters by where both have the corners. A CRS that is not known may be the same.
func (p *Place) SameCRS(other *Place) bool {
	switch {
	case p.EPSG != 0 && other.EPSG != 0:
		return p.EPSG == other.EPSG
	case p.CRS != "" && other.CRS != "":
		return epsg.SameParameters(p.CRS, other.CRS)
	case p.EPSG != 0:
		return crs.MayBe(p.EPSG, other.CRS, p.Corners[:])
	}
	return crs.MayBe(other.EPSG, p.CRS, other.Corners[:])
}

// sameBox reports whether the smallest boxes around two places differ by at most limit along both axes.
func sameBox(a, b Place, limit crs.Point) bool {
	a, b = a.box(), b.box()
	for i := range a.Corners {
		if !within([]crs.Point{b.Corners[i]}, a.Corners[i], limit) {
			return false
		}
	}
	return true
}

// GroundTolerance is in pixels of the coarser raster. Half a pixel is what two tools may disagree about the origin of
// one grid (corner or centre of a pixel); a thousandth more is for bounds that were rounded on the way.
const GroundTolerance = 0.501

// within reports whether points differ from another one by at most limit along both axes.
func within(points []crs.Point, from, limit crs.Point) bool {
	for _, p := range points {
		for axis := range p {
			if !(math.Abs(p[axis]-from[axis]) <= limit[axis]) {
				return false
			}
		}
	}
	return true
}

// shift writes a distance on the ground in units of the CRS, and in pixels.
func shift(epsg int, off, pixel crs.Point) string {
	var parts []string
	for axis, words := range [2][2]string{{"east", "west"}, {"north", "south"}} {
		if pixel[axis] == 0 || math.Abs(off[axis]) < 0.005*pixel[axis] {
			continue
		}
		word := words[0]
		if off[axis] < 0 {
			word = words[1]
		}
		parts = append(parts, fmt.Sprintf("%.7g %s (%.4g pixels) %s", math.Abs(off[axis]), unitOf(epsg),
			math.Abs(off[axis])/pixel[axis], word))
	}
	return strings.Join(parts, " and ")
}

// unitOf returns the unit of coordinates: degrees, metres, or just units.
func unitOf(epsg int) string {
	system, ok := crs.ByCode(epsg)
	switch {
	case ok && system.Geographic():
		return "degrees"
	case ok && system.Unit() == 1:
		return "m"
	}
	return "units"
}

// String returns the CRS and the smallest box around the image.
func (p *Place) String() string {
	name := "an unknown CRS"
	switch {
	case p.EPSG != 0:
		name = fmt.Sprintf("EPSG:%d", p.EPSG)
	case p.CRS != "":
		name = "a CRS of its own, " + p.CRS + ","
	}
	low, high := p.bounds()
	return fmt.Sprintf("%s (%.9g, %.9g, %.9g, %.9g)", name, low[0], low[1], high[0], high[1])
}

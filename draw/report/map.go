package report

import (
	"fmt"
	"math"

	"github.com/chaski-eo/chaski/crs/lonlat"
)

// Map has the footprints of the first raster field.
type Map struct {
	Looked, Of int64 // number of samples whose georeferencing was read, and of all samples
	// Geographic says that the corners are in degrees of longitude and latitude. Otherwise they are in units of the
	// CRS.
	Geographic bool
	CRS        string // of the corners
	Outlines   []Outline
	Elsewhere  int64 // georeferenced assets that are not among Outlines, because their CRS is another one
	degrees    []Outline
	ground     map[int][]Outline // by EPSG code, 0 for not known
	nowhere    int64
}

// Outline is the outline of an image: its corners in the order of a ring.
type Outline [4][2]float64

const unnamed = "a CRS without EPSG code"

func corners(t [6]float64, h, w float64) (b Outline) {
	for i, c := range [4][2]float64{{0, 0}, {w, 0}, {w, h}, {0, h}} {
		b[i] = [2]float64{t[0] + c[0]*t[1] + c[1]*t[2], t[3] + c[0]*t[4] + c[1]*t[5]}
	}
	return b
}

func (b Outline) finite() bool {
	for _, c := range b {
		if !(math.Abs(c[0]) < 1e12 && math.Abs(c[1]) < 1e12) {
			return false
		}
	}
	return true
}

func (m *Map) add(epsg int, b Outline) {
	if !b.finite() {
		m.nowhere++
		return
	}
	geo := b
	for i, c := range b {
		lon, lat, ok := lonlat.Inverse(int64(epsg), c[0], c[1])
		if !ok {
			if m.ground == nil {
				m.ground = map[int][]Outline{}
			}
			m.ground[epsg] = append(m.ground[epsg], b)
			return
		}
		geo[i] = [2]float64{lon, lat}
	}
	m.degrees = append(m.degrees, geo)
}

// choose selects what to draw: the boxes in longitude and latitude or, without such boxes, the boxes in the most
// frequent CRS. Ties go to the lower EPSG code, since the order of a map would otherwise change the page.
func (m *Map) choose() {
	total := len(m.degrees)
	m.Outlines, m.Geographic, m.CRS = m.degrees, true, "longitude and latitude"
	best := 0
	for epsg, b := range m.ground {
		total += len(b)
		if len(m.degrees) == 0 && (len(b) > len(m.Outlines) || len(b) == len(m.Outlines) && epsg < best) {
			m.Outlines, m.Geographic, best = b, false, epsg
			m.CRS = unnamed
			if epsg != 0 {
				m.CRS = fmt.Sprintf("EPSG:%d", epsg)
			}
		}
	}
	m.Elsewhere = int64(total - len(m.Outlines))
	if m.Geographic {
		joinAntimeridian(m.Outlines)
	}
}

// joinAntimeridian adds 360 degrees to western longitudes if that makes the map narrower: a dataset around Fiji would
// otherwise span the globe.
func joinAntimeridian(boxes []Outline) {
	lo, hi := math.Inf(1), math.Inf(-1)
	east, west := math.Inf(1), math.Inf(-1) // the same with western longitudes moved
	for _, b := range boxes {
		x := b[0][0]
		lo, hi = min(lo, x), max(hi, x)
		if x < 0 {
			x += 360
		}
		east, west = min(east, x), max(west, x)
	}
	if hi-lo <= 180 || west-east >= hi-lo {
		return
	}
	for i := range boxes {
		if boxes[i][0][0] < 0 {
			for k := range boxes[i] {
				boxes[i][k][0] += 360
			}
		}
	}
}

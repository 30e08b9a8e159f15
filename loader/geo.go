package loader

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// geoBytes is the size of the tensors of Spec.Geo for a row but for its times: 13 float64 and an int64.
const geoBytes = 14 * 8

// timeBytes is the size of the time of a row, or of a step of it.
const timeBytes = 8

// rowPlace says where a row lies on the ground: what Spec.Geo adds to a batch.
type rowPlace struct {
	transform [6]float64
	epsg      int64
	bounds    [4]float64
	lonlat    [2]float64
	gsd       float64
}

// geoTensors are the tensors spec.GeoMembers: the axis beside n, its length, and the function that returns the values
// of a row.
var geoTensors = []struct {
	axis   string // "" for one number a row
	length int64
	of     func(g *rowPlace) []float64
}{
	{"transform", 6, func(g *rowPlace) []float64 { return g.transform[:] }},
	{"", 1, nil}, // EPSG codes, the only int64
	{"bounds", 4, func(g *rowPlace) []float64 { return g.bounds[:] }},
	{"lonlat", 2, func(g *rowPlace) []float64 { return g.lonlat[:] }},
	{"", 1, func(g *rowPlace) []float64 { return []float64{g.gsd} }},
}

// nowhere is the place of a row that has none: EPSG code 0, and NaN for all numbers.
func nowhere() (g rowPlace) {
	n := math.NaN()
	return rowPlace{[6]float64{n, n, n, n, n, n}, 0, [4]float64{n, n, n, n}, [2]float64{n, n}, n}
}

// geoMembers returns the tensors of places, which have a shape.
func geoMembers(places []rowPlace, shape []int64, axes []string) (out []batch.Tensor) {
	for i, member := range geoTensors {
		tensor := batch.Tensor{Name: spec.GeoMembers[i], DType: chunk.Float64, Axes: slices.Clone(axes),
			Shape: slices.Clone(shape)}
		if member.axis != "" {
			tensor.Axes, tensor.Shape = append(tensor.Axes, member.axis), append(tensor.Shape, member.length)
		}
		if member.of == nil {
			tensor.DType = chunk.Int64
		}
		for place := range places {
			if member.of == nil {
				tensor.Data = binary.LittleEndian.AppendUint64(tensor.Data, uint64(places[place].epsg))
				continue
			}
			for _, v := range member.of(&places[place]) {
				tensor.Data = binary.LittleEndian.AppendUint64(tensor.Data, math.Float64bits(v))
			}
		}
		out = append(out, tensor)
	}
	return out
}

// rowTimes has the time of each row of a table; nil for a table without times.
type rowTimes []int64

// at returns the time of a row. Row -1 has none.
func (c rowTimes) at(row int64) int64 {
	if c == nil || row < 0 {
		return rows.NoTime
	}
	return c[row]
}

// placeOf returns where a window of an asset lies that becomes height by width pixels and is then turned.
func placeOf(a *catalog.Asset, w shuffle.Box, height, width int, turn shuffle.Element) rowPlace {
	transform := a.Place.Transform(a.Index.Height, a.Index.Width)
	corner := func(x, y float64) crs.Point { return crs.At(&transform, x, y) }
	left, top, right, bottom := float64(w.X), float64(w.Y), float64(w.X+w.W), float64(w.Y+w.H)
	place := nowhere()
	place.epsg = int64(a.Place.EPSG)
	place.bounds = [4]float64{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for _, c := range [...]crs.Point{
		corner(left, top), corner(right, top), corner(left, bottom), corner(right, bottom),
	} {
		place.bounds = [4]float64{min(place.bounds[0], c[0]), min(place.bounds[1], c[1]), max(place.bounds[2], c[0]),
			max(place.bounds[3], c[1])}
	}
	// The corner of the tensor's first pixel, and the steps to the next one along its columns and rows. A flip begins
	// at the other side; flips come before the transposition.
	stepX, stepY := (right-left)/float64(width), (bottom-top)/float64(height)
	if turn&shuffle.FlipX != 0 {
		left, stepX = right, -stepX
	}
	if turn&shuffle.FlipY != 0 {
		top, stepY = bottom, -stepY
	}
	first := corner(left, top)
	column := [2]float64{transform[1] * stepX, transform[4] * stepX}
	row := [2]float64{transform[2] * stepY, transform[5] * stepY}
	if turn&shuffle.Transpose != 0 {
		column, row = row, column
	}
	place.transform = [6]float64{first[0], column[0], row[0], first[1], column[1], row[1]}
	place.ground(corner((float64(w.X)+float64(w.X+w.W))/2, (float64(w.Y)+float64(w.Y+w.H))/2))
	return place
}

// The ellipsoid of WGS 84: its half axis at the equator in metres, and the square of its eccentricity.
const (
	halfAxis  = 6378137
	flattened = 0.00669437999014
)

// degree returns the metres of a degree of longitude and of latitude at a latitude in degrees.
func degree(lat float64) (wide, high float64) {
	sin, cos := math.Sincos(lat * math.Pi / 180)
	w := 1 - float64(flattened*float64(sin*sin))
	across := halfAxis / math.Sqrt(w) * math.Pi / 180
	return across * cos, across * (1 - flattened) / w
}

// ground sets the longitude and latitude of the centre, and the ground sampling distance, if the CRS is known.
func (g *rowPlace) ground(centre crs.Point) {
	system, ok := crs.ByCode(int(g.epsg))
	if !ok {
		return
	}
	points := []crs.Point{centre}
	system.Inverse(points, points)
	// Package crs may differ in the last bits from one machine to the next: 1e-9 degrees are 0.1 mm.
	for i, v := range points[0] {
		g.lonlat[i] = math.Round(v*1e9) / 1e9
	}
	transform, unit := &g.transform, system.Unit()
	wide, high := unit, unit
	if system.Geographic() {
		wide, high = degree(g.lonlat[1])
	}
	area := math.Abs(float64(transform[1]*transform[5])-float64(transform[2]*transform[4])) * wide * high
	if gsd := math.Round(math.Sqrt(area)*1e6) / 1e6; gsd > 0 {
		g.gsd = gsd
	}
}

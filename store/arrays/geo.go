package arrays

import (
	"context"
	"iter"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/epsg"
)

// Place is where an array lies on the ground.
type Place struct {
	EPSG int // 0 if unknown
	// Transform converts pixel corners to coordinates as GDAL's geotransform does; nil if unknown.
	Transform *[6]float64
}

// Place returns where an array of the group lies. Its CRS comes from the attributes of the array, of its grid mapping
// (CF) and of the groups above it (GeoZarr, STAC), in this order. Its transform comes from regular coordinate arrays,
// as for GDAL and xarray: those attributes have it, too, but keep the one of the whole scene when a part is cut from
// it. They count where there are no such arrays, or where they say the same, since they are exact. Errors count as a
// missing value: an image without a place is read like any other.
func (n *Node) Place(ctx context.Context, a *Array) Place {
	var place Place
	place.add(a.Attrs)
	if n.Array != nil || a.Path == "" {
		return place
	}
	dir := path.Dir(a.Path)
	if name, _, _ := strings.Cut(a.Attrs.Text("grid_mapping"), ":"); name != "" {
		for d := range n.scopes(dir) {
			if attrs, ok := n.attributesAt(ctx, path.Join(d, name)); ok {
				place.add(attrs)
				break
			}
		}
	}
	for d := dir; d != "." && !place.isComplete(); d = path.Dir(d) {
		if attrs, ok := n.attributesAt(ctx, d); ok {
			place.add(attrs)
		}
	}
	if !place.isComplete() {
		place.add(n.Attrs)
	}
	if t := n.coordinates(ctx, a, dir); t != nil && !alike(t, place.Transform, a) {
		place.Transform = t
	}
	return place
}

// Place implements store.Raster.
func (s *Raster) Place(ctx context.Context) (epsg int, transform *[6]float64) {
	place := s.node.Place(ctx, s.bands[0].a)
	return place.EPSG, place.Transform
}

// scopes returns the groups in which a name of dimensions or of a grid mapping is looked for: the array's own and,
// where that takes no requests, those above it, as in NetCDF-4.
func (n *Node) scopes(dir string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for yield(dir) && n.Consolidated && dir != "." {
			dir = path.Dir(dir)
		}
	}
}

// alike reports whether a transform that attributes have, or nil, maps the corners of an array as the one of its
// coordinates does, within what these are rounded by.
func alike(coordinates, said *[6]float64, a *Array) bool {
	if said == nil {
		return false
	}
	var size [2]float64
	for d, axis := range a.Axes("") {
		switch axis {
		case "x":
			size[0] = float64(a.Shape[d])
		case "y":
			size[1] = float64(a.Shape[d])
		}
	}
	for _, corner := range [...][2]float64{{0, 0}, {size[0], 0}, {0, size[1]}, size} {
		for k := range 2 {
			c, s := coordinates[3*k:], said[3*k:]
			apart := c[0] - s[0] + float64((c[1]-s[1])*corner[0]) + float64((c[2]-s[2])*corner[1])
			if step := math.Abs(c[1]) + math.Abs(c[2]); !(math.Abs(apart) <= 2*regularWithin*step) {
				return false
			}
		}
	}
	return true
}

func (p *Place) isComplete() bool { return p.EPSG != 0 && p.Transform != nil }

// add fills in fields that p lacks and attributes have.
func (p *Place) add(attrs Object) {
	if p.EPSG == 0 {
		p.EPSG = epsgOf(attrs)
	}
	if p.Transform == nil {
		p.Transform = transformOf(attrs)
	}
}

// epsgOf returns the code of the CRS that attributes name, or 0.
func epsgOf(attrs Object) int {
	for _, key := range [...]string{"proj:epsg", "epsg", "epsg_code", "spatial:epsg", "proj:code", "crs", "crs_wkt",
		"spatial_ref", "proj:wkt2"} {
		var code int
		if raw := attrs[key]; len(raw) > 0 && Decode(alone(raw), &code) == nil && code > 0 {
			return code
		}
		if code, _ := epsg.Described(attrs.Text(key)); code > 0 {
			return code
		}
	}
	return 0
}

// transformOf returns the transform in attributes, or nil: GeoTransform has six numbers in GDAL's order,
// spatial:transform (GeoZarr) and proj:transform (STAC) in the order of an affine matrix.
func transformOf(attrs Object) *[6]float64 {
	if v := numbers(strings.FieldsSeq(attrs.Text("GeoTransform"))); len(v) == 6 {
		return valid([6]float64(v))
	}
	for _, key := range [...]string{"spatial:transform", "proj:transform"} {
		var matrix []float64
		if ok, err := attrs.Get(key, &matrix); ok && err == nil && (len(matrix) == 6 || len(matrix) == 9) {
			return valid([6]float64{matrix[2], matrix[0], matrix[1], matrix[5], matrix[3], matrix[4]})
		}
	}
	return nil
}

// numbers parses six numbers. It returns nil if one is malformed, or if there are more.
func numbers(texts iter.Seq[string]) []float64 {
	var out []float64
	for text := range texts {
		number, err := strconv.ParseFloat(text, 64)
		if err != nil || len(out) == 6 {
			return nil
		}
		out = append(out, number)
	}
	return out
}

// valid returns a transform, or nil if it maps pixels to a line or has numbers that are not finite.
func valid(t [6]float64) *[6]float64 {
	for _, v := range t {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
	}
	if t[1]*t[5]-t[2]*t[4] == 0 {
		return nil
	}
	return &t
}

// coordinates computes a transform from the coordinate arrays of an array's dimensions y and x. It returns nil if they
// are missing or irregular. Longitudes over 180 are west of Greenwich, as for GDAL.
func (n *Node) coordinates(ctx context.Context, a *Array, dir string) *[6]float64 {
	axes := a.Axes("")
	var first, step [2]float64
	found := 0
	for dim, axis := range axes {
		if axis != "y" && axis != "x" || len(a.Names) <= dim {
			continue
		}
		values := n.coordinateArray(ctx, dir, a.Names[dim])
		if values == nil {
			return nil
		}
		index := 0
		if axis == "x" {
			index = 1
		}
		var ok bool
		if first[index], step[index], ok = values.regular(ctx, a.Shape[dim]); !ok {
			return nil
		}
		last := first[index] + step[index]*float64(a.Shape[dim]-1)
		if axis == "x" && min(first[index], last) > 180 && values.isLongitude() {
			first[index] -= 360
		}
		found++
	}
	if found != 2 {
		return nil
	}
	// Coordinate arrays hold the centres of pixels.
	return valid([6]float64{first[1] - step[1]/2, step[1], 0, first[0] - step[0]/2, 0, step[0]})
}

// coordinateArray returns the coordinates of a dimension of an array in dir, or nil.
func (n *Node) coordinateArray(ctx context.Context, dir, name string) *Array {
	for d := range n.scopes(dir) {
		node, err := n.At(ctx, path.Join(d, name))
		if err != nil {
			continue
		}
		if node.Drop(); node.Array != nil {
			return node.Array
		}
	}
	return nil
}

// isLongitude reports whether coordinates are longitudes, by what CF says of them or, without that, by their name.
func (a *Array) isLongitude() bool {
	unit, name := strings.ToLower(a.Attrs.Text("units")), strings.ToLower(path.Base(a.Path))
	switch {
	case a.Attrs.Text("standard_name") == "longitude":
		return true
	case unit == "":
		return strings.HasPrefix(name, "lon")
	}
	return strings.HasPrefix(unit, "degree") && strings.HasSuffix(strings.TrimSuffix(unit, "ast"), "e")
}

const (
	maxCoordinates = 1 << 20 // largest coordinate array in values: 8 MiB of float64
	// maxCoordinateChunks bounds their chunks, because each may be a request. Writers put the coordinates of an axis
	// into one chunk, or into the image's chunks: 2^20 pixels are 256 of 4096.
	maxCoordinateChunks = 256
	// regularWithin is how far a coordinate may be from the regular one, in steps. float32 coordinates in metres of a
	// UTM northing (10^7) are rounded to half a metre, one twentieth of a pixel of 10 m.
	regularWithin = 0.06
)

// regular returns the first value and the step of a coordinate array of n values, or false if it is not regular. The
// values are unpacked as CF says, by scale_factor and add_offset. One that is missing by _FillValue or missing_value
// makes the array irregular.
func (a *Array) regular(ctx context.Context, n int64) (first, step float64, ok bool) {
	if len(a.Shape) != 1 || a.Shape[0] != n || n < 2 || n > maxCoordinates {
		return 0, 0, false
	}
	if (n-1)/a.Chunks[0] >= maxCoordinateChunks || a.ready() != nil {
		return 0, 0, false
	}
	size := int64(a.DType.Size())
	data := make([]byte, n*size)
	if a.Read(ctx, data, []int64{0}, []int64{n}) != nil {
		return 0, 0, false
	}
	missing := a.declared()
	unpack := chunk.Linear{Scale: 1}
	if physical := a.physical(); len(physical) > 0 {
		unpack = physical[0]
	}
	number := func(i int64) float64 {
		stored := a.DType.Number(data[i*size : (i+1)*size])
		if slices.ContainsFunc(missing, func(m chunk.NoData) bool { return stored == *m.Value }) {
			return math.NaN()
		}
		return float64(stored*unpack.Scale) + unpack.Offset
	}
	first = number(0)
	step = (number(n-1) - first) / float64(n-1)
	if step == 0 || math.IsNaN(step) || math.IsInf(step, 0) {
		return 0, 0, false
	}
	for i := range n {
		if !(math.Abs(number(i)-first-float64(float64(i)*step)) <= regularWithin*math.Abs(step)) {
			return 0, 0, false
		}
	}
	return first, step, true
}

package spec

import (
	"errors"
	"fmt"
)

// Points describes a field of labelled points. They are the points of a sparse TileDB array that lie in
// the window of the sample. A batch has three tensors for it, where NAME is the name of the field and k
// is Most: NAME (n k 2) has y and x as float32 in pixels from the window's upper left corner, and -1
// as padding; NAME_values (n k) has the attribute Values in its own dtype, and 0 as padding;
// NAME_count (n) has as int64 how many points the window has, which may be more than Most.
//
// Coordinates go from 0 to the sides of the window: the integer part is the number of the pixel,
// and the centre of a pixel lies at .5. They are flipped, turned and resampled with the pixels of
// the window; a flip moves a point on the first edge to the last edge. If a window has more than
// Most points, the batch has the first of them in the order of the array, by its first dimension
// and then its second.
type Points struct {
	// Array is the directory of the array. The spec hash covers the fingerprint of the array, not
	// its path.
	Array string `json:"array" hash:"place"`
	// Dims names the dimensions of the array in their order: y, x and, if every sample has its own
	// points, n. n is the row, or for samples of an array the coordinate along n. Default: the
	// names that the array has for them.
	Dims string `json:"dims,omitempty"`
	// Timestamp opens the array as it was in a range of time: only fragments that were written in
	// this range are read. Default: all fragments.
	Timestamp *Timestamp `json:"timestamp,omitempty"`
	// Values is the attribute that labels the points. Default: the only attribute.
	Values string `json:"values,omitempty"`
	// In is the kind of the coordinates: "pixel" (default) for rows and columns of the image, or
	// "world" for places on the ground in the CRS of the assets.
	In string `json:"in,omitempty"`
	// Transform converts pixel corners to coordinates in "world", as the geotransform of GDAL, for
	// all samples. Default: the transform of each file.
	Transform *[6]float64 `json:"transform,omitempty"`
	// Most is k, the number of points that a row has room for, from 1 to 1,048,576.
	Most int `json:"most"`
}

// Values of Points.In.
const (
	// PixelPoints are rows and columns of the assets of the first raster field. An integer is the
	// number of a pixel and stands for its centre. A float is a distance from the upper left corner
	// of the image.
	PixelPoints = "pixel"
	// WorldPoints are coordinates on the ground in the CRS of the assets.
	WorldPoints = "world"
)

// maxPoints is the largest Points.Most: 2^20 points of two float32 are 8 MiB a row.
const maxPoints = 1 << 20

// Suffixes of the tensors of points beside the tensor of coordinates.
const (
	PointValues = "_values"
	PointCount  = "_count"
)

func (p *Points) validate(f *Field) error {
	switch {
	case f.onlyNamed():
		return errors.New("points have no members of rasters")
	case p.Array == "":
		return errors.New("points: no array")
	case p.In != "" && p.In != PixelPoints && p.In != WorldPoints:
		return fmt.Errorf("points: the space of the coordinates (in) is %q: it must be %q or %q",
			p.In, PixelPoints, WorldPoints)
	case p.Transform != nil && p.In != WorldPoints:
		return fmt.Errorf("points: a transform is for points in %q", WorldPoints)
	case p.Most < 1 || p.Most > maxPoints:
		return fmt.Errorf("points: most is %d: it must be from 1 to %d", p.Most, maxPoints)
	}
	return p.Timestamp.validate()
}

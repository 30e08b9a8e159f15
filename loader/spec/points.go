package spec

import (
	"errors"
	"fmt"
	"slices"
)

// Points makes labelled points a field: of a sparse TileDB array those that lie in the sample's window. A batch
// gets three tensors, NAME being that of the field and k being Most:
//
//	NAME         (n k 2) float32   y and x in pixels of the window, from its upper left corner; -1 is padding
//	NAME_values  (n k)             the attribute Values in its own dtype; 0 is padding
//	NAME_count   (n) int64         how many points the window has, which may be more than Most
//
// Coordinates go from 0 to the window's sides: the whole part is the pixel's number, and a pixel's centre lies at
// .5. They are turned and resampled with the window's pixels; after a flip a point on the first edge lies
// on the last. Of more than Most points the first in the array's order, by its first dimension, then the
// second, are there, and Engine.LeftOut counts the others.
type Points struct {
	// Array is the folder of the array. It is not part of the spec hash, the array's fingerprint is.
	Array string `json:"array"`
	// Dims says what the dimensions are, in their order: y, x and, where every sample has points of its own, n:
	// the row, or of a sample from an array its coordinate along n. Default: their names.
	Dims string `json:"dims,omitempty"`
	// Timestamp is what Spec.Timestamp is, of this array.
	Timestamp *Timestamp `json:"timestamp,omitempty"`
	// Values is the attribute that labels the points. Default: the only one.
	Values string `json:"values,omitempty"`
	// In says what coordinates are: PixelPoints (default) or WorldPoints.
	In string `json:"in,omitempty"`
	// Transform takes pixel corners to WorldPoints as GDAL's geotransform does, for all samples. Default: that of
	// each file.
	Transform *[6]float64 `json:"transform,omitempty"`
	// Most is k, the points that a row has room for.
	Most int `json:"most"`
}

// What the coordinates of points are.
const (
	// PixelPoints are rows and columns of the first raster field's assets: whole numbers are pixels, and stand for
	// their centres, others places from the upper left corner of the image.
	PixelPoints = "pixel"
	// WorldPoints are places on the ground in the CRS of the assets.
	WorldPoints = "world"
)

// maxPoints bounds the points of a row.
const maxPoints = 1 << 20

// Names of the tensors of points beside that of their places.
const (
	PointValues = "_values"
	PointCount  = "_count"
)

func (p *Points) validate(f *Field) error {
	switch {
	case f.Kind != "" || f.Column != "" || f.Blob != "" || f.Pattern != "" || f.Bands != nil || f.BandNames != nil || f.Normalize != nil || f.Fill != nil || f.Pad || f.Validity != "" || f.Resample != "" || f.Sizes != nil || f.Layout != "" || f.DType != "":
		return errors.New("points have no members of rasters")
	case p.Array == "":
		return errors.New("points: no array")
	case p.In != "" && p.In != PixelPoints && p.In != WorldPoints:
		return fmt.Errorf("points: in %q is neither %q nor %q", p.In, PixelPoints, WorldPoints)
	case p.Transform != nil && p.In != WorldPoints:
		return fmt.Errorf("points: a transform is for points in %q", WorldPoints)
	case p.Most < 1 || p.Most > maxPoints:
		return fmt.Errorf("points: most is %d, not in 1..%d", p.Most, maxPoints)
	}
	return p.Timestamp.validate()
}

// RowFields are the fields that the rows of a table have: all but points, which come last.
func RowFields(fields []Field) []Field {
	if i := slices.IndexFunc(fields, func(f Field) bool { return f.Points != nil }); i >= 0 {
		return fields[:i]
	}
	return fields
}

// pointsLast brings fields into the order that rowFields needs.
func pointsLast(fields []Field) {
	slices.SortStableFunc(fields, func(a, b Field) int { return pointRank(a) - pointRank(b) })
}

func pointRank(f Field) int {
	if f.Points != nil {
		return 1
	}
	return 0
}

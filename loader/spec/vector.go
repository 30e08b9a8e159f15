package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Vector describes a field of shapes. They are polygons, lines and points of a file, drawn into the window of the
// sample on the grid of its first raster field. A batch has one tensor for it, (n y x), of the size of the window
// there; 0 is where no shape is. Shapes are converted to the CRS of the raster and drawn in the order of the file, as
// rasterio.features.rasterize does, so that later ones cover earlier ones, and are flipped, turned and resized with the
// window. A raster of which its file does not say where it lies is a bad sample.
type Vector struct {
	// Path is the path or URI of the file: GeoParquet or GeoJSON. The spec hash covers what the file says of its
	// shapes, not its path.
	Path string `json:"path"`
	// Kind says what the tensor holds: "mask" (default) for the value of the shape at each pixel, or "instances" for
	// its number in the file, from 1.
	Kind string `json:"kind,omitempty"`
	// Column is the column with the values of "mask": numbers or, with Classes, strings. Shapes without a value are
	// not drawn. Default: 1 for every shape.
	Column string `json:"column,omitempty"`
	// Classes are the strings of Column in the order of their values: the first one is 1. Shapes of other classes are
	// not drawn. Default: none, Column has numbers.
	Classes []string `json:"classes,omitempty"`
	// AllTouched covers all pixels that a line or the outline of a polygon passes through. By default a polygon covers
	// the pixels whose centres lie in it.
	AllTouched bool `json:"all_touched,omitempty"`
	// DType is the dtype of the tensor: "uint8", "int16", "int32", "int64" or "float32". A value that it cannot hold
	// is an error. Default: "uint8" for shapes without values and for classes, "int64" for whole numbers, "float32"
	// for others, "int32" for "instances".
	DType string `json:"dtype,omitempty"`
	// CRS is the CRS of the coordinates: "EPSG:32630", or WKT. Default: the one that the file names.
	CRS string `json:"crs,omitempty"`
}

// Values of Vector.Kind.
const (
	MaskVector     = "mask"
	InstanceVector = "instances"
)

// vectorDTypes are the dtypes that tensors of shapes can have.
var vectorDTypes = []string{"uint8", "int16", "int32", "int64", "float32"}

// maxClasses bounds Vector.Classes.
const maxClasses = 1 << 16

func (v *Vector) validate(f *Field) error {
	switch {
	case f.Points != nil:
		return errors.New("both points and vector are given")
	case f.onlyNamed():
		return errors.New("a field of shapes (vector) has no members of rasters")
	case v.Path == "":
		return errors.New("vector: path is empty")
	case len(v.Path) > maxPath:
		return fmt.Errorf("vector: path has %d bytes: at most %d are allowed", len(v.Path), maxPath)
	case slices.Contains([]string{"boxes", "polygons"}, v.Kind):
		return fmt.Errorf("vector: kind %q is not supported yet: there are %q and %q", v.Kind, MaskVector,
			InstanceVector)
	case !slices.Contains([]string{"", MaskVector, InstanceVector}, v.Kind):
		return fmt.Errorf("vector: kind is %q: it must be %q or %q", v.Kind, MaskVector, InstanceVector)
	case v.Kind == InstanceVector && v.Column != "":
		return fmt.Errorf("vector: column is %q and kind is %q: instances are numbers of shapes", v.Column, v.Kind)
	case v.DType != "" && !slices.Contains(vectorDTypes, v.DType):
		return fmt.Errorf("vector: dtype is %q: it must be one of %s", v.DType, strings.Join(vectorDTypes, ", "))
	case v.Classes != nil && v.Column == "":
		return errors.New("vector: classes are given, but no column: they are its strings")
	case v.Classes != nil && (len(v.Classes) == 0 || len(v.Classes) > maxClasses):
		return fmt.Errorf("vector: classes has %d strings: it must have from 1 to %d", len(v.Classes), maxClasses)
	}
	seen := map[string]bool{}
	for _, c := range v.Classes {
		if seen[c] {
			return fmt.Errorf("vector: classes has %q twice", c)
		}
		seen[c] = true
	}
	return nil
}

// onlyNamed reports whether a field has members beside its name that only fields of the dataset have.
func (f *Field) onlyNamed() bool {
	return f.Kind != "" || f.Column != "" || f.Blob != "" || f.Pattern != "" || f.Columns != nil ||
		f.Patterns != nil || f.Grid != 0 || f.Bands != nil || f.BandNames != nil || f.Times != nil ||
		f.Normalize != nil || f.Fill != nil || f.Pad || f.Validity != "" || f.Resample != "" || f.Ground != "" ||
		f.Sizes != nil || f.Layout != "" || f.DType != ""
}

// Beside reports whether the field does not come from the dataset but lies in the windows of its rasters: points and
// shapes.
func (f *Field) Beside() bool { return f.Points != nil || f.Vector != nil }

// RowFields returns the fields that the rows of a table have: all but points and shapes. The fields must be in the
// order of WithDefaults, with these last.
func RowFields(fields []Field) []Field {
	if i := slices.IndexFunc(fields, func(f Field) bool { return f.Beside() }); i >= 0 {
		return fields[:i]
	}
	return fields
}

// besideLast moves points, and then shapes, behind all other fields, because RowFields cuts them off there.
func besideLast(fields []Field) {
	rank := func(f Field) int {
		switch {
		case f.Vector != nil:
			return 2
		case f.Points != nil:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(fields, func(a, b Field) int { return rank(a) - rank(b) })
}

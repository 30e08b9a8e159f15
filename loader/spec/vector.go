package spec

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/format/column"
)

// Vector describes a field of shapes. They are polygons, lines and points of a file, drawn into the window of the
// sample on the grid of its first raster field. A batch has one tensor for it, (n y x), of the size of the window
// there; 0 is where no shape is. For boxes and polygons see Kind. Shapes are converted to the CRS of the raster and
// drawn in the order of the file, as rasterio.features.rasterize does, so later ones cover earlier ones, and are
// flipped, turned and resized with the window. A raster without a place on the ground is a bad sample.
type Vector struct {
	// Path is the path or URI of the file: GeoParquet or GeoJSON; or COCO's JSON or a CSV of boxes, which name the
	// image of each shape. The spec hash covers the shapes and their values, not the path.
	Path string `json:"path,omitempty" hash:"place"`
	// Pattern finds a file for each image, in place of Path: "labels/{id}.geojson". It has the names of the pattern
	// of a raster field, and the folder is one below the source, or another with "../". Files are read with their
	// samples. They may also be VOC's XML, text of DOTA or YOLO, JSON as COCO and SODA have it, or CSV. An empty file
	// has no shapes.
	Pattern string `json:"pattern,omitempty"`
	// Missing says what an image without a file of Pattern is: "error" (default) refuses the dataset, "empty" takes it
	// as an image without shapes. An image that one file for all does not name is a bad sample, or "empty".
	Missing string `json:"missing,omitempty" hash:"rule"`
	// Kind is the content of the tensor: "mask" (default) for the value of the shape at each pixel, "instances" for its
	// number in the file, from 1. "boxes" and "polygons" give ragged tensors of the shapes that lie in the window, cut
	// to it, in pixels of the window from its upper left corner: boxes as x0 y0 x1 y1, or the vertices of polygons.
	Kind string `json:"kind,omitempty"`
	// Column is the column with the values of the shapes: numbers or, with Classes, strings. Shapes without a value
	// are left out. Default: the class of labels for detectors, 1 for every shape of other files.
	Column string `json:"column,omitempty"`
	// Classes are the strings of Column in the order of their values: the first one is 1. Shapes of other classes are
	// not drawn. For YOLO they are the names of the numbers 0, 1 and so on. Default: the strings in all files, in the
	// order of their bytes, if Column has strings.
	Classes []string `json:"classes,omitempty"`
	// Unnamed is the string of shapes that have no value in Column. Default: they are left out.
	Unnamed string `json:"unnamed,omitempty"`
	// Columns are more columns of numbers, for boxes and polygons: "difficult", "iscrowd". Each is a tensor of its own,
	// with the name of the field, "_" and the column. A shape without a number has 0, or NaN if there are fractions.
	Columns []string `json:"columns,omitempty"`
	// AllTouched covers all pixels that a line or the outline of a polygon passes through. Otherwise a polygon covers
	// the pixels whose centres lie in it.
	AllTouched bool `json:"all_touched,omitempty"`
	// DType is the dtype of the values: "uint8", "int16", "int32", "int64" or "float32". A value that it cannot hold
	// is an error. Default: "int32" for "instances", "float32" for numbers with fractions, "uint8" for masks
	// without values or of classes, "int64" for all others, and for all numbers with Pattern.
	DType string `json:"dtype,omitempty"`
	// CRS is the CRS of the coordinates: "EPSG:32630", or WKT; or "pixels" of the image, from its upper left corner, or
	// "shares" of its width and height. Default: what the file or its format says.
	CRS string `json:"crs,omitempty"`
	// Image is the column with the path of the image that each shape lies on, or a path with the column in braces:
	// "pan_{ImageId}.tif". Shapes then are in pixels of it, from its upper left corner, and images need no place on the
	// ground. They are found by the last parts of their paths; one that no row names is a bad sample. A row without a
	// geometry names an image without shapes. Default: none, shapes lie on the ground.
	Image string `json:"image,omitempty"`
	// Box says where the coordinates of an object lie, by what they are: {"x": "left", "y": "top", "w": "width", "h":
	// "height"}, or {"x y w h": "bbox"} where one place has all. They are corners (x0 y0 x1 y1), a corner and the size
	// (x y w h), the middle and the size (cx cy w h, with angle in radians or degrees, clockwise as pictures are seen),
	// a point (x y), the vertices of an outline (x1 y1 x2 y2 x3 y3 …; or "outline", of x and y in turn), a mask of runs
	// ("runs") or WKT ("wkt"). A place is the name of a column of a text, CSV or Parquet file or its number, from 0, or
	// the path of members of JSON, XML or Parquet's structs: "objects.bbox", "object/polygon/x1", "image/box/@left".
	// Column, Columns and Where are such places, too. Of lists each element is an object. Image may have several places
	// in braces, with the number of digits: "{seq}/img{0:06}.jpg". Without Path and Pattern the places are columns of
	// the dataset's own table. Default: where the format of the file has them, in pixels.
	Box map[string]string `json:"box,omitempty"`
	// Where lists comparisons that objects must meet; others are left out. It needs Box.
	Where []Condition `json:"where,omitempty"`
	// Names makes columns of parts of the columns of a text: {"Image_Label": "{image}_{label}"}. A name stands for text
	// that is as long as possible, the first ones first.
	Names map[string]string `json:"names,omitempty"`
}

// Values of Vector.Kind.
const (
	MaskVector     = "mask"
	InstanceVector = "instances"
	BoxVector      = "boxes"
	PolygonVector  = "polygons"
)

// Values of Vector.CRS that are no CRS.
const (
	PixelSpace = "pixels"
	ShareSpace = "shares"
)

// MissingEmpty is the value of Vector.Missing beside MissingError.
const MissingEmpty = "empty"

// Suffixes of the tensors beside boxes and polygons: the value of each shape; and of polygons for each ring
// the number of its shape in the row, of its polygon in the shape, of its vertices, and 1 for a hole.
const (
	VectorValues = "_values"
	RingsMember  = "_rings"
)

// members returns the names of the tensors of a field.
func (v *Vector) members(name string) []string {
	names := []string{name}
	switch v.Kind {
	case BoxVector:
		names = append(names, name+VectorValues)
	case PolygonVector:
		names = append(names, name+RingsMember, name+VectorValues)
	}
	for _, column := range v.Columns {
		names = append(names, ColumnMember(name, column))
	}
	return names
}

// ColumnMember returns the name of the tensor of one of Vector.Columns.
func ColumnMember(field, column string) string { return field + "_" + column }

// vectorKinds are the values of Vector.Kind.
var vectorKinds = []string{MaskVector, InstanceVector, BoxVector, PolygonVector}

// vectorDTypes are the dtypes that tensors of shapes can have.
var vectorDTypes = []string{"uint8", "int16", "int32", "int64", "float32"}

func (v *Vector) validate(f *Field) error {
	switch {
	case f.ofOthers() != "":
		return fmt.Errorf("%s is given: a field of shapes (vector) has no members of rasters and columns", f.ofOthers())
	case v.Path == "" && v.Pattern == "" && v.Box == nil:
		return errors.New("vector: path is empty: without a path or pattern, box says which columns of the dataset's " +
			"table have the shapes")
	case v.OwnTable() && v.Image != "":
		return fmt.Errorf("vector: image is %q: shapes in the dataset's own table are of the image of their row",
			v.Image)
	case v.Box != nil && (len(v.Box) == 0 || len(v.Box) > maxPlaces):
		return fmt.Errorf("vector: box has %d places: it must have from 1 to %d", len(v.Box), maxPlaces)
	case v.Where != nil && v.Box == nil:
		return errors.New("vector: where is given: it is for shapes whose places box says")
	case v.Path != "" && v.Pattern != "":
		return errors.New("vector: both path and pattern are given")
	case v.Pattern != "" && len(column.Names(v.Pattern)) == 0:
		return fmt.Errorf("vector: pattern is %q: it must have a name such as {id}, or be the path of one file",
			v.Pattern)
	case v.Pattern != "" && v.Image != "" && v.Box == nil:
		return fmt.Errorf("vector: image is %q and pattern is %q: a file of a pattern is of one image", v.Image,
			v.Pattern)
	case len(column.Names(v.Image)) > 1 && v.Box == nil:
		return fmt.Errorf("vector: image is %q: it must have one column in braces", v.Image)
	case v.Missing != "" && v.Missing != MissingError && v.Missing != MissingEmpty:
		return fmt.Errorf("vector: missing is %q: it must be %q or %q", v.Missing, MissingError, MissingEmpty)
	case len(v.Path) > maxPath:
		return fmt.Errorf("vector: path has %d bytes: at most %d are allowed", len(v.Path), maxPath)
	case v.Kind != "" && !slices.Contains(vectorKinds, v.Kind):
		return fmt.Errorf("vector: kind is %q: it must be one of %s", v.Kind, strings.Join(vectorKinds, ", "))
	case v.AllTouched && (v.Kind == BoxVector || v.Kind == PolygonVector):
		return fmt.Errorf("vector: all_touched is true and kind is %q: it is for shapes that are drawn", v.Kind)
	case v.DType != "" && !slices.Contains(vectorDTypes, v.DType):
		return fmt.Errorf("vector: dtype is %q: it must be one of %s", v.DType, strings.Join(vectorDTypes, ", "))
	case v.Image != "" && v.CRS != "" && v.CRS != PixelSpace && v.CRS != ShareSpace:
		return fmt.Errorf("vector: image is %q and crs is %q: shapes of images are in pixels", v.Image, v.CRS)
	case len(v.Columns) > 0 && v.Kind != BoxVector && v.Kind != PolygonVector:
		return fmt.Errorf("vector: columns is %q and kind is %q: they are for boxes and polygons", v.Columns, v.Kind)
	case v.Kind == InstanceVector && v.ofClasses() != "":
		return fmt.Errorf("vector: %s is given and kind is %q: instances are numbers of shapes", v.ofClasses(), v.Kind)
	case v.Classes != nil && (len(v.Classes) == 0 || len(v.Classes) > MaxClasses):
		return fmt.Errorf("vector: classes has %d strings: it must have from 1 to %d", len(v.Classes), MaxClasses)
	}
	for i := range v.Where {
		if c := &v.Where[i]; !c.Compares() {
			return errors.New("vector: where must be comparisons of a column with a value")
		} else if err := c.validate(); err != nil {
			return within("vector: where", err)
		}
	}
	if class, twice := repeated(v.Classes); twice {
		return fmt.Errorf("vector: classes has %q twice", class)
	}
	if column, twice := repeated(v.Columns); twice || slices.Contains(v.Columns, "") {
		return fmt.Errorf("vector: columns has %q: they must be different names", column)
	}
	if v.Unnamed != "" && v.Classes != nil && !slices.Contains(v.Classes, v.Unnamed) {
		return fmt.Errorf("vector: unnamed is %q: it must be one of classes", v.Unnamed)
	}
	return nil
}

// ofClasses returns a member that says the classes of shapes, or "".
func (v *Vector) ofClasses() string {
	names := []string{"column", "classes", "unnamed"}
	return firstMember(v, func(name string) bool { return slices.Contains(names, name) })
}

// maxPlaces bounds the places of the coordinates of an object.
const maxPlaces = 256

// OwnTable reports whether the shapes are in the table of the dataset.
func (v *Vector) OwnTable() bool { return v.Path == "" && v.Pattern == "" }

// Keep returns which objects Where leaves, by the text that they have in a column, and the columns that it asks for. It
// is nil without Where.
func (v *Vector) Keep() (keep func(at func(name string) (string, bool)) bool, columns []string, err error) {
	if len(v.Where) == 0 {
		return nil, nil, nil
	}
	operands := make([][]Operand, len(v.Where))
	for i := range v.Where {
		columns = append(columns, v.Where[i].Column)
		if operands[i], err = v.Where[i].Operands(); err != nil {
			return nil, nil, err
		}
	}
	return func(at func(name string) (string, bool)) bool {
		for i := range v.Where {
			text, ok := at(v.Where[i].Column)
			kind, value := column.Text, column.Value{Null: !ok, Text: []byte(text)}
			if !operands[i][0].IsText {
				kind = column.Float
				number, err := strconv.ParseFloat(text, 64)
				value.Float, value.Null = number, err != nil
			}
			if !v.Where[i].Meets(kind, value, operands[i]) {
				return false
			}
		}
		return true
	}, columns, nil
}

// ofOthers returns a member that only fields of the dataset have, or "".
func (f *Field) ofOthers() string {
	others := []string{"name", "vector", "scenes", "match", "match_days"}
	if f.Kind == TextField && f.Vector.Pattern != "" {
		others = append(others, "kind")
	}
	return firstMember(f, func(name string) bool { return !slices.Contains(others, name) })
}

// Beside reports whether the field does not come from the dataset but lies in the windows of its rasters: shapes. The
// paths of their files, of kind "text", come from the dataset.
func (f *Field) Beside() bool { return f.Vector != nil && f.Kind != TextField }

// TableFields returns the fields that a table needs for fields in the order of WithDefaults: the fields of rows,
// and for each field of shapes that has a file for each image one with the paths of the files.
func TableFields(fields []Field) []Field {
	out := slices.Clone(RowFields(fields))
	for _, f := range fields[len(out):] {
		if f.Vector.Pattern != "" {
			out = append(out, Field{Name: f.Name, Kind: TextField, Vector: f.Vector})
		}
	}
	for i := range out {
		if out[i].Vector != nil {
			out[i].Pattern = out[i].Vector.Pattern
		}
	}
	return out
}

// RowFields returns the fields that the rows of a table have: all but shapes. The fields must be in the order of
// WithDefaults, with these last.
func RowFields(fields []Field) []Field {
	if i := slices.IndexFunc(fields, func(f Field) bool { return f.Beside() }); i >= 0 {
		return fields[:i]
	}
	return fields
}

// besideLast moves shapes behind all other fields, because RowFields cuts them off there.
func besideLast(fields []Field) {
	slices.SortStableFunc(fields, func(a, b Field) int {
		switch {
		case a.Beside() == b.Beside():
			return 0
		case a.Beside():
			return 1
		}
		return -1
	})
}

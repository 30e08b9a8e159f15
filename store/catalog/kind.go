package catalog

import "github.com/chaski-eo/chaski/store/catalog/internal/columns"

// Kind is the kind of a field of a sample.
type Kind = columns.Kind

// Kinds. All integers are read as 64-bit integers, and all floats as float64.
const (
	Raster = columns.Raster // a path or URI
	Int    = columns.Int
	Float  = columns.Float
	Text   = columns.Text // UTF-8
)

// Value is the value of a metadata column, in the member that its field's Kind names. Of a null all of them are zero.
type Value = columns.Value

package catalog

import "github.com/chaski-eo/chaski/store/catalog/internal/columns"

// Kind is what a field of a sample is.
type Kind = columns.Kind

// Kinds. Integers are of 64 bits and floats float64, whatever the column has.
const (
	Raster = columns.Raster // a path or URI
	Int    = columns.Int
	Float  = columns.Float
	Text   = columns.Text // UTF-8
)

// Value is the value of a metadata column, in the member that its field's Kind names. Of a null all of them are zero.
type Value = columns.Value

package loader

import (
	"github.com/chaski-eo/chaski/chunk"
)

// FieldInfo says what a tensor of a batch looks like for a batch of one row.
type FieldInfo struct {
	Name  string      `json:"name"`
	Kind  string      `json:"kind"` // "raster", "int", "float", "text" or "mask"
	DType chunk.DType `json:"dtype"`
	Shape []int64     `json:"shape"`
	Axes  []string    `json:"axes"`
}

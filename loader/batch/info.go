package batch

import "github.com/chaski-eo/chaski/format/dtype"

// FieldInfo describes one tensor of a batch, for a batch of one row.
type FieldInfo struct {
	Name string `json:"name"`
	// Kind is "raster", "int", "float", "text", "mask", "boxes", "polygons" or "vector".
	Kind  string     `json:"kind"`
	DType dtype.Type `json:"dtype"` // of the final elements; Invalid for text
	Shape []int64    `json:"shape"` // lengths of Axes
	Axes  []string   `json:"axes"`  // "n", "b", "(h w)", ...
	// Bands are the names of the bands of a raster, if the spec or the first file has them.
	Bands []string `json:"bands,omitempty"`
	// Wavelengths in micrometres and GSD in metres come from the spec; empty and 0 without them.
	Wavelengths []float64 `json:"wavelengths,omitempty"`
	GSD         float64   `json:"gsd,omitempty"`
	// Classes are the names of the numbers from 0 on of a raster, if the first file has them ("" for none), and Palette
	// their colours, as chunk.Legend has both.
	Classes []string `json:"classes,omitempty"`
	Palette []string `json:"palette,omitempty"`
}

// SourceInfo is a source of a spec that is not a mixture.
type SourceInfo struct {
	// Name is the name of the source, after the names of the mixtures around it; empty if there is one
	// source. Source is the path of its table.
	Name   string `json:"name,omitempty"`
	Source string `json:"source"`
	// Rows of its table.
	Rows int64 `json:"rows"`
	// Datasets of the plan that are made of it: one, or one for each stratum.
	Datasets []int `json:"datasets"`
	// Samples of an epoch, of all its datasets together.
	Samples int64 `json:"samples"`
	// Fields describes the tensors of batches with samples of it.
	Fields []FieldInfo `json:"-"`
}

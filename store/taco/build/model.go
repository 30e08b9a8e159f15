// Package build writes containers of samples: TACO 2, by the TACO specification 2.0.0, as a ZIP or as a folder.
//
//	t := &build.Taco{
//		Samples: &build.Tortilla{Samples: []build.Sample{{ID: "a", File: "a.tif"}, {ID: "b", File: "b.tif"}}},
//		Collection: build.Collection{ID: "chips", ...},
//	}
//	_, err := build.Create(ctx, t, "chips.tacozip", build.Options{})
//
// A container is complete or absent under its name, also after a kill: see internal/durable. The bytes of samples are
// copied once, straight into the container.
//
// The package is apart from package taco, so readers do not import a Parquet writer.
//
// Its files use only those below them, from the ground up: the model of what is written (model, options, collection),
// rows and where their bytes are (level; levels makes them from a model, export from a container), the bytes themselves
// (archive), the writer and its tables, the forms of containers (create, tortilla, cozip), and on top what users call.
package build

// Sample is a file, or a folder of samples. Exactly one of File, Bytes and Children is set.
type Sample struct {
	// ID is unique among siblings. It must not be empty, ".", "..", begin with "__", or hold "/", "\", ":" or
	// a control character: it becomes part of a path.
	ID string
	// File is the path or URI of a file, whose bytes are copied as they are.
	File string
	// Bytes are the content itself. An empty slice that is not nil is an empty file.
	Bytes []byte
	// Children are the samples of a folder.
	Children *Tortilla
}

// Tortilla is the samples of one folder, or of the top.
type Tortilla struct{ Samples []Sample }

// Taco is a whole dataset.
type Taco struct {
	Samples    *Tortilla
	Collection Collection
	// Columns returns the columns of the samples, before the columns of Options.More, or is nil.
	Columns More
}

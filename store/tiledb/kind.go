package tiledb

import "github.com/chaski-eo/chaski/store"

// Kind is the kind of the paths of arrays.
var Kind = store.Register(&store.Kind{
	Noun: "a TileDB array", Is: Is, Times: true,
	Usage: "of which boxes are read by 'chaski array', and images by loaders",
})

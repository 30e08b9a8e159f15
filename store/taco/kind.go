package taco

import "github.com/chaski-eo/chaski/store"

// Kind is the kind of the paths of containers.
var Kind = store.Register(&store.Kind{
	Noun: "a container", Named: Named, Is: Is, Lists: true, Flat: true, Verify: check, Parts: IsSet,
	Usage: "its rasters are called %s::SAMPLE/PATH",
})

package zarr

import (
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/arrays"
)

// Kind is the kind of the paths of arrays and groups.
var Kind = store.Register(&arrays.Kind{Noun: "a Zarr array or group", Files: format, Looks: Is, OpenNode: Open})

var format = magic.Named(".zarr")

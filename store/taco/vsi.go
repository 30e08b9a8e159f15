package taco

import (
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// VSI returns the path under which GDAL opens the bytes of a sample: /vsisubfile/ for a range, with
// GDAL's file systems for the schemes of URIs.
func VSI(e Entry) string {
	if e.Kind == Folder && e.URI == "" { // a folder of shards is nowhere
		return ""
	}
	return model.Subfile(e, source.VSI(e.URI))
}

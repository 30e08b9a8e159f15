package taco

import (
	"strings"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// VSI returns the path under which GDAL opens the bytes of a sample: /vsisubfile/ for a range, with
// GDAL's file systems for the schemes of URIs.
func VSI(e Entry) string {
	if e.Kind == Folder && e.URI == "" { // a folder of shards is nowhere
		return ""
	}
	return model.Subfile(e, vsiPath(e.URI))
}

// fileSystems are GDAL's file systems for the schemes of URIs. One prefix begins another's path nowhere.
var fileSystems = [...]struct{ scheme, path string }{{"http://", "/vsicurl/http://"}, {"https://", "/vsicurl/https://"},
	{"s3://", "/vsis3/"}, {"gs://", "/vsigs/"}, {"az://", "/vsiaz/"}, {"file://", ""}}

// vsiPath returns the path under which GDAL opens an object.
func vsiPath(uri string) string {
	uri = source.Canonical(uri)
	for _, f := range fileSystems {
		if rest, ok := strings.CutPrefix(uri, f.scheme); ok {
			return f.path + rest
		}
	}
	return uri
}

package taco

import (
	"fmt"
	"strings"
)

// VSI returns the path under which GDAL opens the bytes of a sample: /vsisubfile/ for a range, with
// GDAL's file systems for the schemes of URIs.
func VSI(e Entry) string {
	uri := e.URI
	for scheme, vsi := range map[string]string{"http://": "/vsicurl/http://",
		"https://": "/vsicurl/https://", "s3://": "/vsis3/",
		"gs://": "/vsigs/", "az://": "/vsiaz/", "file://": ""} {
		if rest, ok := strings.CutPrefix(uri, scheme); ok {
			uri = vsi + rest
			break // the rest may begin like another scheme, and the order of a map varies
		}
	}
	if e.Offset == Whole || e.Kind == Folder && uri == "" { // a folder of shards is nowhere
		return uri
	}
	return fmt.Sprintf("/vsisubfile/%d_%d,%s", e.Offset, e.Size, uri)
}

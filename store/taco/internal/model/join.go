package model

import (
	"net/url"
	"strings"

	"github.com/chaski-eo/chaski/source"
)

// Join appends a relative path to a directory, which is a path or a URI. In a file:// URI and an HTTP
// URL the path is escaped. It is inserted before the query of the latter, since the query may be a
// signature for the whole directory.
func Join(folder, path string) string {
	if folder == "" {
		return path
	}
	query := ""
	if s := source.Scheme(folder); s == "http" || s == "https" || s == "file" {
		if i := strings.IndexByte(folder, '?'); i >= 0 && s != "file" {
			folder, query = folder[:i], folder[i:]
		}
		parts := strings.Split(path, "/")
		for i, p := range parts {
			parts[i] = url.PathEscape(p)
		}
		path = strings.Join(parts, "/")
	}
	return strings.TrimRight(folder, "/") + "/" + path + query
}

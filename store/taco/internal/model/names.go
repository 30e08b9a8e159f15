package model

import "strings"

// Climbs reports whether a relative path could lead out of its folder.
func Climbs(path string) bool {
	if path == "" || path[0] == '/' || strings.ContainsAny(path, "\\:\x00") {
		return true
	}
	for _, part := range strings.Split(strings.TrimSuffix(path, "/"), "/") {
		if part == "" || part == "." || part == ".." {
			return true
		}
	}
	return false
}

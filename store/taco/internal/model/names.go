package model

import (
	"slices"
	"strings"
)

// Climbs reports whether a relative path could lead out of its folder.
func Climbs(path string) bool {
	if path == "" || path[0] == '/' || strings.ContainsAny(path, "\\:\x00") {
		return true
	}
	return slices.ContainsFunc(strings.Split(strings.TrimSuffix(path, "/"), "/"), func(part string) bool {
		return part == "" || part == "." || part == ".."
	})
}

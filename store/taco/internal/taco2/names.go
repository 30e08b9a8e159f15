package taco2

import (
	"strings"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// PadPrefix begins the ids of placeholders, which fill up a folder.
const PadPrefix = "__TACOPAD__"

// isPadding reports whether a placeholder has this id.
func isPadding(id string) bool {
	n, ok := strings.CutPrefix(id, PadPrefix)
	return ok && n != "" && strings.Trim(n, "0123456789") == ""
}

// sameID reports whether two samples can be at one place of a tree: a placeholder can be at any.
func sameID(a, b string) bool { return a == b || isPadding(a) || isPadding(b) }

// BadID returns the reason why an id is not allowed, or "".
func BadID(id string) string {
	switch {
	case id == "":
		return "is empty"
	case id == "." || id == "..":
		return "is a name of folders"
	case !utf8.ValidString(id):
		return "is not UTF-8"
	case strings.ContainsAny(id, "/\\:\x00"):
		return `holds one of / \ : or NUL`
	case strings.HasPrefix(id, "__") && !isPadding(id):
		return `begins with "__", which is reserved`
	}
	return ""
}

// badSource reports whether the name of a source file could lead out of its folder.
func badSource(name string) bool {
	return model.Climbs(strings.ReplaceAll(name, ":", "_")) || strings.HasSuffix(name, "/")
}

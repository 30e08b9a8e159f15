package taco2

import (
	"strings"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

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
	case strings.HasPrefix(id, "__") && !model.IsPadding(id):
		return `begins with "__", which is reserved`
	}
	return ""
}

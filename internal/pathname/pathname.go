// Package pathname joins and shortens paths of local files as the kernel reads them: ".." after a name that
// is a link goes up from where the link leads. Package filepath drops both by their text.
package pathname

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Join is filepath.Join, but keeps "..": the name before it may be a link, and then the kernel goes up
// from where the link leads. Without ".." it does what filepath.Join does.
func Join(elem ...string) string {
	if !slices.ContainsFunc(elem, HasParent) {
		return filepath.Join(elem...)
	}
	elem = slices.DeleteFunc(slices.Clone(elem), func(e string) bool { return e == "" })
	return clean(strings.Join(elem, string(filepath.Separator)))
}

// Abs is filepath.Abs, but keeps ".." after names, as Join does. A ".." at the beginning goes up from the
// working directory without its links.
func Abs(path string) (string, error) {
	if !HasParent(path) {
		return filepath.Abs(path)
	}
	path = clean(path)
	if filepath.IsAbs(path) {
		return path, nil
	}
	dir, err := os.Getwd() // which may be a path with links, from $PWD
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", err
	}
	up := ".." + string(filepath.Separator)
	for path == ".." || strings.HasPrefix(path, up) {
		dir, path = filepath.Dir(dir), strings.TrimPrefix(path[2:], string(filepath.Separator))
	}
	return Join(dir, path), nil
}

// Dir is filepath.Dir, but keeps "..", as Join does.
func Dir(path string) string {
	if !HasParent(path) {
		return filepath.Dir(path)
	}
	dir, name := filepath.Split(path)
	if name == ".." { // the text does not contain the directory above
		return clean(path + "/..")
	}
	return clean(dir)
}

// Trim returns a path without the separators at its end.
func Trim(path string) string {
	return strings.TrimRightFunc(path, func(r rune) bool { return r == '/' || r == filepath.Separator })
}

// HasParent reports whether a part of a path is "..".
func HasParent(path string) bool {
	for i := 0; ; {
		next := strings.Index(path[i:], "..")
		if next < 0 {
			return false
		}
		i += next
		if (i == 0 || os.IsPathSeparator(path[i-1])) && (i+2 == len(path) || os.IsPathSeparator(path[i+2])) {
			return true
		}
		i += 2
	}
}

// Names returns the parts of a path between its separators, without empty ones.
func Names(path string) []string {
	return strings.FieldsFunc(path, func(c rune) bool { return c < 0x80 && os.IsPathSeparator(byte(c)) })
}

// clean removes empty parts and "." from a path, and ".." of the root directory, which is its own parent.
func clean(path string) string {
	root := filepath.IsAbs(path)
	var parts []string
	for _, part := range Names(path) {
		if part != "." && !(part == ".." && root && len(parts) == 0) {
			parts = append(parts, part)
		}
	}
	path = strings.Join(parts, string(filepath.Separator))
	switch {
	case root:
		return string(filepath.Separator) + path
	case path == "":
		return "."
	}
	return path
}

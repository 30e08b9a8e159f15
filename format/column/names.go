package column

import (
	"slices"
	"strings"
)

// CutName cuts a pattern around its first {name}. ok is false without one, and before is then all of it. A name has no
// braces, slashes and stars.
func CutName(pattern string) (before, name, after string, ok bool) {
	for start := 0; ; {
		open := strings.IndexByte(pattern[start:], '{')
		if open < 0 {
			return pattern, "", "", false
		}
		open += start
		size := strings.IndexAny(pattern[open+1:], "{}/*")
		if size > 0 && pattern[open+1+size] == '}' {
			return pattern[:open], pattern[open+1 : open+1+size], pattern[open+size+2:], true
		}
		start = open + 1
	}
}

// Names returns the names in braces of a pattern, each once, in their order: "split" and "id" of
// "{split}/{id}_{id}.tif".
func Names(pattern string) (names []string) {
	for {
		_, name, after, ok := CutName(pattern)
		if !ok {
			return names
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		pattern = after
	}
}

// Fill replaces the names in braces for which value returns a text. Others stay.
func Fill(pattern string, value func(name string) (text string, ok bool)) string {
	return string(AppendFill(nil, pattern, value))
}

// AppendFill appends what Fill returns.
func AppendFill(out []byte, pattern string, value func(name string) (text string, ok bool)) []byte {
	for {
		before, name, after, ok := CutName(pattern)
		out = append(out, before...)
		if !ok {
			return out
		}
		text, known := value(name)
		if !known {
			text = "{" + name + "}"
		}
		out = append(out, text...)
		pattern = after
	}
}

package report

import (
	"encoding/base64"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	g "maragu.dev/gomponents"

	"github.com/chaski-eo/chaski/fault"
)

// The page is made with gomponents. It shows text from files of strangers: all text and values of attributes are
// cleaned, and gomponents escapes them.

// part is a part of an element: text, an attribute, several parts, another element; nil is nothing.
type part = g.Node

// parts are several parts in place of one.
type parts = g.Group

// el returns the element with a tag and its parts. The tag is a constant of the program, never text from a file.
func el(tag string, inside ...part) part { return g.El(tag, inside...) }

// text returns text between tags: as one line, without characters that could make a page look different from its
// content; see clean.
func text(s string) part { return g.Text(clean(s)) }

// attr returns an attribute, whose value is cleaned as text is. The name is a constant of the program. A value from a
// file may not stand in an attribute that a browser follows or runs (href, style, on…).
func attr(name, value string) part { return g.Attr(name, clean(value)) }

// class returns the attribute class.
func class(names string) part { return attr("class", names) }

// pngSource returns the attribute src with a picture in it.
func pngSource(picture []byte) part {
	return g.Attr("src", "data:image/png;base64,"+base64.StdEncoding.EncodeToString(picture))
}

// each returns the part of each item of a list.
func each[T any](list []T, of func(T) part) parts { return g.Map(list, of) }

// when returns parts if a condition holds, else nothing.
func when(condition bool, then ...part) part { return g.If(condition, parts(then)) }

// some returns an element with a text, or nothing if that is empty.
func some(tag, content string, attrs ...part) part {
	return when(content != "", el(tag, append(attrs, text(content))...))
}

// policy allows a page its own style sheet and the pictures inside it, and nothing else.
const policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

// writePage writes a page of a style sheet of the program, and a body.
func writePage(w io.Writer, title, style string, body ...part) error {
	meta := func(name, content string) part { return el("meta", attr("name", name), attr("content", content)) }
	return parts{g.Raw("<!DOCTYPE html>\n"), el("html", attr("lang", "en"),
		el("head", el("meta", attr("charset", "utf-8")),
			meta("viewport", "width=device-width, initial-scale=1"), meta("color-scheme", "light dark"),
			el("meta", attr("http-equiv", "Content-Security-Policy"), attr("content", policy)),
			el("title", text(title)), el("style", g.Raw(style))),
		el("body", body...)), g.Raw("\n")}.Render(w)
}

// clean makes text from a file one line of valid UTF-8, without control characters and without those that change the
// direction of writing: a file name could otherwise make the page look different from its content. It hides secrets of
// URIs, since pages are published.
func clean(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "�")
	}
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r) || r == 0x2028 || r == 0x2029:
			return ' '
		case r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, fault.WithoutSecrets(s))
}

// Package markup writes pages of HTML with gomponents. A page is one file: it needs no other file, and runs no script.
//
// Pages show text from files of strangers: all text and values of attributes are cleaned, and gomponents escapes them.
package markup

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	g "maragu.dev/gomponents"

	"github.com/chaski-eo/chaski/fault"
)

// Part is a part of an element: text, an attribute, several parts, another element; nil is nothing.
type Part = g.Node

// Parts are several parts in place of one.
type Parts = g.Group

// El returns the element with a tag and its parts. The tag is a constant of the program, never text from a file.
func El(tag string, parts ...Part) Part { return g.El(tag, parts...) }

// Text returns text between tags: as one line, without characters that could make a page look different from its
// content; see [Clean].
func Text(s string) Part { return g.Text(Clean(s)) }

// Textf formats a text.
func Textf(format string, args ...any) Part { return Text(fmt.Sprintf(format, args...)) }

// Attr returns an attribute, whose value is cleaned as text is. The name is a constant of the program. A value from a
// file may not stand in an attribute that a browser follows or runs (href, style, on…).
func Attr(name, value string) Part { return g.Attr(name, Clean(value)) }

// Class returns the attribute class.
func Class(names string) Part { return Attr("class", names) }

// PNG returns the attribute src with a picture in it.
func PNG(picture []byte) Part {
	return g.Attr("src", "data:image/png;base64,"+base64.StdEncoding.EncodeToString(picture))
}

// Each returns the part of each item of a list.
func Each[T any](list []T, part func(T) Part) Parts { return g.Map(list, part) }

// If returns parts if a condition holds, else nothing.
func If(condition bool, parts ...Part) Part { return g.If(condition, Parts(parts)) }

// Some returns an element with a text, or nothing if the text is empty.
func Some(tag, text string, attrs ...Part) Part {
	return If(text != "", El(tag, append(attrs, Text(text))...))
}

// Row returns a row of a table: cells of one tag, "td" or "th".
func Row(tag string, cells ...string) Part {
	return El("tr", Each(cells, func(cell string) Part { return El(tag, Text(cell)) }))
}

// Headed returns a row of a table whose first cell is its head.
func Headed(head string, cells ...string) Part {
	return El("tr", El("th", Text(head)), Each(cells, func(cell string) Part { return El("td", Text(cell)) }))
}

// Page is a page of HTML.
type Page struct {
	Title string
	Style string // a style sheet of the program
	Body  []Part
}

// policy allows a page its own style sheet and the pictures inside it, and nothing else.
const policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	meta := func(name, content string) Part { return El("meta", Attr("name", name), Attr("content", content)) }
	return Parts{g.Raw("<!DOCTYPE html>\n"), El("html", Attr("lang", "en"),
		El("head", El("meta", Attr("charset", "utf-8")),
			meta("viewport", "width=device-width, initial-scale=1"), meta("color-scheme", "light dark"),
			El("meta", Attr("http-equiv", "Content-Security-Policy"), Attr("content", policy)),
			El("title", Text(p.Title)), El("style", g.Raw(p.Style))),
		El("body", p.Body...)), g.Raw("\n")}.Render(w)
}

// Clean makes text from a file one line of valid UTF-8, without control characters and without those that change the
// direction of writing: a file name could otherwise make the page look different from its content. It hides secrets of
// URIs, since pages are published.
func Clean(s string) string {
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

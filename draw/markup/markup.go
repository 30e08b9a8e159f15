// Package markup writes pages of HTML. A page is one file: it needs no other file, and runs no script.
//
// Pages show text from files of strangers. So a tree of elements holds text and values of attributes as they are, and
// writing it escapes all of them. Nothing but a style sheet is written as it is.
//
// The package takes the place of html/template: a program that links a template keeps the exported methods of all its
// types, because a template may call any of them by name. That was 12 of the 59 MB of chaski's command.
package markup

import (
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
)

// Part is a part of an element: [Text], [Attr], [Parts] or another element.
type Part interface{ addTo(e *Element) }

// Element is an element of HTML or SVG.
type Element struct {
	tag      string
	attrs    []Attr
	children []Part // elements and texts
}

// El returns the element with a tag and its parts. Attributes and children may come in any order; nil parts are left
// out. The tag is a constant of the program, never text from a file.
func El(tag string, parts ...Part) *Element {
	e := &Element{tag: tag}
	Parts(parts).addTo(e)
	return e
}

func (e *Element) addTo(parent *Element) {
	if e != nil {
		parent.children = append(parent.children, e)
	}
}

// Text is text between tags. It is written as one line without characters that could make a page look different from
// its content; see [Clean].
type Text string

func (t Text) addTo(e *Element) { e.children = append(e.children, t) }

// Textf formats a text.
func Textf(format string, args ...any) Text { return Text(fmt.Sprintf(format, args...)) }

// Attr is an attribute. Its value is cleaned and escaped as text is. The name is a constant of the program. A value
// from a file may not stand in an attribute that a browser follows or runs (href, style, on…).
type Attr struct{ Name, Value string }

func (a Attr) addTo(e *Element) { e.attrs = append(e.attrs, a) }

// Class returns the attribute class.
func Class(names string) Attr { return Attr{"class", names} }

// PNG returns the attribute src with a picture in it.
func PNG(picture []byte) Attr {
	return Attr{"src", "data:image/png;base64," + base64.StdEncoding.EncodeToString(picture)}
}

// Parts are several parts in place of one.
type Parts []Part

func (p Parts) addTo(e *Element) {
	for _, part := range p {
		if part != nil {
			part.addTo(e)
		}
	}
}

// Each returns the part of each item of a list.
func Each[T any](list []T, part func(T) Part) Parts {
	parts := make(Parts, len(list))
	for i, item := range list {
		parts[i] = part(item)
	}
	return parts
}

// If returns a part if a condition holds, else nothing.
func If(condition bool, parts ...Part) Part {
	if !condition {
		return nil
	}
	return Parts(parts)
}

// Some returns an element with a text, or nothing if the text is empty.
func Some(tag, text string, attrs ...Attr) Part {
	if text == "" {
		return nil
	}
	e := El(tag, Text(text))
	e.attrs = attrs
	return e
}

// Row returns a row of a table: cells of one tag, "td" or "th".
func Row(tag string, cells ...string) *Element {
	return El("tr", Each(cells, func(cell string) Part { return El(tag, Text(cell)) }))
}

// Headed returns a row of a table whose first cell is its head.
func Headed(head string, cells ...string) *Element {
	row := Row("td", cells...)
	row.children = slices.Insert(row.children, 0, Part(El("th", Text(head))))
	return row
}

// Page is a page of HTML.
type Page struct {
	Title string
	Style string // a style sheet of the program
	Body  []Part
}

// policy allows a page its own style sheet and the pictures inside it, and nothing else.
const policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

// WriteTo writes the page.
func (p *Page) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n")
	meta := func(name, content string) *Element {
		return El("meta", Attr{"name", name}, Attr{"content", content})
	}
	style := El("style", sheet(p.Style))
	El("html", Attr{"lang", "en"},
		El("head", El("meta", Attr{"charset", "utf-8"}),
			meta("viewport", "width=device-width, initial-scale=1"), meta("color-scheme", "light dark"),
			El("meta", Attr{"http-equiv", "Content-Security-Policy"}, Attr{"content", policy}),
			El("title", Text(p.Title)), style),
		El("body", p.Body...)).write(&b)
	b.WriteByte('\n')
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}

// sheet is a style sheet: the one text that is written as it is.
type sheet string

func (s sheet) addTo(e *Element) { e.children = append(e.children, s) }

// void are the elements that have no end tag (HTML Living Standard, 13.1.2).
var void = []string{"meta", "img", "br", "hr"}

// blocks are the elements that begin on a line of their own, so that people can read the source of a page. Space
// between them is not shown.
var blocks = []string{"head", "body", "meta", "title", "style", "main", "header", "footer", "section", "h1", "h2", "p",
	"dl", "ul", "table", "thead", "tbody", "tr", "figure", "div"}

func (e *Element) write(b *strings.Builder) {
	if slices.Contains(blocks, e.tag) {
		b.WriteByte('\n')
	}
	b.WriteString("<" + e.tag)
	for _, attr := range e.attrs {
		b.WriteString(" " + attr.Name + `="` + html.EscapeString(Clean(attr.Value)) + `"`)
	}
	b.WriteByte('>')
	if slices.Contains(void, e.tag) {
		return
	}
	for _, child := range e.children {
		switch child := child.(type) {
		case *Element:
			child.write(b)
		case Text:
			b.WriteString(html.EscapeString(Clean(string(child))))
		case sheet:
			b.WriteString(string(child))
		}
	}
	b.WriteString("</" + e.tag + ">")
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
		case r < ' ' || r >= 0x7F && r < 0xA0 || r == 0x2028 || r == 0x2029:
			return ' '
		case r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, fault.WithoutSecrets(s))
}

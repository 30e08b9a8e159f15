// Package textguard counts what a text of a file becomes before a parser keeps it. A parser of XML or JSON makes many
// bytes of few: an attribute of two bytes takes 64, an empty object of three takes 100. Texts with more parts than real
// files have are refused with an error of kind limit. Others are parsed when the process has memory for it: the parts
// of all texts that are parsed at a time share a bound.
package textguard

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"strings"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/procs"
)

// Limits of a text. Real files have a hundredth.
const (
	maxDepth      = 100     // elements, arrays or objects in each other
	maxAttributes = 256     // of an element of XML
	maxElements   = 1 << 22 // of XML
	maxMembers    = 1 << 20 // of all objects of JSON
	maxValues     = 1 << 23 // of all arrays of JSON
)

// Memory of parts while they are parsed, in bytes.
const (
	elementBytes = 64
	memberBytes  = 160
	valueBytes   = 24
)

// smallText is how many bytes a text may become without waiting for others: as many as a usual
// header has.
const smallText = 1 << 20

// share is the part of the process's memory that the texts have that are parsed at a time: 1/share.
const share = 16

// memory has the bytes that texts share which are parsed at a time.
var memory = sync.OnceValues(func() (*semaphore.Weighted, int64) {
	size := max(procs.Memory()/share, 16*smallText)
	return semaphore.NewWeighted(size), size
})

// Hold waits until a text that becomes size bytes may be parsed, and returns a function to call afterwards. A text that
// is larger than the bound is parsed alone. The wait ends with ctx.
func Hold(ctx context.Context, size int64) (release func(), err error) {
	if size <= smallText {
		return func() {}, nil
	}
	free, capacity := memory()
	size = min(size, capacity)
	if !free.TryAcquire(size) {
		if err := free.Acquire(ctx, size); err != nil {
			return nil, err
		}
	}
	return func() { free.Release(size) }, nil
}

// limit returns the error of a text with too many parts.
func limit(part string, off int, format string, args ...any) error {
	return fault.At(fault.Limit, part, int64(off), format, args...)
}

// XML counts the parts of an XML text, and returns how many bytes it becomes. most bounds how often elements of a name
// may be there. It need not be XML: a parser finds no more parts than are counted.
func XML(part string, text []byte, most map[string]int) (size int64, err error) {
	depth, elements, found := 0, 0, map[string]int{}
	inside := 0 // where a directive ends: what a parser skips there may have elements in it, which count here
	for pos := 0; ; {
		begin := bytes.IndexByte(text[pos:], '<')
		if begin < 0 {
			return int64(len(text)) + elementBytes*int64(elements), nil
		}
		pos += begin
		rest := text[pos:]
		if pos < inside {
			rest = text[pos:inside]
		}
		if bytes.HasPrefix(rest, []byte("<!")) || bytes.HasPrefix(rest, []byte("<?")) {
			length := len("<!")
			if pos >= inside {
				if form := skipped(rest); form > 0 {
					length = form
				} else {
					inside = pos + directive(rest)
				}
			}
			pos += length
			continue
		}
		if bytes.HasPrefix(rest, []byte("</")) {
			depth, pos = max(depth-1, 0), pos+2
			continue
		}
		name, end, closed, attributes := tag(rest)
		elements++
		if n, bounded := most[string(name)]; bounded {
			if found[string(name)]++; found[string(name)] > n {
				return 0, limit(part, pos, "more than %d elements are %s", n, name)
			}
		}
		if !closed {
			depth++
		}
		switch {
		case attributes > maxAttributes:
			return 0, limit(part, pos, "an element has more than %d attributes", maxAttributes)
		case depth > maxDepth:
			return 0, limit(part, pos, "more than %d elements lie in each other", maxDepth)
		case elements > maxElements:
			return 0, limit(part, pos, "more than %d elements", maxElements)
		}
		pos += end
	}
}

// skipped returns the length of a comment, a section of characters, or an instruction that text begins with, or 0.
func skipped(text []byte) int {
	for _, form := range [...]struct{ start, end string }{{"<!--", "-->"}, {"<![CDATA[", "]]>"}, {"<?", "?>"}} {
		if bytes.HasPrefix(text, []byte(form.start)) {
			if end := bytes.Index(text[len(form.start):], []byte(form.end)); end >= 0 {
				return len(form.start) + end + len(form.end)
			}
			return len(text)
		}
	}
	return 0
}

// directive returns the length of the directive that text begins with, "<!" and what follows, as encoding/xml finds
// its end: quotes hide brackets, other brackets nest, and a comment in it is passed over.
func directive(text []byte) int {
	quote, depth := byte(0), 0
	for i := len("<!x"); i < len(text); i++ { // its first character is no quote and no bracket
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>' && depth == 0:
			return i + 1
		case c == '>':
			depth--
		case bytes.HasPrefix(text[i:], []byte("<!--")):
			i += len("<!--")
			end := bytes.Index(text[i:], []byte("-->"))
			if end < 0 {
				return len(text)
			}
			i += end + len("-->") - 1
		case c == '<':
			depth++
		}
	}
	return len(text)
}

// tag reads the tag that text begins with: the name of the element without its prefix, the length of the tag, whether
// it ends the element too, and how many attributes it has at most. It ends early when these are too many.
func tag(text []byte) (name []byte, length int, closed bool, attributes int) {
	i := 1
	for i < len(text) && !separates(text[i]) {
		i++
	}
	name = text[1:i]
	if colon := bytes.LastIndexByte(name, ':'); colon >= 0 {
		name = name[colon+1:]
	}
	between, slash := true, false
	for ; i < len(text) && attributes <= maxAttributes; i++ {
		switch c := text[i]; {
		case c == '>':
			return name, i + 1, slash, attributes
		case c == '"' || c == '\'':
			end := bytes.IndexByte(text[i+1:], c)
			if end < 0 {
				return name, len(text), false, attributes
			}
			i, between, slash = i+1+end, true, false
		case separates(c):
			between, slash = true, c == '/'
		case between:
			attributes++
			between, slash = false, false
		}
	}
	return name, i, false, attributes
}

// separates reports whether a byte ends a name in a tag.
func separates(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n', '/', '>', '=':
		return true
	}
	return false
}

// JSON counts the parts of a JSON text, and returns how many bytes it becomes. It need not be JSON: a parser finds no
// more parts than are counted.
func JSON(part string, text []byte) (size int64, err error) {
	depth, members, values := 0, 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			values++
			if depth++; depth > maxDepth {
				return 0, limit(part, i, "more than %d arrays or objects lie in each other", maxDepth)
			}
		case '}', ']':
			depth--
		case ',':
			values++
		case ':':
			if members++; members > maxMembers {
				return 0, limit(part, i, "its objects have more than %d members", maxMembers)
			}
		}
	}
	if values > maxValues {
		return 0, limit(part, 0, "more than %d values", maxValues)
	}
	return int64(len(text)) + memberBytes*int64(members) + valueBytes*int64(values), nil
}

// Values counts the values of a record of a table, which separators outside of quotes divide. Parsers take up to 150
// bytes for each, and keep 40.
type Values struct {
	Separator byte
	Most      int
	n         int
	quoted    bool
}

// Next begins another record.
func (v *Values) Next() { v.n = 0 }

// Add counts the values of a text that follows, and reports whether the record has at most Most.
func (v *Values) Add(text []byte) bool {
	for len(text) > 0 {
		part, rest, quote := bytes.Cut(text, []byte{'"'})
		if !v.quoted {
			v.n += bytes.Count(part, []byte{v.Separator})
		}
		v.quoted, text = v.quoted != quote, rest
	}
	return v.n <= v.Most
}

// ParseXML calls parse with a reader of a text, when XML has counted its parts and the process has memory for them.
// Between pieces of the text others have their turn, and with ctx the text ends.
func ParseXML(ctx context.Context, part string, text []byte, most map[string]int, parse func(io.Reader) error) error {
	size, err := XML(part, text, most)
	if err != nil {
		return err
	}
	release, err := Hold(ctx, size)
	if err != nil {
		return err
	}
	defer release()
	in := &reader{ctx: ctx, text: text}
	err = parse(in)
	return cmp.Or(in.err, err)
}

// reader reads a text piece by piece.
type reader struct {
	ctx  context.Context
	text []byte
	err  error // of ctx
}

// Read implements io.Reader. A piece of 4 KiB, the buffer of encoding/xml, is parsed in less than 1 ms.
func (r *reader) Read(p []byte) (n int, err error) {
	if r.err = r.ctx.Err(); r.err != nil {
		return 0, r.err
	}
	if len(r.text) == 0 {
		return 0, io.EOF
	}
	n = copy(p, r.text)
	r.text = r.text[n:]
	return n, nil
}

// separatorName begins the line that Excel writes before the header of a CSV.
const separatorName = "sep="

// SeparatorLine returns how long the line is that Excel writes before the header of a CSV, "sep=;", with its end; 0
// without one.
func SeparatorLine(text []byte) int {
	if len(text) <= len(separatorName) || !bytes.EqualFold(text[:len(separatorName)], []byte(separatorName)) {
		return 0
	}
	line, _, found := bytes.Cut(text, []byte{'\n'})
	if !found || len(bytes.TrimSuffix(line, []byte{'\r'})) != len(separatorName)+1 {
		return 0
	}
	return len(line) + 1
}

// Order returns the characters that may separate the values of a text, in the order in which Separator looks for them:
// the one that Excel's line names comes first.
func Order(text []byte, order string) string {
	if n := SeparatorLine(text); n > 0 {
		if named := text[len(separatorName)]; strings.IndexByte(",;\t|", named) >= 0 {
			return string(named) + order
		}
	}
	return order
}

// Separator returns the first character of order that stands in the first line of a CSV outside of quotes, 0 if none
// does.
func Separator(text []byte, order string) rune {
	line, _, _ := bytes.Cut(text, []byte{'\n'})
	for _, separator := range order {
		quoted := false
		for _, char := range line {
			if char == '"' {
				quoted = !quoted
			} else if rune(char) == separator && !quoted {
				return separator
			}
		}
	}
	return 0
}

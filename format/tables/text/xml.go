package text

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/textguard"
	"github.com/chaski-eo/chaski/source"
)

// Bounds of XML, which is held as a whole.
const (
	maxXML    = 64 << 20 // bytes of a file
	xmlMemory = 16       // bytes of memory for each byte of a file: of an element "<a/>" they are some 60
)

// isXML reports whether a text begins an element.
func isXML(start []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(start, []byte(texts.Mark)), " \t\r\n"), []byte("<"))
}

// element is an element that has begun.
type element struct {
	name    string
	text    []byte
	names   []string // of its members, in their order
	members map[string][]json.RawMessage
}

// jsonOf returns a list with the outermost element of XML as JSON. The elements in an element, and its attributes as
// "@NAME", are members of an object. Several of one name, and all on the path of a member, are a list. An element
// without any is its text: a number, a string, or null if it is empty.
func jsonOf(ctx context.Context, text io.Reader, size int64, member string) ([]byte, error) {
	if size > maxXML {
		return nil, fault.New(fault.Limit, "XML", "%d bytes, at most %d", size, maxXML)
	}
	if err := budget.Grow(ctx, xmlMemory*size); err != nil {
		return nil, err
	}
	var open []*element
	var out []byte
	path := strings.Split(strings.ReplaceAll(member, "[]", ""), ".")
	err := textguard.NewParts(ctx, text, "XML", "a tag", maxRecord).Elements(
		func(name string, attributes []xml.Attr) error {
			made := &element{name: name}
			for _, a := range attributes {
				made.add("@"+a.Name.Local, scalar([]byte(a.Value)))
			}
			open = append(open, made)
			return nil
		},
		func(text []byte) error {
			open[len(open)-1].text = append(open[len(open)-1].text, text...)
			return nil
		},
		func() (more bool, err error) {
			ended := open[len(open)-1]
			if open = open[:len(open)-1]; len(open) == 0 {
				out = slices.Concat([]byte("["), ended.json(0, path), []byte("]"))
				return false, nil
			}
			open[len(open)-1].add(ended.name, ended.json(len(open), path))
			return true, nil
		})
	if err == nil && out == nil {
		err = fault.Wrap(fault.Corrupt, "XML", io.EOF)
	}
	return out, err
}

// add adds a value to the members.
func (e *element) add(name string, value json.RawMessage) {
	if e.members == nil {
		e.members = map[string][]json.RawMessage{}
	}
	if e.members[name] == nil {
		e.names = append(e.names, name)
	}
	e.members[name] = append(e.members[name], value)
}

// json returns the value of an element that is so deep in others.
func (e *element) json(depth int, path []string) json.RawMessage {
	if e.members == nil {
		return scalar(e.text)
	}
	out := []byte{'{'}
	for i, name := range e.names {
		if i > 0 {
			out = append(out, ',')
		}
		quoted, _ := json.Marshal(name) // strings have JSON
		out = append(append(out, quoted...), ':')
		values := e.members[name]
		if len(values) == 1 && !(depth < len(path) && path[depth] == name) {
			out = append(out, values[0]...)
			continue
		}
		out = append(append(append(out, '['), bytes.Join(asBytes(values), []byte{','})...), ']')
	}
	e.members = nil
	return append(out, '}')
}

func asBytes(values []json.RawMessage) [][]byte {
	out := make([][]byte, len(values))
	for i, value := range values {
		out[i] = value
	}
	return out
}

// scalar returns a text as JSON.
func scalar(text []byte) json.RawMessage {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return json.RawMessage("null")
	}
	if (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Valid(text) {
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(string(text)) // strings have JSON
	return quoted
}

// asJSON returns the text of a file, of XML as JSON, and how long it is.
func asJSON(ctx context.Context, r source.Reader, member string) (io.Reader, int64, error) {
	head, err := source.Read(ctx, r, 0, min(r.Size(), 64))
	if err != nil || !isXML(head) {
		return source.Sequential(ctx, r), r.Size(), err
	}
	text, err := jsonOf(ctx, source.Sequential(ctx, r), r.Size(), member)
	return bytes.NewReader(text), int64(len(text)), err
}

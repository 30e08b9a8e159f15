package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/chaski-eo/chaski/fault"
)

// Print writes what a command has found: as one line of JSON, or else as YAML with the same members, without those that
// are empty. Neither has secrets: see fault.WithoutSecrets.
func Print(w io.Writer, found any, asJSON bool) error {
	if asJSON {
		return PrintJSON(w, found)
	}
	text, err := json.Marshal(found)
	if err != nil {
		return err
	}
	// JSON is YAML, but some characters that do not print are replaced, since terminals may obey them.
	printed := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, fault.WithoutSecrets(string(text)))
	members := json.NewDecoder(strings.NewReader(printed))
	if start, err := members.Token(); err != nil || start != json.Delim('{') {
		return printYAML(w, printed, false)
	}
	for members.More() {
		key, err := members.Token()
		var value json.RawMessage
		if err == nil {
			err = members.Decode(&value)
		}
		if err == nil {
			err = printMember(w, key, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pieceRows is how many rows of a list are laid out at a time: a node of YAML takes 300 times the bytes of its text.
const pieceRows = 256

// printMember writes a member of the document, a list of objects in pieces.
func printMember(w io.Writer, key any, value json.RawMessage) error {
	name, err := json.Marshal(key)
	if err != nil {
		return err
	}
	var rows []json.RawMessage
	if !bytes.HasPrefix(value, []byte("[{")) || json.Unmarshal(value, &rows) != nil {
		return printYAML(w, fmt.Sprintf("{%s:%s}", name, value), false)
	}
	further := false
	for piece := range slices.Chunk(rows, pieceRows) {
		text, err := json.Marshal(piece)
		if err == nil {
			err = printYAML(w, fmt.Sprintf("{%s:%s}", name, text), further)
		}
		if err != nil {
			return err
		}
		further = true
	}
	return nil
}

// printYAML writes a document as YAML, further rows of a list without the line of the list's name.
func printYAML(w io.Writer, document string, further bool) error {
	var top yaml.Node
	if err := yaml.Unmarshal([]byte(document), &top); err != nil {
		return err
	}
	lay(&top)
	if len(top.Content) == 1 && isEmpty(top.Content[0]) {
		return nil
	}
	var out bytes.Buffer
	lines := yaml.NewEncoder(&out)
	lines.SetIndent(2)
	if err := lines.Encode(&top); err != nil {
		return err
	}
	if err := lines.Close(); err != nil {
		return err
	}
	text := out.Bytes()
	if further {
		_, text, _ = bytes.Cut(text, []byte{'\n'})
	}
	_, err := w.Write(text)
	return err
}

// rowBytes is how long an object may be that stands on one line outside of a list.
const rowBytes = 72

// lay removes the empty members of a document, and lays it out: lists of values are on one line, and so are objects of
// values, if they are short or the rows of a list. It returns the bytes of n on one line, or -1 if it needs several.
func lay(n *yaml.Node) (bytes int) {
	bytes = len(n.Value)
	var kept []*yaml.Node
	for i, below := range n.Content {
		size := lay(below)
		isMember := n.Kind == yaml.MappingNode && i%2 == 1
		isRow := size >= 0 && (n.Kind == yaml.SequenceNode || isMember && size <= rowBytes)
		if below.Kind == yaml.MappingNode && isRow {
			below.Style = yaml.FlowStyle
		}
		switch {
		case isMember && isEmpty(below):
			continue
		case isMember:
			kept = append(kept, n.Content[i-1], below)
		}
		if size < 0 || bytes < 0 || below.Kind == yaml.MappingNode {
			bytes = -1
			continue
		}
		bytes += size + len(", ")
	}
	n.Style = 0
	if n.Kind == yaml.MappingNode {
		n.Content = kept
	}
	if n.Kind == yaml.SequenceNode && bytes >= 0 {
		n.Style = yaml.FlowStyle
	}
	return bytes
}

// isEmpty reports whether a value says nothing.
func isEmpty(n *yaml.Node) bool {
	if n.Kind == yaml.ScalarNode {
		return n.Tag == "!!null" || n.Tag == "!!str" && n.Value == ""
	}
	return len(n.Content) == 0
}

package vector

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/textguard"
	"github.com/chaski-eo/chaski/source"
)

// maxDepth bounds elements inside others: labels have five.
const maxDepth = 32

// beginsXML reports whether a file is XML.
func beginsXML(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("<"))
}

// readVOC reads a file of VOC. One without an object must be an annotation, and no other XML.
func readVOC(ctx context.Context, r source.Reader, l *labels, _ []byte) error {
	t := l.newTree(true)
	root, err := t.walkXML(ctx, r)
	if err == nil && t.count == 0 && !strings.HasSuffix(strings.ToLower(root), "annotation") && root != "HRSC_Image" {
		err = fault.New(fault.Unsupported, "XML", "<%s> has no <object>, and VOC XML without one is an <annotation>: "+
			"box says where others have their coordinates", fault.Short(root))
	}
	return err
}

// walkXML reads the elements of a file and the texts in them, and returns the name of the outermost one.
func (t *tree) walkXML(ctx context.Context, r source.Reader) (root string, err error) {
	text := newParts(ctx, r, "element", maxLine)
	decoder := xml.NewDecoder(text)
	decoder.CharsetReader = textguard.Latin
	for {
		text.Next()
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) && len(t.path) == 0 {
			return root, nil
		}
		if err != nil {
			return root, textguard.XMLError(decoder, err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if t.path = append(t.path, token.Name.Local); len(t.path) > maxDepth {
				return root, fault.At(fault.Limit, "element", decoder.InputOffset(), "%d elements in each other",
					len(t.path))
			}
			if len(t.seen) < maxListed && !slices.Contains(t.seen, token.Name.Local) {
				t.seen = append(t.seen, token.Name.Local)
			}
			root = t.seen[0]
			err = t.begin(token.Attr)
		case xml.CharData:
			if text := bytes.TrimSpace(token); len(text) > 0 && len(t.path) > 0 {
				err = t.leaf(text)
			}
		case xml.EndElement:
			if len(t.path) == 0 || t.path[len(t.path)-1] != token.Name.Local {
				return root, fault.At(fault.Corrupt, "element", decoder.InputOffset(), "</%s> ends no element",
					fault.Short(token.Name.Local))
			}
			err = t.end(ctx)
			t.path = t.path[:len(t.path)-1]
		}
		if err != nil {
			return root, fault.WithPart(err, "object", decoder.InputOffset())
		}
	}
}

package vector

import (
	"bytes"
	"context"
	"encoding/xml"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// beginsXML reports whether a file is XML.
func beginsXML(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("<"))
}

// readVOC reads a file of VOC. If it has no object, its outermost element must be an annotation.
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
	err = newParts(ctx, r, "element", maxLine).Elements(
		func(name string, attributes []xml.Attr) error {
			if t.path = append(t.path, name); len(t.members) < maxListed && !slices.Contains(t.members, name) {
				t.members = append(t.members, name)
			}
			root = t.members[0]
			return t.begin(attributes)
		},
		func(text []byte) error {
			if text = bytes.TrimSpace(text); len(text) == 0 {
				return nil
			}
			return t.leaf(text)
		},
		func() (more bool, err error) {
			err = t.end(ctx)
			t.path = t.path[:len(t.path)-1]
			return true, err
		})
	return root, err
}

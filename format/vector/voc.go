package vector

import (
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// maxDepth bounds elements inside others: labels have five.
const maxDepth = 32

func init() { register(labelFormat{"VOC XML", beginsXML, readVOC, Pixels, false}) }

// beginsXML reports whether a file is XML.
func beginsXML(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n"), []byte("<"))
}

// readVOC reads the objects of Pascal VOC, and of XML like it: see vocForms. A file without an object must be an
// annotation, and no other XML.
func readVOC(ctx context.Context, r source.Reader, l *labels) error {
	l.classIs("name")
	names := []string{"name", "possibleresult/name", "Class_ID"} // of FAIR1M and HRSC2016
	for _, form := range vocForms {
		names = append(names, form.names()...)
	}
	for _, column := range l.values {
		column.optional = true // an object may have a member that others lack
		names = append(names, column.column)
	}
	t := &tree{labels: l, ends: true, objects: [][]string{{"object"}, {"HRSC_Object"}}, outline: vocPoints,
		add: l.vocEnd}
	for _, name := range names {
		t.in = append(t.in, spot{name: name, path: strings.Split(name, "/")})
	}
	for _, name := range slices.Concat(vocImage[:]...) {
		t.out = append(t.out, spot{name: name, path: strings.Split(name, "/")})
	}
	root, err := t.walkXML(ctx, r)
	if err != nil {
		return err
	}
	if t.count == 0 && !strings.HasSuffix(strings.ToLower(root), "annotation") && root != "HRSC_Image" {
		return fault.New(fault.Unsupported, "XML", "<%s> has no <object>, and VOC XML without one is an <annotation>: "+
			"box says where others have their coordinates", fault.Short(root))
	}
	var image [3]string
	for i, names := range vocImage {
		for _, name := range names {
			image[i] = cmp.Or(image[i], textAt(t.of, name))
		}
	}
	_, err = l.declare("", image[0], sizeOf(image[1]), sizeOf(image[2]))
	return err
}

// walkXML reads the elements of a file and the texts in them, and returns the name of the outermost one.
func (t *tree) walkXML(ctx context.Context, r source.Reader) (root string, err error) {
	text := newParts(ctx, r, "element", maxLine)
	decoder := xml.NewDecoder(text)
	decoder.CharsetReader = latin
	for {
		text.Next()
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) && len(t.path) == 0 {
			return root, nil
		}
		if err != nil {
			return root, xmlError(decoder, err)
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

// vocEnd adds an object: the oriented box, if it has one and boxes are not asked for.
func (l *labels) vocEnd(ctx context.Context, of record) error {
	texts := func(name string) (string, bool) {
		text, ok := of(name)
		if name == "name" && text == "" {
			text = cmp.Or(textAt(of, "possibleresult/name"), textAt(of, "Class_ID"))
		}
		return text, ok || text != ""
	}
	first := func(boxes bool) *form {
		i := slices.IndexFunc(vocForms, func(f *form) bool { return (len(f.kind.roles) == 4) == boxes && f.all(of) })
		if i < 0 {
			return nil
		}
		return vocForms[i]
	}
	box, outline := first(true), first(false)
	switch {
	case box != nil && (l.o.Boxes || outline == nil):
		return l.put(ctx, box, texts, 0)
	case outline != nil:
		return l.put(ctx, outline, texts, 0)
	}
	return fault.New(fault.Unsupported, "object", "it has no bndbox of xmin, ymin, xmax and ymax, no robndbox, "+
		"polygon or points: box says where others have their coordinates")
}

// xmlError gives an error of the parser its kind.
func xmlError(d *xml.Decoder, err error) error {
	var syntax *xml.SyntaxError
	// The parser has types for the versions that it knows.
	other := fault.KindOf(err) == 0 && strings.HasPrefix(err.Error(), "xml: ")
	if errors.As(err, &syntax) || other || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.WrapAt(fault.Corrupt, "XML", d.InputOffset(), err)
	}
	return err
}

// latin reads the encodings other than UTF-8 that annotation programs write.
func latin(label string, in io.Reader) (io.Reader, error) {
	known := []string{"us-ascii", "ascii", "iso-8859-1", "latin1", "latin-1", "windows-1252"}
	if !slices.Contains(known, strings.ToLower(label)) {
		return nil, fault.New(fault.Unsupported, "XML", "the encoding %q: save it as UTF-8", fault.Short(label))
	}
	return &latinText{r: in}, nil
}

// latinText is a text of one byte a character, as UTF-8.
type latinText struct {
	r    io.Reader
	rest []byte
}

// Read implements io.Reader.
func (t *latinText) Read(p []byte) (int, error) {
	if len(t.rest) == 0 {
		var raw [512]byte
		n, err := t.r.Read(raw[:])
		if n == 0 {
			return 0, err
		}
		for _, char := range raw[:n] {
			t.rest = append(t.rest, string(rune(char))...)
		}
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// vocPoints are the points of FAIR1M, each an element.
const vocPoints = "points/point"

// vocForms are the forms of objects: boxes, and outlines or oriented boxes. The first of each that an object has in
// full counts.
var vocForms = []*form{
	entry("x0 y0 x1 y1", "bndbox/xmin bndbox/ymin bndbox/xmax bndbox/ymax"),
	entry("x0 y0 x1 y1", "box_xmin box_ymin box_xmax box_ymax"), // HRSC2016
	entry("outline", vocPoints),
	entry("x1 y1 x2 y2 x3 y3 x4 y4", "robndbox/x_left_top robndbox/y_left_top robndbox/x_right_top "+
		"robndbox/y_right_top robndbox/x_right_bottom robndbox/y_right_bottom robndbox/x_left_bottom "+
		"robndbox/y_left_bottom"), // DIOR-R
	entry("x1 y1 x2 y2 x3 y3 x4 y4", "polygon/x1 polygon/y1 polygon/x2 polygon/y2 polygon/x3 polygon/y3 polygon/x4 "+
		"polygon/y4"), // DroneVehicle
	entry("cx cy w h angle", "robndbox/cx robndbox/cy robndbox/w robndbox/h robndbox/angle"), // roLabelImg
	entry("cx cy w h angle", "mbox_cx mbox_cy mbox_w mbox_h mbox_ang"),                       // HRSC2016
}

// vocImage are the elements that have the name, the width and the height of the image, as VOC, FAIR1M and HRSC2016 call
// them.
var vocImage = [3][]string{{"filename", "source/filename", "Img_FileName"}, {"size/width", "Img_SizeWidth"},
	{"size/height", "Img_SizeHeight"}}

package vector

import (
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"math"
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

// readVOC reads the objects of Pascal VOC, and of XML like it: a box, or the oriented box that FAIR1M, DIOR-R,
// roLabelImg and HRSC2016 write. A file without an object must be an annotation, and no other XML.
func readVOC(ctx context.Context, r source.Reader, l *labels) error {
	l.classIs("name")
	for _, column := range l.values {
		column.optional = true // an object may have a member that others lack
	}
	text := newParts(ctx, r, "element", maxLine)
	decoder := xml.NewDecoder(text)
	decoder.CharsetReader = latin
	object, image := &vocObject{}, [3]string{} // what imageElements say
	var path []string                          // of the element, below the object if there is one
	inside := -1                               // the depth of the object
	root := ""
	for {
		text.Next()
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) && len(path) == 0 {
			if len(l.ends) == 0 && !strings.HasSuffix(strings.ToLower(root), "annotation") && root != "HRSC_Image" {
				return fault.New(fault.Unsupported, "XML", "<%s> has no <object>, and VOC XML without "+
					"one is an <annotation>", fault.Short(root))
			}
			_, err := l.declare("", image[0], sizeOf(image[1]), sizeOf(image[2]))
			return err
		}
		if err != nil {
			return xmlError(decoder, err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if path = append(path, token.Name.Local); len(path) > maxDepth {
				return fault.At(fault.Limit, "element", decoder.InputOffset(), "%d elements in each other", len(path))
			}
			root = cmp.Or(root, token.Name.Local)
			if inside < 0 && (token.Name.Local == "object" || token.Name.Local == "HRSC_Object") {
				inside, object = len(path), &vocObject{}
			}
		case xml.CharData:
			text := bytes.TrimSpace(token)
			switch {
			case len(text) == 0: // between elements
			case inside >= 0 && inside < len(path):
				err = object.add(path[inside:], string(text))
			case len(path) == 2 || len(path) == 3: // below the root
				above := ""
				if len(path) == 3 {
					above = path[1]
				}
				if part, ok := imageElements[[2]string{above, path[len(path)-1]}]; ok {
					image[part] = cmp.Or(image[part], string(text))
				}
			}
		case xml.EndElement:
			if len(path) == 0 || path[len(path)-1] != token.Name.Local {
				return fault.At(fault.Corrupt, "element", decoder.InputOffset(), "</%s> ends no element",
					fault.Short(token.Name.Local))
			}
			if path = path[:len(path)-1]; len(path) < inside {
				inside, err = -1, l.vocEnd(ctx, object)
			}
		}
		if err != nil {
			return fault.WithPart(err, "object", decoder.InputOffset())
		}
	}
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

// vocObject has the texts of an object, by the paths of their elements.
type vocObject struct {
	texts map[string]string
	size  int
	outer []float64 // the points of FAIR1M
}

// add adds the text of an element.
func (o *vocObject) add(elements []string, text string) error {
	for _, name := range elements {
		o.size += len(name)
	}
	if o.size += len(text); o.size > maxLine {
		return fault.New(fault.Limit, "object", "over %d bytes", maxLine)
	}
	path := strings.Join(elements, "/")
	if path == "points/point" {
		x, y, _ := strings.Cut(text, ",")
		point, err := numbers([]string{x, y})
		o.outer = append(o.outer, point...)
		return err
	}
	if o.texts == nil {
		o.texts = map[string]string{}
	}
	if _, ok := o.texts[path]; !ok { // a second box or name is one of a part
		o.texts[path] = text
	}
	return nil
}

// corners are the names of the coordinates of oriented boxes in DIOR-R.
var corners = []string{"x_left_top", "y_left_top", "x_right_top", "y_right_top", "x_right_bottom", "y_right_bottom",
	"x_left_bottom", "y_left_bottom"}

// members returns the numbers in elements of an object whose paths begin with one of the prefixes, or nil if it has not
// all of them.
func (o *vocObject) members(prefixes [2]string, names ...string) ([]float64, error) {
	for _, prefix := range prefixes {
		words := make([]string, len(names))
		for i, name := range names {
			words[i] = o.texts[prefix+name]
		}
		if !slices.Contains(words, "") {
			return numbers(words)
		}
	}
	return nil, nil
}

// imageElements are the elements, by the one around them, that have the name (0), the width (1) and the height (2) of
// the image, as VOC, FAIR1M and HRSC2016 call them.
var imageElements = map[[2]string]int{{"", "filename"}: 0, {"source", "filename"}: 0, {"", "Img_FileName"}: 0,
	{"size", "width"}: 1, {"", "Img_SizeWidth"}: 1, {"size", "height"}: 2, {"", "Img_SizeHeight"}: 2}

// vocEnd ends an object.
func (l *labels) vocEnd(ctx context.Context, o *vocObject) error {
	f, err := l.vocShape(o)
	if err != nil {
		return err
	}
	if o.texts["name"] == "" {
		if name := cmp.Or(o.texts["possibleresult/name"], o.texts["Class_ID"]); name != "" { // FAIR1M, HRSC2016
			o.texts["name"] = name
		}
	}
	return l.add(ctx, f, o.texts)
}

// vocShape adds the shape of an object: the oriented box, if it has one and boxes are not asked for.
func (l *labels) vocShape(o *vocObject) (coordForm, error) {
	box, err := o.members([2]string{"bndbox/", "box_"}, "xmin", "ymin", "xmax", "ymax")
	outline := o.outer
	if err == nil && outline == nil {
		outline, err = o.members([2]string{"robndbox/"}, corners...)
	}
	if err == nil && outline == nil {
		var turned, angle []float64
		turned, err = o.members([2]string{"robndbox/", "mbox_"}, "cx", "cy", "w", "h")
		if err == nil && turned != nil {
			angle, err = o.members([2]string{"robndbox/angle", "mbox_ang"}, "")
		}
		if angle != nil {
			outline = rotated(turned[0], turned[1], turned[2], turned[3], angle[0])
		}
	}
	switch {
	case err != nil:
		return noForm, err
	case box != nil && (l.o.Boxes || outline == nil):
		return l.box(box[0], box[1], box[2], box[3]), nil
	case outline != nil:
		return polygonForm, l.polygon(outline...)
	}
	return noForm, fault.New(fault.Unsupported, "object",
		"it has no bndbox of xmin, ymin, xmax and ymax, no robndbox and no points")
}

// rotated returns the corners of a box around a middle that is turned clockwise, as pictures are seen, by an angle in
// radians.
func rotated(x, y, width, height, angle float64) []float64 {
	right, down := width/2, height/2
	return turned(x, y, angle, [][2]float64{{-right, -down}, {right, -down}, {right, down}, {-right, down}})
}

// turned returns an outline whose points are said by their distances from a middle, turned around it.
func turned(x, y, angle float64, points [][2]float64) (outline []float64) {
	sin, cos := math.Sincos(angle)
	for _, p := range points {
		outline = append(outline, x+float64(p[0]*cos)-float64(p[1]*sin), y+float64(p[0]*sin)+float64(p[1]*cos))
	}
	return outline
}

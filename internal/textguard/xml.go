package textguard

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// maxElementDepth bounds elements inside others that Elements visits: labels have five.
const maxElementDepth = 32

// Elements visits the elements of XML, each with its name and attributes, the texts in it, and its end. It stops at the
// end of the text, between elements, or when end wants no more. Errors of visits are said to be of an object.
func (p *Parts) Elements(begin func(name string, attributes []xml.Attr) error, text func([]byte) error,
	end func() (more bool, err error)) error {
	decoder := xml.NewDecoder(p)
	decoder.CharsetReader = latin
	var names []string
	for reading := true; reading; {
		p.Next()
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) && len(names) == 0 {
			return nil
		}
		if err != nil {
			return xmlError(decoder, err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if names = append(names, token.Name.Local); len(names) > maxElementDepth {
				return fault.At(fault.Limit, "element", decoder.InputOffset(), "%d elements in each other", len(names))
			}
			err = begin(token.Name.Local, token.Attr)
		case xml.CharData:
			if len(names) > 0 {
				err = text(token)
			}
		case xml.EndElement:
			if len(names) == 0 || names[len(names)-1] != token.Name.Local {
				return fault.At(fault.Corrupt, "element", decoder.InputOffset(), "</%s> ends no element",
					fault.Short(token.Name.Local))
			}
			names = names[:len(names)-1]
			reading, err = end()
		}
		if err != nil {
			return fault.WithPart(err, "object", decoder.InputOffset())
		}
	}
	return nil
}

// xmlError gives an error of the parser of XML its kind.
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

package textguard

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// XMLError gives an error of the parser of XML its kind.
func XMLError(d *xml.Decoder, err error) error {
	var syntax *xml.SyntaxError
	// The parser has types for the versions that it knows.
	other := fault.KindOf(err) == 0 && strings.HasPrefix(err.Error(), "xml: ")
	if errors.As(err, &syntax) || other || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.WrapAt(fault.Corrupt, "XML", d.InputOffset(), err)
	}
	return err
}

// Latin reads the encodings other than UTF-8 that annotation programs write.
func Latin(label string, in io.Reader) (io.Reader, error) {
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

package vector

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/textguard"
)

// member returns a member of an object, or as "a.b" the member b of its member a. see, if not nil, gets the names of
// all members.
func member(object json.RawMessage, name string, see func(name string)) (raw json.RawMessage, ok bool, err error) {
	outer, inner, dotted := strings.Cut(name, ".")
	var below json.RawMessage
	err = visitMembers(object, func(key string, value json.RawMessage) {
		if see != nil {
			see(key)
		}
		switch {
		case key == name:
			raw, ok = bytes.Clone(value), true
		case dotted && key == outer && bytes.HasPrefix(value, []byte("{")):
			below = bytes.Clone(value)
		}
	})
	if err != nil || ok || below == nil {
		return raw, ok, err
	}
	return member(below, inner, nil)
}

// visitMembers visits the members of an object one after the other, so many of them take no memory. value is valid
// during the call. An object may be missing or null.
func visitMembers(object json.RawMessage, visit func(key string, value json.RawMessage)) error {
	if len(object) == 0 {
		return nil
	}
	if object[0] == '{' && json.Valid(object) { // mostly, and in a third of the time
		eachMember(object, visit)
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(object))
	switch start, err := d.Token(); {
	case err != nil || start == nil:
		return err
	case start != json.Delim('{'):
		return fmt.Errorf("%.32s is no object", object)
	}
	var value json.RawMessage
	return textguard.EachMember(d, func(key string) error {
		err := d.Decode(&value)
		if err == nil {
			visit(key, value)
		}
		return err
	})
}

// eachMember visits the members of an object that is valid JSON.
func eachMember(object []byte, visit func(key string, value json.RawMessage)) {
	const blanks = " \t\r\n"
	for object = bytes.TrimLeft(object[1:], blanks); object[0] != '}'; object = bytes.TrimLeft(object, blanks+",") {
		n := lengthOf(object)
		key := string(object[1 : n-1])
		if !isPlain(key) {
			_ = json.Unmarshal(object[:n], &key) // it is valid
		}
		object = bytes.TrimLeft(object[n:], blanks+":")
		n = lengthOf(object)
		visit(key, bytes.TrimRight(object[:n], blanks))
		object = object[n:]
	}
}

// lengthOf returns the bytes of the value that valid JSON begins with; of a number or a word perhaps with blanks behind
// it.
func lengthOf(text []byte) int {
	depth := 0
	for i := 0; ; i++ {
		switch text[i] {
		case '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // it ends what a number is in
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
}

// isPlain reports whether a string of JSON is the text as it stands between its quotes.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// expect reads a delimiter.
func expect(d *json.Decoder, want json.Delim) error {
	token, err := d.Token()
	if err == nil && token != want {
		err = fault.At(fault.Corrupt, "JSON", d.InputOffset(), "it has %v where %v must stand", token, want)
	}
	return err
}

// jsonError gives an error of the decoder its kind.
func jsonError(d *json.Decoder, err error) error {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.At(fault.Corrupt, "JSON", d.InputOffset(), "it is cut off")
	}
	if errors.As(err, &syntax) || errors.As(err, &typ) {
		return fault.At(fault.Corrupt, "JSON", d.InputOffset(), "%v", err)
	}
	return err
}

// unseparated is a text of JSON with spaces in place of the separators of records (RFC 8142), which no string has.
type unseparated struct{ io.Reader }

func (u unseparated) Read(b []byte) (int, error) {
	n, err := u.Reader.Read(b)
	for rest := b[:n]; ; {
		i := bytes.IndexByte(rest, recordMark)
		if i < 0 {
			return n, err
		}
		rest[i] = ' '
		rest = rest[i:]
	}
}

// recordMark begins a record of a JSON text sequence.
const recordMark = '\x1e'

package zarr

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"

	"github.com/chaski-eo/chaski/fault"
)

// Limits of metadata. The consolidated metadata of a Sentinel-2 product of EOPF, with some 120 arrays, has 0.3 MB.
const (
	maxMeta  = 16 << 20 // bytes of one file
	maxDepth = 64       // objects and lists inside each other
	// maxValues bounds the values in a file. A map of decoded values takes some 100 bytes for each, so this is some
	// 50 MB.
	maxValues  = 1 << 19
	valueBytes = 100
	// metaCopies is how often the text of a file is in memory at most: as it was read, as the values of its keys, as
	// the values inside of them, and in the arrays that are made of them.
	metaCopies = 4
)

// object is a JSON object whose values are not decoded yet.
type object map[string]json.RawMessage

const metaPart = "metadata"

// decodeObject parses a JSON object that is bounded, and returns the number of values in it.
func decodeObject(b []byte) (v object, values int, err error) {
	if len(b) > maxMeta {
		return nil, 0, fault.New(fault.Limit, metaPart, fault.NoOffset, "%d bytes, at most %d", len(b), maxMeta)
	}
	text := newPlainText(bytes.NewReader(b), min(len(b), 64<<10), maxValues)
	err = decodeFrom(text, &v)
	if err = cmp.Or(text.err, err); err == nil && v == nil {
		err = corrupt("null is not an object")
	}
	return v, text.values, err
}

// decode decodes one JSON value.
func decode(b []byte, to any) error { return decodeFrom(bytes.NewReader(b), to) }

func decodeFrom(in io.Reader, to any) error {
	decoder := json.NewDecoder(in)
	decoder.UseNumber()
	if err := decoder.Decode(to); err != nil {
		var s *json.SyntaxError
		if errors.As(err, &s) {
			return fault.New(fault.Corrupt, metaPart, s.Offset, "%v", err)
		}
		return corrupt("%v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return corrupt("more follows after the value")
	}
	return nil
}

// plainText reads JSON. It bounds depth and number of values, and puts the bare words NaN, Infinity and -Infinity in
// quotes: Python writes them, though JSON has none.
type plainText struct {
	in              *bufio.Reader
	rest            string // of a word in quotes
	quoted, escaped bool   // inside of a string, and behind a backslash there
	at              int64
	depth, values   int
	maxValues       int
	err             error // why a read failed, since decoders do not hand it on
}

// newPlainText reads a text with a buffer of some bytes.
func newPlainText(in io.Reader, buffer, maxValues int) *plainText {
	return &plainText{in: bufio.NewReaderSize(in, buffer), maxValues: maxValues}
}

// Read implements io.Reader.
func (t *plainText) Read(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		if t.rest != "" {
			moved := copy(p[n:], t.rest)
			n, t.rest = n+moved, t.rest[moved:]
			continue
		}
		if p[n], err = t.in.ReadByte(); err != nil {
			break
		}
		if w := t.bareWord(p[n]); w != "" {
			t.rest = `"` + w + `"`
			skipped, _ := t.in.Discard(len(w) - 1) // they are in the buffer
			t.at += 1 + int64(skipped)
			continue
		}
		err = t.count(p[n])
		n++
	}
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil // the next call returns it
	}
	if err != nil && !errors.Is(err, io.EOF) {
		t.err = err
	}
	return n, err
}

// count counts a byte. It returns an error if depth or values are too many.
func (t *plainText) count(c byte) error {
	t.at++
	if t.quoted {
		t.quoted = t.escaped || c != '"'
		t.escaped = !t.escaped && c == '\\'
		return nil
	}
	switch c {
	case '"':
		t.quoted = true
	case '{', '[':
		t.depth++
		t.values++
	case '}', ']':
		t.depth--
	case ',':
		t.values++
	}
	switch {
	case t.depth > maxDepth:
		return fault.New(fault.Limit, metaPart, t.at, "more than %d levels of nesting", maxDepth)
	case t.values > t.maxValues:
		return fault.New(fault.Limit, metaPart, t.at, "more than %d values", t.maxValues)
	}
	return nil
}

// bareWord returns the number that JSON lacks and that begins with c, a byte that was read, or "".
func (t *plainText) bareWord(c byte) string {
	if t.quoted || c != 'N' && c != 'I' && c != '-' {
		return ""
	}
	for _, w := range [...]string{"NaN", "Infinity", "-Infinity"} {
		if w[0] != c {
			continue
		}
		if b, err := t.in.Peek(len(w) - 1); err == nil && string(b) == w[1:] {
			return w
		}
	}
	return ""
}

// get decodes the value of a key. It reports false if the key is missing or null.
func (v object) get(key string, to any) (bool, error) {
	raw, ok := v[key]
	if !ok || string(raw) == "null" {
		return false, nil
	}
	if err := decode(raw, to); err != nil {
		return false, fault.WithPart(err, key, fault.NoOffset)
	}
	return true, nil
}

// need is get for a key that must be there.
func (v object) need(key string, to any) error {
	ok, err := v.get(key, to)
	if err == nil && !ok {
		err = corrupt("%q is missing", key)
	}
	return err
}

// text returns a string, or "".
func (v object) text(key string) string {
	var s string
	if ok, err := v.get(key, &s); !ok || err != nil {
		return ""
	}
	return s
}

func corrupt(format string, args ...any) error {
	return fault.New(fault.Corrupt, metaPart, fault.NoOffset, format, args...)
}

func unsupported(format string, args ...any) error {
	return fault.New(fault.Unsupported, metaPart, fault.NoOffset, format, args...)
}

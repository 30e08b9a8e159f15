package zarr

import (
	"bufio"
	"bytes"
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

// decodeObject parses a JSON object that is bounded.
func decodeObject(b []byte) (object, error) {
	var v object
	if err := decode(b, &v); err != nil {
		return nil, err
	}
	if v == nil {
		return nil, corrupt("null is not an object")
	}
	return v, nil
}

// decode decodes one JSON value.
func decode(b []byte, to any) error {
	decoder := json.NewDecoder(bytes.NewReader(b))
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

// plain returns what plainText makes of a text, and the number of values.
func plain(b []byte) ([]byte, int, error) {
	if len(b) > maxMeta {
		return nil, 0, fault.New(fault.Limit, metaPart, fault.NoOffset, "%d bytes, at most %d", len(b), maxMeta)
	}
	plainText := newPlainText(bytes.NewReader(b), min(len(b), 64<<10), maxValues)
	var out bytes.Buffer
	out.Grow(len(b) + bytes.MinRead)
	if _, err := out.ReadFrom(plainText); err != nil {
		return nil, 0, err
	}
	return out.Bytes(), plainText.values, nil
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
func (t *plainText) Read(p []byte) (int, error) {
	n, err := t.read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		t.err = err
	}
	return n, err
}

func (t *plainText) read(p []byte) (int, error) {
	if t.rest == "" {
		if head, err := t.in.Peek(1); err != nil {
			return 0, err
		} else if w := t.bareWord(head[0]); w != "" {
			t.rest = `"` + w + `"`
			t.skip(len(w))
		}
	}
	if t.rest != "" {
		n := copy(p, t.rest)
		t.rest = t.rest[n:]
		return n, nil
	}
	data, err := t.in.Peek(min(len(p), t.in.Buffered()))
	if err != nil {
		return 0, err
	}
	n := t.scan(data)
	copy(p, data[:n])
	t.skip(n)
	switch {
	case t.depth > maxDepth:
		return 0, fault.New(fault.Limit, metaPart, t.at, "more than %d levels of nesting", maxDepth)
	case t.values > t.maxValues:
		return 0, fault.New(fault.Limit, metaPart, t.at, "more than %d values", t.maxValues)
	}
	return n, nil
}

// scan counts up to a byte that a word may begin with, but for the first, or up to one too many.
func (t *plainText) scan(b []byte) int {
	for i := 0; i < len(b); i++ {
		c := b[i]
		if t.quoted {
			switch {
			case t.escaped:
				t.escaped = false
			case c == '\\':
				t.escaped = true
			case c == '"':
				t.quoted = false
			}
			continue
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
		case 'N', 'I', '-':
			if i > 0 {
				return i
			}
		}
		if t.depth > maxDepth || t.values > t.maxValues {
			return i
		}
	}
	return len(b)
}

// bareWord returns the number that JSON lacks and that is next, or "". c is the next byte.
func (t *plainText) bareWord(c byte) string {
	if t.quoted || c != 'N' && c != 'I' && c != '-' {
		return ""
	}
	for _, w := range [...]string{"NaN", "Infinity", "-Infinity"} {
		if b, err := t.in.Peek(len(w)); err == nil && string(b) == w {
			return w
		}
	}
	return ""
}

// skip passes over n bytes that were peeked.
func (t *plainText) skip(n int) {
	n, _ = t.in.Discard(n) // they are in the buffer
	t.at += int64(n)
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

package arrays

import (
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

// Object is a JSON object whose values are not decoded yet.
type Object map[string]json.RawMessage

// MetaPart is the part of errors about metadata.
const MetaPart = "metadata"

// DecodeObject parses a JSON object that is bounded, and returns the number of values in it.
func DecodeObject(b []byte) (v Object, values int, err error) {
	if b, values, err = plainText(b); err != nil {
		return nil, 0, err
	}
	if err = Decode(b, &v); err == nil && v == nil {
		err = Corrupt("null is not an object")
	}
	return v, values, err
}

// Decode decodes one JSON value.
func Decode(b []byte, to any) error {
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	if err := decoder.Decode(to); err != nil {
		if s, ok := errors.AsType[*json.SyntaxError](err); ok {
			return fault.At(fault.Corrupt, MetaPart, s.Offset, "%v", err)
		}
		return Corrupt("%v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Corrupt("more follows after the value")
	}
	return nil
}

// plainText bounds depth and number of values of a JSON text, and returns both the number and the text, with the bare
// words NaN, Infinity and -Infinity in quotes: Python writes them, though JSON has none.
func plainText(b []byte) (text []byte, values int, err error) {
	done, depth, quoted := 0, 0, false
	for i := 0; i < len(b); i++ {
		switch char := b[i]; {
		case quoted && char == '\\':
			i++ // the next byte is one of the string
		case char == '"':
			quoted = !quoted
		case quoted:
		case char == '{', char == '[':
			depth++
			values++
		case char == '}', char == ']':
			depth--
		case char == ',':
			values++
		case char == 'N', char == 'I', char == '-':
			if length := bareWord(b[i:]); length > 0 {
				text = append(append(text, b[done:i]...), '"')
				text = append(append(text, b[i:i+length]...), '"')
				i, done = i+length-1, i+length
			}
		}
		if depth > maxDepth {
			return nil, 0, fault.At(fault.Limit, MetaPart, int64(i), "more than %d levels of nesting", maxDepth)
		}
		if values > maxValues {
			return nil, 0, fault.At(fault.Limit, MetaPart, int64(i), "more than %d values", maxValues)
		}
	}
	if done == 0 {
		return b, values, nil
	}
	return append(text, b[done:]...), values, nil
}

// bareWord returns the length of the number at the front of b that JSON lacks, or 0.
func bareWord(b []byte) int {
	for _, word := range [...]string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(b, []byte(word)) {
			return len(word)
		}
	}
	return 0
}

// Get decodes the value of a key. It reports false if the key is missing or null.
func (v Object) Get(key string, to any) (bool, error) {
	raw, ok := v[key]
	if !ok || string(raw) == "null" {
		return false, nil
	}
	if err := Decode(raw, to); err != nil {
		return false, fault.WithPart(err, key, fault.NoOffset)
	}
	return true, nil
}

// Need is Get for a key that must be there.
func (v Object) Need(key string, to any) error {
	ok, err := v.Get(key, to)
	if err == nil && !ok {
		err = Corrupt("%q is missing", key)
	}
	return err
}

// String returns a string as it stands, or "".
func (v Object) String(key string) string {
	var value string
	if ok, err := v.Get(key, &value); !ok || err != nil {
		return ""
	}
	return value
}

// Corrupt is an error about metadata.
func Corrupt(format string, args ...any) error {
	return fault.New(fault.Corrupt, MetaPart, format, args...)
}

// Unsupported is an error about metadata.
func Unsupported(format string, args ...any) error {
	return fault.New(fault.Unsupported, MetaPart, format, args...)
}

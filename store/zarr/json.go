package zarr

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

// object is a JSON object whose values are not decoded yet.
type object map[string]json.RawMessage

const metaPart = "metadata"

// parseObject parses a JSON object, after it has bounded its depth and its number of values.
func parseObject(b []byte) (object, error) {
	b, _, err := plain(b)
	if err != nil {
		return nil, err
	}
	return decodeObject(b)
}

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
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(to); err != nil {
		var s *json.SyntaxError
		if errors.As(err, &s) {
			return fault.New(fault.Corrupt, metaPart, s.Offset, "%v", err)
		}
		return corrupt("%v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return corrupt("more follows after the value")
	}
	return nil
}

// plain bounds depth and number of values, and puts the bare words NaN, Infinity and -Infinity in quotes: Python
// writes them, though JSON has none. It returns the number of values too.
func plain(b []byte) ([]byte, int, error) { return plainUpTo(b, maxMeta, maxValues) }

// plainUpTo is plain with other limits of bytes and of values.
func plainUpTo(b []byte, maxBytes, maxValues int) ([]byte, int, error) {
	if len(b) > maxBytes {
		return nil, 0, fault.New(fault.Limit, metaPart, fault.NoOffset, "%d bytes, at most %d", len(b), maxBytes)
	}
	var out []byte // nil while nothing was replaced
	done, depth, values := 0, 0, 0
	for i := 0; i < len(b); {
		switch c := b[i]; c {
		case '"':
			i = stringEnd(b, i)
			continue
		case '{', '[':
			if depth++; depth > maxDepth {
				return nil, 0, fault.New(fault.Limit, metaPart, int64(i), "more than %d levels of nesting", maxDepth)
			}
			values++
		case '}', ']':
			depth--
		case ',':
			values++
		case 'N', 'I', '-':
			if w := bareWord(b[i:]); w != "" {
				out = append(append(append(append(out, b[done:i]...), '"'), w...), '"')
				i += len(w)
				done = i
				continue
			}
		}
		if values > maxValues {
			return nil, 0, fault.New(fault.Limit, metaPart, int64(i), "more than %d values", maxValues)
		}
		i++
	}
	if out == nil {
		return b, values, nil
	}
	return append(out, b[done:]...), values, nil
}

// stringEnd returns the place after the string that begins at i.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// bareWord returns the number that JSON lacks at the beginning of b, or "".
func bareWord(b []byte) string {
	for _, w := range [...]string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(b, []byte(w)) {
			return w
		}
	}
	return ""
}

// get decodes the value of a key. It reports false if there is none.
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

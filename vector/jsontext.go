package vector

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// jsonText reads JSON from start to end, in one buffer. It accepts the same texts as the decoder of encoding/json,
// which takes most of the time on a file of a million small objects.
type jsonText struct {
	in   io.Reader
	buf  []byte // read, and not yet passed; then room for more
	n    int    // how much of buf was read
	at   int    // where reading goes on in buf
	base int64  // where buf begins in the text
	err  error  // of in
	nest []byte // the closing brackets of the lists and objects around a place, the outermost first
}

// newJSONText returns a text that is read size bytes at a time.
func newJSONText(in io.Reader, size int) *jsonText {
	return &jsonText{in: in, buf: make([]byte, max(size, 2))}
}

// maxDepth is how deep lists and objects may be nested, as in encoding/json.
const maxDepth = 10000

// Verdicts about a piece of a text, in place of where it ends.
const (
	short = -1 // it continues after the bytes in the buffer
	wrong = -2 // it is no JSON
)

// errJSON is the error about malformed JSON, or a value of the wrong type.
var errJSON = errors.New("malformed JSON")

// offset returns where reading goes on in the text.
func (t *jsonText) offset() int64 { return t.base + int64(t.at) }

// more reads more of the text.
func (t *jsonText) more() error {
	if t.err != nil {
		if errors.Is(t.err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		return t.err
	}
	t.base += int64(t.at)
	t.n = copy(t.buf, t.buf[t.at:t.n])
	t.at = 0
	if 2*t.n >= len(t.buf) { // so that all passes over a long value together take as long as two
		t.buf = append(t.buf, make([]byte, len(t.buf))...)
	}
	// One byte is kept for the end of the text, which becomes white space: a number at the end then has an end, too.
	n, err := io.ReadFull(t.in, t.buf[t.n:len(t.buf)-1])
	t.n += n
	if err != nil {
		if t.err = err; errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			t.err = io.EOF
			t.buf[t.n] = ' '
			t.n++
		}
	}
	return nil
}

// next passes white space and returns the byte behind it.
func (t *jsonText) next() (byte, error) {
	for {
		if t.at = space(t.buf[:t.n], t.at); t.at < t.n {
			return t.buf[t.at], nil
		}
		if err := t.more(); err != nil {
			return 0, err
		}
	}
}

// expect passes a byte that must come next.
func (t *jsonText) expect(want byte) error {
	b, err := t.next()
	if err != nil {
		return err
	}
	if b != want {
		return fmt.Errorf("%w: it has %q where %q must stand", errJSON, b, want)
	}
	t.at++
	return nil
}

// piece takes the next value and returns its bytes, valid until the next call. end finds the end of the value that
// begins at an offset of b. It may be called again, for the same value, with more of the text.
func (t *jsonText) piece(end func(b []byte, at int) int) ([]byte, error) {
	for {
		if _, err := t.next(); err != nil {
			return nil, err
		}
		switch e := end(t.buf[:t.n], t.at); e {
		case wrong:
			return nil, errJSON
		case short:
			if err := t.more(); err != nil {
				return nil, err
			}
		default:
			b := t.buf[t.at:e]
			t.at = e
			return b, nil
		}
	}
}

// value passes a value and returns its text.
func (t *jsonText) value() ([]byte, error) {
	return t.piece(func(b []byte, pos int) int { return t.skip(b, pos, maxDepth) })
}

// decode reads a value as encoding/json does.
func (t *jsonText) decode(to any) error {
	data, err := t.value()
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}

// object passes an object, and calls read for the value of each member.
func (t *jsonText) object(read func(key string) error) error {
	return t.elements('{', '}', func(int) error {
		data, err := t.piece(quoted)
		if err != nil {
			return err
		}
		var key string
		if err := json.Unmarshal(data, &key); err != nil {
			return err
		}
		if err := t.expect(':'); err != nil {
			return err
		}
		return read(key)
	})
}

// elements calls read for all that stands between two brackets with commas.
func (t *jsonText) elements(first, last byte, read func(i int) error) error {
	if err := t.expect(first); err != nil {
		return err
	}
	for i := 0; ; i++ {
		b, err := t.next()
		switch {
		case err != nil:
			return err
		case b == last && i == 0:
			t.at++
			return nil
		}
		if err := read(i); err != nil {
			return err
		}
		if b, err = t.next(); err != nil {
			return err
		}
		if b != last && b != ',' {
			return errJSON
		}
		if t.at++; b == last {
			return nil
		}
	}
}

// skip returns the end of the value at a place, or the verdict about it. Lists and objects may be nested up to a depth.
func (t *jsonText) skip(b []byte, at, depth int) int {
	nest := t.nest[:0]
	for {
		// A value, and in an object its key before it.
		if at = space(b, at); at == len(b) {
			return short
		}
		open := byte(0)
		switch b[at] {
		case '[':
			open = ']'
		case '{':
			open = '}'
		default:
			at = scalar(b, at)
		}
		if open != 0 {
			if len(nest) == depth {
				return wrong
			}
			nest = append(nest, open)
			t.nest = nest // its memory
			if at = space(b, at+1); at == len(b) {
				return short
			}
			if b[at] != open {
				if open == '}' {
					at = keyed(b, at)
				}
				if at < 0 {
					return at
				}
				continue
			}
			at++
			nest = nest[:len(nest)-1]
		}
		// After a value: a comma, or the ends of the lists and objects around it.
		for done := false; !done; {
			switch {
			case at < 0:
				return at
			case len(nest) == 0:
				return at
			}
			if at = space(b, at); at == len(b) {
				return short
			}
			switch last := nest[len(nest)-1]; b[at] {
			case ',':
				at++
				if done = true; last == '}' {
					if at = keyed(b, at); at < 0 {
						return at
					}
				}
			case last:
				at++
				nest = nest[:len(nest)-1]
			default:
				return wrong
			}
		}
	}
}

// keyed returns the end of a key and its colon, or the verdict about them.
func keyed(b []byte, at int) int {
	if at = space(b, at); at == len(b) {
		return short
	}
	if at = quoted(b, at); at < 0 {
		return at
	}
	return colon(b, at)
}

// colon returns the end of a colon, or the verdict about it.
func colon(b []byte, at int) int {
	switch at = space(b, at); {
	case at == len(b):
		return short
	case b[at] != ':':
		return wrong
	}
	return at + 1
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// space returns the end of white space.
func space(b []byte, at int) int {
	for at < len(b) && isSpace(b[at]) {
		at++
	}
	return at
}

// scalar returns the end of a string, a number or a name, or the verdict about it.
func scalar(b []byte, at int) int {
	switch b[at] {
	case '"':
		return quoted(b, at)
	case 't':
		return named(b, at, "true")
	case 'f':
		return named(b, at, "false")
	case 'n':
		return named(b, at, "null")
	}
	return numeral(b, at)
}

func named(b []byte, at int, name string) int {
	have := min(len(b)-at, len(name))
	switch {
	case string(b[at:at+have]) != name[:have]:
		return wrong
	case have < len(name):
		return short
	}
	return at + have
}

// quoted returns the end of a string, or the verdict about it. Its bytes need not be UTF-8: encoding/json replaces
// those that are not.
func quoted(b []byte, at int) int {
	if b[at] != '"' {
		return wrong
	}
	for at++; at < len(b); at++ {
		switch c := b[at]; {
		case c == '"':
			return at + 1
		case c < ' ':
			return wrong
		case c == '\\':
			if at++; at == len(b) {
				return short
			}
			switch b[at] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					if at++; at == len(b) {
						return short
					}
					if c := b[at] | 0x20; !digit(b[at]) && (c < 'a' || c > 'f') {
						return wrong
					}
				}
			default:
				return wrong
			}
		}
	}
	return short
}

func digit(b byte) bool { return b >= '0' && b <= '9' }

// numeral returns the end of a number, or the verdict about it.
func numeral(b []byte, at int) int {
	if b[at] == '-' {
		at++
	}
	first := at
	if at = digits(b, at); at < 0 {
		return at
	}
	if b[first] == '0' {
		at = first + 1 // digits after a leading zero are not part of the number
	}
	if at < len(b) && b[at] == '.' {
		if at = digits(b, at+1); at < 0 {
			return at
		}
	}
	if at < len(b) && b[at]|0x20 == 'e' {
		if at++; at < len(b) && (b[at] == '+' || b[at] == '-') {
			at++
		}
		if at = digits(b, at); at < 0 {
			return at
		}
	}
	if at == len(b) {
		return short
	}
	return at
}

// digits returns the end of one digit or more, or the verdict about them.
func digits(b []byte, at int) int {
	first := at
	for at < len(b) && digit(b[at]) {
		at++
	}
	switch {
	case at > first:
		return at
	case at == len(b):
		return short
	}
	return wrong
}

// Package literal makes JSON of lists, tuples and dicts as Python and NumPy print them.
package literal

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// words are the names that Python has for values, in JSON.
var words = map[string]string{"None": "null", "nan": "null", "True": "true", "False": "false"}

// JSON returns the JSON of a text that is a list, tuple or dict of Python, or JSON itself. Numbers and strings of
// NumPy's lists have no commas between them.
func JSON(text string) (out []byte, ok bool) {
	text = strings.TrimSpace(text)
	if text == "" || !strings.Contains("[({", text[:1]) {
		return nil, false
	}
	if json.Valid([]byte(text)) {
		return []byte(text), true
	}
	value := false // a value ended, and no comma followed
	begin := func() {
		if value {
			out = append(out, ',')
		}
		value = false
	}
	for len(text) > 0 {
		switch c := text[0]; c {
		case ' ', '\t', '\n', '\r':
			text = text[1:]
			continue
		case '[', '(', '{':
			begin()
			out = append(out, map[byte]byte{'[': '[', '(': '[', '{': '{'}[c])
		case ']', ')', '}':
			out = append(bytes.TrimSuffix(out, []byte{','}), map[byte]byte{']': ']', ')': ']', '}': '}'}[c])
			value = true
		case ',', ':':
			out, value = append(out, c), false
		case '\'', '"':
			begin()
			raw, rest, closed := quoted(text)
			if !closed {
				return nil, false
			}
			quote, err := json.Marshal(raw)
			if err != nil {
				return nil, false
			}
			out, text, value = append(out, quote...), rest, true
			continue
		default:
			begin()
			end := strings.IndexAny(text, " \t\r\n,:()[]{}'\"")
			if end < 1 {
				return nil, false
			}
			word := text[:end]
			if known, ok := words[word]; ok {
				word = known
			} else if _, err := strconv.ParseFloat(word, 64); err == nil {
				word = number(word)
			}
			out, text, value = append(out, word...), text[end:], true
			continue
		}
		text = text[1:]
	}
	return out, json.Valid(out)
}

// number writes a number as JSON has it: "1." of NumPy is 1, and ".5" is 0.5.
func number(word string) string {
	if json.Valid([]byte(word)) {
		return word
	}
	word = strings.TrimPrefix(strings.TrimSuffix(word, "."), "+")
	if fraction, ok := strings.CutPrefix(word, "."); ok {
		word = "0." + fraction
	}
	return word
}

// quoted returns the string that a text begins with, in either quotes, and what follows it.
func quoted(text string) (raw, rest string, closed bool) {
	quote := text[0]
	var out strings.Builder
	for text = text[1:]; len(text) > 0; {
		if text[0] == quote {
			return out.String(), text[1:], true
		}
		if text[0] == '\\' {
			char, _, after, err := strconv.UnquoteChar(text, quote)
			if err == nil {
				out.WriteRune(char)
				text = after
				continue
			}
			if len(text) > 1 && strings.IndexByte(`'"`, text[1]) >= 0 { // the other quote
				text = text[1:]
			}
		}
		out.WriteByte(text[0])
		text = text[1:]
	}
	return "", "", false
}

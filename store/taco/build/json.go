package build

import (
	"bytes"
	"encoding/json"

	"github.com/chaski-eo/chaski/fault"
)

// plainJSON encodes a value without escapes for HTML.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fault.Wrap(fault.Unsupported, collName, fault.NoOffset, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// collName is the name of the file of a Collection.
const collName = "COLLECTION.json"

// member is a member of a JSON object.
type member struct {
	name  string
	value any
}

// object is a JSON object whose members keep their order.
type object []member

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) { return appendMembers([]byte{'{'}, o) }

// appendMembers adds members to an object that has no end yet, and its end.
func appendMembers(b []byte, members []member) ([]byte, error) {
	for _, member := range members {
		name, err := plainJSON(member.name)
		if err != nil {
			return nil, err
		}
		value, err := plainJSON(member.value)
		if err != nil {
			return nil, err
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// lines returns an object on a line for each member.
func (o object) lines() ([]byte, error) {
	doc, err := o.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return indented(doc)
}

// indented returns JSON with a line for each member.
func indented(doc []byte) ([]byte, error) {
	var out bytes.Buffer
	err := json.Indent(&out, doc, "", "  ")
	return append(out.Bytes(), '\n'), err
}

// quoted returns text as JSON.
func quoted(text string) json.RawMessage {
	data, err := json.Marshal(text)
	if err != nil {
		return nil // a string is always JSON
	}
	return data
}

// badMember returns an error about COLLECTION.json.
func badMember(format string, args ...any) error {
	return unsupported(collName, format, args...)
}

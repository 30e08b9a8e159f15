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
		return nil, fault.Wrap(fault.Unsupported, "COLLECTION.json", fault.NoOffset, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

package zarr

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/format/chunk"
)

// noData returns the value that marks cells without a measurement, as a chunk index has it: the attribute _FillValue or
// missing_value of CF. Without them it is a fill value of NaN, or one of an array of version 2 that xarray wrote,
// which keeps _FillValue there. Any other fill value is a number like any other: writers put 0 there.
func (a *Array) noData() (*float64, *uint64) {
	if value, bits := a.declared(); value != nil {
		return value, bits
	}
	value, bits := a.DType.NoData(a.Fill)
	if *value != *value || a.Format == 2 && a.xarrayFill {
		return value, bits
	}
	return nil, nil
}

// declared returns the value that the attribute _FillValue or missing_value has, as noData does, or nil.
func (m *Meta) declared() (*float64, *uint64) {
	for _, key := range [...]string{"_FillValue", "missing_value"} {
		if b := m.attrSample(key); b != nil {
			return m.DType.NoData(b)
		}
	}
	return nil, nil
}

// physical returns what makes physical values of the cells, as a chunk index has it: scale_factor and add_offset of CF.
func (m *Meta) physical() []chunk.Linear {
	scale, ok := m.Number("scale_factor")
	if !ok {
		scale = 1
	}
	offset, _ := m.Number("add_offset")
	return chunk.Linears([]chunk.Linear{{Scale: scale, Offset: offset}})
}

// attrSample returns an attribute that has a value of the array, or nil.
func (m *Meta) attrSample(key string) []byte {
	raw := m.Attrs[key]
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	raw = alone(raw)
	if b, err := parseFill(raw, m.DType); err == nil {
		return b
	}
	var encoded string
	if decode(raw, &encoded) != nil {
		return nil
	}
	// Some writers have numbers as strings. Base64 of 1, 2, 4 or 8 bytes ends with "=": it differs from all
	// of these.
	number := make([]byte, m.DType.Size())
	if putNumber(number, strings.TrimSpace(encoded), m.DType) == nil {
		return number
	}
	// xarray writes _FillValue of version 3 in base64, little-endian; of floats as float64.
	data, err := base64.StdEncoding.DecodeString(encoded)
	switch {
	case err != nil:
		return nil
	case len(data) == m.DType.Size():
		return data
	case len(data) == 8 && isFloat(m.DType):
		out := make([]byte, m.DType.Size())
		m.DType.PutNumber(out, chunk.Float64.Number(data))
		return out
	}
	return nil
}

// alone returns the value in a list of one, as some writers have it, or raw itself.
func alone(raw json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if raw[0] == '[' && decode(raw, &list) == nil && len(list) == 1 {
		return list[0]
	}
	return raw
}

// Number returns a number among the attributes, such as scale_factor. Some writers have numbers as strings.
func (m *Meta) Number(key string) (v float64, ok bool) {
	raw := m.Attrs[key]
	if len(raw) == 0 || string(raw) == "null" {
		return 0, false
	}
	raw = alone(raw)
	if decode(raw, &v) == nil {
		return v, true
	}
	var text string
	if decode(raw, &text) != nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return v, err == nil
}

// FillValue returns the value of cells that were not written, rounded to float64.
func (m *Meta) FillValue() float64 { return m.DType.Number(m.Fill) }

// Text returns a string among the attributes, or "".
func (v jsonObject) Text(key string) string { return strings.TrimSpace(v.text(key)) }

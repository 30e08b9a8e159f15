package arrays

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/format/chunk"
)

// noData returns the values that mark cells without a measurement: those that are declared, and a fill value of NaN.
// Any other fill value is a number like any other: writers put 0 there.
func (m *Meta) noData() []chunk.NoData {
	list := m.declared()
	if fill := m.fillNoData(); *fill.Value != *fill.Value && !slices.ContainsFunc(list, fill.Is) {
		list = append(list, fill)
	}
	return list
}

// fillNoData returns the fill value as nodata.
func (m *Meta) fillNoData() (fill chunk.NoData) {
	fill.Value, fill.Bits = m.DType.NoData(m.Fill)
	return fill
}

// declared returns the values of the attributes _FillValue and missing_value of CF: each may have several. In
// arrays of version 2 that xarray wrote the fill value is _FillValue.
func (m *Meta) declared() (list []chunk.NoData) {
	if m.FillMissing {
		list = append(list, m.fillNoData())
	}
	for _, key := range [...]string{"_FillValue", "missing_value"} {
		for _, raw := range elements(m.Attrs[key]) {
			sample := m.sample(raw)
			if sample == nil || len(list) == chunk.MaxNoData {
				continue
			}
			value, bits := m.DType.NoData(sample)
			made := chunk.NoData{Value: value, Bits: bits}
			if !slices.ContainsFunc(list, made.Is) {
				list = append(list, made)
			}
		}
	}
	return list
}

// physical returns what makes physical values of the cells, as a chunk index has it: scale_factor and add_offset of CF.
func (m *Meta) physical() []chunk.Linear {
	return chunk.Linears([]chunk.Linear{m.linear()})
}

// linear returns scale_factor and add_offset, 1 and 0 where they are missing.
func (m *Meta) linear() chunk.Linear {
	scale, ok := m.Number("scale_factor")
	if !ok {
		scale = 1
	}
	offset, _ := m.Number("add_offset")
	return chunk.Linear{Scale: scale, Offset: offset}
}

// sample returns a value of an attribute as one of the array, or nil. One of the type as stored counts, too.
func (m *Meta) sample(raw json.RawMessage) []byte {
	for _, t := range [...]chunk.DType{m.DType, m.stored} {
		if b, err := ParseFill(raw, t); err == nil {
			return b
		}
	}
	var encoded string
	if Decode(raw, &encoded) != nil {
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

// elements returns the values of an attribute: of a list all, else the one that it is. null has no value.
func elements(raw json.RawMessage) (list []json.RawMessage) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil
	case raw[0] == '[' && Decode(raw, &list) == nil:
		return list
	}
	return []json.RawMessage{raw}
}

// alone returns the value in a list of one, as some writers have it, or raw itself.
func alone(raw json.RawMessage) json.RawMessage {
	if list := elements(raw); len(list) == 1 {
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
	if Decode(raw, &v) == nil {
		return v, true
	}
	var text string
	if Decode(raw, &text) != nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return v, err == nil
}

// FillValue returns the value of cells that were not written, rounded to float64.
func (m *Meta) FillValue() float64 { return m.DType.Number(m.Fill) }

// Text returns a string among the attributes, or "".
func (v Object) Text(key string) string {
	var text string
	if raw := v[key]; len(raw) == 0 || Decode(alone(raw), &text) != nil {
		return ""
	}
	return strings.TrimSpace(text)
}

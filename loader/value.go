package loader

import (
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/catalog"
	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
)

// valueField is a scalar or text column that rides along.
type valueField struct {
	name   string
	column int
	kind   catalog.Kind
}

// dtype returns the tensor's dtype; Invalid for text.
func (v valueField) dtype() chunk.DType {
	switch v.kind {
	case catalog.Int:
		return chunk.Int64
	case catalog.Float:
		return chunk.Float64
	}
	return chunk.Invalid
}

// check refuses a value that its tensor cannot hold: a null integer has no number. A null float is
// NaN, a null text is empty.
func (v valueField) check(val catalog.Value) error {
	if val.Null && v.kind == catalog.Int {
		return fault.New(fault.Corrupt, "column of field "+v.name, fault.NoOffset, "null where an integer is needed")
	}
	return nil
}

// tensor packs the values of a batch's rows, or of all their steps. Rows without a sample are 0, NaN or empty.
func (v valueField) tensor(rows []catalog.Value, rowValid []bool) Tensor {
	valid := rowValid
	if steps := len(rows) / max(len(rowValid), 1); steps > 1 {
		valid = make([]bool, len(rows))
		for i := range valid {
			valid[i] = rowValid[i/steps]
		}
	}
	t := Tensor{Name: v.name, DType: v.dtype(), Axes: []string{"n"}, Shape: []int64{int64(len(rows))}}
	if v.kind == catalog.Text {
		t.Kind = Text
		t.Offsets = binary.LittleEndian.AppendUint64(nil, 0)
		for i, val := range rows {
			if valid[i] && !val.Null {
				t.Data = append(t.Data, val.Text...)
			}
			t.Offsets = binary.LittleEndian.AppendUint64(t.Offsets, uint64(len(t.Data)))
		}
		return t
	}
	t.Data = make([]byte, 0, 8*len(rows))
	for i, val := range rows {
		bits := uint64(val.Int)
		switch {
		case v.kind == catalog.Float && (val.Null || !valid[i]):
			bits = math.Float64bits(math.NaN())
		case v.kind == catalog.Float:
			bits = math.Float64bits(val.Float)
		case !valid[i]:
			bits = 0
		}
		t.Data = binary.LittleEndian.AppendUint64(t.Data, bits)
	}
	return t
}

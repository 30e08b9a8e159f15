package loader

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

// valueField is a metadata column: a field of numbers or strings.
type valueField struct {
	name     string
	column   int
	kind     catalog.Kind     // Int, Float or Text
	to       chunk.DType      // of the tensor; Invalid for strings
	fromSpec bool             // the spec sets the dtype
	classes  map[string]int64 // the values of strings; nil if the column is not one of classes
}

// newValueField compiles a field whose column holds numbers or strings.
func newValueField(f Field, column int, kind catalog.Kind) valueField {
	field := valueField{name: f.Name, column: column, kind: kind}
	numbers := kind != catalog.Text && (f.Kind == spec.NumberField || f.Kind == spec.ArrayField)
	if f.Kind == spec.ClassField { // the numbers of strings
		field.kind, field.classes = catalog.Int, map[string]int64{} // setClasses fills it
	}
	switch field.kind {
	case catalog.Int:
		field.to = chunk.Int64
	case catalog.Float:
		field.to = chunk.Float64
	}
	if (numbers || field.classes != nil) && f.DType != "native" {
		field.to, _ = chunk.ParseDType(f.DType) // Validate has checked the name
		field.fromSpec = numbers
	}
	return field
}

// class returns the number of a string.
func (v valueField) class(val catalog.Value) (catalog.Value, error) {
	number, ok := v.classes[val.Text]
	switch {
	case val.Null || val.Text == "":
		return catalog.Value{}, fault.New(fault.Corrupt, "column of field "+v.name, fault.NoOffset, "no class")
	case !ok:
		return catalog.Value{}, fault.New(fault.Corrupt, "column of field "+v.name, fault.NoOffset,
			"%.64q is not one of the %d classes", val.Text, len(v.classes))
	}
	return catalog.Value{Int: number}, nil
}

// read returns the value of the field in a row. A number that the tensor cannot hold is an error, and so is a string
// that is not a class.
func (v valueField) read(ctx context.Context, t rows.Table, row int64) (catalog.Value, error) {
	val, err := t.Value(ctx, v.column, row)
	if err == nil && v.classes != nil {
		val, err = v.class(val)
	}
	if err == nil && v.kind != catalog.Text {
		_, err = v.bits(val)
	}
	return val, err
}

// bits returns a number as an element of the tensor. A float is rounded to the nearest, ties to
// even, and null is NaN; an integer must be exact. A number that would wrap, be cut or become
// infinite is corrupt, and so is a null in an integer tensor.
func (v valueField) bits(val catalog.Value) (uint64, error) {
	num := v.to.Num()
	bad := func(format string, args ...any) (uint64, error) {
		return 0, fault.New(fault.Corrupt, "column of field "+v.name, fault.NoOffset, format, args...)
	}
	if num.IsFloat() {
		float := val.Float
		switch {
		case val.Null:
			float = math.NaN()
		case v.kind == catalog.Int:
			float = float64(val.Int)
		}
		bits := kernel.FloatBits(num, float)
		if !math.IsInf(float, 0) && infinite(num, bits) {
			return bad("%s is over what %s has", v.text(val), v.to)
		}
		return bits, nil
	}
	whole := val.Int
	switch {
	case val.Null:
		return bad("null where an integer is needed")
	case v.kind == catalog.Float && !(val.Float == math.Trunc(val.Float) && val.Float >= -0x1p63 && val.Float < 0x1p63):
		return bad("%s is not a number of dtype %s", v.text(val), v.to)
	case v.kind == catalog.Float:
		whole = int64(val.Float)
	}
	free := 64 - 8*num.Size() // bits of an int64 that the element lacks
	signed := whole << free >> free
	if num == kernel.U8 || num == kernel.U16 || num == kernel.U32 || num == kernel.U64 {
		signed = int64(uint64(whole) << free >> free)
		if whole < 0 {
			signed = 0
		}
	}
	if signed != whole {
		return bad("%s is not a number of dtype %s", v.text(val), v.to)
	}
	return uint64(whole) << free >> free, nil
}

// infinite reports whether an element of a floating-point type is infinite.
func infinite(t kernel.Num, bits uint64) bool {
	switch t {
	case kernel.F16:
		return bits&0x7fff == 0x7c00
	case kernel.BF16:
		return bits&0x7fff == 0x7f80
	case kernel.F32:
		return bits&0x7fffffff == 0x7f800000
	}
	return false
}

// text formats a number for an error.
func (v valueField) text(val catalog.Value) string {
	if v.kind == catalog.Int {
		return fmt.Sprint(val.Int)
	}
	return fmt.Sprint(val.Float)
}

// tensor packs the values of a batch's rows, or of all their steps. Rows without a sample are 0,
// NaN or empty.
func (v valueField) tensor(rows []catalog.Value, rowValid []bool) Tensor {
	valid := rowValid
	if steps := len(rows) / max(len(rowValid), 1); steps > 1 {
		valid = make([]bool, len(rows))
		for i := range valid {
			valid[i] = rowValid[i/steps]
		}
	}
	tensor := Tensor{Name: v.name, DType: v.to, Axes: []string{"n"}, Shape: []int64{int64(len(rows))}}
	if v.kind == catalog.Text {
		tensor.Kind = Text
		tensor.Offsets = binary.LittleEndian.AppendUint64(nil, 0)
		for i, val := range rows {
			if valid[i] && !val.Null {
				tensor.Data = append(tensor.Data, val.Text...)
			}
			tensor.Offsets = binary.LittleEndian.AppendUint64(tensor.Offsets, uint64(len(tensor.Data)))
		}
		return tensor
	}
	size := v.to.Size()
	tensor.Data = make([]byte, 0, size*len(rows))
	var e [8]byte
	for i, val := range rows {
		if !valid[i] {
			val = catalog.Value{Null: true}
		}
		bits, _ := v.bits(val) // 0 for the null of an integer; the others were checked
		binary.LittleEndian.PutUint64(e[:], bits)
		tensor.Data = append(tensor.Data, e[:size]...)
	}
	return tensor
}

// classSource is one of the sources that have the strings of a field of classes.
type classSource struct {
	table    rows.Table
	source   *Source
	selected bool // the table has only the rows that the source selects
}

// findClasses returns the strings of the column of field number i in all sources, in the order of their bytes.
func findClasses(ctx context.Context, i int, dtype string, sources []classSource) ([]string, error) {
	seen := map[string]bool{}
	limit := spec.ClassLimit(dtype)
	for _, dataset := range sources {
		// Rows that the table lacks would give other numbers to the same strings.
		conditions := len(dataset.source.Where) + len(dataset.source.Bad)
		if dataset.selected && (conditions > 0 || dataset.source.Split.OfRows()) {
			return nil, fault.WithFile(fault.New(fault.Unsupported, "classes", fault.NoOffset,
				"only the selected rows of a container are known: give the classes"), dataset.source.Source)
		}
		for row := range dataset.table.Len() {
			value, err := dataset.table.Value(ctx, i, row)
			switch {
			case err != nil:
				return nil, err
			case value.Null || value.Text == "" || seen[value.Text]:
				continue
			}
			if seen[value.Text] = true; len(seen) > limit {
				return nil, fault.WithFile(fault.New(fault.Limit, "classes", fault.NoOffset,
					"over %d strings, the most for dtype %q", limit, dtype), dataset.source.Source)
			}
		}
	}
	if len(seen) == 0 {
		return nil, fault.New(fault.NotFound, "classes", fault.NoOffset, "no sample has one")
	}
	return slices.Sorted(maps.Keys(seen)), nil
}

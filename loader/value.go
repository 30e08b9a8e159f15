package loader

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

// valueField is a metadata column: a field of numbers or strings.
type valueField struct {
	name     string
	column   int
	holds    catalog.Kind     // of the column
	kind     catalog.Kind     // Int, Float or Text
	to       chunk.DType      // of the tensor; Invalid for strings
	fromSpec bool             // the spec sets the dtype
	packs    bool             // Text of a value is its element of the tensor: columns of several kinds have one
	classes  map[string]int64 // the values of strings; nil if the column is not one of classes
	length   int              // of lists of numbers
	lists    bool             // strings are lists of strings as JSON
	timeless bool             // a sequence has one value
	mayLack  bool             // a null is no error
}

// newValueField compiles a field whose column holds numbers or strings, or lists of these.
func newValueField(f Field, column int, kind catalog.Kind) valueField {
	field := valueField{name: f.Name, column: column, holds: kind, kind: kind.Elem()}
	numbers := field.kind != catalog.Text && f.Traits().Casts
	if f.Kind == spec.ClassField { // the numbers of strings
		field.kind, field.classes = catalog.Int, map[string]int64{} // setClasses fills it
	}
	if kind == catalog.Text|catalog.List && f.Kind == spec.TextField {
		field.holds, field.lists = catalog.Text, true
	}
	field.timeless, field.mayLack = f.Layout == spec.RowLayout, f.MayLack()
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

// className returns the string that stands for a value among classes, "" of none.
func className(val catalog.Value, holds catalog.Kind) string {
	switch {
	case val.Null || val.Float != val.Float:
		return ""
	case holds.Elem() == catalog.Int:
		return strconv.FormatInt(val.Int, 10)
	case holds.Elem() == catalog.Float: // pandas makes floats of integers in a column with a gap
		return strconv.FormatFloat(val.Float+0, 'f', -1, 64)
	}
	return string(val.Text)
}

// class returns the number of a string, or of an integer as a string.
func (v valueField) class(val catalog.Value) (catalog.Value, error) {
	name := className(val, v.holds)
	number, ok := v.classes[name]
	switch {
	case name == "":
		return catalog.Value{}, fault.New(fault.Corrupt, "column of field "+v.name, "no class")
	case !ok:
		return catalog.Value{}, fault.New(fault.Corrupt, "column of field "+v.name,
			"%.64q is not one of the %d classes%s", name, len(v.classes), v.severalIn(name))
	}
	return catalog.Value{Int: number}, nil
}

// severalIn says how a cell that holds several classes becomes a list, or "" of any other.
func (v valueField) severalIn(cell string) string {
	for _, separator := range []string{";", ",", "|", " "} {
		parts := strings.Split(cell, separator)
		unknown := func(part string) bool { _, ok := v.classes[strings.TrimSpace(part)]; return !ok }
		if len(parts) > 1 && !slices.ContainsFunc(parts, unknown) {
			return fmt.Sprintf(": several in a text are classes by split=%q", separator)
		}
	}
	return ""
}

// width returns how many elements a row has: more than one of lists alone.
func (v valueField) width() int {
	switch {
	case !v.holds.IsList():
		return 1
	case v.classes != nil:
		return len(v.classes)
	}
	return v.length
}

// listBytes returns how many bytes a list takes, as it is read and in the tensor; 0 of other values.
func (v valueField) listBytes() int {
	if !v.holds.IsList() {
		return 0
	}
	return 2 * v.width() * v.to.Size()
}

// list returns a list as Text has it in the rows of tensor: its elements, or 1 for each class that it names and 0 for
// the others. Float is NaN if an element is null or NaN.
func (v valueField) list(val catalog.Value) (packed catalog.Value, err error) {
	elements := val.List
	switch {
	case v.classes != nil && val.Null:
		return v.class(catalog.Value{Null: true})
	case v.classes != nil:
		elements = make([]catalog.Value, v.width())
		for _, label := range val.List {
			class, err := v.class(label)
			if err != nil {
				return packed, err
			}
			elements[class.Int].Int = 1
		}
	case val.Null:
		elements = slices.Repeat([]catalog.Value{{Null: true}}, v.width())
	case len(elements) != v.width():
		return packed, fault.New(fault.Corrupt, "column of field "+v.name,
			"a list of %d numbers, and others have %d", len(elements), v.width())
	}
	data := make([]byte, 0, v.width()*v.to.Size())
	for _, element := range elements {
		if data, err = v.append(data, element); err != nil {
			return packed, err
		}
		if element.Null || element.Float != element.Float {
			packed.Float = math.NaN()
		}
	}
	packed.Text = data
	return packed, nil
}

// append appends a number as an element of the tensor.
func (v valueField) append(data []byte, val catalog.Value) ([]byte, error) {
	var element [8]byte
	bits, err := v.bits(val)
	binary.LittleEndian.PutUint64(element[:], bits)
	return append(data, element[:v.to.Size()]...), err
}

// read returns the value of the field in a row. A number that the tensor cannot hold is an error, and so is a string
// that is not a class.
func (v valueField) read(ctx context.Context, t *rows.Table, row int64) (catalog.Value, error) {
	val, err := t.Fields[v.column].Value(ctx, row)
	switch {
	case err != nil || v.mayLack && val.Null:
		return val, err
	case v.lists:
		return v.listOfTexts(val)
	case v.holds.IsList():
		return v.list(val)
	}
	if err == nil && v.classes != nil {
		val, err = v.class(val)
	}
	if err == nil && v.packs {
		val.Text, err = v.append(nil, val)
	} else if err == nil && v.kind != catalog.Text {
		_, err = v.bits(val)
	}
	return val, err
}

// listOfTexts returns a list of strings as a string of JSON. A null list stays null.
func (v valueField) listOfTexts(val catalog.Value) (catalog.Value, error) {
	if val.Null {
		return val, nil
	}
	texts := make([]*string, len(val.List))
	for i, element := range val.List {
		if !element.Null {
			text := string(element.Text)
			texts[i] = &text
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(texts)
	return catalog.Value{Text: bytes.TrimSuffix(out.Bytes(), []byte{'\n'})}, err
}

// bits returns a number as an element of the tensor. A float is rounded to the nearest, ties to
// even, and null is NaN; an integer must be exact. A number that would wrap, be cut or become
// infinite is corrupt, and so is a null in an integer tensor.
func (v valueField) bits(val catalog.Value) (uint64, error) {
	num := v.to.Num()
	bad := func(format string, args ...any) (uint64, error) {
		return 0, fault.New(fault.Corrupt, "column of field "+v.name, format, args...)
	}
	if num.IsFloat() {
		float := val.Number(v.kind)
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
func (v valueField) tensor(rows []catalog.Value, rowValid []bool) batch.Tensor {
	valid := rowValid
	if steps := len(rows) / max(len(rowValid), 1); steps > 1 {
		valid = make([]bool, len(rows))
		for i := range valid {
			valid[i] = rowValid[i/steps]
		}
	}
	tensor := batch.Tensor{Name: v.name, DType: v.to, Axes: []string{"n"}, Shape: []int64{int64(len(rows))}}
	if v.kind == catalog.Text {
		tensor.Kind = batch.Text
		tensor.Offsets = binary.LittleEndian.AppendUint64(nil, 0)
		for i, val := range rows {
			if valid[i] && !val.Null {
				tensor.Data = append(tensor.Data, val.Text...)
			}
			tensor.Offsets = binary.LittleEndian.AppendUint64(tensor.Offsets, uint64(len(tensor.Data)))
		}
		return tensor
	}
	tensor.Data = make([]byte, 0, v.to.Size()*len(rows)*v.width())
	for i, val := range rows {
		if valid[i] && !val.Null && (v.packs || v.holds.IsList()) {
			tensor.Data = append(tensor.Data, val.Text...)
			continue
		}
		if !valid[i] {
			val = catalog.Value{Null: true}
		}
		for range v.width() {
			tensor.Data, _ = v.append(tensor.Data, val) // 0 for the null of an integer; the others were checked
		}
	}
	return tensor
}

// classSource is one of the sources that have the strings of a field of classes.
type classSource struct {
	table  *rows.Table
	source *Source
}

// findClasses returns the strings of the column of field number i in all sources, in the order of their bytes, or its
// integers in their order.
func findClasses(ctx context.Context, i int, dtype string, sources []classSource) ([]string, error) {
	seen := map[string]bool{}
	holds := sources[0].table.Fields[i].Kind
	limit := spec.ClassLimit(dtype, holds)
	for _, source := range sources {
		// Rows that the table lacks would give other numbers to the same strings.
		conditions := len(source.source.Where) + len(source.source.Bad)
		if source.table.Selected && (conditions > 0 || source.source.IDList != "" || source.source.Split.OfRows()) {
			return nil, fault.WithFile(fault.New(fault.Unsupported, "classes",
				"only the selected rows of a container are known: give the classes"), source.source.Source)
		}
		for row := range source.table.N {
			value, err := source.table.Fields[i].Value(ctx, row)
			if err != nil {
				return nil, err
			}
			for _, label := range append(value.List, value) {
				if label.Float != math.Trunc(label.Float) && label.Float == label.Float {
					return nil, fault.WithFile(fault.New(fault.Unsupported, "classes",
						"the column holds %v: floats are classes if they are whole numbers", label.Float),
						source.source.Source)
				}
				if name := className(label, holds); name != "" && label.List == nil {
					seen[name] = true
				}
			}
			if len(seen) > limit {
				return nil, fault.WithFile(fault.New(fault.Limit, "classes",
					"over %d strings, the most for dtype %q", limit, dtype), source.source.Source)
			}
		}
	}
	if len(seen) == 0 {
		return nil, fault.New(fault.NotFound, "classes", "no sample has one")
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b string) int {
		if holds.Elem() == catalog.Text {
			return strings.Compare(a, b)
		}
		x, _ := strconv.ParseInt(a, 10, 64) // which className wrote
		y, _ := strconv.ParseInt(b, 10, 64)
		return cmp.Compare(x, y)
	}), nil
}

package hdf5

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/kernel"
)

// Attribute is an attribute of a group or a dataset.
type Attribute struct {
	Name  string
	Shape []int64 // nil for one value

	file    *file
	typ     *Datatype // nil if the value is too long
	data    []byte    // as it is stored, which takes less than its values
	varying []string  // the elements of variable length
}

const (
	attributePart = "attribute"
	// maxAttribute bounds the bytes of the values of an attribute: those that are read are short.
	maxAttribute = 1 << 20
	// attributeCost is the memory of an attribute beside its name and its elements.
	attributeCost = 150
)

// attributes reads the attributes of an object. It skips those that are Unsupported.
func (w *walk) attributes(h header) (list []Attribute, err error) {
	add := func(b *block) error {
		if len(list) >= maxMessages {
			return tooMany("attributes", maxMessages)
		}
		a, err := w.attribute(b)
		if err == nil {
			list = append(list, a)
		}
		if fault.KindOf(err) == fault.Unsupported {
			return nil
		}
		return err
	}
	for i := range h {
		if h[i].kind != msgAttribute {
			continue
		}
		b, err := w.content(&h[i], attributePart)
		if err == nil {
			err = add(b)
		}
		if err != nil && fault.KindOf(err) != fault.Unsupported {
			return nil, err
		}
	}
	m := h.get(msgAttrInfo)
	if m == nil {
		return list, nil
	}
	heap, tree, err := w.dense(m, 2)
	if err != nil || heap == undefined {
		return list, err
	}
	return list, w.denseObjects(heap, tree, recordAttrName, add)
}

// attribute reads an attribute message.
func (w *walk) attribute(b *block) (a Attribute, err error) {
	version, err := b.version(1, 2, 3)
	if err != nil {
		return a, err
	}
	flags := b.u8() // of version 1 none
	sizes := [...]int{b.u16(), b.u16(), b.u16()}
	if version == 3 {
		b.take(1) // the encoding of the name
	}
	var parts [3][]byte
	for i, n := range sizes {
		if version == 1 {
			n = (n + 7) &^ 7
		}
		parts[i] = b.take(n)
	}
	if b.err != nil {
		return a, b.err
	}
	a.Name, a.file = cString(parts[0]), w.file
	typ, err := w.sharedPart(b, parts[1], msgDatatype, version > 1 && flags&1 != 0)
	if err != nil {
		return a, err
	}
	t, err := w.datatype(typ, 0)
	if err != nil {
		return a, err
	}
	space, err := w.sharedPart(b, parts[2], msgDataspace, version > 1 && flags&2 != 0)
	if err != nil {
		return a, err
	}
	shape, err := w.dataspace(space)
	if err != nil {
		return a, err
	}
	a.Shape = shape.Shape
	count := shape.count(maxAttribute / int64(t.Size))
	cost := attributeCost + int64(len(parts[0])) + max(count, 0)*int64(t.Size)
	if t.Class == Varying {
		cost += elementCost * max(count, 0)
	}
	if err := w.keep(attributePart, b.addr, cost); err != nil || count < 0 {
		return a, err // without a value that is longer than what is read
	}
	a.data = bytes.Clone(b.take(int(count) * t.Size))
	if b.err != nil {
		return a, b.err
	}
	a.typ = t
	if t.Class == Varying && (t.Text || t.Base.isReference(w.file)) {
		a.varying, err = w.later(t, a.data)
		a.data = nil
	}
	return a, err
}

// sharedPart returns the fields of a part of an attribute.
func (w *walk) sharedPart(b *block, data []byte, kind int, isShared bool) (*block, error) {
	part := w.of(b.part, b.addr, data)
	if isShared {
		return w.shared(part, kind)
	}
	return part, nil
}

// Value decodes the elements: a []float64, []int64, []uint64, []bool, []string or [][]uint64, in their order. The last
// one has the addresses of objects that references lead to, of each element. nil if the type is another one.
func (a *Attribute) Value() any {
	t := a.typ
	switch {
	case t == nil:
	case t.Number() != nil:
		return t.Number().numbers(a.data, t.Bool)
	case t.Class == String:
		list := make([]string, 0, len(a.data)/t.Size)
		for element := range slices.Chunk(a.data, t.Size) {
			list = append(list, t.String(element))
		}
		return list
	case t.Class == Varying && t.Text:
		return cStrings(a.varying)
	case t.isReference(a.file):
		list := make([][]uint64, 0, len(a.data)/t.Size)
		for element := range slices.Chunk(a.data, t.Size) {
			list = append(list, []uint64{a.file.of(attributePart, 0, element).offset()})
		}
		return list
	case a.varying != nil:
		list := make([][]uint64, len(a.varying))
		for i, element := range a.varying {
			for b := a.file.of(attributePart, 0, []byte(element)); b.rest() > 0; {
				list[i] = append(list[i], b.offset())
			}
		}
		return list
	}
	return nil
}

// isReference reports whether elements are addresses of objects.
func (t *Datatype) isReference(f *file) bool { return t.Class == Reference && t.Size == f.offsetSize }

// String returns the text of a string of fixed length.
func (t *Datatype) String(b []byte) string {
	if t.Padding == 2 {
		return strings.TrimRight(string(b), " ")
	}
	return cString(b)
}

// numbers decodes numbers.
func (t *Datatype) numbers(data []byte, isBool bool) any {
	n := len(data) / t.Size
	bits := make([]uint64, n)
	for i := range bits {
		bits[i] = t.bits(data[i*t.Size:])
	}
	switch {
	case isBool:
		list := make([]bool, n)
		for i, v := range bits {
			list[i] = v != 0
		}
		return list
	case t.Class == Float:
		list := make([]float64, n)
		for i, v := range bits {
			list[i] = floatOf(v, t.Size)
		}
		return list
	case t.Signed:
		list := make([]int64, n)
		for i, v := range bits {
			shift := 64 - 8*t.Size
			list[i] = int64(v<<shift) >> shift
		}
		return list
	}
	return bits
}

// bits returns the bits of a number.
func (t *Datatype) bits(b []byte) uint64 {
	var buf [8]byte
	if t.Big {
		copy(buf[8-t.Size:], b[:t.Size])
		return binary.BigEndian.Uint64(buf[:])
	}
	copy(buf[:], b[:t.Size])
	return binary.LittleEndian.Uint64(buf[:])
}

// floatOf returns the value of the bits of a float of 2, 4 or 8 bytes.
func floatOf(v uint64, size int) float64 {
	switch size {
	case 8:
		return math.Float64frombits(v)
	case 4:
		return float64(math.Float32frombits(uint32(v)))
	}
	return float64(kernel.Float32FromFloat16(uint16(v)))
}

package hdf5

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/kernel"
)

// Attribute is an attribute of a group or a dataset.
type Attribute struct {
	Name  string
	Shape []int64 // nil for one value
	// Value is a []float64, []int64, []uint64, []bool, []string or [][]uint64, in the order of the elements. The last
	// one has the addresses of objects that references lead to, of each element. nil if the type is another one.
	Value any
}

const (
	attributePart = "attribute"
	// maxAttribute bounds the bytes of the values of an attribute: those that are read are short.
	maxAttribute = 1 << 20
)

// attributes reads the attributes of an object. Attributes of a type that is not read have no
// value.
func (w *walk) attributes(h header) (list []Attribute, err error) {
	add := func(b *block) error {
		if len(list) >= maxMessages {
			return tooMany("attributes", maxMessages)
		}
		a, err := w.attribute(b)
		if err == nil {
			list = append(list, a)
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
	a.Name = cString(parts[0])
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
	if count < 0 {
		return a, nil // longer than what is read
	}
	data := b.take(int(count) * t.Size)
	if b.err != nil {
		return a, b.err
	}
	a.Value, err = w.values(t, data)
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

// values decodes the elements of an attribute, or returns nil.
func (w *walk) values(t *Datatype, data []byte) (any, error) {
	n := len(data) / t.Size
	if number := t.Number(); number != nil {
		return number.numbers(data, t.IsBool()), nil
	}
	switch {
	case t.Class == String:
		list := make([]string, n)
		for i := range list {
			list[i] = t.String(data[i*t.Size : (i+1)*t.Size])
		}
		return list, nil
	case t.Class == Varying && t.Text:
		list := make([]string, n)
		for i := range list {
			b, _, err := w.varying(data[i*t.Size:(i+1)*t.Size], 1)
			if err != nil {
				return nil, err
			}
			list[i] = cString(b)
		}
		return list, nil
	case t.Class == Reference && t.Size == w.offsetSize, t.Class == Varying && t.Base.Class == Reference &&
		t.Base.Size == w.offsetSize:
		list := make([][]uint64, n)
		for i := range list {
			element, count := data[i*t.Size:(i+1)*t.Size], 1
			if t.Class == Varying {
				var err error
				if element, count, err = w.varying(element, t.Base.Size); err != nil {
					return nil, err
				}
			}
			b := w.of(attributePart, 0, element)
			for range count {
				list[i] = append(list[i], b.offset())
			}
		}
		return list, nil
	}
	return nil, nil
}

// varying returns the elements of a value of variable length, and how many there are.
func (w *walk) varying(data []byte, size int) ([]byte, int, error) {
	b := w.of(globalHeapPart, 0, data)
	count := b.u32()
	addr, index := b.offset(), b.u32()
	if b.err != nil || count == 0 || addr == undefined || addr == 0 {
		return nil, 0, b.err
	}
	object, err := w.globalObject(addr, index)
	if err != nil {
		return nil, 0, err
	}
	if uint64(count)*uint64(size) > uint64(len(object)) {
		return nil, 0, corrupt(globalHeapPart, addr, "object %d has %d bytes, %d elements of %d needed", index,
			len(object), count, size)
	}
	// Many values may be one object, and each of them becomes a copy.
	return object[:int(count)*size], int(count), w.spend(globalHeapPart, addr, 4*int64(count)*int64(size))
}

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

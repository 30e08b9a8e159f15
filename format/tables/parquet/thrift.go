package parquet

import (
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cursor"
)

// Types of Thrift's compact protocol, as they stand in field headers and lists.
const (
	tTrue   = 1
	tFalse  = 2
	tByte   = 3
	tI16    = 4
	tI32    = 5
	tI64    = 6
	tDouble = 7
	tBinary = 8
	tList   = 9
	tSet    = 10
	tMap    = 11
	tStruct = 12
)

// maxDepth bounds the nesting of structs, lists and maps, known or skipped. Parquet's own nest 8 deep.
const maxDepth = 24

// thrift reads Thrift's compact protocol from front to back. After the first error every read returns zeros, so
// callers check once. Lists are visited element by element, so a count in the file never sizes an allocation.
type thrift struct {
	b     []byte
	at    int
	base  int64 // offset of b in the file
	part  string
	depth int
	short bool // the error is that b ends early
	err   error
}

func (t *thrift) fail(kind fault.Kind, format string, args ...any) {
	if t.err == nil {
		t.err = fault.At(kind, t.part, t.base+int64(t.at), format, args...)
	}
}

func (t *thrift) endsEarly() {
	if t.err == nil {
		t.short = true
		t.fail(fault.Corrupt, "ends early")
	}
}

func (t *thrift) u8() byte {
	if t.err == nil && t.at >= len(t.b) {
		t.endsEarly()
	}
	if t.err != nil {
		return 0
	}
	t.at++
	return t.b[t.at-1]
}

func (t *thrift) uvarint() uint64 {
	if t.err != nil {
		return 0
	}
	number, size := binary.Uvarint(t.b[t.at:])
	switch {
	case size == 0:
		t.endsEarly()
		return 0
	case size < 0:
		t.fail(fault.Corrupt, "a number of more than 64 bits")
		return 0
	}
	t.at += size
	return number
}

func (t *thrift) i64() int64 { return cursor.Unzigzag(t.uvarint()) }

func (t *thrift) i32() int32 {
	number := t.i64()
	if number < math.MinInt32 || number > math.MaxInt32 {
		t.fail(fault.Corrupt, "%d is not a 32-bit number", number)
		return 0
	}
	return int32(number)
}

// binary returns a slice of the input.
func (t *thrift) binary() []byte {
	size := t.uvarint()
	if t.err == nil && size > uint64(len(t.b)-t.at) {
		t.endsEarly()
	}
	if t.err != nil {
		return nil
	}
	t.at += int(size)
	return t.b[t.at-int(size) : t.at]
}

func (t *thrift) enter() bool {
	if t.depth++; t.depth > maxDepth {
		t.fail(fault.Limit, "nested more than %d deep", maxDepth)
	}
	return t.err == nil
}

// structure calls field for every field of a struct. field reads the value, or skips it with t.skip(typ).
func (t *thrift) structure(field func(id int, typ byte)) {
	if !t.enter() {
		return
	}
	defer func() { t.depth-- }()
	id := 0
	for t.err == nil {
		head := t.u8()
		if head == 0 || t.err != nil {
			return
		}
		if d := int(head >> 4); d != 0 {
			id += d
		} else {
			id = int(t.i64())
		}
		typ := head & 15
		pos := t.at
		field(id, typ)
		if t.err == nil && t.at == pos && typ != tTrue && typ != tFalse {
			t.fail(fault.Corrupt, "a field of type %d", typ)
		}
	}
}

// fields reads a struct. into has what its fields are read into, by their numbers from 1 on: a pointer to an int32 or
// int64, which a field of another type fails; to a bool, a byte or bytes, which ignores one; or a func that gets the
// type, and reads or skips the value. Fields without a target are skipped.
func (t *thrift) fields(into ...any) {
	t.structure(func(id int, typ byte) {
		var target any
		if id >= 1 && id <= len(into) {
			target = into[id-1]
		}
		switch target := target.(type) {
		case *int32:
			if t.want(typ, tI32) {
				*target = t.i32()
			}
		case *int64:
			if t.want(typ, tI64) {
				*target = t.i64()
			}
		case *bool:
			*target = typ == tTrue
			t.skip(typ)
		case *byte:
			if typ != tByte {
				t.skip(typ)
			} else {
				*target = t.u8()
			}
		case *[]byte:
			if typ != tBinary {
				t.skip(typ)
			} else {
				*target = t.binary()
			}
		case func(typ byte):
			target(typ)
		default:
			t.skip(typ)
		}
	})
}

// inside returns a target of fields that reads a struct. It ignores a field of another type.
func (t *thrift) inside(into ...any) func(typ byte) {
	return func(typ byte) {
		if typ == tStruct {
			t.fields(into...)
		} else {
			t.skip(typ)
		}
	}
}

// list calls elem for every element. It fails if the elements are not of the type want.
func (t *thrift) list(want byte, elem func()) {
	count, typ := t.listHead()
	if t.err == nil && typ != want && count > 0 {
		t.fail(fault.Corrupt, "a list of type %d where %d belongs", typ, want)
	}
	if !t.enter() {
		return
	}
	defer func() { t.depth-- }()
	for ; count > 0 && t.err == nil; count-- {
		elem()
	}
}

func (t *thrift) listHead() (n uint64, typ byte) {
	head := t.u8()
	n = uint64(head >> 4)
	if n == 15 {
		n = t.uvarint()
	}
	// An element takes a byte at least, so a greater count is wrong.
	if t.err == nil && n > uint64(len(t.b)-t.at) {
		t.endsEarly()
		n = 0
	}
	return n, head & 15
}

// peekList returns the number of elements of the next list without reading it: at most the number of bytes that are
// left.
func (t *thrift) peekList() int {
	pos := t.at
	count, _ := t.listHead()
	t.at = pos
	return int(count)
}

// want reports whether a field has the type that its number requires, and fails if not.
func (t *thrift) want(typ, want byte) bool {
	if typ == want {
		return true
	}
	t.fail(fault.Corrupt, "a field of type %d where %d belongs", typ, want)
	return false
}

// skip skips a field's value. Booleans have none: their type is their value.
func (t *thrift) skip(typ byte) {
	if typ != tTrue && typ != tFalse {
		t.skipValue(typ)
	}
}

// skipValue skips a value inside a list or map, where a boolean takes a byte.
func (t *thrift) skipValue(typ byte) {
	switch typ {
	case tTrue, tFalse, tByte:
		t.u8()
	case tI16, tI32, tI64:
		t.uvarint()
	case tDouble:
		if t.at += 8; t.at > len(t.b) {
			t.at = len(t.b)
			t.endsEarly()
		}
	case tBinary:
		t.binary()
	case tList, tSet:
		count, elem := t.listHead()
		if !t.enter() {
			return
		}
		for ; count > 0 && t.err == nil; count-- {
			t.skipValue(elem)
		}
		t.depth--
	case tMap:
		t.skipMap()
	case tStruct:
		t.structure(func(_ int, typ byte) { t.skip(typ) })
	default:
		t.fail(fault.Corrupt, "type %d does not exist", typ)
	}
}

func (t *thrift) skipMap() {
	count := t.uvarint()
	if count == 0 || !t.enter() {
		return
	}
	if count > uint64(len(t.b)-t.at) {
		t.endsEarly()
	}
	types := t.u8()
	for ; count > 0 && t.err == nil; count-- {
		t.skipValue(types >> 4)
		t.skipValue(types & 15)
	}
	t.depth--
}

package vector

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/fault"
)

// flatBuffer reads a FlatBuffer whose offsets are not trusted: the tables that flatc generates panic on wrong ones. It
// keeps its first error; later reads return empty values.
type flatBuffer struct {
	b []byte
	// left bounds the bytes of tables and vectors that are still read. A tree has at most the bytes of the
	// buffer; offsets that lead to the same table again and again would make a small file a huge geometry.
	left int
	err  error
}

// flatTable is a table of a flatBuffer: where it is, its size, and where its fields are. It has no fields if it is not
// there.
type flatTable struct {
	at, size int
	fields   []byte
}

// newFlatBuffer returns the reader of a buffer in which each byte is read as often as times says.
func newFlatBuffer(b []byte, times int) *flatBuffer { return &flatBuffer{b: b, left: times * len(b)} }

// fail records an error at an offset of the buffer.
func (f *flatBuffer) fail(at int, says string) {
	if f.err == nil {
		f.err = fault.New(fault.Corrupt, "FlatBuffer", int64(at), "%s", says)
	}
}

// has reports whether n bytes at an offset are in the buffer, and records an error otherwise.
func (f *flatBuffer) has(at, n int) bool {
	if f.err == nil && (at < 0 || at > len(f.b) || n > len(f.b)-at) {
		f.fail(at, "an offset leads out of the buffer")
	}
	return f.err == nil
}

// spend counts bytes that are read.
func (f *flatBuffer) spend(at, n int) bool {
	if f.left -= n; f.left < 0 {
		f.fail(at, "parts are used several times")
	}
	return f.err == nil
}

// follow returns where the offset at a place leads to; 0 after an error.
func (f *flatBuffer) follow(at int) int {
	if !f.has(at, 4) {
		return 0
	}
	return at + int(binary.LittleEndian.Uint32(f.b[at:]))
}

// table returns the table at an offset.
func (f *flatBuffer) table(at int) (t flatTable) {
	if !f.has(at, 4) {
		return t
	}
	v := at - int(int32(binary.LittleEndian.Uint32(f.b[at:])))
	if !f.has(v, 4) {
		return t
	}
	fields, size := int(binary.LittleEndian.Uint16(f.b[v:])), int(binary.LittleEndian.Uint16(f.b[v+2:]))
	if fields < 4 || size < 4 {
		f.fail(v, "a table without a size")
	}
	if !f.has(v, fields) || !f.has(at, size) || !f.spend(at, size) {
		return t
	}
	return flatTable{at, size, f.b[v+4 : v+fields]}
}

// root returns the table of the buffer.
func (f *flatBuffer) root() flatTable { return f.table(f.follow(0)) }

// field returns where field i of a table is, whose n bytes will be read; false if the table lacks it.
func (f *flatBuffer) field(t flatTable, i, n int) (int, bool) {
	if f.err != nil || 2*i+2 > len(t.fields) {
		return 0, false
	}
	off := int(binary.LittleEndian.Uint16(t.fields[2*i:]))
	if off == 0 {
		return 0, false
	}
	if off+n > t.size {
		f.fail(t.at, "a field lies outside of its table")
		return 0, false
	}
	return t.at + off, true
}

// number returns a field of n bytes, or missing if the table lacks it.
func (f *flatBuffer) number(t flatTable, i, n int, missing uint64) (v uint64) {
	pos, ok := f.field(t, i, n)
	if !ok {
		return missing
	}
	for k := range n {
		v |= uint64(f.b[pos+k]) << (8 * k)
	}
	return v
}

// child returns the table that a field leads to.
func (f *flatBuffer) child(t flatTable, i int) (flatTable, bool) {
	pos, ok := f.field(t, i, 4)
	if !ok {
		return flatTable{}, false
	}
	return f.table(f.follow(pos)), f.err == nil
}

// vector returns where the elements of the vector that a field leads to begin, and how many of size bytes it has.
func (f *flatBuffer) vector(t flatTable, i, size int) (at, n int) {
	at, ok := f.field(t, i, 4)
	if !ok {
		return 0, 0
	}
	if at = f.follow(at); !f.has(at, 4) {
		return 0, 0
	}
	n = int(binary.LittleEndian.Uint32(f.b[at:]))
	if at += 4; n > len(f.b)/size || !f.has(at, n*size) || !f.spend(at, n*size) {
		f.fail(at, "a vector is longer than the buffer")
		return 0, 0
	}
	return at, n
}

// bytes returns a vector of bytes, or a string.
func (f *flatBuffer) bytes(t flatTable, i int) []byte {
	pos, n := f.vector(t, i, 1)
	return f.b[pos : pos+n]
}

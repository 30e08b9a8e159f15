package payload

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
)

// reader reads FlatBuffers tables of one header (FlatBuffers "Internals": a table begins with the
// signed distance back to its vtable; the vtable has its own size, the table's size and one 16-bit
// place a field, 0 where the field is absent; references are unsigned distances forward).
//
// The first thing that is wrong is kept in err; from then on everything reads as absent, so that
// callers check once.
type reader struct {
	b []byte // the header, without its size prefix
	// budget is how many bytes may still be read from the header. References may be shared: without
	// it a small header could unfold into a large batch.
	budget int
	err    error
}

func (r *reader) fail(part string, off int, format string, args ...any) {
	if r.err == nil {
		r.err = fault.New(fault.Corrupt, part, int64(off)+sizePrefix, format, args...)
	}
}

// has reports whether n bytes at off lie inside, and fails if not.
func (r *reader) has(part string, off, n int) bool {
	if r.err != nil {
		return false
	}
	if off < 0 || n < 0 || off > len(r.b) || n > len(r.b)-off {
		r.fail(part, off, "%d bytes reach past the header's %d", n, len(r.b))
		return false
	}
	return true
}

// spend takes n bytes from the budget.
func (r *reader) spend(part string, off, n int) bool {
	if n > r.budget {
		r.fail(part, off, "references unfold to more than the header's %d bytes", len(r.b))
		return false
	}
	r.budget -= n
	return true
}

// follow returns the place that the reference at off leads to, or -1.
func (r *reader) follow(part string, off int) int {
	if !r.has(part, off, 4) {
		return -1
	}
	d := binary.LittleEndian.Uint32(r.b[off:])
	if d == 0 || uint64(d) > uint64(len(r.b)-off) {
		r.fail(part, off, "reference of %d bytes leads out of the header", d)
		return -1
	}
	return off + int(d)
}

// table is a checked table: its vtable and its inline fields lie inside the header.
type table struct {
	r      *reader
	part   string
	pos    int // of the table
	size   int // inline bytes
	vtable []byte
}

// table checks the table at pos. The zero table has no fields.
func (r *reader) table(part string, pos int) table {
	if pos < 0 || !r.has(part, pos, 4) {
		return table{r: r, part: part}
	}
	vt := int64(pos) - int64(int32(binary.LittleEndian.Uint32(r.b[pos:])))
	if vt < 0 || vt > int64(len(r.b)) || !r.has(part, int(vt), 4) {
		r.fail(part, pos, "vtable at %d", vt)
		return table{r: r, part: part}
	}
	v := r.b[vt:]
	vsize, size := int(binary.LittleEndian.Uint16(v)), int(binary.LittleEndian.Uint16(v[2:]))
	switch {
	case vsize < 4 || vsize%2 != 0 || vsize > len(v):
		r.fail(part, int(vt), "vtable of %d bytes", vsize)
		return table{r: r, part: part}
	case size < 4:
		r.fail(part, int(vt), "table of %d bytes", size)
		return table{r: r, part: part}
	case !r.has(part, pos, size), !r.spend(part, pos, size):
		return table{r: r, part: part}
	}
	return table{r: r, part: part, pos: pos, size: size, vtable: v[:vsize]}
}

// field returns the place of field id, which has size bytes, or -1 if it is absent.
func (t table) field(id, size int) int {
	offset := 4 + 2*id
	if t.r.err != nil || offset+2 > len(t.vtable) {
		return -1
	}
	o := int(binary.LittleEndian.Uint16(t.vtable[offset:]))
	switch {
	case o == 0:
		return -1
	case o < 4 || o+size > t.size:
		t.r.fail(t.part, t.pos, "field %d at %d of a table of %d bytes", id, o, t.size)
		return -1
	}
	return t.pos + o
}

func (t table) uint8(id int, absent uint8) uint8 {
	if o := t.field(id, 1); o >= 0 {
		return t.r.b[o]
	}
	return absent
}

func (t table) int32(id int) int32 {
	if o := t.field(id, 4); o >= 0 {
		return int32(binary.LittleEndian.Uint32(t.r.b[o:]))
	}
	return 0
}

func (t table) uint64(id int) uint64 {
	if o := t.field(id, 8); o >= 0 {
		return binary.LittleEndian.Uint64(t.r.b[o:])
	}
	return 0
}

func (t table) int64(id int, absent int64) int64 {
	if o := t.field(id, 8); o >= 0 {
		return int64(binary.LittleEndian.Uint64(t.r.b[o:]))
	}
	return absent
}

func (t table) float32(id int) float32 { return math.Float32frombits(uint32(t.int32(id))) }

func (t table) float64(id int) float64 { return math.Float64frombits(t.uint64(id)) }

// vector returns the bytes of field id, a vector of elements of elem bytes, and where they are.
func (t table) vector(id, elem int) (b []byte, at int) {
	o := t.field(id, 4)
	if o < 0 {
		return nil, -1
	}
	p := t.r.follow(t.part, o)
	if p < 0 || !t.r.has(t.part, p, 4) {
		return nil, -1
	}
	n := uint64(binary.LittleEndian.Uint32(t.r.b[p:])) * uint64(elem)
	if n > uint64(len(t.r.b)-p-4) {
		t.r.fail(t.part, p, "vector of %d bytes reaches past the header", n)
		return nil, -1
	}
	if !t.r.spend(t.part, p, int(n)) {
		return nil, -1
	}
	return t.r.b[p+4 : p+4+int(n)], p + 4
}

func (t table) int64s(id int) []int64 {
	data, _ := t.vector(id, 8)
	v := make([]int64, len(data)/8)
	for i := range v {
		v[i] = int64(binary.LittleEndian.Uint64(data[8*i:]))
	}
	return v
}

func (t table) float32s(id int) []float32 {
	data, _ := t.vector(id, 4)
	if len(data) == 0 {
		return nil
	}
	v := make([]float32, len(data)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return v
}

// text returns b, the characters of a string, checked to be UTF-8.
func (t table) text(b []byte, at int) string {
	if !utf8.Valid(b) {
		t.r.fail(t.part, at, "string is not UTF-8")
		return ""
	}
	return string(b)
}

func (t table) string(id int) string {
	return t.text(t.vector(id, 1))
}

// strings returns field id, a vector of strings.
func (t table) strings(id int) []string {
	b, pos := t.vector(id, 4)
	names := make([]string, 0, len(b)/4)
	for i := 0; i < len(b) && t.r.err == nil; i += 4 {
		p := t.r.follow(t.part, pos+i)
		if p < 0 || !t.r.has(t.part, p, 4) {
			break
		}
		n := int64(binary.LittleEndian.Uint32(t.r.b[p:]))
		if n > int64(len(t.r.b)-p-4) || !t.r.spend(t.part, p, int(n)) {
			t.r.fail(t.part, p, "string of %d bytes", n)
			break
		}
		names = append(names, t.text(t.r.b[p+4:p+4+int(n)], p))
	}
	return names
}

// each calls f for every table of field id, a vector of tables.
func (t table) each(id int, part string, f func(i int, t table)) {
	b, pos := t.vector(id, 4)
	for i := 0; i < len(b) && t.r.err == nil; i += 4 {
		e := t.r.table(part, t.r.follow(part, pos+i))
		if t.r.err == nil {
			f(i/4, e)
		}
	}
}

// sub returns field id, a table.
func (t table) sub(id int, part string) (table, bool) {
	o := t.field(id, 4)
	if o < 0 {
		return table{}, false
	}
	s := t.r.table(part, t.r.follow(part, o))
	return s, t.r.err == nil
}

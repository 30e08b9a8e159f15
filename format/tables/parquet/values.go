package parquet

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/cursor"
	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/internal/planes"
)

// Encodings of values. The numbers are Parquet's.
const (
	encPlain           = 0
	encPlainDictionary = 2
	encRLE             = 3
	encDeltaBinary     = 5
	encDeltaLength     = 6
	encDeltaBytes      = 7
	encRLEDictionary   = 8
	encByteStreamSplit = 9
)

// Values are the decoded values of one page. They are immutable.
type Values struct {
	n        int
	typ      Physical
	unsigned bool
	width    int     // bytes of a value; 0 for byte arrays
	at       []int32 // the index of each row's value, -1 if it is null; if at is nil, row i has value i
	full     bool    // at is set, but no row is null

	// Either data holds the values in PLAIN encoding, but each boolean in a byte, or ix holds their indexes in dict.
	data []byte
	offs []uint32 // of byte arrays: the offset of each one's length in data
	dict *Values
	ix   []uint32
}

// newValues returns n values of a column, which are still to be decoded.
func newValues(col *Column, n int) *Values {
	return &Values{n: n, typ: col.Type, unsigned: col.Note.Unsigned, width: col.Size()}
}

func corrupt(format string, args ...any) error {
	return fault.At(fault.Corrupt, "page", 0, format, args...)
}

func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// Depth returns how many lists lie around a value, one inside the other.
func (c *Column) Depth() int { return c.repLevel }

// Size returns the bytes of a PLAIN value, 0 of byte arrays. Booleans are kept as bytes.
func (c *Column) Size() int {
	switch c.Type {
	case Boolean:
		return 1
	case Int32, Float:
		return 4
	case Int64, Double:
		return 8
	case Int96:
		return 12
	case FixedLenByteArray:
		return c.width
	}
	return 0
}

// Len returns the number of rows.
func (v *Values) Len() int { return v.n }

// Cost returns about how many bytes of memory the values take, without their dictionary. 160 is a little more than the
// 136 of the struct.
func (v *Values) Cost() int {
	size := 160 + cap(v.data) + 4*(cap(v.offs)+cap(v.ix))
	if len(v.at) == 0 || &v.at[0] != &noValues[0] {
		size += 4 * cap(v.at)
	}
	return size
}

// Null reports whether row i has no value.
func (v *Values) Null(i int) bool { return v.at != nil && v.at[i] < 0 }

// Raw returns the bytes of row i's value: of a byte array its content, of a number its little-endian bytes. The row
// must have a value, and the caller must not change the slice.
func (v *Values) Raw(i int) []byte {
	if v.at != nil {
		i = int(v.at[i])
	}
	if v.dict != nil {
		return v.dict.Raw(int(v.ix[i]))
	}
	if v.width > 0 {
		return v.data[i*v.width : (i+1)*v.width]
	}
	o := v.offs[i]
	return v.data[o+4 : o+4+le32(v.data[o:])]
}

// int96Micros converts an INT96 to microseconds since 1970, rounded down. An INT96 is the nanoseconds since midnight
// and the number of the Julian day that begins at that day's noon. Days whose microseconds overflow an int64 are
// clamped.
func int96Micros(b []byte) int64 {
	const epoch, furthest = 2440588, 100_000_000 // epoch is the Julian day of 1970-01-01
	nanos, day := int64(binary.LittleEndian.Uint64(b)), int64(int32(le32(b[8:])))-epoch
	day = min(max(day, -furthest), furthest)
	micros := nanos / 1000
	if nanos%1000 < 0 {
		micros--
	}
	return day*86_400_000_000 + micros
}

// Int returns row i's value of a column of booleans or integers. INT96 values are microseconds since 1970. ok is false
// if an unsigned number is above the largest int64.
func (v *Values) Int(i int) (n int64, ok bool) {
	data := v.Raw(i)
	switch len(data) {
	case 1:
		return int64(data[0]), true
	case 4:
		if v.unsigned {
			return int64(le32(data)), true
		}
		return int64(int32(le32(data))), true
	case 12:
		return int96Micros(data), true
	}
	u := binary.LittleEndian.Uint64(data)
	return int64(u), !v.unsigned || u <= math.MaxInt64
}

// Float returns row i's value of a column of floats.
func (v *Values) Float(i int) float64 {
	data := v.Raw(i)
	switch len(data) {
	case 2:
		return float64(kernel.Float32FromFloat16(binary.LittleEndian.Uint16(data)))
	case 4:
		return float64(math.Float32frombits(le32(data)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(data))
}

// HasNulls reports whether any row has no value.
func (v *Values) HasNulls() bool { return v.at != nil && !v.full }

// Numbers reports whether Int reads the values.
func (v *Values) Numbers() bool { return v.typ == Boolean || v.typ == Int32 || v.typ == Int64 }

// AppendNulls appends to dst for each row whether it is null.
func (v *Values) AppendNulls(dst []bool) []bool {
	pos := len(dst)
	dst = append(dst, make([]bool, v.n)...)
	for i, k := range v.at {
		dst[pos+i] = k < 0
	}
	return dst
}

// oneRun reports whether levels begin with a run of n equal ones: pages without nulls do, and are left
// undecoded.
func oneRun(levels []byte, level, n int) bool {
	head, size := binary.Uvarint(levels)
	if size <= 0 || size >= len(levels) || level >= 1<<8 {
		return false
	}
	return head&1 == 0 && head>>1 >= uint64(n) && levels[size] == byte(level)
}

// noValues is what at is in pages without values, which many columns of catalogs have. 32,768 is more than the 20,000
// rows that pyarrow writes to a page.
var noValues = slices.Repeat([]int32{-1}, 1<<15)

// nulls fills v.at from the definition levels and returns the number of values.
func (v *Values) nulls(levels []byte, defLevel int, encoding int32) (there int, err error) {
	if defLevel == 0 {
		return v.n, nil
	}
	if encoding != encRLE {
		return 0, fault.At(fault.Unsupported, "page", 0, "levels in encoding %d", encoding)
	}
	// A page free of nulls is one run, which need not be decoded.
	if oneRun(levels, defLevel, v.n) {
		return v.n, nil
	}
	if oneRun(levels, 0, v.n) && v.n <= len(noValues) {
		v.at = noValues[:v.n]
		return 0, nil
	}
	levelOf, err := hybrid(levels, bits.Len(uint(defLevel)), v.n)
	if err != nil {
		return 0, err
	}
	places := make([]int32, v.n)
	for i, level := range levelOf {
		places[i] = -1
		if int(level) == defLevel {
			places[i] = int32(there)
			there++
		}
	}
	if there < v.n {
		v.at = places
	}
	return there, nil
}

// decode reads n values.
func (v *Values) decode(b []byte, n int, encoding int32, dict *Values) error {
	var err error
	switch encoding {
	case encPlain:
		return v.plain(b, n)
	case encPlainDictionary, encRLEDictionary:
		return v.indexes(b, n, dict)
	case encRLE:
		return v.booleans(b, n)
	case encDeltaBinary:
		if v.typ != Int32 && v.typ != Int64 {
			break
		}
		var numbers []uint64
		if numbers, _, err = deltas(b, n); err == nil {
			v.data = make([]byte, n*v.width)
			for i, x := range numbers {
				cast.PutUint(v.data[i*v.width:], v.width, x)
			}
		}
		return err
	case encDeltaLength, encDeltaBytes:
		if v.typ != ByteArray && v.typ != FixedLenByteArray {
			break
		}
		return v.deltaStrings(b, n, encoding == encDeltaBytes)
	case encByteStreamSplit:
		if v.width < 2 {
			break
		}
		if len(b) != n*v.width {
			return corrupt("%d bytes for %d values", len(b), n)
		}
		v.data = make([]byte, len(b))
		planes.Join(v.data, b, v.width)
		return nil
	}
	return fault.At(fault.Unsupported, "page", 0, "encoding %d of type %d", encoding, v.typ)
}

// plain takes b as n values in encoding PLAIN.
func (v *Values) plain(b []byte, n int) error {
	switch {
	case v.typ == Boolean:
		if len(b) < (n+7)/8 {
			return corrupt("%d bytes for %d booleans", len(b), n)
		}
		v.data = make([]byte, n)
		for i := range v.data {
			v.data[i] = b[i/8] >> (i % 8) & 1
		}
	case v.width > 0:
		if int64(len(b)) < int64(n)*int64(v.width) {
			return corrupt("%d bytes for %d values of %d bytes", len(b), n, v.width)
		}
		v.data = b[:n*v.width]
	default:
		if len(b) < 4*n { // each has a length
			return corrupt("%d bytes for %d byte arrays", len(b), n)
		}
		v.data, v.offs = b, make([]uint32, n)
		pos := 0
		for i := range v.offs {
			if len(b)-pos < 4 || uint64(le32(b[pos:])) > uint64(len(b)-pos-4) {
				return corrupt("value %d of %d reaches past the page", i, n)
			}
			v.offs[i] = uint32(pos)
			pos += 4 + int(le32(b[pos:]))
		}
	}
	return nil
}

// indexes reads the indexes of values in the dictionary.
func (v *Values) indexes(b []byte, n int, dict *Values) error {
	if n == 0 {
		// The dictionary may be missing if a page has no values.
		v.dict = dict
		return nil
	}
	if dict == nil {
		return corrupt("there is no dictionary")
	}
	if len(b) == 0 || b[0] > 32 {
		return corrupt("the dictionary indexes have no bit width")
	}
	indexes, err := hybrid(b[1:], int(b[0]), n)
	if err != nil {
		return err
	}
	for _, i := range indexes {
		if err := indexBelow(i, dict.n); err != nil {
			return err
		}
	}
	v.dict, v.ix = dict, indexes
	return nil
}

// booleans reads encoding RLE, which begins with its length.
func (v *Values) booleans(b []byte, n int) error {
	if v.typ != Boolean {
		return fault.At(fault.Unsupported, "page", 0, "encoding RLE of type %d", v.typ)
	}
	if len(b) < 4 || uint64(le32(b)) > uint64(len(b)-4) {
		return corrupt("booleans without a length")
	}
	flags, err := hybrid(b[4:4+le32(b)], 1, n)
	if err != nil {
		return err
	}
	v.data = make([]byte, n)
	for i, flag := range flags {
		v.data[i] = byte(flag)
	}
	return nil
}

// hybrid decodes n numbers of width bits in the run-length / bit-packed hybrid (Encodings.md, RLE = 3). The caller has
// checked n against maxPageValues.
func hybrid(b []byte, width, n int) ([]uint32, error) {
	out := make([]uint32, 0, n)
	for len(out) < n {
		run, rest, err := nextRun(b, width, len(out), n)
		if err != nil {
			return nil, err
		}
		if run.bits == nil {
			for range run.count {
				out = append(out, run.value)
			}
		} else {
			done := len(out)
			out = out[:done+run.count]
			cursor.Unpack(out[done:], run.bits, width)
		}
		b = rest
	}
	return out, nil
}

// hybridRun is a part of the hybrid: count numbers, at least 1, that all are value, or those in bits.
type hybridRun struct {
	count int
	value uint32
	bits  []byte // nil if all are value
}

// nextRun returns the first run of b, and the bytes after it. done of n numbers stand before it: it has at most the
// rest.
func nextRun(b []byte, width, done, n int) (r hybridRun, rest []byte, err error) {
	head, size := binary.Uvarint(b)
	if size <= 0 {
		return r, nil, corrupt("%d numbers where %d belong", done, n)
	}
	b = b[size:]
	left, bytes := n-done, (width+7)/8
	if head&1 == 0 {
		if head>>1 == 0 || len(b) < bytes {
			return r, nil, corrupt("a run of %d numbers", head>>1)
		}
		for i := range bytes {
			r.value |= uint32(b[i]) << (8 * i)
		}
		if width < 32 && r.value>>width != 0 {
			return r, nil, corrupt("the number %d has more than %d bits", r.value, width)
		}
		r.count = int(min(head>>1, uint64(left)))
		return r, b[bytes:], nil
	}
	groups := head >> 1
	if groups == 0 {
		return r, nil, corrupt("a run of no numbers")
	}
	r.count = left
	if groups < uint64(left+7)/8 {
		r.count = int(groups) * 8
	}
	if len(b) < (r.count*width+7)/8 {
		return r, nil, corrupt("%d numbers of %d bits in %d bytes", r.count, width, len(b))
	}
	// The bits must not be nil, even if width is 0, because nil stands for equal numbers.
	r.bits = slices.Clip(b)
	// A file may name any number of groups: at most 2^40 of 32 bytes count, so the product does not overflow.
	return r, b[min(len(b), int(min(groups, 1<<40))*width):], nil
}

// deltas decodes n numbers in encoding DELTA_BINARY_PACKED and returns the bytes after them.
func deltas(b []byte, n int) ([]uint64, []byte, error) {
	bad := func() ([]uint64, []byte, error) {
		return nil, nil, corrupt("delta-packed numbers end early or are wrong")
	}
	var head [4]uint64
	for i := range head {
		number, size := binary.Uvarint(b)
		if size <= 0 {
			return bad()
		}
		head[i], b = number, b[size:]
	}
	block, minis, total := head[0], head[1], head[2]
	if total != uint64(n) {
		return nil, nil, corrupt("%d delta-packed numbers where %d belong", total, n)
	}
	if n == 0 {
		return nil, b, nil
	}
	blocks := 0 < block && block <= 1<<16 && block%128 == 0
	if !blocks || minis == 0 || block%minis != 0 || block/minis%32 != 0 {
		return nil, nil, corrupt("blocks of %d numbers in %d", block, minis)
	}
	per := int(block / minis)
	value := uint64(cursor.Unzigzag(head[3]))
	out := append(make([]uint64, 0, n), value)
	for len(out) < n {
		minDelta, size := binary.Uvarint(b)
		if size <= 0 || len(b)-size < int(minis) {
			return bad()
		}
		widths := b[size : size+int(minis)]
		b = b[size+int(minis):]
		for _, width := range widths {
			if len(out) == n {
				break
			}
			if width > 64 || len(b) < per*int(width)/8 {
				return bad()
			}
			out = unpackDeltas(out, b, int(width), min(per, n-len(out)), uint64(cursor.Unzigzag(minDelta)))
			b = b[per*int(width)/8:]
		}
	}
	return out, b, nil
}

// unpackDeltas appends count numbers, each its predecessor plus minDelta plus a number of w bits.
func unpackDeltas(out []uint64, b []byte, w, count int, minDelta uint64) []uint64 {
	last := out[len(out)-1]
	for i := range count {
		last += minDelta + cursor.BitsAt(b, i*w, w)
		out = append(out, last)
	}
	return out
}

// deltaStrings converts DELTA_LENGTH_BYTE_ARRAY, or with prefixes DELTA_BYTE_ARRAY, to PLAIN.
func (v *Values) deltaStrings(b []byte, n int, prefixes bool) error {
	var prefix, length []uint64
	var err error
	if prefixes {
		if prefix, b, err = deltas(b, n); err != nil {
			return err
		}
	}
	if length, b, err = deltas(b, n); err != nil {
		return err
	}
	head := 4
	if v.width > 0 {
		head = 0
	} else {
		v.offs = make([]uint32, n)
	}
	var last []byte
	for i := range n {
		var shared uint64
		if prefixes {
			shared = prefix[i]
		}
		if shared > uint64(len(last)) || length[i] > uint64(len(b)) {
			return corrupt("byte array %d of %d reaches past the page", i, n)
		}
		size := int(shared) + int(length[i])
		if v.width > 0 && size != v.width {
			return corrupt("a value of %d bytes where %d belong", size, v.width)
		}
		if len(v.data)+head+size > maxPage {
			return fault.At(fault.Limit, "page", 0, "byte arrays of over %d bytes", maxPage)
		}
		if head > 0 {
			v.offs[i] = uint32(len(v.data))
			v.data = binary.LittleEndian.AppendUint32(v.data, uint32(size))
		}
		start := len(v.data)
		v.data = append(v.data, last[:shared]...)
		v.data = append(v.data, b[:length[i]]...)
		b = b[length[i]:]
		last = v.data[start:]
	}
	return nil
}

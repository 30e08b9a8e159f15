package arrow

import (
	"encoding/binary"
	"io"
	"math"
	"slices"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/cast"
)

// bits returns the width of a number in the stream.
func bits(t tables.Type) int {
	if t.Bits == 0 {
		return 64
	}
	return int(t.Bits)
}

// decimalBits returns the width of a decimal.
func decimalBits(t tables.Type) int {
	if f := t.Stored(); f.Store == tables.Decimals {
		return int(f.Size)
	}
	return 128
}

// coder writes the dictionaries of columns.
type coder struct {
	w       io.Writer
	id      int64
	columns map[*tables.Vector][]int64 // the code of each row
}

// add writes the dictionaries of a column, in the order in which the schema numbers them.
func (c *coder) add(t tables.Type, v *tables.Vector) error {
	switch {
	case t.Stored().Store == tables.Coded:
		return c.code(v)
	case t.Kind == tables.List:
		child, _ := v.Offsets()
		return c.add(*t.Elem, child)
	case t.Kind == tables.Struct:
		for k, f := range t.Fields {
			if err := c.add(f.Type, v.Field(k)); err != nil {
				return err
			}
		}
	}
	return nil
}

// code writes the dictionary of strings or bytes: the values in the order in which rows have them first.
func (c *coder) code(v *tables.Vector) error {
	known, codes := map[string]int64{}, make([]int64, v.Len())
	var data []byte
	offs := []uint32{0}
	for i := range codes {
		if v.Null(i) {
			continue
		}
		text := v.Bytes(i)
		code, ok := known[string(text)]
		if !ok {
			code = int64(len(known))
			known[string(text)] = code
			if data = append(data, text...); len(data) > math.MaxInt32 {
				return errOver(v.Len())
			}
			offs = append(offs, uint32(len(data)))
		}
		codes[i] = code
	}
	dictionary := batch{n: len(known)}
	dictionary.validity(nil, 0, dictionary.n)
	if err := dictionary.addBytes(data, offs); err != nil {
		return err
	}
	if c.columns == nil {
		c.columns = map[*tables.Vector][]int64{}
	}
	c.columns[v] = codes
	c.id++
	return message(c.w, dictionary.message(headerDictionary, c.id-1), dictionary.body)
}

// batch is a record batch that is being built.
type batch struct {
	n     int
	codes map[*tables.Vector][]int64 // of coded columns
	nodes [][2]int64                 // length, nulls
	spans [][2]int64                 // offset, length
	views []int64                    // how many buffers of data each column of views has
	body  [][]byte
	size  int64
}

func (b *batch) buffer(p []byte) {
	b.spans = append(b.spans, [2]int64{b.size, int64(len(p))})
	b.body = append(b.body, p)
	b.size += int64(padded(len(p)))
}

// message returns the metadata of the batch, or of the dictionary id.
func (b *batch) message(kind byte, id int64) []byte {
	builder := flatbuffers.NewBuilder(1024)
	pairs := func(list [][2]int64) flatbuffers.UOffsetT {
		builder.StartVector(16, len(list), 8)
		for i := len(list) - 1; i >= 0; i-- {
			builder.PrependInt64(list[i][1])
			builder.PrependInt64(list[i][0])
		}
		return builder.EndVector(len(list))
	}
	nodes, spans, views := pairs(b.nodes), pairs(b.spans), flatbuffers.UOffsetT(0)
	if b.views != nil {
		builder.StartVector(8, len(b.views), 8)
		for _, n := range slices.Backward(b.views) {
			builder.PrependInt64(n)
		}
		views = builder.EndVector(len(b.views))
	}
	builder.StartObject(5)
	builder.PrependInt64Slot(0, int64(b.n), 0)
	builder.PrependUOffsetTSlot(1, nodes, 0)
	builder.PrependUOffsetTSlot(2, spans, 0)
	builder.PrependUOffsetTSlot(4, views, 0)
	header := builder.EndObject()
	if kind == headerDictionary {
		builder.StartObject(2)
		builder.PrependInt64Slot(0, id, 0)
		builder.PrependUOffsetTSlot(1, header, 0)
		header = builder.EndObject()
	}
	return finish(builder, kind, header, b.size)
}

// add adds rows lo to hi of a column, and the rows of its children that they contain.
func (b *batch) add(t tables.Type, v *tables.Vector, lo, hi int) error {
	if t.Kind == tables.Null {
		b.nodes = append(b.nodes, [2]int64{int64(hi - lo), int64(hi - lo)})
		return nil
	}
	b.validity(v.Nulls(), lo, hi)
	switch t.Kind {
	case tables.Bool:
		ints := v.Ints()
		b.buffer(bitmap(lo, hi, func(i int) bool { return ints[i] != 0 }))
	case tables.Int64, tables.Uint64:
		b.buffer(narrow(v.Ints()[lo:hi], bits(t)))
	case tables.Timestamp, tables.Time:
		b.buffer(times(t, v, lo, hi))
	case tables.Date:
		if t.Stored().Store == tables.Millis {
			millis := make([]int64, hi-lo)
			for i := range millis {
				millis[i] = v.Ints()[lo+i] * 86_400_000
			}
			b.buffer(narrow(millis, 64))
		} else {
			b.buffer(narrow(v.Ints()[lo:hi], 32))
		}
	case tables.Float64:
		b.buffer(floats(v.Floats()[lo:hi], bits(t)))
	case tables.Decimal:
		b.buffer(decimals(v, lo, hi, decimalBits(t)))
	case tables.String, tables.Binary:
		return b.texts(t.Stored(), v, lo, hi)
	case tables.List:
		return b.lists(t, v, lo, hi)
	case tables.Struct:
		for k, f := range t.Fields {
			if err := b.add(f.Type, v.Field(k), lo, hi); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *batch) validity(nulls []bool, lo, hi int) {
	count := int64(0)
	if nulls != nil {
		for _, null := range nulls[lo:hi] {
			if null {
				count++
			}
		}
	}
	b.nodes = append(b.nodes, [2]int64{int64(hi - lo), count})
	if count == 0 {
		b.buffer(nil)
		return
	}
	b.buffer(bitmap(lo, hi, func(i int) bool { return !nulls[i] }))
}

func bitmap(lo, hi int, set func(i int) bool) []byte {
	out := make([]byte, (hi-lo+7)/8)
	for i := lo; i < hi; i++ {
		if set(i) {
			out[(i-lo)/8] |= 1 << ((i - lo) % 8)
		}
	}
	return out
}

// times returns times and timestamps in the unit of their type.
func times(t tables.Type, v *tables.Vector, lo, hi int) []byte {
	unit := unitOf(t)
	if unit == unitMicrosecond {
		return narrow(v.Ints()[lo:hi], 64)
	}
	out := make([]int64, hi-lo)
	for i := range out {
		micros := v.Ints()[lo+i]
		switch {
		// The value of a null may be too large for the unit, so that it stays 0.
		case v.Null(lo + i):
		case unit == unitSecond:
			out[i] = micros / 1_000_000
		case unit == unitMillisecond:
			out[i] = micros / 1000
		default:
			if out[i] = micros * 1000; v.Nanos() != nil {
				out[i] += v.Nanos()[lo+i]
			}
		}
	}
	if t.Kind == tables.Time && unit <= unitMillisecond {
		return narrow(out, 32)
	}
	return narrow(out, 64)
}

// decimals returns integers of 32 to 256 bits.
func decimals(v *tables.Vector, lo, hi, width int) []byte {
	if width <= 64 {
		return narrow(v.Ints()[lo:hi], width)
	}
	low, high := v.Ints(), v.High()
	out := make([]byte, 0, (hi-lo)*width/8)
	for i := lo; i < hi; i++ {
		out = binary.LittleEndian.AppendUint64(out, uint64(low[i]))
		out = binary.LittleEndian.AppendUint64(out, uint64(high[i]))
		for k := 128; k < width; k += 64 {
			out = binary.LittleEndian.AppendUint64(out, uint64(high[i]>>63))
		}
	}
	return out
}

// texts adds strings or bytes.
func (b *batch) texts(f tables.Form, v *tables.Vector, lo, hi int) error {
	if f.Store == tables.Coded {
		codes, ok := b.codes[v]
		if !ok {
			return fault.New(fault.Unsupported, "", fault.NoOffset, "a dictionary in lists in lists of one length, of "+
				"which some are null")
		}
		b.buffer(narrow(codes[lo:hi], int(f.Size)))
		return nil
	}
	data, offs := v.RawRange(lo, hi)
	switch f.Store {
	case tables.LargeText:
		b.buffer(offsets(offs, 64))
		b.buffer(data[offs[0]:offs[len(offs)-1]])
	case tables.TextView:
		return b.addViews(data, offs)
	case tables.FixedBytes, tables.Decimals:
		size := int(f.Size)
		if f.Store == tables.Decimals {
			size = 32
		}
		if (hi-lo)*size-int(offs[hi-lo]-offs[0]) > maxPadding {
			return overPadding(hi - lo)
		}
		out := make([]byte, (hi-lo)*size)
		for i := range hi - lo {
			text, value := data[offs[i]:offs[i+1]], out[i*size:][:size]
			if copy(value, text); f.Store == tables.Decimals && len(text) > 0 {
				slices.Reverse(value[:len(text)]) // Parquet has the highest byte first
				for k := len(text); k < size; k++ {
					value[k] = byte(int8(text[0]) >> 7)
				}
			}
		}
		b.buffer(out)
	default:
		return b.addBytes(data, offs)
	}
	return nil
}

// addViews adds strings of up to 12 bytes in their views, and longer ones in a buffer of data.
func (b *batch) addViews(data []byte, offs []uint32) error {
	const inView = 12
	base, last := offs[0], offs[len(offs)-1]
	if last-base > math.MaxInt32 {
		return errOver(len(offs) - 1)
	}
	out := make([]byte, 0, 16*(len(offs)-1))
	for i := range len(offs) - 1 {
		text := data[offs[i]:offs[i+1]]
		out = binary.LittleEndian.AppendUint32(out, uint32(len(text)))
		if len(text) <= inView {
			out = append(append(out, text...), make([]byte, inView-len(text))...)
			continue
		}
		out = append(append(out, text[:4]...), 0, 0, 0, 0) // of the first buffer
		out = binary.LittleEndian.AppendUint32(out, offs[i]-base)
	}
	b.buffer(out)
	b.buffer(data[base:last])
	b.views = append(b.views, 1)
	return nil
}

// lists adds lists and maps.
func (b *batch) lists(t tables.Type, v *tables.Vector, lo, hi int) error {
	child, offs := v.Offsets()
	offs = offs[lo : hi+1]
	first, end := int(offs[0]), int(offs[hi-lo])
	width := 32
	switch t.Stored().Store {
	case tables.FixedList:
		return b.fixedLists(t, v, lo, hi)
	case tables.LargeList, tables.LargeListView:
		width = 64
	}
	if width == 32 && end-first > math.MaxInt32 {
		return errOver(hi - lo)
	}
	switch t.Stored().Store {
	case tables.ListView, tables.LargeListView:
		sizes := make([]int64, hi-lo)
		for i := range sizes {
			sizes[i] = int64(offs[i+1] - offs[i])
		}
		b.buffer(offsets(offs[:hi-lo], width))
		b.buffer(narrow(sizes, width))
	default:
		b.buffer(offsets(offs, width))
	}
	return b.add(*t.Elem, child, first, end)
}

// fixedLists adds lists of one length. Of a list that is null, the values are null too.
func (b *batch) fixedLists(t tables.Type, v *tables.Vector, lo, hi int) error {
	child, offs := v.Offsets()
	size := int(t.Stored().Size)
	if int(offs[hi]-offs[lo]) == (hi-lo)*size {
		return b.add(*t.Elem, child, int(offs[lo]), int(offs[hi]))
	}
	if (hi-lo)*size-int(offs[hi]-offs[lo]) > maxPadding/padding(*t.Elem) {
		return overPadding(hi - lo)
	}
	elems := make([]int, 0, (hi-lo)*size)
	for i := lo; i < hi; i++ {
		for k := range size {
			if v.Null(i) {
				elems = append(elems, -1)
			} else {
				elems = append(elems, int(offs[i])+k)
			}
		}
	}
	taken, err := child.Take(elems)
	if err != nil {
		return err
	}
	b.take(child, taken, elems)
	return b.add(*t.Elem, taken, 0, len(elems))
}

// take gives the taken values of coded columns their codes.
func (b *batch) take(from, taken *tables.Vector, rows []int) {
	if codes := b.codes[from]; codes != nil {
		ofTaken := make([]int64, len(rows))
		for i, row := range rows {
			if row >= 0 {
				ofTaken[i] = codes[row]
			}
		}
		b.codes[taken] = ofTaken
	}
	if from.Kind() == tables.Struct {
		for k := range from.Type().Fields {
			b.take(from.Field(k), taken.Field(k), rows)
		}
	}
}

// offsets returns offsets shifted so that the first is 0.
func offsets(offs []uint32, width int) []byte {
	if len(offs) > 0 && offs[0] == 0 && width == 32 {
		if p, ok := cast.Bytes(offs); ok {
			return p
		}
	}
	out := make([]byte, 0, len(offs)*width/8)
	for _, offset := range offs {
		if offset -= offs[0]; width == 64 {
			out = binary.LittleEndian.AppendUint64(out, uint64(offset))
		} else {
			out = binary.LittleEndian.AppendUint32(out, offset)
		}
	}
	return out
}

func errOver(rows int) error {
	return fault.New(fault.Limit, "", fault.NoOffset, "over 2 GiB in %d rows", rows)
}

// maxPadding bounds the bytes of nulls in a batch: with values of one size, a few bytes of a file may state any number
// of them.
const maxPadding = 64 << 20

func overPadding(rows int) error {
	return fault.New(fault.Limit, "", fault.NoOffset, "nulls of over %d bytes in %d rows", maxPadding, rows)
}

// padding returns how many bytes of memory a null takes, at most maxPadding+1.
func padding(t tables.Type) int {
	size := 8
	switch form := t.Stored(); {
	case form.Store == tables.FixedBytes:
		size = max(size, int(form.Size))
	case form.Store == tables.FixedList:
		size = max(size, int(form.Size)*padding(*t.Elem))
	case t.Kind == tables.Struct:
		for _, f := range t.Fields {
			size += padding(f.Type)
		}
	}
	return min(size, maxPadding+1)
}

func (b *batch) addBytes(data []byte, offs []uint32) error {
	last := offs[len(offs)-1]
	if last-offs[0] > math.MaxInt32 {
		return errOver(len(offs) - 1)
	}
	b.buffer(offsets(offs, 32))
	b.buffer(data[offs[0]:last])
	return nil
}

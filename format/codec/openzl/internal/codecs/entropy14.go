package codecs

import (
	"math/bits"

	"github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/memory"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/wire"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/fse"
	numbers "github.com/chaski-eo/chaski/internal/kernel"
)

// Up to version 14 the entropy codecs share one format: a tree of blocks, each with its compression and its
// number of elements.

// Kinds of blocks.
const (
	blockHuffman = iota
	blockFSE
	blockConstant
	blockRaw
	blockBits
	blockMulti
)

// maxBlockDepth bounds the tree, because block is recursive and the file is hostile.
const maxBlockDepth = 64

// decodeFSE14 decodes bytes. The header, if there is one, is the number of FSE states.
func decodeFSE14(c *Call) error {
	states := 2
	if len(c.Header) > 0 {
		if states = int(c.Header[0]); len(c.Header) != 1 || states != 2 && states != 4 {
			return c.Corrupt("header % x is not a number of states", c.Header)
		}
	}
	return c.entropy14(1, 1, states)
}

// decodeHuffman14 decodes bytes.
func decodeHuffman14(c *Call) error { return c.entropy14(1, 1, 2) }

// decodeHuffmanFixed14 decodes elements of one or two bytes; before version 11, of any width. The header
// says whether they are coded byte by byte, and their width.
func decodeHuffmanFixed14(c *Call) error {
	header := wire.Cursor{B: c.Header}
	bytewise := header.Byte() != 0
	width := header.Varint()
	widest := uint64(2)
	if c.Version < 11 {
		widest = 1 << 16
	}
	if header.Bad || header.Left() > 0 || width < 1 || width > widest {
		return c.Corrupt("header % x", c.Header)
	}
	if bytewise {
		return c.entropy14(int(width), 1, 2)
	}
	return c.entropy14(int(width), int(width), 2)
}

// entropy14 decodes elements of width bytes, coded as symbols of sym bytes.
func (c *Call) entropy14(width, symbolWidth, states int) error {
	src := c.In[0].Data
	count := 0
	// Two passes: the number of symbols is known only after the walk, and memory is reserved only
	// for symbols that the blocks have.
	if len(src) > 0 {
		counting := entropy14{Call: c, Cursor: wire.Cursor{B: src}, sym: symbolWidth, states: states}
		if count = counting.block(nil, maxBlockDepth); counting.err != nil {
			return counting.err
		}
	}
	if count*symbolWidth%width != 0 {
		return c.Corrupt("%d symbols of %d bytes are not elements of %d", count, symbolWidth, width)
	}
	dst, err := c.Make(0, width, count*symbolWidth/width)
	if err != nil || count == 0 {
		return err
	}
	blocks := entropy14{Call: c, Cursor: wire.Cursor{B: src}, sym: symbolWidth, states: states}
	if got := blocks.block(dst, maxBlockDepth); blocks.err == nil && (got != count || blocks.Left() > 0) {
		return c.Corrupt("%d symbols, %d bytes left", got, blocks.Left())
	}
	return blocks.err
}

// entropy14 walks a tree of blocks. The first fault sets err and ends the walk.
type entropy14 struct {
	*Call
	wire.Cursor
	sym    int
	states int
	err    error
}

func (e *entropy14) fail(format string, args ...any) int {
	if e.err == nil {
		e.err = e.Corrupt(format, args...)
	}
	return 0
}

// block reads one block and returns its number of symbols. It writes them to the front of dst, unless dst is
// nil.
func (e *entropy14) block(dst []byte, depth int) int {
	if e.Left() == 0 || depth == 0 {
		return e.fail("block missing, or too many within one another")
	}
	kind := e.B[e.Off] & 7
	switch kind {
	case blockHuffman, blockFSE:
		return e.coded(dst, kind)
	case blockMulti:
		return e.multi(dst, depth)
	case blockBits:
		nbits := int(e.Byte() >> 3)
		count := e.count(e.Varint(), 0)
		if nbits >= 8*e.sym || !cast.IsWidth(e.sym) {
			return e.fail("symbols of %d bits", nbits)
		}
		src := e.bytes((count*nbits + 7) / 8)
		if out := e.room(dst, count); out != nil {
			if clear(out); nbits > 0 {
				kernel.Bitunpack(out, src, e.sym, nbits)
			}
		}
		return count
	case blockConstant, blockRaw:
		count := e.small()
		size := e.sym
		if kind == blockRaw {
			size *= count
		}
		src := e.bytes(size)
		if out := e.room(dst, count); out != nil {
			numbers.Fill(out, src)
		}
		return count
	}
	return e.fail("block of kind %d", kind)
}

// small reads a number whose lowest four bits are in the first byte of a block.
func (e *entropy14) small() int {
	head := e.Byte()
	if head&0x80 == 0 {
		return int(head >> 3)
	}
	return e.count(e.Varint(), 4) | int(head>>3&15)
}

// count returns v shifted up, or fails if a frame cannot have that many symbols.
func (e *entropy14) count(v uint64, shift int) int {
	if e.Bad || v > uint64(e.w.Memory.Limit())>>shift {
		return e.fail("block of %d symbols", v)
	}
	return int(v) << shift
}

func (e *entropy14) bytes(n int) []byte {
	src := e.Take(n)
	if e.Bad {
		e.fail("block of %d bytes, %d are left", n, e.Left())
	}
	return src
}

// room returns the front of dst with room for n symbols, or nil if there is nothing to write.
func (e *entropy14) room(dst []byte, n int) []byte {
	if e.err != nil || dst == nil || n == 0 {
		return nil
	}
	if n*e.sym > len(dst) {
		e.fail("block of %d symbols too many", n)
		return nil
	}
	return dst[:n*e.sym]
}

func (e *entropy14) multi(dst []byte, depth int) int {
	total := 0
	for blocks := e.small(); blocks > 0 && e.err == nil; blocks-- {
		symbols := e.block(dst, depth-1)
		if symbols == 0 {
			return e.fail("empty block")
		}
		if dst != nil {
			dst = dst[min(symbols*e.sym, len(dst)):]
		}
		total = e.count(uint64(total)+uint64(symbols), 0)
	}
	return total
}

func (e *entropy14) coded(dst []byte, kind byte) int {
	head := e.U16()
	count, size := head>>7&31, head>>12
	if head>>6&1 != 0 {
		count |= e.count(e.Varint(), 5)
		size |= e.count(e.Varint(), 4)
	}
	vector := head>>5&1 != 0
	src := e.bytes(size)
	out := e.room(dst, count)
	if out == nil {
		return count
	}
	ok := false
	switch {
	case kind == blockFSE:
		ok = e.sym == 1 && e.fse(out, src)
	case vector:
		ok = e.vector(out, src)
	case e.sym == 1:
		ok = e.huffman(out, src)
	case e.sym == 2:
		ok = e.huffman16(out, src)
	}
	if !ok {
		return e.fail("block of %d symbols in %d bytes", count, size)
	}
	return count
}

func (e *entropy14) fse(dst, src []byte) bool {
	var norm [256]int16
	symbols, size, ok := fse.Counts(norm[:], src)
	if !ok || !e.w.fse.Build(norm[:symbols]) {
		return false
	}
	got, ok := e.w.fse.Decode(dst, src[size:], e.states)
	return ok && got == len(dst)
}

// huffman decodes a table of weights and four streams.
func (e *entropy14) huffman(dst, src []byte) bool {
	switch {
	case len(src) > len(dst) || len(src) == 0:
		return false
	case len(src) == len(dst):
		copy(dst, src)
		return true
	case len(src) == 1:
		numbers.Fill(dst, src)
		return true
	}
	var weights [256]byte
	symbols, size, ok := e.weights(&weights, src)
	return ok && e.w.huf.Build(weights[:symbols]) && e.w.huf.Decode4(dst, src[size:])
}

// weights reads a table of weights (RFC 8878, 4.2.1). It returns their number and how many bytes of src they
// take.
func (e *entropy14) weights(weights *[256]byte, src []byte) (n, size int, ok bool) {
	if head := int(src[0]); head >= 128 {
		n = head - 127
		size = 1 + (n+1)/2
		if size > len(src) {
			return 0, 0, false
		}
		for i := range n {
			weights[i] = src[1+i/2] >> (4 * (1 - i&1)) & 15
		}
	} else {
		if size = 1 + head; size > len(src) {
			return 0, 0, false
		}
		var norm [256]int16
		symbols, used, ok := fse.Counts(norm[:], src[1:size])
		if !ok || !e.w.fse.Build(norm[:symbols]) || e.w.fse.Log() > 6 {
			return 0, 0, false
		}
		if n, ok = e.w.fse.Decode(weights[:255], src[1+used:size], 2); !ok {
			return 0, 0, false
		}
	}
	// The last weight is not stored, because it follows: it is the one that completes the code.
	sum, ones := 0, 0
	for _, weight := range weights[:n] {
		if weight > kernel.MaxHuffmanBits {
			return 0, 0, false
		}
		sum += 1 << weight >> 1
		if weight == 1 {
			ones++
		}
	}
	if sum == 0 {
		return 0, 0, false
	}
	rest := 1<<bits.Len(uint(sum)) - sum
	if rest&(rest-1) != 0 {
		return 0, 0, false
	}
	weights[n] = byte(bits.Len(uint(rest)))
	if weights[n] == 1 {
		ones++
	}
	return n + 1, size, ones >= 2 && ones&1 == 0
}

// huffman16 decodes two-byte symbols: repeated, as they are, or coded.
func (e *entropy14) huffman16(dst, src []byte) bool {
	cursor := wire.Cursor{B: src}
	switch cursor.Byte() {
	case 2, 1:
		bytes := len(dst)
		if src[0] == 2 {
			bytes = 2
		}
		count := cursor.Varint()
		want := uint64(len(dst) / 2)
		body := cursor.Take(cursor.Left())
		if cursor.Bad || count != want || len(body) != bytes {
			return false
		}
		numbers.Fill(dst, body)
		return true
	case 0:
	default:
		return false
	}
	log, ok := e.table16(&cursor)
	if !ok {
		return false
	}
	streams := 1
	if cursor.Byte() != 0 {
		streams = 4
	}
	return !cursor.Bad && huffman16Streams(dst, cursor.B[cursor.Off:], e.w.wide, log, streams)
}

// table16 reads the weights of a code for two-byte symbols, builds the table in scratch memory, and returns
// the length of the longest code.
func (e *entropy14) table16(cursor *wire.Cursor) (log int, ok bool) {
	log, symbols := int(cursor.Byte()), cursor.U16()+1
	if cursor.Bad {
		return 0, false
	}
	weights, err := e.Scratch(1 << 16)
	if err != nil {
		e.err = err
		return 0, false
	}
	blocks := entropy14{Call: e.Call, Cursor: wire.Cursor{B: cursor.B, Off: cursor.Off}, sym: 1, states: 2}
	if got := blocks.block(weights[:symbols], maxBlockDepth); blocks.err != nil || got != symbols {
		return 0, false
	}
	cursor.Off = blocks.Off
	if longest, ok := kernel.HuffmanLog(weights[:symbols], kernel.MaxHuffman16Bits); !ok || longest != log {
		return 0, false
	}
	e.w.wide = memory.Resize(e.w.wide, 1<<log)
	kernel.BuildHuffman16(e.w.wide, weights[:symbols], log)
	return log, true
}

// Forms of a vectorized Huffman block.
const (
	vectorStored = iota
	vectorConstant
	vectorCoded
)

// vector decodes a block of 32 streams side by side. It begins with its number of symbols (u32) and
// its form.
func (e *entropy14) vector(dst, src []byte) bool {
	cursor := wire.Cursor{B: src}
	symbols, form := cursor.U32(), cursor.Byte()
	if cursor.Bad || int64(symbols)*int64(e.sym) != int64(len(dst)) || e.sym > 2 {
		return false
	}
	switch form {
	case vectorStored, vectorConstant:
		body := cursor.Take(cursor.Left())
		if form == vectorConstant && len(body) != e.sym || form == vectorStored && len(body) != len(dst) {
			return false
		}
		numbers.Fill(dst, body)
		return true
	case vectorCoded:
		log, ok := e.vectorTable(&cursor)
		if !ok {
			return false
		}
		words := cursor.Take(int(cursor.U32()))
		var lanes kernel.HuffmanLanes
		return e.lanes(&lanes, &cursor, len(words)) && kernel.DecodeHuffman32(dst, words, e.w.wide, log, e.sym, &lanes)
	}
	return false
}

// Limits of the table of a vectorized block: the longest code and the largest symbol.
const (
	maxVectorBits   = 13
	maxVectorSymbol = 1<<12 - 1
)

// vectorTable reads the code of a vectorized block and builds its table.
func (e *entropy14) vectorTable(cursor *wire.Cursor) (log int, ok bool) {
	if e.sym == 2 {
		if log, ok = e.table16(cursor); !ok || log > maxVectorBits {
			return 0, false
		}
		for _, entry := range e.w.wide {
			if entry>>16 > maxVectorSymbol {
				return 0, false
			}
		}
		return log, true
	}
	if cursor.Left() == 0 {
		return 0, false
	}
	var weights [256]byte
	symbols, size, ok := e.weights(&weights, cursor.B[cursor.Off:])
	if !ok {
		return 0, false
	}
	cursor.Off += size
	if log, ok = kernel.HuffmanLog(weights[:symbols], kernel.MaxHuffmanBits); !ok {
		return 0, false
	}
	e.w.wide = memory.Resize(e.w.wide, 1<<log)
	kernel.BuildHuffman16(e.w.wide, weights[:symbols], log)
	return log, true
}

// lanes reads the data after the words of a vectorized block of size bytes: for every lane its first bits,
// the offset from which it takes no more words, and the number of its first bits.
func (e *entropy14) lanes(lanes *kernel.HuffmanLanes, cursor *wire.Cursor, size int) bool {
	for i := range lanes.State {
		lanes.State[i] = cursor.U32()
	}
	for i := range lanes.Floor {
		// Only for one byte, because a lane of two-byte symbols that never takes a word stores 0xffffffff.
		if lanes.Floor[i] = cursor.U32(); e.sym == 1 && int64(lanes.Floor[i]) > int64(size) {
			return false
		}
	}
	for i := range lanes.Used {
		lanes.Used[i] = 32 - uint32(cursor.Byte())
		if e.sym == 1 {
			lanes.Used[i] &= 31
		}
		if lanes.Used[i] > 32 || lanes.Used[i] == 32 && lanes.State[i] != 0 {
			return false
		}
		lanes.State[i] <<= lanes.Used[i]
	}
	return !cursor.Bad && cursor.Left() == 0
}

package codecs

import (
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/memory"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/wire"
)

// Codecs of versions up to 12: rolz and fastlz. Both begin with the size of their content, and store their
// streams as blocks of the entropy codecs of that time.

// blocks returns a reader of entropy blocks from c on.
func (c *Call) blocks(src []byte, sym int) *entropy14 {
	return &entropy14{Call: c, Cursor: wire.Cursor{B: src}, sym: sym, states: 2}
}

// next reads one block into a buffer, which the caller releases, and returns its symbols. The walk over the
// block comes first, so its memory is bounded by the limit of the frame.
func (e *entropy14) next() (*memory.Buffer[byte], []byte) {
	start := e.Off
	symbols := e.block(nil, maxBlockDepth)
	if e.err != nil {
		return nil, nil
	}
	if e.err = e.w.Memory.Reserve(symbols * e.sym); e.err != nil {
		return nil, nil
	}
	buf := e.w.Memory.Bytes.Get(symbols * e.sym)
	e.Off = start
	out := buf.Mem[:symbols*e.sym]
	if symbols == 0 {
		e.block(nil, maxBlockDepth)
		return buf, out
	}
	if decoded := e.block(out, maxBlockDepth); e.err == nil && decoded != symbols {
		e.fail("block of %d symbols has %d", symbols, decoded)
	}
	return buf, out
}

// content makes the result, whose size the input begins with, and returns the rest of the input.
func (c *Call) content() (dst, src []byte, err error) {
	in := wire.Cursor{B: c.In[0].Data}
	size := in.U32()
	if in.Bad || size > math.MaxInt32 {
		return nil, nil, c.Corrupt("%d bytes from %d", size, c.In[0].Count)
	}
	dst, err = c.Make(0, 1, int(size))
	return dst, in.B[in.Off:], err
}

// decodeFastLZ decodes LZ77 whose tokens of two bytes say how long literals and match are.
func decodeFastLZ(c *Call) error {
	dst, src, err := c.content()
	if err != nil {
		return err
	}
	blocks := c.blocks(src, 1)
	literalBuf, literals := blocks.next()
	if literalBuf != nil {
		defer c.w.Memory.Bytes.Release(literalBuf)
	}
	if blocks.err != nil {
		return blocks.err
	}
	blocks.sym = 2
	tokenBuf, tokens := blocks.next()
	if tokenBuf != nil {
		defer c.w.Memory.Bytes.Release(tokenBuf)
	}
	if blocks.err != nil {
		return blocks.err
	}
	streams := kernel.FastLZ{Literals: literals, Tokens: tokens}
	streams.Offsets = blocks.Take(blocks.length())
	streams.Extra = blocks.Take(blocks.length())
	if blocks.Bad || blocks.Left() > 0 || !streams.Decode(dst) {
		return c.Corrupt("sequences do not make %d bytes", len(dst))
	}
	return nil
}

// length reads the size of a stream; -1 is too large.
func (e *entropy14) length() int {
	size := e.Varint()
	if size > math.MaxInt32 {
		return -1
	}
	return int(size)
}

// rolzParameters is the only header that the original encoder writes: sizes of the table, shortest matches.
const rolzParameters = "\x02\x0c\x04\x03\x01\x07\x03"

// decodeRolz decodes LZ77 whose matches may be named by their turn after the same two bytes.
func decodeRolz(c *Call) error {
	dst, src, err := c.content()
	if err != nil {
		return err
	}
	if c.w.rolz == nil {
		if err := c.w.Memory.Reserve(rolzTable); err != nil {
			return err
		}
		c.w.rolz = new(rolzCall)
	}
	state := c.w.rolz
	state.entropy14 = *c.blocks(src, 1)
	defer state.release()
	blocks := &state.entropy14
	if parameters := blocks.Take(len(rolzParameters)); string(parameters) != rolzParameters && !blocks.Bad {
		return fault.New(fault.Unsupported, "", "rolz with parameters % x", parameters)
	}
	literals, sequences := blocks.U32(), blocks.U32()
	// A match has at least three bytes.
	if blocks.Bad || uint64(literals)+3*uint64(sequences) > uint64(len(dst)) {
		return c.Corrupt("%d literals and %d matches in %d bytes", literals, sequences, len(dst))
	}
	if err := state.literals(int(literals)); err != nil {
		return err
	}
	if err := state.sequences(int(sequences)); err != nil {
		return err
	}
	if blocks.Left() > 0 || !state.table.Decode(dst, &state.seq, &state.lits) {
		return c.Corrupt("sequences do not make %d bytes", len(dst))
	}
	return nil
}

// rolzTable is the size of kernel.Rolz: 65,536 places of 8 bytes.
const rolzTable = 1 << 19

// rolzCall is what decodeRolz reads, and its table.
type rolzCall struct {
	entropy14
	table   kernel.Rolz
	buffers []*memory.Buffer[byte]
	wide    []*memory.Buffer[uint32]
	lits    kernel.RolzLiterals
	seq     kernel.RolzSequences
	of      [256]int16
	spans   [256][]byte
}

func (r *rolzCall) release() {
	for _, buf := range r.buffers {
		r.w.Memory.Bytes.Release(buf)
	}
	for _, buf := range r.wide {
		r.w.Memory.Lens.Release(buf)
	}
	r.buffers, r.wide = r.buffers[:0], r.wide[:0]
	r.entropy14, r.lits, r.seq = entropy14{}, kernel.RolzLiterals{}, kernel.RolzSequences{}
	clear(r.spans[:])
}

// read reads a block of exactly n symbols.
func (r *rolzCall) read(n int) ([]byte, error) {
	buf, out := r.next()
	if buf != nil {
		r.buffers = append(r.buffers, buf)
	}
	if r.err == nil && len(out) != n {
		r.fail("block of %d symbols, not %d", len(out), n)
	}
	return out, r.err
}

// literals reads the literals: in one block or, after a map of preceding bytes, in one for each cluster.
func (r *rolzCall) literals(n int) error {
	r.lits = kernel.RolzLiterals{Clusters: r.spans[:1], Left: n}
	if n == 0 {
		return nil
	}
	if r.Byte() == 0 {
		out, err := r.read(n)
		r.spans[0] = out
		return err
	}
	clusters := 0
	for i := range r.of {
		r.of[i] = -1
	}
	for i, cluster := range r.Take(int(r.Byte()) + 1) {
		r.of[i] = int16(cluster)
		clusters = max(clusters, int(cluster)+1)
	}
	for cluster := range clusters {
		size := r.U32()
		if r.Bad || uint64(size) > uint64(n) {
			return r.Corrupt("cluster of %d literals, %d are left", size, n)
		}
		out, err := r.read(int(size))
		if err != nil {
			return err
		}
		r.spans[cluster] = out
		n -= int(size)
	}
	r.lits.Clusters, r.lits.Of = r.spans[:max(clusters, 1)], &r.of
	if n > 0 || r.Bad {
		return r.Corrupt("%d literals in no cluster", n)
	}
	return nil
}

// sequences reads the kinds of the matches and their three numbers.
func (r *rolzCall) sequences(n int) error {
	kinds, err := r.read(n)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		if kind >= kernel.RolzKinds {
			return r.Corrupt("match of kind %d", kind)
		}
	}
	r.seq.Kinds = kinds
	for _, list := range []*[]uint32{&r.seq.Literals, &r.seq.Lengths, &r.seq.Matches} {
		if n == 0 {
			continue
		}
		if err := r.w.Memory.Reserve(4 * n); err != nil {
			return err
		}
		buf := r.w.Memory.Lens.Get(n)
		r.wide = append(r.wide, buf)
		*list = buf.Mem[:n]
		if err := r.numbers(*list); err != nil {
			return err
		}
	}
	return nil
}

// numbers reads a number for every sequence.
func (r *rolzCall) numbers(dst []uint32) error {
	size := r.U32()
	var ends [kernel.RolzStates]int
	for i := range ends {
		ends[i] = int(r.U32())
		if i > 0 && ends[i] < ends[i-1] || ends[i] > len(dst) {
			return r.Corrupt("codes of a state end at %d", ends[i])
		}
	}
	if r.Bad || ends[kernel.RolzStates-1] != len(dst) || uint64(size) > uint64(r.Left()) {
		return r.Corrupt("%d codes and %d bytes of bits for %d sequences", ends[kernel.RolzStates-1], size, len(dst))
	}
	bits := r.Take(int(size))
	codes, err := r.Scratch(len(dst))
	if err != nil {
		return err
	}
	start := 0
	for _, end := range ends {
		out, err := r.read(end - start)
		if err != nil {
			return err
		}
		copy(codes[start:end], out)
		start = end
	}
	if !kernel.RolzNumbers(dst, r.seq.Kinds, codes, ends, bits) {
		return r.Corrupt("codes are not those of %d sequences", len(dst))
	}
	return nil
}

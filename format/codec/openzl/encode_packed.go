package openzl

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"
	"github.com/chaski-eo/chaski/internal/planes"
)

// pfor adds a pfor codec. Its header is the count and the width of the numbers, and more.
func (e *Encoder) pfor(at slot, id uint32, more, numbers []byte, width int) {
	head := binary.LittleEndian.AppendUint64(nil, uint64(len(numbers)/width))
	head = append(append(head, byte(width)), more...)
	packed := e.keep(kernel.AppendPfor(e.buffer(kernel.PforBound(len(numbers), width))[:0], numbers, width,
		e.exceptionCost))
	e.store(e.chain(at, id, e.w.header(head...)), packed)
}

// planarZigzag codes the output with planar_zigzag_pfor or planar_zigzag_pivco, each one codec of geozl.
func (e *Encoder) planarZigzag(samples []byte, width, row int) {
	const planes = 1
	residuals := e.buffer(len(samples))
	kernel.PlanarZigzag(residuals, samples, width, row)
	grid := binary.LittleEndian.AppendUint32(nil, uint32(row))
	grid = binary.LittleEndian.AppendUint32(grid, planes)
	if e.graph.end == "pfor" {
		e.pfor(slot{-1, 0}, idPlanarZigzagPfor, grid, residuals, width)
		return
	}
	e.lanes(grid, residuals, width)
}

// pivcoBlock is the size of the blocks of PivCo Huffman, as in the original: a block and the
// symbols that it is merged from nearly fit into a first-level cache of 48 KiB.
const pivcoBlock = 1 << 15

// Modes of a lane of planar_zigzag_pivco.
const (
	lanePivco = 0
	lanePfor  = 1
)

// lanes adds a planar_zigzag_pivco codec: the lowest bytes of all numbers, then the next ones, each lane in PivCo
// Huffman or pfor, whichever is smaller.
func (e *Encoder) lanes(grid, numbers []byte, width int) {
	count := len(numbers) / width
	split := numbers
	if width > 1 {
		split = e.buffer(len(numbers))
		planes.Split(split, numbers, width)
	}
	head := binary.LittleEndian.AppendUint64(nil, uint64(count))
	head = append(append(head, byte(width)), grid...)
	head = binary.LittleEndian.AppendUint32(head, pivcoBlock)
	joined := e.buffer(256 * width)[:0]
	payload := e.buffer(kernel.PforBound(count, 1) * width)[:0]
	mark := e.used
	for plane := range width {
		lane := split[plane*count : (plane+1)*count]
		packed := e.keep(kernel.AppendPfor(e.buffer(kernel.PforBound(count, 1))[:0], lane, 1, e.exceptionCost))
		weights, coded := e.pivcoCode(lane)
		mode := byte(lanePivco)
		// pfor decodes faster, so PivCo Huffman needs to be smaller by 1/64 to be worth it, as FSE does.
		if len(packed) <= len(weights)+len(coded)*65/64 {
			mode, weights, coded = lanePfor, nil, packed
		}
		head = append(head, mode)
		head = binary.LittleEndian.AppendUint16(head, uint16(len(weights)))
		head = binary.LittleEndian.AppendUint32(head, uint32(len(coded)))
		joined, payload = append(joined, weights...), append(payload, coded...)
		e.used = mark // the packed and coded bytes are copied
	}
	e.w.newest = pivcoVersion
	node := e.node(slot{-1, 0}, idPlanarZigzagPivco, e.w.header(head...), 2)
	if len(joined) > 0 {
		e.weights(slot{node, 0}, joined)
	} else {
		e.store(e.chain(slot{node, 0}, idNumToSerial, e.w.header(0)), nil)
	}
	e.store(slot{node, 1}, payload)
}

// pivcoCode codes bytes with PivCo Huffman, and returns the weights of the symbols. If there is but one symbol,
// nothing is left to code.
func (e *Encoder) pivcoCode(content []byte) (weights, coded []byte) {
	counts := kernel.Histogram(content)
	weights = e.buffer(256)[:0]
	if counts[content[0]] == uint32(len(content)) {
		weights = append(weights, make([]byte, content[0])...)
		return append(weights, 1), nil
	}
	lengths, symbols, total := kernel.HuffmanWeights(&counts, maxWrittenBits)
	weights = append(weights, lengths[:symbols]...)
	return weights, e.pivcoBlocks(content, weights, int(total/8))
}

// pivcoBlocks codes bytes, of at least two kinds, with PivCo Huffman. size is about the result's.
func (e *Encoder) pivcoBlocks(content, weights []byte, size int) []byte {
	if e.pivco == nil {
		e.pivco = new(kernel.Pivco)
	}
	e.pivco.Build(weights)
	scratch := e.buffer(2 * min(len(content), pivcoBlock))
	coded := e.buffer(size + pivcoNodeBytes*e.pivco.Inner()*(len(content)/pivcoBlock+1))[:0]
	return e.keep(e.pivco.Append(coded, content, pivcoBlock, scratch))
}

// pivcoNodeBytes is the most that a node takes beside its bits: its number of ones, up to 16 bits, and what
// fills up its last byte.
const pivcoNodeBytes = 3

// pivcoHuffman codes bytes, of at least two kinds, with codec pivco_huffman. bits is about how many they take.
func (e *Encoder) pivcoHuffman(at slot, content, weights []byte, bits uint64) {
	coded := e.pivcoBlocks(content, weights, int(bits/8))
	head := binary.AppendUvarint(nil, uint64(len(content)))
	if len(content) > pivcoBlock {
		head = binary.AppendUvarint(head, pivcoBlock)
	}
	e.w.newest = pivcoVersion
	node := e.node(at, idPivco, e.w.header(head...), 2)
	e.store(slot{node, 1}, coded)
	e.weights(slot{node, 0}, weights)
}

package kernel

import (
	"math/bits"
	"slices"

	"github.com/chaski-eo/chaski/internal/cursor"
)

// pivcoPlace is where a symbol is in the tree: bit l of path says to which child of a node of level l it belongs,
// index is its place among the symbols of its leaf.
type pivcoPlace struct {
	path  uint16
	index uint8
}

// pivcoWriter writes the nodes of one block, lowest bit first.
type pivcoWriter struct {
	cursor.Packer
	p      *Pivco
	places [256]pivcoPlace
}

// Append appends src in blocks, in the form that Decode reads, by the code that was built last. src has only
// symbols of the code, which has at least two. scratch has twice the bytes of a block, or of src.
func (p *Pivco) Append(dst, src []byte, block int, scratch []byte) []byte {
	writer := pivcoWriter{Packer: cursor.Packer{Dst: dst}, p: p}
	writer.place(0, 0, 0)
	for part := range slices.Chunk(src, block) {
		size := copy(scratch, part)
		writer.node(0, 0, scratch[:size], scratch[size:])
	}
	return writer.Bytes()
}

// Inner returns how many nodes of the code built last have children. Each of these says how many ones it has.
func (p *Pivco) Inner() int {
	count := 0
	for _, node := range p.nodes[:p.count] {
		if node.right != 0 {
			count++
		}
	}
	return count
}

// place notes where the symbols below a node are.
func (w *pivcoWriter) place(index, level int, path uint16) {
	node := w.p.nodes[index]
	if node.right == 0 {
		for i, symbol := range w.p.symbols[node.first:][:1<<node.depth] {
			w.places[symbol] = pivcoPlace{path, uint8(i)}
		}
		return
	}
	w.place(index+1, level+1, path)
	w.place(int(node.right), level+1, path|1<<level)
}

// node writes the symbols below a node, and moves those below its left child to the front of src. scratch has room
// for as many.
func (w *pivcoWriter) node(index, level int, src, scratch []byte) {
	node := w.p.nodes[index]
	if node.constant() {
		return
	}
	w.Align()
	if len(src) == 0 {
		return // the nodes below are empty too, and what begins with a byte here does so there
	}
	if node.right == 0 {
		for _, symbol := range src {
			w.Put(uint64(w.places[symbol].index), int(node.depth))
		}
		return
	}
	zeros, ones := 0, 0
	for pos := 0; pos < len(src); pos += 32 {
		part := src[pos:min(pos+32, len(src))]
		var bitmap uint64
		for i, symbol := range part {
			bit := w.places[symbol].path >> level & 1
			src[zeros], scratch[ones] = symbol, symbol // one of these is written over by the next symbol
			zeros += int(1 - bit)
			ones += int(bit)
			bitmap |= uint64(bit) << i
		}
		w.Put(bitmap, len(part))
	}
	w.Put(uint64(ones), bits.Len(uint(len(src))))
	copy(src[zeros:], scratch[:ones])
	w.node(index+1, level+1, src[:zeros], scratch)
	w.node(int(node.right), level+1, src[zeros:], scratch)
}

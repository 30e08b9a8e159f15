package kernel

import (
	"math/bits"
	"slices"
)

// pivcoPlace is where a symbol is in the tree: bit l of path says to which child of a node of level l it belongs,
// index is its place among the symbols of its leaf.
type pivcoPlace struct {
	path  uint16
	index uint8
}

// pivcoWriter writes the nodes of one block, lowest bit first.
type pivcoWriter struct {
	p      *Pivco
	places [256]pivcoPlace
	dst    []byte
	acc    uint64
	held   int // bits in acc, fewer than 8
}

// Append appends src in blocks, in the form that Decode reads, by the code that was built last. src has only
// symbols of the code, which has at least two. scratch has twice the bytes of a block, or of src.
func (p *Pivco) Append(dst, src []byte, block int, scratch []byte) []byte {
	w := pivcoWriter{p: p, dst: dst}
	w.place(0, 0, 0)
	for part := range slices.Chunk(src, block) {
		n := copy(scratch, part)
		w.node(0, 0, scratch[:n], scratch[n:])
	}
	w.align()
	return w.dst
}

// Inner returns how many nodes of the code built last have children. Each of these says how many ones it has.
func (p *Pivco) Inner() int {
	n := 0
	for _, t := range p.nodes[:p.count] {
		if t.right != 0 {
			n++
		}
	}
	return n
}

// place notes where the symbols below a node are.
func (w *pivcoWriter) place(node, level int, path uint16) {
	t := w.p.nodes[node]
	if t.right == 0 {
		for i, s := range w.p.symbols[t.first:][:1<<t.depth] {
			w.places[s] = pivcoPlace{path, uint8(i)}
		}
		return
	}
	w.place(node+1, level+1, path)
	w.place(int(t.right), level+1, path|1<<level)
}

// node writes the symbols below a node, and moves those below its left child to the front of src. scratch has room
// for as many.
func (w *pivcoWriter) node(node, level int, src, scratch []byte) {
	t := w.p.nodes[node]
	if t.constant() {
		return
	}
	w.align()
	if len(src) == 0 {
		return // the nodes below are empty too, and what begins with a byte here does so there
	}
	if t.right == 0 {
		for _, s := range src {
			w.put(uint64(w.places[s].index), int(t.depth))
		}
		return
	}
	zeros, ones := 0, 0
	for pos := 0; pos < len(src); pos += 32 {
		part := src[pos:min(pos+32, len(src))]
		var bitmap uint64
		for i, s := range part {
			bit := w.places[s].path >> level & 1
			src[zeros], scratch[ones] = s, s // one of these is written over by the next symbol
			zeros += int(1 - bit)
			ones += int(bit)
			bitmap |= uint64(bit) << i
		}
		w.put(bitmap, len(part))
	}
	w.put(uint64(ones), bits.Len(uint(len(src))))
	copy(src[zeros:], scratch[:ones])
	w.node(node+1, level+1, src[:zeros], scratch)
	w.node(int(t.right), level+1, src[zeros:], scratch)
}

// put adds the n lowest bits of v, which has no higher ones, n <= 32.
func (w *pivcoWriter) put(v uint64, n int) {
	w.acc |= v << w.held
	for w.held += n; w.held >= 8; w.held -= 8 {
		w.dst = append(w.dst, byte(w.acc))
		w.acc >>= 8
	}
}

// align fills up the last byte with zeros.
func (w *pivcoWriter) align() {
	if w.held > 0 {
		w.dst = append(w.dst, byte(w.acc))
		w.acc, w.held = 0, 0
	}
}

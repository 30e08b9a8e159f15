package kernel

import (
	"encoding/binary"
	"math/bits"
)

// Limits of PivCo Huffman.
const (
	MaxPivcoBlock = 1 << 30
	maxPivcoBits  = 12
	// pivcoSlack is how far the loops read past the bytes of a child: one vector of 64 bytes.
	pivcoSlack = 64
)

// PivcoLoops names a set of loops that merge, fill and look up the symbols of nodes.
type PivcoLoops uint8

// The sets of loops. Each is faster than the one before it.
const (
	PivcoGo     PivcoLoops = iota // for all processors
	PivcoAVX2                     // amd64 with AVX2 and POPCNT, spreading bytes with VPSHUFB
	PivcoAVX512                   // amd64 with AVX-512 F, BW, VBMI and VBMI2, spreading bytes with VPEXPANDB
)

// String returns the name of the loops: go, avx2 or avx512.
func (l PivcoLoops) String() string { return [...]string{"go", "avx2", "avx512"}[l] }

// PivcoHere returns the loops that this process uses.
func PivcoHere() PivcoLoops { return pivcoLoops }

// pivcoNode is a node of the code tree. The left child of a node is the one after it.
type pivcoNode struct {
	right uint16 // the right child; 0 for a leaf
	first uint8  // the first of the leaf's 1<<depth symbols
	depth uint8  // how many bits choose among them
}

// Pivco decodes PivCo Huffman: every node of the tree has one bit per symbol below it, which says whether
// the symbol is below the left or the right child. Nodes are stored in pre-order, and a node has
// the symbols of its children, merged by its bits.
type Pivco struct {
	nodes   [2 * 256]pivcoNode
	symbols [256]byte // by leaf, from left to right
	sorted  [256]byte // by weight, while the tree is built
	count   int       // nodes
	src     []byte
	pos     int // bits of src that are read
}

// pivcoLeaf is a leaf while the tree is built.
type pivcoLeaf struct {
	symbols []byte
	length  int
}

// Build builds the tree from the weights of the symbols, as HuffmanTable.Build has them. It reports whether
// they are a complete code of at most 12 bits. A single symbol is complete, with a code of no bits.
//
// The 1<<k last symbols of one weight become one leaf, as long as more than two symbols have that weight and k
// is as large as possible. Such a leaf stands k levels higher, after the existing leaves of that level.
func (p *Pivco) Build(weights []byte) bool {
	var sum, used int
	var symbols [maxPivcoBits + 1][]byte // symbols by weight
	if len(weights) > len(p.sorted) {
		return false
	}
	var counts [maxPivcoBits + 1]int
	for _, weight := range weights {
		if weight > maxPivcoBits {
			return false
		}
		sum += 1 << weight >> 1
		counts[weight]++
	}
	log := bits.Len(uint(sum)) - 1
	if sum == 0 || sum&(sum-1) != 0 || log > maxPivcoBits {
		return false
	}
	for weight := 1; weight <= maxPivcoBits; weight++ {
		symbols[weight] = p.sorted[used : used+counts[weight]]
		used += counts[weight]
	}
	var next [maxPivcoBits + 1]int
	for symbol, weight := range weights {
		if weight > 0 {
			symbols[weight][next[weight]] = byte(symbol)
			next[weight]++
		}
	}
	p.lay(&symbols, log)
	return true
}

// lay groups the symbols of each weight into leaves, and builds the tree of them.
func (p *Pivco) lay(symbols *[maxPivcoBits + 1][]byte, log int) {
	// A weight sends at most one leaf to each higher one.
	var flat [maxPivcoBits + 2][maxPivcoBits][]byte
	var flats [maxPivcoBits + 2]int
	for weight := min(log, maxPivcoBits); weight > 0; weight-- {
		for len(symbols[weight]) > 2 {
			depth := bits.Len(uint(len(symbols[weight]))) - 1
			start := len(symbols[weight]) - 1<<depth
			flat[weight+depth][flats[weight+depth]] = symbols[weight][start:]
			flats[weight+depth]++
			symbols[weight] = symbols[weight][:start]
		}
	}
	var leaves [256]pivcoLeaf
	count := 0
	for weight := log + 1; weight > 0; weight-- {
		if weight <= maxPivcoBits {
			for i := range symbols[weight] {
				leaves[count] = pivcoLeaf{symbols[weight][i : i+1], log + 1 - weight}
				count++
			}
		}
		for _, group := range flat[weight][:flats[weight]] {
			leaves[count] = pivcoLeaf{group, log + 1 - weight}
			count++
		}
	}
	p.count = 0
	p.grow(leaves[:count], 0, 0)
}

// grow appends the subtree at level whose leaves come first in leaves, and returns how many leaves it has.
// first is the number of symbols before it. Lengths do not fall from one leaf to the next.
func (p *Pivco) grow(leaves []pivcoLeaf, level, first int) int {
	node := &p.nodes[p.count]
	p.count++
	if leaf := leaves[0]; leaf.length == level {
		*node = pivcoNode{first: uint8(first), depth: uint8(bits.Len(uint(len(leaf.symbols))) - 1)}
		copy(p.symbols[first:], leaf.symbols)
		return 1
	}
	child := p.count
	leftLeaves := p.grow(leaves, level+1, first)
	after := first
	for _, leaf := range leaves[:leftLeaves] {
		after += len(leaf.symbols)
	}
	right := uint16(p.count)
	total := leftLeaves + p.grow(leaves[leftLeaves:], level+1, after)
	*node = pivcoNode{right: right}
	if p.nodes[child].constant() && p.nodes[right].constant() {
		// Two symbols are a leaf of one bit: the bits are the same.
		p.count = child
		*node = pivcoNode{first: uint8(first), depth: 1}
	}
	return total
}

// constant reports whether the node is a single symbol, which takes no bits.
func (n pivcoNode) constant() bool { return n.right == 0 && n.depth == 0 }

// Constant returns the symbol of a code that has no other.
func (p *Pivco) Constant() (byte, bool) { return p.symbols[0], p.nodes[0].constant() }

// Scratch returns how many bytes Decode takes as scratch memory.
func (p *Pivco) Scratch(n, block int) int { return 2 * (min(n, block) + pivcoSlack) }

// Decode fills dst, block by block, from src. It reports whether that takes exactly the bytes of src. The
// code has at least two symbols, and scratch has the size that Scratch returns.
func (p *Pivco) Decode(dst, src []byte, block int, scratch []byte) bool {
	half := len(scratch) / 2
	p.src, p.pos = src, 0
	ok := true
	for len(dst) > 0 && ok {
		size := min(block, len(dst))
		ok = p.decode(0, dst[:size], scratch[:half], scratch[half:])
		dst = dst[size:]
	}
	p.src = nil
	return ok && (p.pos+7)/8 == len(src)
}

// align skips the rest of a byte.
func (p *Pivco) align() { p.pos = (p.pos + 7) &^ 7 }

// bitmap returns the bytes that hold the next n bits, which begin with a byte.
func (p *Pivco) bitmap(n int) ([]byte, bool) {
	p.align()
	offset, size := p.pos/8, (n+7)/8
	if size > len(p.src)-offset {
		return nil, false
	}
	p.pos += n
	return p.src[offset : offset+size], true
}

// number reads n bits, n <= 31.
func (p *Pivco) number(n int) (int, bool) {
	if p.pos+n > 8*len(p.src) {
		return 0, false
	}
	value := Word(p.src[p.pos/8:]) >> (p.pos % 8)
	p.pos += n
	return int(value & (1<<n - 1)), true
}

// Word returns the first 8 bytes of src, zeros where src is shorter.
func Word(src []byte) uint64 {
	if len(src) >= 8 {
		return binary.LittleEndian.Uint64(src)
	}
	var word uint64
	for i, value := range src {
		word |= uint64(value) << (8 * i)
	}
	return word
}

// decode decodes the symbols below node index to out. Its children are decoded to the front of a, and theirs to b.
// Both have at least len(out)+pivcoSlack bytes. out may be part of b, since it is written last.
func (p *Pivco) decode(index int, out, a, b []byte) bool {
	if len(out) == 0 {
		// All bitmaps below are empty, and every one begins with a byte.
		p.align()
		return true
	}
	node := p.nodes[index]
	if node.right == 0 {
		bitmap, ok := p.bitmap(len(out) * int(node.depth))
		if ok {
			pivcoFlat(out, bitmap, int(node.depth), p.symbols[node.first:])
		}
		return ok
	}
	bitmap, ok := p.bitmap(len(out))
	if !ok {
		return false
	}
	ones, ok := p.number(bits.Len(uint(len(out))))
	if !ok || ones != pivcoOnes(bitmap, len(out)) {
		return false
	}
	left, right := p.nodes[index+1], p.nodes[node.right]
	zeros := len(out) - ones
	if !left.constant() && !p.decode(index+1, a[:zeros], b, a) {
		return false
	}
	if !right.constant() && !p.decode(int(node.right), a[zeros:len(out)], b, a[zeros:]) {
		return false
	}
	switch {
	case left.constant():
		pivcoFill(out, a[zeros:], bitmap, p.symbols[left.first], 0)
	case right.constant():
		pivcoFill(out, a, bitmap, p.symbols[right.first], ^uint64(0))
	default:
		pivcoMerge(out, a, a[zeros:], bitmap)
	}
	return true
}

// pivcoOnes counts the ones among the first n bits of bitmap, which has exactly the bytes for them.
func pivcoOnes(bitmap []byte, n int) int {
	ones := 0
	for ; n >= 64; n -= 64 {
		ones += bits.OnesCount64(binary.LittleEndian.Uint64(bitmap))
		bitmap = bitmap[8:]
	}
	return ones + bits.OnesCount64(Word(bitmap)&(1<<n-1))
}

// pivcoMergeGo fills out with bytes of ones where bitmap has a one, and of zeros elsewhere. Both have as many
// bytes as that takes.
func pivcoMergeGo(out, zeros, ones, bitmap []byte) {
	var source [2]int
	in := [2][]byte{zeros, ones}
	for i := range out {
		bit := bitmap[i>>3] >> (i & 7) & 1
		out[i] = in[bit][source[bit]]
		source[bit]++
	}
}

// pivcoFillGo fills out with symbol where a bit of bitmap equals the lowest of invert, and with the bytes of in
// elsewhere.
func pivcoFillGo(out, in, bitmap []byte, symbol byte, invert uint64) {
	pos := 0
	for i := range out {
		if (bitmap[i>>3]>>(i&7)^byte(invert))&1 == 0 {
			out[i] = symbol
			continue
		}
		out[i] = in[pos]
		pos++
	}
}

// pivcoFlatGo fills out with symbols. depth bits of bitmap choose each one.
func pivcoFlatGo(out, bitmap []byte, depth int, symbols []byte) {
	symbols = symbols[:1<<depth]
	var acc uint64
	held, pos := 0, 0
	for i := range out {
		if held < depth {
			acc |= uint64(bitmap[pos]) << held
			held, pos = held+8, pos+1
		}
		out[i] = symbols[acc&(1<<depth-1)]
		acc >>= depth
		held -= depth
	}
}

package hdf5

import "math/bits"

const btree2Part = "version 2 B-tree"

// Types of the records of version 2 B-trees.
const (
	recordLinkName  = 5
	recordAttrName  = 8
	recordChunk     = 10 // without filters
	recordFiltered  = 11
	btree2NodeFront = 4 + 1 + 1 + 4 // signature, version, type and checksum
)

// btree2 is the header of a version 2 B-tree.
type btree2 struct {
	w          *walk
	kind       byte
	nodeSize   int
	recordSize int
	// levels are the nodes at each level, the leaves first.
	levels []btree2Level
	visit  func(record *block) error
}

// btree2Level is what nodes at one level have.
type btree2Level struct {
	most      int // records of a node
	all       uint64
	countSize int // bytes of the number of all records below a node
	pointer   int // bytes of a pointer to a child
}

// encodedSize returns the bytes of the number n.
func encodedSize(n uint64) int { return (bits.Len64(max(n, 1))-1)/8 + 1 }

// btree2 visits the records of a version 2 B-tree in their order.
func (w *walk) btree2(addr uint64, kind byte, visit func(record *block) error) error {
	b, err := w.checkedBlock(btree2Part, addr, uint64(16+w.offsetSize+2+w.lengthSize+4), "BTHD", 0)
	if err != nil {
		return err
	}
	tree := &btree2{w: w, kind: b.u8(), nodeSize: int(b.u32()), recordSize: b.u16(), visit: visit}
	depth := b.u16()
	b.take(2) // when nodes are split and merged
	root, count := b.offset(), b.u16()
	switch {
	case b.err != nil:
		return b.err
	case tree.kind != kind:
		return b.fail("records of type %d, not %d", tree.kind, kind)
	case depth > maxDepth || tree.recordSize < 1 || tree.nodeSize > maxBlock:
		return b.fail("%d levels of nodes of %d bytes, with records of %d", depth, tree.nodeSize, tree.recordSize)
	case count == 0:
		return nil
	}
	for level := range depth + 1 {
		tree.addLevel(level)
		if tree.levels[level].most < 1 {
			return b.fail("nodes of %d bytes have no room for records of %d", tree.nodeSize, tree.recordSize)
		}
	}
	return tree.node(root, depth, count)
}

// addLevel computes what the nodes of the next level have.
func (t *btree2) addLevel(level int) {
	room := t.nodeSize - btree2NodeFront
	if level == 0 {
		records := room / t.recordSize
		t.levels = append(t.levels, btree2Level{most: records, all: uint64(max(records, 0))})
		return
	}
	below := t.levels[level-1]
	pointer := t.w.offsetSize + encodedSize(uint64(t.levels[0].most)) + below.countSize
	records := (room - pointer) / (t.recordSize + pointer)
	high, total := bits.Mul64(uint64(max(records, 0)+1), below.all)
	if high > 0 || total > 1<<62 {
		total = 1 << 62
	}
	total += uint64(max(records, 0))
	t.levels = append(t.levels, btree2Level{most: records, all: total, countSize: encodedSize(total), pointer: pointer})
}

// node visits the records of a node and of those below it.
func (t *btree2) node(addr uint64, level, count int) error {
	limits := t.levels[level]
	if count > limits.most {
		return corrupt(btree2Part, addr, "a node of %d records, at most %d", count, limits.most)
	}
	// The checksum follows the records and pointers, and the rest of the node is not used.
	size, signature := btree2NodeFront+count*t.recordSize, "BTLF"
	if level > 0 {
		size, signature = size+(count+1)*limits.pointer, "BTIN"
	}
	b, err := t.w.checkedBlock(btree2Part, addr, uint64(size), signature, 0)
	if err != nil {
		return err
	}
	if kind := b.u8(); kind != t.kind {
		return b.fail("records of type %d, not %d", kind, t.kind)
	}
	records := b.take(count * t.recordSize)
	for i := range count + 1 {
		if level > 0 {
			child, below := b.offset(), int(b.uint(encodedSize(uint64(t.levels[0].most))))
			b.take(t.levels[level-1].countSize)
			if b.err != nil {
				return b.err
			}
			if err := t.node(child, level-1, below); err != nil {
				return err
			}
		}
		if i < count {
			record := records[i*t.recordSize : (i+1)*t.recordSize]
			if err := t.visit(t.w.of(btree2Part, addr, record)); err != nil {
				return err
			}
		}
	}
	return b.err
}

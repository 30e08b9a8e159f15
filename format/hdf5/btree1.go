package hdf5

const btree1Part = "B-tree"

// btree1 visits the leaves of a version 1 B-tree. keySize is the size of its keys, and kind its type: 0 of groups, 1 of
// chunks. visit gets the key before each child of a leaf.
func (w *walk) btree1(addr uint64, kind byte, keySize int, visit func(key *block, child uint64) error) error {
	return w.btree1Node(addr, kind, keySize, -1, visit)
}

// btree1Node visits a node. level is where it lies, -1 for the root.
func (w *walk) btree1Node(addr uint64, kind byte, keySize, level int, visit func(*block, uint64) error) error {
	front := 8 + 2*w.offsetSize
	b, err := w.signedBlock(btree1Part, addr, uint64(front), "TREE")
	if err != nil {
		return err
	}
	typ, found, count := b.u8(), int(b.u8()), b.u16()
	switch {
	case typ != kind:
		return b.fail("type %d, not %d", typ, kind)
	case level >= 0 && found != level || found > maxDepth:
		return b.fail("level %d below level %d", found, level+1)
	}
	// The last key of a node may be cut off in files of old writers, and says nothing.
	node, err := w.block(btree1Part, addr+uint64(front), uint64(count)*uint64(keySize+w.offsetSize))
	if err != nil {
		return err
	}
	for range count {
		key := w.of(btree1Part, node.addr+uint64(node.pos), node.take(keySize))
		child := node.offset()
		if found > 0 {
			err = w.btree1Node(child, kind, keySize, found-1, visit)
		} else {
			err = visit(key, child)
		}
		if err != nil {
			return err
		}
	}
	return node.err
}

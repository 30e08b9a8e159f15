package hdf5

import (
	"bytes"
	"errors"

	"github.com/chaski-eo/chaski/fault"
)

const (
	groupPart = "group"
	linkPart  = "link"
	linkCost  = 72 // the memory of a link beside its texts
)

// Link is an entry of a group.
type link struct {
	name string
	addr uint64 // of the object header, undefined for others than hard links
	soft string // the path of a soft link
	out  string // what leads out of the file
}

// links returns the links of a group.
func (w *walk) links(h header) (list []link, err error) {
	add := func(l link, err error) error {
		if err == nil {
			list = append(list, l)
			err = w.keep(linkPart, l.addr, linkCost+int64(len(l.name)+len(l.soft)))
		}
		return err
	}
	if m := h.get(msgSymbolTable); m != nil {
		b, err := w.content(m, groupPart)
		if err != nil {
			return nil, err
		}
		tree, heap := b.offset(), b.offset()
		if b.err != nil {
			return nil, b.err
		}
		return list, w.oldGroup(tree, heap, func(l link) error { return add(l, nil) })
	}
	for i := range h {
		if h[i].kind != msgLink {
			continue
		}
		b, err := w.content(&h[i], linkPart)
		if err != nil {
			return nil, err
		}
		if err := add(w.link(b)); err != nil {
			return nil, err
		}
	}
	m := h.get(msgLinkInfo)
	if m == nil {
		return list, nil
	}
	heap, tree, err := w.dense(m, 8)
	if err != nil || heap == undefined {
		return list, err
	}
	return list, w.denseObjects(heap, tree, recordLinkName, func(b *block) error { return add(w.link(b)) })
}

// dense returns the addresses of the fractal heap and the B-tree of dense links or attributes, by the message that says
// them; order is the size of the order of creation that may come before.
func (w *walk) dense(m *message, order int) (heap, tree uint64, err error) {
	b, err := w.content(m, groupPart)
	if err != nil {
		return 0, 0, err
	}
	if _, err := b.version(0); err != nil {
		return 0, 0, err
	}
	if b.u8()&1 != 0 {
		b.take(order)
	}
	heap, tree = b.offset(), b.offset()
	return heap, tree, b.err
}

// denseObjects visits the objects of a fractal heap that a B-tree has.
func (w *walk) denseObjects(heap, tree uint64, kind byte, visit func(*block) error) error {
	h, err := w.fractalHeap(heap)
	if err != nil {
		return err
	}
	return w.btree2(tree, kind, func(record *block) error {
		if kind == recordLinkName {
			record.take(4) // the hash of the name
		}
		object, err := h.object(record.take(min(h.idSize, record.rest())))
		switch {
		case errors.Is(err, errHuge) && kind != recordLinkName: // such as REFERENCE_LIST, of no use here
			return nil
		case errors.Is(err, errHuge):
			return unsupported(fractalHeapPart, "a huge object: links below %d bytes are read", h.most)
		case err != nil:
			return err
		}
		return visit(w.of(linkPart, heap, object))
	})
}

// link reads a link message.
func (w *walk) link(b *block) (l link, err error) {
	if _, err := b.version(1); err != nil {
		return l, err
	}
	flags := b.u8()
	kind := byte(0)
	if flags&0x08 != 0 {
		kind = b.u8()
	}
	if flags&0x04 != 0 {
		b.take(8) // the order of creation
	}
	if flags&0x10 != 0 {
		b.take(1) // the encoding of the name
	}
	n := b.uint(1 << (flags & 3))
	if b.err == nil && n > uint64(b.rest()) {
		return l, b.fail("a name of %d bytes", n)
	}
	l = link{name: string(b.take(int(n))), addr: undefined}
	switch kind {
	case 0:
		l.addr = b.offset()
	case 1:
		l.soft = string(b.take(b.u16()))
	case 64:
		l.out = "a link to another file"
	default:
		l.out = "a link of a type of its own"
	}
	return l, b.err
}

// oldGroup visits the links of a group with a symbol table.
func (w *walk) oldGroup(tree, heap uint64, visit func(link) error) error {
	names, err := w.localHeap(heap)
	if err != nil {
		return err
	}
	return w.btree1(tree, 0, w.lengthSize, func(_ *block, node uint64) error {
		return w.symbols(node, names, visit)
	})
}

const symbolPart = "symbol table"

// symbols visits the links of a symbol table node.
func (w *walk) symbols(addr uint64, names *block, visit func(link) error) error {
	head, err := w.signedBlock(symbolPart, addr, 8, "SNOD", 1)
	if err != nil {
		return err
	}
	head.take(1)
	count := head.u16()
	entry := w.lengthSize + w.offsetSize + 4 + 4 + 16
	b, err := w.block(symbolPart, addr+8, uint64(count*entry))
	if err != nil {
		return err
	}
	for range count {
		name, object := b.length(), b.offset()
		kind := b.u32()
		b.take(4)
		scratch := w.of(symbolPart, addr, b.take(16))
		if b.err != nil {
			return b.err
		}
		l := link{addr: object}
		if l.name, err = w.nameAt(names, name); err != nil {
			return err
		}
		if kind == 2 {
			l.addr = undefined
			if l.soft, err = w.nameAt(names, uint64(scratch.u32())); err != nil {
				return err
			}
		}
		if err := visit(l); err != nil {
			return err
		}
	}
	return nil
}

// cString returns the text before the first zero.
func cString(b []byte) string {
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	return string(b)
}

// tooMany is the error about more nodes than are read.
func tooMany(what string, n int) error {
	return fault.New(fault.Limit, groupPart, "more than %d %s", n, what)
}

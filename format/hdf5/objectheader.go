package hdf5

import (
	"slices"

	"github.com/chaski-eo/chaski/fault"
)

// Types of messages.
const (
	msgDataspace    = 0x01
	msgLinkInfo     = 0x02
	msgDatatype     = 0x03
	msgOldFill      = 0x04
	msgFill         = 0x05
	msgLink         = 0x06
	msgExternal     = 0x07
	msgLayout       = 0x08
	msgFilters      = 0x0b
	msgAttribute    = 0x0c
	msgContinuation = 0x10
	msgSymbolTable  = 0x11
	msgAttrInfo     = 0x15
	lastMessage     = 0x18
)

const (
	headerPart  = "object header"
	maxMessages = 1 << 16 // of an object
	maxParts    = 1 << 12 // of an object header
	// Flags of messages.
	flagShared      = 0x02
	flagMustBeKnown = 0x80
)

// message is one message of an object header.
type message struct {
	kind  int
	flags byte
	data  []byte
	addr  uint64 // of the data
}

// header is an object header.
type header []message

// get returns the first message of a kind, or nil.
func (h header) get(kind int) *message {
	for i := range h {
		if h[i].kind == kind {
			return &h[i]
		}
	}
	return nil
}

// header reads the object header at an address.
func (w *walk) header(addr uint64) (header, error) {
	head, err := w.read(headerPart, addr, 4)
	if err != nil {
		return nil, err
	}
	var list header
	if string(head) == "OHDR" {
		list, err = w.header2(addr)
	} else {
		list, err = w.header1(addr)
	}
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		if m.kind >= lastMessage && m.flags&flagMustBeKnown != 0 {
			return nil, unsupported(headerPart, "a message of type %#x", m.kind)
		}
	}
	return list, nil
}

// chunkOf is a part of an object header: the header itself, or what a continuation leads to.
type chunkOf struct{ addr, size uint64 }

func (c chunkOf) overlaps(other chunkOf) bool {
	return c.addr < other.addr+other.size && other.addr < c.addr+c.size
}

// header1 reads an object header of version 1.
func (w *walk) header1(addr uint64) (list header, err error) {
	b, err := w.block(headerPart, addr, 16)
	if err != nil {
		return nil, err
	}
	if _, err := b.version(1); err != nil {
		return nil, corrupt(headerPart, addr, "no object header: it begins with %q", b.all[:4])
	}
	b.take(1 + 2 + 4) // the number of messages, which the sizes say too, and of references
	chunks := []chunkOf{{addr + 16, uint64(b.u32())}}
	for i := 0; i < len(chunks); i++ {
		part, err := w.block(headerPart, chunks[i].addr, chunks[i].size)
		if err != nil {
			return nil, err
		}
		for part.rest() >= 8 {
			kind, size, flags := part.u16(), part.u16(), part.u8()
			part.take(3)
			addr := part.addr + uint64(part.pos)
			if list, chunks, err = w.add(list, chunks, message{kind, flags, part.take(size), addr}); err != nil {
				return nil, err
			}
			if part.err != nil {
				return nil, part.err
			}
		}
	}
	return list, nil
}

// header2 reads an object header of version 2.
func (w *walk) header2(addr uint64) (list header, err error) {
	b, err := w.block(headerPart, addr, min(34, uint64(w.size)-addr-w.base)) // the longest has 34 bytes
	if err != nil {
		return nil, err
	}
	b.take(4)
	if _, err := b.version(2); err != nil {
		return nil, err
	}
	flags := b.u8()
	if flags&0x20 != 0 {
		b.take(16) // times
	}
	if flags&0x10 != 0 {
		b.take(4) // when attributes become dense
	}
	size := b.uint(1 << (flags & 3))
	if b.err != nil {
		return nil, b.err
	}
	front := b.pos
	// The size is bounded by the limit of a block, so the sum with the front does not overflow.
	chunks := []chunkOf{{addr, min(size, maxBlock+1) + uint64(front) + 4}}
	for i := 0; i < len(chunks); i++ {
		part, err := w.block(headerPart, chunks[i].addr, chunks[i].size)
		if err != nil {
			return nil, err
		}
		if err := part.checked(); err != nil {
			return nil, err
		}
		if i == 0 {
			part.take(front)
		} else if err := part.signature("OCHK"); err != nil {
			return nil, err
		}
		prefix := 4
		if flags&0x04 != 0 {
			prefix += 2 // the order of creation
		}
		for part.rest() >= prefix {
			kind, size, set := int(part.u8()), part.u16(), part.u8()
			part.take(prefix - 4)
			addr := part.addr + uint64(part.pos)
			if list, chunks, err = w.add(list, chunks, message{kind, set, part.take(size), addr}); err != nil {
				return nil, err
			}
			if part.err != nil {
				return nil, part.err
			}
		}
	}
	return list, nil
}

// add adds a message to a header, or the part that a continuation leads to.
func (w *walk) add(list header, chunks []chunkOf, m message) (header, []chunkOf, error) {
	switch {
	case m.kind == 0:
	case m.kind == msgContinuation:
		b := w.of(headerPart, m.addr, m.data)
		next := chunkOf{b.offset(), b.length()}
		switch {
		case len(chunks) >= maxParts:
			return nil, nil, fault.At(fault.Limit, headerPart, int64(m.addr), "more than %d parts", maxParts)
		case slices.ContainsFunc(chunks, next.overlaps):
			return nil, nil, corrupt(headerPart, m.addr, "the part at %d lies on another one", next.addr)
		}
		return list, append(chunks, next), b.err
	case len(list) >= maxMessages:
		return nil, nil, fault.At(fault.Limit, headerPart, int64(m.addr), "more than %d messages", maxMessages)
	default:
		list = append(list, m)
	}
	return list, chunks, nil
}

// content returns the fields of a message, which may lie in the header of another object.
func (w *walk) content(m *message, part string) (*block, error) {
	if m.flags&flagShared == 0 {
		return w.of(part, m.addr, m.data), nil
	}
	b := w.of(part, m.addr, m.data)
	return w.shared(b, m.kind)
}

// shared returns the fields of the message whose place b holds.
func (w *walk) shared(b *block, kind int) (*block, error) {
	version, err := b.version(1, 2, 3)
	if err != nil {
		return nil, err
	}
	where := b.u8()
	if version == 1 {
		b.take(6)
	}
	if version == 3 && where == 1 {
		return nil, unsupported(b.part, "a message in the heap of shared messages")
	}
	addr := b.offset()
	if b.err != nil {
		return nil, b.err
	}
	list, err := w.header(addr)
	if err != nil {
		return nil, err
	}
	m := list.get(kind)
	if m == nil || m.flags&flagShared != 0 {
		return nil, b.fail("the object at %d does not have the shared message", addr)
	}
	return w.of(b.part, m.addr, m.data), nil
}

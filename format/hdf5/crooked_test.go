package hdf5

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// made is a file of superblock 0, whose structures are put by hand.
type made struct{ b []byte }

// cat joins numbers of any width, and texts.
func cat(parts ...any) []byte {
	var out bytes.Buffer
	for _, part := range parts {
		if text, ok := part.(string); ok {
			out.WriteString(text)
		} else if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			panic(err)
		}
	}
	return out.Bytes()
}

// put appends a structure, at a multiple of 8, and returns its address.
func (m *made) put(parts ...any) uint64 {
	m.b = append(m.b, make([]byte, -len(m.b)&7)...)
	addr := uint64(len(m.b))
	m.b = append(m.b, cat(parts...)...)
	return addr
}

// file returns the file with a root, as if it had size bytes.
func (m *made) file(root uint64, size int64) *holes {
	size = max(size, int64(len(m.b)))
	copy(m.b, cat(Signature, []byte{0, 0, 0, 0, 0, 8, 8, 0}, uint16(4), uint16(16), uint32(0), uint64(0),
		uint64(undefined), size, uint64(undefined), uint64(0), root, make([]byte, 24)))
	return &holes{m.b, size, 0}
}

// part returns a message of an object header.
func part(kind int, parts ...any) []byte {
	data := cat(parts...)
	data = append(data, make([]byte, -len(data)&7)...)
	return cat(uint16(kind), uint16(len(data)), make([]byte, 4), data)
}

// object puts an object header.
func (m *made) object(messages ...[]byte) uint64 {
	all := slices.Concat(messages...)
	return m.put([]byte{1, 0}, uint16(len(messages)), uint32(1), uint32(len(all)), uint32(0), all)
}

// bytesOf is a dataset of four bytes, with more messages.
func (m *made) bytesOf(more ...[]byte) uint64 {
	at := m.put("abcd")
	return m.object(append([][]byte{part(msgDataspace, []byte{1, 1, 0, 0, 0, 0, 0, 0}, uint64(4)),
		part(msgDatatype, typeOfBytes), part(msgLayout, []byte{3, 1}, at, uint64(4))}, more...)...)
}

var typeOfBytes = cat([]byte{0x10, 0, 0, 0}, uint32(1), uint16(0), uint16(8))

// attributeOf is an attribute of n bytes.
func attributeOf(n int) []byte {
	return part(msgAttribute, []byte{1, 0}, uint16(2), uint16(12), uint16(16), "a\x00\x00\x00\x00\x00\x00\x00",
		typeOfBytes, uint32(0), []byte{1, 1, 0, 0, 0, 0, 0, 0}, uint64(n), bytes.Repeat([]byte{0xff}, n))
}

// group puts a group of links: names are their offsets in a heap of text, and objects what they lead to.
func (m *made) group(text string, names []int, object uint64) uint64 {
	heap := m.put("HEAP", uint32(0), uint64(len(text)), uint64(undefined), m.put(text))
	node := cat("SNOD\x01\x00", uint16(len(names)))
	for _, name := range names {
		node = append(node, cat(uint64(name), object, make([]byte, 24))...)
	}
	return m.object(part(msgSymbolTable, m.tree(0, m.put(node)), heap))
}

// tree puts a node of a B-tree of groups.
func (m *made) tree(level byte, below ...uint64) uint64 {
	node := cat("TREE\x00", level, uint16(len(below)), uint64(undefined), uint64(undefined))
	for _, addr := range below {
		node = append(node, cat(uint64(0), addr)...)
	}
	return m.put(node, uint64(0))
}

// holes is a file that has bytes in front, and is a hole behind.
type holes struct {
	b    []byte
	size int64
	read int64 // bytes
}

func (h *holes) Size() int64  { return h.size }
func (h *holes) Close() error { return nil }

func (h *holes) ReadAt(_ context.Context, p []byte, off int64) error {
	clear(p)
	if off < int64(len(h.b)) {
		copy(p, h.b[off:])
	}
	h.read += int64(len(p))
	return nil
}

// TestCrooked: what a file takes follows the bytes that it has, whatever size it claims and wherever its addresses
// lead.
func TestCrooked(t *testing.T) {
	race.SkipCovered(t)
	const tera = 1 << 40
	for name, make := range map[string]func(m *made) uint64{
		"a header that goes on in itself": func(m *made) uint64 {
			at := uint64(len(m.b)) + 16
			return m.object(slices.Repeat(part(msgContinuation, at, uint64(24*2700)), 2700))
		},
		"a header that goes on in holes": func(m *made) uint64 {
			var all []byte
			for i := range uint64(2700) {
				all = append(all, part(msgContinuation, tera/2+i*maxBlock, uint64(maxBlock))...)
			}
			return m.object(all)
		},
		"attributes in a circle": func(m *made) uint64 {
			a := attributeOf(65000)
			at := uint64(len(m.b)) + 16
			return m.object(a, part(msgContinuation, at, uint64(len(a)+24)))
		},
		"attributes of many objects are one": func(m *made) uint64 {
			a := attributeOf(65000)
			at := m.put(a)
			var links [][]byte
			for i := range 8000 {
				links = append(links, part(msgLink, []byte{1, 0, 6}, fmt.Sprintf("%06d", i),
					m.object(part(msgContinuation, at, uint64(len(a))))))
			}
			return m.object(links...)
		},
		"names that are one long text": func(m *made) uint64 {
			return m.group(strings.Repeat("a", 4000)+"\x00", slices.Repeat([]int{0}, 20_000), m.bytesOf())
		},
		"names of a megabyte": func(m *made) uint64 {
			return m.group(strings.Repeat("a", 1<<20)+"\x00", slices.Repeat([]int{0}, 3000), m.bytesOf())
		},
		"a tree whose nodes are one": func(m *made) uint64 {
			text := m.put(uint64(0))
			heap := m.put("HEAP", uint32(0), uint64(8), uint64(undefined), text)
			tree := m.put("SNOD\x01\x00", uint16(0))
			for level := range byte(4) {
				tree = m.tree(level, slices.Repeat([]uint64{tree}, 60_000)...)
			}
			return m.object(part(msgSymbolTable, tree, heap))
		},
		"a heap of holes": func(m *made) uint64 {
			heap := m.put("HEAP", uint32(0), uint64(maxBlock), uint64(undefined), uint64(tera/2))
			return m.object(part(msgSymbolTable, m.tree(0, slices.Repeat([]uint64{m.put("SNOD\x01\x00", uint16(0))},
				60_000)...), heap))
		},
		"groups with two links to the next": func(m *made) uint64 {
			group := m.bytesOf()
			for range 30 {
				group = m.group("x\x00y\x00", []int{0, 2}, group)
			}
			return group
		},
	} {
		for _, size := range []int64{0, tera} {
			m := &made{b: bytes.Repeat([]byte{0}, 96)}
			file := m.file(make(m), size)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Open(context.Background(), file, func(int64) error { return nil })
			runtime.ReadMemStats(&after)
			if fault.KindOf(err) == 0 {
				t.Errorf("%s: it is read: %v", name, err)
			}
			// All that was ever made, also what was free again.
			due := uint64(64<<20 + 64*len(m.b))
			if got := after.TotalAlloc - before.TotalAlloc; got > due {
				t.Errorf("%s, %d bytes: %d bytes of memory: %v", name, len(m.b), got, err)
			}
			if due := int64(32<<20 + 32*len(m.b)); file.read > due {
				t.Errorf("%s, %d bytes: %d bytes are read: %v", name, len(m.b), file.read, err)
			}
		}
	}
}

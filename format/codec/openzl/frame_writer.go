package openzl

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/format/codec/openzl/internal/codecs"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/memory"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/wire"
	"github.com/chaski-eo/chaski/internal/cursor"
)

// Format versions of written frames: writeVersion is the latest that rumi-eo 0.26 reads, pivcoVersion what PivCo
// Huffman needs.
const (
	writeVersion = 24
	pivcoVersion = 27
)

// writtenNode is a node of a graph to write. Every node regenerates one stream.
type writtenNode struct {
	id     uint32
	custom bool
	header []byte
	vars   int       // how many of its inputs, the last ones, are variable
	in     []written // its inputs
}

// written is a stream of a graph to write: one that a node regenerates, or stored bytes.
type written struct {
	node  int // index of the node, or stored
	bytes []byte
}

// frameWriter collects the graph of a frame with one numeric output and one chunk. Nodes are added from the
// output on: each comes after the node that takes its stream.
type frameWriter struct {
	nodes   []writtenNode
	head    []byte // holds the headers of all nodes
	newest  uint32 // format version that the nodes need; 0 for writeVersion
	omitted byte   // the checksums that frames leave out: sumContent, sumStored
}

// Checksums of a frame, as flags of its header.
const (
	sumContent = 1
	sumStored  = 2
)

func (w *frameWriter) reset() {
	w.nodes, w.head, w.newest = w.nodes[:0], w.head[:0], 0
}

// add appends a node, whose inputs are set later, and returns its index.
func (w *frameWriter) add(id uint32, header []byte, inputs int) int {
	index := len(w.nodes)
	if index < cap(w.nodes) {
		w.nodes = w.nodes[:index+1]
	} else {
		w.nodes = append(w.nodes, writtenNode{})
	}
	node := &w.nodes[index]
	node.id, node.custom, node.header, node.vars = id, id >= codecs.NumStandard, header, 0
	node.in = memory.Resize(node.in, inputs)
	return index
}

// header keeps b as the header of a node.
func (w *frameWriter) header(b ...byte) []byte {
	start := len(w.head)
	w.head = append(w.head, b...)
	return w.head[start:len(w.head):len(w.head)]
}

func (w *frameWriter) varintHeader(v uint64) []byte {
	return w.header(binary.AppendUvarint(nil, v)...)
}

// appendTo appends the frame of content to dst.
func (w *frameWriter) appendTo(dst, content []byte) []byte {
	frame := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, magicBase+max(w.newest, writeVersion))
	sums := (sumContent | sumStored) &^ w.omitted
	dst = append(dst, sums, 1|2<<4) // one output, numeric
	dst = binary.AppendUvarint(dst, uint64(len(content))+1)
	if sums&sumStored != 0 {
		dst = append(dst, byte(xxh3.Hash(dst[frame:])))
	}

	chunk := len(dst)
	dst = w.appendMap(dst)
	// Nodes are decoded from the last one on, and inputs are stored last one first, so everything
	// needs to be written in reverse.
	for i := len(w.nodes) - 1; i >= 0; i-- {
		dst = append(dst, w.nodes[i].header...)
	}
	for stream := range w.stored {
		dst = append(dst, stream...)
	}
	if sums&sumContent != 0 {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(xxh3.Hash(content)))
	}
	if sums&sumStored != 0 {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(xxh3.Hash(dst[chunk:])))
	}
	return append(dst, 0)
}

// stored yields the stored streams in their order.
func (w *frameWriter) stored(yield func([]byte) bool) {
	for i := len(w.nodes) - 1; i >= 0; i-- {
		in := w.nodes[i].in
		for input := len(in) - 1; input >= 0; input-- {
			if in[input].node == stored && !yield(in[input].bytes) {
				return
			}
		}
	}
}

// appendMap appends the decoding map (see chunkMap.parse).
func (w *frameWriter) appendMap(dst []byte) []byte {
	count := len(w.nodes)
	streams := 0
	for range w.stored {
		streams++
	}
	dst = binary.AppendUvarint(dst, uint64(count)+1)
	dst = binary.AppendUvarint(dst, uint64(streams))
	packer := cursor.Packer{Dst: dst}
	flag := func(set bool) {
		bit := uint64(0)
		if set {
			bit = 1
		}
		packer.Put(bit, 1)
	}
	each := func(f func(*writtenNode)) {
		for i := count - 1; i >= 0; i-- {
			f(&w.nodes[i])
		}
		packer.Align()
	}
	each(func(node *writtenNode) { flag(node.custom) })
	each(func(node *writtenNode) {
		if !node.custom {
			packer.Put(uint64(node.id), 7)
		}
	})
	each(func(node *writtenNode) {
		if node.custom {
			packer.Dst = binary.AppendUvarint(packer.Dst, uint64(node.id))
		}
	})
	each(func(node *writtenNode) { flag(len(node.header) > 0) })
	each(func(node *writtenNode) {
		if len(node.header) > 0 {
			packer.Dst = binary.AppendUvarint(packer.Dst, uint64(len(node.header))-1)
		}
	})
	each(func(node *writtenNode) { flag(node.vars > 0) })
	each(func(node *writtenNode) {
		if node.vars > 0 {
			packer.Dst = binary.AppendUvarint(packer.Dst, uint64(node.vars)-1)
		}
	})
	// No node has the flag of several outputs, because all regenerate one stream.
	each(func(*writtenNode) { flag(false) })
	w.appendDistances(&packer, count+streams)
	for stream := range w.stored {
		packer.Dst = binary.AppendUvarint(packer.Dst, uint64(len(stream)))
	}
	return packer.Dst
}

// appendDistances appends, for every node, how far after its last input the stream lies that it
// regenerates. total is the number of streams.
func (w *frameWriter) appendDistances(packer *cursor.Packer, total int) {
	count := len(w.nodes)
	target := make([]int, count) // indices of streams
	end := make([]int, count)    // index after a node's inputs
	pos := 0
	for i := count - 1; i >= 0; i-- {
		in := w.nodes[i].in
		for j, source := range in {
			if source.node != stored {
				target[source.node] = pos + len(in) - 1 - j
			}
		}
		pos += len(in)
		end[i] = pos
	}
	if count > 0 {
		target[0] = pos // the output
	}
	for i := count - 1; i >= 0; i-- {
		packer.Put(uint64(target[i]-end[i]), wire.BitsFor(total))
	}
	packer.Align()
}

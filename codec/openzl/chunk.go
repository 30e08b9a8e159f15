package openzl

import (
	"math"

	"github.com/chaski-eo/chaski/fault"
)

// varintVersion is the first version that counts nodes and streams in more than a byte.
const varintVersion = 9

// maxStreams bounds the streams of one chunk's graph. It and the functions below are the limits of
// the original.
const maxStreams = 110000

func maxNodes(version int) int {
	switch {
	case version < varintVersion:
		return 256
	case version < 20:
		return 10000
	}
	return 20000
}

func maxStored(version int) int {
	switch {
	case version < varintVersion:
		return 256
	case version < 16:
		return 10000
	}
	return maxStreams
}

// maxInputs bounds the streams that one node takes.
func maxInputs(version int) int {
	switch {
	case version < varintVersion:
		return 32
	case version < 16:
		return 1024
	}
	return 100000
}

// node is one codec of a chunk's graph.
type node struct {
	id      uint32
	custom  bool
	codec   *codec // what it stands for, once the graph is checked
	dict    bool
	header  span // within the chunk's codec headers
	vars    int  // variable inputs
	regens  int  // regenerated streams
	firstIn int  // index of its first input stream
	inputs  int  // fixed and variable inputs
	targets span // within chunk.distances: its regenerated streams
}

// span is a half-open range of indices.
type span struct{ from, to int }

// chunk is the decoding map of one chunk.
type chunk struct {
	nodes     []node
	distances []int // one a regenerated stream: how far after the node's last input it stands
	stored    []int // sizes of the stored streams
	headers   []byte
	bodies    []byte // stored streams, end to end
}

func chunkFault(kind fault.Kind, off int, format string, args ...any) error {
	return fault.New(kind, "header", int64(off), format, args...)
}

// parse reads a chunk's decoding map and finds its stored streams; c is left after them.
func (k *chunk) parse(c *cursor, h *frameHeader) error {
	var nodes, stored uint64
	if h.version < varintVersion {
		nodes, stored = uint64(c.byte()), uint64(c.byte())
	} else {
		nodes, stored = c.varint(), c.varint()
	}
	if h.version >= chunkVersion {
		nodes-- // zero ends the frame and was seen before
	}
	switch {
	case c.bad:
		return chunkFault(fault.Corrupt, c.off, "frame ends within it")
	case nodes >= uint64(maxNodes(h.version)):
		return chunkFault(fault.Limit, c.off, "graph of %d nodes", nodes)
	case stored >= uint64(maxStored(h.version)):
		return chunkFault(fault.Limit, c.off, "graph of %d stored streams", stored)
	case int(stored) > c.left():
		return chunkFault(fault.Corrupt, c.off, "%d stored streams in %d bytes", stored, c.left())
	}
	if h.version < chunkVersion {
		flags := c.byte()
		h.contentChecksum = flags&1 != 0
		h.chunkChecksum = flags&2 != 0
	}
	k.nodes = resize(k.nodes, int(nodes))
	headerBytes := k.parseNodes(c, h)
	if err := k.parseArity(c, h); err != nil {
		return err
	}
	k.parseDistances(c, int(stored))
	k.stored = resize(k.stored, int(stored))
	total := 0
	for i := range k.stored {
		n := c.varint()
		if n >= math.MaxUint32 {
			c.bad = true
			break
		}
		k.stored[i] = int(n)
		total += int(n)
	}
	if c.bad {
		return chunkFault(fault.Corrupt, c.off, "decoding map ends early or holds a number out of range")
	}
	at := c.off
	k.headers = c.take(headerBytes)
	k.bodies = c.take(total)
	if c.bad {
		return chunkFault(fault.Corrupt, at, "codec headers of %d and streams of %d bytes, %d are left",
			headerBytes, total, len(c.b)-at)
	}
	return nil
}

// parseNodes reads which codec each node is and how long its header is, and returns the sum of the
// header lengths.
func (k *chunk) parseNodes(c *cursor, h *frameHeader) int {
	standard := 0
	r := c.bits(len(k.nodes), 1)
	for i := range k.nodes {
		k.nodes[i] = node{custom: r.next(1) != 0, regens: 1}
		if !k.nodes[i].custom {
			standard++
		}
	}
	width := 6
	if h.version >= 24 {
		width = 7
	}
	r = c.bits(standard, width)
	for i := range k.nodes {
		if !k.nodes[i].custom {
			k.nodes[i].id = r.next(width)
		}
	}
	for i := range k.nodes {
		if k.nodes[i].custom {
			id := c.varint()
			c.bad = c.bad || id > math.MaxUint32
			k.nodes[i].id = uint32(id)
		}
	}
	total := 0
	r = c.bits(len(k.nodes), 1)
	for i := range k.nodes {
		n := 0
		if r.next(1) != 0 {
			v := c.varint()
			c.bad = c.bad || v >= math.MaxUint32-1
			n = int(v&math.MaxUint32) + 1
		}
		k.nodes[i].header = span{total, total + n}
		total += n
	}
	return total
}

// parseArity reads how many variable inputs and regenerated streams each node has, and which use a
// dictionary.
func (k *chunk) parseArity(c *cursor, h *frameHeader) error {
	r := c.bits(len(k.nodes), 1)
	for i := range k.nodes {
		if r.next(1) != 0 {
			v := c.varint()
			if v >= uint64(maxInputs(h.version)) {
				return chunkFault(fault.Limit, c.off, "node %d has %d inputs", i, v)
			}
			k.nodes[i].vars = int(v) + 1
		}
	}
	if h.version >= 16 {
		r = c.bits(len(k.nodes), 1)
		for i := range k.nodes {
			if r.next(1) != 0 {
				v := c.varint()
				if v > maxOutputs-2 {
					return chunkFault(fault.Limit, c.off, "node %d regenerates %d streams", i, v)
				}
				k.nodes[i].regens = int(v) + 2
			}
		}
	}
	if h.version < dictVersion || !h.bundle {
		return nil
	}
	dicts := 0
	r = c.bits(len(k.nodes), 1)
	for i := range k.nodes {
		if k.nodes[i].dict = r.next(1) != 0; k.nodes[i].dict {
			dicts++
		}
	}
	if dicts > 0 {
		width := int(c.byte())
		if width > 16 {
			return chunkFault(fault.Corrupt, c.off, "dictionary indices of %d bits", width)
		}
		c.take((dicts*width + 7) / 8)
	}
	return nil
}

func (k *chunk) parseDistances(c *cursor, stored int) {
	total := 0
	for i := range k.nodes {
		k.nodes[i].targets = span{total, total + k.nodes[i].regens}
		total += k.nodes[i].regens
		if total > maxStreams {
			c.bad = true
			return
		}
	}
	width := bitsFor(total + stored)
	r := c.bits(total, width)
	if c.bad {
		return
	}
	k.distances = resize(k.distances, total)
	for i := range k.distances {
		k.distances[i] = int(r.next(width))
	}
}

// resize returns a slice of n elements, s's memory where that is enough. Old elements stay.
func resize[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return make([]T, n)
}

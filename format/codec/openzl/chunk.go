package openzl

import (
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/codecs"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/memory"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/wire"
)

// varintVersion is the first version that counts nodes and streams with varints instead of one byte.
const varintVersion = 9

// maxStreams bounds the streams of the graph of one chunk. The original library has the same
// limit, here and in limitsOf, so both accept the same frames.
const maxStreams = 110000

// graphLimits bound a graph in the format versions from one on: its nodes, its stored streams, and the streams that one
// node takes.
type graphLimits struct{ from, nodes, stored, inputs int }

// limitsOf returns the limits of a version, which is at least minVersion.
func limitsOf(version int) graphLimits {
	for _, limits := range []graphLimits{
		{20, 20000, maxStreams, 100000}, {16, 10000, maxStreams, 100000}, {varintVersion, 10000, 10000, 1024},
	} {
		if version >= limits.from {
			return limits
		}
	}
	return graphLimits{minVersion, 256, 256, 32}
}

// codecNode is one codec of a chunk's graph.
type codecNode struct {
	id      uint32
	custom  bool
	codec   *codecs.Codec // set when the graph is checked
	dict    bool
	header  span // within the chunk's codec headers
	vars    int  // variable inputs
	regens  int  // regenerated streams
	firstIn int  // index of its first input stream
	inputs  int  // fixed and variable inputs
	targets span // its regenerated streams, within chunkMap.distances
}

// span is a half-open range of indices.
type span struct{ from, to int }

// chunkMap is the decoding map of one chunk.
type chunkMap struct {
	nodes     []codecNode
	distances []int // for each regenerated stream, how far it lies after the last input of its node
	stored    []int // sizes of the stored streams
	headers   []byte
	bodies    []byte // stored streams, end to end
}

func chunkFault(kind fault.Kind, off int, format string, args ...any) error {
	return fault.At(kind, "header", int64(off), format, args...)
}

// parse reads the decoding map of a chunk and finds its stored streams. It leaves c after them.
func (k *chunkMap) parse(c *wire.Cursor, header *frameHeader) error {
	var nodes, stored uint64
	if header.version < varintVersion {
		nodes, stored = uint64(c.Byte()), uint64(c.Byte())
	} else {
		nodes, stored = c.Varint(), c.Varint()
	}
	if header.version >= chunkVersion {
		// The count is stored plus one, because a zero ends the frame.
		nodes--
	}
	limits := limitsOf(header.version)
	switch {
	case c.Bad:
		return chunkFault(fault.Corrupt, c.Off, "frame ends within it")
	case nodes >= uint64(limits.nodes):
		return chunkFault(fault.Limit, c.Off, "graph of %d nodes", nodes)
	case stored >= uint64(limits.stored):
		return chunkFault(fault.Limit, c.Off, "graph of %d stored streams", stored)
	// Every stored stream has a size of at least one byte in the map, so the slice below is no
	// longer than the frame.
	case int(stored) > c.Left():
		return chunkFault(fault.Corrupt, c.Off, "%d stored streams in %d bytes", stored, c.Left())
	}
	if header.version < chunkVersion {
		flags := c.Byte()
		header.contentChecksum = flags&1 != 0
		header.chunkChecksum = flags&2 != 0
	}
	k.nodes = memory.Resize(k.nodes, int(nodes))
	headerBytes := k.parseNodes(c, header)
	if err := k.parseArity(c, header); err != nil {
		return err
	}
	k.parseDistances(c, int(stored))
	k.stored = memory.Resize(k.stored, int(stored))
	total := 0
	for i := range k.stored {
		size := c.Varint()
		if size >= math.MaxUint32 {
			c.Bad = true
			break
		}
		k.stored[i] = int(size)
		total += int(size)
	}
	if c.Bad {
		return chunkFault(fault.Corrupt, c.Off, "decoding map ends early or holds a number out of range")
	}
	pos := c.Off
	k.headers = c.Take(headerBytes)
	k.bodies = c.Take(total)
	if c.Bad {
		return chunkFault(fault.Corrupt, pos, "codec headers of %d and streams of %d bytes, %d are left",
			headerBytes, total, len(c.B)-pos)
	}
	return nil
}

// parseNodes reads which codec each node is and how long its header is, and returns the sum of the
// header lengths.
func (k *chunkMap) parseNodes(c *wire.Cursor, header *frameHeader) int {
	standard := 0
	reader := c.Bits(len(k.nodes), 1)
	for i := range k.nodes {
		k.nodes[i] = codecNode{custom: reader.Next(1) != 0, regens: 1}
		if !k.nodes[i].custom {
			standard++
		}
	}
	width := 6
	if header.version >= 24 {
		width = 7
	}
	reader = c.Bits(standard, width)
	for i := range k.nodes {
		if !k.nodes[i].custom {
			k.nodes[i].id = reader.Next(width)
		}
	}
	for i := range k.nodes {
		if k.nodes[i].custom {
			id := c.Varint()
			c.Bad = c.Bad || id > math.MaxUint32
			k.nodes[i].id = uint32(id)
		}
	}
	total := 0
	reader = c.Bits(len(k.nodes), 1)
	for i := range k.nodes {
		size := 0
		if reader.Next(1) != 0 {
			coded := c.Varint()
			c.Bad = c.Bad || coded >= math.MaxUint32-1
			size = int(coded&math.MaxUint32) + 1
		}
		k.nodes[i].header = span{total, total + size}
		total += size
	}
	return total
}

// parseArity reads how many variable inputs and regenerated streams each node has, and which use a
// dictionary.
func (k *chunkMap) parseArity(c *wire.Cursor, header *frameHeader) error {
	reader := c.Bits(len(k.nodes), 1)
	for i := range k.nodes {
		if reader.Next(1) != 0 {
			coded := c.Varint()
			if coded >= uint64(limitsOf(header.version).inputs) {
				return chunkFault(fault.Limit, c.Off, "node %d has %d inputs", i, coded)
			}
			k.nodes[i].vars = int(coded) + 1
		}
	}
	if header.version >= 16 {
		reader = c.Bits(len(k.nodes), 1)
		for i := range k.nodes {
			if reader.Next(1) != 0 {
				coded := c.Varint()
				if coded > maxOutputs-2 {
					return chunkFault(fault.Limit, c.Off, "node %d regenerates %d streams", i, coded)
				}
				k.nodes[i].regens = int(coded) + 2
			}
		}
	}
	if header.version < dictVersion || !header.bundle {
		return nil
	}
	dicts := 0
	reader = c.Bits(len(k.nodes), 1)
	for i := range k.nodes {
		if k.nodes[i].dict = reader.Next(1) != 0; k.nodes[i].dict {
			dicts++
		}
	}
	if dicts > 0 {
		width := int(c.Byte())
		if width > 16 {
			return chunkFault(fault.Corrupt, c.Off, "dictionary indices of %d bits", width)
		}
		c.Take((dicts*width + 7) / 8)
	}
	return nil
}

func (k *chunkMap) parseDistances(c *wire.Cursor, stored int) {
	total := 0
	for i := range k.nodes {
		k.nodes[i].targets = span{total, total + k.nodes[i].regens}
		total += k.nodes[i].regens
		if total > maxStreams {
			c.Bad = true
			return
		}
	}
	width := wire.BitsFor(total + stored)
	reader := c.Bits(total, width)
	if c.Bad {
		return
	}
	k.distances = memory.Resize(k.distances, total)
	for i := range k.distances {
		k.distances[i] = int(reader.Next(width))
	}
}

package openzl

import (
	"cmp"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/codecs"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/memory"
)

// edge is a stream and where it comes from.
type edge struct {
	codecs.Stream
	producer int // index of the node that makes it; stored if the chunk holds it
}

// stored is the producer of a stored stream.
const stored = -1

// streamGraph holds the streams of one chunk, in the order of the nodes that take them as inputs, last input of a
// node first. The outputs come at the end, last output first.
type streamGraph struct {
	streams []edge
	outputs int
}

// final returns the stream of output i.
func (g *streamGraph) final(i int) *edge { return &g.streams[len(g.streams)-1-i] }

// drop releases the memory of all streams.
func (g *streamGraph) drop(d *Decoder) {
	for i := range g.streams {
		g.streams[i].Drop(&d.space.Memory)
	}
	g.streams = g.streams[:0]
}

func graphFault(kind fault.Kind, node int, format string, args ...any) error {
	return fault.New(kind, "node "+strconv.Itoa(node), format, args...)
}

// build lays out the streams of d.chunk and checks the whole graph: codecs are known, arity and types fit,
// and every stream is made once, before it is used.
func (g *streamGraph) build(d *Decoder) error {
	chunk := &d.chunk
	g.outputs = len(d.header.types)
	count := len(chunk.distances) + len(chunk.stored)
	if count < g.outputs || count > maxStreams {
		return fault.New(fault.Corrupt, "graph", "%d streams for %d outputs", count, g.outputs)
	}
	g.streams = memory.Resize(g.streams, count)
	for i := range g.streams {
		g.streams[i] = edge{producer: stored}
	}
	next := 0
	for i := range chunk.nodes {
		if err := g.place(d, i, &next); err != nil {
			return err
		}
	}
	if err := g.placeStored(chunk); err != nil {
		return err
	}
	if err := g.checkTypes(d); err != nil {
		return err
	}
	if d.space.Direct != nil {
		g.markDirect(chunk)
	}
	return nil
}

// place finds the input streams of node i, which begin at *next, and marks the streams that it regenerates.
func (g *streamGraph) place(d *Decoder, i int, next *int) error {
	node := &d.chunk.nodes[i]
	codec, err := d.codec(i, node)
	if err != nil {
		return err
	}
	node.codec = codec
	if d.header.version < int(codec.Min) || codec.Max != 0 && d.header.version > int(codec.Max) {
		return graphFault(fault.Corrupt, i, "codec %s in format version %d", codec.Name, d.header.version)
	}
	if node.dict {
		return graphFault(fault.Unsupported, i, "openzl dictionary of codec %s", codec.Name)
	}
	if node.vars > 0 && len(codec.Vars) == 0 {
		return graphFault(fault.Corrupt, i, "%d variable inputs of codec %s, which has none", node.vars, codec.Name)
	}
	if codec.LastRepeats && node.regens < len(codec.Out)-1 || !codec.LastRepeats && node.regens != len(codec.Out) {
		return graphFault(fault.Corrupt, i, "codec %s regenerates %d streams", codec.Name, node.regens)
	}
	node.firstIn, node.inputs = *next, len(codec.In)+node.vars
	end := node.firstIn + node.inputs
	if end > len(g.streams)-g.outputs {
		return graphFault(fault.Corrupt, i, "inputs up to stream %d, %d are not outputs", end, len(g.streams)-g.outputs)
	}
	*next = end
	for output, distance := range d.chunk.distances[node.targets.from:node.targets.to] {
		// A target lies after the node's own inputs, so no stream can depend on itself.
		target := end + distance
		if target >= len(g.streams) || g.streams[target].producer != stored {
			return graphFault(fault.Corrupt, i, "regenerates stream %d, which does not exist or is made already",
				target)
		}
		g.streams[target].producer = i
		g.streams[target].Type = codec.Out[min(output, len(codec.Out)-1)]
	}
	return nil
}

// codec returns the codec of node i.
func (d *Decoder) codec(i int, nd *codecNode) (*codecs.Codec, error) {
	if nd.custom {
		if codec := d.opt.Custom[nd.id]; codec != nil {
			return codec, nil
		}
		return nil, graphFault(fault.Unsupported, i, "openzl custom codec (%d)", nd.id)
	}
	codec := &codecs.Standard[nd.id&(codecs.NumStandard-1)]
	if codec.Decode == nil {
		name := cmp.Or(codec.Name, "unknown")
		return nil, graphFault(fault.Unsupported, i, "openzl codec %s (%d)", name, nd.id)
	}
	return codec, nil
}

// placeStored assigns the stored bytes, in order, to the streams that no node makes.
func (g *streamGraph) placeStored(k *chunkMap) error {
	pos, body := 0, k.bodies
	for i := range g.streams {
		stream := &g.streams[i]
		if stream.producer != stored {
			continue
		}
		if pos == len(k.stored) {
			return fault.New(fault.Corrupt, "graph", "more than %d streams are neither stored nor regenerated", pos)
		}
		size := k.stored[pos]
		pos++
		stream.Type, stream.Width, stream.Count, stream.Data = Serial, 1, size, body[:size:size]
		body = body[size:]
	}
	if pos != len(k.stored) {
		return fault.New(fault.Corrupt, "graph", "%d of %d stored streams are used", pos, len(k.stored))
	}
	return nil
}

// checkTypes compares the types of all inputs and outputs with the types of their codecs and of the frame
// header.
func (g *streamGraph) checkTypes(d *Decoder) error {
	used := 0
	for i := range d.chunk.nodes {
		node := &d.chunk.nodes[i]
		codec := node.codec
		for input := range node.inputs {
			stream := g.input(node, input)
			// Nodes run in order, so a stream must be made by an earlier node. This also rules
			// out cycles.
			if stream.producer >= i {
				return graphFault(fault.Corrupt, i, "input %d is made by node %d", input, stream.producer)
			}
			ok := false
			if input < len(codec.In) {
				ok = stream.Type == codec.In[input]
			} else {
				for _, allowed := range codec.Vars {
					ok = ok || stream.Type == allowed
				}
			}
			if !ok {
				return graphFault(fault.Corrupt, i, "input %d of codec %s is %s", input, codec.Name, stream.Type)
			}
		}
		used = node.firstIn + node.inputs
	}
	if used != len(g.streams)-g.outputs {
		return fault.New(fault.Corrupt, "graph", "%d streams are used by nothing", len(g.streams)-g.outputs-used)
	}
	for i, want := range d.header.types {
		if output := g.final(i); output.Type != want {
			return fault.New(fault.Corrupt, "graph", "output %d is %s, the header says %s", i, output.Type, want)
		}
	}
	return nil
}

// input returns input j of a node. Inputs are stored last one first.
func (g *streamGraph) input(nd *codecNode, j int) *edge {
	return &g.streams[nd.firstIn+nd.inputs-1-j]
}

// markDirect marks the streams that may lie in Workspace.Direct: the only output and, as long as the codec
// of a stream shares the bytes of its input, that input.
func (g *streamGraph) markDirect(k *chunkMap) {
	stream := g.final(0)
	for stream.producer != stored {
		stream.Direct = true
		node := &k.nodes[stream.producer]
		if !node.codec.Alias {
			return
		}
		stream = g.input(node, 0)
	}
}

// run runs node i and releases its inputs, which no other node needs.
func (d *Decoder) run(i int) error {
	node := &d.chunk.nodes[i]
	d.ins = memory.Resize(d.ins, node.inputs)
	for input := range d.ins {
		d.ins[input] = &d.graph.input(node, input).Stream
	}
	d.regens = memory.Resize(d.regens, node.regens)
	for output, distance := range d.chunk.distances[node.targets.from:node.targets.to] {
		d.regens[output] = &d.graph.streams[node.firstIn+node.inputs+distance].Stream
	}
	header := d.chunk.headers[node.header.from:node.header.to]
	if err := d.space.Run(node.codec, d.header.version, header, d.ins, d.regens); err != nil {
		return fault.WithPart(err, node.codec.Name, fault.NoOffset)
	}
	for _, stream := range d.ins {
		stream.Drop(&d.space.Memory)
	}
	return nil
}

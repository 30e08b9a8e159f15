package openzl

import (
	"cmp"
	"strconv"

	"github.com/chaski-eo/chaski/codec/openzl/internal/codecs"
	"github.com/chaski-eo/chaski/codec/openzl/internal/memory"
	"github.com/chaski-eo/chaski/fault"
)

// edge is a stream and where it comes from.
type edge struct {
	codecs.Stream
	producer int // index of the node that makes it; stored if the chunk holds it
}

// stored is the producer of a stored stream.
const stored = -1

// graph holds the streams of one chunk, in the order of the nodes that take them as inputs, last input of a
// node first. The outputs come at the end, last output first.
type graph struct {
	streams []edge
	outputs int
}

// final returns the stream of output i.
func (g *graph) final(i int) *edge { return &g.streams[len(g.streams)-1-i] }

// drop releases the memory of all streams.
func (g *graph) drop(d *Decoder) {
	for i := range g.streams {
		g.streams[i].Drop(&d.space.Memory)
	}
	g.streams = g.streams[:0]
}

func graphFault(kind fault.Kind, node int, format string, args ...any) error {
	return fault.New(kind, "node "+strconv.Itoa(node), fault.NoOffset, format, args...)
}

// build lays out the streams of d.chunk and checks the whole graph: codecs are known, arity and types fit,
// and every stream is made once, before it is used.
func (g *graph) build(d *Decoder) error {
	k := &d.chunk
	g.outputs = len(d.header.types)
	n := len(k.distances) + len(k.stored)
	if n < g.outputs || n > maxStreams {
		return fault.New(fault.Corrupt, "graph", fault.NoOffset, "%d streams for %d outputs", n, g.outputs)
	}
	g.streams = memory.Resize(g.streams, n)
	for i := range g.streams {
		g.streams[i] = edge{producer: stored}
	}
	next := 0
	for i := range k.nodes {
		if err := g.place(d, i, &next); err != nil {
			return err
		}
	}
	if err := g.placeStored(k); err != nil {
		return err
	}
	if err := g.checkTypes(d); err != nil {
		return err
	}
	if d.space.Direct != nil {
		g.markDirect(k)
	}
	return nil
}

// place finds the input streams of node i, which begin at *next, and marks the streams that it regenerates.
func (g *graph) place(d *Decoder, i int, next *int) error {
	nd := &d.chunk.nodes[i]
	c, err := d.codec(i, nd)
	if err != nil {
		return err
	}
	nd.codec = c
	if d.header.version < int(c.Min) || c.Max != 0 && d.header.version > int(c.Max) {
		return graphFault(fault.Corrupt, i, "codec %s in format version %d", c.Name, d.header.version)
	}
	if nd.dict {
		return graphFault(fault.Unsupported, i, "openzl dictionary of codec %s", c.Name)
	}
	if nd.vars > 0 && len(c.Vars) == 0 {
		return graphFault(fault.Corrupt, i, "%d variable inputs of codec %s, which has none", nd.vars, c.Name)
	}
	if c.LastRepeats && nd.regens < len(c.Out)-1 || !c.LastRepeats && nd.regens != len(c.Out) {
		return graphFault(fault.Corrupt, i, "codec %s regenerates %d streams", c.Name, nd.regens)
	}
	nd.firstIn, nd.inputs = *next, len(c.In)+nd.vars
	end := nd.firstIn + nd.inputs
	if end > len(g.streams)-g.outputs {
		return graphFault(fault.Corrupt, i, "inputs up to stream %d, %d are not outputs", end, len(g.streams)-g.outputs)
	}
	*next = end
	for j, dist := range d.chunk.distances[nd.targets.from:nd.targets.to] {
		// A target lies after the node's own inputs, so no stream can depend on itself.
		t := end + dist
		if t >= len(g.streams) || g.streams[t].producer != stored {
			return graphFault(fault.Corrupt, i, "regenerates stream %d, which does not exist or is made already", t)
		}
		g.streams[t].producer = i
		g.streams[t].Type = c.Out[min(j, len(c.Out)-1)]
	}
	return nil
}

// codec returns the codec of node i.
func (d *Decoder) codec(i int, nd *node) (*codecs.Codec, error) {
	if nd.custom {
		if c := d.opt.Custom[nd.id]; c != nil {
			return c, nil
		}
		return nil, graphFault(fault.Unsupported, i, "openzl custom codec (%d)", nd.id)
	}
	c := &codecs.Standard[nd.id&(codecs.NumStandard-1)]
	if c.Decode == nil {
		name := cmp.Or(c.Name, "unknown")
		return nil, graphFault(fault.Unsupported, i, "openzl codec %s (%d)", name, nd.id)
	}
	return c, nil
}

// placeStored assigns the stored bytes, in order, to the streams that no node makes.
func (g *graph) placeStored(k *chunk) error {
	pos, body := 0, k.bodies
	for i := range g.streams {
		s := &g.streams[i]
		if s.producer != stored {
			continue
		}
		if pos == len(k.stored) {
			return fault.New(fault.Corrupt, "graph", fault.NoOffset,
				"more than %d streams are neither stored nor regenerated", pos)
		}
		n := k.stored[pos]
		pos++
		s.Type, s.Width, s.Count, s.Data = Serial, 1, n, body[:n:n]
		body = body[n:]
	}
	if pos != len(k.stored) {
		return fault.New(fault.Corrupt, "graph", fault.NoOffset, "%d of %d stored streams are used", pos, len(k.stored))
	}
	return nil
}

// checkTypes compares the types of all inputs and outputs with the types of their codecs and of the frame
// header.
func (g *graph) checkTypes(d *Decoder) error {
	used := 0
	for i := range d.chunk.nodes {
		nd := &d.chunk.nodes[i]
		c := nd.codec
		for j := range nd.inputs {
			s := g.input(nd, j)
			// Nodes run in order, so that a stream must be made by an earlier node. This also rules
			// out cycles.
			if s.producer >= i {
				return graphFault(fault.Corrupt, i, "input %d is made by node %d", j, s.producer)
			}
			ok := false
			if j < len(c.In) {
				ok = s.Type == c.In[j]
			} else {
				for _, t := range c.Vars {
					ok = ok || s.Type == t
				}
			}
			if !ok {
				return graphFault(fault.Corrupt, i, "input %d of codec %s is %s", j, c.Name, s.Type)
			}
		}
		used = nd.firstIn + nd.inputs
	}
	if used != len(g.streams)-g.outputs {
		return fault.New(fault.Corrupt, "graph", fault.NoOffset, "%d streams are used by nothing",
			len(g.streams)-g.outputs-used)
	}
	for i, t := range d.header.types {
		if s := g.final(i); s.Type != t {
			return fault.New(fault.Corrupt, "graph", fault.NoOffset, "output %d is %s, the header says %s", i,
				s.Type, t)
		}
	}
	return nil
}

// input returns input j of a node. Inputs are stored last one first.
func (g *graph) input(nd *node, j int) *edge {
	return &g.streams[nd.firstIn+nd.inputs-1-j]
}

// markDirect marks the streams that may lie in Workspace.Direct: the only output and, as long as the codec
// of a stream shares the bytes of its input, that input.
func (g *graph) markDirect(k *chunk) {
	s := g.final(0)
	for s.producer != stored {
		s.Direct = true
		nd := &k.nodes[s.producer]
		if !nd.codec.Alias {
			return
		}
		s = g.input(nd, 0)
	}
}

// run runs node i and releases its inputs, which no other node needs.
func (d *Decoder) run(i int) error {
	nd := &d.chunk.nodes[i]
	d.ins = memory.Resize(d.ins, nd.inputs)
	for j := range d.ins {
		d.ins[j] = &d.graph.input(nd, j).Stream
	}
	d.regens = memory.Resize(d.regens, nd.regens)
	for j, dist := range d.chunk.distances[nd.targets.from:nd.targets.to] {
		d.regens[j] = &d.graph.streams[nd.firstIn+nd.inputs+dist].Stream
	}
	header := d.chunk.headers[nd.header.from:nd.header.to]
	if err := d.space.Run(nd.codec, d.header.version, header, d.ins, d.regens); err != nil {
		return fault.WithPart(err, nd.codec.Name, fault.NoOffset)
	}
	for _, s := range d.ins {
		s.Drop(&d.space.Memory)
	}
	return nil
}

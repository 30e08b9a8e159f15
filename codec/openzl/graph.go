package openzl

import (
	"math"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cast"
)

// stream is one edge of a graph: typed data that a node makes or the chunk stores.
type stream struct {
	typ      Type
	producer int    // index of the node that makes it, stored for a stored one
	direct   bool   // data lies in Decoder.direct; before it is made: it may lie there
	width    int    // bytes an element: 1 for Serial, 0 for String
	count    int    // elements
	data     []byte // for String the strings end to end
	lens     []uint32
	buf      *buffer[byte] // behind data; nil where data is part of the frame or of direct
	lensBuf  *buffer[uint32]
}

const stored = -1

// graph is the streams of one chunk. They stand in the order of the nodes that take them as
// inputs, last input of a node first; the outputs stand at the end, last output first.
type graph struct {
	streams []stream
	outputs int
}

// final returns the stream of output i.
func (g *graph) final(i int) *stream { return &g.streams[len(g.streams)-1-i] }

// drop gives the memory of all streams back.
func (g *graph) drop(d *Decoder) {
	for i := range g.streams {
		g.streams[i].drop(d)
	}
	g.streams = g.streams[:0]
}

func (s *stream) drop(d *Decoder) {
	if s.buf != nil {
		d.bytes.release(s.buf)
	}
	if s.lensBuf != nil {
		d.lens.release(s.lensBuf)
	}
	s.buf, s.lensBuf, s.data, s.lens = nil, nil, nil, nil
}

func graphFault(kind fault.Kind, node int, format string, args ...any) error {
	return fault.New(kind, "node "+strconv.Itoa(node), fault.NoOffset, format, args...)
}

// build lays out the streams of d.chunk and checks the whole graph: codecs known, arity, types,
// every stream made once and before it is used.
func (g *graph) build(d *Decoder) error {
	k := &d.chunk
	g.outputs = len(d.header.types)
	n := len(k.distances) + len(k.stored)
	if n < g.outputs || n > maxStreams {
		return fault.New(fault.Corrupt, "graph", fault.NoOffset, "%d streams for %d outputs", n, g.outputs)
	}
	g.streams = resize(g.streams, n)
	for i := range g.streams {
		g.streams[i] = stream{producer: stored}
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
	if d.direct != nil {
		g.markDirect(k)
	}
	return nil
}

// place finds the input streams of node i, which begin at *next, and marks those it regenerates.
func (g *graph) place(d *Decoder, i int, next *int) error {
	nd := &d.chunk.nodes[i]
	c, err := d.codec(i, nd)
	if err != nil {
		return err
	}
	nd.codec = c
	if d.header.version < int(c.min) || c.max != 0 && d.header.version > int(c.max) {
		return graphFault(fault.Corrupt, i, "codec %s in format version %d", c.name, d.header.version)
	}
	if nd.dict {
		return graphFault(fault.Unsupported, i, "openzl dictionary of codec %s", c.name)
	}
	if nd.vars > 0 && len(c.vars) == 0 {
		return graphFault(fault.Corrupt, i, "%d variable inputs of codec %s, which has none", nd.vars, c.name)
	}
	if c.many && nd.regens < len(c.out)-1 || !c.many && nd.regens != len(c.out) {
		return graphFault(fault.Corrupt, i, "codec %s regenerates %d streams", c.name, nd.regens)
	}
	nd.firstIn, nd.inputs = *next, len(c.in)+nd.vars
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
		g.streams[t].typ = c.out[min(j, len(c.out)-1)]
	}
	return nil
}

// codec finds what node i stands for.
func (d *Decoder) codec(i int, nd *node) (*codec, error) {
	if nd.custom {
		if c := d.codecs[nd.id]; c != nil {
			return c, nil
		}
		return nil, graphFault(fault.Unsupported, i, "openzl custom codec (%d)", nd.id)
	}
	c := &standard[nd.id&(numStandard-1)]
	if c.decode == nil {
		name := c.name
		if name == "" {
			name = "unknown"
		}
		return nil, graphFault(fault.Unsupported, i, "openzl codec %s (%d)", name, nd.id)
	}
	return c, nil
}

// placeStored gives the streams that no node makes their bytes, in order.
func (g *graph) placeStored(k *chunk) error {
	at, body := 0, k.bodies
	for i := range g.streams {
		s := &g.streams[i]
		if s.producer != stored {
			continue
		}
		if at == len(k.stored) {
			return fault.New(fault.Corrupt, "graph", fault.NoOffset, "more than %d streams are neither stored nor regenerated", at)
		}
		n := k.stored[at]
		at++
		s.typ, s.width, s.count, s.data = Serial, 1, n, body[:n:n]
		body = body[n:]
	}
	if at != len(k.stored) {
		return fault.New(fault.Corrupt, "graph", fault.NoOffset, "%d of %d stored streams are used", at, len(k.stored))
	}
	return nil
}

// checkTypes compares the types of all inputs and outputs with what their codecs and the frame
// header say.
func (g *graph) checkTypes(d *Decoder) error {
	used := 0
	for i := range d.chunk.nodes {
		nd := &d.chunk.nodes[i]
		c := nd.codec
		for j := range nd.inputs {
			s := g.input(nd, j)
			if s.producer >= i {
				return graphFault(fault.Corrupt, i, "input %d is made by node %d", j, s.producer)
			}
			ok := false
			if j < len(c.in) {
				ok = s.typ == c.in[j]
			} else {
				for _, t := range c.vars {
					ok = ok || s.typ == t
				}
			}
			if !ok {
				return graphFault(fault.Corrupt, i, "input %d of codec %s is %s", j, c.name, s.typ)
			}
		}
		used = nd.firstIn + nd.inputs
	}
	if used != len(g.streams)-g.outputs {
		return fault.New(fault.Corrupt, "graph", fault.NoOffset, "%d streams are used by nothing", len(g.streams)-g.outputs-used)
	}
	for i, t := range d.header.types {
		if s := g.final(i); s.typ != t {
			return fault.New(fault.Corrupt, "graph", fault.NoOffset, "output %d is %s, the header says %s", i, s.typ, t)
		}
	}
	return nil
}

// input returns input j of a node: they stand last one first.
func (g *graph) input(nd *node, j int) *stream {
	return &g.streams[nd.firstIn+nd.inputs-1-j]
}

// markDirect marks the streams that may lie in Decoder.direct: the only output and, while its
// codec passes bytes on as they are, that codec's input.
func (g *graph) markDirect(k *chunk) {
	s := g.final(0)
	for s.producer != stored {
		s.direct = true
		nd := &k.nodes[s.producer]
		if !nd.codec.alias {
			return
		}
		s = g.input(nd, 0)
	}
}

// call is one run of a codec: what a binding sees.
type call struct {
	d       *Decoder
	version int
	header  []byte
	in      []*stream // fixed inputs, then variable ones
	out     []*stream // to be made with make or alias
}

// run runs node i and gives back what nobody needs any more.
func (d *Decoder) run(i int) error {
	nd := &d.chunk.nodes[i]
	d.ins = resize(d.ins, nd.inputs)
	for j := range d.ins {
		d.ins[j] = d.graph.input(nd, j)
	}
	d.regens = resize(d.regens, nd.regens)
	for j, dist := range d.chunk.distances[nd.targets.from:nd.targets.to] {
		d.regens[j] = &d.graph.streams[nd.firstIn+nd.inputs+dist]
	}
	// The call lives in the decoder: handed to a function value it would be allocated.
	d.call = call{d, d.header.version, d.chunk.headers[nd.header.from:nd.header.to], d.ins, d.regens}
	if err := nd.codec.decode(&d.call); err != nil {
		return fault.WithPart(err, nd.codec.name, fault.NoOffset)
	}
	for _, s := range d.ins {
		s.drop(d)
	}
	return nil
}

// fault makes the error of a codec that meets what its format rules out.
func (c *call) fault(format string, args ...any) error {
	return fault.New(fault.Corrupt, "", fault.NoOffset, format, args...)
}

// make gives out[i] memory for count elements of width bytes and returns it; a binding that fills
// less calls trim after. The type is the codec's. Contents are arbitrary. Strings have makeLens
// and makeStrings or aliasStrings instead.
func (c *call) make(i, width, count int) ([]byte, error) {
	return c.makeSpare(i, width, count, 0)
}

// makeSpare is make for memory whose capacity is spare bytes more, which may be written to. Where
// the caller wants the output there are none, so a stream that could lie there is copied there
// later.
func (c *call) makeSpare(i, width, count, spare int) ([]byte, error) {
	s := c.out[i]
	if width < 1 || count < 0 || count > math.MaxInt/width {
		return nil, c.fault("stream of %d elements of %d bytes", count, width)
	}
	n := width * count
	if s.typ == Serial && width != 1 || s.typ == Numeric && !numericWidth(width) {
		return nil, c.fault("%s stream of width %d", s.typ, width)
	}
	s.width, s.count = width, count
	if spare > 0 {
		s.direct = false
	}
	if s.direct {
		// Alignment is asked for so that the kernels take their fast paths.
		if s.direct = n <= len(c.d.direct) && aligned(c.d.direct, 8); s.direct {
			s.data = c.d.direct[:n:n]
			return s.data, nil
		}
	}
	if err := c.d.reserve(n + spare); err != nil {
		return nil, err
	}
	s.buf = c.d.bytes.get(n + spare)
	s.data = s.buf.mem[:n:n]
	return s.buf.mem[: n : n+spare], nil
}

// trim shortens out[i] to its first count elements.
func (c *call) trim(i, count int) {
	s := c.out[i]
	s.count, s.data = count, s.data[:count*s.width]
}

// makeLens gives out[i], a String stream, memory for the lengths of n strings and returns it. The
// lengths must come to len(data).
func (c *call) makeLens(i, n int) ([]uint32, error) {
	if n < 0 || n > math.MaxInt/8 {
		return nil, c.fault("%d strings", n)
	}
	if err := c.d.reserve(4 * n); err != nil {
		return nil, err
	}
	s := c.out[i]
	s.width, s.count = 0, n
	s.lensBuf = c.d.lens.get(n)
	s.lens = s.lensBuf.mem[:n:n]
	return s.lens, nil
}

// alias makes out[i] see the bytes of an input as count elements of width bytes.
func (c *call) alias(i int, in *stream, width, count int) error {
	return c.see(i, in.data, in.buf, in.direct, width, count)
}

// aliasPart is alias for the bytes of an input from byte from on.
func (c *call) aliasPart(i int, in *stream, from, width, count int) error {
	return c.see(i, in.data[from:from+width*count], in.buf, false, width, count)
}

// see makes out[i] see data, which lies in buf, or copies it where numbers would not be aligned.
func (c *call) see(i int, data []byte, buf *buffer[byte], direct bool, width, count int) error {
	s := c.out[i]
	if s.typ == Numeric && !aligned(data, width) {
		dst, err := c.make(i, width, count)
		if err != nil {
			return err
		}
		copy(dst, data)
		return nil
	}
	s.width, s.count, s.data, s.buf, s.direct = width, count, data, buf, direct
	if buf != nil {
		buf.refs++
	}
	return nil
}

// aliasStrings makes out[i], whose lengths were made, see n bytes of an input from byte from on.
func (c *call) aliasStrings(i int, in *stream, from, n int) {
	s := c.out[i]
	s.data, s.buf = in.data[from:from+n], in.buf
	if s.buf != nil {
		s.buf.refs++
	}
}

// makeStrings gives out[i], whose lengths were made, memory for n bytes and returns it.
func (c *call) makeStrings(i, n int) ([]byte, error) {
	s := c.out[i]
	if err := c.d.reserve(n); err != nil {
		return nil, err
	}
	s.buf = c.d.bytes.get(n)
	s.data = s.buf.mem[:n:n]
	return s.data, nil
}

// starts returns where each string of in begins. It lives until the next call of starts.
func (c *call) starts(in *stream) ([]uint32, error) {
	if uint64(len(in.data)) > math.MaxUint32 {
		return nil, c.fault("strings of %d bytes", len(in.data))
	}
	if in.count > cap(c.d.wide) {
		if err := c.d.reserve(4 * in.count); err != nil {
			return nil, err
		}
	}
	c.d.wide = resize(c.d.wide, in.count)
	at := uint32(0)
	for i, n := range in.lens {
		c.d.wide[i] = at
		at += n
	}
	return c.d.wide, nil
}

// scratch returns n bytes that live until the next call of scratch. Contents are arbitrary.
func (c *call) scratch(n int) ([]byte, error) {
	if n > cap(c.d.tmp) {
		if err := c.d.reserve(n); err != nil {
			return nil, err
		}
		c.d.tmp = cast.Aligned(n + n/4)
	}
	return c.d.tmp[:n:n], nil
}

func numericWidth(w int) bool { return w == 1 || w == 2 || w == 4 || w == 8 }

// aligned reports whether numbers of width bytes can be read from b in place.
func aligned(b []byte, width int) bool {
	var ok bool
	switch width {
	case 1:
		return true
	case 2:
		_, ok = cast.Of[uint16](b)
	case 4:
		_, ok = cast.Of[uint32](b)
	case 8:
		_, ok = cast.Of[uint64](b)
	}
	return ok
}

package openzl

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/codecs"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/memory"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/wire"
	"github.com/chaski-eo/chaski/internal/cast"
)

// Type is the type of a stream and of an output.
type Type = codecs.Type

// Types. Their values are private to this package.
const (
	Serial  = codecs.Serial  // bytes
	Struct  = codecs.Struct  // elements of one width, of any width from 1 up
	Numeric = codecs.Numeric // integers of 1, 2, 4 or 8 bytes, little-endian
	String  = codecs.String  // byte strings of any lengths
)

// Output is one decoded output of a frame.
type Output struct {
	Type  Type
	Width int      // bytes an element: 1 for Serial, 0 for String
	Count int      // elements; for String the number of strings
	Data  []byte   // Width*Count bytes, numbers little-endian; for String the strings end to end
	Lens  []uint32 // lengths of the strings; nil for other types
}

// DefaultMaxOutput is the default of Options.MaxOutput: the default limit of a decoded TIFF chunk too.
const DefaultMaxOutput = 256 << 20

// Options are the options of a Decoder. The zero value has sensible defaults.
type Options struct {
	// MaxOutput bounds the total size of the outputs of a frame in bytes; 0 means 256 MiB. Outputs and
	// intermediate streams together may take a quarter more at any time, and at most a fixed multiple
	// of the sizes of the frame and its outputs. A frame that needs more is refused with kind Limit.
	MaxOutput int
	// SkipChecksums does not verify the checksums of chunks and of their content, which the original
	// library offers too. The checksum of the frame header is always verified.
	SkipChecksums bool
	// Custom holds custom codecs by id. It must not be changed while a Decoder uses it. Several
	// decoders may share it.
	Custom map[uint32]*CustomCodec
}

// Decoder decodes frames, one after the other. It keeps its memory between frames, so a frame of the
// same shape as an earlier one allocates nothing. It is for one goroutine.
type Decoder struct {
	opt     Options
	header  frameHeader
	chunk   chunkMap
	graph   streamGraph
	outs    []Output
	buffers []outputMemory // the memory of outs
	space   codecs.Workspace
	ins     []*codecs.Stream // inputs of the node that runs
	regens  []*codecs.Stream // regenerated streams of the node that runs
	hash    *xxh3.Hasher
	lens    []byte // lengths of strings as bytes, to be hashed
}

// outputMemory is the memory behind one output.
type outputMemory struct {
	data *memory.Buffer[byte]
	lens *memory.Buffer[uint32]
}

// NewDecoder returns a decoder for one worker.
func NewDecoder(o Options) *Decoder {
	if o.MaxOutput <= 0 {
		o.MaxOutput = DefaultMaxOutput
	}
	o.MaxOutput = min(o.MaxOutput, math.MaxInt/64) // arithmetic stays in range
	return &Decoder{opt: o, space: codecs.Workspace{Memory: memory.New()}}
}

// Decode decodes a whole frame. The outputs are valid until the next call of Decode or Decompress; they do
// not share memory with frame. Errors are of kind Corrupt, Unsupported or Limit. Their part is "frame
// header", "chunk 0 header", "chunk 0 node 3", "chunk 0" or "frame footer", and their offset counts from
// the start of the frame.
func (d *Decoder) Decode(frame []byte) ([]Output, error) {
	d.reset()
	cursor := wire.Cursor{B: frame}
	if err := d.header.parse(&cursor, d.opt.MaxOutput); err != nil {
		return nil, err
	}
	d.outs = memory.Resize(d.outs, len(d.header.types))
	d.buffers = memory.Resize(d.buffers, len(d.header.types))
	for i := range d.outs {
		d.outs[i] = Output{Type: d.header.types[i]}
		d.buffers[i] = outputMemory{}
	}
	if err := d.chunks(&cursor); err != nil {
		return nil, err
	}
	return d.outs, nil
}

// Decompress fills dst from a frame with exactly one output: numeric, of width sample, with
// len(dst)/sample elements. If the graph allows it, the last node writes
// directly into dst. After an error the contents of dst are arbitrary.
func (d *Decoder) Decompress(dst, frame []byte, sample int) error {
	d.reset()
	cursor := wire.Cursor{B: frame}
	if err := d.header.parse(&cursor, d.opt.MaxOutput); err != nil {
		return err
	}
	switch {
	case !cast.IsWidth(sample):
		return headerFault(fault.Unsupported, 0, "samples of %d bytes in an OpenZL frame", sample)
	case len(d.header.types) != 1:
		return headerFault(fault.Unsupported, 0, "%d outputs: a chunk needs one numeric output", len(d.header.types))
	case d.header.types[0] != Numeric:
		return headerFault(fault.Unsupported, 0, "%s output: a chunk needs a numeric one", d.header.types[0])
	case d.header.sizes[0] != len(dst):
		return headerFault(fault.Corrupt, 0, "output of %d bytes, %d are needed", d.header.sizes[0], len(dst))
	}
	d.outs = memory.Resize(d.outs, 1)
	d.outs[0] = Output{Type: Numeric, Data: dst[:0]}
	d.buffers = memory.Resize(d.buffers, 1)
	d.buffers[0] = outputMemory{}
	d.space.Direct = dst
	err := d.chunks(&cursor)
	output := d.outs[0]
	d.outs, d.space.Direct = d.outs[:0], nil
	if err != nil {
		return err
	}
	if output.Width != sample && len(dst) > 0 {
		return headerFault(fault.Corrupt, 0, "elements of %d bytes, samples have %d", output.Width, sample)
	}
	return nil
}

// reset releases the memory of the last frame's outputs and streams.
func (d *Decoder) reset() {
	d.graph.drop(d)
	for i, buffers := range d.buffers {
		if buffers.data != nil {
			d.space.Memory.Bytes.Release(buffers.data)
		}
		if buffers.lens != nil {
			d.space.Memory.Lens.Release(buffers.lens)
		}
		d.buffers[i] = outputMemory{}
	}
	d.buffers, d.outs, d.space.Direct = d.buffers[:0], d.outs[:0], nil
	d.space.Memory.Trim()
}

// chunks decodes all chunks. It checks that the frame ends with the last one and that the outputs have the
// sizes that the header states.
func (d *Decoder) chunks(c *wire.Cursor) error {
	d.setLimit(len(c.B))
	for i := 0; ; i++ {
		end, err := d.header.isEnd(c, i)
		if end && i == 0 {
			err = fault.At(fault.Corrupt, "frame footer", int64(c.Off), "frame ends without a chunk")
		}
		if err != nil {
			return err
		}
		if end {
			break
		}
		start := c.Off
		if err := d.oneChunk(c); err != nil {
			return inChunk(err, i, start)
		}
	}
	if d.header.version >= chunkVersion {
		c.Off++ // the end mark
	}
	if c.Left() > 0 {
		return fault.At(fault.Corrupt, "frame footer", int64(c.Off), "%d bytes after the end", c.Left())
	}
	for i, output := range d.outs {
		if len(output.Data) != d.header.sizes[i] {
			return fault.At(fault.Corrupt, "frame footer", int64(c.Off), "output %d has %d bytes, header says %d",
				i, len(output.Data), d.header.sizes[i])
		}
		if strings := d.header.strings[i]; strings >= 0 && strings != output.Count {
			return fault.At(fault.Corrupt, "frame footer", int64(c.Off), "output %d has %d strings, header says %d",
				i, output.Count, strings)
		}
	}
	return nil
}

// inChunk adds the number of the chunk to err, and the offset of the chunk if err has none.
func inChunk(err error, i, start int) error {
	var located *fault.Error
	base := int64(0)
	if errors.As(err, &located) && located.Off < 0 {
		base = int64(start)
	}
	return fault.WithPart(err, "chunk "+strconv.Itoa(i), base)
}

// setLimit bounds the memory of the streams of a frame: in proportion to the sizes that its header states
// and to its own size, and within the options.
func (d *Decoder) setLimit(frame int) {
	// Outputs, a quarter of them for streams on the way, and 1 MiB for the tables of tiny frames.
	limit := d.opt.MaxOutput + d.opt.MaxOutput/4 + 1<<20
	// No sensible graph comes near these factors. In float64, because the products of hostile sizes
	// would overflow an int.
	need := 32*float64(d.header.total) + 64*float64(frame)
	for _, strings := range d.header.strings {
		need += 32 * float64(max(strings, 0))
	}
	d.space.Memory.SetLimit(int(min(float64(limit), need+1<<20)))
}

func (d *Decoder) oneChunk(c *wire.Cursor) error {
	start := c.Off
	if d.header.version < chunkVersion {
		// These versions compute the checksum from the first byte of the frame, so its header counts too.
		start = 0
	}
	if err := d.chunk.parse(c, &d.header); err != nil {
		return err
	}
	var content, stored uint32
	if d.header.contentChecksum {
		content = c.U32()
	}
	end := c.Off
	if d.header.chunkChecksum {
		stored = c.U32()
	}
	if c.Bad {
		return fault.At(fault.Corrupt, "", int64(c.Off), "frame ends within the chunk's checksums")
	}
	verify := !d.opt.SkipChecksums
	if d.header.chunkChecksum && verify {
		if sum := uint32(xxh3.Hash(c.B[start:end])); sum != stored {
			return fault.At(fault.Corrupt, "", int64(end),
				"checksum of the stored bytes is %#08x, chunk says %#08x", sum, stored)
		}
	}
	if err := d.graph.build(d); err != nil {
		return err
	}
	for i := range d.chunk.nodes {
		if err := d.run(i); err != nil {
			return fault.WithPart(err, "node "+strconv.Itoa(i), fault.NoOffset)
		}
	}
	if d.header.contentChecksum && verify {
		if sum := d.contentSum(); sum != content {
			return fault.At(fault.Corrupt, "", int64(end-4),
				"checksum of the content is %#08x, chunk says %#08x", sum, content)
		}
	}
	return d.collect()
}

// contentSum hashes the final streams of a chunk in the order of the outputs. Since version 15 it includes
// the lengths of strings.
func (d *Decoder) contentSum() uint32 {
	graph := &d.graph
	if stream := graph.final(0); graph.outputs == 1 && stream.Type != String {
		return uint32(xxh3.Hash(stream.Data))
	}
	if d.hash == nil {
		d.hash = xxh3.New()
	}
	d.hash.Reset()
	for i := range graph.outputs {
		stream := graph.final(i)
		_, _ = d.hash.Write(stream.Data) // a hash.Hash never fails
		if stream.Type == String && d.header.version >= 15 {
			lens, ok := cast.Bytes(stream.Lens)
			if !ok {
				d.lens, _ = binary.Append(d.lens[:0], binary.LittleEndian, stream.Lens) // it knows the size of numbers
				lens = d.lens
			}
			_, _ = d.hash.Write(lens)
		}
	}
	return uint32(d.hash.Sum64())
}

// collect appends the final streams of a chunk to the outputs. If the first chunk holds a whole output, it
// hands the stream over without a copy.
func (d *Decoder) collect() error {
	for i := range d.outs {
		output, buffers, stream := &d.outs[i], &d.buffers[i], d.graph.final(i)
		if output.Type != String && output.Count > 0 && stream.Count > 0 && output.Width != stream.Width {
			return fault.New(fault.Corrupt, "", "output %d changes from width %d to %d", i, output.Width, stream.Width)
		}
		size := d.header.sizes[i]
		if len(stream.Data) > size-len(output.Data) {
			return fault.New(fault.Corrupt, "", "output %d has more bytes than the header says", i)
		}
		if output.Count == 0 || stream.Count > 0 {
			output.Width = stream.Width
		}
		output.Count += stream.Count
		switch {
		case d.space.Direct != nil:
			if !stream.Direct {
				copy(d.space.Direct, stream.Data)
			}
			output.Data = output.Data[:len(output.Data)+len(stream.Data)]
			d.space.Direct = d.space.Direct[len(stream.Data):]
		case buffers.data == nil && stream.Buf != nil && len(stream.Data) == size:
			buffers.data, output.Data = stream.Buf, stream.Data
			stream.Buf.Retain()
		default:
			if buffers.data == nil {
				if err := d.space.Memory.Reserve(size); err != nil {
					return err
				}
				buffers.data = d.space.Memory.Bytes.Get(size)
				output.Data = buffers.data.Mem[:0]
			}
			output.Data = append(output.Data, stream.Data...)
		}
		if stream.Type == String {
			if err := d.collectLens(i, stream); err != nil {
				return err
			}
		}
	}
	d.graph.drop(d)
	return nil
}

// collectLens appends the lengths of s to output i. What made s bounds their number. The number in the
// header, if there is one, is compared at the end.
func (d *Decoder) collectLens(i int, s *edge) error {
	output, buffers := &d.outs[i], &d.buffers[i]
	count := len(output.Lens) + len(s.Lens)
	if buffers.lens == nil || count > len(buffers.lens.Mem) {
		if err := d.space.Memory.Reserve(8 * count); err != nil {
			return err
		}
		// Doubling ensures that many small chunks cost linear time.
		bigger := d.space.Memory.Lens.Get(max(count, 2*len(output.Lens)))
		copy(bigger.Mem, output.Lens)
		if buffers.lens != nil {
			d.space.Memory.Lens.Release(buffers.lens)
		}
		buffers.lens = bigger
	}
	copy(buffers.lens.Mem[len(output.Lens):], s.Lens)
	output.Lens = buffers.lens.Mem[:count]
	return nil
}

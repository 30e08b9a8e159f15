package codecs

import (
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/memory"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/wire"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/zstd"
)

// Codec is a codec as the decoder sees it: In has the types of the streams it takes, Out the types of the
// streams it regenerates. (The encoder's view is the other way round, and so are the names of the
// conversions: convert_num_to_serial_le makes numbers from bytes here.)
type Codec struct {
	Name        string
	In          []Type
	Vars        []Type // types its variable inputs may have; nil if it has none
	Out         []Type
	LastRepeats bool  // the last of Out may occur any number of times
	Alias       bool  // its output usually shares the bytes of its input
	Min, Max    uint8 // first and last format version it occurs in; a Max of 0 means all later ones
	Decode      func(*Call) error
}

// Workspace is the memory that the codecs of one decoder share: for streams, and for tables and
// scratch, which one codec uses at a time. It is for one goroutine.
type Workspace struct {
	Memory memory.Memory
	Direct []byte // where output 0 of the chunk may be written, nil if nowhere

	call   Call
	zstd   *zstd.Decoder
	fse    kernel.FSETable
	huf    kernel.HuffmanTable
	pivco  *kernel.Pivco
	merge  []byte // what pivco merges
	rolz   *rolzCall
	tmp    []byte // see Call.Scratch
	framed []byte // a zstd frame with its magic number
	tabs   [][]byte
	wide   []uint32
	parts  kernel.Partitions
}

// Call is one run of a codec: what its binding sees.
type Call struct {
	w       *Workspace
	Version int // format version of the frame
	Header  []byte
	In      []*Stream // fixed inputs, then variable ones
	Out     []*Stream // to be made with Make, makeLens, alias and their like
}

// Run runs codec c on in, which makes out.
func (w *Workspace) Run(c *Codec, version int, header []byte, in, out []*Stream) error {
	// The call is a field, because a local variable whose address goes to a function value would be
	// allocated at every node.
	w.call = Call{w, version, header, in, out}
	return c.Decode(&w.call)
}

// Corrupt returns the error of a codec that meets what its format rules out.
func (c *Call) Corrupt(format string, args ...any) error {
	return fault.New(fault.Corrupt, "", format, args...)
}

// Make gives Out[i] memory for count elements of width bytes and returns it. Contents are arbitrary;
// a binding that fills less calls trim after. The type of the stream is set already. Strings have
// makeLens, and makeStrings or aliasStrings, instead.
func (c *Call) Make(i, width, count int) ([]byte, error) {
	return c.makeSpare(i, width, count, 0)
}

// makeSpare is Make for memory with a capacity of spare bytes more, which may be written to.
func (c *Call) makeSpare(i, width, count, spare int) ([]byte, error) {
	stream := c.Out[i]
	if width < 1 || count < 0 || count > math.MaxInt/width {
		return nil, c.Corrupt("stream of %d elements of %d bytes", count, width)
	}
	size := width * count
	if stream.Type == Serial && width != 1 || stream.Type == Numeric && !cast.IsWidth(width) {
		return nil, c.Corrupt("%s stream of width %d", stream.Type, width)
	}
	stream.Width, stream.Count = width, count
	if spare > 0 {
		// The caller's memory has no spare bytes, so the stream is made elsewhere and copied later.
		stream.Direct = false
	}
	if stream.Direct {
		// Numbers in the caller's memory must be aligned, otherwise the kernels would take their
		// slow paths, which costs more than the copy.
		if stream.Direct = size <= len(c.w.Direct) && aligned(c.w.Direct, 8); stream.Direct {
			stream.Data = c.w.Direct[:size:size]
			return stream.Data, nil
		}
	}
	if err := c.w.Memory.Reserve(size + spare); err != nil {
		return nil, err
	}
	stream.Buf = c.w.Memory.Bytes.Get(size + spare)
	stream.Data = stream.Buf.Mem[:size:size]
	return stream.Buf.Mem[: size : size+spare], nil
}

// trim shortens Out[i] to its first count elements.
func (c *Call) trim(i, count int) {
	stream := c.Out[i]
	stream.Count, stream.Data = count, stream.Data[:count*stream.Width]
}

// makeLens gives Out[i], a String stream, memory for the lengths of n strings and returns it. The
// lengths must add up to len(Data).
func (c *Call) makeLens(i, n int) ([]uint32, error) {
	if n < 0 || n > math.MaxInt/8 {
		return nil, c.Corrupt("%d strings", n)
	}
	if err := c.w.Memory.Reserve(4 * n); err != nil {
		return nil, err
	}
	stream := c.Out[i]
	stream.Width, stream.Count = 0, n
	stream.LensBuf = c.w.Memory.Lens.Get(n)
	stream.Lens = stream.LensBuf.Mem[:n:n]
	return stream.Lens, nil
}

// makeStrings gives Out[i], whose lengths are made, memory for n bytes and returns it.
func (c *Call) makeStrings(i, n int) ([]byte, error) {
	stream := c.Out[i]
	if err := c.w.Memory.Reserve(n); err != nil {
		return nil, err
	}
	stream.Buf = c.w.Memory.Bytes.Get(n)
	stream.Data = stream.Buf.Mem[:n:n]
	return stream.Data, nil
}

// alias makes Out[i] share the bytes of an input, as count elements of width bytes.
func (c *Call) alias(i int, in *Stream, width, count int) error {
	return c.share(i, in.Data, in.Buf, in.Direct, width, count)
}

// aliasPart is alias for the bytes of an input from byte from on.
func (c *Call) aliasPart(i int, in *Stream, from, width, count int) error {
	return c.share(i, in.Data[from:from+width*count], in.Buf, false, width, count)
}

// share makes Out[i] use data, which lies in buf. It copies numbers that are not aligned.
func (c *Call) share(i int, data []byte, buf *memory.Buffer[byte], direct bool, width, count int) error {
	stream := c.Out[i]
	if stream.Type == Numeric && !aligned(data, width) {
		dst, err := c.Make(i, width, count)
		if err != nil {
			return err
		}
		copy(dst, data)
		return nil
	}
	stream.Width, stream.Count, stream.Data, stream.Buf, stream.Direct = width, count, data, buf, direct
	if buf != nil {
		buf.Retain()
	}
	return nil
}

// aliasStrings makes Out[i], whose lengths are made, share n bytes of an input from byte from on.
func (c *Call) aliasStrings(i int, in *Stream, from, n int) {
	stream := c.Out[i]
	stream.Data, stream.Buf = in.Data[from:from+n], in.Buf
	if stream.Buf != nil {
		stream.Buf.Retain()
	}
}

// starts returns where each string of in begins. The result lives until the next call of starts.
func (c *Call) starts(in *Stream) ([]uint32, error) {
	if uint64(len(in.Data)) > math.MaxUint32 {
		return nil, c.Corrupt("strings of %d bytes", len(in.Data))
	}
	if in.Count > cap(c.w.wide) {
		if err := c.w.Memory.Reserve(4 * in.Count); err != nil {
			return nil, err
		}
	}
	c.w.wide = memory.Resize(c.w.wide, in.Count)
	pos := uint32(0)
	for i, size := range in.Lens {
		c.w.wide[i] = pos
		pos += size
	}
	return c.w.wide, nil
}

// Scratch returns n bytes that live until the next call of Scratch. Contents are arbitrary.
func (c *Call) Scratch(n int) ([]byte, error) {
	if n > cap(c.w.tmp) {
		if err := c.w.Memory.Reserve(n); err != nil {
			return nil, err
		}
		// A quarter more, so tiles whose streams grow a little do not allocate every time.
		c.w.tmp = cast.Aligned(n + n/4)
	}
	return c.w.tmp[:n:n], nil
}

// number returns the varint that the header begins with, and how many bytes follow it, or -1 if the header
// has no varint.
func (c *Call) number() (value uint64, rest int) {
	header := wire.Cursor{B: c.Header}
	if value = header.Varint(); header.Bad {
		return 0, -1
	}
	return value, header.Left()
}

// zstdMagic begins a zstd frame (RFC 8878, 3.1.1).
const zstdMagic = "\x28\xb5\x2f\xfd"

// Unzstd fills dst from src, one zstd frame without its magic number. It may write to the capacity
// of dst.
func (c *Call) Unzstd(dst, src []byte) error {
	space := c.w
	space.framed = append(append(space.framed[:0], zstdMagic...), src...)
	if space.zstd == nil {
		space.zstd = zstd.New()
	}
	return space.zstd.Decompress(dst, space.framed)
}

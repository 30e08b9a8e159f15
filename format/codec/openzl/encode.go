package openzl

import (
	"cmp"
	"math/bits"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/wire"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/planes"
	"github.com/chaski-eo/chaski/internal/zstd"
)

// Ids of the codecs that are written. Those from 0x72D700 on are codecs of geozl.
const (
	idDelta          = 1
	idZigzag         = 3
	idTransposeSplit = 4
	idSerialToStruct = 6
	idNumToStruct    = 8
	idNumToSerial    = 10
	idZstd           = 22
	idBitpackSerial  = 27
	idBitpackInt     = 28
	idSplitN         = 40
	idFlatpack       = 29
	idConstantSerial = 44
	idConstantFixed  = 45
	idFSE            = 49
	idHuffman        = 50
	idFSECounts      = 52
	idPivco          = 67

	idPlanar            = 0x72D703
	idPfor              = 0x72D70D
	idPlanarZigzag      = 0x72D70F
	idPlanarZigzagPfor  = 0x72D710
	idPlanarZigzagPivco = 0x72D712
)

// DefaultLevel is the default of EncodeOptions.Level; the original library has the same.
const DefaultLevel = 6

// EncodeOptions are the options of an Encoder. The zero value has sensible defaults.
type EncodeOptions struct {
	// Level is a zstd level, 1 to 22; 0 means DefaultLevel. klauspost/compress has four levels: from 6
	// on, content that shrinks to a third is searched more deeply; from 20 on, all content is.
	Level int
	// Geozl is the release 0.Geozl of geozl that readers have; 0 means none. The names Geozl14, Geozl18 and
	// Geozl19 say what came with which. It restricts what auto and best choose. Reading needs package geozl.
	Geozl int
	// MaxCost restricts auto and best to graphs that take at most so many times as long to decode as delta>zstd,
	// which is how a TOG stores tiles. It compares the figures of a table; it does not measure. The table has the
	// figures of PivCo for processors with AVX-512 VBMI2, with AVX2, and others. Best has the default DefaultMaxCost,
	// auto none.
	MaxCost float64
	// Bare is for frames that only this process, or a cache with checksums of its own, keeps: they carry no checksums.
	Bare bool
}

// DefaultMaxCost is the default of EncodeOptions.MaxCost for best: the cost of planar>zigzag>transpose>zstd of
// uint16. Chips of it train with 1.17 to 1.28 times less processor time than TOGs, those that auto chooses with
// 1.11 times less.
const DefaultMaxCost = 0.71

// Releases of geozl, for EncodeOptions.Geozl.
const (
	Geozl14 = 14 // planar
	Geozl18 = 18 // planar_zigzag, which decodes faster than its two parts, and pfor; what rumi-eo 0.26 has
	Geozl19 = 19 // pivco, with OpenZL 0.3, whose format version is 27
)

// Encoder writes frames with one graph, one after the other. It keeps its memory between frames. It is for
// one goroutine.
type Encoder struct {
	graph graphSpec // with auto, the last choice
	auto  bool
	opt   EncodeOptions
	w     frameWriter
	bufs  [][]byte // memory of this frame's streams
	used  int
	trial []byte
	pivco *kernel.Pivco
	loops kernel.PivcoLoops // the processor, for the costs of graphs

	exceptionCost int // see kernel.ExceptionCost
}

// NewEncoder returns an encoder for a graph, named by its parts in the order in which they are
// applied:
//
//	[delta> or planar>] [zigzag>] [transpose>] store, zstd, entropy, bitpack, constant, pfor or pivco
//
// or "auto" or "best", which try several on a part of each raster and take the smallest, best of those that decode
// fast (EncodeOptions.MaxCost); or "fast", which is planar>zigzag>pfor for frames that decode as fast as can be: pfor
// puts fewer numbers in place one by one, and of the checksums there is only the one of the stored bytes.
// delta is the difference to the sample before,
// planar (a codec of geozl) the difference to W + N - NW. zigzag maps 0, -1, 1, -2, ... to 0, 1, 2, 3, ....
// transpose splits samples into one stream per byte (TransposeSplit). zstd and entropy code each stream;
// entropy is whichever is smallest of Huffman, FSE, fewer bits, or one byte for all. Without transpose,
// entropy needs samples of one byte. bitpack, which excludes transpose, stores numbers in as many bits as
// the largest needs. constant is for samples that are all equal. pfor (a codec of geozl) excludes transpose and
// stores blocks of 256 numbers in as many bits as most of a block need. pivco is entropy with PivCo Huffman,
// of format version 27; without transpose it needs samples of one byte, or planar>zigzag, which is one codec of
// geozl with it then.
//
// The error, of kind Unsupported, names the part that is not one of these.
func NewEncoder(graph string, o EncodeOptions) (*Encoder, error) {
	o.Level = cmp.Or(o.Level, DefaultLevel)
	encoder := &Encoder{opt: o, loops: kernel.PivcoHere(), exceptionCost: kernel.ExceptionCost}
	if graph == "fast" {
		graph, encoder.w.omitted, encoder.exceptionCost = fastGraph, sumContent, kernel.FastExceptionCost
	}
	if o.Bare {
		encoder.w.omitted = sumContent | sumStored
	}
	if encoder.auto = graph == "auto" || graph == "best"; encoder.auto {
		if graph == "best" && o.MaxCost == 0 {
			encoder.opt.MaxCost = DefaultMaxCost
		}
		return encoder, nil
	}
	var err error
	encoder.graph, err = parseGraph(graph)
	return encoder, err
}

// Encode appends to dst a frame of format version 24, or 27 where it has PivCo Huffman. It holds samples,
// little-endian numbers of width bytes (1, 2, 4 or 8) in h rows of w, as one numeric output. Planes of several bands
// may follow each other as further rows. The frame carries both checksums, as frames of the original library do by
// default, unless it is bare or of the graph "fast". If the graph does not make the samples smaller, the frame stores
// them as they are. The error, of kind Unsupported, says that the sizes contradict each other, or that the graph does
// not suit the samples.
func (e *Encoder) Encode(dst, samples []byte, width, h, w int) ([]byte, error) {
	if err := checkSamples(samples, width); err != nil {
		return dst, err
	}
	count := len(samples) / width
	tooMany := h > 0 && w > count/h // h*w could overflow
	if h < 0 || w < 0 || tooMany || h*w != count {
		return dst, fault.New(fault.Unsupported, "samples",
			"%d bytes are not %d rows of %d numbers of %d bytes", len(samples), h, w, width)
	}
	if e.auto {
		e.choose(samples, width, h, w)
	}
	start := len(dst)
	dst, err := e.encode(dst, samples, width, w)
	if err != nil || e.graph.end == "store" && e.graph.predict == predictNone {
		return dst, err
	}
	if len(dst)-start > len(samples)+storeOverhead {
		return Store(dst[:start], samples, width)
	}
	return dst, nil
}

// storeOverhead is a lower bound of what Store adds: the frame header has 8 bytes or more, the checksums 8,
// and the decoding map with the end mark more than 8.
const storeOverhead = 24

// encode encodes samples with e.graph.
func (e *Encoder) encode(dst, samples []byte, width, row int) ([]byte, error) {
	e.w.reset()
	e.used = 0
	if len(samples) == 0 {
		return Store(dst, samples, width)
	}
	if err := e.numbers(samples, width, row); err != nil {
		return dst, err
	}
	return e.w.appendTo(dst, samples), nil
}

// buffer returns size bytes that are valid until the next frame.
func (e *Encoder) buffer(size int) []byte {
	if e.used == len(e.bufs) {
		e.bufs = append(e.bufs, nil)
	}
	held := &e.bufs[e.used]
	e.used++
	if size > cap(*held) {
		// An eighth more, so slightly larger tiles do not allocate again.
		*held = cast.Aligned(size + size/8)
	}
	return (*held)[:size:cap(*held)]
}

// keep replaces the last result of buffer by grown, which has outgrown it.
func (e *Encoder) keep(grown []byte) []byte {
	e.bufs[e.used-1] = grown
	return grown
}

// numbers builds the graph for the output.
func (e *Encoder) numbers(samples []byte, width, row int) error {
	graph := &e.graph
	packs := graph.end == "pfor" || graph.end == "pivco"
	if packs && graph.predict == predictPlanar && graph.zigzag && !graph.transpose {
		e.planarZigzag(samples, width, row)
		return nil
	}
	place, samples := e.predicted(samples, width, row)
	switch {
	case graph.end == "bitpack":
		e.bitpack(place, idBitpackInt, samples, width)
		return nil
	case graph.end == "pfor":
		e.pfor(place, idPfor, nil, samples, width)
		return nil
	case graph.end == "constant":
		return e.constant(place, samples, width)
	case graph.transpose && width > 1 && len(samples) > 0:
		e.planes(place, samples, width)
		return nil
	}
	if (graph.end == "entropy" || graph.end == "pivco") && width > 1 && len(samples) > 0 {
		return fault.New(fault.Unsupported, "samples",
			"graph %s for numbers of %d bytes, which need transpose", e.Graph(), width)
	}
	e.serial(e.chain(place, idNumToSerial, e.w.header(byte(bits.Len(uint(width))-1))), samples)
	return nil
}

// predicted adds the nodes of the prediction and of zigzag, and returns the residuals.
func (e *Encoder) predicted(samples []byte, width, row int) (slot, []byte) {
	graph := &e.graph
	place := slot{-1, 0}
	joined := false
	switch graph.predict {
	case predictDelta:
		place = e.chain(place, idDelta, e.w.header(samples[:width]...))
		deltas := e.buffer(len(samples) - width)
		kernel.Differences(deltas, samples, width)
		samples = deltas
	case predictPlanar:
		id := uint32(idPlanar)
		if joined = graph.zigzag && e.opt.Geozl >= Geozl18; joined {
			id = idPlanarZigzag
		}
		place = e.chain(place, id, e.w.header(byte(row), byte(row>>8), byte(row>>16), byte(row>>24)))
		residuals := e.buffer(len(samples))
		kernel.PlanarResiduals(residuals, samples, width, row)
		samples = residuals
	}
	if graph.zigzag {
		if !joined {
			place = e.chain(place, idZigzag, nil)
		}
		if graph.predict == predictNone {
			samples = append(e.buffer(len(samples))[:0], samples...)
		}
		kernel.ZigzagMap(samples, width)
	}
	return place, samples
}

// slot is an input of a node. The node of the frame's output is -1.
type slot struct{ node, input int }

// set sets the source of the stream for a slot.
func (e *Encoder) set(at slot, stream written) {
	if at.node >= 0 {
		e.w.nodes[at.node].in[at.input] = stream
	}
}

// node adds a node, with so many inputs, that makes the stream for a slot.
func (e *Encoder) node(at slot, id uint32, header []byte, inputs int) int {
	index := e.w.add(id, header, inputs)
	e.set(at, written{node: index})
	return index
}

// chain adds a node with one input and returns that input.
func (e *Encoder) chain(at slot, id uint32, header []byte) slot {
	return slot{e.node(at, id, header, 1), 0}
}

func (e *Encoder) store(at slot, content []byte) { e.set(at, written{node: stored, bytes: content}) }

// planes splits samples into one stream per byte.
func (e *Encoder) planes(at slot, samples []byte, width int) {
	at = e.chain(at, idNumToStruct, nil)
	node := e.node(at, idTransposeSplit, nil, width)
	e.w.nodes[node].vars = width
	split := e.buffer(len(samples))
	planes.Split(split, samples, width)
	count := len(samples) / width
	for plane := range width {
		e.serial(slot{node, plane}, split[plane*count:(plane+1)*count])
	}
}

// serial adds the last codec.
func (e *Encoder) serial(at slot, content []byte) {
	switch e.graph.end {
	case "zstd":
		e.zstd(at, content)
	case "entropy", "pivco":
		e.entropyBlocks(at, content)
	default:
		e.store(at, content)
	}
}

func (e *Encoder) zstd(at slot, content []byte) {
	frame := e.keep(zstd.Append(e.buffer(len(content) / 2)[:0], content, e.opt.Level))
	// The codec stores the width of the elements in place of the four bytes of zstd's magic number.
	// The width is one byte here, so it overwrites the last of the four.
	frame = frame[3:]
	frame[0] = 1
	e.store(e.chain(at, idZstd, nil), frame)
}

func (e *Encoder) constant(at slot, samples []byte, width int) error {
	if i := firstOther(samples, width); i < len(samples) {
		return fault.At(fault.Unsupported, "samples", int64(i), "graph constant for samples that differ")
	}
	at = e.chain(at, idNumToStruct, nil)
	at = e.chain(at, idConstantFixed, e.w.varintHeader(uint64(len(samples)/width)))
	e.store(e.chain(at, idSerialToStruct, e.w.varintHeader(uint64(width))), samples[:width])
	return nil
}

// bitpack stores numbers of width bytes in as many bits as the largest needs.
func (e *Encoder) bitpack(at slot, id uint32, numbers []byte, width int) {
	nbits := kernel.BitsFor(numbers, width)
	count := len(numbers) / width
	packed := e.buffer((count*nbits + 7) / 8)
	kernel.Bitpack(packed, numbers, width, nbits)
	header := e.w.header(byte(bits.Len(uint(width))-1)<<6 | byte(nbits-1))
	if missing := 8*len(packed)/nbits - count; missing > 0 {
		header = e.w.header(header[0], byte(missing))
	}
	e.store(e.chain(at, id, header), packed)
}

// nodeBytes is about how many bytes a node adds to a frame beside its header and its stream: its id and
// flags take 2, the distance of its stream and the size of a stored one 1 each.
const nodeBytes = 4

// entropyBlock is the most that is coded with one table, so each of the four Huffman streams, a quarter
// of it at 11 bits or fewer per byte, has a size that fits in 16 bits.
const entropyBlock = 1 << 16

// entropyBlocks codes bytes block by block.
func (e *Encoder) entropyBlocks(at slot, content []byte) {
	blocks := (len(content) + entropyBlock - 1) / entropyBlock
	if blocks < 2 {
		e.entropy(at, content)
		return
	}
	node := e.node(at, idSplitN, nil, blocks)
	e.w.nodes[node].vars = blocks
	for block := range blocks {
		e.entropy(slot{node, block}, content[block*len(content)/blocks:(block+1)*len(content)/blocks])
	}
}

// entropy codes bytes in the way that takes the fewest bytes.
func (e *Encoder) entropy(at slot, content []byte) {
	if len(content) == 0 {
		e.store(at, content)
		return
	}
	counts := kernel.Histogram(content)
	if counts[content[0]] == uint32(len(content)) {
		e.store(e.chain(at, idConstantSerial, e.w.varintHeader(uint64(len(content)))), content[:1])
		return
	}
	kinds := 0
	for _, count := range counts {
		if count > 0 {
			kinds++
		}
	}
	weights, symbols, huffman := kernel.HuffmanWeights(&counts, maxWrittenBits)
	norm, _, fse := kernel.FSENormalize(&counts, kernel.FSELog(len(content), symbols-1))
	const stored, bitpacked, flatpacked, huffmaned, fsed = 0, 1, 2, 3, 4
	sizes := [...]int{
		stored:     len(content),
		bitpacked:  len(content)*kernel.BitsFor(content, 1)/8 + nodeBytes,
		flatpacked: len(content)*wire.BitsFor(kinds)/8 + kinds + 2*nodeBytes,
		huffmaned:  int(huffman/8) + weightBytes(kinds, symbols) + 4*nodeBytes,
		fsed:       int(fse/8) + countBytes(kinds, symbols) + 3*nodeBytes,
	}
	// Huffman decodes faster, so FSE needs to be smaller by 1/64 to be worth it. PivCo Huffman decodes faster
	// still: by 1/32.
	pivco := e.graph.end == "pivco"
	if pivco {
		sizes[fsed] += sizes[fsed] / 32
	} else {
		sizes[fsed] += sizes[fsed] / 64
	}
	best := stored
	for i, size := range sizes {
		if size < sizes[best] {
			best = i
		}
	}
	switch {
	case best == stored:
		e.store(at, content)
	case best == bitpacked:
		e.bitpack(at, idBitpackSerial, content, 1)
	case best == flatpacked:
		e.flatpack(at, content, &counts, kinds)
	case best == huffmaned && pivco:
		e.pivcoHuffman(at, content, weights[:symbols], huffman)
	// A Huffman stream that is too long is not written. FSE is taken then, since its streams have any length.
	case best == huffmaned && e.huffman(at, content, weights[:symbols]):
	default:
		e.fse(at, content, norm[:symbols])
	}
}

// weightBytes and countBytes estimate the tables of Huffman and FSE in bytes, for an alphabet of symbols;
// kinds of them occur.
func weightBytes(kinds, symbols int) int { return min(kinds/3+8, symbols/2) + symbols/32 }
func countBytes(kinds, symbols int) int  { return kinds*2/3 + (symbols-kinds)/24 + 4 }

// flatpack codes bytes by their index among the values that occur.
func (e *Encoder) flatpack(at slot, content []byte, counts *[256]uint32, kinds int) {
	alphabet := e.buffer(kinds)[:0]
	var index [256]byte
	for symbol, count := range counts {
		if count > 0 {
			index[symbol] = byte(len(alphabet))
			alphabet = append(alphabet, byte(symbol))
		}
	}
	indices := e.buffer(len(content))
	for i, value := range content {
		indices[i] = index[value]
	}
	nbits := wire.BitsFor(kinds)
	packed := e.buffer(len(content)*nbits/8 + 1)
	packed[len(packed)-1] = 0
	kernel.Bitpack(packed[:(len(content)*nbits+7)/8], indices, 1, nbits)
	packed[len(packed)-1] |= 1 << (len(content) * nbits % 8) // the end mark
	node := e.node(at, idFlatpack, nil, 2)
	e.store(slot{node, 0}, alphabet)
	e.store(slot{node, 1}, packed)
}

// maxWrittenBits is the longest Huffman code that is written. Codes of 12 bits are allowed, but the fast
// decoders of four streams (see kernel.HuffmanTable) take at most 11.
const maxWrittenBits = 11

// lengthHeader is the header of the entropy codecs: one byte, and the number of symbols in as many
// bytes as it needs.
func (e *Encoder) lengthHeader(first byte, n int) []byte {
	header := [9]byte{first}
	size := 1
	for ; n > 0; n >>= 8 {
		header[size] = byte(n)
		size++
	}
	return e.w.header(header[:size]...)
}

// huffman codes content in four streams, or one if content is short. It reports false if a stream is too long.
func (e *Encoder) huffman(at slot, content, weights []byte) bool {
	coded := e.buffer(len(content))[:0]
	flags, ok := byte(0), true
	if len(content) >= 256 {
		flags = 1
		coded, ok = kernel.AppendHuffman4(coded, content, weights)
	} else {
		coded = kernel.AppendHuffman1(coded, content, weights)
	}
	if e.keep(coded); !ok {
		return false
	}
	node := e.node(at, idHuffman, e.lengthHeader(flags, len(content)), 2)
	e.store(slot{node, 1}, coded)
	e.weights(slot{node, 0}, weights)
	return true
}

// weights stores Huffman weights: with FSE or in four bits each.
func (e *Encoder) weights(at slot, weights []byte) {
	copied := append(e.buffer(len(weights))[:0], weights...)
	counts := kernel.Histogram(copied)
	if len(copied) >= 16 {
		last, kinds := 0, 0
		for symbol, count := range counts {
			if count > 0 {
				last = symbol
				kinds++
			}
		}
		if kinds == 1 {
			e.bitpack(at, idBitpackInt, copied, 1)
			return
		}
		norm, symbols, bits := kernel.FSENormalize(&counts, kernel.FSELog(len(copied), last))
		if int(bits/8)+countBytes(kinds, symbols)+2*nodeBytes < len(copied)*kernel.BitsFor(copied, 1)/8 {
			e.fse(e.chain(at, idNumToSerial, e.w.header(0)), copied, norm[:symbols])
			return
		}
	}
	e.bitpack(at, idBitpackInt, copied, 1)
}

func (e *Encoder) fse(at slot, content []byte, norm []int16) {
	if len(content) < 4 {
		e.store(at, content)
		return
	}
	states := 4
	if len(content) < 1000 {
		states = 2
	}
	node := e.node(at, idFSE, e.lengthHeader(byte(states), len(content)), 2)
	coded := e.keep(kernel.AppendFSE(e.buffer(len(content))[:0], content, norm, states))
	e.store(slot{node, 1}, coded)
	counts := e.keep(kernel.AppendFSECounts(e.buffer(64)[:0], norm))
	e.store(e.chain(slot{node, 0}, idFSECounts, nil), counts)
}

// Store appends to dst a frame of format version 24 that holds samples, little-endian numbers of width bytes (1, 2, 4
// or 8), as they are, in one numeric output with both checksums. The error, of kind Unsupported, names a width that is
// unknown or does not divide the length of samples.
func Store(dst, samples []byte, width int) ([]byte, error) {
	if err := checkSamples(samples, width); err != nil {
		return dst, err
	}
	var encoder Encoder
	encoder.store(encoder.chain(slot{-1, 0}, idNumToSerial, []byte{byte(bits.Len(uint(width)) - 1)}), samples)
	return encoder.w.appendTo(dst, samples), nil
}

func checkSamples(samples []byte, width int) error {
	switch {
	case !cast.IsWidth(width):
		return fault.New(fault.Unsupported, "samples", "numbers of %d bytes", width)
	case len(samples)%width != 0:
		return fault.New(fault.Unsupported, "samples",
			"%d bytes are not a whole number of samples of %d bytes", len(samples), width)
	}
	return nil
}

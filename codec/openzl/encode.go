package openzl

import (
	"math/bits"
	"strings"

	"github.com/chaski-eo/chaski/codec/openzl/internal/codecs"
	"github.com/chaski-eo/chaski/codec/openzl/internal/kernel"
	"github.com/chaski-eo/chaski/codec/openzl/internal/wire"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/zstd"
)

// Ids of the codecs that are written; those of geozl from idDeltaW on.
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
	idPlanar         = 0x72D703
)

// DefaultLevel is EncodeOptions.Level where that is 0, and the level of the original.
const DefaultLevel = 6

// EncodeOptions are the options of an Encoder. The zero value is a sound choice.
type EncodeOptions struct {
	// Level is a zstd level, 1 to 22; 0 for DefaultLevel. klauspost/compress has four levels: from 6 on
	// content that shrinks to a third is searched deeper for matches, from 20 on all content.
	Level int
	// Geozl lets auto choose graphs with codecs of geozl, which need package geozl to be read.
	Geozl bool
	// MinSpeed lets auto choose only graphs that decode at least that fast, in MB of samples a
	// second and core. It goes by rough figures for 16-bit samples on one machine, not by trying.
	MinSpeed float64
}

// Encoder writes frames with one graph, one after the other. It keeps its memory between frames.
// It is for one goroutine.
type Encoder struct {
	graph graphSpec // what auto chose last, for auto
	auto  bool
	opt   EncodeOptions
	w     frameWriter
	bufs  [][]byte // memory of this frame's streams
	used  int
	trial []byte
}

// Parts of a graph.
const (
	predictNone = iota
	predictDelta
	predictPlanar
)

// graphSpec is a graph by its parts: how samples are predicted, whether residuals are mapped to
// small numbers, whether their bytes are split into planes, and what comes last.
type graphSpec struct {
	predict   int
	zigzag    bool
	transpose bool
	end       string // store, zstd, entropy, bitpack or constant
}

// NewEncoder returns an encoder for a graph, named by its parts in the order in which they are
// applied:
//
//	[delta> or planar>] [zigzag>] [transpose>] store, zstd, entropy, bitpack or constant
//
// or "auto", which tries some on a part of each raster. delta is the difference to the sample
// before, planar (a codec of geozl) that to W + N - NW; zigzag maps 0, -1, 1, -2, ... to 0, 1, 2,
// 3, ...; transpose splits samples into one stream for each of their bytes (TransposeSplit). zstd
// and entropy code each stream; entropy is Huffman or FSE, whichever is smaller, or fewer bits, or
// one byte for all. bitpack, which does not go with transpose, stores numbers in as many bits as
// the largest needs; constant is for samples that are all equal. Without transpose entropy is for
// samples of one byte.
//
// The error, of kind Unsupported, says what the name has that is none of these.
func NewEncoder(graph string, o EncodeOptions) (*Encoder, error) {
	if o.Level == 0 {
		o.Level = DefaultLevel
	}
	e := &Encoder{opt: o}
	if graph == "auto" {
		e.auto = true
		return e, nil
	}
	var err error
	e.graph, err = parseGraph(graph)
	return e, err
}

func parseGraph(name string) (graphSpec, error) {
	var g graphSpec
	parts := strings.Split(name, ">")
	take := func(s string) bool {
		if len(parts) > 1 && parts[0] == s {
			parts = parts[1:]
			return true
		}
		return false
	}
	if take("delta") {
		g.predict = predictDelta
	} else if take("planar") {
		g.predict = predictPlanar
	}
	g.zigzag = take("zigzag")
	g.transpose = take("transpose")
	g.end = parts[0]
	switch {
	case len(parts) > 1,
		g.end != "store" && g.end != "zstd" && g.end != "entropy" && g.end != "bitpack" && g.end != "constant",
		g.transpose && (g.end == "bitpack" || g.end == "constant" || g.end == "store"),
		g.end == "constant" && (g.zigzag || g.predict != predictNone):
		return g, fault.New(fault.Unsupported, "graph", fault.NoOffset, "%q at %q", name, strings.Join(parts, ">"))
	}
	return g, nil
}

// Graph returns the name of the graph: for auto, of the one it chose last.
func (e *Encoder) Graph() string {
	g := &e.graph
	name := [...]string{"", "delta>", "planar>"}[g.predict]
	if g.zigzag {
		name += "zigzag>"
	}
	if g.transpose {
		name += "transpose>"
	}
	if g.end == "" {
		return "auto"
	}
	return name + g.end
}

// Encode appends to dst a frame of format version 24 that holds samples, little-endian numbers of
// width bytes (1, 2, 4 or 8) in h rows of w, as one numeric output. Planes of several bands may
// stand one below the other. The frame carries both checksums, as the original library's do by
// default, and is one of stored samples where the graph does not make them smaller. The error, of
// kind Unsupported, says that width or the length of samples is none, or that they do not suit the
// graph.
func (e *Encoder) Encode(dst, samples []byte, width, h, w int) ([]byte, error) {
	if err := checkSamples(samples, width); err != nil {
		return dst, err
	}
	if h < 0 || w < 0 || h > 0 && w > len(samples)/width/h || h*w != len(samples)/width {
		return dst, fault.New(fault.Unsupported, "samples", fault.NoOffset, "%d bytes are no %d rows of %d numbers of %d", len(samples), h, w, width)
	}
	if e.auto {
		e.choose(samples, width, h, w)
	}
	from := len(dst)
	dst, err := e.encode(dst, samples, width, w)
	if err != nil || e.graph.end == "store" && e.graph.predict == predictNone {
		return dst, err
	}
	if len(dst)-from > len(samples)+storeOverhead {
		return Store(dst[:from], samples, width)
	}
	return dst, nil
}

// storeOverhead is what Store adds to samples at least.
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

// buffer returns n bytes that live until the next frame.
func (e *Encoder) buffer(n int) []byte {
	if e.used == len(e.bufs) {
		e.bufs = append(e.bufs, nil)
	}
	b := &e.bufs[e.used]
	e.used++
	if n > cap(*b) {
		*b = cast.Aligned(n + n/8)
	}
	return (*b)[:n:cap(*b)]
}

// keep makes the last buffer that buffer returned b, which grew out of it.
func (e *Encoder) keep(b []byte) []byte {
	e.bufs[e.used-1] = b
	return b
}

// numbers builds the graph for the output.
func (e *Encoder) numbers(samples []byte, width, row int) error {
	g := &e.graph
	at := slot{-1, 0}
	switch g.predict {
	case predictDelta:
		at = e.chain(at, idDelta, e.w.header(samples[:width]...))
		deltas := e.buffer(len(samples) - width)
		kernel.Differences(deltas, samples, width)
		samples = deltas
	case predictPlanar:
		at = e.chain(at, idPlanar, e.w.header(byte(row), byte(row>>8), byte(row>>16), byte(row>>24)))
		res := e.buffer(len(samples))
		kernel.PlanarResiduals(res, samples, width, row)
		samples = res
	}
	if g.zigzag {
		at = e.chain(at, idZigzag, nil)
		if g.predict == predictNone {
			samples = append(e.buffer(len(samples))[:0], samples...)
		}
		kernel.ZigzagMap(samples, width)
	}
	switch {
	case g.end == "bitpack":
		e.bitpack(at, idBitpackInt, samples, width)
		return nil
	case g.end == "constant":
		return e.constant(at, samples, width)
	case g.transpose && width > 1 && len(samples) > 0:
		e.planes(at, samples, width)
		return nil
	}
	if g.end == "entropy" && width > 1 && len(samples) > 0 {
		return fault.New(fault.Unsupported, "samples", fault.NoOffset, "graph %s for numbers of %d bytes, which need transpose", e.Graph(), width)
	}
	e.serial(e.chain(at, idNumToSerial, e.w.header(byte(bits.Len(uint(width))-1))), samples)
	return nil
}

// slot is an input of a node; node is -1 for the output of the frame.
type slot struct{ node, input int }

// set says where the stream for a slot comes from.
func (e *Encoder) set(at slot, s written) {
	if at.node >= 0 {
		e.w.nodes[at.node].in[at.input] = s
	}
}

// node adds a node with k inputs that makes the stream for a slot.
func (e *Encoder) node(at slot, id uint32, header []byte, k int) int {
	n := e.w.add(id, header, k)
	e.set(at, written{node: n})
	return n
}

// chain is node for a codec of one input, which it returns.
func (e *Encoder) chain(at slot, id uint32, header []byte) slot {
	return slot{e.node(at, id, header, 1), 0}
}

func (e *Encoder) store(at slot, b []byte) { e.set(at, written{node: stored, bytes: b}) }

// planes splits samples into a stream for each byte.
func (e *Encoder) planes(at slot, samples []byte, width int) {
	at = e.chain(at, idNumToStruct, nil)
	node := e.node(at, idTransposeSplit, nil, width)
	e.w.nodes[node].vars = width
	split := e.buffer(len(samples))
	kernel.Split(split, samples, width)
	n := len(samples) / width
	for k := range width {
		e.serial(slot{node, k}, split[k*n:(k+1)*n])
	}
}

// serial builds what comes last.
func (e *Encoder) serial(at slot, b []byte) {
	switch e.graph.end {
	case "zstd":
		e.zstd(at, b)
	case "entropy":
		e.entropyBlocks(at, b)
	default:
		e.store(at, b)
	}
}

func (e *Encoder) zstd(at slot, b []byte) {
	frame := e.keep(zstd.Append(e.buffer(len(b) / 2)[:0], b, e.opt.Level))
	// The width of the elements, one byte, stands where zstd's magic number of four would.
	frame = frame[3:]
	frame[0] = 1
	e.store(e.chain(at, idZstd, nil), frame)
}

func (e *Encoder) constant(at slot, samples []byte, width int) error {
	for i := width; i < len(samples); i++ {
		if samples[i] != samples[i-width] {
			return fault.New(fault.Unsupported, "samples", int64(i), "graph constant for samples that differ")
		}
	}
	at = e.chain(at, idNumToStruct, nil)
	at = e.chain(at, idConstantFixed, e.w.varintHeader(uint64(len(samples)/width)))
	e.store(e.chain(at, idSerialToStruct, e.w.varintHeader(uint64(width))), samples[:width])
	return nil
}

// bitpack stores numbers of width bytes in as many bits as the largest needs.
func (e *Encoder) bitpack(at slot, id uint32, numbers []byte, width int) {
	nbits := kernel.BitsFor(numbers, width)
	n := len(numbers) / width
	packed := e.buffer((n*nbits + 7) / 8)
	kernel.Bitpack(packed, numbers, width, nbits)
	header := e.w.header(byte(bits.Len(uint(width))-1)<<6 | byte(nbits-1))
	if more := 8*len(packed)/nbits - n; more > 0 {
		header = e.w.header(header[0], byte(more))
	}
	e.store(e.chain(at, id, header), packed)
}

// nodeBytes is what a node adds to a frame beside its header and its stream, roughly.
const nodeBytes = 4

// entropyBlock is the most that is coded with one table. It keeps Huffman's streams within the 16
// bits that their sizes have.
const entropyBlock = 1 << 16

// entropyBlocks codes bytes block by block.
func (e *Encoder) entropyBlocks(at slot, b []byte) {
	n := (len(b) + entropyBlock - 1) / entropyBlock
	if n < 2 {
		e.entropy(at, b)
		return
	}
	node := e.node(at, idSplitN, nil, n)
	e.w.nodes[node].vars = n
	for k := range n {
		e.entropy(slot{node, k}, b[k*len(b)/n:(k+1)*len(b)/n])
	}
}

// entropy codes bytes in the way that takes the fewest bytes. Huffman decodes faster than FSE,
// which therefore has to be smaller by 1/64.
func (e *Encoder) entropy(at slot, b []byte) {
	if len(b) == 0 {
		e.store(at, b)
		return
	}
	counts := kernel.Histogram(b)
	if counts[b[0]] == uint32(len(b)) {
		e.store(e.chain(at, idConstantSerial, e.w.varintHeader(uint64(len(b)))), b[:1])
		return
	}
	kinds := 0
	for _, c := range counts {
		if c > 0 {
			kinds++
		}
	}
	weights, symbols, huffman := kernel.HuffmanWeights(&counts, maxWrittenBits)
	norm, _, fse := kernel.FSENormalize(&counts, kernel.FSELog(len(b), symbols-1))
	const stored, bitpacked, flatpacked, huffmaned, fsed = 0, 1, 2, 3, 4
	sizes := [...]int{
		stored:     len(b),
		bitpacked:  len(b)*kernel.BitsFor(b, 1)/8 + nodeBytes,
		flatpacked: len(b)*wire.BitsFor(kinds)/8 + kinds + 2*nodeBytes,
		huffmaned:  int(huffman/8) + weightBytes(kinds, symbols) + 4*nodeBytes,
		fsed:       int(fse/8) + countBytes(kinds, symbols) + 3*nodeBytes,
	}
	sizes[fsed] += sizes[fsed] / 64
	best := stored
	for i, n := range sizes {
		if n < sizes[best] {
			best = i
		}
	}
	switch {
	case best == stored:
		e.store(at, b)
	case best == bitpacked:
		e.bitpack(at, idBitpackSerial, b, 1)
	case best == flatpacked:
		e.flatpack(at, b, &counts, kinds)
	case best == huffmaned && e.huffman(at, b, weights[:symbols]):
	default:
		e.fse(at, b, norm[:symbols])
	}
}

// weightBytes and countBytes are about what the tables of Huffman and FSE take for symbols of
// which kinds occur.
func weightBytes(kinds, symbols int) int { return min(kinds/3+8, symbols/2) + symbols/32 }
func countBytes(kinds, symbols int) int  { return kinds*2/3 + (symbols-kinds)/24 + 4 }

// flatpack codes bytes by their place among those that occur.
func (e *Encoder) flatpack(at slot, b []byte, counts *[256]uint32, kinds int) {
	alphabet := e.buffer(kinds)[:0]
	var index [256]byte
	for s, c := range counts {
		if c > 0 {
			index[s] = byte(len(alphabet))
			alphabet = append(alphabet, byte(s))
		}
	}
	places := e.buffer(len(b))
	for i, v := range b {
		places[i] = index[v]
	}
	nbits := wire.BitsFor(kinds)
	packed := e.buffer(len(b)*nbits/8 + 1)
	packed[len(packed)-1] = 0
	kernel.Bitpack(packed[:(len(b)*nbits+7)/8], places, 1, nbits)
	packed[len(packed)-1] |= 1 << (len(b) * nbits % 8) // the end mark
	node := e.node(at, idFlatpack, nil, 2)
	e.store(slot{node, 0}, alphabet)
	e.store(slot{node, 1}, packed)
}

// maxWrittenBits is the longest code written: shorter than what may be read, and faster to read.
const maxWrittenBits = 11

// lengthHeader is the header of the entropy codecs: one byte, and the number of symbols in as many
// bytes as it needs.
func (e *Encoder) lengthHeader(first byte, n int) []byte {
	h := [9]byte{first}
	k := 1
	for ; n > 0; n >>= 8 {
		h[k] = byte(n)
		k++
	}
	return e.w.header(h[:k]...)
}

// huffman codes b in four streams, or reports that they are too long for that.
func (e *Encoder) huffman(at slot, b, weights []byte) bool {
	coded := e.buffer(len(b))[:0]
	flags, ok := byte(0), true
	if len(b) >= 256 {
		flags = 1
		coded, ok = kernel.AppendHuffman4(coded, b, weights)
	} else {
		coded = kernel.AppendHuffman1(coded, b, weights)
	}
	if e.keep(coded); !ok {
		return false
	}
	node := e.node(at, idHuffman, e.lengthHeader(flags, len(b)), 2)
	e.store(slot{node, 1}, coded)
	e.weights(slot{node, 0}, weights)
	return true
}

// weights stores Huffman weights: with FSE or in four bits each.
func (e *Encoder) weights(at slot, weights []byte) {
	own := append(e.buffer(len(weights))[:0], weights...)
	counts := kernel.Histogram(own)
	if len(own) >= 16 {
		last, kinds := 0, 0
		for s, c := range counts {
			if c > 0 {
				last = s
				kinds++
			}
		}
		if kinds == 1 {
			e.bitpack(at, idBitpackInt, own, 1)
			return
		}
		norm, n, bits := kernel.FSENormalize(&counts, kernel.FSELog(len(own), last))
		if int(bits/8)+countBytes(kinds, n)+2*nodeBytes < len(own)*kernel.BitsFor(own, 1)/8 {
			e.fse(e.chain(at, idNumToSerial, e.w.header(0)), own, norm[:n])
			return
		}
	}
	e.bitpack(at, idBitpackInt, own, 1)
}

func (e *Encoder) fse(at slot, b []byte, norm []int16) {
	if len(b) < 4 {
		e.store(at, b)
		return
	}
	states := 4
	if len(b) < 1000 {
		states = 2
	}
	node := e.node(at, idFSE, e.lengthHeader(byte(states), len(b)), 2)
	coded := e.keep(kernel.AppendFSE(e.buffer(len(b))[:0], b, norm, states))
	e.store(slot{node, 1}, coded)
	counts := e.keep(kernel.AppendFSECounts(e.buffer(64)[:0], norm))
	e.store(e.chain(slot{node, 0}, idFSECounts, nil), counts)
}

// DeltaZstd appends to dst a frame of format version 24 that holds samples, little-endian numbers
// of width bytes (1, 2, 4 or 8), as one numeric output: differences of neighbours, compressed with
// zstd. level is a zstd level, 1 to 22, which klauspost/compress maps to its own. The frame
// carries both checksums, as the original library's do by default. The error, of kind
// Unsupported, says that width or the length of samples is none.
func DeltaZstd(dst, samples []byte, width, level int) ([]byte, error) {
	if err := checkSamples(samples, width); err != nil {
		return dst, err
	}
	e := Encoder{graph: graphSpec{predict: predictDelta, end: "zstd"}, opt: EncodeOptions{Level: level}}
	return e.encode(dst, samples, width, len(samples)/width)
}

// Store appends to dst a frame of format version 24 that holds samples as they are, as one numeric
// output. It is otherwise like DeltaZstd.
func Store(dst, samples []byte, width int) ([]byte, error) {
	if err := checkSamples(samples, width); err != nil {
		return dst, err
	}
	var e Encoder
	e.store(e.chain(slot{-1, 0}, idNumToSerial, []byte{byte(bits.Len(uint(width)) - 1)}), samples)
	return e.w.appendTo(dst, samples), nil
}

func checkSamples(samples []byte, width int) error {
	switch {
	case !codecs.NumericWidth(width):
		return fault.New(fault.Unsupported, "samples", fault.NoOffset, "numbers of %d bytes", width)
	case len(samples)%width != 0:
		return fault.New(fault.Unsupported, "samples", fault.NoOffset, "%d bytes are no numbers of %d", len(samples), width)
	}
	return nil
}

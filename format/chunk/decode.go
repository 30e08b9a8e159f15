package chunk

import (
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/kernel"
)

// Decompressor undoes one codec. It may keep scratch memory between calls and is not safe for
// concurrent use: each worker has its own.
type Decompressor interface {
	// Decompress fills dst[:t.Need] from src, or returns an error of kind Corrupt, Unsupported or Limit. The rest of
	// dst has arbitrary content, and so has the capacity past its length, because some decoders are faster if their
	// last copy need not be exact. src and t are not kept, except t.Params, which the caller must not change.
	//
	// A codec that can stops behind the bytes that are needed. It accepts all that it accepts if all are, and may miss
	// faults of src past them, and checksums at the end. A codec for images checks the shape that src states against t
	// before it allocates. Rows from t.Least on that src lacks become 0.
	Decompress(dst, src []byte, t *Tile) error
}

// Tile is what a Decompressor may have to know of a chunk.
type Tile struct {
	Need   int // bytes of the samples that are needed, 0 to all of them
	Number int // bytes of a number, which is a sample or a component of one

	Bands, Height, Width int // shape of the samples, which codecs for images interleave by pixel
	Rows                 int // how many of the first rows are needed
	LeastRows            int // how many of them lie in the image; writers may leave out the others
	MaxHeight            int // rows of a whole chunk; a writer may store as many in a chunk that the image's edge cuts
	DType                DType
	Params               []byte // Index.Params
}

// Spare is the capacity past its length that a destination should have for the fastest decoding. It
// covers internal/zstd.Spare.
const Spare = 64

// Decoder turns the stored bytes of chunks into samples. It keeps one decompressor per codec. It is not
// safe for concurrent use. After the first chunks it allocates nothing.
type Decoder struct {
	// Decompressed, if not nil, is called after a chunk is decompressed and before its predictor is
	// undone.
	Decompressed func()

	opened Opened
	tile   Tile // of the call of a decompressor
	tmp    []byte
	mirror []byte // stored bytes with their bits reversed
}

// NewDecoder returns a decoder for one worker, of the codecs of Register where codecs is nil.
func NewDecoder(codecs Codecs) *Decoder {
	return &Decoder{opened: Opened{codecs: codecs}}
}

// Decode fills dst with the samples of chunk i of x: little-endian, in the axis order x.Inner, of the
// shape x.DecodedShape(i). len(dst) must be x.DecodedBytes(i). src holds the chunk's stored bytes; it is empty
// for a sparse chunk, which gives nodata or 0. Decode may overwrite up to Spare bytes of the capacity
// of dst past its length.
func (d *Decoder) Decode(dst, src []byte, x *Index, i int) error {
	_, h, w := x.DecodedShape(i)
	return d.DecodeFirst(dst, src, x, i, h*w)
}

// DecodeFirst is Decode for a caller who needs only the first pixels of the chunk, row by row, in each of its
// bands. It may decode fewer than x.DecodedShape(i) has. dst is as large as for the whole chunk; its content past
// these pixels is arbitrary. Decompression stops after them if the codec can, except in
// chunks of several band planes, whose last plane lies at the end.
//
// DecodeFirst gives the same pixels as Decode and accepts every chunk that Decode accepts. It may miss
// damage past them: a chunk that is cut there, has too many or too few bytes, or fails the checksum
// at its end (zstd, DEFLATE).
func (d *Decoder) DecodeFirst(dst, src []byte, x *Index, i, pixels int) error {
	b, h, w := x.DecodedShape(i)
	if len(dst) != b*h*w*x.DType.Size() {
		panic("chunk: len(dst) is not the decoded size of the chunk")
	}
	if pixels < 0 || pixels > h*w {
		panic("chunk: the chunk does not have that many pixels")
	}
	rows := (pixels + w - 1) / w
	wanted := len(dst)
	leastRows := h // that the stored bytes must hold
	// The capacity is cut, because a decompressor may write to all of it.
	dst = dst[:wanted:min(cap(dst), wanted+Spare)]
	if b == 1 || x.Inner.rowsFirst() {
		// Predictors work row by row from left to right, but the one of floating point needs whole rows.
		if x.Predictor == FloatingPoint {
			pixels = rows * w
		}
		wanted = pixels * (wanted / (h * w))
		box := x.Box(i)
		leastRows = box.Y1 - box.Y0
	}
	if x.Ranges[i].Len == 0 {
		fillSparse(dst[:wanted], x)
		return nil
	}
	into, need, row := dst, wanted, len(dst)/h
	if x.isPacked() { // its bits go to the end of dst, from where unpack spreads them
		row = x.packedRow(b, w)
		into, need = dst[len(dst)-h*row:], rows*row
	}
	if err := d.decompress(into, src, x, i, need, leastRows*row); err != nil && !d.retry(dst, src, x, i) {
		return inChunk(i, err)
	}
	if d.Decompressed != nil {
		d.Decompressed()
	}
	if x.isPacked() {
		x.unpack(dst[:rows*(len(dst)/h)], into, b, w)
		return nil
	}
	d.unpredict(dst[:wanted], x, i)
	if x.LowBits {
		return inChunk(i, x.checkLowBits(dst[:wanted]))
	}
	return nil
}

// Residuals returns what reads frames of a Recoder row by row, nil if nothing does.
func (d *Decoder) Residuals() Residuals {
	codec, err := d.opened.Of(OpenZL)
	if err != nil {
		return nil
	}
	residuals, _ := codec.(Residuals)
	return residuals
}

// DecodeRows is Decode for rows top up to bottom of chunk i, whose bytes are src: x.Rows must have said that they lie
// alone. The other rows of dst stay as they are.
func (d *Decoder) DecodeRows(dst, src []byte, x *Index, i, top, bottom int) {
	_, height, _ := x.DecodedShape(i)
	row := len(dst) / height
	rows := dst[top*row : bottom*row]
	copy(rows, src)
	if d.Decompressed != nil {
		d.Decompressed()
	}
	d.unpredict(rows, x, i)
}

// decompress fills at least the first need bytes of dst from the bytes of chunk i. Bytes that lie in the
// image are among the first leastBytes.
func (d *Decoder) decompress(dst, src []byte, x *Index, i, need, leastBytes int) error {
	if x.Reversed {
		src = d.reverse(src)
	}
	if x.Codec == Raw {
		return raw(dst[:need], src, leastBytes)
	}
	codec, err := d.opened.Of(x.Codec)
	if err != nil {
		return err
	}
	bands, height, width := x.DecodedShape(i)
	row := len(dst) / height
	d.tile = Tile{
		Need: need, Number: x.DType.Size(), Bands: bands, Height: height, Width: width,
		Rows: (need + row - 1) / row, LeastRows: (leastBytes + row - 1) / row, MaxHeight: x.ChunkH,
		DType: x.DType, Params: x.Params,
	}
	return codec.Decompress(dst, src, &d.tile)
}

// unpredict undoes the predictor row by row and brings the samples to little-endian. dst is the whole
// chunk i or its first pixels.
//
// The predictor's stride is the number of interleaved samples: ChunkB in a YXB chunk, 1 otherwise.
func (d *Decoder) unpredict(dst []byte, x *Index, i int) {
	bands, _, width := x.DecodedShape(i)
	part := x.DType.Size() / x.DType.Components()
	samples, stride := width*x.DType.Components(), x.DType.Components()
	if x.Inner.rowsFirst() {
		samples, stride = samples*bands, stride*bands
	}
	rowBytes := samples * part
	switch x.Predictor {
	case FloatingPoint:
		// No swap, since the byte planes are most significant first in files of either byte order.
		d.tmp = slices.Grow(d.tmp[:0], rowBytes)[:rowBytes]
		kernel.UndoFloatPredictor(dst, d.tmp, part, stride)
		return
	case Horizontal:
		// Bytes are swapped first, because differences are taken of numbers, not of bytes.
		if x.BigEndian {
			kernel.SwapBytes(dst, part)
		}
		kernel.UndoHorizontal(dst, rowBytes, part, stride)
		return
	}
	if x.BigEndian {
		kernel.SwapBytes(dst, part)
	}
}

// raw copies samples that are not compressed. The first leastBytes of dst lie in the image. Some
// writers cut tiles off after them; the rest of dst is then 0.
func raw(dst, src []byte, leastBytes int) error {
	if len(src) < min(leastBytes, len(dst)) {
		return fault.New(fault.Corrupt, "", "%d bytes stored, %d needed", len(src), leastBytes)
	}
	clear(dst[copy(dst, src):])
	return nil
}

// inChunk adds the number of a chunk to an error about it, and drops its offset, which is in decompressed bytes or
// does not say where in the file they are.
func inChunk(i int, err error) error {
	return fault.WithPart(err, "chunk "+strconv.Itoa(i), fault.NoOffset)
}

// AsStored returns the samples of chunk i as DecodeFirst would decode them from src, if they are src itself or a part
// of it: not compressed, of the byte order and the form of dst, all there, and aligned. Otherwise it returns nil.
func (x *Index) AsStored(src []byte, i int) []byte {
	n, size := x.DecodedBytes(i), x.DType.Size()/x.DType.Components()
	changed := x.Codec != Raw || x.Predictor != NoPredictor || x.Reversed || x.isPacked()
	swapped := x.BigEndian && size > 1
	if changed || swapped || x.LowBits || len(src) < n {
		return nil
	}
	aligned := true
	switch src = src[:n]; size {
	case 2:
		_, aligned = cast.Of[uint16](src)
	case 4:
		_, aligned = cast.Of[uint32](src)
	case 8:
		_, aligned = cast.Of[uint64](src)
	}
	if !aligned {
		return nil
	}
	return src
}

// checkLowBits checks that samples have zeros above the bits of their type.
func (x *Index) checkLowBits(samples []byte) error {
	mask := byte(0xff) << x.DType.Bits()
	var anyByte byte
	for _, v := range samples {
		anyByte |= v
	}
	if anyByte&mask == 0 {
		return nil
	}
	return fault.New(fault.Corrupt, "", "a sample with more than the %d bits of %s", x.DType.Bits(), x.DType)
}

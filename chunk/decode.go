package chunk

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/kernel"
)

// Decompressor undoes one codec. It may keep scratch memory between calls and is not safe for
// concurrent use: each worker has its own.
type Decompressor interface {
	// Decompress fills dst wholly from src, or returns an error of kind Corrupt, Unsupported or
	// Limit. sample is the size of one sample in bytes, for codecs that know about samples.
	// src is not kept. What dst has of capacity past its length may be overwritten: some decoders
	// are faster where their last copies need not be exact.
	Decompress(dst, src []byte, sample int) error
}

// Spare is how much capacity past its length a destination should have for the fastest decoding.
const Spare = 64

// Codecs says who decodes which codec. A codec that is not in it is unsupported.
type Codecs map[Codec]func() Decompressor

// Decoder turns the stored bytes of chunks into samples. It keeps one decompressor a codec and is
// not safe for concurrent use; in the steady state Decode allocates nothing.
type Decoder struct {
	codecs Codecs
	live   [numCodecs]Decompressor
	tmp    []byte
}

// NewDecoder returns a decoder for one worker.
func NewDecoder(codecs Codecs) *Decoder { return &Decoder{codecs: codecs} }

// Decode fills dst with the samples of chunk i of x: little-endian, in the axis order x.Inner, of
// the shape x.Stored(i). len(dst) must be x.StoredBytes(i). src holds the chunk's stored bytes; it
// is empty for a sparse chunk, which gives nodata or 0. Up to Spare bytes of dst's capacity past its
// length may be overwritten.
func (d *Decoder) Decode(dst, src []byte, x *Index, i int) error {
	if len(dst) != x.StoredBytes(i) {
		panic("chunk: dst has not the chunk's decoded size")
	}
	if x.Ranges[i].Len == 0 {
		fillSparse(dst, x)
		return nil
	}
	if err := d.decompress(dst, src, x); err != nil {
		return fault.WithPart(err, "chunk "+strconv.Itoa(i), fault.NoOffset)
	}
	d.unpredict(dst, x, i)
	return nil
}

func (d *Decoder) decompress(dst, src []byte, x *Index) error {
	if x.Codec == Raw {
		if len(src) < len(dst) {
			return fault.New(fault.Corrupt, "", fault.NoOffset, "%d bytes stored, %d needed", len(src), len(dst))
		}
		copy(dst, src)
		return nil
	}
	if d.live[x.Codec] == nil {
		open := d.codecs[x.Codec]
		if open == nil {
			return fault.New(fault.Unsupported, "", fault.NoOffset, "compression %s", x.Codec)
		}
		d.live[x.Codec] = open()
	}
	return d.live[x.Codec].Decompress(dst, src, x.DType.Size())
}

// unpredict undoes the predictor row by row and brings the samples to little-endian.
//
// The predictor's stride is the number of interleaved samples: ChunkB in a YXB chunk, 1 otherwise.
func (d *Decoder) unpredict(dst []byte, x *Index, i int) {
	b, h, w := x.Stored(i)
	part := x.DType.Size() / x.DType.Components()
	rows, samples, stride := b*h, w*x.DType.Components(), x.DType.Components()
	if x.Inner == YXB {
		rows, samples, stride = h, w*b*x.DType.Components(), b*x.DType.Components()
	}
	rowBytes := samples * part
	switch x.Predictor {
	case FloatingPoint: // byte planes are most significant first in files of either byte order
		d.tmp = slices.Grow(d.tmp[:0], rowBytes)[:rowBytes]
		for r := range rows {
			kernel.UndoFloatPredictor(dst[r*rowBytes:(r+1)*rowBytes], d.tmp, part, stride)
		}
		return
	case Horizontal:
		if x.BigEndian {
			kernel.SwapBytes(dst, part)
		}
		for r := range rows {
			kernel.UndoHorizontal(dst[r*rowBytes:(r+1)*rowBytes], part, stride)
		}
		return
	}
	if x.BigEndian {
		kernel.SwapBytes(dst, part)
	}
}

// fillSparse writes nodata, or 0, to every sample of dst.
func fillSparse(dst []byte, x *Index) {
	clear(dst)
	var s [16]byte
	if n := x.nodataSample(&s); n > 0 {
		for o := 0; o+n <= len(dst); o += n {
			copy(dst[o:o+n], s[:n])
		}
	}
}

// nodataSample writes the nodata value as one little-endian sample and returns its size, or 0 if
// there is none or all its bytes are zero.
func (x *Index) nodataSample(s *[16]byte) int {
	if x.NoData == nil && x.NoDataBits == nil {
		return 0
	}
	size := x.DType.Size()
	if x.NoDataBits != nil && size == 8 {
		binary.LittleEndian.PutUint64(s[:], *x.NoDataBits)
		return size
	}
	if x.NoData == nil {
		return 0
	}
	v := *x.NoData
	switch x.DType {
	case Float16, ComplexFloat16:
		binary.LittleEndian.PutUint16(s[:], kernel.Float16FromFloat32(float32(v)))
	case BFloat16:
		binary.LittleEndian.PutUint16(s[:], kernel.BFloat16FromFloat32(float32(v)))
	case Float32, Complex64:
		binary.LittleEndian.PutUint32(s[:], math.Float32bits(float32(v)))
	case Float64, Complex128:
		binary.LittleEndian.PutUint64(s[:], math.Float64bits(v))
	case Uint64:
		binary.LittleEndian.PutUint64(s[:], uint64(v))
	case ComplexInt16: // the imaginary component stays 0
		binary.LittleEndian.PutUint16(s[:], uint16(int64(v)))
	case ComplexInt32:
		binary.LittleEndian.PutUint32(s[:], uint32(int64(v)))
	default:
		binary.LittleEndian.PutUint64(s[:], uint64(int64(v)))
	}
	return size
}

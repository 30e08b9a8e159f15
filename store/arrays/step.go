package arrays

import (
	"cmp"
	"encoding/binary"
	"strconv"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/expand"
	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/internal/packed"
	"github.com/chaski-eo/chaski/internal/planes"
)

// decodeStep undoes one codec of a chunk.
type decodeStep struct {
	name     string
	kindName string // an entry of codecs
	*codecKind
	size int // bytes of the output; of the last step the chunk itself; -1 for a checksum around a compressor
	elem int // bytes of a value, where the codec has values
	// The types of the filters delta and fixedscaleoffset, and of parts: of the output and of the stored values.
	to, from     numberType
	sample       func(element uint64) uint64
	scale, shift float64
	skip, total  int               // of cut: bytes before the output, and of all; total also of nbit
	values       packed.Parameters // of the filters scaleoffset, nbit and szip
}

// numberType is a type of a filter's values.
type numberType struct {
	t   chunk.DType
	big bool
}

// codecKind is a kind of steps.
type codecKind struct {
	// undo fills dst, of the step's size, from src, the stored form, which has decodeStep.stored bytes if these are
	// known.
	undo func(d *chunkDecoder, dst, src []byte, s *decodeStep) error
	// sum is the checksum that follows the bytes, in place of undo.
	sum func(b []byte) uint32
	// compresses says that the size of the stored form does not follow from the size of the output.
	compresses bool
	// configure reads the settings of a step, and checks them.
	configure func(c *chain, s *decodeStep, conf Object) error
}

// codecs are the codecs from bytes to bytes, by their names in numcodecs, with the filter lzf of h5py and crc32c of
// Zarr.
var codecs = map[string]*codecKind{
	"zstd": {compresses: true,
		undo: func(d *chunkDecoder, dst, src []byte, _ *decodeStep) error { return d.expand.Zstd(dst, src) }},
	"gzip": {compresses: true,
		undo: func(d *chunkDecoder, dst, src []byte, _ *decodeStep) error { return d.expand.Gzip(dst, src) }},
	"zlib": {compresses: true,
		undo: func(d *chunkDecoder, dst, src []byte, _ *decodeStep) error { return d.expand.Zlib(dst, src) }},
	"bz2": {compresses: true,
		undo: func(d *chunkDecoder, dst, src []byte, _ *decodeStep) error { return d.expand.Bzip2(dst, src) }},
	"blosc": {compresses: true,
		undo: func(d *chunkDecoder, dst, src []byte, _ *decodeStep) error { return d.unblosc(dst, src) }},
	"lz4":        {compresses: true, undo: unLZ4},
	"lzf":        {compresses: true, undo: unLZF},
	"fletcher32": {sum: fletcher32},
	"crc32c":     {sum: CRC32C},
	"scaleoffset": {compresses: true, configure: (*chain).configurePacked,
		undo: func(_ *chunkDecoder, dst, src []byte, s *decodeStep) error { return s.values.ScaleOffset(dst, src) }},
	"nbit": {configure: (*chain).configurePacked,
		undo: func(_ *chunkDecoder, dst, src []byte, s *decodeStep) error { return s.values.NBit(dst, src) }},
	"szip": {compresses: true, configure: (*chain).configurePacked,
		undo: func(d *chunkDecoder, dst, src []byte, s *decodeStep) error {
			return s.values.Szip(dst, src, &d.blosc[0])
		}},
	// cut is no codec of a writer: the chunk is a part of what the next one gives.
	"cut":              {undo: uncut, configure: (*chain).configureCut},
	"shuffle":          {undo: unshuffle, configure: (*chain).configureShuffle},
	"delta":            {undo: undelta, configure: (*chain).configureFilter},
	"fixedscaleoffset": {undo: unscale, configure: (*chain).configureFilter},
}

// partCodec makes samples of elements that store them in some of their bits.
var partCodec = &codecKind{undo: func(_ *chunkDecoder, dst, src []byte, s *decodeStep) error {
	for i := range len(src) / s.from.t.Size() {
		s.to.store(dst, i, s.sample(s.from.load(src, i)))
	}
	return nil
}}

// swapCodec makes samples little-endian that are big-endian.
var swapCodec = &codecKind{undo: swap}

func unLZF(_ *chunkDecoder, dst, src []byte, _ *decodeStep) error { return expand.LZF(dst, src) }

// unLZ4 undoes LZ4 of numcodecs: the size before the block.
func unLZ4(_ *chunkDecoder, dst, src []byte, _ *decodeStep) error {
	if len(src) < 4 || binary.LittleEndian.Uint32(src) != uint32(len(dst)) {
		return broken("", "the size in front is not %d", len(dst))
	}
	return expand.LZ4(dst, src[4:])
}

func unshuffle(_ *chunkDecoder, dst, src []byte, s *decodeStep) error {
	planes.Join(dst, src, s.elem)
	return nil
}

func swap(_ *chunkDecoder, dst, src []byte, s *decodeStep) error {
	copy(dst, src)
	kernel.SwapBytes(dst, s.elem)
	return nil
}

func (c *chain) configureShuffle(s *decodeStep, conf Object) error {
	s.elem = 4
	if _, err := conf.Get("elementsize", &s.elem); err != nil {
		return err
	}
	if s.elem < 1 || s.elem > 1<<16 {
		return Corrupt("elementsize %d of the codec shuffle", s.elem)
	}
	return nil
}

// configurePacked reads the parameters of scaleoffset, nbit or szip.
func (c *chain) configurePacked(s *decodeStep, conf Object) error {
	err := conf.Need("values", &s.values)
	switch {
	case err != nil:
	case s.kindName == "nbit":
		s.total, err = s.values.NBitBytes(c.size)
	case s.kindName == "szip":
		err = s.values.CheckSzip(c.size)
	}
	return err
}

// CutOut is the filter of a chunk that lies behind skip bytes of the total that the filter behind it gives.
func CutOut(skip, total int64) Filter {
	return Filter{Name: "cut", Codec: "cut", Conf: Object{"skip": strconv.AppendInt(nil, skip, 10),
		"total": strconv.AppendInt(nil, total, 10)}}
}

func (c *chain) configureCut(s *decodeStep, conf Object) error {
	if err := cmp.Or(conf.Need("skip", &s.skip), conf.Need("total", &s.total)); err != nil {
		return err
	}
	if c.size < 0 || s.skip < 0 || s.skip > s.total-c.size {
		return Corrupt("%d bytes from %d on of %d", c.size, s.skip, s.total)
	}
	return nil
}

func uncut(_ *chunkDecoder, dst, src []byte, s *decodeStep) error {
	copy(dst, src[s.skip:])
	return nil
}

// configureFilter reads the settings of delta and fixedscaleoffset.
func (c *chain) configureFilter(s *decodeStep, conf Object) (err error) {
	target, source := conf.String("dtype"), conf.String("astype")
	source = cmp.Or(source, target)
	if s.to.t, s.to.big, err = ParseNumpy(target); err != nil {
		return err
	}
	if s.from.t, s.from.big, err = ParseNumpy(source); err != nil {
		return err
	}
	if c.size < 0 || c.size != max(int(c.cells), 0)*s.to.t.Size() {
		return Corrupt("codec %q of values of type %q in an array of type %s", s.name, target, c.m.DType)
	}
	known := !isFloat(s.from.t) && !isFloat(s.to.t) || s.from.t == s.to.t && s.to.t != chunk.Float16
	if s.name == "fixedscaleoffset" {
		if err := cmp.Or(conf.Need("scale", &s.scale), conf.Need("offset", &s.shift)); err != nil {
			return err
		}
		// Whole numbers are scaled as float64, as numpy does; float32 would round as float32.
		known = !isFloat(s.from.t) && (s.to.t == chunk.Float32 || s.to.t == chunk.Float64)
	}
	if !known {
		return Unsupported("codec %q from %q to %q", s.name, source, target)
	}
	return nil
}

// stored returns the size of the stored form of the step, or -1 if it does not follow from the size of the output.
func (s *decodeStep) stored() int {
	switch {
	case s.compresses || s.size < 0:
		return -1
	case s.sum != nil:
		return s.size + sumBytes
	case s.total > 0:
		return s.total
	case s.to.t != chunk.Invalid:
		return s.size / s.to.t.Size() * s.from.t.Size()
	}
	return s.size
}

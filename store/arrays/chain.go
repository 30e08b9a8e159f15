package arrays

import (
	"slices"

	"github.com/chaski-eo/chaski/fault"
)

// Filter is a codec from bytes to bytes.
type Filter struct {
	Name  string // as the metadata has it, for errors
	Codec string // an entry of codecs
	Conf  Object // its settings, as numcodecs has them
}

// slow reports whether undoing the filter takes long.
func (f Filter) slow() bool {
	switch f.Codec {
	case "zstd", "gzip", "zlib", "bz2":
		return true
	case "blosc":
		return slices.Contains([]string{"zstd", "zlib"}, f.Conf.String("cname"))
	}
	return false
}

// chain collects the steps of codecs in the order in which they encode.
type chain struct {
	m     *Meta
	cells int64 // of a chunk, -1 if too many: Meta.chunkBytes refuses it later
	size  int   // bytes so far; -1 after a compressor
	steps []decodeStep
}

// maxCodecs bounds the codecs of one chunk, since each may go over all its bytes. Writers chain up to four.
const maxCodecs = 16

// Check returns an error if the sizes or the filters of an array are not as they may be. Arrays need it.
func (m *Meta) Check() (err error) {
	if err := CheckShape(m.Shape, m.Chunks); err != nil {
		return err
	}
	if len(m.Filters) > maxCodecs {
		return fault.New(fault.Limit, MetaPart, "%d codecs of a chunk, at most %d", len(m.Filters), maxCodecs)
	}
	m.steps, err = m.stepsOf(0)
	return err
}

// stepsWithout returns the steps that decode a chunk that skips some filters, in the order in which they decode.
func (m *Meta) stepsWithout(skip uint32) ([]decodeStep, error) {
	if skip == 0 {
		return m.steps, nil
	}
	return m.stepsOf(skip)
}

func (m *Meta) stepsOf(skip uint32) ([]decodeStep, error) {
	// 2^40 only keeps products within an int64; the limit of decoded bytes is lower.
	chained := &chain{m: m, cells: Cells(m.Chunks, 1<<40)}
	count := max(int(chained.cells), 0)
	whole := count * m.elementSize()
	chained.size = whole
	for i, filter := range m.Filters {
		if i < 32 && skip>>i&1 != 0 {
			continue
		}
		if err := chained.add(&filter); err != nil {
			return nil, err
		}
	}
	slices.Reverse(chained.steps)
	switch {
	case m.Sample != nil:
		chained.steps = append(chained.steps, decodeStep{name: "bits", codecKind: partCodec, sample: m.Sample,
			size: count * m.DType.Size(), to: numberType{t: m.DType}, from: numberType{m.Element, m.Big}})
	case m.Big:
		chained.steps = append(chained.steps, decodeStep{name: "bytes", codecKind: swapCodec, size: whole,
			elem: m.DType.Size()})
	}
	return chained.steps, nil
}

// add adds the step of a codec, whose decoded size is the size so far.
func (c *chain) add(f *Filter) error {
	kind := codecs[f.Codec]
	if kind == nil {
		return Unsupported("codec %q", f.Name)
	}
	added := decodeStep{name: f.Name, kindName: f.Codec, codecKind: kind, size: c.size}
	again := f.Codec == "zlib" || f.Codec == "gzip" // which HDF5 may have twice
	if c.size < 0 && kind.compresses && !again {
		return Unsupported("codec %q around another compressor", f.Name)
	}
	// Only a checksum may be around a compressor, because it needs no size of its input.
	if c.size < 0 && kind.sum == nil && !again {
		return Unsupported("codec %q around a compressor", f.Name)
	}
	if kind.configure != nil {
		if err := kind.configure(c, &added, f.Conf); err != nil {
			return err
		}
	}
	c.steps, c.size = append(c.steps, added), added.stored()
	return nil
}

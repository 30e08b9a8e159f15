package zarr

import (
	"context"
	"encoding/json"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/expand"
	"github.com/chaski-eo/chaski/source"
)

// Stored is where a chunk in a file is stored. Those of other formats alone have a Pad, Inline or Skip.
type Stored struct {
	Absent bool // it was not written
	At     chunk.Range
	Pad    int64  // zeros that follow the bytes of At, for the chunk to be whole
	Inline []byte // the bytes themselves, in place of At
	Skip   uint32 // a bit for each codec that is not applied to it, the lowest for the first one
}

// Foreign describes an array in a file of another format whose chunks lie on a regular grid, as chunks of Zarr
// do.
type Foreign struct {
	Shape, Chunks []int64
	DType         chunk.DType
	Bool, Big     bool
	Fill          []byte // one sample, little-endian
	Names         []string
	Attrs         map[string]json.RawMessage
	Filters       []Filter // in the order in which they encode
	// Text is the metadata that decides the meaning of the chunks, for fingerprints.
	Text string
	// Find returns where a chunk is. It is called at the same time by several workers.
	Find func(ctx context.Context, at []int64) (Stored, error)
	// Prepare reads the index of the chunks, so Find need not.
	Prepare func(ctx context.Context) error
}

// Filter is a codec from bytes to bytes: one of zlib, zstd, blosc, lzf, shuffle and fletcher32.
type Filter struct {
	Name string
	Size int // bytes of a value, for shuffle
}

// textsOf turns the bytes of an array of strings into them.
type textsOf func(ctx context.Context, data []byte) ([]string, error)

// foreign is the rest of an array of another format.
type foreign struct {
	Foreign
	file   string
	object source.Known
}

// lzfCodec is the filter of h5py.
var lzfCodec = &codecKind{compresses: true, undo: func(_ *chunkDecoder, dst, src []byte, _ *decodeStep) error {
	return expand.LZF(dst, src)
}}

// find is Array.find.
func (f *foreign) find(ctx context.Context, a *Array, at []int64) (chunkPlace, error) {
	stored, err := f.Find(ctx, at)
	if err != nil {
		return chunkPlace{Stored: Stored{Absent: true}}, fault.WithFile(err, a.URI)
	}
	return a.inside(f.file, stored, f.object)
}

// steps makes the steps of the filters that are not skipped.
func (m *Meta) foreignSteps(f *Foreign, skip uint32) ([]decodeStep, error) {
	chained := newChain(m)
	for i, filter := range f.Filters {
		if i < 32 && skip>>i&1 != 0 {
			continue
		}
		kind := codecs[filter.Name]
		if filter.Name == "lzf" {
			kind = lzfCodec
		}
		conf := jsonObject{}
		if filter.Name == "shuffle" {
			conf["elementsize"], _ = json.Marshal(filter.Size)
		}
		if kind == nil {
			return nil, unsupported("filter %q", filter.Name)
		}
		if err := chained.add(filter.Name, kind, conf); err != nil {
			return nil, err
		}
	}
	return chained.decoding(f.Big), nil
}

// stepsWithout returns the steps that decode a chunk that skips some codecs.
func (a *Array) stepsWithout(skip uint32) []decodeStep {
	if skip == 0 {
		return a.steps
	}
	steps, err := a.foreignSteps(&a.foreign.Foreign, skip)
	if err != nil { // fewer filters than those that were checked
		return nil
	}
	return steps
}

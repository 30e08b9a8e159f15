package zarr

import (
	"context"
	"encoding/json"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/expand"
	"github.com/chaski-eo/chaski/source"
)

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
	// Find returns where the chunk with some coordinates is, in the file. It is called at the same time by several
	// workers.
	Find func(ctx context.Context, at []int64) (chunk.Stored, error)
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
func (f *foreign) find(ctx context.Context, a *Array, at []int64) (chunk.Stored, error) {
	stored, err := f.Find(ctx, at)
	if err != nil {
		return chunk.Stored{Absent: true}, fault.WithFile(err, a.URI)
	}
	stored.URI, stored.Size, stored.ETag = f.file, f.object.Size, f.object.ETag
	return stored, a.checkStored(&stored)
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

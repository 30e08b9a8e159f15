package zarr

import (
	"context"
	"encoding/json"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/expand"
	"github.com/chaski-eo/chaski/source"
)

// Stored is where a chunk of a file of another format is stored.
type Stored struct {
	Absent bool // it was not written
	At     chunk.Range
	Pad    int64  // zeros that follow the bytes of At, for the chunk to be whole
	Inline []byte // the bytes themselves, in place of At
	Skip   uint32 // a bit for each codec that is not applied to it, the lowest for the first one
}

// Foreign describes an array in a file of another format whose chunks lie on a regular grid, as those of Zarr do.
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
	// Prepare reads the index of the chunks, so that Find need not.
	Prepare func(ctx context.Context) error
}

// Filter is a codec from bytes to bytes: one of zlib, zstd, blosc, lzf, shuffle and fletcher32.
type Filter struct {
	Name string
	Size int // bytes of a value, for shuffle
}

// foreign is the rest of an array of another format.
type foreign struct {
	Foreign
	file   string
	object source.Known
}

// lzfCodec is the filter of h5py.
var lzfCodec = &codec{compresses: true, undo: func(_ *decoder, dst, src []byte, _ *step) error {
	return expand.LZF(dst, src)
}}

// find is Array.find.
func (f *foreign) find(ctx context.Context, a *Array, at []int64) (place, error) {
	stored, err := f.Find(ctx, at)
	if err != nil || stored.Absent {
		return place{uri: f.file, absent: true}, fault.WithFile(err, a.URI)
	}
	if stored.Inline != nil {
		return place{uri: f.file, inline: stored.Inline, skip: stored.Skip}, nil
	}
	found, err := a.inShard(f.file, stored.At, f.object)
	found.skip, found.pad = stored.Skip, stored.Pad
	return found, err
}

// steps makes the steps of the filters that are not skipped.
func (m *Meta) foreignSteps(f *Foreign, skip uint32) ([]step, error) {
	chained := newChain(m)
	for i, filter := range f.Filters {
		if i < 32 && skip>>i&1 != 0 {
			continue
		}
		kind := codecs[filter.Name]
		if filter.Name == "lzf" {
			kind = lzfCodec
		}
		conf := object{}
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
func (a *Array) stepsWithout(skip uint32) []step {
	if skip == 0 {
		return a.steps
	}
	steps, err := a.foreignSteps(&a.foreign.Foreign, skip)
	if err != nil { // fewer filters than those that were checked
		return nil
	}
	return steps
}

// File is a file of another format that becomes a group.
type File struct{ node *Node }

// NewFile begins a group of the arrays of a file.
func NewFile(ctx context.Context, o source.Opener, uri string, opt Options) *File {
	return &File{&Node{URI: uri, open: o, options: opt.withDefaults(budget.Of(ctx)), isFile: true,
		Consolidated: true, below: map[string]entry{}}}
}

// Charge charges n bytes for the metadata of the file.
func (f *File) Charge(ctx context.Context, n int64) error { return f.node.charge(ctx, n) }

// Hold charges n bytes for the index of chunks of an array, for as long as the group is in use.
func (f *File) Hold(ctx context.Context, n int64) error { return f.node.options.memory.take(ctx, n) }

// Drop gives back what was charged.
func (f *File) Drop() { f.node.drop() }

// Group adds a group, "" for the root.
func (f *File) Group(path string, attrs map[string]json.RawMessage) {
	if path == "" {
		f.node.Attrs = attrs
		return
	}
	f.node.below[path] = entry{attrs: attrs}
}

// Broken adds an array that cannot be read.
func (f *File) Broken(path string, err error) { f.node.below[path] = entry{array: true, err: err} }

// Array adds an array. One that cannot be read is Broken.
func (f *File) Array(path string, a Foreign, known source.Known) {
	made, err := f.array(path, a, known)
	f.node.below[path] = entry{array: true, made: made, err: err}
}

func (f *File) array(path string, a Foreign, known source.Known) (*Array, error) {
	meta := &Meta{Format: f.node.Format, Shape: a.Shape, Chunks: a.Chunks, DType: a.DType, Bool: a.Bool, Fill: a.Fill,
		Names: a.Names, Attrs: a.Attrs, order: count(len(a.Shape)), raw: a.Text}
	if err := checkShape(a.Shape, a.Chunks); err != nil {
		return nil, err
	}
	if err := checkChain(len(a.Filters)); err != nil {
		return nil, err
	}
	for _, filter := range a.Filters {
		meta.Codecs = append(meta.Codecs, filter.Name)
	}
	var err error
	if meta.steps, err = meta.foreignSteps(&a, 0); err != nil {
		return nil, err
	}
	made := newArray(f.node.open, f.node.uriOf(path), path, meta, f.node.options)
	made.foreign = &foreign{Foreign: a, file: f.node.URI, object: known}
	return made, nil
}

// Node returns the group. version is what the file says of itself.
func (f *File) Node(version int) *Node {
	f.node.Format = version
	return f.node
}

package zarr

import (
	"context"
	"encoding/json"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/source"
)

// File is a file of another format that becomes a group.
type File struct{ node *Node }

// NewFile begins a group of the arrays of a file.
func NewFile(ctx context.Context, o source.Opener, uri string, opt Options) *File {
	return &File{&Node{URI: uri, open: o, options: opt.withDefaults(budget.Of(ctx)), isFile: true,
		Consolidated: true, below: map[string]nodeEntry{}}}
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
	f.node.below[path] = nodeEntry{attrs: attrs}
}

// Broken adds an array that cannot be read, but for its attributes. pixels is as in Member.
func (f *File) Broken(path string, err error, pixels bool, attrs map[string]json.RawMessage) {
	f.node.below[path] = nodeEntry{array: true, err: err, pixels: pixels, attrs: attrs}
}

// Array adds an array. One that cannot be read is Broken.
func (f *File) Array(path string, a Foreign, known source.Known) {
	made, err := f.array(path, a, known)
	f.node.below[path] = nodeEntry{array: true, attrs: a.Attrs, made: made, err: err, pixels: len(a.Shape) > 1}
}

// Texts adds an array of strings, which only Labels reads: an array of bytes, whose last dimension is a string, and
// what makes strings of them.
func (f *File) Texts(path string, a Foreign, known source.Known,
	texts func(ctx context.Context, data []byte) ([]string, error)) {
	made, err := f.array(path, a, known)
	if err == nil {
		err = fault.New(fault.Unsupported, "array", "strings: name it as column of a field of kind text or class")
	} else {
		texts = nil
	}
	f.node.below[path] = nodeEntry{array: true, attrs: a.Attrs, made: made, texts: texts, err: err}
}

func (f *File) array(path string, a Foreign, known source.Known) (*Array, error) {
	meta := &Meta{Format: f.node.Format, Shape: a.Shape, Chunks: a.Chunks, DType: a.DType, Bool: a.Bool, Fill: a.Fill,
		Names: a.Names, Attrs: a.Attrs, order: num.Range[int](0, len(a.Shape)), raw: a.Text,
		keys: keys{sep: "."}}
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

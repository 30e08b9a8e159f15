// Package tensors opens files of tensors as groups of arrays, as store/arrays has them: safetensors, and what
// torch.save writes of tensors in dicts, lists and tuples. Tensors are arrays by the path of their keys: "image",
// "meta/0/y". Nothing of a pickle is executed: opcodes and functions that make anything else are refused by name.
package tensors

import (
	"bytes"
	"context"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/arrays"
)

// Kind is the kind of the paths of files of tensors, which their names tell.
var Kind = store.Register(&arrays.Kind{Noun: "a file of tensors", Looks: is, OpenNode: Open,
	Files: &magic.Format{Name: "tensors", Class: magic.Store, Noun: "a file of tensors",
		Ends: []string{".safetensors", ".pt", ".pth"}}})

func is(_ context.Context, o source.Opener, p source.Path) (bool, error) {
	name, _, _ := source.Split(p.Name)
	if magic.Named(name).Name != "tensors" {
		return false, nil
	}
	if !p.Remote() {
		name, _, _ = source.Split(p.Local())
		st, err := openers.RootsOf(o).Stat(name)
		return err == nil && st.Mode().IsRegular(), nil
	}
	return true, nil
}

// nodeBytes is about the memory of an array.
const nodeBytes = 1 << 10

// file is a file that becomes a group of arrays.
type file struct {
	*arrays.Node
	r      source.Reader
	stored chunk.Stored // its name, size and tag
}

// Open opens a file as a group or, of one tensor, as an array, or with FILE::PATH what is at a path in it.
func Open(ctx context.Context, o source.Opener, uri string, opt arrays.Options) (*arrays.Node, error) {
	name, inside, _ := source.Split(uri)
	r, err := o.Open(ctx, name)
	if err != nil {
		return nil, fault.WithFile(err, name)
	}
	defer r.Close()
	f := &file{Node: arrays.New(ctx, o, name, nil, opt), r: r,
		stored: chunk.Stored{URI: name, Size: r.Size(), ETag: source.ETag(r)}}
	head, err := source.Read(ctx, r, 0, min(r.Size(), magic.Head))
	switch {
	case err != nil:
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		err = f.torch(ctx)
	case bytes.HasPrefix(head, []byte{opProto}) && !bytes.HasPrefix(head[min(8, len(head)):], []byte("{")):
		err = fault.At(fault.Unsupported, "file", 0, "it is a pickle, as torch.save wrote before PyTorch 1.6: save it "+
			"again, by torch.save(torch.load(FILE), FILE)")
	case magic.OfBytes(head) != "":
		err = fault.At(fault.Unsupported, "file", 0, "it is %s, not a file of tensors", magic.OfBytes(head))
	default:
		err = f.safetensors(ctx)
	}
	if err != nil {
		f.Drop()
		return nil, fault.WithFile(err, name)
	}
	if inside = strings.Trim(inside, "/"); inside == "" {
		return f.Node, nil
	}
	return f.At(ctx, inside)
}

// put adds an array whose samples lie side by side, "" for the only one of the file.
func (f *file) put(ctx context.Context, path string, m *arrays.Meta, at chunk.Range) error {
	if err := f.Charge(ctx, nodeBytes+int64(len(path))); err != nil {
		return err
	}
	m.Fill = make([]byte, m.DType.Size())
	chunks := m.LaySide(f.stored, at)
	if path != "" {
		if err := arrays.CheckPath(path); err != nil {
			return err
		}
		f.PutArray(path, m, chunks, nil)
		return nil
	}
	if err := m.Check(); err != nil {
		return err
	}
	f.Array = f.NewArray(f.URI, "", m, chunks)
	return nil
}

// Package numpy opens NumPy files as arrays, as store/arrays has them: .npy as one, .npz as a group of them. Package
// format/picture reads those whose axes are in the order of rasters. Here any order counts, with n for samples.
package numpy

import (
	"context"
	"fmt"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/npy"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/arrays"
)

var (
	_ = store.Register(&arrays.Kind{Noun: "a NumPy array", Files: magic.NPY, Looks: no, OpenNode: Open})
	_ = store.Register(&arrays.Kind{Noun: "an archive of NumPy arrays", Files: magic.NPZ, Looks: no, OpenNode: OpenAll})
)

// no implements arrays.Kind.Looks. Fields say which files are opened as arrays, so the bytes of a path do not matter.
func no(context.Context, source.Opener, source.Path) (bool, error) { return false, nil }

const (
	maxArrays = 10000
	nodeBytes = 1 << 10 // about the memory of an array
)

// Open opens a .npy file, or an array of a .npz file.
func Open(ctx context.Context, o source.Opener, uri string, opt arrays.Options) (*arrays.Node, error) {
	n := arrays.New(ctx, o, uri, nil, opt)
	m, chunks, err := header(ctx, o, uri)
	if err == nil {
		err = m.Check()
	}
	if err != nil {
		return nil, fault.WithFile(err, uri)
	}
	n.Array = n.NewArray(uri, "", m, chunks)
	return n, nil
}

// OpenAll opens a .npz file as a group of its arrays.
func OpenAll(ctx context.Context, o source.Opener, uri string, opt arrays.Options) (*arrays.Node, error) {
	n := arrays.New(ctx, o, uri, nil, opt)
	count := 0
	err := openers.List(ctx, o, source.ArchiveName(uri), func(e source.Entry) error {
		name, ok := strings.CutSuffix(e.Path, magic.NPY.End())
		if !ok {
			return nil
		}
		if count++; count > maxArrays {
			return fault.New(fault.Limit, "ZIP", "more than %d arrays", maxArrays)
		}
		if err := arrays.CheckPath(name); err != nil {
			return err
		}
		if err := n.Charge(ctx, nodeBytes+int64(len(name))); err != nil {
			return err
		}
		m, chunks, err := header(ctx, o, source.ArrayName(uri, name))
		if err != nil && fault.KindOf(err) == 0 {
			return err
		}
		if err != nil {
			n.PutBroken(name, err, true, nil)
			return nil
		}
		n.PutArray(name, m, chunks, nil)
		return nil
	})
	if err != nil {
		n.Drop()
		return nil, fault.WithFile(err, uri)
	}
	return n, nil
}

// header reads the header of an array.
func header(ctx context.Context, o source.Opener, uri string) (m *arrays.Meta, chunks arrays.Chunks, err error) {
	r, err := o.Open(ctx, uri)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	head, err := source.Read(ctx, r, 0, min(r.Size(), maxHead))
	if err != nil {
		return nil, nil, err
	}
	a, err := npy.Parse(func(off int64, n int) ([]byte, error) {
		if !source.Fits(off, int64(n), int64(len(head))) {
			return nil, fault.At(fault.Corrupt, "npy header", off, "the file ends there, after %d bytes", r.Size())
		}
		return head[off:][:n], nil
	})
	if err != nil {
		return nil, nil, err
	}
	dtype, big, ok := a.DType()
	if !ok {
		return nil, nil, fault.New(fault.Unsupported, "npy header", "dtype %q: samples are numbers", a.Descr)
	}
	m = &arrays.Meta{DType: dtype, Big: big && dtype.Size() > 1, Bool: strings.HasSuffix(a.Descr, "b1"),
		Fill: make([]byte, dtype.Size()), Text: fmt.Sprint(a.Descr, a.Shape, a.Fortran)}
	for d, n := range a.Shape {
		m.Shape = append(m.Shape, int64(n))
		if m.Order = append(m.Order, d); a.Fortran {
			m.Order[d] = len(a.Shape) - 1 - d
		}
	}
	size := int64(dtype.Size())
	cells := arrays.Cells(m.Shape, (r.Size()-int64(a.Size))/size)
	if cells < 0 {
		return nil, nil, fault.At(fault.Corrupt, "array", int64(a.Size), "samples of shape %d do not fit into %d bytes",
			a.Shape, r.Size()-int64(a.Size))
	}
	file := chunk.Stored{URI: uri, Size: r.Size(), ETag: source.ETag(r)}
	return m, m.LaySide(file, chunk.Range{Off: int64(a.Size), Len: cells * size}), nil
}

// maxHead is more than the longest header that is read (package npy): 64 KiB and what is before it.
const maxHead = 64<<10 + 16

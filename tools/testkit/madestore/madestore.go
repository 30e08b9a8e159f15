// Package madestore is a store as a package plugs one in: a directory NAME.raws, whose header.json describes arrays of
// which each image is a file of raw samples. Tests import it.
package madestore

import (
	"context"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/arrays"
)

const header = "header.json"

var _ = store.Register(&arrays.Kind{Noun: noun, Files: format, Looks: looks, OpenNode: open})

const noun = "a directory of raw arrays"

var format = &magic.Format{Name: "raws", Class: magic.Store, Noun: noun, Folder: true, Ends: []string{".raws"}}

// looks reports whether a directory has a header.
func looks(ctx context.Context, o source.Opener, p source.Path) (bool, error) {
	dir, _, _ := source.Split(p.Name)
	r, err := o.Open(ctx, source.Join(dir, header))
	if err != nil {
		return false, source.Outage(err)
	}
	return r.Close() == nil, nil
}

// described is what the header says of an array, by its path.
type described struct {
	Type  string        `json:"type"` // of numpy
	Shape []int64       `json:"shape"`
	Dims  []string      `json:"dims"`
	Attrs arrays.Object `json:"attrs"`
}

// open opens a directory as a group, or DIR::PATH as an array of it.
func open(ctx context.Context, o source.Opener, uri string, opt arrays.Options) (*arrays.Node, error) {
	dir, inside, _ := source.Split(uri)
	group := arrays.New(ctx, o, dir, nil, opt)
	list, err := group.ReadObject(ctx, source.Join(dir, header))
	if err != nil {
		return nil, err
	}
	for path, raw := range list {
		if err := put(group, path, raw); err != nil {
			return nil, fault.WithFile(err, source.Join(dir, header))
		}
	}
	if inside == "" {
		return group, nil
	}
	return group.At(ctx, inside)
}

// put adds an array to a group.
func put(group *arrays.Node, path string, raw []byte) (err error) {
	var d described
	if err := arrays.Decode(raw, &d); err != nil {
		return err
	}
	if err := arrays.CheckPath(path); err != nil {
		return err
	}
	meta := &arrays.Meta{Shape: d.Shape, Names: d.Dims, Attrs: d.Attrs, Text: string(raw)}
	if meta.DType, meta.Big, err = arrays.ParseNumpy(d.Type); err != nil {
		group.PutBroken(path, err, true, d.Attrs)
		return nil
	}
	meta.Fill = make([]byte, meta.DType.Size())
	for axis, n := range d.Shape {
		if axis == 0 && len(d.Shape) > 1 {
			n = 1
		}
		meta.Chunks = append(meta.Chunks, max(n, 1))
	}
	group.PutArray(path, meta, files(source.Join(group.URI, path)), nil)
	return nil
}

// files are the images of an array, by the name of their directory.
type files string

// Prepare implements arrays.Chunks.
func (files) Prepare(context.Context) error { return nil }

// Find implements arrays.Chunks.
func (f files) Find(_ context.Context, at []int64) (chunk.Stored, error) {
	return chunk.Stored{URI: source.Join(string(f), strconv.FormatInt(at[0], 10)+".raw"), Object: true}, nil
}

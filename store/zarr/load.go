package zarr

import (
	"cmp"
	"context"
	"path"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/arrays"
)

// Names of metadata files.
const (
	meta3        = "zarr.json"
	array2       = ".zarray"
	group2       = ".zgroup"
	attrs2       = ".zattrs"
	consolidated = ".zmetadata"
)

// load reads the metadata of a node. of describes an array, also if it cannot be read.
func load(ctx context.Context, n *arrays.Node) (of arrays.Object, err error) {
	uri := n.URI
	object, err := n.ReadObject(ctx, source.Join(uri, meta3))
	if err == nil {
		return object, fault.WithFile(open3(ctx, n, object), source.Join(uri, meta3))
	}
	if !arrays.Missing(err) {
		return nil, err
	}
	n.Format = 2
	if object, err = n.ReadObject(ctx, source.Join(uri, array2)); err == nil {
		attrs, err := optional(ctx, n, source.Join(uri, attrs2))
		if err != nil {
			return nil, err
		}
		meta, err := parse2(object, attrs)
		if err != nil {
			return object, fault.WithFile(err, source.Join(uri, array2))
		}
		n.Array = newArray(n, n.URI, "", meta)
		return nil, nil
	}
	if !arrays.Missing(err) {
		return nil, err
	}
	joined, err := optional(ctx, n, source.Join(uri, consolidated))
	if err != nil {
		return nil, err
	}
	if joined != nil {
		return nil, fault.WithFile(consolidated2(ctx, n, joined), source.Join(uri, consolidated))
	}
	if _, err = n.ReadObject(ctx, source.Join(uri, group2)); err != nil {
		if arrays.Missing(err) {
			text := "there is no zarr.json, .zarray, .zmetadata or .zgroup"
			if source.IsPart(uri) {
				text += ": zip what the store has in it (cd x.zarr; zip -0 -r ../x.zarr.zip .), not its directory"
			}
			err = fault.WithFile(fault.New(fault.NotFound, "dataset", "%s", text), uri)
		}
		return nil, err
	}
	n.Attrs, err = optional(ctx, n, source.Join(uri, attrs2))
	return nil, err
}

// optional reads a metadata file that need not be there.
func optional(ctx context.Context, n *arrays.Node, uri string) (arrays.Object, error) {
	content, err := n.ReadObject(ctx, uri)
	if arrays.Missing(err) {
		return nil, nil
	}
	return content, err
}

// open3 opens a zarr.json.
func open3(ctx context.Context, n *arrays.Node, v arrays.Object) error {
	n.Format = 3
	array, err := kind3(v)
	if err != nil {
		return err
	}
	if array {
		meta, err := parse3(v)
		if err != nil {
			return err
		}
		n.Array = newArray(n, n.URI, "", meta)
		return nil
	}
	if _, err := v.Get("attributes", &n.Attrs); err != nil {
		return err
	}
	var inline struct {
		Kind string                   `json:"kind"`
		Meta map[string]arrays.Object `json:"metadata"`
	}
	ok, err := v.Get("consolidated_metadata", &inline)
	if err != nil || !ok || inline.Kind != "inline" {
		return err
	}
	n.Consolidated = true
	for p, meta := range inline.Meta {
		if err := cmp.Or(ctx.Err(), arrays.CheckPath(p)); err != nil {
			return err
		}
		array, err := kind3(meta)
		if err != nil {
			return fault.WithPart(err, p, fault.NoOffset)
		}
		n.Put(p, &entry{n: n, path: p, array: array, meta: meta})
	}
	return nil
}

// kind3 reports true if a zarr.json describes an array, and false for a group. Any other node is an error.
func kind3(v arrays.Object) (array bool, err error) {
	var format int
	if err := v.Need("zarr_format", &format); err != nil {
		return false, err
	}
	if format != 3 {
		return false, arrays.Unsupported("zarr_format %d in zarr.json", format)
	}
	switch kind := v.String("node_type"); kind {
	case "array":
		return true, nil
	case "group":
		return false, nil
	default:
		return false, arrays.Corrupt("node_type %.40q", kind)
	}
}

// consolidated2 opens a .zmetadata.
func consolidated2(ctx context.Context, n *arrays.Node, v arrays.Object) error {
	var objects map[string]arrays.Object
	if err := v.Need("metadata", &objects); err != nil {
		return err
	}
	entries := map[string]*entry{}
	n.Consolidated = true
	for key, meta := range objects {
		dir, name := path.Split(key)
		dir = strings.TrimSuffix(dir, "/")
		if dir == "" {
			if name == attrs2 {
				n.Attrs = meta
			}
			continue
		}
		if err := cmp.Or(ctx.Err(), arrays.CheckPath(dir)); err != nil {
			return err
		}
		e := entries[dir]
		if e == nil {
			e = &entry{n: n, path: dir}
		}
		switch name {
		case array2:
			e.array, e.meta = true, meta
		case attrs2:
			e.attrs = meta
		case group2:
		default:
			continue
		}
		entries[dir] = e
		n.Put(dir, e)
	}
	return nil
}

// entry is a node of consolidated metadata.
type entry struct {
	n     *arrays.Node // that has the metadata
	path  string
	array bool
	meta  arrays.Object
	attrs arrays.Object // of version 2
}

// Array implements arrays.Entry.
func (e *entry) Array() (*arrays.Array, error) {
	if !e.array {
		return nil, nil
	}
	parse := func() (*meta, error) { return parse3(e.meta) }
	if e.n.Format == 2 {
		parse = func() (*meta, error) { return parse2(e.meta, e.attrs) }
	}
	found, err := parse()
	if err != nil {
		return nil, err
	}
	return newArray(e.n, source.Join(e.n.URI, e.path), e.path, found), nil
}

// Attrs implements arrays.Entry.
func (e *entry) Attrs() (attrs arrays.Object, err error) {
	if e.n.Format == 2 {
		return e.attrs, nil
	}
	_, err = e.meta.Get("attributes", &attrs)
	return attrs, err
}

// Pixels implements arrays.Entry.
func (e *entry) Pixels() bool { return pixelsIn(e.meta) }

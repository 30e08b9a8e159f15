package zarr

import (
	"cmp"
	"context"
	"path"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// readObject reads a metadata file, and charges it to the memory of the node. A file that does not exist is
// fault.NotFound.
func (n *Node) readObject(ctx context.Context, uri string) (v jsonObject, err error) {
	file, err := n.open.Open(ctx, uri)
	if err != nil {
		return nil, fault.WithFile(err, uri)
	}
	defer file.Close()
	defer func() { err = fault.WithFile(err, uri) }()
	size := file.Size()
	if size > maxMeta {
		return nil, fault.New(fault.Limit, metaPart, "%d bytes, at most %d", size, maxMeta)
	}
	if err := n.charge(ctx, metaCopies*size); err != nil {
		return nil, err
	}
	defer n.refund(size) // the text
	data, err := source.Read(ctx, file, 0, size)
	if err != nil {
		return nil, err
	}
	v, values, err := decodeObject(data)
	if err != nil {
		return nil, err
	}
	return v, n.charge(ctx, int64(values)*valueBytes)
}

// load reads the metadata of the node.
func (n *Node) load(ctx context.Context) error {
	uri := n.URI
	object, err := n.readObject(ctx, source.Join(uri, meta3))
	if err == nil {
		return fault.WithFile(n.open3(ctx, object), source.Join(uri, meta3))
	}
	if !missing(err) {
		return err
	}
	n.Format = 2
	if object, err = n.readObject(ctx, source.Join(uri, array2)); err == nil {
		attrs, err := n.optional(ctx, source.Join(uri, attrs2))
		if err != nil {
			return err
		}
		meta, err := parse2(object, attrs)
		if err != nil {
			n.broken = object
			return fault.WithFile(err, source.Join(uri, array2))
		}
		n.Array = newArray(n.open, n.URI, "", meta, n.options)
		return nil
	}
	if !missing(err) {
		return err
	}
	joined, err := n.optional(ctx, source.Join(uri, consolidated))
	if err != nil {
		return err
	}
	if joined != nil {
		return fault.WithFile(n.consolidated2(ctx, joined), source.Join(uri, consolidated))
	}
	if _, err = n.readObject(ctx, source.Join(uri, group2)); err != nil {
		if missing(err) {
			text := "there is no zarr.json, .zarray, .zmetadata or .zgroup"
			if source.IsPart(uri) {
				text += ": zip what the store has in it (cd x.zarr; zip -0 -r ../x.zarr.zip .), not its directory"
			}
			err = fault.WithFile(fault.New(fault.NotFound, "dataset", "%s", text), uri)
		}
		return err
	}
	n.Attrs, err = n.optional(ctx, source.Join(uri, attrs2))
	return err
}

// optional reads a metadata file that need not be there.
func (n *Node) optional(ctx context.Context, uri string) (jsonObject, error) {
	content, err := n.readObject(ctx, uri)
	if missing(err) {
		return nil, nil
	}
	return content, err
}

// open3 opens a zarr.json.
func (n *Node) open3(ctx context.Context, v jsonObject) error {
	n.Format = 3
	array, err := kind3(v)
	if err != nil {
		return err
	}
	if array {
		meta, err := parse3(v)
		if err != nil {
			n.broken = v
			return err
		}
		n.Array = newArray(n.open, n.URI, "", meta, n.options)
		return nil
	}
	if _, err := v.get("attributes", &n.Attrs); err != nil {
		return err
	}
	var inline struct {
		Kind string                `json:"kind"`
		Meta map[string]jsonObject `json:"metadata"`
	}
	ok, err := v.get("consolidated_metadata", &inline)
	if err != nil || !ok || inline.Kind != "inline" {
		return err
	}
	n.Consolidated, n.below = true, map[string]nodeEntry{}
	for p, meta := range inline.Meta {
		if err := cmp.Or(ctx.Err(), checkPath(p)); err != nil {
			return err
		}
		array, err := kind3(meta)
		if err != nil {
			return fault.WithPart(err, p, fault.NoOffset)
		}
		n.below[p] = nodeEntry{array: array, meta: meta}
	}
	return nil
}

// kind3 reports true if a zarr.json describes an array, and false for a group. Any other node is an error.
func kind3(v jsonObject) (array bool, err error) {
	var format int
	if err := v.need("zarr_format", &format); err != nil {
		return false, err
	}
	if format != 3 {
		return false, unsupported("zarr_format %d in zarr.json", format)
	}
	switch kind := v.text("node_type"); kind {
	case "array":
		return true, nil
	case "group":
		return false, nil
	default:
		return false, corrupt("node_type %.40q", kind)
	}
}

// consolidated2 opens a .zmetadata.
func (n *Node) consolidated2(ctx context.Context, v jsonObject) error {
	var objects map[string]jsonObject
	if err := v.need("metadata", &objects); err != nil {
		return err
	}
	n.Consolidated, n.below = true, map[string]nodeEntry{}
	for key, meta := range objects {
		dir, name := path.Split(key)
		dir = strings.TrimSuffix(dir, "/")
		if dir == "" {
			if name == attrs2 {
				n.Attrs = meta
			}
			continue
		}
		if err := cmp.Or(ctx.Err(), checkPath(dir)); err != nil {
			return err
		}
		entry := n.below[dir]
		switch name {
		case array2:
			entry.array, entry.meta = true, meta
		case attrs2:
			entry.attrs = meta
		case group2:
		default:
			continue
		}
		n.below[dir] = entry
	}
	return nil
}

// charge charges n bytes for metadata of the node.
func (n *Node) charge(ctx context.Context, bytes int64) error {
	if err := n.options.memory.take(ctx, bytes); err != nil {
		return err
	}
	n.fileBytes += bytes
	return nil
}

// refund gives back some of the bytes that the node was charged for.
func (n *Node) refund(bytes int64) {
	n.fileBytes -= bytes
	n.options.memory.give(bytes)
}

// drop says that the node goes out of use. Its array may still be read.
func (n *Node) drop() { n.refund(n.fileBytes) }

// Full returns an error if there was no room for some of the metadata, which Place takes for missing.
func (n *Node) Full() error {
	memory := n.options.memory
	memory.mu.Lock()
	defer memory.mu.Unlock()
	return fault.WithFile(memory.full, n.URI)
}

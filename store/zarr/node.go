package zarr

import (
	"bytes"
	"context"
	"encoding/json"
	"path"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
)

// directory returns the directory of an array or group at a path: of a file that is a ZIP its archive. STORE.zarr::PATH
// is the node PATH of a store.
func directory(o source.Opener, p source.Path) (uri string, remote bool) {
	if file, inside, ok := source.Split(p.Name); ok && magic.Named(file).Class == magic.Zarr {
		if p, err := source.Parse(file); err == nil {
			uri, remote = directory(o, p)
			return source.Join(uri, inside), remote
		}
	}
	if !strings.EqualFold(path.Ext(p.Base()), ".zip") {
		return p.Name, p.Remote()
	}
	if !p.Remote() {
		if st, err := openers.RootsOf(o).Stat(p.Local()); err != nil || st.IsDir() {
			return p.Name, false
		}
	}
	return source.ArchiveName(p.Name), true
}

// Is reports whether there is an array or a group at a path. A remote one costs up to three requests.
func Is(ctx context.Context, o source.Opener, p source.Path) (bool, error) {
	uri, remote := directory(o, p)
	if !remote {
		roots, dir := openers.RootsOf(o), source.LocalPath(uri)
		for _, name := range [...]string{meta3, array2, group2, consolidated} {
			if st, err := roots.Stat(pathname.Join(dir, name)); err == nil && st.Mode().IsRegular() {
				return true, nil
			}
		}
		return false, nil
	}
	// The name of a metadata file would become part of the query.
	if uri == p.Name && strings.ContainsAny(uri, "?#") {
		return false, nil
	}
	for _, name := range [...]string{meta3, array2, group2} {
		reader, err := o.Open(ctx, source.Join(uri, name))
		if err == nil {
			is, err := beginsLikeJSON(ctx, reader)
			return reader.Close() == nil && is, err
		}
		if source.Unreachable(err) {
			return false, err
		}
	}
	return false, nil
}

// beginsLikeJSON reports whether a file begins like the metadata of an array or a group. Some servers send a page for
// every name. Its errors are outages.
func beginsLikeJSON(ctx context.Context, r source.Reader) (bool, error) {
	const most = 16 // bytes; all but one may be spaces
	head := make([]byte, min(most, r.Size()))
	err := r.ReadAt(ctx, head, 0)
	return err == nil && bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")), source.Outage(err)
}

// Node is an open array or group. It does not change and is safe for concurrent use.
type Node struct {
	URI    string
	Format int        // 2 or 3; of a file of another format its own version
	Array  *Array     // nil for a group
	Attrs  jsonObject // of a group
	// Consolidated is true if the metadata of all nodes below a group is known.
	Consolidated bool

	open      source.Opener
	options   Options
	prefix    string               // of paths below the node that was opened, if this one lies there; ends with "/"
	below     map[string]nodeEntry // by path with this prefix, if Consolidated
	fileBytes int64                // of the memory of the store, for the node's own files
	broken    jsonObject           // the metadata of an array that cannot be read
	isFile    bool                 // the node lies in a file of another format
}

// uriOf returns the URI of a node below.
func (n *Node) uriOf(p string) string {
	if n.isFile {
		return source.FileOf(n.URI) + source.Separator + n.prefix + p
	}
	return source.Join(n.URI, p)
}

// nodeEntry is the metadata of a node below a group.
type nodeEntry struct {
	array bool
	meta  jsonObject
	attrs jsonObject // of version 2
	// Of a file of another format: the array, or why it cannot be read.
	made   *Array
	texts  textsOf // of an array of strings, whose err says that it is no image
	err    error
	pixels bool // see Member.Pixels
}

// hasPixels is Member.Pixels.
func (e *nodeEntry) hasPixels() bool { return e.pixels || pixelsIn(e.meta) }

// pixelsIn reports whether metadata is of an array of two dimensions or more, of anything but strings.
func pixelsIn(meta jsonObject) bool {
	var shape []json.RawMessage
	if ok, err := meta.get("shape", &shape); !ok || err != nil || len(shape) < 2 {
		return false
	}
	for _, key := range [...]string{"dtype", "data_type"} {
		raw := meta[key]
		var extension struct {
			Name string `json:"name"`
		}
		name := meta.text(key)
		if name == "" && json.Unmarshal(raw, &extension) == nil {
			name = extension.Name
		}
		name = strings.TrimLeft(name, "<>|=")
		if strings.HasPrefix(name, "U") || strings.HasPrefix(name, "S") || name == "O" || name == "string" ||
			strings.Contains(name, "_utf") || strings.HasSuffix(name, "_bytes") {
			return false
		}
	}
	return true
}

// Open opens the array or the group at a URI. If there is neither, it returns fault.NotFound. The memory of the
// metadata is charged to the account of ctx, which must stay open for as long as the node is used.
func Open(ctx context.Context, o source.Opener, uri string, opt Options) (*Node, error) {
	node, err := openNode(ctx, o, uri, opt)
	if err != nil {
		return nil, err
	}
	return node, nil
}

// openNode is Open that returns a node also with an error, whose broken is what could be read.
func openNode(ctx context.Context, o source.Opener, uri string, opt Options) (*Node, error) {
	if p, err := source.Parse(uri); err == nil {
		uri, _ = directory(o, p)
	}
	node := &Node{URI: strings.TrimSuffix(uri, "/"), open: o, options: opt.withDefaults(budget.Of(ctx))}
	err := node.load(ctx)
	if err != nil {
		node.drop()
	}
	return node, err
}

// array makes an array of consolidated metadata.
func (n *Node) array(p string, e nodeEntry) (*Array, error) {
	if n.isFile {
		if e.err != nil {
			return nil, fault.WithFile(e.err, n.uriOf(p))
		}
		return e.made, nil
	}
	parse := func() (*Meta, error) { return parse3(e.meta) }
	if n.Format == 2 {
		parse = func() (*Meta, error) { return parse2(e.meta, e.attrs) }
	}
	meta, err := parse()
	if err != nil {
		return nil, fault.WithFile(err, source.Join(n.URI, p))
	}
	return newArray(n.open, source.Join(n.URI, p), n.prefix+p, meta, n.options), nil
}

// At returns the array or group at a path below a group. A path that does not exist is fault.NotFound, and one
// that leads out of the group fault.Corrupt.
func (n *Node) At(ctx context.Context, p string) (*Node, error) {
	if err := checkPath(p); err != nil {
		return nil, fault.WithFile(err, n.URI)
	}
	if !n.Consolidated {
		node, err := Open(ctx, n.open, source.Join(n.URI, p), n.options)
		if err == nil && node.Array != nil {
			node.Array.Path = n.prefix + p
		} else if err == nil {
			node.prefix = n.prefix + p + "/"
		}
		return node, err
	}
	found, ok := n.below[n.prefix+p]
	if !ok {
		return nil, fault.WithFile(fault.NoMember("group", "no array or group %q", p), n.URI)
	}
	node := &Node{URI: n.uriOf(p), Format: n.Format, open: n.open, options: n.options, isFile: n.isFile}
	if found.array {
		var err error
		node.Array, err = n.array(p, found)
		return node, err
	}
	node.Consolidated, node.below, node.prefix, node.Attrs = true, n.below, n.prefix+p+"/", found.attrs
	if n.Format == 3 && !n.isFile {
		if _, err := found.meta.get("attributes", &node.Attrs); err != nil {
			return nil, fault.WithFile(err, node.URI)
		}
	}
	return node, nil
}

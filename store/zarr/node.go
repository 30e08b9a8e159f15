package zarr

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
)

// Files of metadata.
const (
	meta3        = "zarr.json"
	array2       = ".zarray"
	group2       = ".zgroup"
	attrs2       = ".zattrs"
	consolidated = ".zmetadata"
)

// Is reports whether there is an array or a group at a URI. A remote URI costs up to three requests.
func Is(ctx context.Context, o source.Opener, uri string) bool {
	if !source.IsRemote(uri) {
		roots, dir := source.RootsOf(o), source.LocalPath(uri)
		for _, name := range [...]string{meta3, array2, group2} {
			if st, err := roots.Stat(pathname.Join(dir, name)); err == nil && st.Mode().IsRegular() {
				return true
			}
		}
		return false
	}
	if strings.ContainsAny(uri, "?#") { // a name cannot be appended
		return false
	}
	for _, name := range [...]string{meta3, array2, group2} {
		if r, err := o.Open(ctx, Join(uri, name)); err == nil {
			return r.Close() == nil
		}
	}
	return false
}

// Named reports whether a part of a URI has the extension of Zarr, so that asking for metadata pays.
func Named(uri string) bool {
	for part := range strings.SplitSeq(uri, "/") {
		if strings.EqualFold(path.Ext(part), ".zarr") {
			return true
		}
	}
	return false
}

// Node is an open array or group. It does not change and is safe for concurrent use.
type Node struct {
	URI    string
	Format int    // 2 or 3
	Array  *Array // nil for a group
	Attrs  object // of a group
	// Consolidated is true if the metadata of all nodes below a group is known.
	Consolidated bool

	open    source.Opener
	options Options
	below   map[string]entry // by path, if Consolidated
	charged int64            // of the memory of the store, for the node's own files
}

// entry is the metadata of a node below a group.
type entry struct {
	array bool
	meta  object
	attrs object // of version 2
}

// Open opens the array or the group at a URI. What is neither is fault.NotFound. The memory of the metadata is charged
// to the account of ctx, which must stay open for as long as the node is used.
func Open(ctx context.Context, o source.Opener, uri string, opt Options) (*Node, error) {
	n := &Node{URI: strings.TrimSuffix(uri, "/"), open: o, options: opt.withDefaults(budget.Of(ctx))}
	if err := n.load(ctx); err != nil {
		n.drop()
		return nil, err
	}
	return n, nil
}

// load reads the metadata of the node.
func (n *Node) load(ctx context.Context) error {
	uri := n.URI
	v, err := n.readObject(ctx, Join(uri, meta3))
	if err == nil {
		return fault.WithFile(n.open3(v), Join(uri, meta3))
	}
	if !missing(err) {
		return err
	}
	n.Format = 2
	if v, err = n.readObject(ctx, Join(uri, array2)); err == nil {
		attrs, err := n.optional(ctx, Join(uri, attrs2))
		if err != nil {
			return err
		}
		m, err := parse2(v, attrs)
		if err != nil {
			return fault.WithFile(err, Join(uri, array2))
		}
		n.Array = newArray(n.open, n.URI, "", m, n.options)
		return nil
	}
	if !missing(err) {
		return err
	}
	all, err := n.optional(ctx, Join(uri, consolidated))
	if err != nil {
		return err
	}
	if all != nil {
		return fault.WithFile(n.consolidated2(all), Join(uri, consolidated))
	}
	if _, err = n.readObject(ctx, Join(uri, group2)); err != nil {
		if missing(err) {
			err = fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset,
				"there is no zarr.json, .zarray, .zmetadata or .zgroup"), uri)
		}
		return err
	}
	n.Attrs, err = n.optional(ctx, Join(uri, attrs2))
	return err
}

// optional reads a metadata file that need not be there.
func (n *Node) optional(ctx context.Context, uri string) (object, error) {
	v, err := n.readObject(ctx, uri)
	if missing(err) {
		return nil, nil
	}
	return v, err
}

// open3 opens a zarr.json.
func (n *Node) open3(v object) error {
	n.Format = 3
	array, err := kind3(v)
	if err != nil {
		return err
	}
	if array {
		m, err := parse3(v)
		if err == nil {
			n.Array = newArray(n.open, n.URI, "", m, n.options)
		}
		return err
	}
	if _, err := v.get("attributes", &n.Attrs); err != nil {
		return err
	}
	var inline struct {
		Kind string            `json:"kind"`
		Meta map[string]object `json:"metadata"`
	}
	ok, err := v.get("consolidated_metadata", &inline)
	if err != nil || !ok || inline.Kind != "inline" {
		return err
	}
	n.Consolidated, n.below = true, map[string]entry{}
	for p, meta := range inline.Meta {
		if err := checkPath(p); err != nil {
			return err
		}
		array, err := kind3(meta)
		if err != nil {
			return fault.WithPart(err, p, fault.NoOffset)
		}
		n.below[p] = entry{array: array, meta: meta}
	}
	return nil
}

// kind3 reports whether a zarr.json is that of an array. What is neither that nor a group is an error.
func kind3(v object) (array bool, err error) {
	var format int
	if err := v.need("zarr_format", &format); err != nil {
		return false, err
	}
	if format != 3 {
		return false, unsupported("zarr_format %d in zarr.json", format)
	}
	switch k := v.text("node_type"); k {
	case "array":
		return true, nil
	case "group":
		return false, nil
	default:
		return false, corrupt("node_type %.40q", k)
	}
}

// consolidated2 opens a .zmetadata.
func (n *Node) consolidated2(v object) error {
	var all map[string]object
	if err := v.need("metadata", &all); err != nil {
		return err
	}
	n.Consolidated, n.below = true, map[string]entry{}
	for key, meta := range all {
		dir, name := path.Split(key)
		dir = strings.TrimSuffix(dir, "/")
		if dir == "" {
			if name == attrs2 {
				n.Attrs = meta
			}
			continue
		}
		if err := checkPath(dir); err != nil {
			return err
		}
		e := n.below[dir]
		switch name {
		case array2:
			e.array, e.meta = true, meta
		case attrs2:
			e.attrs = meta
		case group2:
		default:
			continue
		}
		n.below[dir] = e
	}
	return nil
}

// array makes an array of consolidated metadata.
func (n *Node) array(p string, e entry) (*Array, error) {
	parse := func() (*Meta, error) { return parse3(e.meta) }
	if n.Format == 2 {
		parse = func() (*Meta, error) { return parse2(e.meta, e.attrs) }
	}
	m, err := parse()
	if err != nil {
		return nil, fault.WithFile(err, Join(n.URI, p))
	}
	return newArray(n.open, Join(n.URI, p), p, m, n.options), nil
}

// At returns the array or group at a path below a group. A path that is none, or leads out of the group, is
// fault.NotFound or fault.Corrupt.
func (n *Node) At(ctx context.Context, p string) (*Node, error) {
	if err := checkPath(p); err != nil {
		return nil, fault.WithFile(err, n.URI)
	}
	if !n.Consolidated {
		at, err := Open(ctx, n.open, Join(n.URI, p), n.options)
		if err == nil && at.Array != nil {
			at.Array.Path = p
		}
		return at, err
	}
	e, ok := n.below[p]
	if !ok {
		return nil, fault.WithFile(fault.New(fault.NotFound, "group", fault.NoOffset, "no array or group %q", p), n.URI)
	}
	at := &Node{URI: Join(n.URI, p), Format: n.Format, open: n.open, options: n.options}
	if e.array {
		var err error
		at.Array, err = n.array(p, e)
		return at, err
	}
	at.Consolidated, at.below, at.Attrs = true, map[string]entry{}, e.attrs
	if n.Format == 3 {
		if _, err := e.meta.get("attributes", &at.Attrs); err != nil {
			return nil, fault.WithFile(err, at.URI)
		}
	}
	for k, e := range n.below {
		if rest, ok := strings.CutPrefix(k, p+"/"); ok {
			at.below[rest] = e
		}
	}
	return at, nil
}

// Member is an array below a group, or why it cannot be read.
type Member struct {
	Path  string
	Array *Array // nil with Err
	Err   error
}

// Members returns the arrays below a group, in the order of their paths. Without consolidated metadata it lists
// directories; where that cannot be done, the error is fault.Unsupported.
func (n *Node) Members(ctx context.Context) ([]Member, error) {
	if n.Array != nil {
		return []Member{{Path: "", Array: n.Array}}, nil
	}
	var list []Member
	if !n.Consolidated {
		w := walk{n: n}
		err := w.dir(ctx, "", 0)
		slices.SortFunc(w.list, func(a, b Member) int { return strings.Compare(a.Path, b.Path) })
		return w.list, err
	}
	for _, p := range slices.Sorted(maps.Keys(n.below)) {
		if e := n.below[p]; e.array {
			a, err := n.array(p, e)
			list = append(list, Member{p, a, err})
		}
	}
	return list, nil
}

// Limits of groups that are listed.
const (
	maxNodes  = 10000
	maxLevels = 16
)

// walk lists the arrays of a group.
type walk struct {
	n    *Node
	list []Member
	seen int
}

// dir adds the arrays below a directory of the group.
func (w *walk) dir(ctx context.Context, p string, level int) error {
	names, err := names(ctx, w.n.open, Join(w.n.URI, p))
	if err != nil {
		return err
	}
	for _, name := range names {
		sub, dir := strings.CutSuffix(name, "/")
		if !dir || checkPath(sub) != nil || strings.HasPrefix(sub, ".") {
			continue
		}
		if w.seen++; w.seen > maxNodes || level >= maxLevels {
			return fault.WithFile(fault.New(fault.Limit, "group", fault.NoOffset,
				"more than %d nodes, or %d levels of them", maxNodes, maxLevels), w.n.URI)
		}
		sub = path.Join(p, sub)
		at, err := Open(ctx, w.n.open, Join(w.n.URI, sub), w.n.options)
		switch {
		case err != nil && missing(err): // a directory of something else
		case err != nil:
			if ctx.Err() != nil || fault.KindOf(err) == 0 || w.n.Full() != nil {
				return err
			}
			w.list = append(w.list, Member{Path: sub, Err: err})
		case at.Array != nil:
			at.Array.Path = sub
			w.list = append(w.list, Member{Path: sub, Array: at.Array})
		default:
			at.drop() // of a group only its arrays are kept
			if err := w.dir(ctx, sub, level+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// names returns the names of the entries of a directory; those of directories end in "/".
func names(ctx context.Context, o source.Opener, uri string) ([]string, error) {
	if source.IsRemote(uri) {
		return source.Names(ctx, o, uri)
	}
	roots, dir := source.RootsOf(o), source.LocalPath(uri)
	list, err := roots.ReadDir(dir)
	if err != nil {
		return nil, fault.WithFile(fault.Wrap(fault.Unsupported, "folder", fault.NoOffset, err), uri)
	}
	var out []string
	for _, e := range list {
		name := e.Name()
		if st, err := roots.Stat(pathname.Join(dir, name)); err == nil && st.IsDir() {
			name += "/"
		}
		out = append(out, name)
	}
	return out, nil
}

package arrays

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
)

// Node is an open array or group. Once a format has made it, it does not change and is safe for concurrent use.
type Node struct {
	URI    string
	Format int    // the version of the format
	Array  *Array // nil for a group
	Attrs  Object // of a group
	// Consolidated is true if the metadata of all nodes below a group is known.
	Consolidated bool

	kind      string // the name of the format, for reports
	open      source.Opener
	options   Options
	opens     Opens            // nil if all nodes are known
	prefix    string           // of paths below the node that was opened, if this one lies there; ends with "/"
	below     map[string]Entry // by path with this prefix, if Consolidated
	fileBytes int64            // of the memory of the store, for the node's own files
}

// Opens opens the node at a URI of a store whose nodes are directories. pixels is as in Member, of an array that cannot
// be read.
type Opens func(ctx context.Context, o source.Opener, uri string, opt Options) (n *Node, pixels bool, err error)

// Entry is a node below a group.
type Entry interface {
	// Array returns the array, or nil for a group.
	Array() (*Array, error)
	// Attrs returns the attributes of a group.
	Attrs() (Object, error)
	// Pixels is as in Member.
	Pixels() bool
}

// New begins the node at a URI, which a format completes. Without opens it is a group in a file, or in a directory
// that counts as one: Put adds all nodes below. The memory of the metadata is charged to the account of ctx,
// which must stay open for as long as the node is used.
func New(ctx context.Context, o source.Opener, uri string, opens Opens, opt Options) *Node {
	return &Node{URI: uri, open: o, opens: opens, options: opt.withDefaults(budget.Of(ctx)), Consolidated: opens == nil}
}

// Put adds a node below a group, whose nodes are then all known.
func (n *Node) Put(path string, e Entry) {
	if n.Consolidated = true; n.below == nil {
		n.below = map[string]Entry{}
	}
	n.below[path] = e
}

// made is a node in a file, whose metadata was read when the file was opened.
type made struct {
	attrs  Object
	of     *Array // nil of a group
	err    error  // why the array cannot be read, or not as an image
	texts  Texts  // of an array of strings
	pixels bool
}

// Array implements Entry.
func (m *made) Array() (*Array, error) {
	if m.err != nil {
		return nil, m.err
	}
	return m.of, nil
}

// Attrs implements Entry.
func (m *made) Attrs() (Object, error) { return m.attrs, nil }

// Pixels implements Entry.
func (m *made) Pixels() bool { return m.pixels }

// PutGroup adds a group of a file, "" for the root.
func (n *Node) PutGroup(path string, attrs Object) {
	if path == "" {
		n.Attrs = attrs
		return
	}
	n.Put(path, &made{attrs: attrs})
}

// PutBroken adds an array of a file that cannot be read, but for its attributes. pixels is as in Member.
func (n *Node) PutBroken(path string, err error, pixels bool, attrs Object) {
	n.Put(path, &made{err: err, pixels: pixels, attrs: attrs})
}

// PutArray adds an array of a file. One that cannot be read is as for PutBroken. With texts it is an array of strings,
// which only Labels reads: an array of bytes, whose last dimension is a string, and what makes strings of them.
func (n *Node) PutArray(path string, m *Meta, chunks Chunks, texts Texts) {
	entry := &made{attrs: m.Attrs, pixels: len(m.Shape) > 1 && texts == nil}
	if m.Order == nil {
		m.Order = num.Range[int](0, len(m.Shape))
	}
	for _, filter := range m.Filters {
		m.Codecs = append(m.Codecs, filter.Name)
	}
	if entry.err = m.Check(); entry.err == nil {
		entry.of = n.NewArray(n.uriOf(path), path, m, chunks)
	}
	if texts != nil && entry.err == nil {
		entry.texts = texts
		entry.err = fault.New(fault.Unsupported, "array",
			"strings: name it as column of a field of kind text or class")
		if m.List.Valid() {
			entry.err = fault.New(fault.Unsupported, "array",
				"lists of %v of any length: name it as column of a field of kind number or class", m.List)
		}
	}
	n.Put(path, entry)
}

// uriOf returns the URI of a node below.
func (n *Node) uriOf(p string) string {
	if n.opens == nil {
		return source.FileOf(n.URI) + source.Separator + n.prefix + p
	}
	return source.Join(n.URI, p)
}

// At returns the array or group at a path below a group. A path that does not exist is fault.NotFound, and one
// that leads out of the group fault.Corrupt.
func (n *Node) At(ctx context.Context, p string) (*Node, error) {
	if err := CheckPath(p); err != nil {
		return nil, fault.WithFile(err, n.URI)
	}
	if !n.Consolidated {
		node, _, err := n.opens(ctx, n.open, source.Join(n.URI, p), n.options)
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
	node := &Node{URI: n.uriOf(p), Format: n.Format, open: n.open, options: n.options, opens: n.opens}
	var err error
	if node.Array, err = found.Array(); node.Array != nil || err != nil {
		return node, fault.WithFile(err, node.URI)
	}
	node.Consolidated, node.below, node.prefix = true, n.below, n.prefix+p+"/"
	node.Attrs, err = found.Attrs()
	return node, fault.WithFile(err, node.URI)
}

// Inside is At, but its error about a path that does not exist names the arrays that there are, where they are listed.
func (n *Node) Inside(ctx context.Context, p string) (*Node, error) {
	node, err := n.At(ctx, p)
	if Missing(err) {
		if list, failed := n.Members(ctx); failed == nil {
			err = n.noMember(p, list)
		}
	}
	return node, err
}

// noMember returns the error about a path that the group lacks.
func (n *Node) noMember(p string, list []Member) error {
	return fault.WithFile(fault.NoMember("group", "no array or group %q; there are %s", p,
		fault.Near(p, list, Member.path)), n.URI)
}

// Limits of groups that are listed, since the groups of a hostile store may have no end.
const (
	maxNodes  = 10000
	maxLevels = 16
)

// Bounds of the path of a node: maxPath is the longest path on Linux in bytes, and maxParts admits all groups that
// are listed.
const (
	maxPath  = 4096
	maxParts = maxLevels + 1
)

// CheckPath returns an error if the path of a node could lead out of its group, or has names that some stores cannot
// hold.
func CheckPath(path string) error {
	if len(path) > maxPath || strings.Count(path, "/") >= maxParts {
		return Corrupt("%.80q… is longer than the path of a node: %d bytes, %d names", path, maxPath, maxParts)
	}
	for part := range strings.SplitSeq(path, "/") {
		odd := strings.ContainsFunc(part, func(r rune) bool { return r < ' ' || r == '\\' })
		if odd || part == "" || part == "." || part == ".." {
			return Corrupt("%.80q is not the path of a node", path)
		}
	}
	return nil
}

// Missing reports whether an error means that an object does not exist.
func Missing(err error) bool { return errors.Is(err, fault.NotFound) && !openers.Outside(err) }

// ReadObject reads a JSON object of metadata, and charges it to the memory of the node. A file that does not exist is
// fault.NotFound.
func (n *Node) ReadObject(ctx context.Context, uri string) (v Object, err error) {
	file, err := n.open.Open(ctx, uri)
	if err != nil {
		return nil, fault.WithFile(err, uri)
	}
	defer file.Close()
	defer func() { err = fault.WithFile(err, uri) }()
	size := file.Size()
	if size > maxMeta {
		return nil, fault.New(fault.Limit, MetaPart, "%d bytes, at most %d", size, maxMeta)
	}
	if err := n.Charge(ctx, metaCopies*size); err != nil {
		return nil, err
	}
	defer n.refund(size) // the text
	data, err := source.Read(ctx, file, 0, size)
	if err != nil {
		return nil, err
	}
	v, values, err := DecodeObject(data)
	if err != nil {
		return nil, err
	}
	return v, n.Charge(ctx, int64(values)*valueBytes)
}

// Charge charges bytes for metadata of the node.
func (n *Node) Charge(ctx context.Context, bytes int64) error {
	if err := n.Hold(ctx, bytes); err != nil {
		return err
	}
	n.fileBytes += bytes
	return nil
}

// Hold charges bytes for as long as the store is in use, such as an index of chunks.
func (n *Node) Hold(ctx context.Context, bytes int64) error { return n.options.memory.take(ctx, bytes) }

// refund gives back some of the bytes that the node was charged for.
func (n *Node) refund(bytes int64) {
	n.fileBytes -= bytes
	n.options.memory.give(bytes)
}

// Drop says that the node goes out of use. Its array may still be read.
func (n *Node) Drop() { n.refund(n.fileBytes) }

// Member is an array below a group, or why it cannot be read.
type Member struct {
	Path  string
	Array *Array // nil with Err
	Err   error
	// Pixels says of an array with Err that it has two dimensions or more, of anything but strings.
	Pixels bool
}

// Members returns the arrays below a group, in the order of their paths. Without consolidated metadata it lists
// directories; where that cannot be done, the error is fault.Unsupported.
func (n *Node) Members(ctx context.Context) ([]Member, error) {
	if n.Array != nil {
		return []Member{{Path: "", Array: n.Array}}, nil
	}
	var list []Member
	if !n.Consolidated {
		nodes := 0
		list, err := n.listed(ctx, "", 0, &nodes)
		slices.SortFunc(list, func(a, b Member) int { return strings.Compare(a.Path, b.Path) })
		return list, err
	}
	for _, full := range slices.Sorted(maps.Keys(n.below)) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		path, ok := strings.CutPrefix(full, n.prefix)
		if !ok {
			continue
		}
		entry := n.below[full]
		array, err := entry.Array()
		if array != nil || err != nil {
			list = append(list, Member{path, array, fault.WithFile(err, n.uriOf(path)), err != nil && entry.Pixels()})
		}
	}
	return list, nil
}

// listed returns the arrays below a directory of the group. nodes counts all nodes.
func (n *Node) listed(ctx context.Context, p string, level int, nodes *int) (list []Member, err error) {
	names, err := openers.Names(ctx, n.open, source.Join(n.URI, p))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		sub, dir := strings.CutSuffix(name, "/")
		if !dir || CheckPath(sub) != nil || strings.HasPrefix(sub, ".") {
			continue
		}
		if *nodes++; *nodes > maxNodes || level >= maxLevels {
			return list, fault.WithFile(fault.New(fault.Limit, "group",
				"more than %d nodes, or %d levels of them", maxNodes, maxLevels), n.URI)
		}
		sub = path.Join(p, sub)
		node, pixels, err := n.opens(ctx, n.open, source.Join(n.URI, sub), n.options)
		_, full := n.Held()
		switch {
		case err != nil && Missing(err): // a directory of something else
		case err != nil && (ctx.Err() != nil || fault.KindOf(err) == 0 || full != nil):
			return list, err
		case err != nil:
			list = append(list, Member{Path: sub, Err: err, Pixels: pixels})
		case node.Array != nil:
			node.Array.Path = n.prefix + sub
			list = append(list, Member{Path: sub, Array: node.Array})
		default:
			// Of a group only its arrays are kept, so its own metadata must not stay charged.
			node.Drop()
			below, err := n.listed(ctx, sub, level+1, nodes)
			if list = append(list, below...); err != nil {
				return list, err
			}
		}
	}
	return list, nil
}

// Arrays implements store.Group.
func (n *Node) Arrays(ctx context.Context) ([]string, error) {
	list, err := n.Members(ctx)
	paths := make([]string, len(list))
	for i := range list {
		paths[i] = list[i].Path
	}
	_, full := n.Held()
	return paths, cmp.Or(err, full)
}

// attributesAt returns the attributes of an array or a group, also of an array that cannot be read: GDAL describes the
// CRS in the attributes of an array of characters. It reports false if p names neither.
func (n *Node) attributesAt(ctx context.Context, p string) (Object, bool) {
	if entry, ok := n.below[n.prefix+p].(*made); ok {
		return entry.attrs, true
	}
	node, err := n.At(ctx, p)
	if err != nil {
		return nil, false
	}
	node.Drop()
	if node.Array != nil {
		return node.Array.Attrs, true
	}
	return node.Attrs, true
}

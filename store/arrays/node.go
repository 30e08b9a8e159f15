package arrays

import (
	"cmp"
	"context"
	"errors"
	"maps"
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
	tree      Tree             // nil if all nodes are known
	prefix    string           // of paths below the node that was opened, if this one lies there; ends with "/"
	below     map[string]Entry // by path with this prefix, if Consolidated
	fileBytes int64            // of the memory of the store, for the node's own files
}

// Tree finds the nodes of a store whose nodes are not all known when it is opened.
type Tree interface {
	// Open opens the node at a URI.
	Open(ctx context.Context, o source.Opener, uri string, opt Options) (*Node, error)
	// Members lists the arrays below a group.
	Members(ctx context.Context, n *Node) ([]Member, error)
}

// Entry is a node below a group.
type Entry interface {
	// Array returns the array, or nil for a group.
	Array() (*Array, error)
	// Attrs returns the attributes of a group.
	Attrs() (Object, error)
	// Pixels is as in Member.
	Pixels() bool
}

// New begins the node at a URI, which a format completes. Without a tree it is a group in a file, or in a directory
// that counts as one: all nodes below are those of Put. The memory of the metadata is charged to the account of ctx,
// which must stay open for as long as the node is used.
func New(ctx context.Context, o source.Opener, uri string, tree Tree, opt Options) *Node {
	return &Node{URI: uri, open: o, tree: tree, options: opt.withDefaults(budget.Of(ctx)), Consolidated: tree == nil}
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
		entry.err = fault.New(fault.Unsupported, "array", "strings: name it as column of a field of kind text or class")
	}
	n.Put(path, entry)
}

// Opener opens the files of the store.
func (n *Node) Opener() source.Opener { return n.open }

// Options are those of the store, for nodes below.
func (n *Node) Options() Options { return n.options }

// uriOf returns the URI of a node below.
func (n *Node) uriOf(p string) string {
	if n.tree == nil {
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
		node, err := n.tree.Open(ctx, n.open, source.Join(n.URI, p), n.options)
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
	node := &Node{URI: n.uriOf(p), Format: n.Format, open: n.open, options: n.options, tree: n.tree}
	var err error
	if node.Array, err = found.Array(); node.Array != nil || err != nil {
		return node, fault.WithFile(err, node.URI)
	}
	node.Consolidated, node.below, node.prefix = true, n.below, n.prefix+p+"/"
	node.Attrs, err = found.Attrs()
	return node, fault.WithFile(err, node.URI)
}

// Member returns an array below a group as Tree.Members has it.
func (n *Node) Member(path string, array *Array) Member {
	array.Path = n.prefix + path
	return Member{Path: path, Array: array}
}

// MaxLevels bounds the groups inside each other that are listed.
const MaxLevels = 16

// Bounds of the path of a node: maxPath is the longest path on Linux in bytes, and maxParts admits all groups that
// are listed.
const (
	maxPath  = 4096
	maxParts = MaxLevels + 1
)

// CheckPath returns an error if the path of a node could lead out of its group, or has names that some stores cannot
// hold.
func CheckPath(path string) error {
	if len(path) > maxPath || strings.Count(path, "/") >= maxParts {
		return corrupt("%.80q… is longer than the path of a node: %d bytes, %d names", path, maxPath, maxParts)
	}
	for part := range strings.SplitSeq(path, "/") {
		odd := strings.ContainsFunc(part, func(r rune) bool { return r < ' ' || r == '\\' })
		if odd || part == "" || part == "." || part == ".." {
			return corrupt("%.80q is not the path of a node", path)
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

// Hold charges bytes for as long as the store is in use, such as those of an index of chunks.
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
		list, err := n.tree.Members(ctx, n)
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

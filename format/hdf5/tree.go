package hdf5

import (
	"cmp"
	"context"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/meter"
	"github.com/chaski-eo/chaski/source"
)

const (
	// maxNodes bounds the groups and datasets of a file that is read. A data set of one group for each sample has some
	// 100,000.
	maxNodes  = 1 << 20
	maxLevels = 32   // groups in each other
	maxSoft   = 16   // soft links that lead to each other
	maxPath   = 4096 // bytes of a path
	// The memory of a path to a group, and of the array that a dataset becomes under each path. Writers put a group
	// into 160 bytes, a dataset into 200.
	groupCost = 400
	arrayCost = 600
)

// File is the structure of an open file. It does not change, and is safe for concurrent use.
type File struct {
	Superblock
	// Nodes are the root, whose path is "", and all groups and datasets below it, by their paths. One that several
	// links lead to is there under each path.
	Nodes map[string]*Node
	// Paths are the paths of Nodes, in the same order.
	Paths []string

	meter *meter.Meter
}

// Node is a group or a dataset.
type Node struct {
	Dataset *Dataset // nil for a group
	Attrs   []Attribute
	// Err says why a dataset cannot be read, or where a link leads to that is not followed.
	Err       error
	NamedType bool   // it is a datatype with a name, not an array
	Addr      uint64 // of its object header, as references have it
}

// Keep counts bytes that are made of a node.
func (f *File) Keep(n *Node, bytes int64) error {
	return f.meter.Memory(groupPart, int64(min(n.Addr, math.MaxInt64)), bytes)
}

// Attr returns the value of an attribute, or nil.
func (n *Node) Attr(name string) any {
	for _, a := range n.Attrs {
		if a.Name == name {
			return a.Value()
		}
	}
	return nil
}

// Dataset is an array of elements.
type Dataset struct {
	Dataspace
	Type    *Datatype
	Filters []Filter // in the order in which they encode
	Fill    []byte   // one element as it is stored, nil for zeros

	file   *file
	layout *dataLayout
	max    []int64
}

// reading reads the tree of a file.
type reading struct {
	*walk
	made   *File
	nodeAt map[uint64]*Node // by address, so a node is read once
	links  map[uint64][]link
	soft   []softLink
	nodes  int
	above  []uint64 // addresses of the groups around a node
}

// softLink is a soft link, which is followed once all nodes are known.
type softLink struct{ path, target string }

// Open reads the tree of a file. take is called for the bytes of memory of its nodes; its error ends the reading.
func Open(ctx context.Context, r source.Reader, take func(n int64) error) (*File, error) {
	f, super, err := openFile(ctx, r)
	if err != nil {
		return nil, err
	}
	reader := &reading{walk: f.walk(ctx, r), made: &File{Superblock: *super, Nodes: map[string]*Node{}, meter: f.meter},
		nodeAt: map[uint64]*Node{}, links: map[uint64][]link{}}
	reader.take = take
	if err := reader.node("", super.root); err != nil {
		return nil, err
	}
	if err := cmp.Or(reader.resolve(), reader.follow()); err != nil {
		return nil, err
	}
	made := reader.made
	made.Paths = slices.Sorted(maps.Keys(made.Nodes))
	return made, nil
}

// put puts a node at a path.
func (r *reading) put(p string, n *Node) error {
	if r.nodes++; r.nodes > maxNodes {
		return tooMany("nodes", maxNodes)
	}
	if len(p) > maxPath {
		return fault.New(fault.Limit, groupPart, "a path of %d bytes, at most %d", len(p), maxPath)
	}
	cost := int64(len(p)) + groupCost
	if n.Dataset != nil {
		cost += arrayCost
	}
	if err := r.keep(groupPart, n.Addr, cost); err != nil {
		return err
	}
	r.made.Nodes[p] = n
	return r.ctx.Err()
}

// node adds the object at an address, and all that are below it.
func (r *reading) node(p string, addr uint64) error {
	// A hard link to a group around it would be a tree without an end.
	if slices.Contains(r.above, addr) {
		return nil
	}
	if len(r.above) >= maxLevels {
		return tooMany("levels of groups", maxLevels)
	}
	n, ok := r.nodeAt[addr]
	if !ok {
		var err error
		if n, err = r.object(addr); err != nil {
			if p == "" || fault.KindOf(err) != fault.Unsupported {
				return err
			}
			n = &Node{Err: err, Addr: addr}
		}
		r.nodeAt[addr] = n
	}
	if err := r.put(p, n); err != nil {
		return err
	}
	r.above = append(r.above, addr)
	defer func() { r.above = r.above[:len(r.above)-1] }()
	for _, l := range r.links[addr] {
		below := path.Join(p, l.name)
		var err error
		switch {
		case l.name == "" || l.name == "." || l.name == ".." || strings.Contains(l.name, "/"):
			err = corrupt(linkPart, addr, "%.80q is not the name of a link", l.name)
		case r.made.Nodes[below] != nil:
			err = corrupt(linkPart, addr, "two links %.80q", l.name)
		case l.out != "":
			err = r.put(below, &Node{Err: unsupported(linkPart, "%s", l.out)})
		case l.soft != "":
			r.soft = append(r.soft, softLink{below, l.soft})
		case l.addr == undefined:
			err = corrupt(linkPart, addr, "link %.80q leads nowhere", l.name)
		default:
			err = r.node(below, l.addr)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// object reads the object at an address: what it is, and the links of a group.
func (r *reading) object(addr uint64) (*Node, error) {
	h, err := r.header(addr)
	if err != nil {
		return nil, err
	}
	n := &Node{Addr: addr}
	if n.Attrs, err = r.attributes(h); err != nil {
		return nil, err
	}
	switch {
	case h.get(msgLayout) != nil || h.get(msgDataspace) != nil:
		if n.Dataset, err = r.dataset(h); fault.KindOf(err) == fault.Unsupported {
			n.Err, err = err, nil
		}
	case h.get(msgSymbolTable) != nil || h.get(msgLinkInfo) != nil || h.get(msgLink) != nil:
		r.links[addr], err = r.walk.links(h)
		// In the order of the file its bytes are read once. Names have the order of their hashes.
		slices.SortFunc(r.links[addr], func(a, b link) int { return cmp.Compare(a.addr, b.addr) })
	case h.get(msgDatatype) != nil:
		n.Err, n.NamedType = unsupported(headerPart, "a named datatype"), true
	}
	return n, err
}

// dataset reads a dataset.
func (r *reading) dataset(h header) (*Dataset, error) {
	d := &Dataset{file: r.file}
	for _, kind := range [...]int{msgDataspace, msgDatatype, msgLayout} {
		m := h.get(kind)
		if m == nil {
			return nil, fault.New(fault.Corrupt, headerPart, "a dataset without message %d", kind)
		}
		if err := r.part(d, m); err != nil {
			return nil, err
		}
	}
	if h.get(msgExternal) != nil {
		return nil, unsupported(headerPart, "elements in other files (external storage)")
	}
	d.max = d.Max
	var err error
	if m := h.get(msgFilters); m != nil {
		if d.Filters, err = r.filters(m); err != nil {
			return nil, err
		}
	}
	if d.Fill, err = r.fill(h); err != nil {
		return nil, err
	}
	if d.Fill != nil && len(d.Fill) != d.Type.Size {
		return nil, fault.New(fault.Corrupt, fillPart, "%d bytes, the elements have %d", len(d.Fill), d.Type.Size)
	}
	cost := len(d.layout.data) + len(d.Fill)
	for _, f := range d.Filters {
		cost += len(f.Name) + 4*len(f.Data)
	}
	if err := r.keep(headerPart, 0, int64(cost)); err != nil {
		return nil, err
	}
	if d.layout.class == chunked && (len(d.layout.chunk) != len(d.Shape) || d.layout.element != int64(d.Type.Size)) {
		return nil, fault.New(fault.Corrupt, layoutPart, "chunks %v of elements of %d bytes in a "+
			"dataset %v of %d", d.layout.chunk, d.layout.element, d.Shape, d.Type.Size)
	}
	return d, nil
}

// part reads one of the messages that each dataset has.
func (r *reading) part(d *Dataset, m *message) (err error) {
	switch m.kind {
	case msgLayout:
		d.layout, err = r.layout(m)
	case msgDataspace:
		var b *block
		if b, err = r.content(m, dataspacePart); err != nil {
			return err
		}
		var space *Dataspace
		if space, err = r.dataspace(b); err == nil {
			d.Dataspace = *space
		}
	default:
		var b *block
		if b, err = r.content(m, datatypePart); err != nil {
			return err
		}
		d.Type, err = r.datatype(b, 0)
	}
	return err
}

// follow follows the soft links. Dangling links are left out: nothing can be read by their names.
func (r *reading) follow() error {
	targets := map[string]string{}
	for _, s := range r.soft {
		targets[s.path] = s.target
	}
	paths := slices.Sorted(maps.Keys(r.made.Nodes))
	links := slices.SortedFunc(slices.Values(r.soft), func(a, b softLink) int { return cmp.Compare(a.path, b.path) })
	for i := 0; i < len(r.soft); i++ {
		s := r.soft[i]
		end, err := r.target(targets, s.path)
		n := r.made.Nodes[end]
		if err != nil {
			return err
		}
		if n == nil || r.made.Nodes[s.path] != nil || end == "" || strings.HasPrefix(s.path+"/", end+"/") {
			continue
		}
		// What is below a group is there under the name of the link, too: objects, and links to others.
		below := end + "/"
		if err := r.put(s.path, n); err != nil {
			return err
		}
		first, _ := slices.BinarySearch(paths, below)
		for _, p := range paths[first:] {
			rest, ok := strings.CutPrefix(p, below)
			if !ok {
				break
			}
			if err := r.put(path.Join(s.path, rest), r.made.Nodes[p]); err != nil {
				return err
			}
		}
		compare := func(s softLink, p string) int { return cmp.Compare(s.path, p) }
		first, _ = slices.BinarySearchFunc(links, below, compare)
		for _, l := range links[first:] {
			rest, ok := strings.CutPrefix(l.path, below)
			if !ok {
				break
			}
			again := softLink{path.Join(s.path, rest), "/" + l.path}
			if err := r.keep(linkPart, n.Addr, 2*linkCost+int64(len(again.path)+len(again.target))); err != nil {
				return err
			}
			r.soft, targets[again.path] = append(r.soft, again), again.target
		}
	}
	return nil
}

// target returns the path to which soft links on the way of a path lead, "" if they lead round.
func (r *reading) target(targets map[string]string, p string) (string, error) {
	for range maxSoft {
		link, end, work := "", 0, 0
		for link == "" && end < len(p) {
			if next := strings.IndexByte(p[end+1:], '/'); next >= 0 {
				end += 1 + next
			} else {
				end = len(p)
			}
			link = targets[p[:end]]
			work += end
		}
		if err := r.spend(groupPart, 0, int64(work+len(link))); err != nil || link == "" {
			return p, err
		}
		if !path.IsAbs(link) {
			link = path.Join("/", path.Dir(p[:end]), link)
		}
		if p = strings.TrimPrefix(path.Join(link, p[end:]), "/"); len(p) > maxPath {
			break
		}
	}
	return "", nil
}

// Chunked returns the cells of a chunk along each dimension, or nil if the elements lie side by side.
func (d *Dataset) Chunked() []int64 {
	if d.layout.class == chunked {
		return d.layout.chunk
	}
	return nil
}

// Contiguous returns where the elements of a dataset that is not chunked lie in the file, or the elements themselves if
// they lie in its header. ok is false if none were written.
func (d *Dataset) Contiguous() (off, size int64, inline []byte, ok bool, err error) {
	size = d.count(maxChunkBytes / int64(d.Type.Size))
	if size < 0 {
		return 0, 0, nil, false, fault.New(fault.Limit, layoutPart, "%v elements of %d bytes", d.Shape, d.Type.Size)
	}
	size *= int64(d.Type.Size)
	switch {
	case d.layout.class == compact:
		if int64(len(d.layout.data)) < size {
			return 0, 0, nil, false, fault.New(fault.Corrupt, layoutPart,
				"%d bytes in the header, %d needed", len(d.layout.data), size)
		}
		return 0, size, d.layout.data[:size], true, nil
	case d.layout.addr == undefined || size == 0:
		return 0, size, nil, false, nil
	case d.layout.size < uint64(size):
		return 0, 0, nil, false, fault.New(fault.Corrupt, layoutPart, "%d bytes, %d needed", d.layout.size, size)
	}
	off, err = d.file.position(layoutPart, d.layout.addr, uint64(size))
	return off, size, nil, true, err
}

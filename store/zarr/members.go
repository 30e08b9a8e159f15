package zarr

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	_ "github.com/chaski-eo/chaski/source/archive" // stores may be ZIPs
	"github.com/chaski-eo/chaski/source/openers"
)

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
		walked := walk{n: n}
		err := walked.dir(ctx, "", 0)
		slices.SortFunc(walked.list, func(a, b Member) int { return strings.Compare(a.Path, b.Path) })
		return walked.list, err
	}
	for _, full := range slices.Sorted(maps.Keys(n.below)) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		entry := n.below[full]
		if path, ok := strings.CutPrefix(full, n.prefix); ok && entry.array {
			a, err := n.array(path, entry)
			list = append(list, Member{path, a, err, err != nil && entry.hasPixels()})
		}
	}
	return list, nil
}

// ArrayPaths returns the paths of the arrays below a group.
func (n *Node) ArrayPaths(ctx context.Context) ([]string, error) {
	list, err := n.Members(ctx)
	paths := make([]string, len(list))
	for i := range list {
		paths[i] = list[i].Path
	}
	return paths, cmp.Or(err, n.Full())
}

// walk lists the arrays of a group.
type walk struct {
	n     *Node
	list  []Member
	nodes int
}

// dir adds the arrays below a directory of the group.
func (w *walk) dir(ctx context.Context, p string, level int) error {
	names, err := openers.Names(ctx, w.n.open, source.Join(w.n.URI, p))
	if err != nil {
		return err
	}
	for _, name := range names {
		sub, dir := strings.CutSuffix(name, "/")
		if !dir || checkPath(sub) != nil || strings.HasPrefix(sub, ".") {
			continue
		}
		if w.nodes++; w.nodes > maxNodes || level >= maxLevels {
			return fault.WithFile(fault.New(fault.Limit, "group",
				"more than %d nodes, or %d levels of them", maxNodes, maxLevels), w.n.URI)
		}
		sub = path.Join(p, sub)
		node, err := openNode(ctx, w.n.open, source.Join(w.n.URI, sub), w.n.options)
		switch {
		case err != nil && missing(err): // a directory of something else
		case err != nil:
			if ctx.Err() != nil || fault.KindOf(err) == 0 || w.n.Full() != nil {
				return err
			}
			w.list = append(w.list, Member{Path: sub, Err: err, Pixels: pixelsIn(node.broken)})
		case node.Array != nil:
			node.Array.Path = w.n.prefix + sub
			w.list = append(w.list, Member{Path: sub, Array: node.Array})
		default:
			// Of a group only its arrays are kept, so its own metadata must not stay charged.
			node.drop()
			if err := w.dir(ctx, sub, level+1); err != nil {
				return err
			}
		}
	}
	return nil
}

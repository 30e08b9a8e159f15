package zarr

import (
	"bytes"
	"context"
	"path"
	"strings"

	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	_ "github.com/chaski-eo/chaski/source/archive" // stores may be ZIPs
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/arrays"
)

// directory returns the directory of an array or group at a path: of a file that is a ZIP its archive. STORE.zarr::PATH
// is the node PATH of a store.
func directory(o source.Opener, p source.Path) (uri string, remote bool) {
	if file, inside, ok := source.Split(p.Name); ok && magic.Named(file) == format {
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

// Is reports whether there is an array or a group at a path, or of STORE.zarr::PATH a store. A remote one costs up to
// three requests.
func Is(ctx context.Context, o source.Opener, p source.Path) (bool, error) {
	if file, _, ok := source.Split(p.Name); ok && magic.Named(file) == format {
		if store, err := source.Parse(file); err == nil {
			p = store
		}
	}
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

// Open opens the array or the group at a URI. If there is neither, it returns fault.NotFound.
func Open(ctx context.Context, o source.Opener, uri string, opt arrays.Options) (*arrays.Node, error) {
	node, _, err := open(ctx, o, uri, opt)
	if file, inside, ok := source.Split(uri); ok && arrays.Missing(err) {
		if root, _, failed := open(ctx, o, file, opt); failed == nil {
			defer root.Drop()
			return root.Inside(ctx, inside)
		}
	}
	return node, err
}

// open is Open that implements arrays.Opens.
func open(ctx context.Context, o source.Opener, uri string, opt arrays.Options) (*arrays.Node, bool, error) {
	if p, err := source.Parse(uri); err == nil {
		uri, _ = directory(o, p)
	}
	node := arrays.New(ctx, o, strings.TrimSuffix(uri, "/"), open, opt)
	metadata, err := load(ctx, node)
	if err != nil {
		node.Drop()
		return nil, pixelsIn(metadata), err
	}
	return node, false, nil
}

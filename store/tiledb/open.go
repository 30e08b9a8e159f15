package tiledb

import (
	"context"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
	"golang.org/x/sync/errgroup"
)

// maxSchema limits a decoded schema, in bytes: 65,536 attributes with names and filters of 1 KiB
// each.
const maxSchema = 64 << 20

// Open reads the schema of the array in a directory, and the footers of its fragments. Faults name
// the file and the part, in the words of the format. A directory that is not an array is
// fault.NotFound, an encrypted array without a key fault.Unsupported.
func Open(ctx context.Context, st Store, uri string, o Options) (*Array, error) {
	a := &Array{uri: strings.TrimRight(uri, "/"), store: st, o: o.withDefaults()}
	if a.uri == "" {
		a.uri = uri
	}
	if err := a.readSchema(ctx); err != nil {
		return nil, fault.WithFile(err, a.uri+"/"+schemaName)
	}
	a.axes = sequence(len(a.Schema.Dims))
	if err := a.readFragments(ctx); err != nil {
		return nil, fault.WithFile(err, a.uri)
	}
	return a, nil
}

func (a *Array) readSchema(ctx context.Context) error {
	r, err := a.store.Open(ctx, a.uri+"/"+schemaName)
	if fault.KindOf(err) == fault.NotFound {
		if names, err := a.store.Folders(ctx, a.uri); err == nil && slices.Contains(names, newerSchemas) {
			return a.refuseNewer(ctx, a.uri+"/"+newerSchemas, newerSchemas)
		}
	}
	if err != nil {
		return err
	}
	defer r.Close()
	g, err := readGeneric(ctx, r, schemaPart, 0, r.Size(), min(maxSchema, a.o.MaxTile))
	if err != nil {
		return err
	}
	if g.encrypted {
		if a.o.Key == nil {
			return errNoKey(schemaPart)
		}
		if a.key, err = filter.NewKey(a.o.Key); err != nil {
			return err
		}
	}
	b, err := g.decode(filter.NewDecoder(a.key), schemaPart)
	if err != nil {
		return err
	}
	if a.Schema, err = parseSchema(b, a.o.MaxTile); err != nil {
		return err
	}
	if g.encrypted {
		a.Schema.encrypt()
	}
	return nil
}

// maxOpens limits the fragments that are opened at a time. Each takes one or two round trips to an
// object store, which one by one would add up.
const maxOpens = 16

// maxLists limits how often the directory of an array is listed while fragments come and go in it.
// A writer that adds fragments without end must not keep Open from returning.
const maxLists = 8

// readFragments opens the fragments. Another process may merge and remove fragments meanwhile.
// Hence if a listed fragment is gone, or one of its files, and the directory has fragments now that
// the list does not have, everything is read again.
func (a *Array) readFragments(ctx context.Context) error {
	names, err := a.store.Folders(ctx, a.uri)
	if err != nil {
		return err
	}
	for range maxLists {
		missing, err := a.openAll(ctx, names)
		if err != nil && fault.KindOf(err) != fault.NotFound || err == nil && !missing {
			return err
		}
		now, err2 := a.store.Folders(ctx, a.uri)
		if err2 != nil {
			return err2
		}
		// An unchanged listing means that no other process is to blame: a directory without
		// metadata is an interrupted write, and must not cause another round.
		if !hasOthers(now, names) && (err == nil || !hasOthers(names, now)) {
			return err
		}
		names = now
	}
	return fault.New(fault.Unsupported, "listing", fault.NoOffset,
		"other processes add or remove fragments faster than they can be opened")
}

// hasOthers reports whether names has fragments that list does not have.
func hasOthers(names, list []string) bool {
	in := map[string]bool{}
	for _, name := range list {
		in[name] = true
	}
	return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "__") && !in[name] })
}

// openAll opens the fragments among some directories. missing is true if a directory that is named
// like a fragment is not one.
func (a *Array) openAll(ctx context.Context, names []string) (missing bool, err error) {
	all, errs, tried := make([]*Fragment, len(names)), make([]error, len(names)), make([]bool, len(names))
	var g errgroup.Group
	g.SetLimit(maxOpens)
	for i, name := range names {
		if !strings.HasPrefix(name, "__") {
			continue
		}
		from, to, err := parseName(name)
		if err == nil && !a.o.includes(from, to) {
			continue
		}
		tried[i] = err == nil
		g.Go(func() error {
			errs[i] = crash.Call(func() (err error) {
				all[i], err = a.readFragment(ctx, a.uri+"/"+name, name)
				return err
			})
			return nil
		})
	}
	_ = g.Wait()
	for i, err := range errs {
		if err != nil {
			return false, err
		}
		missing = missing || all[i] == nil && tried[i]
	}
	a.Fragments, a.Hidden = hide(slices.DeleteFunc(all, func(f *Fragment) bool { return f == nil }))
	a.findShadowed()
	return missing, nil
}

// readFragment opens the fragment in a directory, or returns nil if there is none.
func (a *Array) readFragment(ctx context.Context, uri, name string) (*Fragment, error) {
	if err := a.refuseNewer(ctx, uri, name); err != nil {
		return nil, err
	}
	f, err := openFragment(ctx, a.store, uri, name, a.Schema)
	if fault.KindOf(err) == fault.NotFound {
		return nil, nil // an interrupted write: a directory becomes a fragment with its metadata
	}
	from, to, err2 := parseName(name)
	if fault.KindOf(err2) == fault.Unsupported {
		return nil, fault.WithFile(err2, uri) // this error says more than what is wrong in metadata of another version
	}
	if err != nil {
		return nil, err
	}
	if f.From, f.To = from, to; err2 != nil {
		return nil, fault.WithFile(err2, uri)
	}
	if !f.Dense && a.Schema.beforeEpoch() {
		return f, a.widenNonEmpty(ctx, f)
	}
	return f, nil
}

// refuseNewer returns an error for what TileDB 2 added to the array. Ignoring it would return
// outdated cells.
func (a *Array) refuseNewer(ctx context.Context, uri, name string) error {
	switch name {
	case newerSchemas:
		return fault.WithFile(fault.New(fault.Unsupported, schemaPart, fault.NoOffset,
			"it has a later format version than %d", Version), uri)
	case newerFragments:
		names, err := a.store.Folders(ctx, uri)
		if err != nil {
			return err
		}
		for _, name := range names {
			file := uri + "/" + name + "/" + metadataName
			switch r, err := a.store.Open(ctx, file); {
			case fault.KindOf(err) == fault.NotFound: // an interrupted write
			case err != nil:
				return fault.WithFile(err, file)
			default:
				r.Close()
				return fault.WithFile(fault.New(fault.Unsupported, "fragment", fault.NoOffset,
					"it has a later format version than %d", Version), file)
			}
		}
	}
	return nil
}

// widenNonEmpty widens the non-empty domain of a sparse fragment along dimensions where the bounds
// in its tree are useless: see cursor.bounds.
func (a *Array) widenNonEmpty(ctx context.Context, f *Fragment) error {
	tree, err := a.rtree(ctx, f)
	if err != nil {
		return err
	}
	for d, wide := range tree.unbounded {
		if wide {
			f.NonEmpty[d] = a.Schema.Dims[d].Domain
		}
	}
	return nil
}

// sequence returns 0, 1, …, n-1.
func sequence(n int) []int {
	axes := make([]int, n)
	for i := range axes {
		axes[i] = i
	}
	return axes
}

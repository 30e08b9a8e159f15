package tiledb

import (
	"context"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
	"golang.org/x/sync/errgroup"
)

// maxSchema bounds a decoded schema, in bytes.
const maxSchema = 64 << 20

// Open reads the schema of the array in a folder, and the footers of its fragments. Faults name the
// file and, in the words of the format, the part. What is not an array is fault.NotFound; an encrypted
// array without a key is fault.Unsupported.
func Open(ctx context.Context, st Store, uri string, o Options) (*Array, error) {
	a := &Array{uri: strings.TrimRight(uri, "/"), store: st, o: o.withDefaults()}
	if a.uri == "" {
		a.uri = uri
	}
	if err := a.readSchema(ctx); err != nil {
		return nil, fault.WithFile(err, a.uri+"/"+schemaName)
	}
	a.axes = inOrder(len(a.Schema.Dims))
	if err := a.readFragments(ctx); err != nil {
		return nil, fault.WithFile(err, a.uri)
	}
	return a, nil
}

func (a *Array) readSchema(ctx context.Context) error {
	r, err := a.store.Open(ctx, a.uri+"/"+schemaName)
	if fault.KindOf(err) == fault.NotFound {
		if names, err := a.store.Folders(ctx, a.uri); err == nil && slices.Contains(names, laterSchemas) {
			return a.later(ctx, a.uri+"/"+laterSchemas, laterSchemas)
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

// maxOpens is how many fragments are opened at the same time: in an object store each takes a round trip or two.
const maxOpens = 16

// maxLists bounds how often the folder of an array is listed while fragments in it come and go.
const maxLists = 8

// readFragments opens the fragments. Where one that was listed is none, it may have been merged and removed meanwhile: then the list
// is old, if there is a fragment now that is not in it, and all of it is read again. So it is where a file went while one was read.
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
		if !others(now, names) && (err == nil || !others(names, now)) {
			return err
		}
		names = now
	}
	return fault.New(fault.Unsupported, "listing", fault.NoOffset, "fragments come and go while it is opened")
}

// others reports whether there are fragments that are not in a list.
func others(names, list []string) bool {
	in := map[string]bool{}
	for _, name := range list {
		in[name] = true
	}
	return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "__") && !in[name] })
}

// openAll opens those of some fragments that are such; missing says that one is not.
func (a *Array) openAll(ctx context.Context, names []string) (missing bool, err error) {
	all, errs, tried := make([]*Fragment, len(names)), make([]error, len(names)), make([]bool, len(names))
	var g errgroup.Group
	g.SetLimit(maxOpens)
	for i, name := range names {
		if !strings.HasPrefix(name, "__") {
			continue
		}
		from, to, err := parseName(name)
		if err == nil && !a.o.open(from, to) {
			continue
		}
		tried[i] = err == nil
		g.Go(func() error {
			all[i], errs[i] = a.readFragment(ctx, a.uri+"/"+name, name)
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
	a.findUnder()
	return missing, nil
}

// readFragment opens what lies in a folder, nil where that is no fragment.
func (a *Array) readFragment(ctx context.Context, uri, name string) (*Fragment, error) {
	if err := a.later(ctx, uri, name); err != nil {
		return nil, err
	}
	f, err := openFragment(ctx, a.store, uri, name, a.Schema)
	if fault.KindOf(err) == fault.NotFound {
		return nil, nil // a folder without metadata is no fragment: a write that did not end
	}
	from, to, err2 := parseName(name)
	if fault.KindOf(err2) == fault.Unsupported {
		return nil, fault.WithFile(err2, uri) // rather than what looks wrong in its metadata
	}
	if err != nil {
		return nil, err
	}
	if f.From, f.To = from, to; err2 != nil {
		return nil, fault.WithFile(err2, uri)
	}
	if !f.Dense && a.Schema.beforeEpoch() {
		return f, a.trust(ctx, f)
	}
	return f, nil
}

// later refuses what TileDB 2 added to the array: without it what is read is not what the array holds.
func (a *Array) later(ctx context.Context, uri, name string) error {
	switch name {
	case laterSchemas:
		return fault.WithFile(fault.New(fault.Unsupported, schemaPart, fault.NoOffset, "it has a later format version than %d", Version), uri)
	case laterFragments:
		names, err := a.store.Folders(ctx, uri)
		if err != nil {
			return err
		}
		for _, name := range names {
			file := uri + "/" + name + "/" + metadataName
			switch r, err := a.store.Open(ctx, file); {
			case fault.KindOf(err) == fault.NotFound: // a write that did not end
			case err != nil:
				return fault.WithFile(err, file)
			default:
				r.Close()
				return fault.WithFile(fault.New(fault.Unsupported, "fragment", fault.NoOffset, "it has a later format version than %d", Version), file)
			}
		}
	}
	return nil
}

// trust widens the non-empty domain of a sparse fragment where its tree shows that it says nothing: see cursor.bounds.
func (a *Array) trust(ctx context.Context, f *Fragment) error {
	tree, err := a.rtree(ctx, f)
	if err != nil {
		return err
	}
	for d, wide := range tree.wide {
		if wide {
			f.NonEmpty[d] = a.Schema.Dims[d].Domain
		}
	}
	return nil
}

// inOrder returns 0, 1, … n-1.
func inOrder(n int) []int {
	axes := make([]int, n)
	for i := range axes {
		axes[i] = i
	}
	return axes
}

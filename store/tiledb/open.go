package tiledb

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/source"
)

// Open reads the schema of the array in a directory, and the footers of its fragments. Faults name
// the file and the part, in the words of the format. A directory that is not an array is
// fault.NotFound, an encrypted array without a key fault.Unsupported.
func Open(ctx context.Context, files source.Opener, uri string, o Options) (*Array, error) {
	array := &Array{uri: strings.TrimRight(uri, "/"), store: files, o: o.withDefaults(), schemas: map[string]*Schema{}}
	array.uri = cmp.Or(array.uri, uri)
	if err := array.readFragments(ctx); err != nil {
		return nil, fault.WithFile(err, array.uri)
	}
	return array, nil
}

// maxOpens limits the fragments that are opened at a time. Each takes one or two round trips to an
// object store, which one by one would add up.
const maxOpens = 16

// maxLists limits how often the directory of an array is listed while fragments come and go in it.
// A writer that keeps adding fragments must not keep Open from returning.
const maxLists = 8

// readFragments opens the fragments. Another process may merge and remove fragments meanwhile.
// Hence if a listed fragment is gone, or one of its files, and the directory has other fragments now than
// the list has, everything is read again.
func (a *Array) readFragments(ctx context.Context) error {
	listing, err := a.listAll(ctx)
	if err != nil {
		return err
	}
	for range maxLists {
		missing, opened := a.openAll(ctx, listing)
		if !missing && fault.KindOf(opened) != fault.NotFound {
			return opened
		}
		now, err := a.listAll(ctx)
		if err != nil {
			return err
		}
		// If the listing is unchanged, nobody else writes. A directory without metadata is then an
		// interrupted write, and one round is enough.
		same := func(f, other fragmentDir) bool { return f.dir == other.dir }
		if slices.EqualFunc(now.fragments, listing.fragments, same) {
			return opened
		}
		listing = now
	}
	return fault.New(fault.Unsupported, "listing",
		"other processes add or remove fragments faster than they can be opened")
}

// listAll reads the directories of the array, and the schema that counts.
func (a *Array) listAll(ctx context.Context) (*arrayListing, error) {
	names, err := entries(ctx, a.store, a.uri)
	if err != nil {
		return nil, err
	}
	if err := checkLinks(a.store, a.uri, names); err != nil {
		return nil, err
	}
	listing, err := a.readListing(ctx, names)
	if err != nil {
		return nil, err
	}
	if len(listing.schemas) == 0 {
		kind := fault.NotFound
		if slices.Contains(names, schemasDir+"/") {
			kind = fault.Unsupported
		}
		return nil, fault.New(kind, "folder", "it is not a TileDB array: %s is missing", schemaName)
	}
	if a.Schema, err = a.schema(ctx, listing.latest(&a.o)); err != nil {
		return nil, err
	}
	a.axes = num.Range[int](0, len(a.Schema.Dims))
	return listing, nil
}

// openAll opens the fragments of a listing. missing is true if a directory that is named like a fragment is not one.
func (a *Array) openAll(ctx context.Context, l *arrayListing) (missing bool, err error) {
	fragments := make([]*Fragment, len(l.fragments))
	chosen := func(f *fragmentDir) bool { return f.bad != nil || a.counts(f.nameStamp) }
	err = each.Of(ctx, int64(len(fragments)), maxOpens, func(ctx context.Context, i int64) (err error) {
		if chosen(&l.fragments[i]) {
			fragments[i], err = a.readFragment(ctx, l.fragments[i])
		}
		return err
	})
	if err != nil {
		return false, err
	}
	for i := range fragments {
		f := &l.fragments[i]
		missing = missing || fragments[i] == nil && f.bad == nil && chosen(f)
	}
	fragments = slices.DeleteFunc(fragments, func(f *Fragment) bool { return f == nil || f.NonEmpty == nil })
	a.Fragments, a.Hidden = a.hide(fragments, l.vacuums)
	a.findShadowed()
	return missing, a.refuseConditions(l.conditions)
}

// readFragment opens the fragment in a directory, or returns nil if the directory is not a fragment.
func (a *Array) readFragment(ctx context.Context, d fragmentDir) (*Fragment, error) {
	uri := a.uri + "/" + d.dir
	fragment, err := a.openFragment(ctx, uri, d)
	if fault.KindOf(err) == fault.NotFound && d.version == 0 {
		return nil, nil // an interrupted write: a directory becomes a fragment with its metadata
	}
	if err != nil {
		return nil, err
	}
	if d.bad != nil {
		return nil, fault.WithFile(d.bad, uri)
	}
	if !fragment.Dense && !fragment.x.dimTypes && a.Schema.beforeEpoch() {
		return fragment, a.widenNonEmpty(ctx, fragment)
	}
	return fragment, nil
}

// widenNonEmpty widens the non-empty domain of a sparse fragment along dimensions where the bounds
// in its tree are useless: see byteCursor.bounds.
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

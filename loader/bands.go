package loader

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// nameBytes bounds the memory of the names of bands of files that were read, per dataset: some 10,000 files of 20 bands.
const nameBytes = 8 << 20

// names keeps what the bands of files are called.
type names = lru.Cache[string, []string]

// BandNames returns what the bands of a file of samples are called, one a band: the descriptions that GDAL writes. It is nil
// where the file names none. It reads the file's directory; catalogs and indexes do not hold names.
func BandNames(ctx context.Context, o source.Opener, a catalog.Asset) (_ []string, err error) {
	if a.Index.Blocks != nil {
		return nil, a.Fault(fault.New(fault.Unsupported, "bands", fault.NoOffset, "the bands of an array have no names"))
	}
	e := taco.Entry{URI: a.URI, Path: a.Member, Offset: taco.Whole, Object: a.Known()}
	if a.Member != "" {
		e.Offset, e.Size = a.Offset, a.Length
	}
	r, err := taco.Section(ctx, o, e)
	if err != nil {
		return nil, a.Fault(rows.Bare(err))
	}
	defer func() { _ = r.Close() }() // it was only read
	f, err := ifd.Open(ctx, r, tiff.Limits{}.IFD())
	if err != nil {
		return nil, a.Fault(err)
	}
	read := tiff.ReadMeta
	if rumi.Is(ctx, f) {
		read = rumi.Meta
	}
	m, err := read(ctx, f)
	return m.BandNames, a.Fault(err)
}

// PickBands returns the indices of bands by their names, as they are written. The error lists the names that there are.
func PickBands(names, want []string) ([]int, error) {
	out := make([]int, len(want))
	for i, name := range want {
		out[i] = slices.Index(names, name)
		switch {
		case len(names) == 0:
			return nil, fault.New(fault.NotFound, "bands", fault.NoOffset, "no band %q: the file names none, give their numbers from 0", name)
		case out[i] < 0:
			return nil, fault.New(fault.NotFound, "bands", fault.NoOffset, "no band %q; there are %s", name, listed(names))
		case slices.Contains(names[out[i]+1:], name):
			return nil, fault.New(fault.Corrupt, "bands", fault.NoOffset, "two bands are called %q; there are %s", name, listed(names))
		}
	}
	return out, nil
}

// listed quotes names, the first 64 of them.
func listed(names []string) string {
	if len(names) > 64 {
		return strings.TrimSuffix(fmt.Sprintf("%q", names[:64]), "]") + " …]"
	}
	return fmt.Sprintf("%q", names)
}

// bandsOf returns the bands of an asset that a field has. By name they are looked up in every file: one that has them in
// another order must not give others.
func (d *dataset) bandsOf(ctx context.Context, f *pixels.Raster, a catalog.Asset) (*pixels.PickedBands, error) {
	if f.BandNames == nil {
		return &f.PickedBands, nil
	}
	bands, err := d.pickNamed(ctx, &f.Field, a)
	if err != nil {
		return nil, err
	}
	if slices.Equal(bands, f.Picked) {
		return &f.PickedBands, nil
	}
	p := &pixels.PickedBands{Picked: bands}
	p.PlaceBands()
	return p, nil
}

// pickNamed returns the indices of a field's bands in an asset.
func (d *dataset) pickNamed(ctx context.Context, f *Field, a catalog.Asset) ([]int, error) {
	key := a.URI + "\x00" + a.Member
	found, ok := d.names.Get(key)
	if !ok {
		var err error
		if found, err = BandNames(ctx, d.opener, a); err != nil {
			return nil, err
		}
		if c, is := d.table.(*rows.Container); is && found == nil {
			found = c.BandNames()
		}
		cost := int64(len(key) + 64)
		for _, n := range found {
			cost += int64(len(n) + 16)
		}
		d.names.Add(key, found, cost)
	}
	bands, err := PickBands(found, f.BandNames)
	if err == nil && slices.Max(bands) >= a.Index.Bands {
		err = fault.New(fault.Corrupt, "bands", fault.NoOffset, "%d names of %d bands", len(found), a.Index.Bands)
	}
	return bands, a.Fault(err)
}

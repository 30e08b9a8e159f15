package rows

import (
	"context"
	"errors"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/rumis"
)

// showBands gives the readers of rasters the bands that the fields pick as data: see PickedAsData. It is the only place
// that says so, for batches, statistics, mosaics and counts alike.
func (t *Table) showBands(fields []spec.Field, o source.Opener) {
	for i := range fields {
		field := &fields[i]
		if t.Fields[i].Kind != catalog.Raster || field.Bands == nil && field.BandNames == nil {
			continue
		}
		t.changeRasters(i, &picks{t, field, o})
	}
}

// picks are the bands that a field picks.
type picks struct {
	table  *Table
	field  *spec.Field
	opener source.Opener
}

// ofAsset is PickedAsData for a field that may pick bands by names.
func (p *picks) ofAsset(ctx context.Context, a catalog.Asset, _ int64) (catalog.Asset, error) {
	switch {
	case !a.Index.Alpha:
		return a, nil
	case p.field.BandNames == nil:
		return PickedAsData(p.field.Bands, a), nil
	}
	names, err := p.table.NamesIn(ctx, p.opener, a)
	if err != nil {
		return a, err
	}
	if alpha := a.Index.DataBands(); alpha < len(names) && slices.Contains(p.field.BandNames, names[alpha]) {
		a.Index = catalog.WithoutAlpha(a.Index)
	}
	return a, nil
}

// PickedAsData returns an asset for readers that pick bands by their numbers. An alpha band that they pick is a band
// like the others, and masks nothing: writers call the last of four bands of bytes alpha, also where it is near
// infrared.
func PickedAsData(bands []int, a catalog.Asset) catalog.Asset {
	if slices.Contains(bands, a.Index.DataBands()) {
		a.Index = catalog.WithoutAlpha(a.Index)
	}
	return a
}

// NamesIn returns BandNames of asset a, or those that the table has for all rasters.
func (t *Table) NamesIn(ctx context.Context, o source.Opener, a catalog.Asset) ([]string, error) {
	names, err := BandNames(ctx, o, a)
	if names == nil && err == nil {
		names = t.BandNames()
	}
	return names, err
}

// BandNames returns the names of the bands of all rasters, nil if they have none.
func (t *Table) BandNames() []string {
	if s, ok := t.base.(banded); ok {
		return s.BandNames()
	}
	return nil
}

// BandNames returns the names of the bands of asset a, one for each band: the band descriptions that
// GDAL writes. It returns nil if the file has no names, and fault.Unsupported for an array. Arrays of a Zarr group that
// are bands name them. It opens the file and reads its directory, unless the asset has names: older catalogs, and
// containers with chunk indexes, do not.
func BandNames(ctx context.Context, o source.Opener, a catalog.Asset) (_ []string, err error) {
	if a.Names != nil || a.Axes.Pages != "" {
		return a.Names, nil
	}
	if catalog.IsVirtual(a.Index) {
		return nil, nil
	}
	if a.Index.OfArray() {
		return nil, a.Fault(fault.New(fault.Unsupported, "bands", "the bands of an array have no names"))
	}
	file, err := OpenFile(ctx, o, a)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written, so a failure to close loses nothing
	switch format, err := catalog.FormatOf(ctx, file); {
	case err != nil:
		return nil, a.Fault(err)
	case format == magic.VRT:
		a, _, err := catalog.OpenAsset(ctx, o, a.URI, 0)
		return a.Names, err
	case format.Class == magic.Picture: // whose bands have no names
		return nil, nil
	case format.Class != magic.Raster: // so are those of an ENVI raster whose header has none
		if is, err := catalog.IsENVI(ctx, o, a.URI); is || err != nil {
			return nil, err
		}
	}
	parsed, err := rumis.Open(ctx, file, tiff.Limits{}.IFD())
	if err != nil {
		return nil, a.Fault(err)
	}
	read := tiff.ReadMeta
	if rumis.Is(ctx, parsed) {
		read = rumis.Meta
	}
	m, err := read(ctx, parsed)
	return m.BandNames, a.Fault(err)
}

// OpenFile opens the file of a raster.
func OpenFile(ctx context.Context, o source.Opener, a catalog.Asset) (source.Reader, error) {
	file, err := a.Open(ctx, o, a.Known())
	if err != nil {
		return nil, a.Fault(Bare(err))
	}
	return file, nil
}

// Bare returns err without its file, for callers that name the file together with the sample.
func Bare(err error) error {
	var e *fault.Error
	if !errors.As(err, &e) {
		return err
	}
	f := *e
	f.File = ""
	return &f
}

package rows

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/zarr"
)

// Zarr is a Zarr array or group as a dataset. Its rows are the images along the axis n, its fields are arrays, or
// groups of arrays as bands.
type Zarr struct {
	node   *zarr.Node
	fields []zarr.Raster
	places []*catalog.Place // of each field, nil if it is not known
	print  string
}

// OpenZarrAt opens the array or group at path. A path outside of o.Roots is an error.
func OpenZarrAt(ctx context.Context, path string, o resources.Options) (*zarr.Node, error) {
	path, err := o.Resolve(path)
	if err != nil {
		return nil, err
	}
	// The account of an engine has paid for CacheBytes, and a Zarr dataset has no other use for them.
	return zarr.Open(ctx, o.Opener, path, zarr.Options{MaxChunk: int64(o.MaxChunkBytes), MaxIndexes: o.CacheBytes})
}

// openZarr opens an array or a group as a dataset.
func openZarr(ctx context.Context, src *spec.Source, fields []spec.Field, o resources.Options) (*Zarr, error) {
	if src.Timestamp != nil {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "dataset", fault.NoOffset,
			"Zarr keeps no earlier states: timestamp is for TileDB arrays"), src.Source)
	}
	node, err := OpenZarrAt(ctx, src.Source, o)
	if err != nil {
		return nil, err
	}
	z := &Zarr{node: node}
	hasher := xxh3.New()
	for i := range fields {
		field := &fields[i]
		if field.Pattern != "" || field.Blob != "" {
			return nil, fault.WithFile(InField(field.Name, fault.New(fault.NotFound, "dataset", fault.NoOffset,
				"Zarr has arrays, not files: name one as column")), src.Source)
		}
		raster, err := node.Raster(ctx, field.Name, field.Column, src.Dims)
		if err != nil {
			return nil, fault.WithFile(InField(field.Name, err), src.Source)
		}
		if first := z.fields; len(first) > 0 && first[0].Len() != raster.Len() {
			return nil, fault.WithFile(InField(field.Name, fault.New(fault.Unsupported, "dataset", fault.NoOffset,
				"%d images, %d of the first field", raster.Len(), first[0].Len())), src.Source)
		}
		z.fields = append(z.fields, raster)
		p, g := node.Place(ctx, raster.Arrays()[0]), raster.Grid()
		z.places = append(z.places, catalog.NewPlace(p.EPSG, p.Transform, g.Height, g.Width))
		for _, a := range raster.Arrays() {
			fmt.Fprintf(hasher, "%q %s\n", a.Path, a.Text())
		}
	}
	if err := node.Full(); err != nil {
		return nil, err
	}
	sum := hasher.Sum128().Bytes()
	z.print = hex.EncodeToString(sum[:])
	if z.Len() > maxCubeRows {
		return nil, fault.WithFile(fault.New(fault.Limit, "dataset", fault.NoOffset,
			"%d rows, at most %d", z.Len(), int64(maxCubeRows)), src.Source)
	}
	return z, nil
}

// Len implements Table.
func (z *Zarr) Len() int64 {
	if len(z.fields) == 0 {
		return 0
	}
	return z.fields[0].Len()
}

// Kind implements Table: all fields are rasters.
func (z *Zarr) Kind(int) catalog.Kind { return catalog.Raster }

// Close implements Table. An array keeps no file open.
func (z *Zarr) Close() error { return nil }

// Fingerprint implements Table. It covers the metadata of the arrays, not their chunks.
func (z *Zarr) Fingerprint() string { return z.print }

// Asset implements Table.
func (z *Zarr) Asset(_ context.Context, field int, row int64) (catalog.Asset, error) {
	r := z.fields[field]
	return catalog.Asset{URI: r.Arrays()[0].URI, Index: r.Index(row), Place: z.places[field], Names: r.BandNames()}, nil
}

// Value implements Table: it is an error, because Zarr has no metadata columns.
func (z *Zarr) Value(context.Context, int, int64) (catalog.Value, error) {
	return catalog.Value{}, fault.WithFile(fault.New(fault.Unsupported, "dataset", fault.NoOffset,
		"Zarr has no metadata columns"), z.node.URI)
}

// ID implements Table: it returns the number of the image along n.
func (z *Zarr) ID(_ context.Context, row int64) (string, error) {
	return strconv.FormatInt(row, 10), nil
}

// ScanIDs implements Table.
func (z *Zarr) ScanIDs(ctx context.Context, visit func(row int64, id string) error) error {
	return z.each(ctx, func(row int64) error { return visit(row, strconv.FormatInt(row, 10)) })
}

// Scan implements Table. The one column is the number along n, named "n". Any other is fault.NotFound.
func (z *Zarr) Scan(
	ctx context.Context, column string, visit func(row int64, v catalog.Value) error,
) (catalog.Kind, error) {
	if column != "n" {
		return 0, fault.WithFile(fault.New(fault.NotFound, "column "+column, fault.NoOffset,
			"Zarr has only the number along n"), z.node.URI)
	}
	return catalog.Int, z.each(ctx, func(row int64) error { return visit(row, catalog.Value{Int: row}) })
}

// each visits all rows until an error.
func (z *Zarr) each(ctx context.Context, visit func(row int64) error) error {
	for row := range z.Len() {
		if row%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := visit(row); err != nil {
			return err
		}
	}
	return nil
}

// Extras implements Table.
func (z *Zarr) Extras() Extras {
	return Extras{Size: z.size, Coordinate: func(row int64) int64 { return row }}
}

// size returns the size of all images of a field.
func (z *Zarr) size(field int) catalog.Size {
	g := z.fields[field].Grid()
	return catalog.Size{Height: int32(g.Height), Width: int32(g.Width)}
}

// OneImage returns the image of an array, or of a group whose arrays are its bands. Several images are an error.
func OneImage(ctx context.Context, path string, o resources.Options) (catalog.Asset, error) {
	node, err := OpenZarrAt(ctx, path, o)
	if err != nil {
		return catalog.Asset{}, err
	}
	raster, err := node.Raster(ctx, "", "", "")
	if err != nil {
		return catalog.Asset{}, err
	}
	if raster.Len() != 1 {
		return catalog.Asset{}, fault.WithFile(fault.New(fault.Unsupported, "array", fault.NoOffset,
			"it has %d images along n, of which loaders read some", raster.Len()), path)
	}
	return catalog.Asset{URI: raster.Arrays()[0].URI, Index: raster.Index(0), Names: raster.BandNames()}, nil
}

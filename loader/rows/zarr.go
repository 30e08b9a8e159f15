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
	cube
	node   *zarr.Node
	fields []*zarr.Raster
	places []*catalog.Place // of each field, nil if it is not known
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
	z := &Zarr{cube: cube{uri: node.URI, axes: []string{"n"}, id: rowID, coordinate: rowNumber}, node: node}
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
		p, g := node.Place(ctx, raster.Arrays()[0]), raster.Grid()
		z.fields, z.grids, z.n = append(z.fields, raster), append(z.grids, g), raster.Len()
		z.places = append(z.places, catalog.NewPlace(p.EPSG, p.Transform, g.Height, g.Width))
		for _, a := range raster.Arrays() {
			fmt.Fprintf(hasher, "%q %s\n", a.Path, a.Text())
		}
	}
	if err := node.Full(); err != nil {
		return nil, err
	}
	sum := hasher.Sum128().Bytes() // of the metadata of the arrays, not of their chunks
	z.print = hex.EncodeToString(sum[:])
	return z, z.check()
}

// rowID returns the id of a row, and rowNumber its coordinate: the number of the image along n.
func rowID(row int64) string { return strconv.FormatInt(row, 10) }

func rowNumber(row int64) int64 { return row }

// Asset implements Table.
func (z *Zarr) Asset(_ context.Context, field int, row int64) (catalog.Asset, error) {
	r := z.fields[field]
	return catalog.Asset{URI: r.Arrays()[0].URI, Index: r.Index(row), Place: z.places[field], Names: r.BandNames()}, nil
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

// Package zarrs opens and describes Zarr arrays and groups, and makes datasets of them.
package zarrs

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/stores/images"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/zarr"
)

func init() {
	rows.Register(zarr.Kind, rows.Store{Open: open, Image: image})
	survey.Register(zarr.Kind, describe)
}

// OpenAt opens the array or group at path. A path outside of o.Roots is an error.
func OpenAt(ctx context.Context, path string, o resources.Options) (*zarr.Node, error) {
	path, err := o.Resolve(path)
	if err != nil {
		return nil, err
	}
	// The account of an engine has paid for CacheBytes, and a Zarr dataset has no other use for them.
	return zarr.Open(ctx, o.Opener, path, zarr.Options{MaxChunk: int64(o.MaxChunkBytes), MaxIndexes: o.CacheBytes})
}

// open opens a Zarr array or group as a dataset. Its rows are the images along the axis n, its fields are arrays,
// or groups of arrays as bands. The fingerprint covers the metadata of the arrays, not their chunks.
func open(ctx context.Context, src *spec.Source, fields []spec.Field, o resources.Options) (*rows.Table, error) {
	if src.Timestamp != nil {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "dataset", fault.NoOffset,
			"Zarr keeps no earlier states: timestamp is for TileDB arrays"), src.Source)
	}
	node, err := OpenAt(ctx, src.Source, o)
	if err != nil {
		return nil, err
	}
	rasters, places := make([]*zarr.Raster, len(fields)), make([]*catalog.Place, len(fields))
	hasher := xxh3.New()
	for i := range fields {
		rasters[i], err = rasterOf(ctx, node, &fields[i], src.Dims)
		if err == nil && rasters[i].Len() != rasters[0].Len() {
			err = fault.New(fault.Unsupported, "dataset", fault.NoOffset, "%d images, %d of the first field",
				rasters[i].Len(), rasters[0].Len())
		}
		if err != nil {
			return nil, fault.WithFile(rows.InField(fields[i].Name, err), src.Source)
		}
		arrays := rasters[i].Arrays()
		p, g := node.Place(ctx, arrays[0]), rasters[i].Grid()
		places[i] = catalog.NewPlace(p.EPSG, p.Transform, g.Height, g.Width)
		for _, a := range arrays {
			fmt.Fprintf(hasher, "%q %s\n", a.Path, a.Text())
		}
	}
	if err := node.Full(); err != nil {
		return nil, err
	}
	sum := hasher.Sum128().Bytes()
	found := images.Images{
		URI: node.URI, Noun: "Zarr", Hash: hex.EncodeToString(sum[:]),
		IsN:        func(column string) bool { return column == "n" },
		Coordinate: func(row int64) int64 { return row },
		Name:       func(row int64) string { return strconv.FormatInt(row, 10) },
		Grid:       func(field int) chunk.Index { return rasters[field].Grid() },
	}
	found.Raster = func(field int, row int64) catalog.Asset {
		r := rasters[field]
		return catalog.Asset{URI: r.Arrays()[0].URI, Index: r.Index(row), Names: r.BandNames(), Place: places[field]}
	}
	if len(rasters) > 0 {
		found.N = rasters[0].Len()
	}
	return found.Table(len(fields))
}

// rasterOf returns the array, or the group of arrays as bands, of a field.
func rasterOf(ctx context.Context, node *zarr.Node, f *spec.Field, dims string) (*zarr.Raster, error) {
	if f.Pattern != "" || f.Blob != "" {
		return nil, fault.New(fault.NotFound, "dataset", fault.NoOffset,
			"Zarr has arrays, not files: name one as column")
	}
	return node.Raster(ctx, f.Name, f.Column, dims)
}

// image returns the image of an array, or of a group whose arrays are its bands. Several images are an error.
func image(ctx context.Context, path string, o resources.Options) (catalog.Asset, error) {
	node, err := OpenAt(ctx, path, o)
	if err != nil {
		return catalog.Asset{}, err
	}
	raster, err := node.Raster(ctx, "", "", "")
	if err != nil {
		return catalog.Asset{}, err
	}
	if raster.Len() != 1 {
		return catalog.Asset{}, fault.WithFile(fault.New(fault.Unsupported, "array", fault.NoOffset,
			"it has %d images along n, where one is needed; loaders read all of them", raster.Len()), path)
	}
	return catalog.Asset{URI: raster.Arrays()[0].URI, Index: raster.Index(0), Names: raster.BandNames()}, nil
}

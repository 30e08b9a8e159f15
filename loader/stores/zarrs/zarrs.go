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
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/zarr"
)

func init() { Register(&Format{Kind: zarr.Kind, Name: "zarr", Noun: "Zarr", Open: zarr.Open}) }

// Format is a format of arrays and groups: Zarr, or one that its package registers.
type Format struct {
	Kind *store.Kind
	Name string // as reports say it
	Noun string // for errors
	Open func(context.Context, source.Opener, string, zarr.Options) (*zarr.Node, error)
}

// Register makes datasets of the stores of a format. The package of the format calls it when the program starts.
func Register(f *Format) {
	rows.Register(f.Kind, rows.Store{Open: f.dataset, Image: f.image})
	describe := func(ctx context.Context, path string, _ *spec.Timestamp, o resources.Options) (any, error) {
		return f.Describe(ctx, path, o)
	}
	survey.Register(f.Kind, describe)
	formats[f.Kind] = f
}

var formats = map[*store.Kind]*Format{}

// Of returns the format of a kind, or nil.
func Of(k *store.Kind) *Format { return formats[k] }

// at opens the array or group at path. A path outside of o.Roots is an error.
func (f *Format) at(ctx context.Context, path string, o resources.Options) (*zarr.Node, error) {
	path, err := o.Resolve(path)
	if err != nil {
		return nil, err
	}
	// The account of an engine has paid for CacheBytes, and such a dataset has no other use for them.
	return f.Open(ctx, o.Opener, path, zarr.Options{MaxChunk: int64(o.MaxChunkBytes), MaxIndexes: o.CacheBytes})
}

// dataset opens an array or group as a dataset. Its rows are the images along the axis n, its fields are arrays,
// or groups of arrays as bands. The fingerprint covers the metadata of the arrays, not their chunks.
func (f *Format) dataset(ctx context.Context, src *spec.Source, fields []spec.Field, o resources.Options) (*rows.Table,
	error) {
	if src.Timestamp != nil {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "dataset", fault.NoOffset,
			"%s keeps no earlier states: timestamp is for TileDB arrays", f.Noun), src.Source)
	}
	node, err := f.at(ctx, src.Source, o)
	if err != nil {
		return nil, err
	}
	rasters, places := make([]*zarr.Raster, len(fields)), make([]*catalog.Place, len(fields))
	hasher := xxh3.New()
	for i := range fields {
		rasters[i], err = f.rasterOf(ctx, node, &fields[i], src.Dims)
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
		URI: node.URI, Noun: f.Noun, Hash: hex.EncodeToString(sum[:]),
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
func (f *Format) rasterOf(ctx context.Context, node *zarr.Node, field *spec.Field, dims string) (*zarr.Raster, error) {
	if field.Pattern != "" || field.Blob != "" {
		return nil, fault.New(fault.NotFound, "dataset", fault.NoOffset,
			"%s has arrays, not files: name one as column", f.Noun)
	}
	return node.Raster(ctx, field.Name, field.Column, dims)
}

// image returns the image of an array, or of a group whose arrays are its bands. Several images are an error.
func (f *Format) image(ctx context.Context, path string, o resources.Options) (catalog.Asset, error) {
	node, err := f.at(ctx, path, o)
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

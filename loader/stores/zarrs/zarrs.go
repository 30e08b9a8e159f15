// Package zarrs opens and describes Zarr arrays and groups, and makes datasets of them.
package zarrs

import (
	"cmp"
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
	"github.com/chaski-eo/chaski/store/arrays"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/zarr"
)

func init() { Register(&Format{Kind: zarr.Kind, Name: "zarr", Noun: "Zarr", Open: zarr.Open}) }

// Format is a format of arrays and groups: Zarr, or one that its package registers.
type Format struct {
	Kind *store.Kind
	Name string // as reports say it
	Noun string // for errors
	Open func(context.Context, source.Opener, string, arrays.Options) (*arrays.Node, error)
}

// Register makes datasets of the stores of a format. The package of the format calls it when the program starts.
func Register(f *Format) {
	rows.Register(f.Kind, rows.Store{Open: f.open, Image: f.image})
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
func (f *Format) at(ctx context.Context, path string, o resources.Options) (*arrays.Node, error) {
	path, err := o.Resolve(path)
	if err != nil {
		return nil, err
	}
	// The account of an engine has paid for CacheBytes, and such a dataset has no other use for them.
	return f.Open(ctx, o.Opener, path, arrays.Options{MaxChunk: int64(o.MaxChunkBytes), MaxIndexes: o.CacheBytes})
}

// open opens an array or group as a dataset. Its rows are the images along the axis n, its fields are arrays,
// groups of arrays as bands, or labels: arrays of values along n. The fingerprint covers the metadata of the
// arrays, not their chunks.
func (f *Format) open(ctx context.Context, src *spec.Source, fields []spec.Field, o resources.Options) (*rows.Table,
	error) {
	if src.Timestamp != nil {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "dataset",
			"%s keeps no earlier states: timestamp is for TileDB arrays", f.Noun), src.Source)
	}
	node, err := f.at(ctx, src.Source, o)
	if err != nil {
		return nil, err
	}
	for i := range fields {
		if fields[i].Pattern != "" {
			return f.grouped(ctx, node, src, fields, o)
		}
	}
	made := &dataset{f: f, node: node, fields: make([]field, len(fields)), hasher: xxh3.New(), n: -1}
	for i := range fields {
		if err := made.add(ctx, i, &fields[i], cmp.Or(fields[i].Dims, src.Dims)); err != nil {
			return nil, fault.WithFile(rows.InField(fields[i].Name, err), src.Source)
		}
	}
	if err := node.Full(); err != nil {
		return nil, err
	}
	return made.table()
}

// dataset is an array or a group as a dataset.
type dataset struct {
	f      *Format
	node   *arrays.Node
	fields []field
	hasher *xxh3.Hasher
	n      int64 // rows, -1 before the first field
}

// field is a raster or a metadata column.
type field struct {
	raster *arrays.Raster
	place  *catalog.Place
	labels *arrays.Labels
}

// add adds a field.
func (d *dataset) add(ctx context.Context, i int, f *spec.Field, dims string) error {
	made, n := &d.fields[i], int64(0)
	if f.Traits().Metadata || f.Kind == "" && f.RasterOnly() == "" && d.node.IsLabel(ctx, cmp.Or(f.Column, f.Name)) {
		labels, err := d.node.Labels(ctx, cmp.Or(f.Column, f.Name))
		if err != nil {
			return err
		}
		if f.Kind == spec.ClassField {
			labels, err = labels.Classes()
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(d.hasher, "%q %s\n", labels.Path, labels.Text)
		made.labels, n = labels, labels.Len()
	} else {
		raster, err := d.f.rasterOf(ctx, d.node, f, dims)
		if err != nil {
			return err
		}
		arrays := raster.Arrays()
		p, g := d.node.Place(ctx, arrays[0]), raster.Grid()
		made.raster, made.place, n = raster, catalog.NewPlace(p.EPSG, p.Transform, g.Height, g.Width), raster.Len()
		for _, a := range arrays {
			fmt.Fprintf(d.hasher, "%q %s\n", a.Path, a.Text)
		}
	}
	if d.n >= 0 && n != d.n {
		return fault.New(fault.Unsupported, "dataset", "%d images, %d of the first field", n, d.n)
	}
	d.n = n
	return nil
}

// table makes the dataset of its fields.
func (d *dataset) table() (*rows.Table, error) {
	sum := d.hasher.Sum128().Bytes()
	found := images.Images{
		URI: d.node.URI, Noun: d.f.Noun, Hash: hex.EncodeToString(sum[:]), N: max(d.n, 0),
		IsN:        func(column string) bool { return column == "n" },
		Coordinate: func(row int64) int64 { return row },
		Name:       func(row int64) string { return strconv.FormatInt(row, 10) },
		Grid:       func(field int) chunk.Index { return d.fields[field].raster.Grid() },
	}
	found.Raster = func(field int, row int64) catalog.Asset {
		r := d.fields[field].raster
		return catalog.Asset{URI: r.Arrays()[0].URI, Index: r.Index(row), Names: r.BandNames(),
			Place: d.fields[field].place}
	}
	found.Values = func(field int) images.Values {
		if labels := d.fields[field].labels; labels != nil {
			return labels
		}
		return nil
	}
	found.Metadata = func(ctx context.Context, column string) (images.Values, error) {
		labels, err := d.node.Labels(ctx, column)
		if err == nil && labels.Len() != d.n {
			err = fault.WithFile(fault.New(fault.Unsupported, "column "+column,
				"%d values for %d images", labels.Len(), d.n), d.node.URI)
		}
		if err != nil {
			return nil, err
		}
		return labels.Scalars()
	}
	return found.Table(len(d.fields))
}

// rasterOf returns the array, or the group of arrays as bands, of a field.
func (f *Format) rasterOf(ctx context.Context, node *arrays.Node, field *spec.Field, dims string) (*arrays.Raster,
	error) {
	if field.Blob != "" {
		return nil, fault.New(fault.NotFound, "dataset", "%s has arrays, not cells: name one as column", f.Noun)
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
	return onlyImage(raster, path, "where one is needed; loaders read all of them")
}

// onlyImage returns the image of a raster. Several are an error about a path, which ends in why.
func onlyImage(r *arrays.Raster, path, why string) (catalog.Asset, error) {
	if r.Len() != 1 {
		return catalog.Asset{}, fault.WithFile(fault.New(fault.Unsupported, "array",
			"it has %d images along n, %s", r.Len(), why), path)
	}
	return catalog.Asset{URI: r.Arrays()[0].URI, Index: r.Index(0), Names: r.BandNames()}, nil
}

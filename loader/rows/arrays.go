package rows

import (
	"cmp"
	"context"
	"encoding/hex"
	"path"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog"
)

// OpenArrays opens the store at a path, as it was at a timestamp (nil for now). A path outside of o.Roots is an error.
func OpenArrays(ctx context.Context, kind store.Arrays, path string, at *spec.Timestamp, o resources.Options) (
	store.Group, error) {
	path, err := o.Resolve(path)
	if err != nil {
		return nil, err
	}
	// The account of an engine has paid for CacheBytes, and such a dataset has no other use for them.
	options := store.Options{MaxChunk: int64(o.MaxChunkBytes), MaxIndexes: o.CacheBytes, Key: o.ArrayKey}
	if at != nil {
		options.Since, options.Until = at[0], at[1]
	}
	return kind.Open(ctx, o.Opener, path, options)
}

// arrays is a store of arrays as a dataset: a row for each image along the axis n. Its fields are arrays, groups of
// arrays as bands, or labels: arrays of values along n. Its columns are labels and the coordinate along n.
type arrays struct {
	kind   store.Arrays
	group  store.Group
	uri    string
	dims   string // of fields that do not say theirs
	fields []arrayField
	hasher *xxh3.Hasher
	n      int64 // rows, -1 before the first field
}

// arrayField is a raster or a metadata column.
type arrayField struct {
	name   string
	raster store.Raster
	labels store.Labels
	n      int64    // rows
	every  bool     // it has no axis n: its one image belongs to each row
	twoD   bool     // nobody names its two dimensions, which were taken for y and x
	bands  []string // their names, or nil
	place  *catalog.Place
}

// maxImages bounds the rows of an array, because selected rows are numbered in uint32.
const maxImages = 1 << 32

// openArrays opens a store of arrays as a dataset. The fingerprint covers the metadata of the arrays, not their chunks.
func openArrays(ctx context.Context, kind store.Arrays, src *spec.Source, fields []spec.Field, o resources.Options) (
	*Table, error) {
	made, err := newArrays(ctx, kind, src, o)
	if err != nil {
		return nil, err
	}
	for i := range fields {
		if fields[i].Pattern != "" {
			return openGrouped(ctx, kind, made.group, src, fields, o)
		}
	}
	for i := range fields {
		if err := made.add(ctx, &fields[i]); err != nil {
			return nil, err
		}
	}
	return made.table()
}

// newArrays opens a store of arrays as a dataset without fields.
func newArrays(ctx context.Context, kind store.Arrays, src *spec.Source, o resources.Options) (*arrays, error) {
	if _, ok := kind.(store.Times); src.Timestamp != nil && !ok {
		return nil, fault.WithFile(fault.New(fault.Unsupported, "dataset",
			"%v keeps no earlier states: timestamp is for TileDB arrays", kind), src.Source)
	}
	group, err := OpenArrays(ctx, kind, src.Source, src.Timestamp, o)
	return &arrays{kind: kind, group: group, uri: src.Source, dims: src.Dims, hasher: xxh3.New(), n: -1}, err
}

// add adds a field. A field of arrays that the store lacks is NotFound, and leaves the dataset as it was.
func (d *arrays) add(ctx context.Context, f *spec.Field) error {
	made, err := d.open(ctx, f)
	if err != nil {
		return fault.WithFile(InField(f.Name, err), d.uri)
	}
	d.fields = append(d.fields, made)
	return nil
}

// open opens the arrays of a field.
func (d *arrays) open(ctx context.Context, f *spec.Field) (made arrayField, err error) {
	made.name = f.Name
	array, dims := cmp.Or(f.Column, f.Name), cmp.Or(f.Dims, d.dims)
	switch {
	case f.Traits().Metadata, f.Kind == "" && f.RasterOnly() == "" && d.group.IsLabel(ctx, array, dims):
		labels, err := d.group.Labels(ctx, array)
		if err == nil && f.Kind == spec.ClassField {
			labels, err = labels.Classes()
		}
		if err != nil {
			return made, err
		}
		_, _ = d.hasher.WriteString(labels.Text())
		made.labels, made.n = labels, labels.Len()
	case f.Blob != "":
		return made, fault.New(fault.NotFound, "dataset", "%v has arrays, not cells: name one as column", d.kind)
	default:
		raster, err := d.group.Raster(ctx, f.Name, f.Column, dims)
		if err != nil {
			return made, err
		}
		about := raster.About()
		_, _ = d.hasher.WriteString(about.Text)
		made.raster, made.place, made.n, made.every = raster, placeOf(ctx, raster), raster.Len(), !raster.HasN()
		made.twoD = made.every && about.Unnamed && dims == ""
		if made.bands = about.Bands; made.bands == nil && f.BandNames != nil {
			made.bands = d.coordinateOf(ctx, raster)
		}
	}
	return made, nil
}

// count sets how many rows the dataset has, which all fields must agree on. An array (n, k) or (k, n) whose dimensions
// nobody names may have labels, and is no image of all rows until dims says so.
func (d *arrays) count() error {
	for i := range d.fields {
		f := &d.fields[i]
		for k := range d.fields {
			if f.labels == nil || d.fields[k].raster == nil {
				continue
			}
			steps, err := f.labels.Steps(d.fields[k].raster)
			if err != nil {
				return InField(f.name, err)
			}
			if steps != nil {
				f.labels, f.n, f.every = steps, steps.Len(), d.fields[k].every
				break
			}
		}
		if f.every && f.n == 1 {
			continue
		}
		if d.n >= 0 && f.n != d.n {
			return fault.WithFile(InField(f.name, fault.New(fault.Unsupported, "dataset",
				"%d images, %d of the first field", f.n, d.n)), d.uri)
		}
		d.n = f.n
	}
	for i := range d.fields {
		f := &d.fields[i]
		if !f.twoD {
			continue
		}
		grid := f.raster.Grid()
		if err := store.CheckImage(grid.Height, grid.Width, d.n); err != nil {
			return fault.WithFile(InField(f.name, err), d.uri)
		}
	}
	return nil
}

// coordinateOf returns the names of the bands of a raster: the strings, or the whole numbers, of their coordinate, or
// nil.
func (d *arrays) coordinateOf(ctx context.Context, r store.Raster) (names []string) {
	axis, grid := r.About().BandAxis, r.Grid()
	for _, array := range [...]string{axis, path.Base(axis)} { // in the group of the raster, or above it
		labels, err := d.group.Labels(ctx, array)
		if axis == "" || err != nil {
			continue
		}
		kind := labels.Kind()
		if labels.Len() != int64(grid.StepBands()) || kind != column.Text && kind != column.Int {
			return nil
		}
		for band := range labels.Len() {
			value := labels.Value(band)
			names = append(names, value.In(kind))
		}
		return names
	}
	return nil
}

// placeOf returns where the images of a raster lie.
func placeOf(ctx context.Context, r store.Raster) *catalog.Place {
	epsg, transform := r.Place(ctx)
	grid := r.Grid()
	return catalog.NewPlace(epsg, transform, grid.Height, grid.Width)
}

// table makes the dataset of its fields, or fault.Limit if it has too many rows or takes too much memory.
func (d *arrays) table() (*Table, error) {
	if _, err := d.group.Held(); err != nil {
		return nil, err
	}
	if err := d.count(); err != nil {
		return nil, err
	}
	if d.n < 0 && len(d.fields) > 0 {
		d.n = 1
	}
	if d.n > maxImages {
		return nil, fault.WithFile(fault.New(fault.Limit, "dataset",
			"%d rows, at most %d", d.n, int64(maxImages)), d.uri)
	}
	made := New(d)
	made.Array = true
	for i := range d.fields {
		if f := &d.fields[i]; f.raster != nil {
			grid := f.raster.Grid()
			made.Fields[i].Size = &catalog.Size{Height: int32(grid.Height), Width: int32(grid.Width)}
		}
	}
	return made, nil
}

// Len implements Store, as the methods after it do.
func (d *arrays) Len() int64   { return max(d.n, 0) }
func (d *arrays) Fields() int  { return len(d.fields) }
func (d *arrays) Close() error { return nil }

func (d *arrays) Kind(field int) catalog.Kind {
	if f := &d.fields[field]; f.labels != nil {
		return f.labels.Kind()
	}
	return catalog.Raster
}

func (d *arrays) Fingerprint() string {
	if own, ok := d.group.(store.Fingerprinted); ok {
		return own.Fingerprint()
	}
	sum := d.hasher.Sum128().Bytes()
	return hex.EncodeToString(sum[:])
}

func (d *arrays) Asset(_ context.Context, field int, row int64) (catalog.Asset, error) {
	f := &d.fields[field]
	if !f.raster.HasN() {
		row = 0
	}
	return catalog.Asset{URI: f.raster.About().URI, Index: f.raster.Index(row), Names: f.bands, Place: f.place}, nil
}

func (d *arrays) Value(_ context.Context, field int, row int64) (catalog.Value, error) {
	f := &d.fields[field]
	switch {
	case f.labels == nil:
		return catalog.Value{}, fault.WithFile(fault.New(fault.Unsupported, "dataset",
			"%v has no metadata columns", d.kind), d.uri)
	case f.every:
		row = 0
	}
	return f.labels.Value(row), nil
}

// coordinates returns the first raster if its images have coordinates along n, else nil.
func (d *arrays) coordinates() store.Coordinated {
	if len(d.fields) == 0 {
		return nil
	}
	coordinates, _ := d.fields[0].raster.(store.Coordinated)
	return coordinates
}

// ID is the coordinate of an image along n.
func (d *arrays) ID(_ context.Context, row int64) (string, error) {
	if c := d.coordinates(); c != nil {
		_, text := c.Coordinate(row)
		return text, nil
	}
	return strconv.FormatInt(row, 10), nil
}

func (d *arrays) Column(ctx context.Context, name string) (*Column, error) {
	coordinates, isN := d.coordinates(), name == "n"
	if coordinates != nil {
		axis := coordinates.Axis()
		isN = axis != "" && (isN || name == axis)
	}
	if isN {
		return column.Of(catalog.Int, 0, d.Len(), func(row int64) (v catalog.Value) {
			if v.Int = row; coordinates != nil {
				v.Int, _ = coordinates.Coordinate(row)
			}
			return v
		}), nil
	}
	labels, err := d.group.Labels(ctx, name)
	if err == nil && labels.Len() != d.n {
		err = fault.WithFile(fault.New(fault.Unsupported, "column "+name,
			"%d values for %d images", labels.Len(), d.n), d.uri)
	}
	if err == nil {
		labels, err = labels.Scalars()
	}
	if err != nil {
		return nil, err
	}
	return column.Of(labels.Kind(), labels.Unit(), labels.Len(), labels.Value), nil
}

// Image returns the one image of a store of arrays. Several are an error.
func Image(ctx context.Context, kind store.Arrays, path string, o resources.Options) (catalog.Asset, error) {
	group, err := OpenArrays(ctx, kind, path, nil, o)
	if err != nil {
		return catalog.Asset{}, err
	}
	raster, err := group.Raster(ctx, "", "", "")
	if err != nil {
		return catalog.Asset{}, err
	}
	return onlyImage(raster, path, "where one is needed; loaders read all of them")
}

// onlyImage returns the image of a raster. Several are an error about a path, which ends in why.
func onlyImage(r store.Raster, path, why string) (catalog.Asset, error) {
	if r.Len() != 1 {
		return catalog.Asset{}, fault.WithFile(fault.New(fault.Unsupported, "array",
			"it has %d images along n, %s", r.Len(), why), path)
	}
	about := r.About()
	return catalog.Asset{URI: about.URI, Index: r.Index(0), Names: about.Bands}, nil
}

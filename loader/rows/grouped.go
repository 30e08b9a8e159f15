package rows

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog"
)

// grouped is a group whose rows are what the names of patterns stand for in the paths of arrays: mostly groups.
type grouped struct {
	group store.Group
	uri   string
	dims  string
	paths *catalog.Table // of the fields with patterns, and of those that names make
	ids   []string
	first int // the field of paths whose arrays, and the groups around them, have the attributes

	fields     []spec.Field
	from       []int     // by field the field of paths, -1 of an attribute
	attributes []*Column // by field, nil of others
}

// openGrouped opens a group as a dataset of the arrays that patterns pair.
func openGrouped(ctx context.Context, kind store.Arrays, group store.Group, src *spec.Source, fields []spec.Field,
	o resources.Options) (*Table, error) {
	paths, err := group.Arrays(ctx)
	if err != nil {
		return nil, err
	}
	d := &grouped{group: group, uri: src.Source, dims: src.Dims, first: -1, fields: fields,
		from: make([]int, len(fields)), attributes: make([]*Column, len(fields))}
	var sources []catalog.Source
	for i := range fields {
		source := CatalogSource(fields[i])
		source.Pattern = strings.TrimPrefix(source.Pattern, "/")
		d.from[i] = len(sources)
		switch {
		case source.Beside, strings.HasPrefix(source.Pattern, "../"):
			return nil, fault.WithFile(InField(fields[i].Name, fault.New(fault.Unsupported, "dataset",
				"pattern is %q: patterns name arrays of %v here", source.Pattern, kind)), src.Source)
		case source.Pattern != "" && d.first < 0 && !source.Optional:
			d.first = len(sources)
		case source.Pattern == "" && fields[i].Traits().Metadata && !named(fields, cmp.Or(source.Column, source.Field)):
			d.from[i] = -1
			continue
		}
		sources = append(sources, source)
	}
	options := CatalogOptions(&src.Subset, nil, o)
	options.DropIncomplete = src.Missing == spec.MissingDrop
	if d.paths, err = catalog.OfArrays(ctx, src.Source, paths, sources, options); err != nil {
		return nil, err
	}
	warnDropped(d.paths, src.Source, "no array", o)
	err = d.paths.ScanKeys(ctx, func(_ int64, key string) error {
		d.ids = append(d.ids, key)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d.table(ctx)
}

// named reports whether a column is a name of a pattern.
func named(fields []spec.Field, name string) bool {
	names := func(f spec.Field) bool { return slices.Contains(column.Names(f.Pattern), name) }
	return slices.ContainsFunc(fields, names)
}

// table makes the dataset.
func (d *grouped) table(ctx context.Context) (*Table, error) {
	hasher := xxh3.New()
	for i := range d.fields {
		f := &d.fields[i]
		if d.from[i] < 0 {
			var err error
			if d.attributes[i], err = d.metadata(ctx, cmp.Or(f.Column, f.Name)); err != nil {
				return nil, InField(f.Name, err)
			}
		}
		if f.Pattern == "" {
			continue
		}
		for row := range d.paths.Len() {
			text, err := d.path(ctx, d.from[i], row)
			if err != nil {
				return nil, err
			}
			if array := d.group.Text(ctx, text); array != "" {
				fmt.Fprintf(hasher, "%q %s\n", text, array)
			}
		}
	}
	sum := hasher.Sum128().Bytes()
	made := New(d)
	made.Array, made.Fingerprint, made.Marks = true, hex.EncodeToString(sum[:]), d.paths.Marks()
	return made, nil
}

// Len implements Store, as the methods after it do.
func (d *grouped) Len() int64          { return d.paths.Len() }
func (d *grouped) Fields() int         { return len(d.fields) }
func (d *grouped) Fingerprint() string { return d.paths.Fingerprint() }
func (d *grouped) Close() error        { return d.paths.Close() }

func (d *grouped) Kind(field int) catalog.Kind {
	if values := d.attributes[field]; values != nil {
		return values.Kind
	}
	return d.paths.Kind(d.from[field])
}

func (d *grouped) ID(_ context.Context, row int64) (string, error) { return d.ids[row], nil }

func (d *grouped) Column(ctx context.Context, name string) (*Column, error) {
	if named(d.fields, name) {
		return d.paths.Column(ctx, name)
	}
	return d.metadata(ctx, name)
}

func (d *grouped) Value(ctx context.Context, field int, row int64) (catalog.Value, error) {
	if values := d.attributes[field]; values != nil {
		return values.Cell(ctx, row)
	}
	return d.paths.Value(ctx, d.from[field], row)
}

func (d *grouped) Asset(ctx context.Context, field int, row int64) (catalog.Asset, error) {
	name, err := d.path(ctx, d.from[field], row)
	if err != nil {
		return catalog.Asset{}, err
	}
	raster, err := d.group.Raster(ctx, "", name, cmp.Or(d.fields[field].Dims, d.dims))
	if err != nil {
		return catalog.Asset{}, err
	}
	asset, err := onlyImage(raster, raster.About().URI, "and is one sample")
	if err == nil {
		asset.Place = placeOf(ctx, raster)
	}
	return asset, err
}

// path returns the path of the array of a field of paths in a row, "" if it lacks.
func (d *grouped) path(ctx context.Context, field int, row int64) (string, error) {
	value, err := d.paths.Value(ctx, field, row)
	return string(value.Text), err
}

// metadata returns an attribute of the arrays of the first pattern or of the groups around them.
func (d *grouped) metadata(ctx context.Context, name string) (*Column, error) {
	values := make([]column.Value, len(d.ids))
	kinds := map[column.Kind]bool{}
	for row := range d.ids {
		array, err := d.path(ctx, d.first, int64(row))
		if err != nil {
			return nil, err
		}
		value, kind := d.attribute(ctx, array, name)
		if value.Null = kind == 0; kind != 0 {
			kinds[kind] = true
		}
		values[row] = value
	}
	if len(kinds) == 0 {
		return nil, fault.WithFile(fault.New(fault.NotFound, "column "+name,
			"no group has such an attribute"), d.uri)
	}
	kind := column.Text
	switch {
	case kinds[column.Text] && len(kinds) > 1:
		return nil, fault.WithFile(fault.New(fault.Unsupported, "column "+name,
			"some groups have a number as this attribute, others a string"), d.uri)
	case kinds[column.Float]:
		kind = column.Float // integers among them have both members
	case kinds[column.Int]:
		kind = column.Int
	}
	return column.Of(kind, 0, int64(len(values)), func(row int64) column.Value { return values[row] }), nil
}

// attribute returns an attribute of an array or of the nearest group above it that has one. kind is 0 if none has.
func (d *grouped) attribute(ctx context.Context, array, name string) (v column.Value, kind column.Kind) {
	for p := array; p != "." && ctx.Err() == nil; p = path.Dir(p) {
		if v, kind = d.group.Attribute(ctx, p, name); kind != 0 {
			break
		}
	}
	return v, kind
}

package zarrs

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
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/stores/images"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/zarr"
)

// idName stands in a pattern for the id of a sample: one or more of any characters, as in patterns of files.
const idName = "{id}"

// grouped is a group whose rows are what the {id} of patterns is in the paths of arrays: mostly groups.
type grouped struct {
	node   *zarr.Node
	fields []spec.Field
	dims   string
	ids    []string
}

// grouped opens a group as a dataset of the arrays that patterns name. Rows have the arrays of all patterns.
func (f *Format) grouped(ctx context.Context, node *zarr.Node, src *spec.Source, fields []spec.Field,
	o resources.Options) (*rows.Table, error) {
	list, err := node.Members(ctx)
	if err != nil {
		return nil, err
	}
	d := &grouped{node: node, fields: fields, dims: src.Dims}
	hasher, patterns := xxh3.New(), []string{}
	ids, there := map[string]bool{}, map[string]bool{} // ids of any pattern, and paths
	for i := range fields {
		pattern := fields[i].Pattern
		if pattern == "" {
			if fields[i].Traits().Metadata {
				continue
			}
			return nil, fault.WithFile(rows.InField(fields[i].Name, fault.New(fault.Unsupported, "dataset",
				fault.NoOffset, "other fields have patterns: it needs one, too")), src.Source)
		}
		before, after, ok := strings.Cut(pattern, idName)
		if !ok || strings.Contains(after, idName) {
			return nil, fault.WithFile(rows.InField(fields[i].Name, fault.New(fault.Unsupported, "dataset",
				fault.NoOffset, "pattern is %q: in %s it must have {id} once", pattern, f.Noun)), src.Source)
		}
		patterns = append(patterns, pattern)
		for _, member := range list {
			rest, ok := strings.CutPrefix(member.Path, strings.TrimPrefix(before, "/"))
			if id, whole := strings.CutSuffix(rest, after); ok && whole && id != "" {
				ids[id], there[member.Path] = true, true
				if member.Array != nil {
					fmt.Fprintf(hasher, "%q %s\n", member.Path, member.Array.Text())
				}
			}
		}
	}
	var missing []string
	for id := range ids {
		before := len(missing)
		for _, pattern := range patterns {
			if name := strings.TrimPrefix(strings.Replace(pattern, idName, id, 1), "/"); !there[name] {
				missing = append(missing, name)
			}
		}
		if len(missing) == before {
			d.ids = append(d.ids, id)
		}
	}
	slices.Sort(missing)
	switch {
	case len(missing) == 0:
	case src.Missing == spec.MissingDrop:
		o.Logger.Warn("incomplete samples are left out: some field has no array for them",
			"samples", len(d.ids), "left", len(ids)-len(d.ids), "such as", missing[0], "dataset", src.Source)
	default:
		return nil, fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset, "no array %s; %d arrays "+
			`are missing in all: missing "drop" leaves out the samples that lack one`, missing[0], len(missing)),
			src.Source)
	}
	if slices.Sort(d.ids); len(d.ids) == 0 {
		return nil, fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset,
			"no arrays match the patterns of all fields"), src.Source)
	}
	sum := hasher.Sum128().Bytes()
	return d.table(ctx, f, hex.EncodeToString(sum[:]))
}

// table makes the dataset.
func (d *grouped) table(ctx context.Context, f *Format, hash string) (*rows.Table, error) {
	values := make([]images.Values, len(d.fields))
	for i := range d.fields {
		if d.fields[i].Pattern != "" {
			continue
		}
		var err error
		if values[i], err = d.metadata(ctx, cmp.Or(d.fields[i].Column, d.fields[i].Name)); err != nil {
			return nil, rows.InField(d.fields[i].Name, err)
		}
	}
	found := images.Images{
		URI: d.node.URI, Noun: f.Noun, Hash: hash, N: int64(len(d.ids)),
		IsN:        func(string) bool { return false },
		Coordinate: func(row int64) int64 { return row },
		Name:       func(row int64) string { return d.ids[row] },
		Grid:       func(int) chunk.Index { return chunk.Index{} },
		Values:     func(field int) images.Values { return values[field] },
		Metadata:   d.metadata,
	}
	made, err := found.Table(len(d.fields))
	if err != nil {
		return nil, err
	}
	for i := range d.fields {
		if values[i] == nil {
			made.Fields[i].Size = nil // each array has its own
			made.Fields[i].Asset = func(ctx context.Context, row int64) (catalog.Asset, error) {
				return d.asset(ctx, i, row)
			}
		}
	}
	return made, nil
}

// asset opens the array of a field in a row.
func (d *grouped) asset(ctx context.Context, field int, row int64) (catalog.Asset, error) {
	name := strings.Replace(d.fields[field].Pattern, idName, d.ids[row], 1)
	raster, err := d.node.Raster(ctx, "", name, d.dims)
	if err != nil {
		return catalog.Asset{}, err
	}
	if raster.Len() != 1 {
		return catalog.Asset{}, fault.WithFile(fault.New(fault.Unsupported, "array", fault.NoOffset,
			"it has %d images along n, and is one sample", raster.Len()), raster.Arrays()[0].URI)
	}
	p, g := d.node.Place(ctx, raster.Arrays()[0]), raster.Grid()
	return catalog.Asset{URI: raster.Arrays()[0].URI, Index: raster.Index(0), Names: raster.BandNames(),
		Place: catalog.NewPlace(p.EPSG, p.Transform, g.Height, g.Width)}, nil
}

// attributes are the values of an attribute of the groups, or ids.
type attributes struct {
	kind   column.Kind
	values []column.Value
}

// Kind implements images.Values.
func (a *attributes) Kind() catalog.Kind { return a.kind }

// Value implements images.Values.
func (a *attributes) Value(row int64) catalog.Value { return a.values[row] }

// metadata returns the ids, or an attribute of the group of each id or of the array of the first pattern.
func (d *grouped) metadata(ctx context.Context, name string) (images.Values, error) {
	made := &attributes{kind: column.Text, values: make([]column.Value, len(d.ids))}
	if name == "id" {
		for row, id := range d.ids {
			made.values[row].Text = id
		}
		return made, nil
	}
	pattern := d.fields[slices.IndexFunc(d.fields, func(f spec.Field) bool { return f.Pattern != "" })].Pattern
	kinds := map[column.Kind]bool{}
	for row, id := range d.ids {
		value, kind := d.attribute(ctx, strings.Trim(strings.Replace(pattern, idName, id, 1), "/"), name)
		if value.Null = kind == 0; kind != 0 {
			kinds[kind] = true
		}
		made.values[row] = value
	}
	if len(kinds) == 0 {
		return nil, fault.WithFile(fault.New(fault.NotFound, "column "+name, fault.NoOffset,
			"no group has such an attribute"), d.node.URI)
	}
	switch {
	case kinds[column.Text] && len(kinds) > 1:
		return nil, fault.WithFile(fault.New(fault.Unsupported, "column "+name, fault.NoOffset,
			"some groups have a number as this attribute, others a string"), d.node.URI)
	case kinds[column.Float]:
		made.kind = column.Float // integers among them have both members
	case kinds[column.Int]:
		made.kind = column.Int
	}
	return made, nil
}

// attribute returns an attribute of an array or of the nearest group above it that has one. kind is 0 if none has.
func (d *grouped) attribute(ctx context.Context, array, name string) (v column.Value, kind column.Kind) {
	for p := array; p != "." && ctx.Err() == nil; p = path.Dir(p) {
		node, err := d.node.At(ctx, p)
		if err != nil {
			continue
		}
		if v, kind = node.Attribute(name); kind != 0 {
			break
		}
	}
	return v, kind
}

package zarrs

import (
	"context"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/arrays"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Info describes an array, or the arrays of a group.
type Info struct {
	Path         string  `json:"path"`
	Kind         string  `json:"kind"` // the name of the format, such as "zarr"
	Format       int     `json:"format"`
	Group        bool    `json:"group"`
	Consolidated bool    `json:"consolidated,omitempty"`
	Arrays       []Array `json:"arrays"`
}

// Array describes an array.
type Array struct {
	Path       string      `json:"path"` // below the group, "" for the array itself
	Unreadable string      `json:"unreadable,omitempty"`
	Shape      []int64     `json:"shape,omitempty"`
	Chunks     []int64     `json:"chunks,omitempty"`
	Shards     []int64     `json:"shards,omitempty"`
	DType      string      `json:"dtype,omitempty"`
	Codecs     []string    `json:"codecs,omitempty"`
	Dims       []string    `json:"dims,omitempty"` // names of the dimensions
	Axes       []string    `json:"axes,omitempty"` // the image axis of each dimension; nil if it cannot be images
	Fill       *spec.Float `json:"fill,omitempty"`
	NoData     *spec.Float `json:"nodata,omitempty"`
	Scale      *float64    `json:"scale_factor,omitempty"`
	Offset     *float64    `json:"add_offset,omitempty"`
	Unit       string      `json:"units,omitempty"`
	EPSG       int         `json:"epsg,omitempty"`
	Transform  *[6]float64 `json:"transform,omitempty"` // as GDAL's geotransform
	Bounds     *[4]float64 `json:"bounds,omitempty"`    // minx, miny, maxx, maxy in the CRS
}

// Describe describes an array or group from its metadata and its coordinate arrays. A path outside of
// Options.Roots is fault.NotFound.
func (f *Format) Describe(ctx context.Context, path string, o resources.Options) (*Info, error) {
	node, err := f.at(ctx, path, o.WithDefaults())
	if err != nil {
		return nil, err
	}
	list, err := node.Members(ctx)
	if err != nil {
		return nil, err
	}
	info := &Info{Path: path, Kind: f.Name, Format: node.Format, Group: node.Array == nil,
		Consolidated: node.Consolidated}
	for _, member := range list {
		if member.Err != nil {
			info.Arrays = append(info.Arrays, Array{Path: member.Path, Unreadable: fault.Line(member.Err)})
			continue
		}
		info.Arrays = append(info.Arrays, arrayOf(ctx, node, member.Array))
	}
	return info, nil
}

// arrayOf describes one array.
func arrayOf(ctx context.Context, n *arrays.Node, a *arrays.Array) Array {
	i := Array{Path: a.Path, Shape: a.Shape, Chunks: a.Chunks, Shards: a.Shards, DType: a.DType.String(),
		Codecs: a.Codecs, Dims: a.Names, Axes: a.Axes(""), Unit: a.Attrs.Text("units")}
	if a.Bool {
		i.DType = "bool"
	}
	fill := spec.Float(a.FillValue())
	i.Fill = &fill
	i.Scale, i.Offset = number(a, "scale_factor"), number(a, "add_offset")
	if i.Axes == nil {
		return i
	}
	place := n.Place(ctx, a)
	i.EPSG, i.Transform = place.EPSG, place.Transform
	images, err := a.Images("")
	if err != nil {
		i.Unreadable = fault.Line(err)
		return i
	}
	index := images.Grid()
	if index.NoData != nil {
		v := spec.Float(*index.NoData)
		i.NoData = &v
	}
	meta := catalog.Meta{Transform: place.Transform}
	if b, ok := meta.Bounds(index.Height, index.Width); ok {
		i.Bounds = &b
	}
	return i
}

// number returns a finite number of the attributes, or nil: JSON has no others.
func number(a *arrays.Array, key string) *float64 {
	v, ok := a.Number(key)
	if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

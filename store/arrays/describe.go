package arrays

import (
	"context"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/internal/num"
)

// Info describes an array, or the arrays of a group.
type Info struct {
	Path         string      `json:"path"`
	Kind         string      `json:"kind"` // the name of the format, such as "zarr"
	Format       int         `json:"format"`
	Group        bool        `json:"group"`
	Consolidated bool        `json:"consolidated,omitempty"`
	Arrays       []Described `json:"arrays"`         // the first maxDescribed
	More         int         `json:"more,omitempty"` // arrays behind them
}

// maxDescribed bounds the arrays of a group that are described: each may cost reads of its coordinates, and about 250
// bytes of the answer, 50 KB in all, which a person can look through. Listing a group names all of them.
const maxDescribed = 200

// Described describes an array.
type Described struct {
	Path       string      `json:"path"` // below the group, "" for the array itself
	Unreadable string      `json:"unreadable,omitempty"`
	Shape      []int64     `json:"shape,omitempty"`
	Chunks     []int64     `json:"chunks,omitempty"`
	Shards     []int64     `json:"shards,omitempty"`
	DType      string      `json:"dtype,omitempty"`
	Codecs     []string    `json:"codecs,omitempty"`
	Dims       []string    `json:"dims,omitempty"` // names of the dimensions
	Axes       []string    `json:"axes,omitempty"` // the image axis of each dimension; nil if it cannot be images
	Fill       *num.Float  `json:"fill,omitempty"`
	NoData     *num.Float  `json:"nodata,omitempty"`
	Scale      *float64    `json:"scale_factor,omitempty"`
	Offset     *float64    `json:"add_offset,omitempty"`
	Unit       string      `json:"units,omitempty"`
	EPSG       int         `json:"epsg,omitempty"`
	Transform  *[6]float64 `json:"transform,omitempty"` // as GDAL's geotransform
	Bounds     *[4]float64 `json:"bounds,omitempty"`    // minx, miny, maxx, maxy in the CRS
}

// Describe implements store.Group (*Info): from the metadata and the coordinate arrays.
func (n *Node) Describe(ctx context.Context, path string) (any, error) {
	list, err := n.Members(ctx)
	if err != nil {
		return nil, err
	}
	info := &Info{Path: path, Kind: n.kind, Format: n.Format, Group: n.Array == nil, Consolidated: n.Consolidated}
	info.More = max(len(list)-maxDescribed, 0)
	for _, member := range list[:len(list)-info.More] {
		if member.Err != nil {
			info.Arrays = append(info.Arrays, Described{Path: member.Path, Unreadable: fault.Line(member.Err)})
			continue
		}
		info.Arrays = append(info.Arrays, describe(ctx, n, member.Array))
	}
	return info, nil
}

// describe describes one array.
func describe(ctx context.Context, n *Node, a *Array) Described {
	i := Described{Path: a.Path, Shape: a.Shape, Chunks: a.Chunks, Shards: a.Shards, DType: a.DType.String(),
		Codecs: a.Codecs, Dims: a.Names, Axes: a.Axes(""), Unit: a.Attrs.Text("units")}
	if a.Bool {
		i.DType = "bool"
	}
	if a.Texts != nil || a.Strings {
		i.DType = "string"
		if a.List.Valid() {
			i.DType = "list of " + a.List.String()
		}
		if a.Texts != nil { // without the bytes of one
			i.Shape, i.Chunks = a.Shape[:len(a.Shape)-1], a.Chunks[:len(a.Chunks)-1]
		}
		return i
	}
	fill := num.Float(a.FillValue())
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
		v := num.Float(*index.NoData)
		i.NoData = &v
	}
	if place.Transform != nil {
		i.Bounds = bounds(place.Transform, index.Height, index.Width)
	}
	return i
}

// bounds returns the smallest box that holds an image, or nil if it reaches beyond the largest float64.
func bounds(t *[6]float64, height, width int) *[4]float64 {
	box := [4]float64{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for k := range 4 {
		corner := crs.At(t, float64(k%2*width), float64(k/2*height))
		for axis, v := range corner {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil
			}
			box[axis], box[2+axis] = min(box[axis], v), max(box[2+axis], v)
		}
	}
	return &box
}

// number returns a finite number of the attributes, or nil: JSON has no others.
func number(a *Array, key string) *float64 {
	v, ok := a.Number(key)
	if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

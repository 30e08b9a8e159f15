// Package columns makes metadata columns of the samples of a container: from rows of a table, by id, and computed
// from rasters.
package columns

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/paulmach/orb"
	orbwkb "github.com/paulmach/orb/encoding/wkb"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/wkb"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// Columns of rasters that the extensions of TACO have.
const (
	CRS        = "stac:crs"
	Shape      = "stac:tensor_shape"
	Transform  = "stac:geotransform"
	Centroid   = "stac:centroid"
	ChunkIndex = "chaski:index" // the loader takes it in place of the file's header
	RumiHeader = "rumi:header"
)

// rasterColumn is a column of rasters.
type rasterColumn struct {
	name      string
	extension string // that defines it
	// place says that it is about place: folders have it too, from their first raster.
	place bool
	of    func(rasters []*Raster) *tables.Vector
}

// columns are all columns of rasters, in their order.
var columns = []rasterColumn{
	{CRS, "stac", true, each(build.Texts, (*Raster).epsg)},
	{Shape, "stac", true, each(build.Integers, func(r *Raster) []int64 {
		return []int64{int64(r.Shape[0]), int64(r.Shape[1]), int64(r.Shape[2])}
	})},
	{Transform, "stac", true, each(floats, func(r *Raster) []float64 {
		if !r.Placed {
			return nil
		}
		return r.Transform[:]
	})},
	{Centroid, "stac", true, each(build.Bytes, (*Raster).point)},
	{"istac:crs", "istac", true, each(build.Texts, func(r *Raster) string {
		if !r.Placed {
			return ""
		}
		return r.epsg()
	})},
	{"istac:geometry", "istac", true, each(build.Bytes, (*Raster).footprint)},
	{"istac:centroid", "istac", true, each(build.Bytes, (*Raster).point)},
	{"scaling:scale_factor", "scaling", false,
		scaling(func(factors, _ []float64) []float64 { return factors })},
	{"scaling:scale_offset", "scaling", false,
		scaling(func(_, offsets []float64) []float64 { return offsets })},
	// No raster says that it has any padding.
	{"scaling:padding", "scaling", false, func(rasters []*Raster) *tables.Vector {
		number := tables.Type{Kind: tables.Int64, Bits: 32}
		return tables.NewNulls(tables.Type{Kind: tables.List, Elem: &number}, len(rasters))
	}},
	{"taco:header", "header", false, each(build.Bytes, func(r *Raster) []byte { return r.header })},
	{ChunkIndex, "index", false, each(build.Bytes, func(r *Raster) []byte { return r.blob(false) })},
	{RumiHeader, "index", false, each(build.Bytes, func(r *Raster) []byte { return r.blob(true) })},
	{catalog.NamesColumn, "index", false, each(build.Texts, func(r *Raster) string { return r.Names })},
}

// each returns what makes a column of a value of each raster. The zero value, which nil rasters have, is null.
func each[T any](column func(n int, value func(i int) T) *tables.Vector,
	value func(r *Raster) T) func(rasters []*Raster) *tables.Vector {
	return func(rasters []*Raster) *tables.Vector {
		return column(len(rasters), func(i int) (null T) {
			if rasters[i] == nil {
				return null
			}
			return value(rasters[i])
		})
	}
}

// Raster is what columns say of a raster.
type Raster struct {
	Shape     [3]int
	EPSG      int  // 0 if it is not known
	Placed    bool // Transform is known
	Transform [6]float64
	LonLat    [2]float64 // of the centre; NaN if it is not known
	Index     []byte     // as catalog.Meta.Kept has it: a chunk index, or the header of a rumi
	Names     string     // beside Index: of the bands, as the file has them and catalog.NamesText writes them

	header           []byte    // taco:header, nil if the file is not a TACOTIFF
	factors, offsets []float64 // of each band; nil if no band has one
}

// epsg returns the name of the CRS, "" if it is not known.
func (r *Raster) epsg() string {
	if r.EPSG == 0 {
		return ""
	}
	return fmt.Sprintf("EPSG:%d", r.EPSG)
}

// point returns the centre as WKB, nil if it is not known.
func (r *Raster) point() []byte {
	if math.IsNaN(r.LonLat[0] + r.LonLat[1]) {
		return nil
	}
	return wkb.AppendPoint(nil, r.LonLat[0], r.LonLat[1])
}

// footprint returns the outline of the raster as WKB, in its CRS, nil if that is not known. It begins at the upper left
// and turns against the clock where north is up, as GeoJSON wants.
func (r *Raster) footprint() []byte {
	if !r.Placed || r.EPSG == 0 {
		return nil
	}
	h, w := float64(r.Shape[1]), float64(r.Shape[2])
	var ring orb.Ring
	for _, corner := range [...][2]float64{{0, 0}, {0, h}, {w, h}, {w, 0}, {0, 0}} {
		ring = append(ring, orb.Point(crs.At(&r.Transform, corner[0], corner[1])))
	}
	return orbwkb.MustMarshal(orb.Polygon{ring}, binary.LittleEndian)
}

// blob returns the index, if it is the header of a rumi or if it is not.
func (r *Raster) blob(ofRumi bool) []byte {
	if rumi.IsBlob(r.Index) != ofRumi {
		return nil
	}
	return r.Index
}

// Renamed is the prefix that columns of a table get if every container has one of their name.
const Renamed = "source:"

// Rename returns the name that a column of a table has in a container.
func Rename(name string) string {
	if name == "id" || name == "type" {
		return Renamed + name
	}
	return name
}

// addRasters adds those columns of rasters that have some names. A nil raster has null.
func addRasters(set *build.Columns, rasters []*Raster, names []string) {
	for _, column := range columns {
		if slices.Contains(names, column.name) {
			set.Add(column.name, column.of(rasters))
		}
	}
}

var float32Type = tables.Type{Kind: tables.Float64, Bits: 32}

// floats and float32s return a column of n lists of numbers; a nil one is null.
func floats(n int, values func(i int) []float64) *tables.Vector {
	return build.Floats(tables.Floats, n, values)
}

func float32s(n int, values func(i int) []float64) *tables.Vector {
	return build.Floats(float32Type, n, values)
}

// single returns a column of n numbers, each the first of a list; a nil list is null.
func single(t tables.Type, n int, values func(i int) []float64) *tables.Vector {
	numbers, none := make([]float64, n), make([]bool, n)
	for i := range n {
		if v := values(i); v == nil {
			none[i] = true
		} else {
			numbers[i] = v[0]
		}
	}
	return tables.NewFloats(t, numbers, none)
}

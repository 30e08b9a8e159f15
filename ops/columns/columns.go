package columns

import (
	"fmt"

	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tables"
)

// Columns of rasters that the extensions of TACO have.
const (
	CRS        = "stac:crs"
	Shape      = "stac:tensor_shape"
	Transform  = "stac:geotransform"
	Centroid   = "stac:centroid"
	Stats      = "geotiff:stats"
	ChunkIndex = "chaski:index" // the loader takes it in place of the file's header
	RumiHeader = "rumi:header"
)

// momentNames are the columns of STATS in TACO 0.2: the mean, the least, the greatest and the standard deviation.
var momentNames = [...]string{"stats:mean", "stats:min", "stats:max", "stats:std"}

// Parts of extensions, each with some columns of rasters. Folders have those about place too, of their first raster.
const (
	OfPlace     = "stac"
	OfCentre    = "stac, the centroid"
	ofRegion    = "istac"
	OfPixels    = "stats"
	ofMoments   = "stats of TACO 0.2"
	ofScaling   = "scaling"
	ofHeader    = "header"
	OfIndex     = "index"
	OfRumi      = "index and rumi"
	ofAllPixels = "rumi"
)

// column is a column of rasters.
type column struct {
	part, name string
	of         func(rasters []*Raster) *tables.Vector
}

// columns are all columns of rasters, in their order.
var columns = []column{
	{OfPlace, CRS, each(Texts, (*Raster).epsg)},
	{OfPlace, Shape, each(Integers, func(r *Raster) []int64 {
		return []int64{int64(r.Shape[0]), int64(r.Shape[1]), int64(r.Shape[2])}
	})},
	{OfPlace, Transform, each(floats, func(r *Raster) []float64 {
		if !r.Placed {
			return nil
		}
		return r.Transform[:]
	})},
	{OfCentre, Centroid, each(Bytes, func(r *Raster) []byte { return point(r.LonLat) })},
	{ofRegion, "istac:crs", each(Texts, func(r *Raster) string {
		if !r.Placed {
			return ""
		}
		return r.epsg()
	})},
	{ofRegion, "istac:geometry", each(Bytes, (*Raster).footprint)},
	{ofRegion, "istac:centroid", each(Bytes, func(r *Raster) []byte { return point(r.LonLat) })},
	// Where Summary has the moments.
	{ofMoments, momentNames[0], each(floats, func(r *Raster) []float64 { return r.moment(2) })},
	{ofMoments, momentNames[1], each(floats, func(r *Raster) []float64 { return r.moment(0) })},
	{ofMoments, momentNames[2], each(floats, func(r *Raster) []float64 { return r.moment(1) })},
	{ofMoments, momentNames[3], each(floats, func(r *Raster) []float64 { return r.moment(3) })},
	{OfPixels, Stats, each(bands, func(r *Raster) [][]float64 { return r.Stats })},
	{ofScaling, "scaling:scale_factor", scaling(func(factors, _ []float64) []float64 { return factors })},
	{ofScaling, "scaling:scale_offset", scaling(func(_, offsets []float64) []float64 { return offsets })},
	// No raster says that it has any padding.
	{ofScaling, "scaling:padding", func(rasters []*Raster) *tables.Vector {
		number := tables.Type{Kind: tables.Int64, Bits: 32}
		return tables.NewNulls(tables.Type{Kind: tables.List, Elem: &number}, len(rasters))
	}},
	{ofHeader, "taco:header", each(Bytes, func(r *Raster) []byte { return r.header })},
	{OfIndex, ChunkIndex, each(Bytes, func(r *Raster) []byte { return r.blob(false) })},
	{OfRumi, RumiHeader, each(Bytes, func(r *Raster) []byte { return r.blob(true) })},
	{ofAllPixels, "rumi:minimum", pooled(0)},
	{ofAllPixels, "rumi:maximum", pooled(1)},
	{ofAllPixels, "rumi:mean", pooled(2)},
	{ofAllPixels, "rumi:stddev", pooled(3)},
	{ofAllPixels, "rumi:p2", pooled(4)},
	{ofAllPixels, "rumi:p98", pooled(5)},
	{OfIndex, catalog.NamesColumn, each(Texts, func(r *Raster) string { return r.Names })},
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

// pooled returns what makes the column of a statistic of Raster.pooled.
func pooled(k int) func(rasters []*Raster) *tables.Vector {
	return each(func(n int, values func(i int) []float64) *tables.Vector {
		return single(float64s, n, values)
	}, func(r *Raster) []float64 {
		if r.pooled == nil {
			return nil
		}
		return r.pooled[k:]
	})
}

// Raster is what columns say of a raster.
type Raster struct {
	Shape     [3]int
	EPSG      int  // 0 if it is not known
	Placed    bool // Transform is known
	Transform [6]float64
	LonLat    [2]float64  // of the centre; NaN if it is not known
	Stats     [][]float64 // of each band, see Summary; nil without a valid pixel
	Index     []byte      // as catalog.Meta.Kept has it: a chunk index, or the header of a rumi
	Names     string      // beside Index: of the bands, as the file has them and catalog.NamesText writes them

	header           []byte    // taco:header, nil if the file is not a TACOTIFF
	factors, offsets []float64 // of each band; nil if no band has one
	pooled           []float64 // the statistics of all valid pixels of a rumi file, see space.pooled; nil without one
}

// epsg returns the name of the CRS, "" if it is not known.
func (r *Raster) epsg() string {
	if r.EPSG == 0 {
		return ""
	}
	return fmt.Sprintf("EPSG:%d", r.EPSG)
}

// moment returns a statistic of each band, by its place in Stats; nil without statistics.
func (r *Raster) moment(at int) (out []float64) {
	for _, band := range r.Stats {
		out = append(out, band[at])
	}
	return out
}

// blob returns the index, if it is the header of a rumi or if it is not.
func (r *Raster) blob(ofRumi bool) []byte {
	if rumi.IsBlob(r.Index) != ofRumi {
		return nil
	}
	return r.Index
}

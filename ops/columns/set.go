package columns

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/chaski-eo/chaski/tables"
)

// Columns of the extensions of TACO.
const (
	CRS       = "stac:crs"
	Shape     = "stac:tensor_shape"
	Transform = "stac:geotransform"
	Centroid  = "stac:centroid"
	Stats     = "geotiff:stats"
)

// Renamed is the prefix that columns of a table get if every container has one of their name.
const Renamed = "source:"

// Rename returns the name that a column of a table has in a container.
func Rename(name string) string {
	if name == "id" || name == "type" {
		return Renamed + name
	}
	return name
}

// Raster is what columns say of a raster.
type Raster struct {
	Shape     [3]int
	EPSG      int  // 0 if it is not known
	Placed    bool // Transform is known
	Transform [6]float64
	Stats     [][]float64 // of each band, see Summary
}

// Set collects columns.
type Set struct {
	names   []string
	vectors []*tables.Vector
}

// Add adds a column.
func (c *Set) Add(name string, v *tables.Vector) {
	c.names, c.vectors = append(c.names, name), append(c.vectors, v)
}

// Table returns the columns.
func (c *Set) Table() *tables.Table { return tables.FromVectors(c.names, c.vectors) }

// STAC adds the columns of STAC of n rasters, but for the centroid. A nil raster has null.
func (c *Set) STAC(n int, of func(i int) *Raster) {
	crs, none := make([]string, n), make([]bool, n)
	for i := range n {
		if raster := of(i); raster == nil || raster.EPSG == 0 {
			none[i] = true
		} else {
			crs[i] = epsgName(raster.EPSG)
		}
	}
	c.Add(CRS, tables.NewStrings(crs, none))
	c.Add(Shape, Integers(n, func(i int) []int64 {
		raster := of(i)
		if raster == nil {
			return nil
		}
		return []int64{int64(raster.Shape[0]), int64(raster.Shape[1]), int64(raster.Shape[2])}
	}))
	c.Add(Transform, listOf(floats, n, func(i int) []float64 {
		raster := of(i)
		if raster == nil || !raster.Placed {
			return nil
		}
		return raster.Transform[:]
	}))
}

// Stats adds the column geotiff:stats of n rasters. A nil raster, or one without statistics, has null.
func (c *Set) Stats(n int, of func(i int) *Raster) {
	var bands [][]float64
	offs, none := make([]uint32, 1, n+1), make([]bool, n)
	for i := range n {
		r := of(i)
		if none[i] = r == nil || r.Stats == nil; !none[i] {
			bands = append(bands, r.Stats...)
		}
		offs = append(offs, uint32(len(bands)))
	}
	each := listOf(float32s, len(bands), func(i int) []float64 { return bands[i] })
	c.Add(Stats, tables.NewList(each, offs, none))
}

// momentNames are the columns of STATS in TACO 0.2, and momentAt where Summary has their values.
var (
	momentNames = [...]string{"stats:mean", "stats:min", "stats:max", "stats:std"}
	momentAt    = [...]int{2, 0, 1, 3}
)

// moments adds the columns of STATS of n rasters. A nil raster, or one without statistics, has null.
func (c *Set) moments(n int, of func(i int) *Raster) {
	for k, name := range momentNames {
		c.Add(name, listOf(floats, n, func(i int) (out []float64) {
			if r := of(i); r != nil {
				for _, band := range r.Stats {
					out = append(out, band[momentAt[k]])
				}
			}
			return out
		}))
	}
}

// rumiStatistics are the columns of the extension rumi of TACO 3 with statistics, in the order of space.pooled.
var rumiStatistics = [...]string{"rumi:minimum", "rumi:maximum", "rumi:mean", "rumi:stddev", "rumi:p2", "rumi:p98"}

// rumi adds the statistics of n rumi files. Another file, and one without a valid pixel, has null.
func (c *Set) rumi(n int, of func(i int) *raster) {
	for k, name := range rumiStatistics {
		values, none := make([]float64, n), make([]bool, n)
		for i := range n {
			if raster := of(i); raster == nil || raster.pixels == nil {
				none[i] = true
			} else {
				values[i] = raster.pixels[k]
			}
		}
		c.Add(name, tables.NewFloats(float64s, values, none))
	}
}

// Centroids adds the column stac:centroid of points of longitude and latitude. NaN gives null.
func (c *Set) Centroids(points [][2]float64) {
	c.points(Centroid, len(points), func(i int) [2]float64 { return points[i] })
}

// points adds a column of n points as WKB: little-endian, type 1. NaN is null.
func (c *Set) points(name string, n int, of func(i int) [2]float64) {
	c.Add(name, Bytes(n, func(i int) []byte {
		p := of(i)
		if math.IsNaN(p[0] + p[1]) {
			return nil
		}
		b := binary.LittleEndian.AppendUint64([]byte{1, 1, 0, 0, 0}, math.Float64bits(p[0]))
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(p[1]))
	}))
}

// Bytes returns a column of n byte strings; a nil one is null.
func Bytes(n int, value func(i int) []byte) *tables.Vector {
	var data []byte
	offs, none := make([]uint32, 1, n+1), make([]bool, n)
	for i := range n {
		b := value(i)
		none[i] = b == nil
		data = append(data, b...)
		offs = append(offs, uint32(len(data)))
	}
	return tables.NewBytes(tables.Type{Kind: tables.Binary}, data, offs, none)
}

// texts adds a column of n strings; "" is null.
func (c *Set) texts(name string, n int, of func(i int) string) {
	texts, none := make([]string, n), make([]bool, n)
	for i := range n {
		texts[i] = of(i)
		none[i] = texts[i] == ""
	}
	c.Add(name, tables.NewStrings(texts, none))
}

// epsgName returns the name of a CRS.
func epsgName(code int) string { return fmt.Sprintf("EPSG:%d", code) }

// Integers returns a column of n lists of integers; a nil one is null.
func Integers(n int, values func(i int) []int64) *tables.Vector { return listOf(integers, n, values) }

var (
	int64s   = tables.Type{Kind: tables.Int64, Bits: 64}
	float64s = tables.Type{Kind: tables.Float64, Bits: 64}
	float32s = func(v []float64) *tables.Vector {
		return tables.NewFloats(tables.Type{Kind: tables.Float64, Bits: 32}, v, nil)
	}
	integers = func(v []int64) *tables.Vector { return tables.NewInts(int64s, v, nil) }
	floats   = func(v []float64) *tables.Vector { return tables.NewFloats(float64s, v, nil) }
)

// listOf returns n lists; a nil one is null.
func listOf[T any](of func([]T) *tables.Vector, n int, values func(i int) []T) *tables.Vector {
	var flat []T
	offs, none := make([]uint32, 1, n+1), make([]bool, n)
	for i := range n {
		v := values(i)
		none[i] = v == nil
		flat = append(flat, v...)
		offs = append(offs, uint32(len(flat)))
	}
	return tables.NewList(of(flat), offs, none)
}

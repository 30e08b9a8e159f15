package columns

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tiff"
)

// read reads a file, and returns nil if it is not a raster.
func (c *Compute) read(ctx context.Context, file source.Reader) (*Raster, error) {
	if is, err := catalog.IsRaster(ctx, file); err != nil || !is {
		return nil, err
	}
	o := opened(file)
	asset, meta, err := catalog.OpenAsset(ctx, o, name, 0)
	if err != nil {
		return nil, bare(err)
	}
	index := asset.Index
	raster := &Raster{Shape: [3]int{index.Bands, index.Height, index.Width}, EPSG: meta.EPSG,
		LonLat: [2]float64{math.NaN(), math.NaN()}}
	// Headers are kept only for the columns that have them, because a container may have a million.
	if c.names["index"] {
		raster.Index, raster.Names = meta.Kept(index), catalog.NamesText(asset.Names)
	}
	if meta.Transform != nil {
		raster.Placed, raster.Transform = true, *meta.Transform
		raster.centre()
	}
	if meta.Format == magic.TIFF && c.names["header"] {
		raster.header = headerOf(index)
	}
	if c.names["scaling"] {
		m, err := convert.ReadMeta(ctx, name, o)
		if err != nil {
			return nil, bare(err)
		}
		raster.factors, raster.offsets = scales(m.Bands, index.Bands)
	}
	return raster, nil
}

// centre sets the longitude and latitude of the centre, if the CRS is known.
func (r *Raster) centre() {
	system, ok := crs.ByCode(r.EPSG)
	if !ok {
		return
	}
	points := []crs.Point{crs.At(&r.Transform, float64(r.Shape[2])/2, float64(r.Shape[1])/2)}
	system.Inverse(points, points)
	// Rounded to 0.1 mm, because package crs may differ in the last bits from one machine to the next.
	lon, lat := math.Round(points[0][0]*1e9)/1e9, math.Round(points[0][1]*1e9)/1e9
	if math.Abs(lon) <= 180 && math.Abs(lat) <= 90 {
		r.LonLat = [2]float64{lon, lat}
	}
}

// TACOTIFF's header: see headerOf.
const (
	headerMagic   = 0x45564F4C // "LOVE"
	headerVersion = 1
	// headerGap is what GDAL writes between the tiles of a COG: the size of the next in 4 bytes, and the last 4 bytes
	// of the one before again.
	headerGap = 8
)

// headerOf returns taco:header, with which readers of TACOTIFF skip the directory of a TIFF: its size, tiles and dtype,
// the place of the first tile, and the length of each. It is nil if the file is not as these readers take it to be:
// zstd, and one tile behind the other with headerGap between them.
func headerOf(x *chunk.Index) []byte {
	formats := map[chunk.DType]byte{chunk.Uint8: 1, chunk.Uint16: 1, chunk.Uint32: 1, chunk.Uint64: 1, chunk.Int8: 2,
		chunk.Int16: 2, chunk.Int32: 2, chunk.Int64: 2, chunk.Float16: 3, chunk.Float32: 3, chunk.Float64: 3}
	format := formats[x.DType]
	plain := x.Codec == chunk.Zstd && !x.CutEdge && !x.BigEndian && x.Packed == 0
	if !plain || format == 0 || len(x.Ranges) == 0 || max(x.ChunkH, x.ChunkW, x.Bands) > math.MaxUint16 {
		return nil
	}
	buf := binary.LittleEndian.AppendUint32(nil, headerMagic)
	buf = binary.LittleEndian.AppendUint16(buf, headerVersion)
	buf = binary.LittleEndian.AppendUint32(buf, uint32(x.Width))
	buf = binary.LittleEndian.AppendUint32(buf, uint32(x.Height))
	buf = binary.LittleEndian.AppendUint16(buf, uint16(x.ChunkW))
	buf = binary.LittleEndian.AppendUint16(buf, uint16(x.ChunkH))
	buf = binary.LittleEndian.AppendUint16(buf, uint16(x.Bands))
	buf = append(buf, byte(x.DType.Bits()), format, byte(x.Predictor))
	buf = binary.LittleEndian.AppendUint64(buf, uint64(x.Ranges[0].Off))
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(x.Ranges)))
	next := x.Ranges[0].Off
	for _, span := range x.Ranges {
		if span.Len == 0 || span.Len > math.MaxUint32 || span.Off != next {
			return nil
		}
		buf = binary.LittleEndian.AppendUint32(buf, uint32(span.Len))
		next = span.Off + span.Len + headerGap
	}
	return buf
}

// scales returns the factor and the offset of each of n bands, nil if no band has one. value = sample·factor + offset.
func scales(bands []tiff.Band, n int) (factors, offsets []float64) {
	some := false
	for i := range bands {
		band := &bands[i]
		factor, offset := 1.0, 0.0
		if band.Scale != nil && *band.Scale != 0 {
			factor = *band.Scale
		}
		if band.Offset != nil {
			offset = *band.Offset
		}
		some = some || factor != 1 || offset != 0
		factors, offsets = append(factors, factor), append(offsets, offset)
	}
	if !some || len(factors) != n {
		return nil, nil
	}
	return factors, offsets
}

// scaling returns what makes the column of factors or offsets: one number for each row if all bands of each raster have
// the same of both, else lists.
func scaling(of func(factors, offsets []float64) []float64) func(rasters []*Raster) *tables.Vector {
	return func(rasters []*Raster) *tables.Vector {
		column := func(n int, values func(i int) []float64) *tables.Vector { return single(float32Type, n, values) }
		for _, r := range rasters {
			if r != nil && (!same(r.factors) || !same(r.offsets)) {
				column = float32s
			}
		}
		return each(column, func(r *Raster) []float64 { return of(r.factors, r.offsets) })(rasters)
	}
}

// same reports whether all numbers are equal.
func same(numbers []float64) bool { return len(slices.Compact(slices.Clone(numbers))) <= 1 }

// name is the name of a file while it is read, which a source.OpenOne ignores.
const name = "raster"

// opened opens a file that is open already.
func opened(r source.Reader) source.OpenOne {
	return func(context.Context) (source.Reader, error) { return unclosed{r}, nil }
}

// unclosed is a reader whose owner closes it.
type unclosed struct{ source.Reader }

// Close implements source.Reader.
func (unclosed) Close() error { return nil }

// Gap implements source.Gapped, ETag source.Tagged. Both ask the file.
func (u unclosed) Gap() int64   { return source.Gap(u.Reader) }
func (u unclosed) ETag() string { return source.ETag(u.Reader) }

// bare returns an error without the name of an opened file.
func bare(err error) error {
	var e *fault.Error
	if !errors.As(err, &e) || e.File != name {
		return err
	}
	f := *e
	f.File = ""
	return &f
}

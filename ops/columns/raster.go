package columns

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/crs"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tiff"
)

// raster is the data that Compute has of a file.
type raster struct {
	Raster
	lonlat [2]float64 // of the centre; NaN if it is not known
	index  []byte
	rumi   bool   // index is a rumi header
	names  string // of the bands, as catalog.NamesText writes them
	header []byte // taco:header, nil if the file is not a TACOTIFF
	bands  []tiff.Band
	pixels []float64 // the statistics of all valid pixels of a rumi file, see Set.rumi; nil without one
}

// at returns the centre. r may be nil.
func (r *raster) at() [2]float64 {
	if r == nil {
		return [2]float64{math.NaN(), math.NaN()}
	}
	return r.lonlat
}

// tacoHeader returns taco:header. r may be nil.
func (r *raster) tacoHeader() []byte {
	if r == nil {
		return nil
	}
	return r.header
}

// raster reads a file, and returns nil if it is not a raster. below and path are its ids.
func (c *Compute) raster(ctx context.Context, s *space, file source.Reader, below, path string) (*raster, error) {
	r, err := c.read(ctx, s, opened{file}, below)
	if err != nil {
		return nil, fault.WithPart(err, fmt.Sprintf("sample %q", path), fault.NoOffset)
	}
	return r, nil
}

func (c *Compute) read(ctx context.Context, s *space, o opened, below string) (*raster, error) {
	if !catalog.IsRaster(ctx, o.r) {
		return nil, nil
	}
	asset, meta, err := catalog.OpenAsset(ctx, o, name, 0)
	if err != nil {
		return nil, bare(err)
	}
	index := asset.Index
	r := &raster{}
	if c.names["index"] || c.names["rumi"] { // a container may have a million
		r.index = meta.Kept(index)
		r.rumi = rumi.IsBlob(r.index)
		r.names = catalog.NamesText(asset.Names)
	}
	if r.rumi && c.names["rumi"] {
		if r.pixels, err = s.pooled(ctx, o, index, r.index); err != nil {
			return nil, bare(err)
		}
	}
	r.Shape, r.EPSG = [3]int{index.Bands, index.Height, index.Width}, meta.EPSG
	r.lonlat = (*raster)(nil).at()
	if meta.Transform != nil {
		r.Placed, r.Transform = true, *meta.Transform
		r.centre()
	}
	if meta.Format == catalog.FormatTIFF && c.names["header"] {
		r.header = headerOf(index)
	}
	if c.names["scaling"] {
		m, err := convert.ReadMeta(ctx, name, o)
		if err != nil {
			return nil, bare(err)
		}
		r.bands = m.Bands
	}
	if !c.names["stats"] {
		return r, nil
	}
	if r.Stats, err = c.statistics(ctx, s, o, &asset, meta.Kept(index), c.Classes[below]); err != nil {
		return nil, bare(err)
	}
	r.scale(c.Classes[below] != nil)
	return r, nil
}

// centre sets the longitude and latitude of the centre, if the CRS is known. Package crs may differ in the last bits
// from one machine to the next; 1e-9 degrees are 0.1 mm.
func (r *raster) centre() {
	system, ok := crs.ByCode(r.EPSG)
	if !ok {
		return
	}
	points := []crs.Point{crs.At(&r.Transform, float64(r.Shape[2])/2, float64(r.Shape[1])/2)}
	system.Inverse(points, points)
	lon, lat := math.Round(points[0][0]*1e9)/1e9, math.Round(points[0][1]*1e9)/1e9
	if math.Abs(lon) <= 180 && math.Abs(lat) <= 90 {
		r.lonlat = [2]float64{lon, lat}
	}
}

// footprint returns the outline of the raster as WKB, in its CRS: a polygon (type 3) of one ring, whose first corner is
// repeated at the end. It begins at the upper left and turns against the clock where north is up, as GeoJSON wants.
func (r *raster) footprint() []byte {
	h, w := float64(r.Shape[1]), float64(r.Shape[2])
	buf := []byte{1, 3, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0}
	for _, corner := range [...][2]float64{{0, 0}, {0, h}, {w, h}, {w, 0}, {0, 0}} {
		for _, v := range crs.At(&r.Transform, corner[0], corner[1]) {
			buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(v))
		}
	}
	return buf
}

// statistics returns geotiff:stats of a raster: nil if no pixel is valid.
func (c *Compute) statistics(ctx context.Context, s *space, o opened, as *catalog.Asset, header []byte,
	classes []int64) ([][]float64, error) {
	array, err := s.read(ctx, o, as.Index, header)
	if err != nil {
		return nil, err
	}
	defer array.Release()
	return s.bands.Image(array.Data, array.Valid, array.DType, array.Shape[0], classes)
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

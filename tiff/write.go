package tiff

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// TOGOptions say what WriteTOG writes. A zero field means its default, where it has one.
type TOGOptions struct {
	Shape [3]int      // bands, height, width
	DType chunk.DType // any that TIFF has

	Tile      int             // edge of a tile in pixels, a multiple of 16. Default 512
	Level     int             // zstd level, 1 to 22, mapped to the encoder's nearest. Default 13
	Predictor chunk.Predictor // default as GDAL's PREDICTOR=YES: 2 for integers, 3 for float32 and float64, else 1

	Geo       Geo      // where the image lies; the zero Geo for nowhere
	NoData    string   // GDAL_NODATA, as text; empty for none
	BandNames []string // one a band, empty ones left out; nil for none

	// GDALMetadata is written as it is; it should have the INTERLEAVE item. Default: XML with the
	// names of the bands and that item.
	GDALMetadata string

	Workers int // tiles compressed at the same time; the file does not depend on it. Default 1
	// Progress, if not nil, is called after every compressed tile, from one goroutine at a time. An error
	// ends the work and is returned.
	Progress func(done, total int) error

	Photometric  uint16   // default 1, black is zero; 2 for RGB
	ExtraSamples []uint16 // meaning of the bands past the colours. Default: all 0, unspecified
}

func (o TOGOptions) withDefaults() TOGOptions {
	if o.Tile == 0 {
		o.Tile = 512
	}
	if o.Level == 0 {
		o.Level = 13
	}
	if o.Predictor == 0 {
		o.Predictor = defaultPredictor(o.DType)
	}
	if o.Photometric == 0 {
		o.Photometric = 1
	}
	if o.GDALMetadata == "" {
		o.GDALMetadata = formatGDALMetadata(o.BandNames)
	}
	if o.ExtraSamples == nil {
		o.ExtraSamples = make([]uint16, max(0, o.Shape[0]-o.colours()))
	}
	return o
}

// colours is the number of bands that Photometric speaks of.
func (o *TOGOptions) colours() int {
	if o.Photometric == 2 {
		return 3
	}
	return 1
}

func defaultPredictor(d chunk.DType) chunk.Predictor {
	switch {
	case d == chunk.Float32 || d == chunk.Float64:
		return chunk.FloatingPoint
	case d.Components() > 1 || d == chunk.Float16:
		return chunk.NoPredictor
	}
	return chunk.Horizontal
}

// validate checks options that have their defaults, and the size of the pixels.
func (o *TOGOptions) validate(pixels int) error {
	b, h, w := o.Shape[0], o.Shape[1], o.Shape[2]
	format, _ := FormatOf(o.DType)
	float := o.DType == chunk.Float16 || o.DType == chunk.Float32 || o.DType == chunk.Float64
	switch {
	case format == 0:
		return fmt.Errorf("tog: %v samples cannot be stored", o.DType)
	case b < 1 || b > math.MaxUint16 || h < 1 || h > chunk.MaxSide || w < 1 || w > chunk.MaxSide:
		return fmt.Errorf("tog: image of shape %v", o.Shape)
	case h > math.MaxInt/w/b/o.DType.Size() || pixels != b*h*w*o.DType.Size():
		return fmt.Errorf("tog: %d bytes for an image of shape %v of %v", pixels, o.Shape, o.DType)
	case o.Tile < 16 || o.Tile%16 != 0 || o.Tile > math.MaxUint16:
		return fmt.Errorf("tog: tiles of %d pixels, not a multiple of 16", o.Tile)
	case o.Level < 1 || o.Level > 22:
		return fmt.Errorf("tog: zstd level %d", o.Level)
	case o.Predictor > chunk.FloatingPoint || o.Predictor == chunk.FloatingPoint && !float ||
		o.Predictor == chunk.Horizontal && o.DType.Components() > 1:
		return fmt.Errorf("tog: predictor %d for %v samples", o.Predictor, o.DType)
	case o.BandNames != nil && len(o.BandNames) != b:
		return fmt.Errorf("tog: %d names for %d bands", len(o.BandNames), b)
	case len(o.ExtraSamples) != max(0, b-o.colours()):
		return fmt.Errorf("tog: %d extra samples for %d bands", len(o.ExtraSamples), b)
	}
	return nil
}

// WriteTOG writes an image as a TACO optimized GeoTIFF, laid out as GDAL's COG driver does with
// INTERLEAVE=TILE, COMPRESS=ZSTD, BIGTIFF=YES and OVERVIEWS=NONE. pixels are little-endian samples of
// shape (bands, height, width) in C order. The compressed tiles are held in memory until the
// directory, which stands before them, is written. Tiles at the edges are padded with zeros.
func WriteTOG(w io.Writer, pixels []byte, o TOGOptions) error {
	o = o.withDefaults()
	if err := o.validate(len(pixels)); err != nil {
		return err
	}
	x := &chunk.Index{
		Bands: o.Shape[0], Height: o.Shape[1], Width: o.Shape[2], ChunkB: 1, ChunkH: o.Tile, ChunkW: o.Tile,
		DType: o.DType, Codec: chunk.Zstd, Predictor: o.Predictor,
	}
	data, sizes, err := compressTiles(pixels, x, &o)
	if err != nil {
		return err
	}
	area := ghostArea(x.Bands)
	dir := int64(16 + len(area))
	fields := togFields(x, &o, sizes)
	setOffsets(fields, x, sizes, ifd.End(dir, fields))
	head := append(ifd.AppendHeader(nil, dir), area...)
	for _, b := range [][]byte{ifd.AppendDirectory(head, dir, fields), data} {
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

const (
	leader  = 4 // before a tile: its size as uint32
	trailer = 4 // after it: its last 4 bytes again
)

// compressTiles returns the data part of the file, leaders and trailers included, and the
// compressed size of each tile, both in the order of the index.
func compressTiles(pixels []byte, x *chunk.Index, o *TOGOptions) (data []byte, sizes []int, err error) {
	tiles := make([][]byte, x.Across()*x.Down()*x.Groups())
	var g errgroup.Group
	var next, done int // guarded by mu
	var mu sync.Mutex
	take := func() int {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1
	}
	finish := func() (err error) {
		mu.Lock()
		defer mu.Unlock()
		if done++; o.Progress != nil {
			if err = o.Progress(done, len(tiles)); err != nil {
				next = len(tiles) // the others stop too
			}
		}
		return err
	}
	for range max(1, min(o.Workers, len(tiles))) {
		g.Go(func() error {
			enc, level, err := encoder(o.Level)
			if err != nil {
				return err
			}
			defer encoders[level].Put(enc)
			size := x.DType.Size()
			tile, row := make([]byte, x.MaxStoredBytes()), make([]byte, x.ChunkW*size)
			for i := take(); i < len(tiles); i = take() {
				cutTile(tile, pixels, x, x.Box(i))
				predict(tile, x.Predictor, x.ChunkW, size, row)
				if tiles[i] = enc.EncodeAll(tile, nil); int64(len(tiles[i])) > math.MaxUint32 {
					return fmt.Errorf("tog: tile %d of %d bytes", i, len(tiles[i]))
				}
				if err := finish(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	data, sizes = joinTiles(tiles)
	return data, sizes, nil
}

// encoders keeps encoders by level from file to file: the tables of one take tens of MB.
var encoders [zstd.SpeedBestCompression + 1]sync.Pool

// encoder returns an encoder for a zstd level, and the pool it goes back to.
func encoder(level int) (*zstd.Encoder, zstd.EncoderLevel, error) {
	l := zstd.EncoderLevelFromZstd(level)
	if enc, ok := encoders[l].Get().(*zstd.Encoder); ok {
		return enc, l, nil
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(l), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	return enc, l, err
}

// joinTiles puts the tiles one behind the other, each between its leader and its trailer.
func joinTiles(tiles [][]byte) (data []byte, sizes []int) {
	n := 0
	sizes = make([]int, len(tiles))
	for i, t := range tiles {
		sizes[i] = len(t)
		n += leader + len(t) + trailer
	}
	data = make([]byte, 0, n)
	for _, t := range tiles {
		data = binary.LittleEndian.AppendUint32(data, uint32(len(t)))
		data = append(data, t...)
		data = append(data, t[len(t)-trailer:]...) // a zstd frame has at least 6 bytes
	}
	return data, sizes
}

// cutTile copies a box of one band to the upper left of a tile; the rest becomes 0.
func cutTile(tile, pixels []byte, x *chunk.Index, box chunk.Box) {
	size := x.DType.Size()
	n := (box.X1 - box.X0) * size
	clear(tile)
	for y := box.Y0; y < box.Y1; y++ {
		from := ((box.B0*x.Height+y)*x.Width + box.X0) * size
		copy(tile[(y-box.Y0)*x.ChunkW*size:], pixels[from:from+n])
	}
}

// ghostArea is GDAL's structural metadata, between header and directory. Its INTERLEAVE is BAND
// for every planar file.
func ghostArea(bands int) []byte {
	interleave := ""
	if bands > 1 {
		interleave = "INTERLEAVE=BAND\n"
	}
	lines := "LAYOUT=IFDS_BEFORE_DATA\nBLOCK_ORDER=ROW_MAJOR\nBLOCK_LEADER=SIZE_AS_UINT4\n" +
		"BLOCK_TRAILER=LAST_4_BYTES_REPEATED\n" + interleave + "KNOWN_INCOMPATIBLE_EDITION=NO\n " // the blank leaves room for YES
	area := fmt.Appendf(nil, "%s%06d bytes\n%s", ghostKey, len(lines), lines)
	if len(area)%2 == 1 {
		area = append(area, 0)
	}
	return area
}

// togFields returns the tags in the order in which GDAL stores their values; tile offsets are 0.
func togFields(x *chunk.Index, o *TOGOptions, sizes []int) []ifd.Field {
	format, bits := FormatOf(x.DType)
	fields := []ifd.Field{
		side(tagImageWidth, x.Width), side(tagImageLength, x.Height),
		ifd.Shorts(tagBitsPerSample, slices.Repeat([]uint16{bits}, x.Bands)...),
		ifd.Shorts(tagCompression, compZstd),
		ifd.Shorts(tagPhotometric, o.Photometric),
		ifd.Shorts(tagSamplesPerPixel, uint16(x.Bands)),
		ifd.Shorts(tagPlanarConfig, 2),
		ifd.Shorts(tagPredictor, uint16(x.Predictor)),
		side(tagTileWidth, x.ChunkW), side(tagTileLength, x.ChunkH),
	}
	if len(o.ExtraSamples) > 0 {
		fields = append(fields, ifd.Shorts(tagExtraSamples, o.ExtraSamples...))
	}
	fields = append(fields, ifd.Shorts(tagSampleFormat, slices.Repeat([]uint16{format}, x.Bands)...),
		ifd.Text(tagGDALMetadata, o.GDALMetadata))
	if o.NoData != "" {
		fields = append(fields, ifd.Text(tagGDALNoData, o.NoData))
	}
	fields = append(fields, o.Geo.Fields()...)
	for i := range fields {
		fields[i].Align = 2
	}
	return append(fields, ifd.Long8s(tagTileOffsets, make([]uint64, len(sizes))...), byteCounts(x, sizes))
}

// side is a width or height: SHORT where that is enough.
func side(tag uint16, v int) ifd.Field {
	if v <= math.MaxUint16 {
		return ifd.Shorts(tag, uint16(v))
	}
	return ifd.Longs(tag, uint32(v))
}

// planeMajor brings one number a tile into the order of TIFF's arrays: all of band 0, then all of
// band 1, ….
func planeMajor[T any](x *chunk.Index, of func(i int) T) []T {
	n := x.Across() * x.Down() * x.Bands
	s := make([]T, n)
	for i := range n {
		s[i%x.Bands*(n/x.Bands)+i/x.Bands] = of(i)
	}
	return s
}

// byteCounts is the TileByteCounts field. As libtiff does, it takes SHORT where a tile of ten times its
// decoded size would still fit, LONG8 for a single tile, else LONG.
func byteCounts(x *chunk.Index, sizes []int) ifd.Field {
	switch {
	case len(sizes) == 1:
		return ifd.Long8s(tagTileByteCounts, uint64(sizes[0]))
	case x.MaxStoredBytes() < math.MaxUint16/10 && slices.Max(sizes) <= math.MaxUint16:
		return ifd.Shorts(tagTileByteCounts, planeMajor(x, func(i int) uint16 { return uint16(sizes[i]) })...)
	}
	return ifd.Longs(tagTileByteCounts, planeMajor(x, func(i int) uint32 { return uint32(sizes[i]) })...)
}

// setOffsets fills TileOffsets for data that starts at off.
func setOffsets(fields []ifd.Field, x *chunk.Index, sizes []int, off int64) {
	at := make([]uint64, len(sizes))
	for i, n := range sizes {
		at[i] = uint64(off) + leader
		off += int64(leader + n + trailer)
	}
	for i := range fields {
		if fields[i].Tag == tagTileOffsets {
			fields[i] = ifd.Long8s(tagTileOffsets, planeMajor(x, func(i int) uint64 { return at[i] })...)
		}
	}
}

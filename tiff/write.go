package tiff

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"sync"

	"github.com/klauspost/compress/zlib"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/each"
	"github.com/chaski-eo/chaski/internal/zstd"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// TOGOptions are the options of WriteTOG. A zero field means its default, if it has one.
type TOGOptions struct {
	Shape [3]int      // bands, height, width
	DType chunk.DType // any that TIFF has

	Tile      int             // edge of a tile in pixels, a multiple of 16. Default 512
	Level     int             // zstd level, 1 to 22, as in openzl.EncodeOptions. Default 13
	Predictor chunk.Predictor // default as GDAL's PREDICTOR=YES: 2 for integers, 3 for float32 and float64, else 1

	Geo       Geo      // georeferencing; the zero Geo for none
	NoData    string   // GDAL_NODATA, as a string; empty for none
	BandNames []string // one per band, empty names are left out; nil for none

	// GDALMetadata is written as it is; FormatGDALMetadata builds it. The default holds the names of the
	// bands.
	GDALMetadata string

	Workers int // tiles compressed concurrently; the file does not depend on it. Default 1
	// Progress, if not nil, is called after every compressed tile, by one goroutine at a time. WriteTOG
	// stops at its error and returns it.
	Progress func(done, total int) error

	// Photometric is TIFF's PhotometricInterpretation: 1 black is zero (default), 2 RGB, 3 palette (with a
	// ColorMap in Tags), 5 CMYK. WhiteIsZero writes TIFF's 0 instead.
	Photometric  uint16
	WhiteIsZero  bool
	ExtraSamples []uint16 // meaning of the bands past the colours. Default: all 0, unspecified

	// Mask has one byte per pixel of shape (height, width), 0 for pixels without data; nil for no mask. The
	// file stores it as an internal mask of GDAL: one bit per pixel.
	Mask []byte
	// Overviews must come from the largest to the smallest. A TOG has none.
	Overviews []Overview
	// Tags are further tags of the image, written as they are. They must not be tags that other options
	// write.
	Tags []ifd.Field
}

// Overview is a reduced version of an image, of the same bands and samples.
type Overview struct {
	Height, Width int
	Pixels        []byte // in the form of the image's pixels
	Mask          []byte // in the form of the image's mask; nil for none
}

func (o TOGOptions) withDefaults() TOGOptions {
	o.Tile = cmp.Or(o.Tile, 512)
	o.Level = cmp.Or(o.Level, 13)
	if o.Predictor == 0 {
		o.Predictor = defaultPredictor(o.DType)
	}
	o.Photometric = cmp.Or(o.Photometric, 1)
	if o.GDALMetadata == "" {
		o.GDALMetadata = FormatGDALMetadata(DescriptionItems(o.BandNames))
	}
	if o.ExtraSamples == nil {
		o.ExtraSamples = make([]uint16, max(0, o.Shape[0]-coloursOf(o.Photometric)))
	}
	return o
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

// validate checks options whose defaults are filled in, and the size of the pixels.
func (o *TOGOptions) validate(pixels int) error {
	b, h, w := o.Shape[0], o.Shape[1], o.Shape[2]
	format, _ := FormatOf(o.DType)
	float := o.DType == chunk.Float16 || o.DType == chunk.Float32 || o.DType == chunk.Float64
	switch {
	case format == 0:
		return fmt.Errorf("tog: %v samples cannot be stored", o.DType)
	case min(b, h, w) < 1 || b > math.MaxUint16 || max(h, w) > chunk.MaxSide:
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
	case len(o.ExtraSamples) != max(0, b-coloursOf(o.Photometric)):
		return fmt.Errorf("tog: %d extra samples for %d bands", len(o.ExtraSamples), b)
	case o.Mask != nil && len(o.Mask) != h*w:
		return fmt.Errorf("tog: a mask of %d bytes for an image of %d by %d", len(o.Mask), h, w)
	}
	for i, overview := range o.Overviews {
		if min(overview.Height, overview.Width) < 1 || overview.Height > h || overview.Width > w ||
			len(overview.Pixels) != b*overview.Height*overview.Width*o.DType.Size() ||
			overview.Mask != nil && len(overview.Mask) != overview.Height*overview.Width {
			return fmt.Errorf("tog: overview %d: %d bytes and a mask of %d for %d by %d pixels", i,
				len(overview.Pixels), len(overview.Mask), overview.Height, overview.Width)
		}
		h, w = overview.Height, overview.Width
	}
	for i, field := range o.Tags {
		if slices.Contains(written, field.Tag) || slices.ContainsFunc(o.Tags[:i],
			func(g ifd.Field) bool { return g.Tag == field.Tag }) {
			return fmt.Errorf("tog: tag %d is written twice", field.Tag)
		}
	}
	return nil
}

// written are the tags that options other than Tags write.
var written = []uint16{
	ifd.TagNewSubfileType, ifd.TagImageWidth, ifd.TagImageLength, ifd.TagBitsPerSample, ifd.TagCompression,
	ifd.TagPhotometric, ifd.TagSamplesPerPixel, ifd.TagPlanarConfig, ifd.TagPredictor, ifd.TagTileWidth,
	ifd.TagTileLength, ifd.TagTileOffsets, ifd.TagTileByteCounts, ifd.TagExtraSamples, ifd.TagSampleFormat,
	ifd.TagGDALMetadata, ifd.TagGDALNoData,
}

// WriteTOG writes an image as a TACO optimized GeoTIFF, laid out as GDAL's COG driver does with
// INTERLEAVE=TILE, COMPRESS=ZSTD, BIGTIFF=YES and OVERVIEWS=NONE, or with the overviews of the options.
// pixels are little-endian samples of shape (bands, height, width) in C order. Tiles at the edges are
// padded with zeros. All compressed tiles are in memory at once, because the directories, which hold
// their offsets, precede them in the file.
func WriteTOG(w io.Writer, pixels []byte, o TOGOptions) error {
	o = o.withDefaults()
	if err := o.validate(len(pixels)); err != nil {
		return err
	}
	layers := o.layers(pixels)
	if err := compress(layers, &o); err != nil {
		return err
	}
	var parts []*imagePart // in the order of their directories
	for _, l := range layers {
		parts = append(parts, l.image)
	}
	// The order of GDAL: the mask of the full image is the second directory, masks of overviews come last.
	pos := 1
	for _, l := range layers {
		if l.mask != nil {
			parts = slices.Insert(parts, pos, l.mask)
		}
		pos = len(parts)
	}
	area := ghostArea(o.Shape[0])
	dirs := make([]int64, len(parts)+1)
	dirs[0] = int64(16 + len(area))
	for i, p := range parts {
		dirs[i+1] = ifd.End(dirs[i], p.fields(&o))
		if i+1 < len(parts) {
			// A directory needs to begin at an even offset (TIFF 6.0, section 2).
			dirs[i+1] += dirs[i+1] % 2
		}
	}
	place(layers, dirs[len(parts)])
	head := append(ifd.AppendHeader(nil, dirs[0]), area...)
	for i, part := range parts {
		next := dirs[i+1]
		if i+1 == len(parts) {
			next = 0
		}
		head = append(head, make([]byte, dirs[i]-int64(len(head)))...)
		head = ifd.AppendDirectoryBefore(head, dirs[i], next, part.fields(&o))
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	var b []byte
	return eachTile(layers, func(p *imagePart, i int) error {
		t := p.tiles[i]
		b = binary.LittleEndian.AppendUint32(b[:0], uint32(len(t)))
		// The slice cannot fail, because zstd frames and zlib streams have at least 6 bytes.
		b = append(append(b, t...), t[len(t)-trailer:]...)
		_, err := w.Write(b)
		return err
	})
}

const (
	// The ghost area promises these, so readers can find a tile's end without TileByteCounts.
	leader  = 4 // before a tile: its size as uint32
	trailer = 4 // after it: its last 4 bytes again
)

// imagePart is an image or a mask, which has a directory of its own.
type imagePart struct {
	x       *chunk.Index
	pixels  []byte
	subfile uint32   // NewSubfileType
	tiles   [][]byte // compressed, in the order of the index
	offs    []uint64 // their offsets, in the same order
}

// maskedLayer is the full image or an overview, with its mask. The tiles of the mask lie between the tiles of the
// image.
type maskedLayer struct{ image, mask *imagePart }

// layers returns the full image, then the overviews.
func (o *TOGOptions) layers(pixels []byte) []maskedLayer {
	levels := append([]Overview{{Height: o.Shape[1], Width: o.Shape[2], Pixels: pixels, Mask: o.Mask}}, o.Overviews...)
	layers := make([]maskedLayer, len(levels))
	for i, overview := range levels {
		reduced := uint32(0)
		if i > 0 {
			reduced = subfileReduced
		}
		grid := chunk.Index{Height: overview.Height, Width: overview.Width, ChunkB: 1, ChunkH: o.Tile, ChunkW: o.Tile}
		image, mask := grid, grid
		image.Bands, image.DType, image.Codec, image.Predictor = o.Shape[0], o.DType, chunk.Zstd, o.Predictor
		layers[i].image = &imagePart{x: &image, pixels: overview.Pixels, subfile: reduced}
		if overview.Mask != nil {
			mask.Bands, mask.DType, mask.Codec, mask.Predictor, mask.Bits = 1, chunk.Uint8, chunk.Deflate,
				chunk.NoPredictor, true
			layers[i].mask = &imagePart{x: &mask, pixels: overview.Mask, subfile: reduced | subfileMask}
		}
	}
	for _, l := range layers {
		for _, p := range []*imagePart{l.image, l.mask} {
			if p != nil {
				n := p.x.Across() * p.x.Down() * p.x.Groups()
				p.tiles, p.offs = make([][]byte, n), make([]uint64, n)
			}
		}
	}
	return layers
}

// eachTile visits the tiles in the order of the file: the smallest overview first, as in GDAL, and at each
// position all bands, then the mask.
func eachTile(layers []maskedLayer, visit func(p *imagePart, i int) error) error {
	for _, layer := range slices.Backward(layers) {
		groups := layer.image.x.Groups()
		for i := range layer.image.tiles {
			if err := visit(layer.image, i); err != nil {
				return err
			}
			if layer.mask != nil && i%groups == groups-1 {
				if err := visit(layer.mask, i/groups); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// place sets the offsets of the tiles, which follow each other from off on.
func place(layers []maskedLayer, off int64) {
	eachTile(layers, func(p *imagePart, i int) error { //nolint:errcheck // visit returns none
		p.offs[i] = uint64(off) + leader
		off += int64(leader + len(p.tiles[i]) + trailer)
		return nil
	})
}

// compress fills in the tiles of all parts.
func compress(layers []maskedLayer, o *TOGOptions) error {
	type job struct {
		p *imagePart
		i int
	}
	var jobs []job
	eachTile(layers, func(p *imagePart, i int) error { //nolint:errcheck // visit returns none
		jobs = append(jobs, job{p, i})
		return nil
	})
	// mu guards done, and ensures that Progress is called by one goroutine at a time, with done rising.
	var mu sync.Mutex
	done := 0
	finish := func() error {
		mu.Lock()
		defer mu.Unlock()
		if done++; o.Progress == nil {
			return nil
		}
		return o.Progress(done, len(jobs))
	}
	work := func(_ context.Context, _ int, mine iter.Seq[job]) error {
		c := compressor{level: o.Level, row: make([]byte, o.Tile*o.DType.Size())}
		for j := range mine {
			tile, err := c.tile(j.p, j.i)
			if err != nil {
				return err
			}
			if int64(len(tile)) > math.MaxUint32 {
				return fmt.Errorf("tog: tile %d of %d bytes", j.i, len(tile))
			}
			j.p.tiles[j.i] = tile
			if err := finish(); err != nil {
				return err
			}
		}
		return nil
	}
	return each.Share(context.Background(), slices.Values(jobs), min(o.Workers, len(jobs)), work)
}

// compressor is the memory of one worker.
type compressor struct {
	level    int
	zlib     *zlib.Writer // of masks; made when first used
	raw, row []byte
	out      []byte
}

// tile returns tile i of a part, compressed.
func (c *compressor) tile(p *imagePart, i int) ([]byte, error) {
	n := p.x.MaxDecodedBytes()
	c.raw = slices.Grow(c.raw[:0], n)[:n]
	cutTile(c.raw, p.pixels, p.x, p.x.Box(i))
	if !p.x.Bits {
		predict(c.raw, p.x.Predictor, p.x.ChunkW, p.x.DType.Size(), c.row)
		c.out = zstd.Append(c.out[:0], c.raw, c.level)
		return slices.Clone(c.out), nil
	}
	var b bytes.Buffer
	if c.zlib == nil {
		c.zlib = zlib.NewWriter(&b)
	}
	c.zlib.Reset(&b)
	if _, err := c.zlib.Write(packBits(c.raw)); err != nil {
		return nil, err
	}
	err := c.zlib.Close()
	return b.Bytes(), err
}

// packBits packs bytes, 0 or not, to bits in place, most significant first. Rows begin at whole bytes,
// because the width of a tile is a multiple of 8.
func packBits(b []byte) []byte {
	for i := range len(b) / 8 {
		var v byte
		for _, pixel := range b[8*i : 8*i+8] {
			if v <<= 1; pixel != 0 {
				v |= 1
			}
		}
		b[i] = v
	}
	return b[:len(b)/8]
}

// cutTile copies a box of one band to the upper left of a tile and clears the rest.
func cutTile(tile, pixels []byte, x *chunk.Index, box chunk.Box) {
	size := x.DType.Size()
	n := (box.X1 - box.X0) * size
	clear(tile)
	for y := box.Y0; y < box.Y1; y++ {
		start := ((box.B0*x.Height+y)*x.Width + box.X0) * size
		copy(tile[(y-box.Y0)*x.ChunkW*size:], pixels[start:start+n])
	}
}

// ghostArea returns GDAL's structural metadata, which lies between header and directory. Its INTERLEAVE is
// BAND for every planar file.
func ghostArea(bands int) []byte {
	interleave := ""
	if bands > 1 {
		interleave = "INTERLEAVE=BAND\n"
	}
	lines := "LAYOUT=IFDS_BEFORE_DATA\nBLOCK_ORDER=ROW_MAJOR\nBLOCK_LEADER=SIZE_AS_UINT4\n" +
		"BLOCK_TRAILER=LAST_4_BYTES_REPEATED\n" + interleave +
		"KNOWN_INCOMPATIBLE_EDITION=NO\n " // the space leaves room for YES
	area := fmt.Appendf(nil, "%s%06d bytes\n%s", ghostKey, len(lines), lines)
	if len(area)%2 == 1 {
		area = append(area, 0)
	}
	return area
}

// fields returns the tags of a part in the order in which GDAL stores their values.
func (p *imagePart) fields(o *TOGOptions) []ifd.Field {
	index := p.x
	format, bits := FormatOf(index.DType)
	codec, photometric, planar := uint16(compZstd), o.Photometric, uint16(2)
	if o.WhiteIsZero {
		photometric = photometricWhiteIsZero
	}
	if index.Bits {
		bits, codec, photometric, planar = 1, compDeflate, photometricMask, 1
	}
	var fields []ifd.Field
	if p.subfile != 0 {
		fields = append(fields, ifd.Longs(ifd.TagNewSubfileType, p.subfile))
	}
	fields = append(fields, side(ifd.TagImageWidth, index.Width), side(ifd.TagImageLength, index.Height),
		ifd.Shorts(ifd.TagBitsPerSample, slices.Repeat([]uint16{bits}, index.Bands)...),
		ifd.Shorts(ifd.TagCompression, codec),
		ifd.Shorts(ifd.TagPhotometric, photometric),
		ifd.Shorts(ifd.TagSamplesPerPixel, uint16(index.Bands)),
		ifd.Shorts(ifd.TagPlanarConfig, planar),
		ifd.Shorts(ifd.TagPredictor, uint16(index.Predictor)),
		side(ifd.TagTileWidth, index.ChunkW), side(ifd.TagTileLength, index.ChunkH))
	if !index.Bits && len(o.ExtraSamples) > 0 {
		fields = append(fields, ifd.Shorts(ifd.TagExtraSamples, o.ExtraSamples...))
	}
	fields = append(fields, ifd.Shorts(ifd.TagSampleFormat, slices.Repeat([]uint16{format}, index.Bands)...))
	for _, field := range o.Tags {
		// A palette belongs to the samples of every image; other tags are written once.
		if p.subfile == 0 || field.Tag == ifd.TagColorMap && !index.Bits {
			fields = append(fields, field)
		}
	}
	if p.subfile == 0 {
		fields = append(fields, ifd.Text(ifd.TagGDALMetadata, o.GDALMetadata))
	}
	if o.NoData != "" && !index.Bits {
		fields = append(fields, ifd.Text(ifd.TagGDALNoData, o.NoData))
	}
	if p.subfile == 0 {
		fields = append(fields, o.Geo.Fields()...)
	}
	for i := range fields {
		fields[i].Align = 2
	}
	return append(fields, ifd.Long8s(ifd.TagTileOffsets, planeMajor(index, func(i int) uint64 { return p.offs[i] })...),
		p.byteCounts())
}

// side returns the field of a width or height: SHORT if that is enough.
func side(tag uint16, v int) ifd.Field {
	if v <= math.MaxUint16 {
		return ifd.Shorts(tag, uint16(v))
	}
	return ifd.Longs(tag, uint32(v))
}

// planeMajor puts one number per tile into the order of TIFF's arrays: all of band 0, then all of band 1, ….
func planeMajor[T any](x *chunk.Index, of func(i int) T) []T {
	n := x.Across() * x.Down() * x.Bands
	s := make([]T, n)
	for i := range n {
		s[i%x.Bands*(n/x.Bands)+i/x.Bands] = of(i)
	}
	return s
}

// byteCounts returns the TileByteCounts field. Like libtiff, it uses SHORT if ten times the decoded size of
// a tile would fit, LONG8 for a single tile, and LONG otherwise.
func (p *imagePart) byteCounts() ifd.Field {
	largest := 0
	for _, t := range p.tiles {
		largest = max(largest, len(t))
	}
	decoded := p.x.MaxDecodedBytes()
	if p.x.Bits {
		decoded /= 8
	}
	switch {
	case len(p.tiles) == 1:
		return ifd.Long8s(ifd.TagTileByteCounts, uint64(largest))
	case decoded < math.MaxUint16/10 && largest <= math.MaxUint16:
		return ifd.Shorts(ifd.TagTileByteCounts, planeMajor(p.x,
			func(i int) uint16 { return uint16(len(p.tiles[i])) })...)
	}
	return ifd.Longs(ifd.TagTileByteCounts, planeMajor(p.x, func(i int) uint32 { return uint32(len(p.tiles[i])) })...)
}

// Package tog writes TACO optimized GeoTIFFs (TOG), and COGs of the same layout.
package tog

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
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/extras"
	"github.com/chaski-eo/chaski/tiff/geotags"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
)

// Options are the options of Write. A zero field means its default, if it has one.
type Options struct {
	Shape [3]int      // bands, height, width
	DType chunk.DType // any that TIFF has

	Tile      int             // edge of a tile in pixels, a multiple of 16. Default 512
	Level     int             // zstd level, 1 to 22, as in openzl.EncodeOptions. Default 13
	Predictor chunk.Predictor // default as GDAL's PREDICTOR=YES: 2 for integers, 3 for float32 and float64, else 1

	Geo       tiff.Geo // georeferencing; the zero Geo for none
	NoData    string   // GDAL_NODATA, as a string; empty for none
	BandNames []string // one per band, empty names are left out; nil for none

	// GDALMetadata is written as it is; FormatGDALMetadata builds it. The default holds the names of the
	// bands.
	GDALMetadata string

	Workers int // tiles compressed concurrently; the file does not depend on it. Default 1
	// Progress, if not nil, is called after every compressed tile, by one goroutine at a time. Write
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
	Tags []ifdwrite.Field
}

// Overview is a reduced version of an image, of the same bands and samples.
type Overview struct {
	Height, Width int
	Pixels        []byte // in the form of the image's pixels
	Mask          []byte // in the form of the image's mask; nil for none
}

func (o Options) withDefaults() Options {
	o.Tile = cmp.Or(o.Tile, 512)
	o.Level = cmp.Or(o.Level, 13)
	if o.Predictor == 0 {
		o.Predictor = defaultPredictor(o.DType)
	}
	o.Photometric = cmp.Or(o.Photometric, 1)
	if o.GDALMetadata == "" {
		o.GDALMetadata = extras.GDALMetadata(extras.Descriptions(o.BandNames))
	}
	if o.ExtraSamples == nil {
		o.ExtraSamples = make([]uint16, max(0, o.Shape[0]-tiff.Colours(o.Photometric)))
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

// validate checks options whose defaults are filled in.
func (o *Options) validate() error {
	b, h, w := o.Shape[0], o.Shape[1], o.Shape[2]
	format, _ := tiff.FormatOf(o.DType)
	float := o.DType == chunk.Float16 || o.DType == chunk.Float32 || o.DType == chunk.Float64
	switch {
	case format == 0:
		return fmt.Errorf("tog: %v samples cannot be stored", o.DType)
	case min(b, h, w) < 1 || b > math.MaxUint16 || max(h, w) > chunk.MaxSide:
		return fmt.Errorf("tog: image of shape %v", o.Shape)
	case h > math.MaxInt/w/b/o.DType.Size():
		return fmt.Errorf("tog: an image of shape %v of %v", o.Shape, o.DType)
	case o.Tile < 16 || o.Tile%16 != 0 || o.Tile > math.MaxUint16:
		return fmt.Errorf("tog: tiles of %d pixels, not a multiple of 16", o.Tile)
	case o.Level < 1 || o.Level > 22:
		return fmt.Errorf("tog: zstd level %d", o.Level)
	case o.Predictor > chunk.FloatingPoint || o.Predictor == chunk.FloatingPoint && !float ||
		o.Predictor == chunk.Horizontal && o.DType.Components() > 1:
		return fmt.Errorf("tog: predictor %d for %v samples", o.Predictor, o.DType)
	case o.BandNames != nil && len(o.BandNames) != b:
		return fmt.Errorf("tog: %d names for %d bands", len(o.BandNames), b)
	case len(o.ExtraSamples) != max(0, b-tiff.Colours(o.Photometric)):
		return fmt.Errorf("tog: %d extra samples for %d bands", len(o.ExtraSamples), b)
	}
	for i, overview := range o.Overviews {
		if min(overview.Height, overview.Width) < 1 || overview.Height > h || overview.Width > w {
			return fmt.Errorf("tog: overview %d has %d by %d pixels, the one before it %d by %d", i, overview.Height,
				overview.Width, h, w)
		}
		h, w = overview.Height, overview.Width
	}
	for i, field := range o.Tags {
		if slices.Contains(extras.LayoutTags, field.Tag) || slices.ContainsFunc(o.Tags[:i],
			func(g ifdwrite.Field) bool { return g.Tag == field.Tag }) {
			return fmt.Errorf("tog: tag %d is written twice", field.Tag)
		}
	}
	return nil
}

// Write writes an image as a TACO optimized GeoTIFF, laid out as GDAL's COG driver does with
// INTERLEAVE=TILE, COMPRESS=ZSTD, BIGTIFF=YES and OVERVIEWS=NONE, or with the overviews of the options.
// pixels are little-endian samples of shape (bands, height, width) in C order. Tiles at the edges are
// padded with zeros. All compressed tiles are in memory at once, because the directories, which hold
// their offsets, precede them in the file.
func Write(w io.Writer, pixels []byte, o Options) error {
	t, err := NewWriter(o, nil)
	if err != nil {
		return err
	}
	var jobs []job
	for i, overview := range t.o.levels(pixels) {
		l, n := &t.layers[i], overview.Height*overview.Width
		if len(overview.Pixels) != t.o.Shape[0]*n*t.o.DType.Size() || overview.Mask != nil && len(overview.Mask) != n {
			return fmt.Errorf("tog: %d bytes and a mask of %d for %d bands of %d by %d pixels of %v",
				len(overview.Pixels), len(overview.Mask), t.o.Shape[0], overview.Height, overview.Width, t.o.DType)
		}
		jobs = append(jobs, l.image.jobs(strip{0, overview.Height, overview.Pixels})...)
		if overview.Mask != nil {
			l.mask = t.o.mask(l.image)
			jobs = append(jobs, l.mask.jobs(strip{0, overview.Height, overview.Mask})...)
		}
		l.rows = overview.Height
	}
	if err := t.compress(jobs, len(jobs)); err != nil {
		return err
	}
	return t.Write(w)
}

// Writer writes a file as Write does, of pixels that come in strips. Its memory does not grow with the image
// if it has a spool.
type Writer struct {
	o      Options
	layers []maskedLayer
	spool  Spool

	mu      sync.Mutex // guards the fields below
	spooled int64      // bytes in spool
	done    int        // tiles
}

// Spool holds the compressed tiles until the file is written, such as a temporary file.
type Spool interface {
	io.WriterAt
	io.ReaderAt
}

// NewWriter returns a writer of an image with the overviews of the options. Only their sides count: pixels come by
// Add. There are no masks. Without a spool the compressed tiles are held in memory.
func NewWriter(o Options, spool Spool) (*Writer, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	return &Writer{o: o, layers: o.layers(), spool: spool}, nil
}

// Add compresses the next rows of the image, or of overview level-1. pixels are samples of shape (bands, rows, width)
// in C order: a whole number of rows of tiles, fewer only at the lower end. Strips of other levels may come between.
func (t *Writer) Add(level int, pixels []byte) error {
	l := &t.layers[level]
	x := l.image.x
	row := x.Bands * x.Width * x.DType.Size()
	rows := len(pixels) / row
	cut := rows%x.ChunkH != 0 && l.rows+rows < x.Height
	if rows == 0 || len(pixels)%row != 0 || l.rows+rows > x.Height || cut {
		return fmt.Errorf("tog: %d bytes are no rows of tiles of level %d, of which %d of %d rows came", len(pixels),
			level, l.rows, x.Height)
	}
	jobs := l.image.jobs(strip{l.rows, rows, pixels})
	l.rows += rows
	total := 0
	for _, l := range t.layers {
		total += len(l.image.tiles)
	}
	return t.compress(jobs, total)
}

// Write writes the file, once all rows have come.
func (t *Writer) Write(w io.Writer) error {
	var parts []*imagePart // in the order of their directories
	for i, l := range t.layers {
		if l.rows != l.image.x.Height {
			return fmt.Errorf("tog: %d of %d rows of level %d came", l.rows, l.image.x.Height, i)
		}
		parts = append(parts, l.image)
	}
	// The order of GDAL: the mask of the full image is the second directory, masks of overviews come last.
	pos := 1
	for _, l := range t.layers {
		if l.mask != nil {
			parts = slices.Insert(parts, pos, l.mask)
		}
		pos = len(parts)
	}
	area := ghostArea(t.o.Shape[0])
	dirs := make([]int64, len(parts)+1)
	dirs[0] = int64(16 + len(area))
	for i, p := range parts {
		dirs[i+1] = ifdwrite.End(dirs[i], p.fields(&t.o))
		if i+1 < len(parts) {
			// A directory needs to begin at an even offset (TIFF 6.0, section 2).
			dirs[i+1] += dirs[i+1] % 2
		}
	}
	place(t.layers, dirs[len(parts)])
	head := append(ifdwrite.AppendHeader(nil, dirs[0]), area...)
	for i, part := range parts {
		next := dirs[i+1]
		if i+1 == len(parts) {
			next = 0
		}
		head = append(head, make([]byte, dirs[i]-int64(len(head)))...)
		head = ifdwrite.AppendDirectoryBefore(head, dirs[i], next, part.fields(&t.o))
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	var b []byte
	return eachTile(t.layers, func(p *imagePart, i int) error {
		tile := p.tiles[i]
		b = slices.Grow(b[:0], leader+tile.length+trailer)[:leader+tile.length]
		binary.LittleEndian.PutUint32(b, uint32(tile.length))
		if t.spool == nil {
			copy(b[leader:], tile.bytes)
		} else if _, err := t.spool.ReadAt(b[leader:], tile.offset); err != nil {
			return err
		}
		// The slice cannot fail, because zstd frames and zlib streams have at least 6 bytes.
		b = append(b, b[len(b)-trailer:]...)
		_, err := w.Write(b)
		return err
	})
}

// Values of tags.
const (
	compressionZstd     = 50000
	compressionDeflate  = 8
	photometricInverted = 0 // white is zero
	photometricMask     = 4
	subfileReduced      = 1 // bits of NewSubfileType
	subfileMask         = 4
)

const (
	// The ghost area promises these, so readers can find a tile's end without TileByteCounts.
	leader  = 4 // before a tile: its size as uint32
	trailer = 4 // after it: its last 4 bytes again
)

// imagePart is an image or a mask, which has a directory of its own.
type imagePart struct {
	x       *chunk.Index
	subfile uint32   // NewSubfileType
	tiles   []kept   // compressed, in the order of the index
	offs    []uint64 // their offsets, in the same order
}

// kept is a compressed tile: its bytes, or where they lie in the spool.
type kept struct {
	bytes  []byte
	offset int64
	length int
}

// maskedLayer is the full image or an overview, with its mask. The tiles of the mask lie between the tiles of the
// image.
type maskedLayer struct {
	image, mask *imagePart
	rows        int // that came
}

// levels returns the full image, then the overviews.
func (o *Options) levels(pixels []byte) []Overview {
	return append([]Overview{{Height: o.Shape[1], Width: o.Shape[2], Pixels: pixels, Mask: o.Mask}}, o.Overviews...)
}

// layers returns the layers of all levels, without masks.
func (o *Options) layers() []maskedLayer {
	var layers []maskedLayer
	for i, overview := range o.levels(nil) {
		reduced := uint32(0)
		if i > 0 {
			reduced = subfileReduced
		}
		image := chunk.Index{Height: overview.Height, Width: overview.Width, ChunkB: 1, ChunkH: o.Tile, ChunkW: o.Tile,
			Bands: o.Shape[0], DType: o.DType, Codec: chunk.Zstd, Predictor: o.Predictor}
		layers = append(layers, maskedLayer{image: newPart(&image, reduced)})
	}
	return layers
}

// mask returns the part of the mask of an image.
func (o *Options) mask(image *imagePart) *imagePart {
	x := *image.x
	x.Bands, x.DType, x.Codec, x.Predictor, x.Bits = 1, chunk.Uint8, chunk.Deflate, chunk.NoPredictor, true
	return newPart(&x, image.subfile|subfileMask)
}

func newPart(x *chunk.Index, subfile uint32) *imagePart {
	n := x.Across() * x.Down() * x.Groups()
	return &imagePart{x: x, subfile: subfile, tiles: make([]kept, n), offs: make([]uint64, n)}
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
		off += int64(leader + p.tiles[i].length + trailer)
		return nil
	})
}

// strip is rows of an image or a mask, from row y on.
type strip struct {
	y, rows int
	pixels  []byte
}

// job is a tile to compress, whose pixels lie in a strip.
type job struct {
	p    *imagePart
	i    int
	from *strip
}

// jobs returns the tiles of a strip.
func (p *imagePart) jobs(from strip) []job {
	perRow := p.x.Across() * p.x.Groups()
	first, end := from.y/p.x.ChunkH, (from.y+from.rows+p.x.ChunkH-1)/p.x.ChunkH
	jobs := make([]job, 0, (end-first)*perRow)
	for i := first * perRow; i < end*perRow; i++ {
		jobs = append(jobs, job{p, i, &from})
	}
	return jobs
}

// compress fills in tiles. total is how many the file has.
func (t *Writer) compress(jobs []job, total int) error {
	work := func(_ context.Context, _ int, mine iter.Seq[job]) error {
		c := compressor{level: t.o.Level, row: make([]byte, t.o.Tile*t.o.DType.Size())}
		for j := range mine {
			tile, err := c.tile(j)
			if err != nil {
				return err
			}
			if int64(len(tile)) > math.MaxUint32 {
				return fmt.Errorf("tog: tile %d of %d bytes", j.i, len(tile))
			}
			if err := t.keep(&j.p.tiles[j.i], tile, total); err != nil {
				return err
			}
		}
		return nil
	}
	return each.Share(context.Background(), slices.Values(jobs), min(t.o.Workers, len(jobs)), work)
}

// keep keeps a compressed tile, whose memory is used again, and reports progress, with done rising.
func (t *Writer) keep(to *kept, tile []byte, total int) error {
	to.length = len(tile)
	t.mu.Lock()
	defer t.mu.Unlock()
	if to.offset = t.spooled; t.spool == nil {
		to.bytes = slices.Clone(tile)
	} else if _, err := t.spool.WriteAt(tile, to.offset); err != nil {
		return err
	}
	t.spooled += int64(len(tile))
	if t.done++; t.o.Progress == nil {
		return nil
	}
	return t.o.Progress(t.done, total)
}

// compressor is the memory of one worker.
type compressor struct {
	level    int
	zlib     *zlib.Writer // of masks; made when first used
	raw, row []byte
	out      []byte
}

// tile returns a compressed tile, until the next call.
func (c *compressor) tile(j job) ([]byte, error) {
	x := j.p.x
	n := x.MaxDecodedBytes()
	c.raw = slices.Grow(c.raw[:0], n)[:n]
	cutTile(c.raw, j.from, x, x.Box(j.i))
	if !x.Bits {
		predict(c.raw, x.Predictor, x.ChunkW, x.DType.Size(), c.row)
		c.out = zstd.Append(c.out[:0], c.raw, c.level)
		return c.out, nil
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
func cutTile(tile []byte, from *strip, x *chunk.Index, box chunk.Box) {
	size := x.DType.Size()
	n := (box.X1 - box.X0) * size
	clear(tile)
	for y := box.Y0; y < box.Y1; y++ {
		start := ((box.B0*from.rows+y-from.y)*x.Width + box.X0) * size
		copy(tile[(y-box.Y0)*x.ChunkW*size:], from.pixels[start:start+n])
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
	area := fmt.Appendf(nil, "%s%06d bytes\n%s", tiff.StructureKey, len(lines), lines)
	if len(area)%2 == 1 {
		area = append(area, 0)
	}
	return area
}

// fields returns the tags of a part in the order in which GDAL stores their values.
func (p *imagePart) fields(o *Options) []ifdwrite.Field {
	index := p.x
	format, bits := tiff.FormatOf(index.DType)
	codec, photometric, planar := uint16(compressionZstd), o.Photometric, uint16(2)
	if o.WhiteIsZero {
		photometric = photometricInverted
	}
	if index.Bits {
		bits, codec, photometric, planar = 1, compressionDeflate, photometricMask, 1
	}
	var fields []ifdwrite.Field
	if p.subfile != 0 {
		fields = append(fields, ifdwrite.Longs(ifd.TagNewSubfileType, p.subfile))
	}
	fields = append(fields, side(ifd.TagImageWidth, index.Width), side(ifd.TagImageLength, index.Height),
		ifdwrite.Shorts(ifd.TagBitsPerSample, slices.Repeat([]uint16{bits}, index.Bands)...),
		ifdwrite.Shorts(ifd.TagCompression, codec),
		ifdwrite.Shorts(ifd.TagPhotometric, photometric),
		ifdwrite.Shorts(ifd.TagSamplesPerPixel, uint16(index.Bands)),
		ifdwrite.Shorts(ifd.TagPlanarConfig, planar),
		ifdwrite.Shorts(ifd.TagPredictor, uint16(index.Predictor)),
		side(ifd.TagTileWidth, index.ChunkW), side(ifd.TagTileLength, index.ChunkH))
	if !index.Bits && len(o.ExtraSamples) > 0 {
		fields = append(fields, ifdwrite.Shorts(ifd.TagExtraSamples, o.ExtraSamples...))
	}
	fields = append(fields, ifdwrite.Shorts(ifd.TagSampleFormat, slices.Repeat([]uint16{format}, index.Bands)...))
	for _, field := range o.Tags {
		// A palette belongs to the samples of every image; other tags are written once.
		if p.subfile == 0 || field.Tag == ifd.TagColorMap && !index.Bits {
			fields = append(fields, field)
		}
	}
	if p.subfile == 0 {
		fields = append(fields, ifdwrite.Text(ifd.TagGDALMetadata, o.GDALMetadata))
	}
	if o.NoData != "" && !index.Bits {
		fields = append(fields, ifdwrite.Text(ifd.TagGDALNoData, o.NoData))
	}
	if p.subfile == 0 {
		fields = append(fields, geotags.Fields(&o.Geo)...)
	}
	for i := range fields {
		fields[i].Align = 2
	}
	return append(fields, ifdwrite.Long8s(ifd.TagTileOffsets, planeMajor(index,
		func(i int) uint64 { return p.offs[i] })...),
		p.byteCounts())
}

// side returns the field of a width or height: SHORT if that is enough.
func side(tag uint16, v int) ifdwrite.Field {
	if v <= math.MaxUint16 {
		return ifdwrite.Shorts(tag, uint16(v))
	}
	return ifdwrite.Longs(tag, uint32(v))
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
func (p *imagePart) byteCounts() ifdwrite.Field {
	largest := 0
	for _, t := range p.tiles {
		largest = max(largest, t.length)
	}
	decoded := p.x.MaxDecodedBytes()
	if p.x.Bits {
		decoded /= 8
	}
	switch {
	case len(p.tiles) == 1:
		return ifdwrite.Long8s(ifd.TagTileByteCounts, uint64(largest))
	case decoded < math.MaxUint16/10 && largest <= math.MaxUint16:
		return ifdwrite.Shorts(ifd.TagTileByteCounts, planeMajor(p.x,
			func(i int) uint16 { return uint16(p.tiles[i].length) })...)
	}
	return ifdwrite.Longs(ifd.TagTileByteCounts, planeMajor(p.x,
		func(i int) uint32 { return uint32(p.tiles[i].length) })...)
}

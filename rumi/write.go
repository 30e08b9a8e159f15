package rumi

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/geotags"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
)

// Layout is the shape of an image and of its tiles. Tile returns it, and Write needs it.
type Layout struct {
	Shape        [3]int // bands, height, width
	DType        chunk.DType
	TileH, TileW int
	Geo          *tiff.Geo // georeferencing; nil for none

	// Generation of the file: 1 (or 0), 2 or 3. Of Geo, generations 2 and 3 keep only a transform with an EPSG
	// code of 1024 to 32766.
	Generation int
	Cells      bool // generation 2: a frame holds all bands of a grid position

	// Times is the number of steps of time of a file of generation 3. 0 means 1. Pixels have the axis as their
	// first.
	Times int
	// Unit is the frame unit of a file of generation 3.
	Unit Unit
	// Trailer names bands and times of a file of generation 3, which must have one with names.
	Trailer *Trailer

	// PixelIsPoint says that Geo.Transform, of a Geo without GeoKeys, refers to the centres of pixels, and marks
	// the file so. The transform is stored bit for bit, without a way to the corners and back.
	PixelIsPoint bool

	// Tags are further tags of a file of generation 1, written as they are. They must not be tags that
	// Write writes itself. Readers of rumi files ignore them.
	Tags []ifdwrite.Field
}

func (l *Layout) generation() int { return max(l.Generation, 1) }

// unit returns the frame unit of the file.
func (l *Layout) unit() Unit {
	if l.Cells && l.Shape[0] > 1 {
		return UnitPlanes
	}
	return l.Unit
}

// options returns an error unless the members for single generations fit the layout's.
func (l *Layout) options() error {
	switch {
	case l.Generation < 0 || l.Generation > 3 || l.Cells && l.Generation != 2:
		return fmt.Errorf("rumi: generation %d, cells %t", l.Generation, l.Cells)
	case len(l.Tags) > 0 && l.generation() != 1:
		return fmt.Errorf("rumi: files of generation %d cannot hold further tags", l.Generation)
	case l.Generation != 3 && (l.Times > 1 || l.Unit != UnitTile || l.Trailer != nil):
		return fmt.Errorf("rumi: files of generation %d have no steps of time, units and trailer", l.Generation)
	case l.Times < 0 || l.Generation == 3 && !l.Unit.fits(l.Shape[0], max(l.Times, 1)):
		return fmt.Errorf("rumi: frame unit %d of %d bands and %d steps of time", l.Unit, l.Shape[0], l.Times)
	}
	return nil
}

// index returns the layout as an index without ranges, and the number of its frames.
func (l *Layout) index() (*chunk.Index, int, error) {
	if err := l.options(); err != nil {
		return nil, 0, err
	}
	index := newIndex(l.generation())
	index.Bands, index.Height, index.Width = l.Shape[0], l.Shape[1], l.Shape[2]
	index.ChunkH, index.ChunkW, index.DType = l.TileH, l.TileW, l.DType
	if format, _ := encodingOf(l.generation(), l.DType); format == 0 {
		return nil, 0, fmt.Errorf("rumi: %v samples cannot be stored", l.DType)
	}
	index.LowBits = l.Generation == 3 && index.DType.Bits() < 8
	for _, side := range [...]int{index.Height, index.Width} {
		if side < 1 || side > chunk.MaxSide {
			return nil, 0, fmt.Errorf("rumi: image of shape %v", l.Shape)
		}
	}
	for _, small := range [...]int{index.Bands, index.ChunkH, index.ChunkW} {
		if small < 1 || small > math.MaxUint16 {
			return nil, 0, fmt.Errorf("rumi: %d bands in tiles of %d by %d pixels", index.Bands, index.ChunkH,
				index.ChunkW)
		}
	}
	if err := setTimes(index, int64(max(l.Times, 1))); err != nil {
		return nil, 0, err
	}
	l.unit().apply(index)
	if n := int64(index.Across()) * int64(index.Down()); n > math.MaxInt32/int64(index.Groups()) {
		return nil, 0, fmt.Errorf("rumi: too many tiles")
	}
	if !index.ChunkFits(math.MaxInt) {
		return nil, 0, fmt.Errorf("rumi: tiles of %d by %d pixels with %d bands are too large", index.ChunkH,
			index.ChunkW, index.ChunkB)
	}
	return index, index.Across() * index.Down() * index.Groups(), nil
}

// check checks that an image of the layout has n bytes, and returns its index and the number of frames.
func (l *Layout) check(n int) (*chunk.Index, int, error) {
	index, frames, err := l.index()
	if err != nil {
		return nil, 0, err
	}
	// The first condition must come first, otherwise the product of the second could overflow.
	if want := int64(index.Height) * int64(index.Width); want > math.MaxInt64/(16*math.MaxUint16) ||
		int64(n) != want*int64(index.Bands)*int64(index.DType.Size()) {
		return nil, 0, fmt.Errorf("rumi: %d bytes for an image of shape %v of %v", n, l.Shape, l.DType)
	}
	return index, frames, nil
}

// Cuts are the frames that an image of a layout is cut into. They are safe for concurrent use.
type Cuts struct {
	x    *chunk.Index
	n    int
	unit Unit
}

// NewCuts returns the frames of a layout.
func NewCuts(l Layout) (*Cuts, error) {
	index, n, err := l.index()
	if err != nil {
		return nil, err
	}
	return &Cuts{index, n, l.unit()}, nil
}

// Len returns the number of frames.
func (c *Cuts) Len() int { return c.n }

// Bytes returns how many bytes the samples of frame i have.
func (c *Cuts) Bytes(i int) int { return c.x.DecodedBytes(c.unit.chunk(c.x, i)) }

// Rows returns the shape of frame i: h rows, in a cell the rows of all planes together, of w samples. In a cell
// of interleaved planes a row has the samples of all planes.
func (c *Cuts) Rows(i int) (h, w int) {
	i = c.unit.chunk(c.x, i)
	planes, h, w := c.x.DecodedShape(i)
	strides := c.x.Strides(i)
	return planes * h / strides.X, w * strides.X
}

// Check returns an error unless samples of fewer than 8 bits have zeros above them.
func (c *Cuts) Check(samples []byte) error {
	if mask := byte(0xff) << c.x.DType.Bits(); c.x.LowBits {
		for i, v := range samples {
			if v&mask != 0 {
				return fmt.Errorf("rumi: sample %d is %#x: it must fit in the %d bits of %s", i, v, c.x.DType.Bits(),
					c.x.DType)
			}
		}
	}
	return nil
}

// Tiler cuts the frames of an image one by one. It is safe for concurrent use.
type Tiler struct {
	Cuts
	pixels []byte
}

// NewTiler returns a tiler of an image: little-endian samples of the layout's shape in C order, its
// steps of time one after the other. pixels are kept. A sample of fewer than 8 bits must have zeros above them.
func NewTiler(pixels []byte, l Layout) (*Tiler, error) {
	index, n, err := l.check(len(pixels))
	if err != nil {
		return nil, err
	}
	tiler := &Tiler{Cuts{index, n, l.unit()}, pixels}
	if err := tiler.Check(pixels); err != nil {
		return nil, err
	}
	return tiler, nil
}

// AppendTile appends the samples of frame i, in the order of axes of the unit. Edge tiles are padded with
// zeros in generation 1 and cut in the others.
func (t *Tiler) AppendTile(dst []byte, i int) []byte {
	i = t.unit.chunk(t.x, i)
	start := len(dst)
	dst = slices.Grow(dst, t.x.DecodedBytes(i))[:start+t.x.DecodedBytes(i)]
	clear(dst[start:])
	cut(dst[start:], t.pixels, t.x, i)
	return dst
}

// cut copies the box of chunk i to the upper left of its planes.
func cut(tile, pixels []byte, x *chunk.Index, i int) {
	box, size, strides := x.Box(i), x.DType.Size(), x.Strides(i)
	for band := box.B0; band < box.B1; band++ {
		for y := box.Y0; y < box.Y1; y++ {
			row := pixels[((band*x.Height+y)*x.Width+box.X0)*size:][:(box.X1-box.X0)*size]
			dst := tile[(strides.Plane(band-box.B0)+(y-box.Y0)*strides.Y)*size:]
			if strides.X == 1 {
				copy(dst, row)
				continue
			}
			for pixel := 0; pixel < len(row); pixel += size {
				copy(dst[pixel*strides.X:pixel*strides.X+size], row[pixel:pixel+size])
			}
		}
	}
}

// Write writes a rumi file of frames, one OpenZL frame per tile in the order of a Tiler, and returns
// its header blob. It fails if w fails, or if the format cannot hold the layout.
func Write(w io.Writer, frames [][]byte, l Layout) (blob []byte, err error) {
	tail, err := l.Tail()
	if err != nil {
		return nil, err
	}
	counts := make([]int64, len(frames))
	for i, frame := range frames {
		counts[i] = int64(len(frame))
	}
	head, blob, err := Head(counts, l)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(head); err != nil {
		return nil, err
	}
	for _, frame := range frames {
		if _, err := w.Write(frame); err != nil {
			return nil, err
		}
	}
	_, err = w.Write(tail)
	return blob, err
}

// Tail returns the bytes of a rumi file behind its frames: the trailer of generation 3, else none.
func (l *Layout) Tail() ([]byte, error) {
	if l.Generation != 3 {
		return nil, nil
	}
	if l.Trailer == nil || l.Trailer.Bands == nil {
		return nil, fmt.Errorf("rumi: a file of generation 3 needs a trailer with the names of its bands")
	}
	return l.Trailer.append(nil, l.Shape[0], max(l.Times, 1))
}

// maxUnequal is the most frames of unequal size that a file of generation 3 may have, as rumi-eo writes it: 64 MiB of
// offsets and sizes, 12 bytes a frame.
const maxUnequal = 64 << 20 / 12

// Head returns the bytes of a rumi file that stand before its frames, and its header blob. counts are the bytes of
// the frames, in the order of a Tiler: a caller that appends frames of these sizes to head, and then Tail, writes what
// Write does.
func Head(counts []int64, l Layout) (head, blob []byte, err error) {
	index, n, err := l.index()
	if err != nil {
		return nil, nil, err
	}
	if len(counts) != n {
		return nil, nil, fmt.Errorf("rumi: %d frames for %d tiles", len(counts), n)
	}
	const dir = 16
	// The arrays hold zeros at first, because the offsets follow from the size of the directory.
	fields, err := l.fields(index, n)
	if err != nil {
		return nil, nil, err
	}
	off := ifdwrite.End(dir, fields)
	index.Ranges = make([]chunk.Range, n)
	for i, count := range counts {
		if count <= 0 || count > math.MaxUint32 {
			return nil, nil, fmt.Errorf("rumi: frame %d of %d bytes", i, count)
		}
		index.Ranges[i] = chunk.Range{Off: off, Len: count}
		off += count
	}
	if index.Ranges[0].Off > math.MaxUint32 {
		return nil, nil, fmt.Errorf("rumi: the directory is too large")
	}
	if l.Generation == 3 && n > maxUnequal && slices.Max(counts) != slices.Min(counts) {
		return nil, nil, fmt.Errorf("rumi: %d frames of unequal size: at most %d", n, maxUnequal)
	}
	setArrays(fields, index, l.generation())
	head = ifdwrite.AppendDirectory(ifdwrite.AppendHeader(nil, dir), dir, fields)
	if l.Generation == 3 {
		copy(head, Magic+"\x01\x00\x00\x00")
	}
	l.unit().indexOrder(index)
	return head, blobOf(index, l.generation(), l.unit()), nil
}

// fields returns the tags of the file, with tile arrays of zeros for n frames. Their size must be known before the
// offsets are.
func (l *Layout) fields(x *chunk.Index, n int) (fields []ifdwrite.Field, err error) {
	if l.PixelIsPoint && (l.Geo == nil || len(l.Geo.GeoKeys) > 0) {
		return nil, fmt.Errorf("rumi: PixelIsPoint needs a Geo without GeoKeys")
	}
	first := l.generation() == 1
	format, bits := encodingOf(l.generation(), x.DType)
	every := func(tag, v uint16) ifdwrite.Field {
		return ifdwrite.Shorts(tag, slices.Repeat([]uint16{v}, x.StepBands())...)
	}
	fields = []ifdwrite.Field{
		ifdwrite.Longs(ifd.TagImageWidth, uint32(x.Width)),
		ifdwrite.Longs(ifd.TagImageLength, uint32(x.Height)),
		every(ifd.TagBitsPerSample, bits),
	}
	if first {
		fields = append(fields, ifdwrite.Shorts(ifd.TagCompression, Compression),
			ifdwrite.Shorts(ifd.TagPhotometric, 1))
	}
	fields = append(fields, ifdwrite.Shorts(ifd.TagSamplesPerPixel, uint16(x.StepBands())))
	if first {
		fields = append(fields, ifdwrite.Shorts(ifd.TagPlanarConfig, 2), ifdwrite.Shorts(ifd.TagPredictor, 1))
	}
	fields = append(fields,
		ifdwrite.Shorts(ifd.TagTileWidth, uint16(x.ChunkW)),
		ifdwrite.Shorts(ifd.TagTileLength, uint16(x.ChunkH)),
		ifdwrite.Long8s(ifd.TagTileOffsets, make([]uint64, n)...),
		ifdwrite.Longs(ifd.TagTileByteCounts, make([]uint32, n)...),
		every(ifd.TagSampleFormat, format))
	switch {
	case !first:
		var matrix, keys ifdwrite.Field
		matrix, keys, err = geoFields(l.Geo)
		fields = append(fields, matrix, keys)
	case l.Geo != nil:
		fields = append(fields, geotags.Fields(l.Geo)...)
	}
	fields = append(fields, l.Tags...) // none but in generation 1
	if l.Generation == 3 {
		fields = append(fields, ifdwrite.Shorts(tagUnit, uint16(l.unit())), ifdwrite.Longs(tagTimes, uint32(x.Steps())))
	}
	for _, field := range fields {
		if l.PixelIsPoint && field.Tag == ifd.TagGeoKeys {
			// The value of the second key, behind four numbers of the head and four of the first key.
			binary.LittleEndian.PutUint16(field.Data[2*(4+4+3):], ifd.RasterPixelIsPoint)
		}
	}
	return fields, err
}

// Codes of CRSs that generations 2 and 3 hold: GeoTIFF leaves those below to itself, and 32767 to CRSs that a file
// defines.
const (
	leastEPSG = 1024
	mostEPSG  = 32766
)

// geoFields returns the matrix and the three keys of a file of generation 2 or 3: the unit matrix and model type
// 0 without georeferencing.
func geoFields(geo *tiff.Geo) (matrix, keys ifdwrite.Field, err error) {
	t := [6]float64{0, 1, 0, 0, 0, 1}
	model, raster, key, code := uint16(0), uint16(ifd.RasterPixelIsArea), uint16(ifd.KeyGeographicCRS), uint16(0)
	if geo != nil && (geo.HasTransform || geo.EPSG != 0) {
		if !geo.HasTransform || geo.EPSG < leastEPSG || geo.EPSG > mostEPSG {
			return matrix, keys, fmt.Errorf("rumi: generations 2 and 3 need a transform together with "+
				"an EPSG code of 1024 to 32766, not EPSG %d, transform %t", geo.EPSG, geo.HasTransform)
		}
		t, code = geo.Transform, uint16(geo.EPSG)
		if geo.IsPoint() {
			raster = ifd.RasterPixelIsPoint
			t[0] += (t[1] + t[2]) / 2
			t[3] += (t[4] + t[5]) / 2
		}
		if model, key = ifd.ModelProjected, ifd.KeyProjectedCRS; geo.IsGeographic() {
			model, key = ifd.ModelGeographic, ifd.KeyGeographicCRS
		}
	}
	matrix = ifdwrite.Doubles(ifd.TagTransformation, t[1], t[2], 0, t[0], t[4], t[5], 0, t[3], 0, 0, 0, 0, 0, 0, 0, 1)
	keys = ifdwrite.Shorts(ifd.TagGeoKeys, 1, 1, 0, 3, ifd.KeyModelType, 0, 1, model,
		ifd.KeyRasterType, 0, 1, raster, key, 0, 1, code)
	return matrix, keys, nil
}

// setArrays fills the tile arrays: in generation 1 all of band 0, then all of band 1, …; in
// generation 2 in the order of the frames.
func setArrays(fields []ifdwrite.Field, x *chunk.Index, generation int) {
	n := len(x.Ranges)
	positions := n / x.Groups()
	offs, counts := make([]uint64, n), make([]uint32, n)
	for i, span := range x.Ranges {
		pos := i
		if generation == 1 {
			pos = i%x.Bands*positions + i/x.Bands
		}
		offs[pos], counts[pos] = uint64(span.Off), uint32(span.Len)
	}
	for i := range fields {
		switch fields[i].Tag {
		case ifd.TagTileOffsets:
			fields[i] = ifdwrite.Long8s(ifd.TagTileOffsets, offs...)
		case ifd.TagTileByteCounts:
			fields[i] = ifdwrite.Longs(ifd.TagTileByteCounts, counts...)
		}
	}
}

package rumi

import (
	"fmt"
	"io"
	"math"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/ifd"
)

// Layout is the shape of an image and of its tiles, as Tile makes and Write needs it.
type Layout struct {
	Shape        [3]int // bands, height, width
	DType        chunk.DType
	TileH, TileW int
	Geo          *tiff.Geo // where the image lies; nil for nowhere
}

// index returns the layout as an index without ranges, and the number of its frames.
func (l *Layout) index() (*chunk.Index, int, error) {
	x := &chunk.Index{
		Bands: l.Shape[0], Height: l.Shape[1], Width: l.Shape[2], ChunkB: 1, ChunkH: l.TileH, ChunkW: l.TileW,
		DType: l.DType, Codec: chunk.OpenZL, Predictor: chunk.NoPredictor,
	}
	if format, _ := tiff.FormatOf(l.DType); format == 0 {
		return nil, 0, fmt.Errorf("rumi: %v samples cannot be stored", l.DType)
	}
	for _, side := range [...]int{x.Height, x.Width} {
		if side < 1 || side > chunk.MaxSide {
			return nil, 0, fmt.Errorf("rumi: image of shape %v", l.Shape)
		}
	}
	for _, small := range [...]int{x.Bands, x.ChunkH, x.ChunkW} {
		if small < 1 || small > math.MaxUint16 {
			return nil, 0, fmt.Errorf("rumi: %d bands in tiles of %d by %d pixels", x.Bands, x.ChunkH, x.ChunkW)
		}
	}
	if n := int64(x.Across()) * int64(x.Down()); n > math.MaxInt32/int64(x.Bands) {
		return nil, 0, fmt.Errorf("rumi: too many tiles")
	}
	return x, x.Across() * x.Down() * x.Bands, nil
}

// Tile cuts an image of shape (bands, height, width), little-endian in C order, into square tiles
// of size pixels, in frame order: the bands of a position side by side, positions row by row.
// Edge tiles are padded with zeros. Each tile is then to be compressed into one OpenZL frame.
func Tile(pixels []byte, shape [3]int, dtype chunk.DType, size int) (tiles [][]byte, l Layout, err error) {
	l = Layout{Shape: shape, DType: dtype, TileH: size, TileW: size}
	x, n, err := l.index()
	if err != nil {
		return nil, l, err
	}
	if want := int64(shape[1]) * int64(shape[2]); want > math.MaxInt64/(16*math.MaxUint16) ||
		int64(len(pixels)) != want*int64(shape[0])*int64(dtype.Size()) {
		return nil, l, fmt.Errorf("rumi: %d bytes for an image of shape %v of %v", len(pixels), shape, dtype)
	}
	tiles = make([][]byte, n)
	for i := range tiles {
		tiles[i] = make([]byte, x.StoredBytes(i))
		cut(tiles[i], pixels, x, x.Box(i))
	}
	return tiles, l, nil
}

// cut copies the rows of a box, of one band, to the upper left of a tile.
func cut(tile, pixels []byte, x *chunk.Index, box chunk.Box) {
	size := x.DType.Size()
	n := (box.X1 - box.X0) * size
	for y := box.Y0; y < box.Y1; y++ {
		from := ((box.B0*x.Height+y)*x.Width + box.X0) * size
		copy(tile[(y-box.Y0)*x.ChunkW*size:], pixels[from:from+n])
	}
}

// Write writes a rumi file of frames in the order of Tile, and returns its header blob.
func Write(w io.Writer, frames [][]byte, l Layout) (blob []byte, err error) {
	x, n, err := l.index()
	if err != nil {
		return nil, err
	}
	if len(frames) != n {
		return nil, fmt.Errorf("rumi: %d frames for %d tiles", len(frames), n)
	}
	const dir = 16
	fields := directory(x, l.Geo)
	off := ifd.End(dir, fields)
	x.Ranges = make([]chunk.Range, n)
	for i, f := range frames {
		if len(f) == 0 || int64(len(f)) > math.MaxUint32 {
			return nil, fmt.Errorf("rumi: frame %d of %d bytes", i, len(f))
		}
		x.Ranges[i] = chunk.Range{Off: off, Len: int64(len(f))}
		off += int64(len(f))
	}
	if x.Ranges[0].Off > math.MaxUint32 {
		return nil, fmt.Errorf("rumi: the directory is too large")
	}
	setArrays(fields, x)
	head := ifd.AppendDirectory(ifd.AppendHeader(nil, dir), dir, fields)
	if _, err := w.Write(head); err != nil {
		return nil, err
	}
	for _, f := range frames {
		if _, err := w.Write(f); err != nil {
			return nil, err
		}
	}
	return appendBlob(nil, x), nil
}

// directory returns the tags of a rumi file, the tile arrays still zero.
func directory(x *chunk.Index, geo *tiff.Geo) []ifd.Field {
	format, bits := tiff.FormatOf(x.DType)
	every := func(v uint16) []uint16 {
		s := make([]uint16, x.Bands)
		for i := range s {
			s[i] = v
		}
		return s
	}
	n := x.Across() * x.Down() * x.Bands
	fields := []ifd.Field{
		ifd.Longs(tagWidth, uint32(x.Width)),
		ifd.Longs(tagHeight, uint32(x.Height)),
		ifd.Shorts(tagBits, every(bits)...),
		ifd.Shorts(tagCompression, Compression),
		ifd.Shorts(tagPhotometric, 1),
		ifd.Shorts(tagSamples, uint16(x.Bands)),
		ifd.Shorts(tagPlanar, 2),
		ifd.Shorts(tagPredictor, 1),
		ifd.Shorts(tagTileWidth, uint16(x.ChunkW)),
		ifd.Shorts(tagTileHeight, uint16(x.ChunkH)),
		ifd.Long8s(tagOffsets, make([]uint64, n)...),
		ifd.Longs(tagCounts, make([]uint32, n)...),
		ifd.Shorts(tagFormat, every(format)...),
	}
	if geo != nil {
		fields = append(fields, geo.Fields()...)
	}
	return fields
}

// setArrays fills the tile arrays: all of band 0, then all of band 1, ….
func setArrays(fields []ifd.Field, x *chunk.Index) {
	n := len(x.Ranges)
	positions := n / x.Bands
	offs, counts := make([]uint64, n), make([]uint32, n)
	for i, r := range x.Ranges {
		at := i%x.Bands*positions + i/x.Bands
		offs[at], counts[at] = uint64(r.Off), uint32(r.Len)
	}
	for i := range fields {
		switch fields[i].Tag {
		case tagOffsets:
			fields[i] = ifd.Long8s(tagOffsets, offs...)
		case tagCounts:
			fields[i] = ifd.Longs(tagCounts, counts...)
		}
	}
}

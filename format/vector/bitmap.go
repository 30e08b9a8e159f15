package vector

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/base64"
	"io"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/pictures"
	"github.com/chaski-eo/chaski/internal/inflate"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
)

// Bounds of masks that are pictures, in pixels: of one, and of all in a file, which take some ten seconds.
const (
	maxBitmap  = 1 << 28
	maxBitmaps = 1 << 33
)

// bitmapText adds a mask that is a PNG, by where its upper left pixel lies.
func bitmapText(ctx context.Context, l *labels, text string, more record, _ uint32) (coordForm, error) {
	origin, err := appendNumbers(nil, textAt(more, "origin"))
	if err == nil && len(origin) != 2 && len(origin) != 4 { // LabelMe has the lower right pixel, too
		err = fault.New(fault.Corrupt, "origin", "it has %d numbers", len(origin))
	}
	if err != nil {
		return noForm, fault.Wrap(fault.Corrupt, "bitmap", err)
	}
	return l.bitmap(ctx, text, [2]float64(origin))
}

// bitmaps are what reading masks that are pictures takes.
type bitmaps struct {
	pixels  []byte
	decoder *chunk.Decoder // nil before the first mask
	total   int64          // pixels of all masks
}

// bitmap adds a mask that is a PNG in Base64, perhaps in a zlib stream, whose upper left pixel is in the column and
// row origin of its image. Pixels belong to it unless they are transparent or 0, as supervisely and labelme read it.
func (l *labels) bitmap(ctx context.Context, data string, origin [2]float64) (coordForm, error) {
	left, top := math.Floor(origin[0]), math.Floor(origin[1])
	const side = 1 << 24 // each sum of runs is exact as a float64
	if !(left >= 0 && top >= 0 && left < side && top < side) {
		return noForm, fault.New(fault.Corrupt, "bitmap", "it begins at %v", origin)
	}
	file, err := base64.StdEncoding.DecodeString(data)
	if err == nil && magic.Of(file) != magic.PNG {
		var unpacked io.Reader
		if unpacked, err = zlib.NewReader(bytes.NewReader(file)); err == nil {
			file, err = io.ReadAll(io.LimitReader(unpacked, maxPiece)) // a longer one is cut, and so no PNG
		}
	}
	if err == nil && magic.Of(file) != magic.PNG {
		err = fault.New(fault.Unsupported, "", "it is no PNG")
	}
	if err != nil {
		return noForm, fault.Wrap(fault.Corrupt, "bitmap", err)
	}
	index, err := pictures.Open(ctx, source.Memory(file), chunk.Axes{AsStored: true}, maxBitmap)
	if err == nil && (index.Bands == 3 || index.DType != chunk.Uint8) {
		err = fault.New(fault.Unsupported, "PNG", "%d bands of %s are no mask", index.Bands, index.DType)
	}
	if err != nil {
		return noForm, fault.WithPart(err, "bitmap", fault.NoOffset)
	}
	b := &l.bitmaps
	pixels, size := index.Height*index.Width, index.DecodedBytes(0)
	if size/8/inflate.MostRatio > len(file) { // a byte has at most 8 pixels
		return noForm, fault.New(fault.Corrupt, "bitmap", "%d pixels in a PNG of %d bytes", pixels, len(file))
	}
	if b.total += int64(pixels); b.total > maxBitmaps {
		return noForm, fault.New(fault.Limit, "bitmap", "over %d pixels in one file", int64(maxBitmaps))
	}
	if more := size - cap(b.pixels); more > 0 {
		if err := l.o.Grow(ctx, 2*int64(more)); err != nil { // the rows of the PNG take as much
			return noForm, err
		}
		b.pixels = make([]byte, size)
	}
	if b.decoder == nil {
		b.decoder = chunk.NewDecoder(nil)
	}
	if err := b.decoder.Decode(b.pixels[:size], file, index, 0); err != nil {
		return noForm, fault.WithPart(err, "bitmap", fault.NoOffset)
	}
	return l.runsOf(index, b.pixels[:size], left, top)
}

// runsOf adds a mask by its pixels. The runs cover the image down to the last row of the mask, so the height of the
// image does not matter.
func (l *labels) runsOf(x *chunk.Index, pixels []byte, left, top float64) (coordForm, error) {
	outside := byte(0)
	if x.NoData != nil && x.Bands == 1 {
		outside = byte(*x.NoData)
	}
	height := top + float64(x.Height)
	l.coords = append(l.coords, height)
	start, length, inside := len(l.coords), left*height, false
	for column := range x.Width {
		if length += top; inside && top > 0 {
			l.coords = append(l.coords, length-top)
			length, inside = top, false
		}
		for row := range x.Height {
			is := pixels[(row*x.Width+column+1)*x.Bands-1] != outside
			if is != inside {
				l.coords = append(l.coords, length)
				length, inside = 0, is
			}
			length++
		}
		if len(l.coords)-start > maxRuns {
			return noForm, fault.New(fault.Limit, "bitmap", "over %d runs", maxRuns)
		}
	}
	if inside {
		l.coords = append(l.coords, length)
	}
	return runForm, nil
}

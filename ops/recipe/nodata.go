package recipe

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"sort"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/ops/columns"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/tiff"
)

// maskAlpha marks the pixels of field k as missing where an alpha band is 0. As in GDAL it is the last of two or four
// bands of uint8 or uint16, in a file without a mask and nodata. In a window on the ground it counts if the field has
// it.
func (m *Maker) maskAlpha(ctx context.Context, b *loader.Batch, k int, w *origin) error {
	field, index := &m.recipe.Fields[k], w.Asset.Index
	small := index.DType == chunk.Uint8 || index.DType == chunk.Uint16
	if field.Vector != nil || !small || index.Bands != 2 && index.Bands != 4 || index.Mask != nil {
		return nil
	}
	meta, err := m.meta(ctx, &w.RasterWindow)
	if err != nil || len(meta.ExtraSamples) == 0 || meta.NoData != "" {
		return err
	}
	const associated, unassociated = 1, 2
	if kind := meta.ExtraSamples[len(meta.ExtraSamples)-1]; kind != associated && kind != unassociated {
		return nil
	}
	pixels, valid := b.Tensor(field.Name), b.Tensor(field.Name+validity).Data
	last := index.Bands - 1
	band := last // of the field
	switch {
	case field.BandNames != nil:
		band = slices.Index(field.BandNames, slices.Concat(meta.BandNames, make([]string, index.Bands))[last])
	case field.Bands != nil:
		band = slices.Index(field.Bands, last)
	}
	size, n := pixels.DType.Size(), len(valid)/int(pixels.Shape[1])
	alpha := pixels.Data
	if band >= 0 {
		alpha = alpha[band*n*size:][:n*size]
	} else if size = index.DType.Size(); w.place == nil {
		alpha, err = m.readBand(ctx, w, last)
	}
	if err != nil || band < 0 && w.place != nil {
		return err
	}
	for i := range n {
		if word(alpha[i*size:][:size]) != 0 {
			continue
		}
		for j := i; j < len(valid); j += n {
			valid[j] = 0
		}
	}
	return nil
}

// readBand returns a band of a window as it is stored, and 0 past the edge.
func (m *Maker) readBand(ctx context.Context, w *origin, band int) ([]byte, error) {
	box, index := w.Window, w.Asset.Index
	y0, y1 := max(box.Y, 0), min(box.Y+box.H, index.Height)
	x0, x1 := max(box.X, 0), min(box.X+box.W, index.Width)
	options := m.options.Loader
	options.Opener = rows.Alone(options.Opener, w.Asset) // in which a member of a container begins at 0
	header := index
	if w.Asset.Member != "" {
		header = index.Shift(-w.Asset.Offset)
	}
	array, err := raster.Read(ctx, []string{"alpha"}, raster.ReadOptions{
		B: raster.Selection{List: []int{band}}, Y: raster.Selection{Slice: true, Start: y0, Stop: y1},
		X: raster.Selection{Slice: true, Start: x0, Stop: x1}, Options: options,
		Headers: [][]byte{header.AppendBlob(nil)}})
	if err != nil {
		return nil, err
	}
	defer array.Release()
	size := index.DType.Size()
	out, line := make([]byte, box.H*box.W*size), (x1-x0)*size
	for y := y0; y < y1; y++ {
		copy(out[((y-box.Y)*box.W+x0-box.X)*size:], array.Data[(y-y0)*line:][:line])
	}
	return out, nil
}

// sampleOf returns the nodata value of x as one sample, nil if it has none.
func sampleOf(x *chunk.Index) []byte {
	if x.NoData == nil && x.NoDataBits == nil {
		return nil
	}
	sample := make([]byte, x.DType.Size())
	copy(sample, x.NoDataSample()) // which is nil if all its bytes are 0
	return sample
}

// byValue gives a chip whose bands miss different pixels the nodata value of its source, because a mask is the same for
// all bands. It is an error if the source has none, or the chip's dtype cannot hold it.
func byValue(c *convert.Chip, f *Field, nodata string, valid []byte) (moved int64, err error) {
	sample := noDataAs(nodata, c.DType)
	if sample == nil {
		return 0, fault.New(fault.Unsupported, "field "+f.Name, fault.NoOffset, "its bands miss different pixels, "+
			"which a mask cannot say, and %s cannot hold the source's nodata value %q: the field's nodata gives one",
			c.DType, nodata)
	}
	c.NoData, c.Mask = nodata, nil
	fillMissing(c.Pixels, valid, sample)
	return avoid(c.Pixels, valid, sample, c.DType), nil
}

// lose marks missing pixels as valid where a chip of this format cannot say that they are missing, as its readers do.
func lose(c *convert.Chip, format string, valid []byte) {
	if convert.HoldsNoData(format) && (c.Mask == nil || format == convert.TOG) {
		return
	}
	var sample []byte
	if convert.HoldsNoData(format) {
		sample = noDataAs(c.NoData, c.DType)
	}
	size := c.DType.Size()
	for i := range valid {
		if !bytes.Equal(c.Pixels[i*size:(i+1)*size], sample) {
			valid[i] = 1
		}
	}
}

// noDataAs returns a nodata value as a sample of type d, nil if samples of d cannot have it.
func noDataAs(nodata string, d chunk.DType) []byte {
	index := (&tiff.Meta{NoData: nodata}).WithNoData(&chunk.Index{DType: d})
	sample := sampleOf(index)
	numbers := columns.AppendValues(nil, sample, d)
	if len(numbers) == 0 {
		return nil
	}
	want, have := *index.NoData, numbers[0]
	// Many files have -3.4028235e+38, which rounds to the lowest float32.
	rounded := !d.Integer() && !math.IsInf(have, 0) && !math.IsNaN(want)
	if rounded || want == have || math.IsNaN(want) && math.IsNaN(have) {
		return sample
	}
	return nil
}

// avoid moves valid samples that have the nodata value, or that GDAL takes for it, to the next value, as GDAL's warper
// does: down, but up from the least value of the type. It returns how many it moved. A valid NaN where nodata is NaN
// has no next value: it becomes missing.
func avoid(pixels, valid, sample []byte, d chunk.DType) (moved int64) {
	next, same := neighbour(sample, d)
	if same == nil {
		return 0
	}
	n := len(sample)
	for i, v := range valid {
		p := pixels[i*n : (i+1)*n]
		switch {
		case v == 0 || !same(p):
		case next == nil:
			valid[i] = 0
		default:
			copy(p, next)
			moved++
		}
	}
	return moved
}

// neighbour returns the value beside a sample, nil for NaN, which has none, and a function that tells whether others
// are the same to GDAL. That is nil for types that have no nodata value of their own.
func neighbour(sample []byte, d chunk.DType) (next []byte, same func([]byte) bool) {
	key, low, high := word(sample), uint64(0), uint64(math.MaxUint64)>>(64-8*len(sample)) // in the order of values
	number := func(key uint64) uint64 { return key }
	same = func(p []byte) bool { return bytes.Equal(p, sample) }
	switch sign := uint64(1) << (8*len(sample) - 1); d {
	case chunk.Uint8, chunk.Uint16, chunk.Uint32, chunk.Uint64:
	case chunk.Int8, chunk.Int16, chunk.Int32, chunk.Int64:
		number = func(key uint64) uint64 { return key ^ sign }
		key = number(key)
	case chunk.Float16, chunk.Float32, chunk.Float64, chunk.BFloat16:
		if isNaN(sample, d) {
			return nil, func(p []byte) bool { return isNaN(p, d) }
		}
		number = func(key uint64) uint64 { // -0 and 0 have one key, so that -0 has no number
			if key >= sign {
				return key - sign
			}
			return sign - key | sign
		}
		if key&sign != 0 {
			key = sign - key&^sign
		} else {
			key += sign
		}
		low, high = sign-infinity(d)+1, sign+infinity(d)-1 // which are finite
		same = func(p []byte) bool { return nearFloat(word(p), word(sample), d) }
	default:
		return nil, nil
	}
	bits := func(key uint64) []byte { return binary.LittleEndian.AppendUint64(nil, number(key))[:len(sample)] }
	// The values that are the same lie around the sample without a gap.
	steps := int(min(max(key, low)-low, math.MaxInt64))
	down := 1 + sort.Search(steps, func(i int) bool { return !same(bits(key - 1 - uint64(i))) })
	if down <= steps {
		return bits(key - uint64(down)), same
	}
	steps = int(min(high-min(key, high), math.MaxInt64))
	up := 1 + sort.Search(steps, func(i int) bool { return !same(bits(key + 1 + uint64(i))) })
	return bits(key + uint64(up)), same
}

// nearFloat reports whether GDAL takes one float for the other where it looks for nodata (ARE_REAL_EQUAL). It
// calculates in the type itself, with a relative tolerance, which is four times the precision of float32 for float64
// too.
func nearFloat(a, b uint64, d chunk.DType) bool {
	const tolerance = 1. / (1 << 22)
	switch d {
	case chunk.Float32:
		x, y := math.Float32frombits(uint32(a)), math.Float32frombits(uint32(b))
		return x == y || math.Abs(float64(x-y)) < tolerance*math.Abs(float64(x+y))
	case chunk.Float64:
		x, y := math.Float64frombits(a), math.Float64frombits(b)
		return x == y || math.Abs(x-y) < tolerance*math.Abs(x+y)
	}
	sign := uint64(1) << (8*d.Size() - 1)
	return a == b || (a|b)&^sign == 0
}

// word returns a sample of at most 8 bytes as a number.
func word(sample []byte) uint64 {
	var b [8]byte
	copy(b[:], sample)
	return binary.LittleEndian.Uint64(b[:])
}

// isNaN reports whether a sample of a type of floats is NaN.
func isNaN(sample []byte, d chunk.DType) bool {
	return word(sample)&^(1<<(8*len(sample)-1)) > infinity(d)
}

// infinity returns the bits of a type's infinity.
func infinity(d chunk.DType) uint64 {
	switch d {
	case chunk.Float16:
		return 0x7c00
	case chunk.BFloat16:
		return 0x7f80
	case chunk.Float32:
		return 0x7f800000
	}
	return 0x7ff << 52
}

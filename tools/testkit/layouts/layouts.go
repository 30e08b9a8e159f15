// Package layouts has chunk indexes of every layout of files, for tests of what stores and reads indexes.
package layouts

import (
	"math"
	"math/rand/v2"

	"github.com/chaski-eo/chaski/format/chunk"
)

// TOG returns an index laid out as GDAL's COG driver does: position by position, 8 bytes between.
func TOG(bands, down, across, tile int) *chunk.Index {
	x := &chunk.Index{
		Bands: bands, Height: down*tile - 3, Width: across*tile - 5, ChunkB: 1, ChunkH: tile, ChunkW: tile,
		DType: chunk.Uint16, Codec: chunk.Zstd, Predictor: chunk.Horizontal,
		Ranges: make([]chunk.Range, bands*down*across),
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	off := int64(1000)
	for i := range x.Ranges {
		x.Ranges[i] = chunk.Range{Off: off, Len: 1000 + rnd.Int64N(30000)}
		off += x.Ranges[i].Len + 8
	}
	return x
}

// MaskOf returns a mask in strips of some rows, stored behind the image.
func MaskOf(x *chunk.Index, rows int, bits bool) *chunk.Index {
	m := &chunk.Index{
		Bands: 1, Height: x.Height, Width: x.Width, ChunkB: 1, ChunkH: rows, ChunkW: x.Width, CutEdge: true,
		DType: chunk.Uint8, Codec: chunk.Deflate, Predictor: chunk.NoPredictor, Bits: bits,
	}
	m.Ranges = make([]chunk.Range, m.Down())
	for i := range m.Ranges {
		m.Ranges[i] = chunk.Range{Off: 1<<21 + int64(i)*500, Len: 400 + int64(i)}
	}
	return m
}

// All returns indexes of all layouts, by name.
func All() map[string]*chunk.Index {
	m := map[string]*chunk.Index{"one chunk": TOG(1, 1, 1, 16), "one band": TOG(1, 7, 9, 16)}
	edit := func(name string, f func(x *chunk.Index)) {
		x := TOG(3, 4, 5, 64)
		f(x)
		m[name] = x
	}
	samples(edit)
	places(edit)
	return m
}

// samples edits how samples lie in chunks, and what the index says of them.
func samples(edit func(name string, f func(x *chunk.Index))) {
	edit("tog", func(*chunk.Index) {})
	edit("nodata", func(x *chunk.Index) {
		nan, bits := math.NaN(), uint64(1<<63+1)
		x.NoData, x.NoDataBits = &nan, &bits
	})
	edit("big-endian strips, cut", func(x *chunk.Index) { x.BigEndian, x.CutEdge, x.CutRight = true, true, true })
	edit("pixel-interleaved", func(x *chunk.Index) { x.ChunkB, x.Inner, x.Ranges = 3, chunk.YXB, x.Ranges[:20] })
	edit("steps of time", func(x *chunk.Index) { x.Bands, x.Times, x.Ranges = 6, 3, TOG(6, 4, 5, 64).Ranges })
	edit("interleaved steps", func(x *chunk.Index) {
		x.Bands, x.Times, x.ChunkB, x.Inner, x.Ranges = 6, 3, 6, chunk.BYXT, x.Ranges[:20]
	})
	edit("low bits", func(x *chunk.Index) { x.DType, x.LowBits, x.Predictor = chunk.Uint4, true, chunk.NoPredictor })
	edit("packed", func(x *chunk.Index) { x.DType, x.Packed, x.Predictor = chunk.Uint16, 12, chunk.NoPredictor })
	edit("alpha", func(x *chunk.Index) { x.DType, x.Alpha = chunk.Uint16, true })
	edit("alpha without nodata", func(x *chunk.Index) {
		x.DType, x.Alpha = chunk.Uint8, true
		x.SetNoData([][]float64{{0}, {0}, nil})
	})
	edit("two nodata values", func(x *chunk.Index) { x.SetNoData([][]float64{{-1, 7}}) })
	edit("nodata of each band", func(x *chunk.Index) { x.SetNoData([][]float64{nil, {math.NaN(), 7}, {7}}) })
	edit("alpha behind a mask", func(x *chunk.Index) {
		x.DType, x.Alpha, x.Mask = chunk.Uint8, true, MaskOf(x, 100, true)
	})
	edit("classes", func(x *chunk.Index) {
		x.Bands, x.DType, x.Classes, x.Ranges = 1, chunk.Uint8, true, x.Ranges[:20]
	})
	edit("scales", func(x *chunk.Index) {
		x.Physical = []chunk.Linear{{Scale: 0.5, Offset: 0}, {Scale: 1, Offset: -273.15}, {Scale: 1, Offset: 0}}
	})
	edit("one scale and a mask", func(x *chunk.Index) {
		x.Physical, x.Mask = []chunk.Linear{{Scale: 1e-4, Offset: 0}}, MaskOf(x, 100, true)
	})
	edit("scales of steps", func(x *chunk.Index) {
		x.Bands, x.Times, x.Ranges = 6, 3, TOG(6, 4, 5, 64).Ranges
		x.Physical = []chunk.Linear{{Scale: 2, Offset: 0}, {Scale: 1, Offset: 3}}
	})
	edit("parameters", func(x *chunk.Index) { x.Codec, x.Params, x.Reversed = chunk.JPEG, []byte{1, 0xff, 0xd8}, true })
	edit("parameters and a mask", func(x *chunk.Index) {
		x.Params = []byte{7}
		x.Mask = TOG(1, 4, 5, 64)
		x.Mask.Width, x.Mask.Height, x.Mask.DType, x.Mask.Predictor = x.Width, x.Height, chunk.Uint8, chunk.NoPredictor
	})
	edit("a mask with reversed bits", func(x *chunk.Index) {
		x.Mask = TOG(1, 4, 5, 64)
		x.Mask.Width, x.Mask.Height, x.Mask.DType, x.Mask.Predictor = x.Width, x.Height, chunk.Uint8, chunk.NoPredictor
		x.Mask.Reversed = true
	})
}

// places edits where chunks and masks lie in the file.
func places(edit func(name string, f func(x *chunk.Index))) {
	edit("band-interleaved", func(x *chunk.Index) {
		off := int64(77)
		for g := range 3 {
			for p := range 20 {
				x.Ranges[p*3+g].Off = off
				off += x.Ranges[p*3+g].Len
			}
		}
	})
	edit("sparse", func(x *chunk.Index) {
		for _, i := range []int{0, 7, 8, 59} {
			x.Ranges[i] = chunk.Range{}
		}
	})
	edit("all sparse", func(x *chunk.Index) { clear(x.Ranges) })
	edit("one present", func(x *chunk.Index) {
		r := x.Ranges[9]
		clear(x.Ranges)
		x.Ranges[9] = r
	})
	edit("mask after each position", func(x *chunk.Index) {
		for i := range x.Ranges {
			x.Ranges[i].Off += int64(i / 3 * 91)
		}
	})
	edit("rewritten in place", func(x *chunk.Index) { x.Ranges[4].Off, x.Ranges[30].Off = 1<<40, 3 })
	edit("lengths of 40 bits", func(x *chunk.Index) {
		x.Codec, x.Ranges[4].Len, x.Ranges[5].Off = chunk.Raw, 1<<40, 1<<41
	})
	edit("equal lengths, shared", func(x *chunk.Index) {
		for i := range x.Ranges {
			x.Ranges[i] = chunk.Range{Off: 5000, Len: 100}
		}
	})
	edit("ends of the offsets", func(x *chunk.Index) {
		x.Codec = chunk.Raw
		x.Ranges[0] = chunk.Range{Off: math.MaxInt64 - 1, Len: 1}
		x.Ranges[1] = chunk.Range{Off: 0, Len: math.MaxInt64}
	})
	edit("a mask of bits in strips", func(x *chunk.Index) { x.Mask = MaskOf(x, 100, true) })
	edit("a mask of bytes, band-interleaved image", func(x *chunk.Index) {
		x.Mask = MaskOf(x, 64, false)
		x.Mask.Predictor = chunk.Horizontal
		x.Mask.Ranges[1] = chunk.Range{}
	})
}

package tiff

import (
	"bytes"
	"compress/zlib"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed"
)

// layout is an image, and how its file holds it.
type layout struct {
	width, height, bands, bits int
	planes                     bool // PlanarConfiguration 2
	tileW, rows                int  // size of the chunks; tileW is 0 for strips
	clipped                    bool // tiles hold only the pixels of the image
	deflate                    bool
	stripTags                  bool // tiles lie under the tags of strips
	sparse                     int  // the chunk that the file lacks, or -1
}

// sample is the sample of a pixel: any function of its place that differs between neighbours.
func (l *layout) sample(b, y, x int) uint64 {
	return uint64(b*7919+y*104729+x*31+y*x) & (1<<l.bits - 1)
}

// eachChunk calls do with the boxes of the chunks, in the order of TIFF.
func (l *layout) eachChunk(do func(b0, b1, y0, y1, x0, x1 int)) {
	step, groups, width := l.bands, 1, l.width
	if l.planes {
		step, groups = 1, l.bands
	}
	if l.tileW > 0 {
		width = l.tileW
	}
	for g := range groups {
		for y := 0; y < l.height; y += l.rows {
			for x := 0; x < l.width; x += width {
				h, w := l.rows, width
				if l.tileW == 0 || l.clipped {
					h, w = min(h, l.height-y), min(w, l.width-x)
				}
				do(g*step, (g+1)*step, y, y+h, x, x+w)
			}
		}
	}
}

// chunks returns the chunks as they are stored, nil for the one that is missing.
func (l *layout) chunks() (all [][]byte) {
	l.eachChunk(func(b0, b1, y0, y1, x0, x1 int) {
		var stored []byte
		for y := y0; y < y1; y++ {
			var acc uint64
			have := 0
			for x := x0; x < x1; x++ {
				for b := b0; b < b1; b++ {
					v := l.sample(b, y, x)
					for n := l.bits; n%8 == 0 && n > 0; n -= 8 { // little-endian
						stored, v = append(stored, byte(v)), v>>8
					}
					for n := l.bits - 1; l.bits%8 != 0 && n >= 0; n-- { // the highest bit first
						acc, have = acc<<1|v>>n&1, have+1
						if have == 8 {
							stored, acc, have = append(stored, byte(acc)), 0, 0
						}
					}
				}
			}
			if have > 0 {
				stored = append(stored, byte(acc<<(8-have)))
			}
		}
		if l.deflate {
			var z bytes.Buffer
			w := zlib.NewWriter(&z)
			_, _ = w.Write(stored)
			_ = w.Close()
			stored = z.Bytes()
		}
		if len(all) == l.sparse {
			stored = nil
		}
		all = append(all, stored)
	})
	return all
}

// pixels returns the samples (b, y, x), little-endian. Chunks that the file lacks are zeros.
func (l *layout) pixels() []byte {
	size := 1
	for size*8 < l.bits {
		size *= 2
	}
	out := make([]byte, l.bands*l.height*l.width*size)
	chunk := 0
	l.eachChunk(func(b0, b1, y0, y1, x0, x1 int) {
		for b := b0; chunk != l.sparse && b < b1; b++ {
			for y := y0; y < min(y1, l.height); y++ {
				for x := x0; x < min(x1, l.width); x++ {
					for i, v := 0, l.sample(b, y, x); i < size; i, v = i+1, v>>8 {
						out[((b*l.height+y)*l.width+x)*size+i] = byte(v)
					}
				}
			}
		}
		chunk++
	})
	return out
}

// file returns the file. edit changes the offsets and sizes of the chunks, and the other fields.
func (l *layout) file(edit func(offsets, sizes *[]uint64, fields []ifdwrite.Field) []ifdwrite.Field) []byte {
	chunks := l.chunks()
	planar, compression := uint16(1), uint16(compNone)
	if l.planes {
		planar = 2
	}
	if l.deflate {
		compression = compDeflate
	}
	var file []byte
	for range 2 { // the second time with the right offsets
		offset := len(file)
		offsets, sizes := make([]uint64, len(chunks)), make([]uint64, len(chunks))
		for i, c := range chunks {
			if sizes[i] = uint64(len(c)); i != l.sparse {
				offsets[i] = uint64(offset)
			}
			offset += len(c)
		}
		fields := []ifdwrite.Field{
			ifdwrite.Longs(ifd.TagImageWidth, uint32(l.width)), ifdwrite.Longs(ifd.TagImageLength, uint32(l.height)),
			ifdwrite.Shorts(ifd.TagSamplesPerPixel, uint16(l.bands)),
			ifdwrite.Shorts(ifd.TagBitsPerSample, slices.Repeat([]uint16{uint16(l.bits)}, l.bands)...),
			ifdwrite.Shorts(ifd.TagCompression, compression), ifdwrite.Shorts(ifd.TagPlanarConfig, planar),
			ifdwrite.Shorts(ifd.TagPhotometric, PhotometricBlackIsZero),
		}
		at, count := uint16(ifd.TagStripOffsets), uint16(ifd.TagStripByteCounts)
		if l.tileW > 0 && !l.stripTags {
			at, count = ifd.TagTileOffsets, ifd.TagTileByteCounts
		}
		if l.tileW > 0 {
			fields = append(fields, ifdwrite.Longs(ifd.TagTileWidth, uint32(l.tileW)),
				ifdwrite.Longs(ifd.TagTileLength, uint32(l.rows)))
		} else {
			fields = append(fields, ifdwrite.Longs(ifd.TagRowsPerStrip, uint32(l.rows)))
		}
		if edit != nil {
			fields = edit(&offsets, &sizes, fields)
		}
		fields = append(fields, ifdwrite.Long8s(at, offsets...))
		if len(sizes) > 0 {
			fields = append(fields, ifdwrite.Long8s(count, sizes...))
		}
		file = ifdwrite.AppendDirectory(ifdwrite.AppendHeader(nil, 16), 16, fields)
	}
	return append(file, bytes.Join(chunks, nil)...)
}

func without(tag uint16, fields []ifdwrite.Field) []ifdwrite.Field {
	return slices.DeleteFunc(fields, func(f ifdwrite.Field) bool { return f.Tag == tag })
}

// TestLayouts: images in tiles and strips of any size, in planes or not, of samples of any width, have the samples
// that were written, also where the file leaves out what follows from the image.
func TestLayouts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 40)
		l := &layout{
			width: size.Draw(t, "width"), height: size.Draw(t, "height"), bands: rapid.IntRange(1, 3).Draw(t, "bands"),
			bits:   rapid.SampledFrom([]int{1, 3, 7, 8, 8, 8, 9, 12, 15, 16, 16, 17, 31, 32, 64}).Draw(t, "bits"),
			planes: rapid.Bool().Draw(t, "planes"), rows: size.Draw(t, "rows"), sparse: -1,
			deflate: rapid.Bool().Draw(t, "deflate"),
		}
		if rapid.Bool().Draw(t, "tiled") {
			l.tileW = size.Draw(t, "tile width")
			l.clipped = l.bits%8 == 0 && !l.deflate && rapid.Bool().Draw(t, "clipped")
		}
		chunks := len(l.chunks())
		how := rapid.SampledFrom([]string{"", "sparse", "no sizes", "zero sizes", "small sizes", "large sizes",
			"more entries", "no rows", "many rows", "one width for all", "tags of strips"}).Draw(t, "how")
		l.stripTags = how == "tags of strips"
		strips, raw := l.tileW == 0, !l.deflate
		b := l.file(func(offsets, sizes *[]uint64, fields []ifdwrite.Field) []ifdwrite.Field {
			last := len(*sizes) - 1
			switch {
			case how == "sparse" && !l.clipped:
				if l.sparse < 0 {
					l.sparse = rapid.IntRange(0, last).Draw(t, "chunk")
				}
				(*offsets)[l.sparse], (*sizes)[l.sparse] = 0, 0
			case how == "no sizes" && !l.clipped && (raw || chunks == 1):
				*sizes = nil
			case how == "zero sizes" && !l.clipped && (raw || chunks == 1):
				clear(*sizes)
			case how == "small sizes" && raw && strips:
				(*sizes)[last] /= 2
			case how == "large sizes" && raw && !l.clipped:
				(*sizes)[last] += 1000 // past the end of the file
			case how == "more entries":
				*offsets, *sizes = append(*offsets, 1<<40), append(*sizes, 1<<40)
			case how == "no rows" && strips && (chunks == 1 || raw && !l.planes):
				return without(ifd.TagRowsPerStrip, fields)
			case how == "many rows" && strips && (l.rows >= l.height || raw):
				return append(without(ifd.TagRowsPerStrip, fields), ifdwrite.Longs(ifd.TagRowsPerStrip, 1<<32-1))
			case how == "one width for all":
				return append(without(ifd.TagBitsPerSample, fields),
					ifdwrite.Shorts(ifd.TagBitsPerSample, uint16(l.bits)))
			}
			return fields
		})
		image, got, err := decode(b)
		if err != nil {
			t.Fatalf("%+v, %s: %v", l, how, err)
		}
		if want := l.pixels(); !bytes.Equal(got, want) {
			t.Fatalf("%+v, %s: %x, want %x, %+v", l, how, got, want, image.Index)
		}
	})
}

package tiff

import (
	"context"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/corpus/whole"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// chain returns a file whose pages have a tile of 16 by 16 bytes each, and these fields.
func chain(pages ...[]ifdwrite.Field) []byte {
	var file []byte
	for last := range 2 { // the second time with the offsets of the tiles, which follow the directories
		tiles := len(file)
		file = ifdwrite.AppendHeader(nil, 16)
		for k, more := range pages {
			fields := []ifdwrite.Field{
				ifdwrite.Longs(ifd.TagImageWidth, 16), ifdwrite.Longs(ifd.TagImageLength, 16),
				ifdwrite.Shorts(ifd.TagBitsPerSample, 8), ifdwrite.Shorts(ifd.TagCompression, compNone),
				ifdwrite.Shorts(ifd.TagPhotometric, PhotometricBlackIsZero), ifdwrite.Shorts(ifd.TagSamplesPerPixel, 1),
				ifdwrite.Longs(ifd.TagTileWidth, 16), ifdwrite.Longs(ifd.TagTileLength, 16),
				ifdwrite.Long8s(ifd.TagTileOffsets, uint64(tiles+256*k)), ifdwrite.Long8s(ifd.TagTileByteCounts, 256),
			}
			fields = append(slices.DeleteFunc(fields, func(f ifdwrite.Field) bool {
				return slices.ContainsFunc(more, func(g ifdwrite.Field) bool { return f.Tag == g.Tag })
			}), more...)
			fields = slices.DeleteFunc(fields, func(f ifdwrite.Field) bool { return f.Type == 0 }) // as in oneTile
			slices.SortFunc(fields, func(f, g ifdwrite.Field) int { return int(f.Tag) - int(g.Tag) })
			off, next := int64(len(file)), int64(0)
			if k+1 < len(pages) {
				next = ifdwrite.End(off, fields)
			}
			file = ifdwrite.AppendDirectoryBefore(file, off, next, fields)
		}
		for k := range last * len(pages) {
			file = append(file, slices.Repeat([]byte{byte(k + 1)}, 256)...)
		}
	}
	return file
}

func openPages(b []byte, pages string, l Limits) (*Image, error) {
	l.MaxIFDs = MaxPages
	file, err := ifd.Open(context.Background(), &corpus.Mem{B: b}, l.IFD())
	if err != nil {
		return nil, err
	}
	return OpenPages(context.Background(), file, pages, l)
}

func TestOpenPages(t *testing.T) {
	b := chain(nil, nil, nil)
	for pages, times := range map[string]int{chunk.FirstPage: 0, chunk.BandsPages: 0, chunk.StepsPages: 3} {
		image, err := openPages(b, pages, Limits{})
		if err != nil {
			t.Fatal(pages, err)
		}
		bands := 3
		if pages == chunk.FirstPage {
			bands = 1
		}
		if image.Index.Bands != bands || image.Index.Times != times {
			t.Errorf("%q: %d bands, %d times", pages, image.Index.Bands, image.Index.Times)
		}
		samples, err := whole.Image(image.Index, b, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for k := range bands {
			if samples[256*k] != byte(k+1) {
				t.Errorf("%q: plane %d has %d", pages, k, samples[256*k])
			}
		}
	}
}

// TestPagesThatShare: pages whose directories share a long array of tiles cost no more than one of them.
func TestPagesThatShare(t *testing.T) {
	race.SkipCovered(t)
	const side = 16 * 256 // 65,536 tiles, whose offsets and sizes take 1 MiB
	tiles := make([]uint64, side/16*side/16)
	for i := range tiles {
		tiles[i] = 16
	}
	first := []ifdwrite.Field{ifdwrite.Longs(ifd.TagImageWidth, side), ifdwrite.Longs(ifd.TagImageLength, side),
		ifdwrite.Long8s(ifd.TagTileOffsets, tiles...),
		ifdwrite.Long8s(ifd.TagTileByteCounts, slices.Repeat([]uint64{256}, len(tiles))...)}
	b := chain(first, nil)
	file, err := ifd.Open(context.Background(), &corpus.Mem{B: b}, ifd.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		file.Dirs = append(file.Dirs, file.Dirs[0])
	}
	file.Dirs = slices.Delete(file.Dirs, 1, 2)
	n := corpus.Allocated(func() {
		_, err = OpenPages(context.Background(), file, chunk.BandsPages, Limits{MaxTagBytes: 8 << 20})
	})
	if fault.KindOf(err) != fault.Limit {
		t.Errorf("%v, want a limit", err)
	}
	if n > 64<<20 {
		t.Errorf("%d bytes allocated for a file of %d", n, len(b))
	}
}

// FuzzPages: any bytes yield an error with a kind, or an image whose planes are the pages.
func FuzzPages(f *testing.F) {
	f.Add(chain(nil, nil, nil))
	f.Add(chain(nil, []ifdwrite.Field{ifdwrite.Shorts(ifd.TagBitsPerSample, 16)}))
	f.Add(chain(nil, []ifdwrite.Field{ifdwrite.Longs(ifd.TagNewSubfileType, SubfileMask)}, nil))
	f.Add(chain([]ifdwrite.Field{ifdwrite.Text(ifd.TagImageDescription, "ImageJ=1\nimages=4\n")}))
	f.Add(chain([]ifdwrite.Field{ifdwrite.Text(ifd.TagGDALNoData, "3")}, nil,
		[]ifdwrite.Field{ifdwrite.Text(ifd.TagGDALNoData, "4")}))
	rgb := []ifdwrite.Field{ifdwrite.Shorts(ifd.TagSamplesPerPixel, 4), ifdwrite.Shorts(ifd.TagBitsPerSample, 2)}
	f.Add(chain(rgb, rgb))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, pages := range []string{chunk.BandsPages, chunk.StepsPages} {
			var image *Image
			var err error
			n := corpus.Allocated(func() { image, err = openPages(b, pages, Limits{MaxChunk: 1 << 16}) })
			if n > 2*openBound(len(b)) {
				t.Fatalf("%d bytes allocated for a file of %d", n, len(b))
			}
			if err == nil {
				if image.Index.Steps()*image.Index.StepBands() != image.Index.Bands {
					t.Fatalf("%d bands in %d steps", image.Index.Bands, image.Index.Steps())
				}
				_, err = whole.Image(image.Index, b, 1<<20)
			}
			if err != nil && fault.KindOf(err) == 0 {
				t.Fatalf("error without a kind: %v", err)
			}
		}
	})
}

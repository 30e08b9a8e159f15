package tiff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// pagesOf returns the pages of a file, separated by semicolons, as fieldsOf reads their fields.
func pagesOf(text string) []byte {
	var pages [][]ifdwrite.Field
	for page := range strings.SplitSeq(text, ";") {
		pages = append(pages, fieldsOf(page))
	}
	return chain(pages...)
}

// shapes lists the sizes of images and of their masks, and by how many pages these follow.
func shapes(all []*chunk.Index) string {
	var out []string
	for _, x := range all {
		text := fmt.Sprintf("%dx%d", x.Height, x.Width)
		if x.Mask != nil {
			text += fmt.Sprintf(" mask %dx%d +%d", x.Mask.Height, x.Mask.Width,
				(x.Mask.Ranges[0].Off-x.Ranges[0].Off)/256)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// TestOverviews: the reduced images of a file are its overviews, the largest first, each with the mask of its size. In
// a file of overviews the first image is one, too, whose mask needs no size.
func TestOverviews(t *testing.T) {
	for _, c := range []struct{ pages, inside, beside string }{
		{"", "", "16x16"},
		{"; kind=1 width=4 height=4; kind=1 width=8 height=8; kind=1 width=2 height=2", "8x8, 4x4, 2x2",
			"16x16, 8x8, 4x4, 2x2"},
		{"; kind=1 width=6 height=8; kind=1 width=8 height=6; kind=0 width=4 height=4; kind=2 width=4 height=4",
			"8x6, 6x8", ""},
		{"; kind=1 width=8 height=8; kind=1 width=4 height=4; kind=5 width=4 height=4; kind=5 width=8 height=8",
			"8x8 mask 8x8 +3, 4x4 mask 4x4 +1", "16x16, 8x8 mask 8x8 +3, 4x4 mask 4x4 +1"},
		{"; kind=1 width=8 height=8; kind=5 width=8 height=4; kind=5 width=4 height=8", "8x8", "16x16, 8x8"},
		{"; kind=4; kind=1 width=8 height=8", "8x8", "16x16 mask 16x16 +1, 8x8"},
		{"; kind=4 width=8 height=8; kind=1 width=8 height=8", "8x8",
			"ifd 1 tag 256: a mask of 8 by 8 pixels for an image of 16 by 16: corrupt"},
		{"; kind=1 width=8 height=8; kind=5 width=8 height=8 bits=3",
			"ifd 2 tag 258: a mask of 1 samples a pixel of 3 bits with SampleFormat 1 for an image of 1 bands: " +
				"unsupported", ""},
		{"; kind=1 width=8 height=8 offsets=60000",
			"ifd 1 chunk index: chunk 0: range of 256 bytes ends past the file's 980: corrupt", ""},
		{"; kind=1 width=0", "ifd 1 tag 256: value 0: corrupt", "ifd 1 tag 256: value 0: corrupt"},
		{"; kind=1 bits=16 sizes=512",
			"ifd 1: an overview of (1, 16, 16) uint16 of an image of (1, 16, 16) uint8: unsupported",
			""},
		{"; kind=1 bands=2 planar=1 sizes=512",
			"ifd 1: an overview of (2, 16, 16) uint8 of an image of (1, 16, 16) uint8: unsupported", ""},
		{"; kind=1 width=17 tilew=32 sizes=512",
			"ifd 1: an overview of (1, 16, 17) uint8 of an image of (1, 16, 16) uint8: unsupported", ""},
		{"; kind=1 height=17 tileh=32 sizes=512",
			"ifd 1: an overview of (1, 17, 16) uint8 of an image of (1, 16, 16) uint8: unsupported", ""},
		{"; kind=1 width=4 height=8", "8x4",
			"overview: 8 by 4 pixels, of an image of 16 by 16: the sides have another ratio: unsupported"},
	} {
		file, err := ifd.Open(t.Context(), &corpus.Mem{B: pagesOf(c.pages)}, ifd.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		image, err := FromFile(t.Context(), file, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		check := func(what, want string, all []*chunk.Index, err error) {
			got := shapes(all)
			if err != nil {
				got = offsetOf.ReplaceAllString(err.Error(), "")
			}
			if want != "" && got != want {
				t.Errorf("%s, %s: %q, want %q", c.pages, what, got, want)
			}
		}
		inside, err := OpenOverviews(t.Context(), file, image.Index, Limits{})
		check("inside", c.inside, inside, err)
		beside, err := OpenOverviewFile(t.Context(), file, image.Index, Limits{})
		check("beside", c.beside, beside, err)
		if _, err := OpenOverviews(t.Context(), file, image.Index, Limits{MaxChunk: 255}); len(inside) > 0 &&
			fault.KindOf(err) != fault.Limit {
			t.Errorf("%s: chunks over the limit: %v", c.pages, err)
		}
	}
}

// TestOverviewsInherit: what an image says of its samples holds for its overviews.
func TestOverviewsInherit(t *testing.T) {
	bits, value := uint64(7), 7.0
	for fields, x := range map[string]*chunk.Index{
		"kind=1 width=8 height=8 bands=2 planar=1 sizes=512": {Bands: 2, Alpha: true,
			BandNoData: [][]float64{{7}, nil}},
		"kind=1 width=8 height=8": {Bands: 1, Classes: true},
	} {
		x.Width, x.Height, x.DType, x.NoData, x.NoDataBits = 16, 16, chunk.Uint8, &value, &bits
		x.Physical = []chunk.Linear{{Scale: 2}}
		b := pagesOf(";" + fields)
		file, err := ifd.Open(t.Context(), &corpus.Mem{B: append(b, make([]byte, 512)...)}, ifd.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		all, err := OpenOverviews(t.Context(), file, x, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if y := all[0]; y.NoData != x.NoData || y.NoDataBits != x.NoDataBits || y.Alpha != x.Alpha ||
			y.Classes != x.Classes || !slices.Equal(y.Physical, x.Physical) {
			t.Errorf("%s: %+v", fields, y)
		} else if len(y.BandNoData) != len(x.BandNoData) {
			t.Errorf("%s: nodata of bands %v, %v", fields, y.BandNoData, x.BandNoData)
		}
	}
}

// TestReduces: sides that are divided by one number and rounded up or down are an overview's; sides of which one is a
// pixel more, and the other one a pixel less, are not.
func TestReduces(t *testing.T) {
	index := func(h, w int) *chunk.Index { return &chunk.Index{Height: h, Width: w} }
	for h := 1; h < 40; h++ {
		for w := 1; w < 40; w++ {
			for n := 2; n < 6; n++ {
				for _, up := range [][2]int{{0, 0}, {0, n - 1}, {n - 1, 0}, {n - 1, n - 1}} {
					if o := index((h+up[0])/n, (w+up[1])/n); o.Height > 0 && o.Width > 0 && !reduces(o, index(h, w)) {
						t.Errorf("%d by %d of %d by %d", o.Height, o.Width, h, w)
					}
				}
				if reduces(index(h+1, w-1), index(n*h, n*w)) || reduces(index(h-1, w+1), index(n*h, n*w)) {
					t.Errorf("%d by %d, one more and one less, of %d by %d", h, w, n*h, n*w)
				}
			}
		}
	}
}

// TestPalette: a colour table has all reds, then all greens and all blues, whose upper bytes count. The blacks at its
// end are left out.
func TestPalette(t *testing.T) {
	for fields, want := range map[string]string{
		"": "[]", "palette=red": "[]", "palette=4660,65280,0,22016,769,255,39680,18,128": "[#12569b #ff0300]",
		"palette=1.5,2.5,3.5": "[]",
	} {
		file, err := ifd.Open(t.Context(), &corpus.Mem{B: oneTile(fieldsOf(fields)...)}, ifd.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(Palette(t.Context(), file)); got != want {
			t.Errorf("%s: %s, want %s", fields, got, want)
		}
	}
}

package pixels_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/corpus/whole"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// gather keeps the samples of a box and then overwrites the reader's memory, because data of one
// chunk must not show in the next.
type gather struct {
	box chunk.Box
	got map[[3]int]string
}

func (g *gather) Put(x *chunk.Index, i int, samples []byte) {
	c, size := x.Box(i), x.DType.Size()
	nb, nh, nw := x.DecodedShape(i)
	for b := max(c.B0, g.box.B0); b < min(c.B1, g.box.B1); b++ {
		for y := max(c.Y0, g.box.Y0); y < min(c.Y1, g.box.Y1); y++ {
			for col := max(c.X0, g.box.X0); col < min(c.X1, g.box.X1); col++ {
				at := ((b-c.B0)*nh+y-c.Y0)*nw + col - c.X0
				if x.Inner == chunk.YXB {
					at = ((y-c.Y0)*nw+col-c.X0)*nb + b - c.B0
				}
				g.got[[3]int{b, y, col}] = string(samples[at*size:][:size])
			}
		}
	}
	for k := range samples {
		samples[k] = 0xee
	}
}

// TestWindowsThatEndInsideOfChunks: a window that ends inside of chunks has the samples of the
// whole image, in real files of every codec and layout.
func TestWindowsThatEndInsideOfChunks(t *testing.T) {
	race.SkipCovered(t)
	rnd := rand.New(rand.NewPCG(11, 12))
	read := map[chunk.Codec]int{}
	for _, f := range corpus.Files(t) {
		if filepath.Ext(f.Path) != ".tif" || f.Kind != "tiff" {
			continue
		}
		b := f.Bytes(t)
		img, err := tiff.Open(context.Background(), &corpus.Mem{B: b}, tiff.Limits{})
		if err != nil {
			continue
		}
		x := img.Index
		want, err := whole.Image(x, b, 4<<20)
		if err != nil {
			continue
		}
		r := pixels.NewReader(resources.Options{Opener: folder.OneFile(b)}.WithDefaults())
		for range 4 {
			y0, x0 := rnd.IntN(x.Height), rnd.IntN(x.Width)
			g := &gather{got: map[[3]int]string{}, box: chunk.Box{B1: x.Bands, Y0: y0, X0: x0,
				Y1: min(x.Height, y0+1+rnd.IntN(40)), X1: min(x.Width, x0+1+rnd.IntN(20))}}
			err := r.Read(context.Background(), catalog.Asset{URI: f.Path, Index: x}, g.box, nil, g, nil)
			if err != nil {
				t.Fatal(err)
			}
			size := x.DType.Size()
			for at, got := range g.got {
				if k := (at[0]*x.Height+at[1])*x.Width + at[2]; got != string(want[k*size:][:size]) {
					t.Fatalf("%s %+v: other samples, at %v", f.Path, g.box, at)
				}
			}
			if n := x.Bands * (g.box.Y1 - g.box.Y0) * (g.box.X1 - g.box.X0); len(g.got) != n {
				t.Fatalf("%s %+v: %d samples of %d", f.Path, g.box, len(g.got), n)
			}
			read[x.Codec]++
		}
	}
	if read[chunk.Zstd] == 0 || read[chunk.Deflate] == 0 {
		t.Errorf("windows read, by codec: %v", read)
	}
}

// asked records how many bytes of each chunk are requested.
type asked struct{ n *[]int }

func (a asked) Decompress(_, _ []byte, t *chunk.Tile) error {
	*a.n = append(*a.n, t.Need)
	return nil
}

// TestChunksAreDecodedToTheLastPixelNeeded: a chunk is decoded to the window's last pixel in it, and no further: in a
// strip, which is as wide as the image, most pixels of a row may lie right of the window.
func TestChunksAreDecodedToTheLastPixelNeeded(t *testing.T) {
	const side, pixel, last = 16, 2, 14
	x := &chunk.Index{Bands: 2, Height: 40, Width: 40, ChunkB: 1, ChunkH: side, ChunkW: side, DType: chunk.Uint16,
		Codec: chunk.Zstd, Predictor: chunk.Horizontal, Ranges: make([]chunk.Range, 18)}
	for i := range x.Ranges {
		x.Ranges[i] = chunk.Range{Off: int64(i), Len: 1}
	}
	file := bytes.Repeat([]byte{1}, 18)
	var n []int
	r := pixels.NewReader(resources.Options{Opener: folder.OneFile(file)}.WithDefaults())
	r.Decoder = chunk.NewDecoder(chunk.Codecs{chunk.Zstd: func() chunk.Decompressor { return asked{&n} }})
	for y1 := 1; y1 <= x.Height; y1++ {
		n = n[:0]
		box := chunk.Box{B1: 2, Y1: y1, X0: 20, X1: side + last}
		if err := r.Read(context.Background(), catalog.Asset{Index: x}, box, nil, pixels.Nowhere{}, nil); err != nil {
			t.Fatal(err)
		}
		var want []int
		for y0 := 0; y0 < y1; y0 += side {
			bytes := pixel * ((min(y0+side, y1)-y0-1)*side + last)
			want = append(want, bytes, bytes) // both bands
		}
		if len(n) != len(want) {
			t.Fatalf("rows up to %d: %d chunks, want %d", y1, len(n), len(want))
		}
		for k := range n {
			if n[k] != want[k] {
				t.Errorf("rows up to %d, chunk %d: %d bytes asked for, want %d", y1, k, n[k], want[k])
			}
		}
	}
}

package rumi

import (
	"bytes"
	"context"
	"encoding/hex"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// files2 returns the files of generation 2: those of the corpus or of the module, and those that
// the original package wrote for the module.
func files2(t testing.TB) []corpus.File {
	own := filepath.Join(corpus.Testdata(t), "raster", "rumi-new", "written")
	files := append(corpus.Of(corpus.Files(t), "rumi-new"), corpus.Manifest(t, own)...)
	files = slices.DeleteFunc(files, func(f corpus.File) bool { return strings.Contains(f.Path, "v0.26") })
	if len(files) < 20 {
		t.Fatalf("%d files", len(files))
	}
	return files
}

// TestWrite2GivesTheFileAgain: writing the frames of a file again yields the same file byte for
// byte, with its georeferencing, and Tile2 cuts its image into the content of the frames.
func TestWrite2GivesTheFileAgain(t *testing.T) {
	placed := 0
	for _, f := range files2(t) {
		file := f.Bytes(t)
		d, err := ifd.Open(context.Background(), &corpus.Mem{B: file}, ifd.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := Meta(context.Background(), d)
		if err != nil {
			t.Fatal(err)
		}
		h, pix, err := indexAndDecode(file)
		if err != nil {
			t.Fatal(err)
		}
		tiles, l, err := Tile2(pix, h.Shape, h.DType, h.TileW, h.Cells)
		if err != nil {
			t.Fatal(err)
		}
		if f.Geo == nil {
			if m.HasTransform || m.EPSG != 0 {
				t.Errorf("%s: EPSG %d, transform %v from a file that lies nowhere", f.Path, m.EPSG, m.Transform)
			}
		} else {
			a := f.Geo.Transform
			want := [6]float64{a[2], a[0], a[1], a[5], a[3], a[4]}
			if m.Transform != want || float64(m.EPSG) != f.Geo.CRS {
				t.Errorf("%s: EPSG %d, transform %v", f.Path, m.EPSG, m.Transform)
			}
			l.Geo = &m.Geo
			placed++
		}
		x, dec := h.Index(), chunk.NewDecoder(nil)
		var frames [][]byte
		for i, r := range x.Ranges {
			frames = append(frames, file[r.Off:r.Off+r.Len])
			want := make([]byte, x.DecodedBytes(i))
			if err := dec.Decode(want, frames[i], x, i); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(tiles[i], want) {
				t.Errorf("%s: tile %d differs", f.Path, i)
			}
		}
		var w bytes.Buffer
		blob, err := Write(&w, frames, l)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(w.Bytes(), file) {
			t.Errorf("%s: another file", f.Path)
		}
		if hex.EncodeToString(blob) != f.Blob || !bytes.Equal(h.Blob(), blob) {
			t.Errorf("%s: another blob", f.Path)
		}
	}
	if placed < 3 {
		t.Errorf("%d files with a place", placed)
	}
}

// TestWrittenIsRead2: everything that generation 2 can hold is read back as it was written, in
// tiles and in cells.
func TestWrittenIsRead2(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 16))
	for d := chunk.Uint8; d.Valid(); d++ {
		for _, cells := range []bool{false, true} {
			shape := [3]int{1 + r.IntN(6), 1 + r.IntN(40), 1 + r.IntN(40)}
			pix := make([]byte, shape[0]*shape[1]*shape[2]*d.Size())
			for i := range pix {
				pix[i] = byte(r.Uint32())
			}
			tiles, l, err := Tile2(pix, shape, d, 1+r.IntN(20), cells)
			if err != nil {
				t.Fatal(d, err)
			}
			if d == chunk.Complex128 { // no OpenZL number is as wide
				continue
			}
			for i := range tiles {
				if tiles[i], err = encodeTile(tiles[i], d.Size()); err != nil {
					t.Fatal(err)
				}
			}
			var w bytes.Buffer
			blob, err := Write(&w, tiles, l)
			if err != nil {
				t.Fatal(err)
			}
			h, got, err := indexAndDecode(w.Bytes())
			if err != nil {
				t.Fatal(d, cells, shape, err)
			}
			if h.DType != d || h.Shape != shape || !bytes.Equal(got, pix) || !bytes.Equal(h.Blob(), blob) {
				t.Errorf("%v %v: came back as %v %v", d, shape, h.DType, h.Shape)
			}
		}
	}
}

func TestWrite2Refuses(t *testing.T) {
	good := Layout{Shape: [3]int{2, 20, 20}, DType: chunk.Uint8, TileH: 16, TileW: 16, Generation: 2, Cells: true}
	frames := [][]byte{{1}, {1}, {1}, {1}}
	if _, err := Write(&bytes.Buffer{}, frames, good); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(l *Layout){
		"generation 3":             func(l *Layout) { l.Generation = 3 }, // no cells, and it needs a trailer
		"cells of generation 1":    func(l *Layout) { l.Generation = 1 },
		"tiles":                    func(l *Layout) { l.Cells = false },
		"a code without transform": func(l *Layout) { l.Geo = &tiff.Geo{EPSG: 32633} },
		"a transform without code": func(l *Layout) { l.Geo = &tiff.Geo{HasTransform: true} },
		"a user-defined code":      func(l *Layout) { l.Geo = &tiff.Geo{HasTransform: true, EPSG: 32767} },
		"a small code":             func(l *Layout) { l.Geo = &tiff.Geo{HasTransform: true, EPSG: 1023} },
	} {
		l := good
		edit(&l)
		if _, err := Write(&bytes.Buffer{}, frames, l); err == nil {
			t.Errorf("%s: written", name)
		}
	}
}

// TestChangedDirectories2: a file whose directory has one changed byte is refused, or yields the
// same image except for what only the directory holds: its location and the names of samples.
func TestChangedDirectories2(t *testing.T) {
	base := sample2(t, [3]int{2, 20, 21}, false)
	_, want, err := indexAndDecode(base)
	if err != nil {
		t.Fatal(err)
	}
	harmless := map[int]bool{}
	place := func(tag uint16, size int) {
		f, err := ifd.Open(context.Background(), &corpus.Mem{B: base}, ifd.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		e := f.Dirs[0].Find(tag)
		for i := range size {
			harmless[int(e.Off)+i] = true
		}
	}
	place(ifd.TagTransformation, 128)
	place(ifd.TagGeoKeys, 32)
	place(ifd.TagSampleFormat, 4)
	end := int(firstFrame(2, 2, 8))
	for at := range end {
		for _, bit := range []byte{1, 4, 0x80} {
			b := slices.Clone(base)
			b[at] ^= bit
			_, got, err := indexAndDecode(b)
			switch {
			case err != nil && fault.KindOf(err) == 0:
				t.Errorf("byte %d: error without a kind: %v", at, err)
			case err == nil && !harmless[at] && !bytes.Equal(got, want):
				t.Errorf("byte %d with bit %#x flipped: another image", at, bit)
			}
		}
	}
	for _, cut := range []int{0, 1, 15, 16, 24, 251, end - 1, end, len(base) - 1} {
		if _, _, err := indexAndDecode(base[:cut]); err == nil {
			t.Errorf("cut to %d bytes: read", cut)
		}
	}
	if _, _, err := indexAndDecode(append(slices.Clone(base), 0)); err == nil {
		t.Error("a byte too many: read")
	}
}

// sample2 returns a file of uint16 ramps in tiles of 16 pixels.
func sample2(t testing.TB, shape [3]int, cells bool) []byte {
	pix := make([]byte, 2*shape[0]*shape[1]*shape[2])
	for i := range pix {
		pix[i] = byte(i * i >> 3)
	}
	tiles, l, err := Tile2(pix, shape, chunk.Uint16, 16, cells)
	if err != nil {
		t.Fatal(err)
	}
	for i := range tiles {
		if tiles[i], err = encodeTile(tiles[i], 2); err != nil {
			t.Fatal(err)
		}
	}
	var w bytes.Buffer
	if _, err := Write(&w, tiles, l); err != nil {
		t.Fatal(err)
	}
	return w.Bytes()
}

func TestBadBlobs2(t *testing.T) {
	// 12 tiles, counts of 9 bits
	good, err := hex.DecodeString("4c4f5645010015000000140000001000100003001001004400000009")
	if err != nil {
		t.Fatal(err)
	}
	good = append(good, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) // the second is 256 larger
	if h, err := Parse(good); err != nil || h.Index().Ranges[1].Len != 0x44+256 {
		t.Fatal(h, err)
	}
	for name, c := range map[string]struct {
		kind fault.Kind
		edit func(b []byte) []byte
	}{
		"cut":           {fault.Corrupt, func(b []byte) []byte { return b[:27] }},
		"longer":        {fault.Corrupt, func(b []byte) []byte { return append(b, 0) }},
		"shorter":       {fault.Corrupt, func(b []byte) []byte { return b[:len(b)-1] }},
		"version":       {fault.Unsupported, func(b []byte) []byte { b[4] = 2; return b }},
		"width 0":       {fault.Corrupt, func(b []byte) []byte { b[6] = 0; return b }},
		"no bands":      {fault.Corrupt, func(b []byte) []byte { b[18] = 0; return b }},
		"tile 0":        {fault.Corrupt, func(b []byte) []byte { b[14] = 0; return b }},
		"bits":          {fault.Corrupt, func(b []byte) []byte { b[20] = 3; return b }},
		"format":        {fault.Corrupt, func(b []byte) []byte { b[21] = 107; return b }},
		"unit":          {fault.Corrupt, func(b []byte) []byte { b[22] = 2; return b }},
		"cells":         {fault.Corrupt, func(b []byte) []byte { b[22] = 1; return b }},
		"least 0":       {fault.Corrupt, func(b []byte) []byte { b[23] = 0; return b }},
		"33 bits":       {fault.Corrupt, func(b []byte) []byte { b[27] = 33; return b }},
		"spare bits":    {fault.Corrupt, func(b []byte) []byte { b[41] |= 0x80; return b }},
		"too many bits": {fault.Corrupt, func(b []byte) []byte { b[30] = 0; return b }},
		"not the least": {fault.Corrupt, func(b []byte) []byte {
			for i := 28; i < 41; i++ {
				b[i] = 0xFF
			}
			b[41] = 0x0F
			return b
		}},
		"2^48 tiles of one size": {fault.Limit, func(b []byte) []byte {
			copy(b[6:], "\xff\xff\xff\x00\xff\xff\xff\x00\x01\x00\x01\x00")
			b[27] = 0
			return b[:28]
		}},
		"2^62 tiles": {fault.Corrupt, func(b []byte) []byte {
			copy(b[6:], "\xff\xff\xff\x7f\xff\xff\xff\x7f\x01\x00\x01\x00\xff\xff")
			return b
		}},
		"frame of 4 GiB": {fault.Corrupt, func(b []byte) []byte { copy(b[23:], "\xff\xff\xff\xff"); return b }},
		"large tiles": {fault.Limit, func(b []byte) []byte {
			copy(b[14:], "\xff\xff\xff\xff")
			copy(b[6:], "\x01\x00\x10\x00\x01\x00\x10\x00")
			return b
		}},
	} {
		_, err := ParseLimit(c.edit(slices.Clone(good)), 1<<20)
		if name == "large tiles" && fault.KindOf(err) != 0 {
			continue // either the grid or the size of a tile is what is wrong first
		}
		if k := fault.KindOf(err); k != c.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Tile2 cuts an image for a file of generation 2: tiles at the edges are cut, and with cells a chunk holds
// all bands of its position, one after the other.
func Tile2(pixels []byte, shape [3]int, dtype chunk.DType, size int, cells bool) (tiles [][]byte, l Layout, err error) {
	return cutTiles(pixels, Layout{Shape: shape, DType: dtype, TileH: size, TileW: size, Generation: 2, Cells: cells})
}

// cutTiles returns all tiles of an image.
func cutTiles(pixels []byte, l Layout) ([][]byte, Layout, error) {
	tiler, err := NewTiler(pixels, l)
	if err != nil {
		return nil, l, err
	}
	tiles := make([][]byte, tiler.Len())
	for i := range tiles {
		tiles[i] = tiler.AppendTile(nil, i)
	}
	return tiles, l, nil
}

// encodeTile compresses the samples of one tile, of width bytes each.
func encodeTile(samples []byte, width int) ([]byte, error) {
	encoder, err := openzl.NewEncoder("delta>zstd", openzl.EncodeOptions{Level: 3})
	if err != nil {
		return nil, err
	}
	return encoder.Encode(nil, samples, width, 1, len(samples)/width)
}

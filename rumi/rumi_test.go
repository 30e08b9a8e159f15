package rumi

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/corpus/whole"
)

const limit = 64 << 20

// decode reads a whole image with a header blob.
func decode(file, blob []byte) (*Header, []byte, error) {
	h, err := Parse(blob)
	if err != nil {
		return nil, nil, err
	}
	if err := h.Check(int64(len(file))); err != nil {
		return h, nil, err
	}
	pix, err := whole.Image(h.Index(), file, limit)
	return h, pix, err
}

// indexAndDecode reads a whole image with the blob made from the file itself.
func indexAndDecode(file []byte) (*Header, []byte, error) {
	blob, err := IndexFile(context.Background(), &corpus.Mem{B: file})
	if err != nil {
		return nil, nil, err
	}
	return decode(file, blob)
}

// TestCorpus: files of the original writer yield its blobs and pixels, with one read for the directory.
func TestCorpus(t *testing.T) {
	checkFiles(t, corpus.Of(corpus.Files(t), "rumi"), 1)
	checkFiles(t, files2(t), 2)
}

func checkFiles(t *testing.T, files []corpus.File, generation int) {
	if len(files) == 0 {
		t.Fatal("no files")
	}
	for _, f := range files {
		t.Run(filepath.Base(f.Path), func(t *testing.T) {
			file := f.Bytes(t)
			r := &corpus.Mem{B: file}
			blob, err := IndexFile(context.Background(), r)
			if err != nil {
				t.Fatal(err)
			}
			if hex.EncodeToString(blob) != f.Blob {
				t.Error("another blob than the original writer's")
			}
			if r.Reads != 1 {
				t.Errorf("%d reads", r.Reads)
			}
			h, pix, err := decode(file, blob)
			if err != nil {
				if slices.Contains(f.Codecs, "pivco_huffman") && errors.Is(err, fault.Unsupported) {
					t.Skip(err)
				}
				t.Fatal(err)
			}
			if !slices.Equal(h.Shape[:], f.Shape) || h.DType.String() != f.DType || h.Generation != generation ||
				f.Tile != nil && (h.TileW != *f.Tile || h.TileH != *f.Tile) {
				t.Errorf("%v %v tile %d generation %d, want %v %v", h.Shape, h.DType, h.TileW, h.Generation, f.Shape,
					f.DType)
			}
			if generation == 2 && h.Shape[0] > 1 && h.Cells != (f.Unit == "cell") {
				t.Errorf("cells %t of a file of %ss", h.Cells, f.Unit)
			}
			if got := corpus.SHA256(pix); got != f.SHA256 {
				t.Errorf("sha256 %s, want %s", got, f.SHA256)
			}
		})
	}
}

// TestWriteGivesTheFileAgain: writing the frames of a file again yields the same file byte for
// byte, with its georeferencing.
func TestWriteGivesTheFileAgain(t *testing.T) {
	for _, f := range corpus.Of(corpus.Files(t), "rumi") {
		file := f.Bytes(t)
		d, err := ifd.Open(context.Background(), &corpus.Mem{B: file}, ifd.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if !Is(context.Background(), d) {
			t.Errorf("%s is not seen as a rumi file", f.Path)
		}
		m, err := tiff.ReadMeta(context.Background(), d)
		if err != nil {
			t.Fatal(err)
		}
		blob, err := IndexFile(context.Background(), &corpus.Mem{B: file})
		if err != nil {
			t.Fatal(err)
		}
		h, err := Parse(blob)
		if err != nil {
			t.Fatal(err)
		}
		var frames [][]byte
		for _, r := range h.Index().Ranges {
			frames = append(frames, file[r.Off:r.Off+r.Len])
		}
		l := Layout{Shape: h.Shape, DType: h.DType, TileH: h.TileH, TileW: h.TileW}
		if f.Geo != nil { // a, b, c, d, e, f of x = a·col + b·row + c
			a := f.Geo.Transform
			want := [6]float64{a[2], a[0], a[1], a[5], a[3], a[4]}
			if m.Transform != want || float64(m.EPSG) != f.Geo.CRS {
				t.Errorf("%s: EPSG %d, transform %v", f.Path, m.EPSG, m.Transform)
			}
			l.Geo = &m.Geo
			// A transform and a code give the three keys that GeoTIFF requires; other keys are those of a Geo.
			if m.Geo.IsPoint() {
				want[0] += (want[1] + want[2]) / 2
				want[3] += (want[4] + want[5]) / 2
			}
			plain := l
			plain.Geo = &tiff.Geo{EPSG: m.EPSG, Transform: want, HasTransform: true}
			plain.PixelIsPoint = m.Geo.IsPoint()
			var w bytes.Buffer
			if _, err := Write(&w, frames, plain); err != nil || len(m.GeoKeys) == 16 && !bytes.Equal(w.Bytes(), file) {
				t.Errorf("%s: another file without its keys: %v", f.Path, err)
			}
		}
		var w bytes.Buffer
		again, err := Write(&w, frames, l)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(w.Bytes(), file) {
			t.Errorf("%s: another file", f.Path)
		}
		if !bytes.Equal(again, blob) {
			t.Errorf("%s: another blob", f.Path)
		}
	}
}

// TestTileAgainstTheOriginal: Tile cuts an image into the content of the original file's frames.
func TestTileAgainstTheOriginal(t *testing.T) {
	n := 0
	for _, f := range corpus.Of(corpus.Files(t), "rumi") {
		file := f.Bytes(t)
		h, pix, err := indexAndDecode(file)
		if errors.Is(err, fault.Unsupported) {
			continue // TestCorpus says which may be
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
		tiles, _, err := cutTiles(pix, Layout{Shape: h.Shape, DType: h.DType, TileH: h.TileW, TileW: h.TileW})
		if err != nil {
			t.Fatal(err)
		}
		x, d := h.Index(), chunk.NewDecoder(nil)
		for i, r := range x.Ranges {
			want := make([]byte, x.DecodedBytes(i))
			if err := d.Decode(want, file[r.Off:r.Off+r.Len], x, i); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(tiles[i], want) {
				t.Errorf("%s: tile %d differs", f.Path, i)
				break
			}
		}
	}
	if n == 0 {
		t.Fatal("no file was read")
	}
}

func TestBadFiles(t *testing.T) {
	all := corpus.Files(t)
	base := map[string]corpus.File{}
	for _, f := range all {
		base[f.Path] = f
	}
	for _, f := range corpus.Of(all, "bad", "rumi-v1", "rumi-v1-blob") {
		t.Run(strings.TrimPrefix(f.Path, "bad/"), func(t *testing.T) {
			var pix []byte
			var err error
			if f.Format == "rumi-v1" {
				_, pix, err = indexAndDecode(f.Bytes(t))
			} else {
				b := base[f.Base]
				_, pix, err = decode(b.Bytes(t), f.Bytes(t))
			}
			f.CheckBad(t, pix, err)
		})
	}
}

func TestWriteRefuses(t *testing.T) {
	good := Layout{Shape: [3]int{2, 20, 20}, DType: chunk.Uint8, TileH: 16, TileW: 16}
	frames := make([][]byte, 8)
	for i := range frames {
		frames[i] = []byte{1}
	}
	if _, err := Write(&bytes.Buffer{}, frames, good); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(l *Layout, f *[][]byte){
		"no bands":        func(l *Layout, _ *[][]byte) { l.Shape[0] = 0 },
		"bfloat16":        func(l *Layout, _ *[][]byte) { l.DType = chunk.BFloat16 },
		"no tile":         func(l *Layout, _ *[][]byte) { l.TileW = 0 },
		"wide":            func(l *Layout, _ *[][]byte) { l.Shape[2] = 1 << 31 },
		"large tile":      func(l *Layout, _ *[][]byte) { l.TileH = 1 << 16 },
		"a point nowhere": func(l *Layout, _ *[][]byte) { l.PixelIsPoint = true },
		"a frame less":    func(_ *Layout, f *[][]byte) { *f = (*f)[1:] },
		"empty frame":     func(_ *Layout, f *[][]byte) { *f = append([][]byte{{}}, (*f)[1:]...) },
	} {
		l, f := good, slices.Clone(frames)
		edit(&l, &f)
		if _, err := Write(&bytes.Buffer{}, f, l); err == nil {
			t.Errorf("%s: written", name)
		}
	}
	for _, shape := range [][3]int{{2, 20, 21}, {0, 20, 20}, {-1, -20, 40}, {1 << 15, 1 << 30, 1 << 30}} {
		l := Layout{Shape: shape, DType: chunk.Uint8, TileH: 16, TileW: 16}
		if _, err := NewTiler(make([]byte, 800), l); err == nil {
			t.Errorf("%v: 800 bytes cut", shape)
		}
	}
}

// FuzzRumiBlob: a blob that parses is valid, yields itself when written again, and costs memory in
// proportion to its length or, of generation 2, to the limit of equal frames.
func FuzzRumiBlob(f *testing.F) {
	f.Add([]byte("\x3c\x33\x3c\x33\x01\x00\x11\x00\x00\x00\x09\x00\x00\x00\x10\x00\x10\x00" +
		"\x01\x00\x10\x01\x10\x00\x00\x00\x05\x00\x00\x00\x06\x00\x00\x00"))
	for _, e := range append(seeds(f), files2(f)...) {
		if b, err := hex.DecodeString(e.Blob); err == nil && len(b) > 0 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseLimit(b, 1<<24)
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("error without a kind: %v", err)
			}
			return
		}
		x := h.Index()
		if err := x.Validate(-1, 1<<24); err != nil {
			t.Fatal(err)
		}
		most := len(b) / 4
		if h.Generation > 1 {
			most = max(maxEqualFrames, 8*len(b))
		}
		if n := len(x.Ranges); n > most {
			t.Fatalf("%d ranges from %d bytes", n, len(b))
		}
		if c := h.Blob(); !bytes.Equal(b, c) {
			t.Fatalf("another blob\n%x\n%x", b, c)
		}
	})
}

// FuzzRumiFile: any bytes yield an error with a kind, or an image.
func FuzzRumiFile(f *testing.F) {
	for _, e := range append(seeds(f), files2(f)...) {
		if b := e.Bytes(f); len(b) < 8<<10 {
			f.Add(b)
		}
	}
	f.Add(sample2(f, [3]int{2, 20, 21}, true))
	f.Fuzz(func(t *testing.T, b []byte) {
		blob, err := IndexFile(context.Background(), &corpus.Mem{B: b})
		if err == nil {
			var h *Header
			if h, err = ParseLimit(blob, 1<<20); err == nil {
				if h.Generation == 1 && len(blob) > 26+len(b) {
					t.Fatalf("a blob of %d bytes from a file of %d", len(blob), len(b))
				}
				_, err = whole.Image(h.Index(), b, 1<<22)
			}
		}
		if err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("error without a kind: %v", err)
		}
	})
}

// seeds returns the rumi files of the module's testdata.
func seeds(t testing.TB) []corpus.File {
	return corpus.Of(corpus.Manifest(t, filepath.Join(corpus.Testdata(t), "raster")), "rumi")
}

func BenchmarkParse(b *testing.B) {
	for _, e := range seeds(b) {
		if e.Path != "rumi-v1/odd-int16.tif" {
			continue
		}
		blob, err := hex.DecodeString(e.Blob)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Parse(blob); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// TestBlobsAreSmall: the header blob of a file of 64 tiles has at most 300 bytes, in both
// generations and however long its frames are (here up to 1 MiB).
func TestBlobsAreSmall(t *testing.T) {
	const most = 300
	r := rand.New(rand.NewPCG(64, 300))
	frames := make([][]byte, 64)
	for i := range frames {
		frames[i] = make([]byte, 1+r.IntN(1<<20))
	}
	for generation := 1; generation <= 2; generation++ {
		l := Layout{Shape: [3]int{4, 2048, 2048}, DType: chunk.Float32, TileH: 512, TileW: 512, Generation: generation}
		var file bytes.Buffer
		blob, err := Write(&file, frames, l)
		if err != nil {
			t.Fatal(err)
		}
		read, err := IndexFile(t.Context(), &corpus.Mem{B: file.Bytes()})
		if err != nil || !bytes.Equal(read, blob) {
			t.Fatalf("generation %d: the file's blob differs from that of writing it: %v", generation, err)
		}
		if len(blob) > most {
			t.Errorf("generation %d: %d bytes for 64 tiles, at most %d", generation, len(blob), most)
		}
		t.Logf("generation %d: %d bytes", generation, len(blob))
	}
}

// Check returns an error of kind Corrupt unless all frames lie within a file of that many bytes. A file of
// generation 2 must also end with the last frame, and one of generation 3 have bytes behind it.
func (h *Header) Check(fileSize int64) error {
	ranges := h.Unit.fileOrder(&h.index)
	last := ranges[len(ranges)-1]
	end := last.Off + last.Len
	ends := end <= fileSize
	switch h.Generation {
	case 2:
		ends = end == fileSize
	case 3:
		ends = end < fileSize
	}
	if !ends {
		return fault.New(fault.Corrupt, "header blob", "frames end at %d, the file at %d", end, fileSize)
	}
	return nil
}

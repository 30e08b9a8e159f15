package tog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/corpus/whole"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

func decode(file []byte) (*tiff.Image, []byte, error) {
	img, err := tiff.Open(context.Background(), &corpus.Mem{B: file}, tiff.Limits{MaxChunk: 64 << 20})
	if err != nil {
		return nil, nil, err
	}
	pix, err := whole.Image(img.Index, file, 64<<20)
	return img, pix, err
}

// optionsOf returns the options that write an image like the given one.
func optionsOf(img *tiff.Image) Options {
	x, m := img.Index, img.Meta
	o := Options{
		Shape: [3]int{x.Bands, x.Height, x.Width}, DType: x.DType, Tile: x.ChunkH, Level: 3, Predictor: x.Predictor,
		Geo: m.Geo, NoData: m.NoData, BandNames: m.BandNames, Photometric: m.Photometric, ExtraSamples: m.ExtraSamples,
	}
	return o
}

// TestWriteAgainstGDAL: a TOG written again has the bytes of GDAL's up to the first tile, except
// for the offsets and sizes of the tiles, and the tiles hold the same samples, with their padding.
func TestWriteAgainstGDAL(t *testing.T) {
	race.SkipCovered(t)
	n := 0
	for _, f := range corpus.Of(corpus.Files(t), "tiff") {
		if !f.TOG {
			continue
		}
		n++
		t.Run(f.Path, func(t *testing.T) {
			theirs := f.Bytes(t)
			img, pix, err := decode(theirs)
			if err != nil {
				t.Fatal(err)
			}
			var w bytes.Buffer
			if err := Write(&w, pix, optionsOf(img)); err != nil {
				t.Fatal(err)
			}
			ours := w.Bytes()
			again, pix2, err := decode(ours)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(pix, pix2) {
				t.Error("other pixels")
			}
			checkStructure(t, ours)
			first := min(img.Index.Ranges[0].Off, again.Index.Ranges[0].Off)
			a, b := withoutTiles(t, theirs)[:first], withoutTiles(t, ours)[:first]
			if again.Index.Ranges[0].Off != img.Index.Ranges[0].Off ||
				!bytes.Equal(a[:first-leader], b[:first-leader]) {
				t.Errorf("the directory differs from GDAL's\n%x\n%x", a, b)
			}
			sameTiles(t, img.Index, theirs, again.Index, ours)
		})
	}
	if n == 0 {
		t.Fatal("no TOG")
	}
}

// withoutTiles returns a file with its tile arrays set to zero.
func withoutTiles(t *testing.T, file []byte) []byte {
	t.Helper()
	f, err := ifd.Open(context.Background(), &corpus.Mem{B: file}, ifd.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	file = bytes.Clone(file)
	for _, tag := range []uint16{ifd.TagTileOffsets, ifd.TagTileByteCounts} {
		e := f.Dirs[0].Find(tag)
		clear(file[e.Off:][:int(e.Count)*e.Type.Size()])
	}
	return file
}

func sameTiles(t *testing.T, x *chunk.Index, xf []byte, y *chunk.Index, yf []byte) {
	t.Helper()
	d := chunk.NewDecoder(nil)
	for i := range x.Ranges {
		a, b := make([]byte, x.DecodedBytes(i)), make([]byte, y.DecodedBytes(i))
		ra, rb := x.Ranges[i], y.Ranges[i]
		if err := d.Decode(a, xf[ra.Off:ra.Off+ra.Len], x, i); err != nil {
			t.Fatal(err)
		}
		if err := d.Decode(b, yf[rb.Off:rb.Off+rb.Len], y, i); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("tile %d differs, padding included", i)
			return
		}
	}
}

// checkStructure checks the bytes that GDAL's COG validation checks: the ghost area and its size,
// the directory before the data, and for every tile the leader, the trailer and its place after the
// tile before it.
func checkStructure(t *testing.T, file []byte) {
	t.Helper()
	le := binary.LittleEndian
	if !bytes.HasPrefix(file[16:], []byte(tiff.StructureKey)) {
		t.Fatal("no ghost area")
	}
	var size int
	for _, c := range file[16+len(tiff.StructureKey):][:6] {
		size = 10*size + int(c-'0')
	}
	body := file[16+len(tiff.StructureKey)+len("000000 bytes\n"):][:size]
	if !bytes.HasPrefix(body, []byte("LAYOUT=IFDS_BEFORE_DATA\n")) ||
		!bytes.HasSuffix(body, []byte("KNOWN_INCOMPATIBLE_EDITION=NO\n ")) {
		t.Errorf("ghost area %q", body)
	}
	img, err := tiff.Open(context.Background(), &corpus.Mem{B: file}, tiff.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	x := img.Index
	next := x.Ranges[0].Off
	if int64(le.Uint64(file[8:])) > next {
		t.Error("the directory stands behind the data")
	}
	for i, r := range x.Ranges {
		if r.Off != next {
			t.Fatalf("tile %d at %d, not at %d", i, r.Off, next)
		}
		if got := int64(le.Uint32(file[r.Off-4:])); got != r.Len {
			t.Errorf("tile %d of %d bytes: its leader says %d", i, r.Len, got)
		}
		end := r.Off + r.Len
		if !bytes.Equal(file[end-4:end], file[end:end+4]) {
			t.Errorf("tile %d: trailer", i)
		}
		next = end + 8
	}
	if next-4 != int64(len(file)) {
		t.Errorf("the file ends at %d, its last tile at %d", len(file), next-8)
	}
}

// randomImage returns pixels that compress somewhat.
func randomImage(o Options) []byte {
	rnd := rand.New(rand.NewPCG(7, 8))
	pix := make([]byte, o.Shape[0]*o.Shape[1]*o.Shape[2]*o.DType.Size())
	for i := range pix {
		pix[i] = byte(rnd.IntN(17) * (i / 100 % 5))
	}
	return pix
}

func TestWriteEveryType(t *testing.T) {
	for d := chunk.Uint8; d.Valid(); d++ {
		if format, _ := tiff.FormatOf(d); format == 0 {
			continue
		}
		for p := chunk.Predictor(0); p <= chunk.FloatingPoint; p++ {
			o := Options{Shape: [3]int{3, 50, 37}, DType: d, Tile: 32, Level: 1, Predictor: p}
			full := o.withDefaults()
			if full.validate() != nil {
				if p < chunk.Horizontal {
					t.Errorf("%v predictor %d is refused", d, p)
				}
				continue
			}
			pix := randomImage(o)
			var w bytes.Buffer
			if err := Write(&w, pix, o); err != nil {
				t.Fatal(err)
			}
			checkStructure(t, w.Bytes())
			img, err := tiff.Open(context.Background(), &corpus.Mem{B: w.Bytes()}, tiff.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := whole.Image(img.Index, w.Bytes(), 1<<30)
			if err != nil || !bytes.Equal(got, pix) {
				t.Errorf("%v predictor %d: other pixels (%v)", d, p, err)
			}
		}
	}
}

func TestWriteKeepsTheMetadata(t *testing.T) {
	o := Options{
		Shape: [3]int{2, 20, 20}, DType: chunk.Int64, Tile: 16, NoData: "-9223372036854775808",
		BandNames: []string{`B02 & <x> "y" &amp;`, "ünïcode"},
		Geo:       tiff.Geo{EPSG: 4326, HasTransform: true, Transform: [6]float64{1, .1, .02, 2, .03, -.1}},
	}
	var w bytes.Buffer
	if err := Write(&w, randomImage(o), o); err != nil {
		t.Fatal(err)
	}
	img, err := tiff.Open(context.Background(), &corpus.Mem{B: w.Bytes()}, tiff.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	m := img.Meta
	if m.NoData != o.NoData || img.Index.NoDataBits == nil || *img.Index.NoDataBits != 1<<63 {
		t.Errorf("nodata %q", m.NoData)
	}
	if len(m.BandNames) != 2 || m.BandNames[0] != o.BandNames[0] || m.BandNames[1] != o.BandNames[1] {
		t.Errorf("band names %q", m.BandNames)
	}
	if m.EPSG != 4326 || m.Transform != o.Geo.Transform || m.Interleave != "TILE" {
		t.Errorf("EPSG %d transform %v interleave %s", m.EPSG, m.Transform, m.Interleave)
	}
}

func TestWriteRefuses(t *testing.T) {
	good := Options{Shape: [3]int{2, 20, 20}, DType: chunk.Uint16, Tile: 16}
	pix := randomImage(good)
	if err := Write(io.Discard, pix, good); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*Options){
		"shape":         func(o *Options) { o.Shape[0] = 3 },
		"no bands":      func(o *Options) { o.Shape = [3]int{0, 20, 20} },
		"negative":      func(o *Options) { o.Shape = [3]int{2, -20, -20} },
		"type":          func(o *Options) { o.DType = chunk.BFloat16 },
		"tile":          func(o *Options) { o.Tile = 24 },
		"level":         func(o *Options) { o.Level = 23 },
		"predictor":     func(o *Options) { o.Predictor = chunk.FloatingPoint },
		"names":         func(o *Options) { o.BandNames = []string{"a"} },
		"extra samples": func(o *Options) { o.ExtraSamples = []uint16{0, 0} },
	} {
		o := good
		edit(&o)
		if err := Write(io.Discard, pix, o); err == nil {
			t.Errorf("%s: written", name)
		}
	}
}

// TestWriteWorkers: the bytes do not depend on the number of workers, and an error of Progress
// ends the work.
func TestWriteWorkers(t *testing.T) {
	o := Options{Shape: [3]int{3, 100, 120}, DType: chunk.Uint16, Tile: 16}
	pix := randomImage(o)
	var want []byte
	for _, n := range []int{0, 1, 2, 9, 1000} {
		var w bytes.Buffer
		calls := 0
		o.Workers = n
		o.Progress = func(done, total int) error {
			if calls++; done != calls || total != 3*7*8 {
				t.Errorf("%d of %d at call %d", done, total, calls)
			}
			return nil
		}
		if err := Write(&w, pix, o); err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = w.Bytes()
		}
		if !bytes.Equal(w.Bytes(), want) || calls != 3*7*8 {
			t.Errorf("%d workers: another file, or %d calls", n, calls)
		}
	}
	stop := errors.New("stop")
	o.Workers, o.Progress = 3, func(done, _ int) error {
		if done == 5 {
			return stop
		}
		return nil
	}
	var w bytes.Buffer
	if err := Write(&w, pix, o); !errors.Is(err, stop) || w.Len() != 0 {
		t.Errorf("%v, %d bytes written", err, w.Len())
	}
}

// TestWideImage: a width that needs a LONG is written and read.
func TestWideImage(t *testing.T) {
	race.SkipCovered(t)
	var w bytes.Buffer
	o := Options{Shape: [3]int{1, 1, 70000}, DType: chunk.Uint8, Tile: 512, Level: 1}
	if err := Write(&w, randomImage(o), o); err != nil {
		t.Fatal(err)
	}
	img, err := tiff.Open(context.Background(), &corpus.Mem{B: w.Bytes()}, tiff.Limits{})
	if err != nil || img.Index.Width != 70000 {
		t.Error(err)
	}
}

// file is a spool in memory.
type file struct{ b []byte }

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	f.b = append(f.b, make([]byte, max(0, int(off)+len(p)-len(f.b)))...)
	return copy(f.b[off:], p), nil
}

func (f *file) ReadAt(p []byte, off int64) (int, error) { return copy(p, f.b[off:]), nil }

// TestWriter: strips of all levels, in any turn, make the file that Write makes of whole images, with and without
// a spool.
func TestWriter(t *testing.T) {
	o := Options{Shape: [3]int{3, 100, 70}, DType: chunk.Uint16, Tile: 16, Level: 1, Workers: 3}
	half := Options{Shape: [3]int{3, 50, 35}, DType: chunk.Uint16}
	levels := []struct {
		h, w   int
		pixels []byte
	}{{100, 70, randomImage(o)}, {50, 35, randomImage(half)}}
	o.Overviews = []Overview{{Height: 50, Width: 35, Pixels: levels[1].pixels}}
	var want bytes.Buffer
	if err := Write(&want, levels[0].pixels, o); err != nil {
		t.Fatal(err)
	}
	for _, spool := range []Spool{nil, &file{}} {
		w, err := NewWriter(o, spool)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		for i, y := range []int{0, 0, 32, 64, 32} { // of level 0, 1, 0, 0, 1
			level := []int{0, 1, 0, 0, 1}[i]
			l := levels[level]
			rows := min(32, l.h-y)
			if level == 0 && y == 64 {
				rows = 36
			}
			var strip []byte
			for b := range 3 {
				strip = append(strip, l.pixels[(b*l.h+y)*l.w*2:][:rows*l.w*2]...)
			}
			if err := w.Write(&got); err == nil || got.Len() > 0 {
				t.Fatal("a file without all rows was written")
			}
			if err := w.Add(level, strip[:len(strip)-2]); err == nil {
				t.Fatal("half a row was taken")
			}
			if err := w.Add(level, strip); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Write(&got); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("another file, %v", err)
		}
	}
}

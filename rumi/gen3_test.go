package rumi

import (
	"bytes"
	"context"
	"encoding/binary"
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
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// file3 is a line of the manifest of testdata/raster/rumi-3: what rumi-eo says of a file that it wrote.
type file3 struct {
	Path, DType, Frame, Blob, SHA256 string
	Shape                            [4]int // steps of time, bands, height, width
	Tile, Frames                     int
	Bands                            []string
	TimeKind                         string `json:"time_kind"`
	Times                            []int64
	Transform                        *[6]float64
	CRS                              int
	Point                            bool
}

func (f *file3) bytes(t testing.TB) []byte {
	t.Helper()
	b := testfile.Read(t, filepath.Join(corpus.Testdata(t), "raster", "rumi-3", f.Path))
	return b
}

func files3(t testing.TB) []file3 {
	return corpus.Rows[file3](t, filepath.Join(corpus.Testdata(t), "raster", "rumi-3"))
}

// named gives the sample types names of this module that rumi-eo calls otherwise.
var named = map[string]string{"bool": "uint1", "complex32": "complex_float16"}

func open3(t testing.TB, b []byte) *ifd.File {
	t.Helper()
	f, err := Open(context.Background(), &corpus.Mem{B: b}, ifd.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFiles3: files of rumi-eo 0.24 and 0.26 yield what rumi-eo says of them, with one read.
func TestFiles3(t *testing.T) {
	for _, f := range files3(t) {
		t.Run(strings.TrimSuffix(f.Path, ".rumi"), func(t *testing.T) {
			file := f.bytes(t)
			r := &corpus.Mem{B: file}
			blob, err := IndexFile(context.Background(), r)
			if err != nil {
				t.Fatal(err)
			}
			if hex.EncodeToString(blob) != f.Blob {
				t.Errorf("blob %x, the original writer's is %s", blob, f.Blob)
			}
			if r.Reads != 1 {
				t.Errorf("%d reads", r.Reads)
			}
			h, pix, err := decode(file, blob)
			if err != nil {
				t.Fatal(err)
			}
			dtype := f.DType
			if n := named[dtype]; n != "" {
				dtype = n
			}
			if h.Times != f.Shape[0] || !slices.Equal(h.Shape[:], f.Shape[1:]) || h.DType.String() != dtype ||
				h.TileW != f.Tile || h.TileH != f.Tile || h.Generation != 3 || len(h.Index().Ranges) != f.Frames {
				t.Errorf("%+v, want %+v", h, f)
			}
			if got := h.Unit.Axes(h.Shape[0], h.Times); got != f.Frame {
				t.Errorf("frames of %s, want %s", got, f.Frame)
			}
			if got := corpus.SHA256(pix); got != f.SHA256 {
				t.Errorf("sha256 %s, want %s", got, f.SHA256)
			}
		})
	}
}

// TestMeta3: the trailer and the georeferencing are those that rumi-eo reads.
func TestMeta3(t *testing.T) {
	for _, f := range files3(t) {
		d := open3(t, f.bytes(t))
		tr, err := TrailerOf(context.Background(), d)
		if err != nil {
			t.Fatal(f.Path, err)
		}
		kind := f.TimeKind
		if kind == "" {
			kind = "undefined"
		}
		if tr.Kind.String() != kind || !slices.Equal(tr.Times, f.Times) || !slices.Equal(tr.Bands, f.Bands) {
			t.Errorf("%s: %+v, want %s %v %q", f.Path, tr, kind, f.Times, f.Bands)
		}
		m, err := Meta(context.Background(), d)
		if err != nil {
			t.Fatal(f.Path, err)
		}
		if !slices.Equal(m.BandNames, f.Bands) || m.EPSG != f.CRS || m.HasTransform != (f.Transform != nil) {
			t.Errorf("%s: %q EPSG %d, transform %t", f.Path, m.BandNames, m.EPSG, m.HasTransform)
		}
		if f.Transform != nil {
			a := *f.Transform
			want := [6]float64{a[2], a[0], a[1], a[5], a[3], a[4]}
			if f.Point { // Transform refers to corners
				want[0] -= (want[1] + want[2]) / 2
				want[3] -= (want[4] + want[5]) / 2
			}
			if m.Transform != want {
				t.Errorf("%s: transform %v, want %v", f.Path, m.Transform, want)
			}
		}
	}
}

// TestWrite3GivesTheFileAgain: writing the frames of a file again yields the same file byte for byte, and a
// Tiler cuts its image into the content of the frames.
func TestWrite3GivesTheFileAgain(t *testing.T) {
	for _, f := range files3(t) {
		file := f.bytes(t)
		d := open3(t, file)
		tr, err := TrailerOf(context.Background(), d)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Meta(context.Background(), d)
		if err != nil {
			t.Fatal(err)
		}
		h, pix, err := indexAndDecode(file)
		if err != nil {
			t.Fatal(f.Path, err)
		}
		l := Layout{Shape: h.Shape, DType: h.DType, TileH: h.TileH, TileW: h.TileW, Generation: 3, Times: h.Times,
			Unit: h.Unit, Trailer: tr}
		if f.Transform != nil {
			l.Geo = &m.Geo
		}
		cut, err := NewTiler(pix, l)
		if err != nil {
			t.Fatal(f.Path, err)
		}
		x, dec := h.Index(), chunk.NewDecoder(nil)
		frames := make([][]byte, len(x.Ranges))
		for i, r := range x.Ranges {
			frame := h.Unit.frame(x, i)
			frames[frame] = file[r.Off : r.Off+r.Len]
			want := make([]byte, x.DecodedBytes(i))
			if err := dec.Decode(want, frames[frame], x, i); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(cut.AppendTile(nil, frame), want) {
				t.Errorf("%s: frame %d differs", f.Path, frame)
			}
		}
		var w bytes.Buffer
		blob, err := Write(&w, frames, l)
		if tr.Bands == nil {
			if err == nil {
				t.Errorf("%s: written without names of bands", f.Path)
			}
			continue
		}
		if err != nil {
			t.Fatal(f.Path, err)
		}
		if !bytes.Equal(w.Bytes(), file) {
			t.Errorf("%s: another file", f.Path)
		}
		if hex.EncodeToString(blob) != f.Blob || !bytes.Equal(h.Blob(), blob) {
			t.Errorf("%s: another blob", f.Path)
		}
	}
}

// write3 returns a file of generation 3 with an image, little-endian in the order t b y x.
func write3(t testing.TB, pix []byte, l Layout) []byte {
	t.Helper()
	l.Generation, l.Trailer = 3, &Trailer{Kind: Instant, Times: make([]int64, max(l.Times, 1))}
	for i := range l.Trailer.Times {
		l.Trailer.Times[i] = int64(i) * int64(i+3) * 7777
	}
	for b := range l.Shape[0] {
		l.Trailer.Bands = append(l.Trailer.Bands, "b"+string(rune('a'+b)))
	}
	cut, err := NewTiler(pix, l)
	if err != nil {
		t.Fatal(err)
	}
	frames := make([][]byte, cut.Len())
	for i := range frames {
		if frames[i], err = encodeTile(cut.AppendTile(nil, i), l.DType.Size()); err != nil {
			t.Fatal(err)
		}
	}
	var w bytes.Buffer
	if _, err := Write(&w, frames, l); err != nil {
		t.Fatal(err)
	}
	return w.Bytes()
}

// random3 returns a random layout of a dtype with a unit that fits, and random samples.
func random3(r *rand.Rand, d chunk.DType) (Layout, []byte) {
	l := Layout{DType: d, TileH: 1 + r.IntN(20), TileW: 1 + r.IntN(20), Times: 1 + r.IntN(4)}
	l.Shape = [3]int{1 + r.IntN(4), 1 + r.IntN(30), 1 + r.IntN(30)}
	for l.Unit = Unit(r.IntN(int(numUnits))); !l.Unit.fits(l.Shape[0], l.Times); {
		l.Unit = Unit(r.IntN(int(numUnits)))
	}
	pix := make([]byte, l.Times*l.Shape[0]*l.Shape[1]*l.Shape[2]*d.Size())
	for i := range pix {
		pix[i] = byte(r.Uint32()) & (1<<min(d.Bits(), 8) - 1)
	}
	return l, pix
}

// TestWrittenIsRead3: everything that generation 3 can hold is read back as it was written.
func TestWrittenIsRead3(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 26))
	for d := chunk.Uint8; d.Valid(); d++ {
		for range 8 {
			l, pix := random3(r, d)
			if d == chunk.Complex128 { // no OpenZL number is as wide
				continue
			}
			h, got, err := indexAndDecode(write3(t, pix, l))
			if err != nil {
				t.Fatal(d, l, err)
			}
			if h.DType != d || h.Shape != l.Shape || h.Times != l.Times || h.Unit != l.Unit || !bytes.Equal(got, pix) {
				t.Errorf("%v %v: came back as %v %v", d, l, h.DType, h.Shape)
			}
		}
	}
}

// TestHighBits: a sample with bits above those of its type is refused, in a file of generation 3 and by its
// writer.
func TestHighBits(t *testing.T) {
	l := Layout{Shape: [3]int{2, 20, 21}, TileH: 16, TileW: 16, DType: chunk.Uint8}
	pix := make([]byte, 2*20*21)
	pix[500] = 0x10
	file := write3(t, pix, l)
	d := open3(t, file)
	for tag, v := range map[uint16]byte{ifd.TagBitsPerSample: 4, ifd.TagSampleFormat: 1} {
		e := d.Dirs[0].Find(tag)
		file[e.Off], file[e.Off+2] = v, v
	}
	if _, _, err := indexAndDecode(file); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("a sample of 5 bits of uint4: %v", err)
	}
	l.DType, l.Generation = chunk.Uint4, 3
	if _, err := NewTiler(pix, l); err == nil {
		t.Error("a sample of 5 bits of uint4: written")
	}
	pix[500] = 0x0f
	if _, err := NewTiler(pix, l); err != nil {
		t.Error(err)
	}
}

func TestWrite3Refuses(t *testing.T) {
	good := Layout{Shape: [3]int{2, 20, 20}, DType: chunk.Uint8, TileH: 16, TileW: 16, Generation: 3, Times: 2,
		Unit: UnitHWBT, Trailer: &Trailer{Bands: []string{"a", "b"}, Kind: Instant, Times: []int64{5, 5}}}
	frames := [][]byte{{1}, {1}, {1}, {1}}
	if _, err := Write(&bytes.Buffer{}, frames, good); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(l *Layout){
		"generation 4":       func(l *Layout) { l.Generation = 4 },
		"cells":              func(l *Layout) { l.Cells = true },
		"generation 2":       func(l *Layout) { l.Generation = 2 },
		"a unit of tiles":    func(l *Layout) { l.Unit = UnitTileTime },
		"a unit of one axis": func(l *Layout) { l.Unit = UnitPlanes },
		"an unknown unit":    func(l *Layout) { l.Unit = 10 },
		"no trailer":         func(l *Layout) { l.Trailer = nil },
		"no names":           func(l *Layout) { l.Trailer = &Trailer{Kind: Instant, Times: []int64{5, 5}} },
		"equal names":        func(l *Layout) { l.Trailer.Bands[1] = "a" },
		"an empty name":      func(l *Layout) { l.Trailer.Bands[1] = "" },
		"a name with 0":      func(l *Layout) { l.Trailer.Bands[1] = "\x00" },
		"a broken name":      func(l *Layout) { l.Trailer.Bands[1] = "\xff" },
		"no kind":            func(l *Layout) { l.Trailer.Kind, l.Trailer.Times = UndefinedTime, nil },
		"one time":           func(l *Layout) { l.Trailer.Times = l.Trailer.Times[1:] },
		"instants as spans":  func(l *Layout) { l.Trailer.Kind = Interval },
		"a time too late":    func(l *Layout) { l.Trailer.Times[0] = maxTime + 1 },
		"2^21 planes":        func(l *Layout) { l.Times = 1 << 20 },
	} {
		l := good
		tr := *good.Trailer
		tr.Bands, tr.Times = slices.Clone(tr.Bands), slices.Clone(tr.Times)
		l.Trailer = &tr
		edit(&l)
		if _, err := Write(&bytes.Buffer{}, frames, l); err == nil {
			t.Errorf("%s: written", name)
		}
	}
}

// TestChangedDirectories3: a file of which the header, the directory or the trailer has one changed byte is
// refused, or yields the same image except for what only these hold.
func TestChangedDirectories3(t *testing.T) {
	for _, l := range []Layout{
		{Shape: [3]int{2, 20, 21}, Unit: UnitHWBT, Times: 3}, {Shape: [3]int{3, 20, 21}},
	} {
		l.DType, l.TileH, l.TileW = chunk.Uint16, 16, 16
		pix := make([]byte, 2*max(l.Times, 1)*l.Shape[0]*20*21)
		for i := range pix {
			pix[i] = byte(i * i >> 3)
		}
		good := write3(t, pix, l)
		h, _, err := indexAndDecode(good)
		if err != nil {
			t.Fatal(err)
		}
		blob := h.Blob()
		ranges := h.Unit.fileOrder(h.Index())
		head, end := int(ranges[0].Off), int(ranges[len(ranges)-1].Off+ranges[len(ranges)-1].Len)
		free := map[int]bool{} // what nothing else in the file says
		d := open3(t, good)
		for _, tag := range []uint16{ifd.TagImageWidth, ifd.TagImageLength, ifd.TagTileWidth, ifd.TagTileLength,
			tagUnit} {
			for i := range 4 {
				free[int(d.Dirs[0].Find(tag).Off)+i] = true
			}
		}
		for i := range 16 { // the sign of a 0, which rumi-eo reads, too
			free[int(d.Dirs[0].Find(ifd.TagTransformation).Off)+8*i+7] = true
		}
		free[int(d.Dirs[0].Find(ifd.TagGeoKeys).Off)+22] = true // the area or the point of a pixel
		for at := range good {
			if head <= at && at < end {
				continue
			}
			for _, bit := range []byte{1, 4, 0x80} {
				b := slices.Clone(good)
				b[at] ^= bit
				got, err := IndexFile(context.Background(), &corpus.Mem{B: b})
				switch {
				case err != nil && fault.KindOf(err) == 0:
					t.Errorf("byte %d: error without a kind: %v", at, err)
				case err == nil && at < head && !free[at]:
					t.Errorf("byte %d with bit %#x flipped: read", at, bit)
				case err == nil && !free[at] && !bytes.Equal(got, blob):
					t.Errorf("byte %d with bit %#x flipped: another image", at, bit)
				}
			}
		}
		for _, cut := range []int{0, 1, 4, 15, 16, 24, 291, head - 1, head, end - 1, end, end + 5, len(good) - 1} {
			if _, err := IndexFile(context.Background(), &corpus.Mem{B: good[:cut]}); fault.KindOf(err) == 0 {
				t.Errorf("cut to %d bytes: %v", cut, err)
			}
		}
		if _, err := IndexFile(context.Background(), &corpus.Mem{B: append(slices.Clone(good), 0)}); err == nil {
			t.Error("a byte too many: read")
		}
	}
}

// TestFramesOverflow: an image whose frames number 2^65 + 1 = 1,119,412,321 · 998,724,481 · 33, which is 1 in 64
// bits, is not an image of one frame.
func TestFramesOverflow(t *testing.T) {
	b := write3(t, make([]byte, 33), Layout{Shape: [3]int{33, 1, 1}, DType: chunk.Uint8, TileH: 1, TileW: 1,
		Unit: UnitPlanes})
	d := &open3(t, b).Dirs[0]
	le := binary.LittleEndian
	le.PutUint32(b[d.Find(ifd.TagImageWidth).Off:], 1_119_412_321)
	le.PutUint32(b[d.Find(ifd.TagImageLength).Off:], 998_724_481)
	le.PutUint16(b[d.Find(tagUnit).Off:], uint16(UnitTile))
	if _, err := IndexFile(context.Background(), &corpus.Mem{B: b}); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("read, or refused otherwise: %v", err)
	}
}

// TestNoOtherEncodings: sample formats of 8 bits after those of the format are refused.
func TestNoOtherEncodings(t *testing.T) {
	good := write3(t, make([]byte, 16), Layout{Shape: [3]int{1, 4, 4}, DType: chunk.Uint8, TileH: 4, TileW: 4})
	at := open3(t, good).Dirs[0].Find(ifd.TagSampleFormat).Off
	for _, format := range []byte{0, 4, 99, 107, 108} {
		b := slices.Clone(good)
		b[at] = format
		if _, err := IndexFile(context.Background(), &corpus.Mem{B: b}); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("format %d: %v", format, err)
		}
	}
}

func TestPlaces3(t *testing.T) {
	l := Layout{Shape: [3]int{1, 4, 4}, DType: chunk.Uint8, TileH: 4, TileW: 4,
		Geo: &tiff.Geo{HasTransform: true, EPSG: 32633, Transform: [6]float64{1, 2, 0, 3, 0, -2}}}
	good := write3(t, make([]byte, 16), l)
	d := open3(t, good)
	keys, matrix := d.Dirs[0].Find(ifd.TagGeoKeys).Off, d.Dirs[0].Find(ifd.TagTransformation).Off
	for name, edit := range map[string]func(b []byte){
		"EPSG 1023":             func(b []byte) { copy(b[keys+30:], "\xff\x03") },
		"EPSG 32767":            func(b []byte) { copy(b[keys+30:], "\xff\x7f") },
		"geographic, projected": func(b []byte) { b[keys+14] = 2 },
		"model 3":               func(b []byte) { b[keys+14] = 3 },
		"a CRS of no model":     func(b []byte) { b[keys+14] = 0 },
		"raster type 3":         func(b []byte) { b[keys+22] = 3 },
		"a NaN":                 func(b []byte) { copy(b[matrix+24:], "\x00\x00\x00\x00\x00\x00\xf8\x7f") },
		"a third axis":          func(b []byte) { b[matrix+16+7] = 0x40 },
		"a last row":            func(b []byte) { b[matrix+120] = 1 },
	} {
		b := slices.Clone(good)
		edit(b)
		if _, err := IndexFile(context.Background(), &corpus.Mem{B: b}); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBlobsToldApart: a blob is of the generation of the file it is from, or of both.
func TestBlobsToldApart(t *testing.T) {
	for _, f := range files2(t) {
		b, err := hex.DecodeString(f.Blob)
		if err != nil {
			t.Fatal(err)
		}
		if h, err := Parse(b); err != nil || h.Generation != 2 {
			t.Errorf("%s: %v", f.Path, err)
		}
	}
	// In generation 2 one frame of 5 + 2^28 bytes, of an image in a tile of 1 × 1 with one band of uint8. In
	// generation 3, where the fields are four bytes later: 65,537 steps of a band in a chunk each.
	either, err := hex.DecodeString("4c4f56450100" + "01000000" + "01000000" + "0100" + "0100" + "0100" + "0801" +
		"01" + "00080102" + "01" + "01000000")
	if err != nil {
		t.Fatal(err)
	}
	two, err2 := parsePacked(either, 2, 1<<20)
	three, err3 := parsePacked(either, 3, 1<<20)
	t.Log(err2, err3)
	if err2 == nil && err3 == nil {
		if _, err := Parse(either); !errors.Is(err, ErrEither) {
			t.Errorf("%v %v: %v", two, three, err)
		}
	}
}

// FuzzRumiBlob3: a blob that parses as one of generation 3 is valid, yields itself when written again, and
// costs memory in proportion to its length or to the limit of equal frames.
func FuzzRumiBlob3(f *testing.F) {
	for _, e := range files3(f) {
		if b, err := hex.DecodeString(e.Blob); err == nil {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4 {
			copy(b, "\x4c\x4f\x56\x45")
		}
		h, err := parsePacked(b, 3, 1<<24)
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
		if n := len(x.Ranges); n > max(maxEqualFrames, 8*len(b)) {
			t.Fatalf("%d ranges from %d bytes", n, len(b))
		}
		if c := h.Blob(); h.Generation == 3 && !bytes.Equal(b, c) {
			t.Fatalf("another blob\n%x\n%x", b, c)
		}
	})
}

// FuzzRumiFile3: any bytes behind the first four yield an error with a kind, or an image and a trailer.
func FuzzRumiFile3(f *testing.F) {
	for _, e := range files3(f) {
		f.Add(e.bytes(f))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		copy(b, Magic)
		d, err := Open(context.Background(), &corpus.Mem{B: b}, ifd.Limits{})
		if err == nil {
			var h *Header
			if h, err = HeaderOf(context.Background(), d, 1<<20); err == nil {
				_, err = whole.Image(h.Index(), b, 1<<22)
				if _, merr := Meta(context.Background(), d); merr != nil {
					t.Fatalf("a file with an index has no trailer: %v", merr)
				}
			}
		}
		if err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("error without a kind: %v", err)
		}
	})
}

// FuzzRumiTrailer: a trailer that parses yields itself when written again.
func FuzzRumiTrailer(f *testing.F) {
	for _, e := range files3(f) {
		b := e.bytes(f)
		if h, err := HeaderOf(context.Background(), open3(f, b), 1<<24); err == nil {
			ranges := h.Unit.fileOrder(h.Index())
			last := ranges[len(ranges)-1]
			f.Add(b[last.Off+last.Len:], uint8(h.Shape[0]), uint16(h.Times))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, bands uint8, steps uint16) {
		tr, err := parseTrailer(b, int(bands), int(steps))
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("error without a kind: %v", err)
			}
			return
		}
		if again, err := tr.append(nil, int(bands), int(steps)); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("another trailer: %x, %v", again, err)
		}
	})
}

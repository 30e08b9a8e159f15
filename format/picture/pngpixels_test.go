package picture_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/picture"
	"github.com/chaski-eo/chaski/tools/testkit/taken"
)

// part returns a chunk of a PNG file.
func part(kind string, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	b = append(append(b, kind...), body...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// form is a kind of PNG file.
type form struct {
	color, depth  byte
	interlaced    bool
	width, height int
}

// forms are all kinds of colour with all their depths.
var forms = func() (list []form) {
	depths := map[byte][]byte{0: {1, 2, 4, 8, 16}, 2: {8, 16}, 3: {1, 2, 4, 8}, 4: {8, 16}, 6: {8, 16}}
	for _, color := range []byte{0, 2, 3, 4, 6} {
		for _, depth := range depths[color] {
			list = append(list, form{color: color, depth: depth}, form{color: color, depth: depth, interlaced: true})
		}
	}
	return list
}()

// rows returns where each row begins, which a filter does, and the bytes of all. Pixels are counted one by one.
func (f form) rows() (starts []int, size int) {
	bits := int(f.depth) * map[byte]int{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[f.color]
	adam := []string{"16462646", "77777777", "56565656", "77777777", "36463646", "77777777", "56565656", "77777777"}
	for number := byte('1'); number <= '7'; number++ {
		for y := range f.height {
			count := 0
			for x := range f.width {
				if f.interlaced && adam[y%8][x%8] == number || !f.interlaced && number == '1' {
					count++
				}
			}
			if count > 0 {
				starts = append(starts, size)
				size += 1 + (count*bits+7)/8
			}
		}
	}
	return starts, size
}

// file returns a file of this form with random filters and random pixels, in one or several chunks, with a palette and
// transparency or without.
func (f form) file(r *rand.Rand) []byte {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(f.width)), uint32(f.height))
	head = append(head, f.depth, f.color, 0, 0, map[bool]byte{true: 1}[f.interlaced])
	out := append([]byte("\x89PNG\r\n\x1a\n"), part("IHDR", head)...)
	if entries := 1 + r.IntN(1<<min(f.depth, 8)); f.color == 3 || f.color == 2 && r.IntN(3) == 0 {
		out = append(out, part("PLTE", make([]byte, 3*entries))...)
		if f.color == 3 && r.IntN(2) == 0 {
			out = append(out, part("tRNS", make([]byte, r.IntN(entries+1)))...)
		}
	}
	if size := map[byte]int{0: 2, 2: 6}[f.color]; size > 0 && r.IntN(2) == 0 {
		out = append(out, part("tRNS", make([]byte, size))...)
	}
	starts, size := f.rows()
	raw := make([]byte, size)
	most := []uint32{256, 5}[r.IntN(2)]
	for i := range raw {
		raw[i] = byte(r.Uint32N(most))
	}
	for _, start := range starts {
		raw[start] = byte(r.IntN(5))
	}
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	w.Write(raw)
	w.Close()
	stream := packed.Bytes()
	for len(stream) > 0 {
		n := len(stream)
		if r.IntN(2) == 0 {
			n = 1 + r.IntN(n)
		}
		out = append(out, part("IDAT", stream[:n])...)
		stream = stream[n:]
	}
	return append(out, part("IEND", nil)...)
}

// stored returns the samples of an image of package image/png, as chunks have them.
func stored(m image.Image, f form) (out []byte) {
	bands := map[byte][]int{0: {0}, 2: {0, 1, 2}, 3: {0}, 4: {0, 3}, 6: {0, 1, 2, 3}}[f.color]
	for y := range f.height {
		for x := range f.width {
			if p, ok := m.(*image.Paletted); ok {
				out = append(out, p.ColorIndexAt(x, y))
				continue
			}
			var all []uint16
			switch c := m.At(x, y).(type) {
			case color.Gray:
				all = []uint16{uint16(c.Y) * 257}
			case color.Gray16:
				all = []uint16{c.Y}
			case color.RGBA:
				all = []uint16{uint16(c.R) * 257, uint16(c.G) * 257, uint16(c.B) * 257}
			case color.RGBA64:
				all = []uint16{c.R, c.G, c.B}
			case color.NRGBA:
				all = []uint16{uint16(c.R) * 257, uint16(c.G) * 257, uint16(c.B) * 257, uint16(c.A) * 257}
			case color.NRGBA64:
				all = []uint16{c.R, c.G, c.B, c.A}
			}
			for _, k := range bands {
				if f.depth == 16 {
					out = binary.LittleEndian.AppendUint16(out, all[k])
				} else {
					out = append(out, byte(int(all[k])*(1<<f.depth-1)/0xffff))
				}
			}
		}
	}
	return out
}

// TestPNGAgainstTheLibrary: files of every colour type, depth and interlacing, with every filter, have the samples that
// package image/png reads.
func TestPNGAgainstTheLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, f := range forms {
		for i := range 40 {
			f.width, f.height = 1+r.IntN(20), 1+r.IntN(20)
			if i%8 == 0 {
				f.width = 40 + r.IntN(60) // vectors
			}
			file := f.file(r)
			m, err := png.Decode(bytes.NewReader(file))
			if err != nil {
				t.Fatalf("%+v: the library: %v", f, err)
			}
			_, got, err := decode(t, file, 0)
			if want := stored(m, f); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%+v: %v\n%v\n%v", f, err, got, want)
			}
		}
	}
}

// TestDamagedPNG: a file with a damaged byte is refused where the library refuses it, and where both read it they
// read the same.
func TestDamagedPNG(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	refused := 0
	for i := range 1500 {
		f := forms[i%len(forms)]
		f.width, f.height = 1+r.IntN(9), 1+r.IntN(9)
		file := f.file(r)
		switch r.IntN(3) {
		case 0:
			file = file[:r.IntN(len(file))]
		case 1: // with a checksum that is right
			start := 8
			for range r.IntN(4) {
				if n := int(binary.BigEndian.Uint32(file[start:])); start+12+n < len(file) {
					start += 12 + n
				}
			}
			n := int(binary.BigEndian.Uint32(file[start:]))
			file[start+4+r.IntN(n+4)] ^= 1 << r.IntN(8)
			copy(file[start+8+n:], binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(file[start+4:start+8+n])))
		default:
			file[r.IntN(len(file))] ^= 1 << r.IntN(8)
		}
		comparePNG(t, file)
		if _, _, err := decode(t, file, 1<<16); err != nil {
			refused++
		}
	}
	if refused < 400 || refused > 1450 {
		t.Errorf("%d of 1500 files are refused", refused)
	}
}

// TestChunksAgainstTheLibrary: files with any chunks before their pixels are refused where the library refuses them.
func TestChunksAgainstTheLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	kinds := []string{"tRNS", "tRNS", "tRNS", "PLTE", "PLTE", "tEXt", "IHDR"}
	sizes := []int{0, 1, 2, 3, 6, 7, 255, 256, 257, 768, 771}
	for i := range 1500 {
		f := forms[i%len(forms)]
		f.width, f.height = 2, 2
		file := f.file(r)
		for range 1 + r.IntN(2) {
			file = withChunk(file, kinds[r.IntN(len(kinds))], string(make([]byte, sizes[r.IntN(len(sizes))])))
		}
		comparePNG(t, file)
	}
}

// TestClaims: pixels that the stream cannot have take no memory.
func TestClaims(t *testing.T) {
	file := form{color: 6, depth: 16, width: 1, height: 1}.file(rand.New(rand.NewPCG(1, 1)))
	binary.BigEndian.PutUint32(file[16:], 1<<10)
	binary.BigEndian.PutUint32(file[20:], 1<<10)
	copy(file[29:], binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(file[12:29])))
	x, err := picture.Open(t.Context(), memory(file), chunk.Axes{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, x.DecodedBytes(0))
	taken.Check(t, len(file), taken.Factor, func() {
		if err := chunk.NewDecoder(nil).Decode(out, file, x, 0); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("8 MiB of pixels in a stream of a few bytes: %v", err)
		}
	})
}

// comparePNG compares what is read of a file with what the library reads.
func comparePNG(t *testing.T, file []byte) {
	x, got, err := decode(t, file, 1<<16)
	if err != nil && fault.KindOf(err) == 0 {
		t.Fatalf("%v has no kind", err)
	}
	if x == nil || len(x.Params) > 0 || !bytes.HasPrefix(file, []byte("\x89PNG")) {
		return // refused by its header, or turned
	}
	m, other := png.Decode(bytes.NewReader(file))
	f := form{depth: file[24], color: file[25], width: x.Width, height: x.Height}
	switch grey := f.color == 0 || f.color == 4; {
	case other == nil && err != nil:
		t.Fatalf("the library reads %q: %v", file, err)
	case other == nil && !bytes.Equal(got, stored(m, f)):
		t.Fatalf("%q: other samples than the library's", file)
	case other != nil && err == nil && !(grey && bytes.Contains(file, []byte("PLTE"))):
		t.Fatalf("the library refuses %q: %v", file, other)
	}
}

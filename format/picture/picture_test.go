package picture_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/npy"
	"github.com/chaski-eo/chaski/format/picture"
	"github.com/chaski-eo/chaski/tools/testkit/taken"
)

// memory is a file in memory.
type memory []byte

func (m memory) ReadAt(_ context.Context, p []byte, off int64) error {
	if off < 0 || off > int64(len(m))-int64(len(p)) {
		return fault.At(fault.Corrupt, "file", off, "past the end")
	}
	copy(p, m[off:])
	return nil
}
func (m memory) Size() int64  { return int64(len(m)) }
func (m memory) Close() error { return nil }

// decode reads all samples of a file.
func decode(t testing.TB, b []byte, limit int) (*chunk.Index, []byte, error) {
	t.Helper()
	x, err := picture.Open(t.Context(), memory(b), chunk.Axes{}, limit)
	if err != nil {
		return nil, nil, err
	}
	out, at := make([]byte, x.DecodedBytes(0)), x.Ranges[0]
	return x, out, chunk.NewDecoder(nil).Decode(out, b[at.Off:][:at.Len], x, 0)
}

// encoded returns an image of every type that the library writes, as a file.
func encoded(t testing.TB) map[string][]byte {
	t.Helper()
	r := image.Rect(0, 0, 5, 3)
	images := map[string]image.Image{
		"gray": image.NewGray(r), "gray16": image.NewGray16(r), "rgb": image.NewRGBA(r), "rgb16": image.NewRGBA64(r),
		"alpha": image.NewNRGBA(r), "alpha16": image.NewNRGBA64(r),
		"bits":    image.NewPaletted(r, color.Palette{color.Black, color.White}),
		"palette": image.NewPaletted(r, color.Palette{color.Black, color.White, color.Transparent}),
	}
	out := map[string][]byte{}
	for name, m := range images {
		for y := range 3 {
			for x := range 5 {
				c := color.NRGBA{uint8(40 * x), uint8(80 * y), 7, 255}
				m.(interface{ Set(x, y int, c color.Color) }).Set(x, y, c)
			}
		}
		if name == "alpha" || name == "alpha16" {
			m.(interface{ Set(x, y int, c color.Color) }).Set(1, 1, color.NRGBA{200, 100, 50, 10})
		}
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			t.Fatal(err)
		}
		out[name+".png"] = b.Bytes()
	}
	plain := image.NewRGBA(r) // of one colour: libraries differ in how they bring colours to the size of the image
	for i := range plain.Pix {
		plain.Pix[i] = []byte{200, 30, 120, 255}[i%4]
	}
	for name, m := range map[string]image.Image{"gray": images["gray"], "rgb": plain} {
		var b bytes.Buffer
		if err := jpeg.Encode(&b, m, nil); err != nil {
			t.Fatal(err)
		}
		out[name+".jpg"] = b.Bytes()
	}
	return out
}

// TestSamples compares samples with the colours that the library's images give.
func TestSamples(t *testing.T) {
	for name, b := range encoded(t) {
		x, got, err := decode(t, b, 0)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		m, _, err := image.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		size, far := x.DType.Size(), 0
		for y := range 3 {
			for col := range 5 {
				at := got[(y*5+col)*x.Bands*size:][:x.Bands*size]
				for k, want := range samplesOf(m.At(col, y), m, x, col, y) {
					v := int(at[k*size])
					if size == 2 {
						v |= int(at[k*size+1]) << 8
					}
					far = max(far, v-want, want-v)
				}
			}
		}
		most := 0
		if x.Codec == chunk.JPEG {
			most = 4 // another inverse transform
		}
		if far > most {
			t.Errorf("%s: %d off", name, far)
		}
	}
}

// TestTablesOfAnnexK: a JPEG without Huffman tables has those of T.81, annex K, which image/jpeg writes.
func TestTablesOfAnnexK(t *testing.T) {
	noise := image.NewRGBA(image.Rect(0, 0, 333, 201))
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range noise.Pix {
		noise.Pix[i] = byte(rnd.Uint32() >> (i % 32))
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, noise, &jpeg.Options{Quality: 95}); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string][]byte{"gray": encoded(t)["gray.jpg"], "noise": b.Bytes()} {
		_, want, err := decode(t, file, 0)
		if err != nil {
			t.Fatal(err)
		}
		start := bytes.Index(file, []byte{0xff, 0xc4})
		tables := file[start:][:2+int(binary.BigEndian.Uint16(file[start+2:]))]
		_, got, err := decode(t, slices.Concat(file[:start], file[start+len(tables):]), 0)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s without %d bytes of tables: %v", name, len(tables), err)
		}
	}
}

// samplesOf returns the samples of a pixel, as the file has them.
func samplesOf(c color.Color, m image.Image, x *chunk.Index, col, row int) []int {
	if p, ok := m.(*image.Paletted); ok {
		return []int{int(p.ColorIndexAt(col, row))}
	}
	n := color.NRGBA64Model.Convert(c).(color.NRGBA64)
	out := []int{int(n.R), int(n.G), int(n.B), int(n.A)}[:x.Bands]
	if x.DType == chunk.Uint8 {
		for i := range out {
			out[i] >>= 8
		}
	}
	return out
}

// withPalettes returns a PNG file with chunks of type PLTE after its header, with wrong checksums.
func withPalettes(b []byte, contents ...string) []byte {
	const header = 8 + 12 + 13 // a signature, and a chunk of 13 bytes
	out := bytes.Clone(b[:header])
	for _, c := range contents {
		out = binary.BigEndian.AppendUint32(out, uint32(len(c)))
		out = append(out, "PLTE"+c+"\x00\x01\x02\x03"...)
	}
	return append(out, b[header:]...)
}

// TestPaletteOfGrey: a grey image with palettes has the samples of one without, as GDAL reads it; of one with colours
// they are damaged.
func TestPaletteOfGrey(t *testing.T) {
	files := encoded(t)
	for _, name := range []string{"gray.png", "gray16.png"} {
		_, want, err := decode(t, files[name], 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, contents := range [][]string{{""}, {"abc"}, {"abcd", "abcdef"}, {strings.Repeat("abc", 300)}} {
			_, got, err := decode(t, withPalettes(files[name], contents...), 0)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s with %q: %v, want %v: %v", name, contents, got, want, err)
			}
		}
	}
	if _, _, err := decode(t, withPalettes(files["rgb.png"], "abc"), 0); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("a damaged palette of colours: %v", err)
	}
}

// TestPalettesOfColours: an image of colours may have one palette of 1 to 256 entries of three bytes.
func TestPalettesOfColours(t *testing.T) {
	rgb := encoded(t)["rgb.png"]
	for _, c := range []struct {
		palettes []string
		kind     fault.Kind
	}{{[]string{"abc"}, 0}, {[]string{strings.Repeat("abc", 256)}, 0},
		{[]string{strings.Repeat("abc", 257)}, fault.Corrupt}, {[]string{""}, fault.Corrupt},
		{[]string{"abcd"}, fault.Corrupt}, {[]string{"abc", "abc"}, fault.Corrupt}} {
		file := rgb
		for _, palette := range c.palettes {
			file = withChunk(file, "PLTE", palette)
		}
		if _, _, err := decode(t, file, 0); fault.KindOf(err) != c.kind {
			t.Errorf("palettes of %d bytes: %v, want %v", len(strings.Join(c.palettes, "")), err, c.kind)
		}
	}
}

// TestNamesOfComponents: without a marker components are RGB by these names, and YCbCr by any others.
func TestNamesOfComponents(t *testing.T) {
	photo := encoded(t)["rgb.jpg"]
	frame := bytes.Index(photo, []byte{0xff, 0xc0})
	for names, want := range map[string]byte{"RGB": chunk.JPEGAsStored, "\x01\x02\x03": chunk.JPEGYCbCr,
		"xGB": chunk.JPEGYCbCr, "RxB": chunk.JPEGYCbCr, "RGx": chunk.JPEGYCbCr} {
		b := bytes.Clone(photo)
		for i := range 3 {
			b[frame+10+3*i] = names[i]
		}
		x, err := picture.Open(t.Context(), memory(b), chunk.Axes{}, 0)
		if err != nil || x.Params[0] != want {
			t.Errorf("%q: %v, %v, want %d", names, x, err, want)
		}
	}
}

// TestMarkers: markers of application segments say whether components are YCbCr, by the rules of libjpeg, and those
// without a segment say nothing.
func TestMarkers(t *testing.T) {
	photo := encoded(t)["rgb.jpg"]
	named := bytes.Clone(photo)
	for i, name := range []byte("RGB") {
		named[bytes.Index(photo, []byte{0xff, 0xc0})+10+3*i] = name
	}
	const jfif, adobe = "\xff\xe0\x00\x07JFIF\x00", "\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00"
	for _, c := range []struct {
		file    []byte
		markers string
		want    byte
	}{
		{photo, adobe + "\x00", chunk.JPEGAsStored}, {photo, adobe + "\x01", chunk.JPEGYCbCr},
		{named, adobe + "\x01", chunk.JPEGYCbCr}, {named, "", chunk.JPEGAsStored}, {named, jfif, chunk.JPEGYCbCr},
		{photo, jfif + adobe + "\x00", chunk.JPEGYCbCr}, {photo, adobe + "\x00" + jfif, chunk.JPEGYCbCr},
		{photo, "\xff\xee\x00\x0dAdobe\x00\x64\x00\x00\x00\x00", chunk.JPEGYCbCr}, // a byte too short
		{photo, "\xff\xee\x00\x0eadobe\x00\x64\x00\x00\x00\x00\x00", chunk.JPEGYCbCr},
		{photo, "\xff\xe1\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00", chunk.JPEGYCbCr},
		{named, "\xff\xd8\xff\xd0\xff\x01\xff\xff\xff\xd7", chunk.JPEGAsStored},
		{named, "\xff\xe0\x00\x07JFXX\x00\xff\xfe\x00\x02\xff\xe2\x00\x07JFIF\x00", chunk.JPEGAsStored},
	} {
		file := slices.Concat([]byte("\xff\xd8"), []byte(c.markers), c.file[2:])
		x, err := picture.Open(t.Context(), memory(file), chunk.Axes{}, 0)
		if err != nil || x.Params[0] != c.want {
			t.Errorf("%q: %+v, %v, want %d", c.markers, x, err, c.want)
		}
	}
}

// TestCut: a file that ends before its pixels is corrupt, wherever it ends.
func TestCut(t *testing.T) {
	files := encoded(t)
	photo := slices.Concat([]byte("\xff\xd8\xff\xe0\x00\x07JFIF\x00\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"),
		turnedJPEG(files["rgb.jpg"], 6)[2:])
	picture := withChunk(turnedPNG(files["palette.png"]), "tRNS", "\x00")
	for name, file := range map[string][]byte{"jpeg": photo[:bytes.Index(photo, []byte{0xff, 0xc0})+19],
		"png": picture[:bytes.Index(picture, []byte("IDAT"))+4]} {
		for n := range file {
			if _, _, err := decode(t, file[:n], 0); fault.KindOf(err) != fault.Corrupt {
				t.Errorf("%s of %d bytes: %v", name, n, err)
			}
		}
	}
}

// TestRefused promises kinds for files that are not read, and that no size of a header is believed.
func TestRefused(t *testing.T) {
	files := encoded(t)
	gray := files["gray.png"]
	change := func(at int, v ...byte) []byte {
		b := bytes.Clone(gray)
		copy(b[at:], v)
		return b
	}
	photo := files["rgb.jpg"]
	frame := bytes.Index(photo, []byte{0xff, 0xc0})
	photoWith := func(at int, v ...byte) []byte {
		b := bytes.Clone(photo)
		copy(b[frame+at:], v)
		return b
	}
	rgb := photoWith(10, 'R')
	rgb[frame+13], rgb[frame+16] = 'G', 'B'
	scan := rgb[bytes.Index(rgb, []byte{0xff, 0xda}):]
	scan[5], scan[7], scan[9] = 'R', 'G', 'B'
	for name, c := range map[string]struct {
		b    []byte
		kind fault.Kind
	}{
		"nothing":                 {nil, fault.Corrupt},
		"three bytes":             {[]byte("\xff\xd8\xff"), fault.Corrupt},
		"cut":                     {gray[:30], fault.Corrupt},
		"no pixels":               {gray[:33], fault.Corrupt},
		"virtual raster":          {[]byte("<VRTDataset rasterXSize=\"1\"></VRTDataset>"), fault.Unsupported},
		"no width":                {change(16, 0, 0, 0, 0), fault.Corrupt},
		"no height":               {change(20, 0, 0, 0, 0), fault.Corrupt},
		"too wide":                {change(16, 0x80), fault.Corrupt},
		"too high":                {change(20, 0x80), fault.Corrupt},
		"huge":                    {change(16, 0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff), fault.Limit},
		"larger":                  {change(16, 0, 0, 0x20, 0, 0, 0, 0x20, 0), fault.Corrupt}, // 64 MiB, by its header
		"5 bits":                  {change(24, 5), fault.Corrupt},
		"colour type 1":           {change(25, 1), fault.Corrupt},
		"no checksum":             {change(29, 1), fault.Corrupt},
		"jpeg cut":                {photo[:frame+4], fault.Corrupt},
		"jpeg of 12 bits":         {photoWith(4, 12), fault.Unsupported},
		"jpeg no height":          {photoWith(5, 0, 0), fault.Unsupported},
		"jpeg of no bands":        {photoWith(2, 0, 8, 8, 0, 3, 0, 5, 0), fault.Unsupported},
		"jpeg of 4 bands":         {photoWith(9, 4), fault.Corrupt}, // its frame is too short for them
		"jpeg of RGB, subsampled": {rgb, fault.Unsupported},
		"jpeg no frame":           {append(bytes.Clone(photo[:2]), 0xff, 0xd9, 0, 0), fault.Corrupt},
	} {
		if _, _, err := decode(t, c.b, 0); fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Baseline, extended and progressive frames are read (T.81, table B.1); 0xc4, 0xc8 and 0xcc are no frames.
	for n := range byte(16) {
		_, err := picture.Open(t.Context(), memory(photoWith(1, 0xc0+n)), chunk.Axes{}, 0)
		if is := n%4 != 0 || n == 0; is && n > 2 {
			want := fmt.Sprintf("a frame of type %d:", n)
			if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), want) {
				t.Errorf("frame %d: %v", n, err)
			}
		} else if (err == nil) != is {
			t.Errorf("frame %d: %v", n, err)
		}
	}
	x, err := picture.Open(t.Context(), memory(photoWith(5, 0, 1, 0, 1)), chunk.Axes{}, 0)
	if err != nil || x.Height != 1 || x.Width != 1 {
		t.Errorf("an image of one pixel: %v", err)
	}
	// Which depths a colour type has (PNG, table 11.1).
	depths := map[byte]string{0: "1 2 4 8 16", 2: "8 16", 3: "1 2 4 8", 4: "8 16", 6: "8 16"}
	for color := range byte(8) {
		for depth := range 20 {
			x, err := picture.Open(t.Context(), memory(change(24, byte(depth), color)), chunk.Axes{}, 0)
			known := slices.Contains(strings.Fields(depths[color]), fmt.Sprint(depth))
			if known != (err == nil) || known && (x.DType.Size() != max(depth/8, 1)) {
				t.Errorf("colour type %d of %d bits: %v", color, depth, err)
			}
			if want := fmt.Sprintf("colour type %d with %d bits", color, depth); !known && (err == nil ||
				fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), want)) {
				t.Errorf("colour type %d of %d bits: %v", color, depth, err)
			}
		}
	}
	// Methods: compression and filters have one, interlacing two (sections 11.2.1 and 8).
	for at, c := range map[int]struct {
		kind fault.Kind
		want string
	}{26: {fault.Unsupported, "compression method 2"}, 27: {fault.Unsupported, "filter method 2"},
		28: {fault.Corrupt, "interlace method 2"}} {
		b := change(at, 2)
		copy(b[29:], binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(b[12:29])))
		if _, _, err := decode(t, b, 0); fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.want) {
			t.Errorf("method 2 at %d: %v, want %q", at, err, c.want)
		}
	}
	// An index of another file: nothing of what the header says is believed.
	for what, change := range map[string]func(x *chunk.Index){
		"width":  func(x *chunk.Index) { x.Width, x.ChunkW = 6, 6 },
		"height": func(x *chunk.Index) { x.Height, x.ChunkH = 4, 4 },
		"bands":  func(x *chunk.Index) { x.Bands, x.ChunkB = 2, 2 },
		"dtype":  func(x *chunk.Index) { x.DType = chunk.Int8 },
	} {
		x, err := picture.Open(t.Context(), memory(gray), chunk.Axes{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		change(x)
		err = chunk.NewDecoder(nil).Decode(make([]byte, x.DecodedBytes(0)), gray, x, 0)
		if fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), "an image of 3 by 5 pixels") {
			t.Errorf("another %s: %v", what, err)
		}
	}
	// A gigabyte of chunks of text before the pixels takes no more than maxParts steps.
	long := bytes.Clone(gray[:33])
	for range 2000 {
		long = append(long, 0, 0, 0, 0, 't', 'E', 'X', 't', 0, 0, 0, 0)
	}
	_, err = picture.Open(t.Context(), memory(append(long, gray[33:]...)), chunk.Axes{}, 0)
	if fault.KindOf(err) != fault.Limit {
		t.Errorf("2,000 chunks: %v", err)
	}
	if _, err := picture.Open(t.Context(), memory(gray), chunk.Axes{}, 14); fault.KindOf(err) != fault.Limit {
		t.Errorf("15 bytes with a limit of 14: %v", err)
	}
}

// TestTaken: headers of arrays of many parts take memory by their length.
func TestTaken(t *testing.T) {
	for _, form := range [][2]string{{"{'descr':'<f4','fortran_order':False,'shape':(", "1,"}, {"{", "'a':1,"},
		{"{", " "}, {"{'descr':'", "a"}, {"{", "'descr':'a',"}, {"", "("}} {
		text := form[0] + strings.Repeat(form[1], (1<<16-1-len(form[0]))/len(form[1]))
		b := append([]byte(npy.Magic+"\x01\x00"), byte(len(text)), byte(len(text)>>8))
		b = append(b, text...)
		taken.Check(t, len(b), taken.Factor, func() { _, _ = picture.Open(t.Context(), memory(b), chunk.Axes{}, 0) })
	}
}

// FuzzPicture: any bytes are an image or refused by kind, in memory that follows from the limit.
func FuzzPicture(f *testing.F) {
	for name, b := range encoded(f) {
		f.Add(b)
		if name == "gray.png" {
			f.Add(withPalettes(b, "abc", ""))
			f.Add(turnedPNG(b))
		}
	}
	for _, shape := range [][]int{{5, 7}, {2, 5, 7}, {5, 7, 2}, {3, 2, 5, 7}, {0, 5, 7}, {0, 2, 5, 7}} {
		head, err := npy.Header(chunk.Uint8, shape)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(head, make([]byte, 3*2*5*7)...))
	}
	for _, bits := range []byte{1, 4, 8, 24, 32} {
		b := make([]byte, 54, 400) // headers of 5 rows of 7 pixels without a palette
		copy(b, "BM")
		b[10], b[14], b[18], b[22], b[28] = 54, 40, 7, 5, bits
		f.Add(append(b, make([]byte, 5*28)...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		taken.Check(t, len(b), taken.Factor, func() {
			_, _ = picture.Open(t.Context(), memory(b), chunk.Axes{}, 1<<16)
		})
		if _, _, err := decode(t, b, 1<<16); err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("%v has no kind", err)
		}
		comparePNG(t, b)
	})
}

// exif is Exif metadata that say an orientation.
func exif(orientation byte) string {
	// Two entries: the resolution's unit, a SHORT of 3, and the orientation.
	const head = "MM\x00*\x00\x00\x00\x08\x00\x02\x01\x28\x00\x03\x00\x00\x00\x01\x00\x03\x00\x00" +
		"\x01\x12\x00\x03\x00\x00\x00\x01\x00"
	return head + string(rune(orientation)) + "\x00\x00"
}

// withChunk returns a PNG file with a chunk before its pixels and behind its palette, if it has one.
func withChunk(file []byte, kind, body string) []byte {
	at := bytes.Index(file, []byte("IDAT")) - 4
	out := binary.BigEndian.AppendUint32(bytes.Clone(file[:at]), uint32(len(body)))
	out = binary.BigEndian.AppendUint32(append(out, kind+body...), crc32.ChecksumIEEE([]byte(kind+body)))
	return append(out, file[at:]...)
}

// turnedPNG returns a PNG file with Exif metadata that say that its pixels are stored on their side.
func turnedPNG(b []byte) []byte { return withChunk(b, "eXIf", exif(6)) }

// turnedJPEG returns a JPEG file with an orientation.
func turnedJPEG(b []byte, orientation byte) []byte {
	body := "Exif\x00\x00" + exif(orientation)
	out := binary.BigEndian.AppendUint16([]byte("\xff\xd8\xff\xe1"), uint16(2+len(body)))
	return slices.Concat(out, []byte(body), b[2:])
}

// turned returns the pixels of an image with an orientation, by the definition of Exif: where row 0 and column 0 of the
// stored pixels are to be seen.
func turned(stored [][]string, orientation byte) [][]string {
	mirror := func(rows [][]string) [][]string { // right becomes left
		var out [][]string
		for _, row := range rows {
			row = slices.Clone(row)
			slices.Reverse(row)
			out = append(out, row)
		}
		return out
	}
	flip := func(rows [][]string) [][]string { // the bottom becomes the top
		rows = slices.Clone(rows)
		slices.Reverse(rows)
		return rows
	}
	transpose := func(rows [][]string) [][]string {
		out := make([][]string, len(rows[0]))
		for _, row := range rows {
			for c, pixel := range row {
				out[c] = append(out[c], pixel)
			}
		}
		return out
	}
	switch orientation {
	case 2: // row 0 at the top, column 0 at the right
		return mirror(stored)
	case 3: // bottom, right
		return flip(mirror(stored))
	case 4: // bottom, left
		return flip(stored)
	case 5: // row 0 at the left, column 0 at the top
		return transpose(stored)
	case 6: // right, top
		return mirror(transpose(stored))
	case 7: // right, bottom
		return flip(mirror(transpose(stored)))
	case 8: // left, bottom
		return flip(transpose(stored))
	}
	return stored
}

// pixelsOf splits samples into rows of pixels.
func pixelsOf(x *chunk.Index, samples []byte) (rows [][]string) {
	size := x.Bands * x.DType.Size()
	for line := range slices.Chunk(samples, x.Width*size) {
		var row []string
		for pixel := range slices.Chunk(line, size) {
			row = append(row, string(pixel))
		}
		rows = append(rows, row)
	}
	return rows
}

// TestTurned: pictures stand up, whatever their orientation; one that is unknown does not count. Virtual rasters have
// them as they are stored.
func TestTurned(t *testing.T) {
	files := encoded(t)
	for _, name := range []string{"gray.png", "rgb.png", "alpha16.png", "gray.jpg"} {
		plain, samples, err := decode(t, files[name], 0)
		if err != nil {
			t.Fatal(err)
		}
		for orientation := range byte(10) {
			file := turnedJPEG(files[name], orientation)
			if strings.HasSuffix(name, ".png") {
				file = withChunk(files[name], "eXIf", exif(orientation))
			}
			want := turned(pixelsOf(plain, samples), orientation)
			x, got, err := decode(t, file, 0)
			if err != nil || x.Height != len(want) || x.Width != len(want[0]) ||
				!reflect.DeepEqual(pixelsOf(x, got), want) {
				t.Errorf("%s with orientation %d: %v", name, orientation, err)
			}
			damaged := append(bytes.Clone(file[:len(file)-40]), make([]byte, 40)...)
			if _, _, err := decode(t, damaged, 0); fault.KindOf(err) != fault.Corrupt && name != "rgb.jpg" {
				t.Errorf("%s with orientation %d, damaged: %v", name, orientation, err)
			}
			if x, err := picture.Open(t.Context(), memory(file), chunk.Axes{AsStored: true}, 0); err != nil ||
				x.Height != plain.Height || x.Codec != plain.Codec {
				t.Errorf("%s with orientation %d, as stored: %v", name, orientation, err)
			}
		}
	}
}

// TestTurnedParameters: parameters of another codec are refused.
func TestTurnedParameters(t *testing.T) {
	file := turnedPNG(encoded(t)["gray.png"])
	for _, params := range [][]byte{nil, {6}, {1, byte(chunk.PNG)}, {9, byte(chunk.PNG)}, {6, byte(chunk.Raw)}} {
		x, out, err := decode(t, file, 0)
		if err != nil {
			t.Fatal(err)
		}
		x.Params = params
		if err := chunk.NewDecoder(nil).Decode(out, file, x, 0); err == nil ||
			!strings.Contains(err.Error(), "not the parameters of this codec: corrupt") {
			t.Errorf("%v: %v", params, err)
		}
	}
}

// TestCutExif: an orientation counts where its whole entry is there, in the order of bytes of its header, and in a
// segment of Exif alone.
func TestCutExif(t *testing.T) {
	plain := encoded(t)["gray.png"]
	const little = "II*\x00\x08\x00\x00\x00\x02\x00\x28\x01\x03\x00\x01\x00\x00\x00\x03\x00\x00\x00" +
		"\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00"
	for _, text := range []string{exif(6), little, little[:10] + little[22:], exif(0), exif(1), exif(9)} {
		for n := range len(text) + 1 {
			x, err := picture.Open(t.Context(), memory(withChunk(plain, "eXIf", text[:n])), chunk.Axes{}, 0)
			turned := n == len(text) && strings.Contains(text, "\x06")
			if err != nil || (x.Codec == chunk.Turned) != turned {
				t.Errorf("%d bytes of %q: %v", n, text, err)
			}
		}
	}
	photo := encoded(t)["gray.jpg"]
	x, err := picture.Open(t.Context(), memory(slices.Concat(photo[:2], []byte("\xff\xe1\x00\x24"+exif(6)), photo[2:])),
		chunk.Axes{}, 0)
	if err != nil || x.Codec != chunk.JPEG {
		t.Errorf("a segment that is not Exif's: %v, %v", x, err)
	}
}

// TestTransparent: the transparent value of a PNG is its nodata, by section 11.3.2.1, where it is one.
func TestTransparent(t *testing.T) {
	files := encoded(t)
	for _, c := range []struct {
		file, trns string
		nodata     float64 // -1 for none
		joint      string
	}{
		{"gray.png", "\x00\x07", 7, ""}, {"gray.png", "\x00\xff", 255, ""}, {"gray.png", "\x01\x00", -1, ""},
		{"gray.png", "\x00\x00", 0, ""}, {"gray.png", "\x07", -1, ""}, {"gray16.png", "\x01\x02", 258, ""},
		{"rgb.png", "\x00\x01\x00\x02\x00\x03", -1, "1 2 3"}, {"rgb.png", "\x00\x01\x00\x02\x00\x03\x04", -1, ""},
		{"bits.png", "\xff\x00", 1, ""}, {"bits.png", "\x00", 0, ""}, {"bits.png", "\x00\x00", -1, ""},
		{"bits.png", "\xff\xff", -1, ""}, {"bits.png", "\xff\xff\x00", -1, ""}, {"alpha.png", "\x00\x07", -1, ""},
	} {
		x, err := picture.Open(t.Context(), memory(withChunk(files[c.file], "tRNS", c.trns)), chunk.Axes{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := x.NoData; (got == nil) != (c.nodata < 0) || got != nil && *got != c.nodata || x.Joint != c.joint {
			t.Errorf("%s with %q: nodata %v, joint %q, want %v, %q", c.file, c.trns, got, x.Joint, c.nodata, c.joint)
		}
	}
	for name, alpha := range map[string]bool{"gray.png": false, "rgb.png": false, "alpha.png": true,
		"alpha16.png": true, "palette.png": false, "rgb.jpg": false} {
		if x, err := picture.Open(t.Context(), memory(files[name]), chunk.Axes{}, 0); err != nil || x.Alpha != alpha ||
			x.Classes != (name == "palette.png") {
			t.Errorf("%s: alpha %v, classes %v: %v", name, x.Alpha, x.Classes, err)
		}
		var colours []string
		if name == "palette.png" {
			colours = chunk.Colours([]color.NRGBA{{A: 255}, {255, 255, 255, 255}, {}})
		}
		if got := picture.Palette(t.Context(), memory(files[name])); !slices.Equal(got, colours) {
			t.Errorf("%s: palette %q", name, got)
		}
	}
}

// failing is a file of which only the beginning can be read.
type failing struct {
	memory
	good int
}

var errNetwork = errors.New("the network is down")

func (f failing) ReadAt(ctx context.Context, p []byte, off int64) error {
	if off+int64(len(p)) > int64(f.good) {
		return errNetwork
	}
	return f.memory.ReadAt(ctx, p, off)
}

// TestFailingReads: what the network is to blame for stays its error, and headers longer than a read go on.
func TestFailingReads(t *testing.T) {
	photo, plain := encoded(t)["gray.jpg"], encoded(t)["gray.png"]
	comment := append([]byte("\xff\xd8\xff\xfe\xff\xf0"), make([]byte, 0xffee)...)
	long := slices.Concat(comment, photo[2:])
	text := withChunk(plain, "tEXt", strings.Repeat("x", 1<<16))
	for name, file := range map[string][]byte{"jpeg": long, "png": text} {
		if _, _, err := decode(t, file, 0); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, good := range []int{0, 20 << 10} {
			if _, err := picture.Open(t.Context(), failing{file, good}, chunk.Axes{}, 0); !errors.Is(err, errNetwork) {
				t.Errorf("%s of which %d bytes are read: %v", name, good, err)
			}
		}
	}
}

// TestOutageInHeader: each read of a long header that fails is an error, whatever part it reads. A header takes a read
// for 16 KiB.
func TestOutageInHeader(t *testing.T) {
	files := encoded(t)
	far := func(file []byte) []byte { return withChunk(file, "tEXt", strings.Repeat("x", 20<<10)) }
	photo := turnedJPEG(files["gray.jpg"], 6)
	comment := append([]byte("\xff\xfe\x50\x02"), make([]byte, 20<<10)...)
	photo = slices.Concat(photo[:2], comment, photo[2:])
	small := far(files["gray.png"])
	for range 100 {
		small = withChunk(small, "tEXt", "x")
	}
	for name, c := range map[string]struct {
		file  []byte
		reads int
	}{"exif": {withChunk(far(files["gray.png"]), "eXIf", exif(6)), 2},
		"long exif":    {withChunk(files["gray.png"], "eXIf", exif(6)+strings.Repeat("x", 20<<10)), 3},
		"transparency": {withChunk(far(files["gray16.png"]), "tRNS", "\x01\x02"), 2},
		"jpeg":         {photo, 2}, "small chunks": {small, 2}, "short": {files["gray.png"], 1}} {
		open := func(bad int) (x *chunk.Index, reads int, err error) {
			r := &nthFails{memory: c.file, bad: bad}
			x, err = picture.Open(t.Context(), r, chunk.Axes{}, 0)
			return x, r.reads, err
		}
		if _, reads, err := open(0); err != nil || reads != c.reads {
			t.Errorf("%s: %d reads, want %d: %v", name, reads, c.reads, err)
		}
		for bad := 1; bad <= c.reads; bad++ {
			if x, _, err := open(bad); !errors.Is(err, errNetwork) {
				t.Errorf("%s without read %d: %v, %v", name, bad, x, err)
			}
		}
	}
}

// nthFails is a file of which one read fails, counted from 1.
type nthFails struct {
	memory
	reads, bad int
}

func (f *nthFails) ReadAt(ctx context.Context, p []byte, off int64) error {
	if f.reads++; f.reads == f.bad {
		return errNetwork
	}
	return f.memory.ReadAt(ctx, p, off)
}

// TestLongSegment: a frame header may be longer than what is read at a time.
func TestLongSegment(t *testing.T) {
	if _, err := picture.Open(t.Context(), memory(longSegment()), chunk.Axes{}, 0); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("a frame header of 60,000 bytes: %v", err)
	}
}

// longSegment returns a JPEG file whose frame header has more bytes than are read at a time.
func longSegment() []byte {
	return append([]byte{0xff, 0xd8, 0xff, 0xc0, 0xea, 0x60}, make([]byte, 70_000)...)
}
